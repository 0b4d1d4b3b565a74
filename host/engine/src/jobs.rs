//! The workers of a host: for jobs, for calls of services, for reassessments, and for the items of bulk operations. Any number of hosts may
//! run them. When a host fails, others take over its rows after their leases have expired.
//!
//! Tenants take turns, and no tenant may occupy all places for jobs. So a tenant with very many or very long jobs does not
//! delay the jobs of others.
//!
//! [`wrkflw_runtime::lease_worker`] claims and sleeps. This module decides how often a job is attempted. [`JobHandlers`] runs a job.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Engine;
use super::bulk::items::BatchQueue;
use super::job_handlers::JobHandlers;
use super::reassessments::ReassessmentQueue;
use super::services::queue::{self, CallQueue};
use wrkflw_core::ids::TenantId;
use wrkflw_runtime::clock::{Clock, between, later};
use wrkflw_runtime::lease_worker::{Claim, LeaseQueue, LeaseWorker, Window, guarded};
use wrkflw_runtime::telemetry::gauge_value;
use wrkflw_runtime::worker::{Backoff, every};
use wrkflw_store::jobs::{self, Job, STUCK_ATTEMPTS, TenantSlots, failing};
use wrkflw_store::{Store, StoreError};

/// Jobs in flight at a time. Each needs a connection of the writer's pool now and then.
const JOBS_MAX: usize = 5;
/// Jobs of one tenant in flight at a time. The other places and a share of the processors stay free for other tenants. While one tenant
/// flooded its queue, the 99th percentile of another tenant's decisions grew 5.6-fold with a limit of four, and 2.6-fold with two.
const TENANT_JOBS_MAX: i64 = 2;
/// The sleep while a tenant is at its limit. It ends early when a job ends, or when this process adds one.
const POLL_AT_LIMIT: Duration = Duration::from_millis(50);
/// How often the stuck jobs are counted.
const COUNT_EVERY: Duration = Duration::from_secs(15);
/// The shortest lease. It is longer than commands usually take. The timeout of a command bounds the wait for its turn and its
/// repetitions, but not an attempt that has begun. A worker gives a job up just after the end of its lease. So another worker may
/// claim a job that still runs. The revision of the instance lets only one of the two take effect.
const LEASE_MIN: Duration = Duration::from_mins(1);
/// The pauses after failed attempts.
const RETRY: Backoff = Backoff {
    first: Duration::from_secs(1),
    last: Duration::from_mins(10),
};

/// The workers of one host.
pub struct Jobs {
    context: Arc<WorkerContext>,
    engine: Engine,
    wake: watch::Receiver<()>,
}

/// The context of each job, reassessment and batch.
pub(super) struct WorkerContext {
    pub(super) store: Store,
    pub(super) clock: Clock,
    pub(super) lease: Duration,
    /// After this time a command is not attempted again. An attempt that has begun may take longer.
    pub(super) timeout: Duration,
    pub(super) handle_job: Arc<dyn JobHandlers>,
    pub(super) cancel: CancellationToken,
}

impl Jobs {
    /// Workers that run jobs with `handle_job`, which is `engine` itself except in tests.
    pub fn new(
        engine: &Engine,
        handle_job: Arc<dyn JobHandlers>,
        cancel: CancellationToken,
    ) -> Jobs {
        Jobs {
            context: Arc::new(WorkerContext {
                store: engine.0.store.clone(),
                clock: engine.clock().clone(),
                lease: LEASE_MIN.max(engine.timeout() * 3),
                timeout: engine.timeout(),
                handle_job,
                cancel,
            }),
            engine: engine.clone(),
            wake: engine.0.post_commit.work.subscribe(),
        }
    }

    /// Works until it is cancelled, then waits for the work in flight.
    pub async fn run(self) {
        let context = &self.context;
        tokio::join!(
            self.work(JobQueue {
                context: context.clone(),
                slots: TenantSlots::new(TENANT_JOBS_MAX),
            }),
            self.work(ReassessmentQueue {
                context: context.clone(),
                last: TenantId(0),
            }),
            self.work(BatchQueue(context.clone())),
            self.work_for(
                CallQueue::lease(context),
                CallQueue::new(self.engine.clone(), context.clone()),
            ),
            every(COUNT_EVERY, &context.cancel, async || {
                queue::mark_unserved(context, &self.engine.0.services).await;
                context.count().await;
            }),
        );
    }

