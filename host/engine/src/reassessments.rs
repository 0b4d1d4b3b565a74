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
use wrkflw_store::reassessments::{Reassessment, WalkProgress};

/// The label `kind` of a reassessment in metrics.
const KIND: &str = "reassessment";
/// Reassessments in flight at a time. They may take long, so they have a slot of their own.
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
    type Slot = ();
    type Error = StoreError;

    const NAME: &'static str = "reassessments";
    const SLOTS: usize = REASSESSMENTS_MAX;

    async fn claim(&mut self, window: Window) -> Result<Vec<Claim<()>>, StoreError> {
        let (store, last) = (&self.context.store, self.last);
        let due = store.claim_reassessments(window.now, window.lease_end, window.limit, last);
        let claim = |one: Reassessment| {
            self.last = one.tenant;
            wrkflw_fault::point("reassessment.claimed");
            Claim::new((), self.context.clone().reassessment(one))
        };
        Ok(due.await?.into_iter().map(claim).collect())
    }

    async fn next_due(&mut self) -> Result<Option<Timestamp>, StoreError> {
        self.context.store.next_reassessment().await
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

impl WorkerContext {
    /// Goes on with a reassessment until it is done or the host stops.
    async fn reassessment(self: Arc<Self>, mut reassessment: Reassessment) {
        // The last walk begins after the timeout of the commands that read the old directory.
        reassessment.closing |= reassessment.mark == WalkProgress::BEGINNING
            && self.clock.now() >= self.known(&reassessment);
        let mut walk = Walk {
            reassessment,
            begun: Instant::now(),
            pages: 0,
            lease: Lease::new(self.clock.clone(), self.lease),
        };
        loop {
            match self.page(&mut walk).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => return self.put_off(&walk, &error.to_string()).await,
            }
        }
    }

    /// The end of the timeout of all commands that read the old directory. The clock of this host may be ahead. So the age of the
    /// change by the database's clock counts, too, also for a change that is still to come.
    fn known(&self, reassessment: &Reassessment) -> Timestamp {
        let timeout = SignedDuration::try_from(self.timeout).unwrap_or(SignedDuration::MAX);
        let young = timeout.saturating_sub(reassessment.age);
        let young = Duration::try_from(young).unwrap_or_default();
        later(reassessment.due_at, self.timeout).max(later(self.clock.now(), young))
    }

    /// Reassesses one page. False if all is done, if others go first, if another worker has claimed the reassessment, or if this
    /// host stops. A failing instance gets a job, so that it neither delays the others nor is forgotten.
    async fn page(&self, walk: &mut Walk) -> Result<bool, StoreError> {
        let (store, Reassessment { tenant, mark, .. }) = (&self.store, &walk.reassessment);
        let (tenant, mark) = (*tenant, *mark);
        let principal = &walk.reassessment.principal;
        let now = self.clock.now();
        let page = store.instances_concerned(tenant, principal, mark, PAGE_ROWS, now);
        let page = page.await?;
        if !page.stopped.is_empty() {
            store
                .leave_reassessments(tenant, &page.stopped, now)
                .await?;
        }
        for (instance, passed) in page.instances {
            if self.cancel.is_cancelled() {
                // Other hosts may go on at once.
                self.keep(walk, self.clock.now()).await?;
                return Ok(false);
            }
            let reassessed = self.handle_job.reassessment(tenant, instance);
            if let Err(error) = guarded(self.lease, reassessed).await {
                let id = walk.reassessment.id;
                tracing::warn!(reassessment.id = %id, instance.id = %instance, "a job reassesses the instance again: {error}");
                let now = self.clock.now();
                store.leave_reassessments(tenant, &[instance], now).await?;
            }
            walk.reassessment.mark = passed;
            if walk.begun.elapsed() >= self.timeout {
                return self.give_way(walk).await;
            }
            // A page may take longer than a lease. An update after each instance would cost more than the reassessment itself.
            if walk.lease.is_renewal_due() && !self.renew(walk).await? {
                return Ok(false);
            }
        }
        let Some(next) = page.next else {
            self.end(walk).await?;
            return Ok(false);
        };
        walk.reassessment.mark = next;
        walk.pages += 1;
        if walk.pages < PAGES_MAX {
            return self.renew(walk).await;
        }
        self.give_way(walk).await
    }

    /// Ends the turn of this walk, so that others go first.
    async fn give_way(&self, walk: &Walk) -> Result<bool, StoreError> {
        let (reassessment, now) = (&walk.reassessment, self.clock.now());
        let yielded = self
            .store
            .yield_reassessment(reassessment, reassessment.mark, now);
        yielded.await?;
        Ok(false)
    }

    /// Ends a walk after its last page. The last walk deletes the row. A walk before it schedules the last one.
    async fn end(&self, walk: &mut Walk) -> Result<(), StoreError> {
        wrkflw_fault::point("reassessment.walked");
        if walk.reassessment.closing {
            self.store.finish_reassessment(&walk.reassessment).await?;
        } else {
            walk.reassessment.mark = WalkProgress::BEGINNING;
            self.keep(walk, self.known(&walk.reassessment)).await?;
        }
        tally(KIND, true);
        Ok(())
    }

    /// Stores the mark and renews the lease. False if another worker has claimed the row meanwhile.
    async fn renew(&self, walk: &mut Walk) -> Result<bool, StoreError> {
        let lease_end = walk.lease.renew();
        self.keep(walk, lease_end).await
    }

    /// Stores the mark, and the time until which no worker claims the row. False if another worker has claimed it meanwhile.
    async fn keep(&self, walk: &Walk, until: Timestamp) -> Result<bool, StoreError> {
        self.store
            .advance_reassessment(&walk.reassessment, walk.reassessment.mark, until)
            .await
    }

    async fn put_off(&self, walk: &Walk, error: &str) {
        let Reassessment { id, attempts, .. } = walk.reassessment;
        tally(KIND, false);
        if attempts >= STUCK_ATTEMPTS {
            tracing::error!(reassessment.id = %id, attempts, "a reassessment is stuck: {error}");
        } else {
            tracing::warn!(reassessment.id = %id, attempts, "a reassessment failed: {error}");
        }
        if let Err(error) = self.keep(walk, self.retry_at(attempts)).await {
            tracing::warn!(reassessment.id = %id, %error, "a reassessment waits for the end of its lease");
        }
    }
}
