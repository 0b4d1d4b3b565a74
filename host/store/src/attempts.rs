//! Refused attempts. They are stored apart from the instances that they concern.

use jiff::Timestamp;
use uuid::Uuid;

use super::time::Time;
use super::{Store, StoreError};
use wrkflw_core::ids::{InstanceId, TaskId, TenantId};

/// One refused attempt.
#[derive(Debug)]
pub struct Attempt<'a> {
    pub id: Uuid,
    pub at: Timestamp,
    pub actor: &'a str,
    pub action: &'a str,
    pub instance: Option<InstanceId>,
    pub task: Option<TaskId>,
    pub code: &'a str,
    pub detail: &'a str,
    pub request_id: Option<&'a str>,
}

impl Store {
    pub async fn note_attempt(
        &self,
        tenant: TenantId,
        attempt: &Attempt<'_>,
    ) -> Result<(), StoreError> {
        sqlx::query!(
            "insert into refused_attempt (tenant_id, id, occurred_at, actor, action, instance_id, task_id, code, detail, request_id)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            tenant.0,
            attempt.id,
            Time(attempt.at) as _,
            attempt.actor,
            attempt.action,
            attempt.instance.map(|id| id.0),
            attempt.task.map(|id| id.0),
            attempt.code,
            attempt.detail,
            attempt.request_id
        )
        .execute(&self.writer)
        .await?;
        Ok(())
    }
}
