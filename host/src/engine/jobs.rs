//! The worker that does what is due: it claims jobs and rechecks by lease, does a few at a time, and sleeps until the
//! next one. Any number of hosts may run one beside each other; what one of them drops, another picks up.
//!
//! Tenants take turns, and none of them has all hands: where one floods its jobs, or lets them last, another's are begun at
//! once.
//!
//! It decides when and how often something is tried, never what it means: that is [`Perform`]'s.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::bulk::BATCH_ITEMS;
use super::perform::Perform;
use super::{Engine, Error};
use crate::clock::Clock;
use crate::domain::ids::TenantId;
use crate::store::jobs::{Job, Rota, STUCK_ATTEMPTS};
use crate::store::{Store, StoreError};

/// Jobs in hand at a time. Each needs a connection of the writer's pool now and then.
const JOBS_MAX: usize = 5;
/// Jobs of one tenant in hand at a time. One hand is left for others, however long these last.
const TENANT_JOBS_MAX: i64 = 4;
/// Rechecks in hand at a time. They may take long, so they take no hand from the jobs.
const RECHECKS_MAX: usize = 1;
/// Batches of bulk items in hand at a time.
const BATCHES_MAX: usize = 1;
/// How many operations are asked for items in a row, when those of others are in other hands.
const TURNS_MAX: usize = 4;
/// The longest sleep: other hosts leave jobs without a word.
const POLL: Duration = Duration::from_secs(1);
/// The shortest sleep: a row that is ready but held by somebody for an instant is not asked for without a pause.
const NAP: Duration = Duration::from_millis(5);
/// The sleep while a tenant has as much in hand as it may: unless something ends, or is left here, before.
const CROWDED: Duration = Duration::from_millis(50);
/// The pause after a failure of the database.
const BACK_OFF: Duration = Duration::from_secs(1);
/// How often the stuck jobs are counted.
const COUNT_EVERY: Duration = Duration::from_secs(15);
/// A lease is longer than any command can take, so that nobody begins what is still under way.
const LEASE_MIN: Duration = Duration::from_mins(1);
/// The pause after a failed attempt doubles from the first to the second.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_mins(10);

/// One worker. [`Jobs::run`] is its life.
pub struct Jobs {
    hands: Arc<Hands>,
    wake: Arc<Notify>,
}

/// What each piece of work needs.
pub(super) struct Hands {
    pub(super) store: Store,
    pub(super) clock: Clock,
    pub(super) lease: Duration,
    /// How long a command may have been under way that began before a change of the directory.
    pub(super) patience: Duration,
    pub(super) perform: Arc<dyn Perform>,
    pub(super) cancel: CancellationToken,
}

impl Jobs {
    /// The worker of this engine.
    pub fn new(engine: &Engine, cancel: CancellationToken) -> Jobs {
        let perform = Arc::new(engine.clone());
        Jobs::with(engine, perform, cancel)
    }

    /// A worker that leaves it to `perform` what jobs do.
    pub fn with(engine: &Engine, perform: Arc<dyn Perform>, cancel: CancellationToken) -> Jobs {
        Jobs {
            hands: Arc::new(Hands {
                store: engine.store().clone(),
                clock: engine.clock().clone(),
                lease: LEASE_MIN.max(engine.patience() * 3),
                patience: engine.patience(),
                perform,
                cancel,
            }),
            wake: engine.work(),
        }
    }

