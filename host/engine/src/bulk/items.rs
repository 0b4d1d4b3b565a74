//! Runs a batch of an operation's items, a few concurrently, and stores their outcomes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::StreamExt as _;
use tokio::sync::mpsc;

use crate::jobs::{WorkerContext, tally};
use wrkflw_core::ids::InstanceId;
use wrkflw_runtime::lease_worker::{Claim, LeaseQueue, Window, guarded};
use wrkflw_runtime::worker::apart;
use wrkflw_store::StoreError;
use wrkflw_store::bulk::{self, Batch, End, Outcome};

/// Batches in flight at a time.
const BATCHES_MAX: usize = 1;
/// Operations that are tried in a row. An operation gives no batch while other workers have claimed all its open items.
const TURNS_MAX: usize = 4;
/// Items that a host claims at a time. Other operations wait for them. A host asks after every [`AT_ONCE`] of them whether the
/// operation was stopped.
const BATCH_ITEMS: i64 = 64;
/// Items in flight. They share batches of reads and commits, so more items need no more connections. But other commands wait
/// for the batches that items fill. More items than half of a batch gain little and delay others much.
const AT_ONCE: usize = 16;
/// Limit of the attempts of an item that fails with transient errors.
const ATTEMPTS_MAX: u32 = 10;
/// The label `kind` of an item in metrics.
const KIND: &str = "bulk_item";

/// The queue of bulk items. A claim is a batch of items of one operation.
pub(crate) struct BatchQueue(pub(crate) Arc<WorkerContext>);

impl LeaseQueue for BatchQueue {
    type Place = ();
    type Error = StoreError;

    const NAME: &'static str = "bulk items";
    const PLACES: usize = BATCHES_MAX;

    async fn claim(&mut self, window: Window) -> Result<Vec<Claim<()>>, StoreError> {
        let Window { now, lease_end, .. } = window;
        for _ in 0..TURNS_MAX {
            let batch = bulk::claim_batch(&self.0.store, now, lease_end, BATCH_ITEMS);
            let Some(batch) = batch.await? else { break };
            if !batch.items.is_empty() {
                wrkflw_fault::point("batch.claimed");
                return Ok(vec![Claim::new((), run_batch(self.0.clone(), batch))]);
            }
        }
        Ok(Vec::new())
    }
}

/// Runs the items of a batch, a few concurrently, and stores their outcomes. Outcomes that come while a statement runs are
/// stored together by the next one.
async fn run_batch(context: Arc<WorkerContext>, batch: Batch) {
    let batch = Arc::new(batch);
    let (ended, mut ends) = mpsc::channel(batch.items.len().max(1));
    let stopped = AtomicBool::new(false);
    let working = async {
        let ended = ended;
        let work = |(number, (instance, attempts)): (usize, (InstanceId, u32))| {
            let (context, batch, ended, stopped) = (&context, &batch, &ended, &stopped);
            async move {
                if number % AT_ONCE == 0 && is_stopped(context, batch).await {
                    stopped.store(true, Ordering::Relaxed);
                }
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let (context, batch) = (Arc::clone(context), Arc::clone(batch));
                let one = async move { run_item(&context, &batch, instance, attempts).await };
                if let Some(end) = apart(one).await {
                    ended
                        .send(end)
                        .await
                        .expect("outcomes are received until all items have ended");
                }
            }
        };
        let items = futures_util::stream::iter(batch.items.iter().copied().enumerate());
        items.for_each_concurrent(AT_ONCE, work).await;
    };
    let noting = async {
        let mut together = Vec::new();
        while ends.recv_many(&mut together, batch.items.len()).await > 0 {
            let settled = bulk::settle_items(&context.store, &batch, &together).await;
            unsettled(&batch, settled);
            together.clear();
        }
    };
    tokio::join!(working, noting);
}

/// Whether somebody has stopped the operation. If this host cannot read that, the items go on.
async fn is_stopped(context: &WorkerContext, batch: &Batch) -> bool {
    let ended = bulk::has_ended(&context.store, batch.tenant, batch.operation).await;
    ended.unwrap_or(false)
}

/// Runs one item. None if the item must be tried again.
async fn run_item(
    context: &WorkerContext,
    batch: &Batch,
    instance: InstanceId,
    attempts: u32,
) -> Option<End> {
    if context.cancel.is_cancelled() {
        // Other hosts may claim it at once.
        let next = context.clock.now();
        let put_off = bulk::put_off_item(&context.store, batch, instance, attempts, next);
        unsettled(batch, put_off.await);
        return None;
    }
    let worked = guarded(context.lease, context.handle_job.item(batch, instance)).await;
    let at = context.clock.now();
    let outcome = match worked {
        Ok(outcome) => outcome,
        Err(detail) if attempts >= ATTEMPTS_MAX => Outcome::Failed {
            code: "unavailable".to_owned(),
            detail,
        },
        Err(detail) => {
            tracing::warn!(operation.id = %batch.operation, instance.id = %instance, attempts, "an item failed: {detail}");
            let next = context.retry_at(attempts);
            let put_off = bulk::put_off_item(&context.store, batch, instance, attempts, next);
            unsettled(batch, put_off.await);
            return None;
        }
    };
    wrkflw_fault::point("batch.item_done");
    tally(KIND, matches!(outcome, Outcome::Done { .. }));
    Some(End {
        instance,
        outcome,
        at,
    })
}

/// Logs a failure to store outcomes. Another worker claims the items again when their lease has expired.
fn unsettled(batch: &Batch, settled: Result<(), StoreError>) {
    if let Err(error) = settled {
        tracing::warn!(operation.id = %batch.operation, %error, "items could not be settled");
    }
}
