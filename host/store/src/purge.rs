//! What is kept for a time only: by the clock of the database, which also says since when.
//!
//! A sweep never waits for a row, nor makes others wait for long: it passes over what somebody holds, and takes no more
//! than [`SWEEP_MAX`] rows at a time.

use std::time::Duration;

use sqlx::Postgres;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;

use super::pool::transacted;
use super::signals::SIGNALS_TOLD;
use super::{Store, StoreError};

/// How many rows one sweep takes at the most, so that it never holds locks for long.
const SWEEP_MAX: i64 = 5_000;
/// What a sweep begins with. Elsewhere the writer looks rows up by their keys alone; what is old is found by summaries of
/// blocks, which takes a plan of another kind.
const BEGIN: &str = "begin; set local statement_timeout = '8s'; set local enable_bitmapscan = on";

impl Store {
    /// Forgets replies that are older; true when there may be more.
    pub async fn purge_replies(&self, kept: Duration) -> Result<bool, StoreError> {
        let forgotten = sqlx::query!(
            "delete from idempotency_key where ctid = any(array(
                 select ctid from idempotency_key where created_at < now() - make_interval(secs => $1) limit $2
                 for update skip locked
             ))",
            kept.as_secs_f64(),
            SWEEP_MAX
        );
        self.sweep(forgotten).await
    }

    /// Forgets signals whose time is over, delivered or not, and what instances counted of them; true when there may be
    /// more.
    pub async fn purge_signals(&self) -> Result<bool, StoreError> {
        let sent = sqlx::query!(
            "delete from signal_inbox where ctid = any(array(
                 select ctid from signal_inbox where received_at < now() - make_interval(secs => $1) limit $2
                 for update skip locked
             ))",
            SIGNALS_TOLD.as_secs_f64(),
            SWEEP_MAX
        );
        // Nobody changes these rows, so nobody holds one.
        let counted = sqlx::query!(
            "delete from signal where ctid = any(array(
                 select ctid from signal where received_at < now() - make_interval(secs => $1) limit $2
             ))",
            SIGNALS_TOLD.as_secs_f64(),
            SWEEP_MAX
        );
        Ok(self.sweep(sent).await? | self.sweep(counted).await?)
    }

    /// Forgets notifications that are older, read or not; true when there may be more.
    pub async fn purge_notifications(&self, kept: Duration) -> Result<bool, StoreError> {
        let forgotten = sqlx::query!(
            "delete from notification where ctid = any(array(
                 select ctid from notification where made_at < now() - make_interval(secs => $1) limit $2
                 for update skip locked
             ))",
            kept.as_secs_f64(),
            SWEEP_MAX
        );
        self.sweep(forgotten).await
    }

    /// Forgets what became of each instance in operations that ended so long ago; their totals stay. True when there may
    /// be more.
    pub async fn purge_items(&self, kept: Duration) -> Result<bool, StoreError> {
        let forgotten = sqlx::query!(
            "delete from bulk_item where ctid = any(array(
                 select i.ctid from bulk_operation o
                 join bulk_item i on i.tenant_id = o.tenant_id and i.operation_id = o.id
                 where o.ended_at < now() - make_interval(secs => $1) limit $2 for update of i skip locked
             ))",
            kept.as_secs_f64(),
            SWEEP_MAX
        );
        self.sweep(forgotten).await
    }

    /// Forgets deliveries that were given up so long ago; true when there may be more.
    pub async fn purge_deliveries(&self, kept: Duration) -> Result<bool, StoreError> {
        let forgotten = sqlx::query!(
            "delete from webhook_delivery where ctid = any(array(
                 select ctid from webhook_delivery
                 where state = 'dead' and due_at < now() - make_interval(secs => $1) limit $2 for update skip locked
             ))",
            kept.as_secs_f64(),
            SWEEP_MAX
        );
        self.sweep(forgotten).await
    }

    /// Carries a sweep out; true when there may be more.
    async fn sweep(
        &self,
        forgetting: Query<'_, Postgres, PgArguments>,
    ) -> Result<bool, StoreError> {
        transacted(Box::pin(async {
            let mut transaction = self.writer.begin_with(BEGIN).await?;
            let forgotten = forgetting.execute(&mut *transaction).await?;
            transaction.commit().await?;
            Ok(forgotten.rows_affected() >= SWEEP_MAX.cast_unsigned())
        }))
        .await
    }
}
