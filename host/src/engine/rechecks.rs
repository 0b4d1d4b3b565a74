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

/// A recheck under way.
struct Walk {
    recheck: Recheck,
    /// The first page with an instance that could not be looked at, and why. The row keeps this place while the walk
    /// goes on, so that one instance neither keeps the others waiting nor is forgotten.
    failed: Option<(Mark, String)>,
    /// When the row was last held for a lease.
    held_at: Timestamp,
    /// It began, at the beginning, after all commands had ended that did not know of the change.
    is_last: bool,
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
    pub(super) async fn recheck(self: Arc<Self>, recheck: Recheck) {
        let known = later(recheck.due_at, self.patience);
        let mut walk = Walk {
            is_last: recheck.mark == Mark::BEGINNING && self.clock.now() >= known,
            recheck,
            failed: None,
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
                let is_ours = self.hold(walk).await?;
                Ok(if is_ours {
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
        if walk.is_last {
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
