//! One recheck: page by page through the open work that a change of groups, managers or absences concerns.
//!
//! A command that asked the directory just before the change may commit just after the walk came by. So there is a
//! second walk, when all such commands have ended.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::jobs::{Hands, guarded, later, pause, tally};
use crate::store::StoreError;
use crate::store::jobs::STUCK_ATTEMPTS;
use crate::store::rechecks::{Concerned, Mark, Recheck};

/// What metrics call it.
const KIND: &str = "recheck";

/// How often the row is held anew while a lease lasts.
const HOLDS_PER_LEASE: u32 = 4;

/// Rows looked at between two notes of how far the work has come.
const PAGE_ROWS: i64 = 100;
/// Pages after which others may go first: the change of a large group is no reason to let every other tenant wait.
const PAGES_MAX: u32 = 10;

/// A recheck under way.
struct Walk {
    recheck: Recheck,
    /// The first page with an instance that could not be looked at, and why. The row keeps this place while the walk
    /// goes on, so that one instance neither keeps the others waiting nor is forgotten.
    failed: Option<(Mark, String)>,
    /// When the row was last held for a lease.
    held_at: Timestamp,
    /// Pages since it was claimed.
    pages: u32,
}

impl Walk {
    /// Where somebody else would have to begin.
    fn kept(&self) -> Mark {
        let failed = self.failed.as_ref().map(|(mark, _)| *mark);
        failed.unwrap_or(self.recheck.mark)
    }

    /// How long ago the row was held, on a clock that may have been set back.
    fn held_for(&self, now: Timestamp) -> Duration {
        now.duration_since(self.held_at).unsigned_abs()
    }
}

impl Hands {
    /// Goes on with a recheck until it is done or the host stops.
    pub(super) async fn recheck(self: Arc<Self>, mut recheck: Recheck) {
        let known = later(recheck.due_at, self.patience);
        // The last walk begins, at the beginning, after all commands have ended that did not know of the change.
        recheck.closing |= recheck.mark == Mark::BEGINNING && self.clock.now() >= known;
        let mut walk = Walk {
            recheck,
            failed: None,
            pages: 0,
            held_at: self.clock.now(),
        };
        loop {
            match self.page(&mut walk).await {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => return,
                Err(error) => return self.put_off(&walk, &error.to_string()).await,
            }
        }
    }

    /// One page. Breaks when all is done, another host has the recheck, or this one stops.
    async fn page(&self, walk: &mut Walk) -> Result<ControlFlow<()>, StoreError> {
        let Recheck {
            tenant, principal, ..
        } = &walk.recheck;
        let Concerned { instances, next } = self
            .store
            .instances_concerned(*tenant, principal, walk.recheck.mark, PAGE_ROWS)
            .await?;
        for instance in instances {
            if self.cancel.is_cancelled() {
                // Others may go on at once.
                self.keep(walk, self.clock.now()).await?;
                return Ok(ControlFlow::Break(()));
            }
            let looked = self.perform.recheck(walk.recheck.tenant, instance);
            if let Err(error) = guarded(self.lease, looked).await {
                let error = format!("instance {instance}: {error}");
                walk.failed.get_or_insert((walk.recheck.mark, error));
            }
            // A page may take longer than a lease; to write that down after each instance would cost more than to
            // look at it.
            if walk.held_for(self.clock.now()) >= self.lease / HOLDS_PER_LEASE
                && !self.hold(walk).await?
            {
                return Ok(ControlFlow::Break(()));
            }
        }
        match (next, &walk.failed) {
            (Some(next), _) => {
                walk.recheck.mark = next;
                walk.pages += 1;
                // One that failed somewhere goes on to its end: it begins there when it is tried again.
                let goes_on = if walk.pages >= PAGES_MAX && walk.failed.is_none() {
                    let (recheck, now) = (&walk.recheck, self.clock.now());
                    self.store.yield_recheck(recheck, next, now).await?;
                    false
                } else {
                    self.hold(walk).await?
                };
                Ok(if goes_on {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                })
            }
            (None, Some((_, error))) => {
                self.put_off(walk, error).await;
                Ok(ControlFlow::Break(()))
            }
            (None, None) => {
                crate::fault::point("recheck.walked");
                self.end(walk).await?;
                tally(KIND, true);
                Ok(ControlFlow::Break(()))
            }
        }
    }

    /// Deletes the row after the last walk, else leaves it for that one.
    async fn end(&self, walk: &mut Walk) -> Result<(), StoreError> {
        if walk.recheck.closing {
            return self.store.finish_recheck(&walk.recheck).await;
        }
        walk.recheck.mark = Mark::BEGINNING;
        let known = later(walk.recheck.due_at, self.patience);
        self.keep(walk, known.max(self.clock.now())).await.map(drop)
    }

    /// Notes how far the work has come, and keeps the row in hand.
    async fn hold(&self, walk: &mut Walk) -> Result<bool, StoreError> {
        let now = self.clock.now();
        walk.held_at = now;
        self.keep(walk, self.lease_end(now)).await
    }

    /// Notes how far the work has come; false when another host has it by now.
    async fn keep(&self, walk: &Walk, lease: Timestamp) -> Result<bool, StoreError> {
        self.store
            .advance_recheck(&walk.recheck, walk.kept(), lease)
            .await
    }

    async fn put_off(&self, walk: &Walk, error: &str) {
        let Recheck { id, attempts, .. } = walk.recheck;
        tally(KIND, false);
        if attempts >= STUCK_ATTEMPTS {
            tracing::error!(recheck.id = %id, attempts, "a recheck is stuck: {error}");
        } else {
            tracing::warn!(recheck.id = %id, attempts, "a recheck failed: {error}");
        }
        let next = later(self.clock.now(), pause(attempts));
        if let Err(error) = self.keep(walk, next).await {
            tracing::warn!(recheck.id = %id, %error, "a recheck waits for the end of its lease");
        }
    }
}
