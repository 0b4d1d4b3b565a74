//! Deletes rows that are older than their retention time, by the clock of the database.
//!
//! A sweep waits for no row and blocks others only briefly: it skips locked rows and deletes at most [`SWEEP_MAX`] rows.

use std::time::Duration;

use sqlx::Postgres;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;

use super::pool::transacted;
use super::signals::SIGNALS_TOLD;
use super::{Store, StoreError};

/// Limit of the rows of one sweep, so that it holds locks only briefly.
pub(super) const SWEEP_MAX: i64 = 5_000;
/// Begins a sweep, or the signing of checkpoints. Other statements of the writer use no bitmap scans, but sweeps need them for the BRIN
/// indexes by age.
pub(super) const BEGIN: &str =
    "begin; set local statement_timeout = '8s'; set local enable_bitmapscan = on";

/// Deletes replies that are older. True if there may be more.
pub async fn replies(store: &Store, kept: Duration) -> Result<bool, StoreError> {
    let forgotten = sqlx::query!(
        "delete from idempotency_key where ctid = any(array(
             select ctid from idempotency_key where created_at < now() - make_interval(secs => $1) limit $2
             for update skip locked
         ))",
        kept.as_secs_f64(),
        SWEEP_MAX
    );
    sweep(store, forgotten).await
}

/// Deletes sessions that have expired. True if there may be more.
pub async fn sessions(store: &Store) -> Result<bool, StoreError> {
    let expired = sqlx::query!(
        "delete from session where ctid = any(array(
             select ctid from session where expires_at < now() limit $1
             for update skip locked
         ))",
        SWEEP_MAX
    );
    sweep(store, expired).await
}

/// Deletes drafts whose task has ended. True if there may be more.
pub async fn drafts(store: &Store) -> Result<bool, StoreError> {
    let ended = sqlx::query!(
        "delete from draft where ctid = any(array(
             select d.ctid from draft d join task t on t.tenant_id = d.tenant_id and t.id = d.task_id
             where t.status in ('COMPLETED', 'CANCELLED') limit $1 for update of d skip locked
         ))",
        SWEEP_MAX
    );
    sweep(store, ended).await
}

/// Deletes signals after [`SIGNALS_TOLD`], delivered or not, and the records by which instances counted them. True if
/// there may be more.
pub async fn signals(store: &Store) -> Result<bool, StoreError> {
    let sent = sqlx::query!(
        "delete from signal_inbox where ctid = any(array(
             select ctid from signal_inbox where received_at < now() - make_interval(secs => $1) limit $2
             for update skip locked
         ))",
        SIGNALS_TOLD.as_secs_f64(),
        SWEEP_MAX
    );
    // The role may not lock these rows, which are never updated. The sweeps of two hosts may wait for each other.
    let counted = sqlx::query!(
        "delete from signal where ctid = any(array(
             select ctid from signal where received_at < now() - make_interval(secs => $1) limit $2
         ))",
        SIGNALS_TOLD.as_secs_f64(),
        SWEEP_MAX
    );
    Ok(sweep(store, sent).await? | sweep(store, counted).await?)
}

/// Deletes notifications that are older, read or not. True if there may be more.
pub async fn notifications(store: &Store, kept: Duration) -> Result<bool, StoreError> {
    let forgotten = sqlx::query!(
        "delete from notification where ctid = any(array(
             select ctid from notification where made_at < now() - make_interval(secs => $1) limit $2
             for update skip locked
         ))",
        kept.as_secs_f64(),
        SWEEP_MAX
    );
    sweep(store, forgotten).await
}

/// Deletes the items of operations that ended before that time. The operations keep their totals. True if there may be
/// more.
pub async fn items(store: &Store, kept: Duration) -> Result<bool, StoreError> {
    let forgotten = sqlx::query!(
        "delete from bulk_item where ctid = any(array(
             select i.ctid from bulk_operation o
             join bulk_item i on i.tenant_id = o.tenant_id and i.operation_id = o.id
             where o.ended_at < now() - make_interval(secs => $1) limit $2 for update of i skip locked
         ))",
        kept.as_secs_f64(),
        SWEEP_MAX
    );
    sweep(store, forgotten).await
}

/// Deletes deliveries that ended earlier, and earlier attempts. True if there may be more.
pub async fn deliveries(store: &Store, kept: Duration) -> Result<bool, StoreError> {
    // The role may not lock these rows, which are never updated. The sweeps of two hosts may wait for each other.
    let attempts = sqlx::query!(
        "delete from webhook_attempt where ctid = any(array(
             select ctid from webhook_attempt where at < now() - make_interval(secs => $1) limit $2
         ))",
        kept.as_secs_f64(),
        SWEEP_MAX
    );
    let forgotten = sqlx::query!(
        "delete from webhook_delivery where ctid = any(array(
             select ctid from webhook_delivery
             where state <> 'pending' and due_at < now() - make_interval(secs => $1) limit $2 for update skip locked
         ))",
        kept.as_secs_f64(),
        SWEEP_MAX
    );
    Ok(sweep(store, attempts).await? | sweep(store, forgotten).await?)
}

/// Runs a sweep. True if there may be more.
pub(super) async fn sweep(
    store: &Store,
    forgetting: Query<'_, Postgres, PgArguments>,
) -> Result<bool, StoreError> {
    transacted(Box::pin(async {
        let mut transaction = store.writer.begin_with(BEGIN).await?;
        let forgotten = forgetting.execute(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(forgotten.rows_affected() >= SWEEP_MAX.cast_unsigned())
    }))
    .await
}
