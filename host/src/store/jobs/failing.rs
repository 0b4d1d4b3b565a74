//! Jobs that fail, for operators: how many they are, and which.

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::domain::ids::{TenantId, VersionRef};
use crate::store::time::Time;
use crate::store::{Store, StoreError};

/// A job that nobody has claimed for so long, though it could be, counts as stuck.
const OVERDUE: Duration = Duration::from_mins(5);
/// Jobs are counted so far.
const COUNTED_MAX: i64 = 100_000;

/// A job that has failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobView {
    pub id: Uuid,
    /// `deadline`, `start_child`, `cancel_child`, `child_ended` or `match_signals`.
    pub kind: String,
    /// The instance that it is a command on.
    pub instance: Uuid,
    /// What that instance runs; none of an instance that is not there.
    #[schema(value_type = Option<Object>)]
    pub definition: Option<VersionRef>,
    #[schema(value_type = String, format = DateTime)]
    pub due_at: Timestamp,
    /// How often it was tried.
    pub attempts: u32,
    /// Why it failed last.
    pub error: String,
    /// When it is tried again, or given up by a host that has it in hand.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub next_at: Option<Timestamp>,
}

impl Store {
    /// The failing jobs of a tenant in the order of their ids.
    pub async fn list_failing_jobs(
        &self,
        tenant: TenantId,
        after: Option<Uuid>,
        limit: i64,
    ) -> Result<Vec<JobView>, StoreError> {
        let rows = sqlx::query!(
            r#"select j.id, j.kind, j.instance_id, j.due_at as "due_at: Time", j.attempts, j.last_error as "error!",
                j.lease_until as "lease_until: Time", i.definition_key as "key?", i.definition_version as "version?"
            from job j left join instance i on i.tenant_id = j.tenant_id and i.id = j.instance_id
            where j.tenant_id = $1 and j.last_error is not null and ($2::uuid is null or j.id > $2)
            order by j.id limit $3"#,
            tenant.0,
            after,
            limit
        )
        .fetch_all(&mut *self.reading(tenant).await?)
        .await?;
        let view = rows.into_iter().map(|row| JobView {
            id: row.id,
            kind: row.kind,
            instance: row.instance_id,
            definition: row.key.zip(row.version).map(|(key, version)| VersionRef {
                key,
                version: version.cast_unsigned(),
            }),
            due_at: row.due_at.0,
            attempts: row.attempts.cast_unsigned(),
            error: row.error,
            next_at: row.lease_until.map(|time| time.0),
        });
        Ok(view.collect())
    }

    /// How many jobs have failed and are to be tried again; counted up to a hundred thousand.
    pub async fn failing_jobs(&self) -> Result<i64, StoreError> {
        let failing = sqlx::query_scalar!(
            r#"select count(*) as "failing!" from (select from job where last_error is not null limit $1) as failing"#,
            COUNTED_MAX
        );
        Ok(failing.fetch_one(&self.writer).await?)
    }

    /// How many jobs failed so often, or have waited for so long to be claimed, that somebody should look; counted up to a
    /// hundred thousand of either kind.
    pub async fn stuck_jobs(&self, now: Timestamp) -> Result<i64, StoreError> {
        // The number stands in the text, or the partial index would not do.
        let stuck = sqlx::query_scalar!(
            r#"select count(*) as "stuck!" from (
                (select tenant_id, id from job where attempts >= 10 limit $2)
                union
                (select tenant_id, id from job where greatest(due_at, lease_until) <= $1 limit $2)
            ) as stuck"#,
            Time(now - OVERDUE) as _,
            COUNTED_MAX
        );
        Ok(stuck.fetch_one(&self.writer).await?)
    }
}
