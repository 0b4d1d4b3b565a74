//! Lists of instances, as readers filter them.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::time::Time;
use super::{Store, StoreError};
use crate::domain::ids::TenantId;

/// What a list is narrowed to.
#[derive(Debug, Clone, Default)]
pub struct InstanceFilter {
    pub definition: Option<String>,
    pub version: Option<u32>,
    pub status: Option<String>,
    /// The name of an active state.
    pub state: Option<String>,
    pub entity_type: Option<String>,
    pub entity_id: Option<String>,
    pub initiator: Option<String>,
    /// Nobody is able to do the work of one of its states, or somebody of each; none for all.
    pub unassignable: Option<bool>,
    /// Started at or after.
    pub from: Option<Timestamp>,
    /// Started before.
    pub to: Option<Timestamp>,
    /// The last one of the page before.
    pub after: Option<Uuid>,
    pub limit: i64,
}

/// One line of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceSummary {
    pub id: Uuid,
    pub definition_key: String,
    pub definition_version: u32,
    pub status: String,
    pub outcome: Option<String>,
    pub revision: u32,
    pub entity_type: String,
    pub entity_id: String,
    pub initiator: String,
    #[schema(value_type = String, format = DateTime)]
    pub started_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
    /// Names of the active states.
    pub states: Vec<String>,
}

impl Store {
    /// Newest first.
    pub async fn instances(
        &self,
        tenant: TenantId,
        filter: &InstanceFilter,
    ) -> Result<Vec<InstanceSummary>, StoreError> {
        let rows = sqlx::query!(
            r#"select i.id, i.definition_key, i.definition_version, i.status, i.outcome, i.revision, i.entity_type, i.entity_id,
                i.initiator, i.started_at as "started_at: Time", i.updated_at as "updated_at: Time",
                array(
                    select s.name from state_instance s
                    where s.tenant_id = i.tenant_id and s.instance_id = i.id and s.left_at is null order by s.ordinal
                ) as "states!"
            from instance i
            where i.tenant_id = $1
              and ($2::text is null or i.definition_key = $2)
              and ($3::text is null or i.status = $3)
              and ($4::text is null or exists (
                  select from state_instance s
                  where s.tenant_id = i.tenant_id and s.name = $4 and s.instance_id = i.id and s.left_at is null
              ))
              and ($5::text is null or i.entity_type = $5)
              and ($6::text is null or i.entity_id = $6)
              and ($7::text is null or i.initiator = $7)
              and ($8::timestamptz is null or i.started_at >= $8)
              and ($9::timestamptz is null or i.started_at < $9)
              and ($10::uuid is null or i.id < $10)
              and ($12::boolean is not true or i.id in (
                  select s.instance_id from state_instance s
                  where s.tenant_id = $1 and s.unassignable_since is not null and s.left_at is null
              ))
              and ($12::boolean is not false or i.id not in (
                  select s.instance_id from state_instance s
                  where s.tenant_id = $1 and s.unassignable_since is not null and s.left_at is null
              ))
              and ($13::int is null or i.definition_version = $13)
            order by i.id desc
            limit $11"#,
            tenant.0,
            filter.definition,
            filter.status,
            filter.state,
            filter.entity_type,
            filter.entity_id,
            filter.initiator,
            filter.from.map(Time) as _,
            filter.to.map(Time) as _,
            filter.after,
            filter.limit,
            filter.unassignable,
            filter.version.map(u32::cast_signed)
        )
        .fetch_all(&mut *self.reading(tenant).await?)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| InstanceSummary {
                id: row.id,
                definition_key: row.definition_key,
                definition_version: row.definition_version.cast_unsigned(),
                status: row.status,
                outcome: row.outcome,
                revision: row.revision.cast_unsigned(),
                entity_type: row.entity_type,
                entity_id: row.entity_id,
                initiator: row.initiator,
                started_at: row.started_at.0,
                updated_at: row.updated_at.0,
                states: row.states,
            })
            .collect())
    }
}
