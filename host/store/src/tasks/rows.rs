//! The rows that are read for each task of a list, and the line made of a row.

use uuid::Uuid;

use super::{Absent, Status, TaskFilter, TaskSummary, View};
use crate::StoreError;
use crate::pool::Limited;
use crate::time::Time;
use wrkflw_core::actor::Actor;
use wrkflw_core::ids::TenantId;
use wrkflw_core::instance::{Candidate, Ownership};

/// The rows of the tasks that pass the filter.
pub(super) async fn rows(
    connection: &mut Limited,
    tenant: TenantId,
    filter: &TaskFilter,
    open: &[Uuid],
    most: i64,
    absent: &Absent,
) -> Result<Vec<TaskRow>, StoreError> {
    let rows = sqlx::query_file_as!(
        TaskRow,
        "src/tasks.sql",
        tenant.0,
        match filter.view {
            _ if filter.ended() => "ended",
            View::Mine => "mine",
            View::Available => "available",
            View::Groups => "groups",
            View::All => "all",
        },
        filter.actor.id,
        filter.definition,
        filter.state,
        open,
        most,
        &absent.people,
        &*absent.definitions as _,
        filter
            .owner
            .as_ref()
            .or(filter.ended().then_some(&filter.actor.id)),
        filter.label,
        filter.min_priority,
        filter.due_before.map(Time) as _,
        filter.suspended,
        filter.entity_type,
        filter.entity_id,
        filter.status.map(Status::name),
        filter.outcome,
        filter.words,
        &absent.between
    );
    Ok(rows.fetch_all(connection).await?)
}

/// A row of an inbox.
#[derive(Debug)]
pub(super) struct TaskRow {
    id: Uuid,
    label: String,
    status: String,
    owner: Option<String>,
    candidates: String,
    created_at: Time,
    claimed_at: Option<Time>,
    ownership: Option<String>,
    suspended: Option<String>,
    state: String,
    state_id: Uuid,
    priority: i16,
    priority_name: Option<String>,
    due_at: Option<Time>,
    instance_id: Uuid,
    definition_key: String,
    definition_version: i32,
    entity_type: String,
    entity_id: String,
    initiator: String,
    instance_title: Option<String>,
    instance_summary: Option<String>,
    ended_at: Option<Time>,
    outcome: Option<String>,
    /// Requesters, and people excluded from the state.
    excluded_people: Vec<String>,
    /// Who has decided in the state instance, in the views of what the actor may claim.
    deciders: Vec<String>,
}

impl TaskRow {
    pub(super) fn into_summary(self, filter: &TaskFilter) -> Result<TaskSummary, StoreError> {
        let damaged = |error| StoreError::inconsistent("task", self.id, error);
        let candidates: Vec<Candidate> = serde_json::from_str(&self.candidates).map_err(damaged)?;
        let ownership = self.ownership.as_deref().map(serde_json::from_str);
        let ownership: Option<Ownership> = ownership.transpose().map_err(damaged)?;
        let suspended = self.suspended.as_deref().map(serde_json::from_str);
        let suspended = suspended.transpose().map_err(damaged)?;
        let (actor, owner) = (&filter.actor, self.owner.as_deref());
        let represented = ownership
            .as_ref()
            .and_then(|ownership| ownership.represented().next());
        let principal = represented.or(owner);
        let on_behalf_of = match filter.view {
            _ if filter.ended() => principal.filter(|person| Some(*person) != owner),
            View::Available | View::Groups => claimed_for(
                actor,
                &self.definition_key,
                &candidates,
                (&self.excluded_people, &self.deciders),
            ),
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
            created_at: self.created_at.0,
            claimed_at: self.claimed_at.map(|time| time.0),
            suspended,
            state: self.state,
            state_id: self.state_id,
            priority: self.priority,
            priority_name: self.priority_name,
            due_at: self.due_at.map(|time| time.0),
            instance_id: self.instance_id,
            definition_key: self.definition_key,
            definition_version: self.definition_version.cast_unsigned(),
            entity_type: self.entity_type,
            entity_id: self.entity_id,
            initiator: self.initiator,
            instance_title: self.instance_title,
            instance_summary: self.instance_summary,
            ended_at: self.ended_at.map(|time| time.0),
            outcome: self.outcome,
        })
    }
}

/// The absent person for whom the actor would claim a task. None if the actor is a candidate.
fn claimed_for<'a>(
    actor: &'a Actor,
    definition: &'a str,
    candidates: &[Candidate],
    (excluded_people, deciders): (&[String], &[String]),
) -> Option<&'a str> {
    let is_candidate =
        |person: &str, groups: &[String]| Candidate::among(candidates, person, groups);
    if is_candidate(&actor.id, &actor.groups) {
        return None;
    }
    let mut absent = actor.absent(definition);
    absent
        .find(|absent| {
            let mut line = absent.via.iter().chain([&absent.person]);
            is_candidate(&absent.person, &absent.groups)
                && !deciders.contains(&absent.person)
                && !line.any(|person| excluded_people.contains(person))
        })
        .map(|absent| absent.person.as_str())
}
