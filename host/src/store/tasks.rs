//! Inboxes: lists of tasks, as people see them.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::time::Time;
use super::{Store, StoreError};
use crate::domain::answer::Principal;
use crate::domain::ids::TenantId;
use crate::domain::json::Json;

/// Whose tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Those that I own.
    Mine,
    /// Those that I may claim.
    Available,
    /// All that are open.
    All,
}

/// What a list is narrowed to.
#[derive(Debug, Clone)]
pub struct TaskFilter {
    pub view: View,
    pub subject: String,
    pub definition: Option<String>,
    pub state: Option<String>,
    pub label: Option<String>,
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
        let rows = sqlx::query!(
            r#"select t.id, t.label, t.status, t.owner, t.candidates, t.form, t.created_at as "created_at: Time",
                t.claimed_at as "claimed_at: Time", s.name as state, s.priority, s.due_at as "due_at: Time",
                t.instance_id, i.definition_key, i.definition_version, i.entity_type, i.entity_id, i.initiator
            from task t
            join state_instance s on s.tenant_id = t.tenant_id and s.instance_id = t.instance_id and s.id = t.state_id
            join instance i on i.tenant_id = t.tenant_id and i.id = t.instance_id
            where t.tenant_id = $1
              and case $2::text
                  when 'mine' then t.status = 'CLAIMED' and t.owner = $3
                  when 'available' then t.status = 'PENDING' and not ($3 = any(s.exclude))
                      and t.id in (
                          select c.task_id from task_candidate c
                          where c.tenant_id = $1 and c.kind = 'user' and c.principal = $3
                          union all
                          select c.task_id from membership m
                          join task_candidate c on c.tenant_id = m.tenant_id and c.kind = 'group' and c.principal = m.group_id
                          where m.tenant_id = $1 and m.person_id = $3 and m.valid_to is null and not ($3 = any(i.requesters))
                      )
                  else t.status in ('PENDING', 'CLAIMED')
              end
              and ($4::text is null or i.definition_key = $4)
              and ($5::text is null or s.name = $5)
              and ($6::uuid is null or t.id > $6)
              and ($8::text is null or t.label = $8)
            order by t.id
            limit $7"#,
            tenant.0,
            match filter.view {
                View::Mine => "mine",
                View::Available => "available",
                View::All => "all",
            },
            filter.subject,
            filter.definition,
            filter.state,
            filter.after,
            filter.limit,
            filter.label
        )
        .fetch_all(&mut *self.reading(tenant).await?)
        .await?;
        rows.into_iter()
            .map(|row| {
                let candidates = serde_json::from_str(&row.candidates)
                    .map_err(|error| StoreError::inconsistent("task", row.id, error))?;
                Ok(TaskSummary {
                    id: row.id,
                    label: row.label,
                    status: row.status,
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
