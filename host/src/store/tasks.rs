//! Inboxes: lists of tasks, as people see them.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::time::Time;
use super::{Store, StoreError};
use crate::domain::actor::Actor;
use crate::domain::answer::Principal;
use crate::domain::ids::TenantId;
use crate::domain::instance::Holding;
use crate::domain::json::Json;

/// Whose tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Those that I own, or an absent person for whom I stand in.
    Mine,
    /// Those that I may claim, for myself or for such a person.
    Available,
    /// All that are open.
    All,
}

/// What a list is narrowed to.
#[derive(Debug, Clone)]
pub struct TaskFilter {
    pub view: View,
    /// With the standing of this moment.
    pub actor: Actor,
    pub definition: Option<String>,
    pub state: Option<String>,
    pub owner: Option<String>,
    pub label: Option<String>,
    pub min_priority: Option<i16>,
    /// What is due before this moment.
    pub due_before: Option<Timestamp>,
    pub after: Option<Uuid>,
    pub limit: i64,
}

/// One open task, with what it belongs to.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskSummary {
    pub id: Uuid,
    pub label: String,
    pub status: String,
    pub owner: Option<String>,
    /// Whose work it is, or would be, where that is neither the owner nor the reader.
    pub on_behalf_of: Option<String>,
    #[schema(value_type = Vec<Object>)]
    pub candidates: Vec<Principal>,
    #[schema(value_type = Option<Object>)]
    pub form: Option<Json>,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub claimed_at: Option<Timestamp>,
    pub state: String,
    pub priority: i16,
    #[schema(value_type = Option<String>, format = DateTime)]
    pub due_at: Option<Timestamp>,
    pub instance_id: Uuid,
    pub definition_key: String,
    pub definition_version: u32,
    pub entity_type: String,
    pub entity_id: String,
    pub initiator: String,
}

impl Store {
    /// Oldest first.
    pub async fn tasks(
        &self,
        tenant: TenantId,
        filter: &TaskFilter,
    ) -> Result<Vec<TaskSummary>, StoreError> {
        let absences = filter.actor.stands_in_for.iter();
        let (absent, definitions): (Vec<_>, Vec<_>) = absences
            .filter(|absence| absence.person != filter.actor.id)
            .map(|absence| (absence.person.clone(), absence.definition.clone()))
            .unzip();
        let rows = sqlx::query_file_as!(
            TaskRow,
            "src/store/tasks.sql",
            tenant.0,
            match filter.view {
                View::Mine => "mine",
                View::Available => "available",
                View::All => "all",
            },
            filter.actor.id,
            filter.definition,
            filter.state,
            filter.after,
            filter.limit,
            &absent,
            &definitions as &[Option<String>],
            filter.owner,
            filter.label,
            filter.min_priority,
            filter.due_before.map(Time) as _
        )
        .fetch_all(&mut *self.reading(tenant).await?)
        .await?;
        let summary = |row: TaskRow| row.into_summary(filter);
        rows.into_iter().map(summary).collect()
    }
}

/// A row of an inbox.
#[derive(Debug)]
struct TaskRow {
    id: Uuid,
    label: String,
    status: String,
    owner: Option<String>,
    candidates: String,
    form: Option<String>,
    created_at: Time,
    claimed_at: Option<Time>,
    holding: Option<String>,
    state: String,
    priority: i16,
    due_at: Option<Time>,
    instance_id: Uuid,
    definition_key: String,
    definition_version: i32,
    entity_type: String,
    entity_id: String,
    initiator: String,
    /// Requesters, and people excluded from the state.
    barred: Vec<String>,
}

impl TaskRow {
    fn into_summary(self, filter: &TaskFilter) -> Result<TaskSummary, StoreError> {
        let damaged = |error| StoreError::inconsistent("task", self.id, error);
        let candidates: Vec<Principal> = serde_json::from_str(&self.candidates).map_err(damaged)?;
        let holding = self.holding.as_deref().map(serde_json::from_str);
        let holding: Option<Holding> = holding.transpose().map_err(damaged)?;
        let (actor, owner) = (&filter.actor, self.owner.as_deref());
        let principal = holding.as_ref().and_then(Holding::principal).or(owner);
        let on_behalf_of = match filter.view {
            View::Available => claimed_for(actor, &self.definition_key, &candidates, &self.barred),
            View::Mine => principal.filter(|person| *person != actor.id),
            View::All => principal.filter(|person| Some(*person) != owner),
        };
        Ok(TaskSummary {
            id: self.id,
            label: self.label,
            status: self.status,
            on_behalf_of: on_behalf_of.map(str::to_owned),
            owner: self.owner,
            candidates,
            form: self.form.map(Json::from_canonical),
            created_at: self.created_at.0,
            claimed_at: self.claimed_at.map(|time| time.0),
            state: self.state,
            priority: self.priority,
            due_at: self.due_at.map(|time| time.0),
            instance_id: self.instance_id,
            definition_key: self.definition_key,
            definition_version: self.definition_version.cast_unsigned(),
            entity_type: self.entity_type,
            entity_id: self.entity_id,
            initiator: self.initiator,
        })
    }
}

/// The absent person for whom the actor would claim a task: nobody, where they are a candidate themselves.
fn claimed_for<'a>(
    actor: &'a Actor,
    definition: &'a str,
    candidates: &[Principal],
    barred: &[String],
) -> Option<&'a str> {
    let is_candidate = |person: &str, groups: &[String]| {
        let mut candidates = candidates.iter();
        candidates.any(|candidate| candidate.includes(person, groups))
    };
    if is_candidate(&actor.id, &actor.groups) {
        return None;
    }
    let mut absent = actor.absent(definition);
    absent
        .find(|absent| {
            is_candidate(&absent.person, &absent.groups) && !barred.contains(&absent.person)
        })
        .map(|absent| absent.person.as_str())
}