    async fn work(&self, queue: impl LeaseQueue) {
        self.work_for(self.context.lease, queue).await;
    }

    async fn work_for(&self, lease: Duration, queue: impl LeaseQueue) {
        let context = &self.context;
        let (clock, wake) = (context.clock.clone(), self.wake.clone());
        let worker = LeaseWorker::new(queue, clock, lease, wake);
        worker.run(&context.cancel).await;
    }
}

/// The queue of jobs.
struct JobQueue {
    context: Arc<WorkerContext>,
    slots: TenantSlots,
}

impl LeaseQueue for JobQueue {
    type Place = TenantId;
    type Error = StoreError;

    const NAME: &'static str = "jobs";
    const PLACES: usize = JOBS_MAX;

    async fn claim(&mut self, window: Window) -> Result<Vec<Claim<TenantId>>, StoreError> {
        let (context, slots) = (&self.context, &mut self.slots);
        let store = &context.store;
        let jobs = jobs::claim(store, window.now, window.lease_end, window.limit, slots);
        let claim = |job: Job| {
            wrkflw_fault::point("job.claimed");
            Claim::new(job.tenant, context.clone().job(job))
        };
        Ok(jobs.await?.into_iter().map(claim).collect())
    }

    async fn next_due(&mut self) -> Result<Option<Timestamp>, StoreError> {
        if self.slots.is_full() {
            // The next due job may belong to a tenant that is at its limit.
            return Ok(Some(later(self.context.clock.now(), POLL_AT_LIMIT)));
        }
        jobs::next_due(&self.context.store).await
    }

    fn ended(&mut self, tenant: TenantId) {
        self.slots.ended(tenant);
    }
}

impl WorkerContext {
    /// The time of the next attempt after this number of failed attempts.
    pub(super) fn retry_at(&self, attempts: u32) -> Timestamp {
        later(self.clock.now(), RETRY.pause(attempts.saturating_sub(1)))
    }

    /// Runs a job and stores its result.
    async fn job(self: Arc<Self>, job: Job) {
        // Measured for the first attempt alone: later attempts wait for more than a worker.
        if job.attempts == 1 {
            let late = between(job.due_at, self.clock.now());
            metrics::histogram!("wrkflw_job_lateness_seconds").record(late.as_secs_f64());
        }
        let result = guarded(self.lease, self.handle_job.job(&job)).await;
        tally(&job.kind, result.is_ok());
        wrkflw_fault::point("job.done");
        let settled = match result {
            Ok(()) => jobs::finish(&self.store, &job).await,
            Err(error) => {
                report(&job, &error);
                let next = self.retry_at(job.attempts);
                jobs::fail(&self.store, &job, &error, next).await
            }
        };
        if let Err(error) = settled {
            // Another worker claims the job again when its lease has expired.
            tracing::warn!(job.id = %job.id, %error, "a job could not be settled");
        }
    }

    async fn count(&self) {
        let stuck = failing::stuck(&self.store, self.clock.now());
        match tokio::try_join!(stuck, failing::count(&self.store)) {
            Ok((stuck, failing)) => {
                metrics::gauge!("wrkflw_jobs_stuck").set(gauge_value(stuck));
                metrics::gauge!("wrkflw_jobs_failing").set(gauge_value(failing));
            }
            Err(error) => tracing::warn!(%error, "stuck and failing jobs could not be counted"),
        }
    }
}

/// Counts a job, reassessment or bulk item.
pub(super) fn tally(kind: &str, is_done: bool) {
    let result = if is_done { "done" } else { "failed" };
    metrics::counter!("wrkflw_jobs_total", "kind" => kind.to_owned(), "result" => result)
        .increment(1);
}

fn report(job: &Job, error: &str) {
    let (kind, attempts) = (job.kind.as_str(), job.attempts);
    if attempts >= STUCK_ATTEMPTS {
        tracing::error!(job.id = %job.id, instance.id = %job.instance, kind, attempts, "a job is stuck: {error}");
    } else {
        tracing::warn!(job.id = %job.id, instance.id = %job.instance, kind, attempts, "a job failed: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_ten_minutes() {
        let pauses = [0, 1, 2, 9, 10, 99, u32::MAX].map(|n| RETRY.pause(n).as_secs());
        assert_eq!(pauses, [1, 2, 4, 512, 600, 600, 600]);
    }
}
