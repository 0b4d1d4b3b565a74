//! Runs a reassessment: a walk, page by page, through the open work that a change of groups, managers or absences concerns.
//!
//! A command that read the directory just before the change may commit after the walk has passed its instance. So there is a second
//! walk after the timeout of such commands. No timeout bounds an attempt that has begun. A command that commits after the second walk
//! keeps the directory that it read, until the next reassessment of its instance.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::jobs::{WorkerContext, tally};
use wrkflw_core::ids::TenantId;
use wrkflw_runtime::clock::later;
use wrkflw_runtime::lease_worker::{Claim, Lease, LeaseQueue, Window, guarded};
use wrkflw_store::StoreError;
use wrkflw_store::jobs::STUCK_ATTEMPTS;
use wrkflw_store::reassessments::{self, Reassessment, WalkProgress};

/// The label `kind` of a reassessment in metrics.
const KIND: &str = "reassessment";
/// Reassessments in flight at a time. They may take long, so they have a place of their own.
const REASSESSMENTS_MAX: usize = 1;
/// Rows read between two updates of the mark.
const PAGE_ROWS: i64 = 100;
/// Pages after which other reassessments go first, so that the change of a large group does not delay other tenants. They also go
/// first once the timeout of a command has passed, because an instance may take long.
const PAGES_MAX: u32 = 10;

/// The queue of reassessments.
pub(super) struct ReassessmentQueue {
    pub(super) context: Arc<WorkerContext>,
    /// The tenant of the reassessment that was claimed last.
    pub(super) last: TenantId,
}

impl LeaseQueue for ReassessmentQueue {
    type Place = ();
    type Error = StoreError;

    const NAME: &'static str = "reassessments";
    const PLACES: usize = REASSESSMENTS_MAX;

    async fn claim(&mut self, window: Window) -> Result<Vec<Claim<()>>, StoreError> {
        let (store, last) = (&self.context.store, self.last);
        let due = reassessments::claim(store, window.now, window.lease_end, window.limit, last);
        let claim = |one: Reassessment| {
            self.last = one.tenant;
            wrkflw_fault::point("reassessment.claimed");
            Claim::new((), reassess(self.context.clone(), one))
        };
        Ok(due.await?.into_iter().map(claim).collect())
    }

    async fn next_due(&mut self) -> Result<Option<Timestamp>, StoreError> {
        reassessments::next(&self.context.store).await
    }
}

/// A reassessment in progress.
struct Walk {
    reassessment: Reassessment,
    lease: Lease,
    /// When it was claimed.
    begun: Instant,
    /// Pages since then.
    pages: u32,
}

/// Goes on with a reassessment until it is done or the host stops.
async fn reassess(context: Arc<WorkerContext>, mut reassessment: Reassessment) {
    // The last walk begins after the timeout of the commands that read the old directory.
    reassessment.closing |= reassessment.mark == WalkProgress::BEGINNING
        && context.clock.now() >= earlier_commands_end(&context, &reassessment);
    let mut walk = Walk {
        reassessment,
        begun: Instant::now(),
        pages: 0,
        lease: Lease::new(context.clock.clone(), context.lease),
    };
    loop {
        match page(&context, &mut walk).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => return put_off(&context, &walk, &error.to_string()).await,
        }
    }
}

/// When the timeout of all commands that read the old directory is over. The clock of this host may be ahead. So the age of the
/// change by the database's clock counts, too, also for a change that is still to come.
fn earlier_commands_end(context: &WorkerContext, reassessment: &Reassessment) -> Timestamp {
    let timeout = SignedDuration::try_from(context.timeout).unwrap_or(SignedDuration::MAX);
    let left = timeout.saturating_sub(reassessment.age);
    let left = Duration::try_from(left).unwrap_or_default();
    later(reassessment.due_at, context.timeout).max(later(context.clock.now(), left))
}

