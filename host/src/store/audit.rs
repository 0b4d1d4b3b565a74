//! The audit stream of an instance, as auditors read it.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::time::Time;
use super::{Store, StoreError};
use crate::domain::ids::{InstanceId, TenantId, hex};
use crate::domain::json::Json;

/// One entry, with everything that its hash covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditRow {
    pub seq: u64,
    pub id: Uuid,
    pub r#type: String,
    pub revision: u32,
    pub command_id: Uuid,
    /// None for the host itself.
    pub actor: Option<String>,
    pub task_id: Option<Uuid>,
    #[schema(value_type = Object)]
    pub payload: Json,
    #[schema(value_type = Option<Object>)]
    pub evidence: Option<Json>,
    /// Hexadecimal.
    pub salt: String,
    #[schema(value_type = String, format = DateTime)]
    pub occurred_at: Timestamp,
    /// Hexadecimal SHA-256.
    pub hash: String,
    pub event_seq: Option<u64>,
}

impl Store {
    /// Entries after `seq`, in their order.
    pub async fn audit(
        &self,
        tenant: TenantId,
        instance: InstanceId,
        seq: u64,
        limit: i64,
    ) -> Result<Vec<AuditRow>, StoreError> {
        let rows = sqlx::query!(
            r#"select seq, id, type, revision, command_id, actor, task_id, payload, evidence, salt, occurred_at as "at: Time", hash,
                event_seq
            from audit_entry
            where tenant_id = $1 and stream_kind = 'instance' and stream_id = $2 and seq > $3
            order by seq
            limit $4"#,
            tenant.0,
            instance.0,
            seq.cast_signed(),
            limit
        )
        .fetch_all(&mut *self.reading(tenant).await?)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| AuditRow {
                seq: row.seq.cast_unsigned(),
                id: row.id,
                r#type: row.r#type,
                revision: row.revision.cast_unsigned(),
                command_id: row.command_id,
                actor: row.actor,
                task_id: row.task_id,
                payload: Json::from_canonical(row.payload),
                evidence: row.evidence.map(Json::from_canonical),
                salt: hex(&row.salt),
                occurred_at: row.at.0,
                hash: hex(&row.hash),
                event_seq: row.event_seq.map(i64::cast_unsigned),
            })
            .collect())
    }
}
