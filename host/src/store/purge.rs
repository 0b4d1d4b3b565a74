//! What is kept for a time only.

use jiff::Timestamp;

use super::signals::SIGNALS_TOLD;
use super::time::Time;
use super::{Store, StoreError};

/// How many rows one sweep takes at the most, so that it never holds locks for long.
const SWEEP_MAX: i64 = 5_000;

impl Store {
    /// Forgets replies made before `limit`; true when there may be more.
    pub async fn purge_replies(&self, limit: Timestamp) -> Result<bool, StoreError> {
        let forgotten = sqlx::query!(
            "delete from idempotency_key where ctid = any(array(
                 select ctid from idempotency_key where created_at < $1 limit $2
             ))",
            Time(limit) as _,
            SWEEP_MAX
        )
        .execute(&self.writer)
        .await?;
        let released = sqlx::query!(
            "update instance set start_key = null, start_principal = null where (tenant_id, id) in (
                 select tenant_id, id from instance where start_key is not null and started_at < $1 limit $2
             )",
            Time(limit) as _,
            SWEEP_MAX
        )
        .execute(&self.writer)
        .await?;
        Ok(forgotten.rows_affected().max(released.rows_affected()) >= SWEEP_MAX.cast_unsigned())
    }

    /// Forgets signals whose time is over, delivered or not, and what instances counted of them; true when there may be
    /// more. By the database's clock, which also says when they came.
    pub async fn purge_signals(&self) -> Result<bool, StoreError> {
        let sent = sqlx::query!(
            "delete from signal_inbox where ctid = any(array(
                 select ctid from signal_inbox where received_at < now() - make_interval(secs => $1) limit $2
             ))",
            SIGNALS_TOLD.as_secs_f64(),
            SWEEP_MAX
        )
        .execute(&self.writer)
        .await?;
        let counted = sqlx::query!(
            "delete from signal where ctid = any(array(
                 select ctid from signal where received_at < now() - make_interval(secs => $1) limit $2
             ))",
            SIGNALS_TOLD.as_secs_f64(),
            SWEEP_MAX
        )
        .execute(&self.writer)
        .await?;
        Ok(sent.rows_affected().max(counted.rows_affected()) >= SWEEP_MAX.cast_unsigned())
    }
}