/// Reassesses one page. False if all is done, if others go first, if another worker has claimed the reassessment, or if this
/// host stops. A failing instance gets a job, so that it neither delays the others nor is forgotten.
async fn page(context: &WorkerContext, walk: &mut Walk) -> Result<bool, StoreError> {
    let (store, Reassessment { tenant, mark, .. }) = (&context.store, &walk.reassessment);
    let (tenant, mark) = (*tenant, *mark);
    let principal = &walk.reassessment.principal;
    let now = context.clock.now();
    let page = reassessments::instances_concerned(store, tenant, principal, mark, PAGE_ROWS, now);
    let page = page.await?;
    if !page.stopped.is_empty() {
        reassessments::leave(store, tenant, &page.stopped, now).await?;
    }
    for (instance, passed) in page.instances {
        if context.cancel.is_cancelled() {
            // Other hosts may go on at once.
            hold(context, walk, context.clock.now()).await?;
            return Ok(false);
        }
        let reassessed = context.handle_job.reassessment(tenant, instance);
        if let Err(error) = guarded(context.lease, reassessed).await {
            let id = walk.reassessment.id;
            tracing::warn!(reassessment.id = %id, instance.id = %instance, "a job reassesses the instance again: {error}");
            let now = context.clock.now();
            reassessments::leave(store, tenant, &[instance], now).await?;
        }
        walk.reassessment.mark = passed;
        if walk.begun.elapsed() >= context.timeout {
            return give_way(context, walk).await;
        }
        // A page may take longer than a lease. An update after each instance would cost more than the reassessment itself.
        if walk.lease.is_renewal_due() && !renew(context, walk).await? {
            return Ok(false);
        }
    }
    let Some(next) = page.next else {
        finish(context, walk).await?;
        return Ok(false);
    };
    walk.reassessment.mark = next;
    walk.pages += 1;
    if walk.pages < PAGES_MAX {
        return renew(context, walk).await;
    }
    give_way(context, walk).await
}

/// Ends the turn of this walk, so that others go first.
async fn give_way(context: &WorkerContext, walk: &Walk) -> Result<bool, StoreError> {
    let (reassessment, now) = (&walk.reassessment, context.clock.now());
    let yielded = reassessments::give_back(&context.store, reassessment, reassessment.mark, now);
    yielded.await?;
    Ok(false)
}

/// Ends a walk after its last page. The last walk deletes the row. A walk before it schedules the last one.
async fn finish(context: &WorkerContext, walk: &mut Walk) -> Result<(), StoreError> {
    wrkflw_fault::point("reassessment.walked");
    if walk.reassessment.closing {
        reassessments::finish(&context.store, &walk.reassessment).await?;
    } else {
        walk.reassessment.mark = WalkProgress::BEGINNING;
        let last_walk = earlier_commands_end(context, &walk.reassessment);
        hold(context, walk, last_walk).await?;
    }
    tally(KIND, true);
    Ok(())
}

/// Stores the mark and renews the lease. False if another worker has claimed the row meanwhile.
async fn renew(context: &WorkerContext, walk: &mut Walk) -> Result<bool, StoreError> {
    let lease_end = walk.lease.renew();
    hold(context, walk, lease_end).await
}

/// Stores the mark, and the time until which no worker claims the row. False if another worker has claimed it meanwhile.
async fn hold(context: &WorkerContext, walk: &Walk, until: Timestamp) -> Result<bool, StoreError> {
    reassessments::advance(
        &context.store,
        &walk.reassessment,
        walk.reassessment.mark,
        until,
    )
    .await
}

async fn put_off(context: &WorkerContext, walk: &Walk, error: &str) {
    let Reassessment { id, attempts, .. } = walk.reassessment;
    tally(KIND, false);
    if attempts >= STUCK_ATTEMPTS {
        tracing::error!(reassessment.id = %id, attempts, "a reassessment is stuck: {error}");
    } else {
        tracing::warn!(reassessment.id = %id, attempts, "a reassessment failed: {error}");
    }
    if let Err(error) = hold(context, walk, context.retry_at(attempts)).await {
        tracing::warn!(reassessment.id = %id, %error, "a reassessment waits for the end of its lease");
    }
}
