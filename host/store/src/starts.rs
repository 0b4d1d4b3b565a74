//! Look-ups of instances: by task, by entity for a start, and by command for an in-doubt commit.

use jiff::Timestamp;

use super::time::Time;
use super::{Reader, Store, StoreError};
use wrkflw_core::ids::{CommandId, InstanceId, TaskId, TenantId};

/// An instance that has not ended, with who started it and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    pub id: InstanceId,
    pub initiator: String,
    pub started_at: Timestamp,
}

impl Reader {
    /// The instance that a task belongs to.
    pub async fn instance_of(
        &self,
        tenant: TenantId,
        task: TaskId,
    ) -> Result<Option<InstanceId>, StoreError> {
        let id = sqlx::query_scalar!(
            "select instance_id from task where tenant_id = $1 and id = $2",
            tenant.0,
            task.0
        )
        .fetch_optional(&self.writer)
        .await?;
        Ok(id.map(InstanceId))
    }
}

impl Store {
    /// The running instance of this definition about this entity.
    pub async fn running(
        &self,
        tenant: TenantId,
        definition: &str,
        entity_type: &str,
        entity_id: &str,
    ) -> Result<Option<Running>, StoreError> {
        let found = sqlx::query!(
            r#"select id, initiator, started_at as "started_at: Time" from instance where tenant_id = $1 and definition_key = $2 and entity_type = $3 and entity_id = $4
             and status in ('RUNNING', 'SUSPENDED')"#,
            tenant.0,
            definition,
            entity_type,
            entity_id
        )
        .fetch_optional(&self.writer)
        .await?;
        Ok(found.map(|row| Running {
            id: InstanceId(row.id),
            initiator: row.initiator,
            started_at: row.started_at.0,
        }))
    }

    /// Whether a command was committed, after the connection broke before its result arrived.
    pub async fn was_committed(
        &self,
        tenant: TenantId,
        instance: InstanceId,
        command: CommandId,
    ) -> Result<bool, StoreError> {
        let found = sqlx::query_scalar!(
            r#"select exists(
                select from audit_entry
                where tenant_id = $1 and stream_kind = 'instance' and stream_id = $2 and command_id = $3
            ) as "found!""#,
            tenant.0,
            instance.0,
            command.0
        )
        .fetch_one(&self.writer)
        .await?;
        Ok(found)
    }
}
