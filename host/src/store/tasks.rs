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
        let rows = sqlx::query!(
            r#"select t.id, t.label, t.status, t.owner, t.candidates, t.form, t.created_at as "created_at: Time",
                t.claimed_at as "claimed_at: Time", t.holding, s.name as state, s.priority, s.due_at as "due_at: Time",
                t.instance_id, i.definition_key, i.definition_version, i.entity_type, i.entity_id, i.initiator,
                i.requesters || s.exclude as "barred!"
            from task t
            join state_instance s on s.tenant_id = t.tenant_id and s.instance_id = t.instance_id and s.id = t.state_id
            join instance i on i.tenant_id = t.tenant_id and i.id = t.instance_id
            where t.tenant_id = $1
              and case $2::text
                  when 'mine' then t.status = 'CLAIMED' and t.owner = any($8::text[] || $3::text) and (
                      t.owner = $3 or not (array[$3, t.owner] && (i.requesters || s.exclude)) and exists (
                          select from unnest($8::text[], $9::text[]) as a (person, definition)
                          where a.person = t.owner and coalesce(a.definition, i.definition_key) = i.definition_key
                      )
                  )
                  when 'available' then t.status = 'PENDING' and i.status = 'RUNNING' and not ($3 = any(s.exclude))
                      and t.id in (
                          select c.task_id from task_candidate c
                          where c.tenant_id = $1 and c.kind = 'user' and c.principal = $3
                          union all
                          select c.task_id from membership m
                          join task_candidate c on c.tenant_id = m.tenant_id and c.kind = 'group' and c.principal = m.group_id
                          where m.tenant_id = $1 and m.person_id = $3 and m.valid_to is null and not ($3 = any(i.requesters))
                          union all
                          select c.task_id from unnest($8::text[], $9::text[]) as a (person, definition)
                          join task_candidate c on c.tenant_id = $1 and c.kind = 'user' and c.principal = a.person
                          where coalesce(a.definition, i.definition_key) = i.definition_key
                            and not (array[$3, a.person] && (i.requesters || s.exclude))
                          union all
                          select c.task_id from unnest($8::text[], $9::text[]) as a (person, definition)
                          join membership m on m.tenant_id = $1 and m.person_id = a.person and m.valid_to is null
                          join task_candidate c on c.tenant_id = $1 and c.kind = 'group' and c.principal = m.group_id
                          where coalesce(a.definition, i.definition_key) = i.definition_key
                            and not (array[$3, a.person] && (i.requesters || s.exclude))
                      )
                  else t.status in ('PENDING', 'CLAIMED')
              end
              and ($4::text is null or i.definition_key = $4)
              and ($5::text is null or s.name = $5)
              and ($6::uuid is null or t.id > $6)
            order by t.id
            limit $7"#,
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
            &definitions as &[Option<String>]
        )
        .fetch_all(&mut *self.reading(tenant).await?)
        .await?;
        rows.into_iter()
            .map(|row| {
                let damaged = |error| StoreError::inconsistent("task", row.id, error);
                let candidates: Vec<Principal> =
                    serde_json::from_str(&row.candidates).map_err(damaged)?;
                let holding = row.holding.as_deref().map(serde_json::from_str);
                let holding: Option<Holding> = holding.transpose().map_err(damaged)?;
                let owner = row.owner.as_deref();
                let principal = holding.as_ref().and_then(Holding::principal).or(owner);
                let on_behalf_of = match filter.view {
                    View::Available => {
                        claimed_for(&filter.actor, &row.definition_key, &candidates, &row.barred)
                    }
                    View::Mine => principal.filter(|person| *person != filter.actor.id),
                    View::All => principal.filter(|person| Some(*person) != owner),
                };
                Ok(TaskSummary {
                    id: row.id,
                    label: row.label,
                    status: row.status,
                    on_behalf_of: on_behalf_of.map(str::to_owned),
                    owner: row.owner,
                    candidates,
                    form: row.form.map(Json::from_canonical),
                    created_at: row.created_at.0,
                    claimed_at: row.claimed_at.map(|time| time.0),
                    state: row.state,
                    priority: row.priority,
                    due_at: row.due_at.map(|time| time.0),
                    instance_id: row.instance_id,
                    definition_key: row.definition_key,
                    definition_version: row.definition_version.cast_unsigned(),
                    entity_type: row.entity_type,
                    entity_id: row.entity_id,
                    initiator: row.initiator,
                })
            })
            .collect()
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