    /// Works until it is cancelled, and then until what is in hand is done.
    pub async fn run(self) {
        let (mut rechecks, mut batches) = (JoinSet::new(), JoinSet::new());
        let mut jobs = InHand::new();
        let mut counted: Option<Instant> = None;
        while !self.hands.cancel.is_cancelled() {
            if counted.is_none_or(|at| at.elapsed() >= COUNT_EVERY) {
                self.count().await;
                counted = Some(Instant::now());
            }
            let taken = match self.take(&mut jobs, &mut rechecks).await {
                Ok(pause) => self.take_batch(&mut batches).await.map(|()| pause),
                failed => failed,
            };
            let pause = taken.unwrap_or_else(|error| {
                tracing::warn!(%error, "jobs wait; they are asked for again soon");
                BACK_OFF
            });
            tokio::select! {
                () = self.hands.cancel.cancelled() => {}
                () = self.wake.notified() => {}
                Some(ended) = jobs.set.join_next() => jobs.rota.ended(ended.expect("a job is guarded")),
                Some(_) = rechecks.join_next() => {}
                Some(_) = batches.join_next() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
        while jobs.set.join_next().await.is_some() {}
        while rechecks.join_next().await.is_some() {}
        while batches.join_next().await.is_some() {}
    }

    /// Takes what is due into the hands that are free; says for how long there is nothing more to take.
    async fn take(
        &self,
        jobs: &mut InHand,
        rechecks: &mut JoinSet<()>,
    ) -> Result<Duration, StoreError> {
        let hands = &self.hands;
        let now = hands.clock.now();
        let lease = hands.lease_end(now);
        let mut pause = POLL;
        let idle = jobs.free();
        if idle > 0 {
            let store = &hands.store;
            let claimed = store.claim_jobs(now, lease, idle, &mut jobs.rota).await?;
            for job in claimed {
                crate::fault::point("job.claimed");
                jobs.set.spawn(hands.clone().job(job));
            }
            if jobs.rota.is_full() {
                // What is left for others: those of whom a host is full are due, and wait.
                pause = pause.min(CROWDED);
            } else if jobs.free() > 0 {
                let next = hands.store.next_due().await?;
                pause = pause.min(sleep(hands.clock.now(), next));
            }
        }
        let idle = free(rechecks, RECHECKS_MAX);
        if idle > 0 {
            let store = &hands.store;
            let claimed = store
                .claim_rechecks(now, lease, idle, jobs.rechecked)
                .await?;
            for recheck in claimed {
                jobs.rechecked = recheck.tenant;
                crate::fault::point("recheck.claimed");
                rechecks.spawn(hands.clone().recheck(recheck));
            }
            if rechecks.len() < RECHECKS_MAX {
                let next = hands.store.next_recheck().await?;
                pause = pause.min(sleep(hands.clock.now(), next));
            }
        }
        Ok(pause)
    }

    /// Takes some items of an operation into a free hand.
    async fn take_batch(&self, batches: &mut JoinSet<()>) -> Result<(), StoreError> {
        let hands = &self.hands;
        if free(batches, BATCHES_MAX) == 0 {
            return Ok(());
        }
        for _ in 0..TURNS_MAX {
            let now = hands.clock.now();
            let lease = hands.lease_end(now);
            let claimed = hands.store.claim_batch(now, lease, BATCH_ITEMS).await?;
            let Some(batch) = claimed else { break };
            if !batch.items.is_empty() {
                crate::fault::point("batch.claimed");
                batches.spawn(hands.clone().batch(batch));
                break;
            }
        }
        Ok(())
    }

    async fn count(&self) {
        let hands = &self.hands;
        let counted = async {
            let stuck = hands.store.stuck_jobs(hands.clock.now()).await?;
            Ok::<_, StoreError>((stuck, hands.store.failing_jobs().await?))
        };
        match counted.await {
            Ok((stuck, failing)) => {
                #[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
                let [stuck, failing] = [stuck, failing].map(|count: i64| count as f64);
                metrics::gauge!("wrkflw_jobs_stuck").set(stuck);
                metrics::gauge!("wrkflw_jobs_failing").set(failing);
            }
            Err(error) => tracing::warn!(%error, "jobs that need help could not be counted"),
        }
    }
}

/// The jobs in hand, and whose they are.
struct InHand {
    set: JoinSet<TenantId>,
    rota: Rota,
    /// Whose recheck was begun last.
    rechecked: TenantId,
}

impl InHand {
    fn new() -> InHand {
        InHand {
            set: JoinSet::new(),
            rota: Rota::new(TENANT_JOBS_MAX),
            rechecked: TenantId(0),
        }
    }

    /// How many hands are free, once those that are done are counted.
    fn free(&mut self) -> i64 {
        while let Some(ended) = self.set.try_join_next() {
            self.rota.ended(ended.expect("a job is guarded"));
        }
        i64::try_from(JOBS_MAX.saturating_sub(self.set.len())).expect("few hands")
    }
}

impl Hands {
    pub(super) fn lease_end(&self, now: Timestamp) -> Timestamp {
        later(now, self.lease)
    }

    /// Does a job, and settles it. Says whose it was.
    async fn job(self: Arc<Self>, job: Job) -> TenantId {
        let late = between(job.due_at, self.clock.now());
        metrics::histogram!("wrkflw_job_lateness_seconds").record(late.as_secs_f64());
        let result = guarded(self.lease, self.perform.job(&job)).await;
        tally(&job.kind, result.is_ok());
        crate::fault::point("job.done");
        let settled = match result {
            Ok(()) => self.store.finish_job(&job).await,
            Err(error) => {
                report(&job, &error);
                let next = later(self.clock.now(), pause(job.attempts));
                self.store.fail_job(&job, &error, next).await
            }
        };
        if let Err(error) = settled {
            // The lease will be over, and somebody finds out how far it came.
            tracing::warn!(job.id = %job.id, %error, "a job could not be settled");
        }
        job.tenant
    }
}

/// Runs one piece of work to its end, to its time's end, or until it panics; else says why it failed.
pub(super) async fn guarded(
    time: Duration,
    work: impl Future<Output = Result<(), Error>>,
) -> Result<(), String> {
    match tokio::time::timeout(time, AssertUnwindSafe(work).catch_unwind()).await {
        Ok(Ok(result)) => result.map_err(|error| error.to_string()),
        Ok(Err(_)) => Err("the host panicked over it".to_owned()),
        Err(_) => Err(format!("it was not done after {} s", time.as_secs())),
    }
}

/// Counts one piece of work.
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

/// How long to wait after so many attempts.
pub(super) fn pause(attempts: u32) -> Duration {
    let doublings = attempts.saturating_sub(1).min(16);
    (RETRY_MIN * 2u32.pow(doublings)).min(RETRY_MAX)
}

/// How long to sleep until the next piece of work.
fn sleep(now: Timestamp, next: Option<Timestamp>) -> Duration {
    next.map_or(POLL, |next| between(now, next).clamp(NAP, POLL))
}

/// The time from one moment to a later one, else none.
fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

pub(super) fn later(now: Timestamp, pause: Duration) -> Timestamp {
    let pause = SignedDuration::try_from(pause).unwrap_or(SignedDuration::MAX);
    now.checked_add(pause).unwrap_or(Timestamp::MAX)
}

/// How many hands are free, once those that are done are counted.
fn free(in_hand: &mut JoinSet<()>, max: usize) -> i64 {
    while in_hand.try_join_next().is_some() {}
    i64::try_from(max.saturating_sub(in_hand.len())).expect("few hands")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_ten_minutes() {
        let pauses = [1, 2, 3, 10, 11, 100, u32::MAX].map(|attempts| pause(attempts).as_secs());
        assert_eq!(pauses, [1, 2, 4, 512, 600, 600, 600]);
    }

    #[tokio::test]
    async fn work_that_panics_or_hangs_has_failed() {
        let panics = async { panic!("on purpose") };
        let failed = guarded(Duration::from_mins(1), panics).await;
        assert_eq!(failed, Err("the host panicked over it".to_owned()));
        let hangs = std::future::pending();
        let failed = guarded(Duration::ZERO, hangs).await;
        assert_eq!(failed, Err("it was not done after 0 s".to_owned()));
    }
}
