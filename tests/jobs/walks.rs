//! How a worker walks through the instances that a change affects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::sync::Notify;
use wrkflw_core::ids::{InstanceId, TenantId};
use wrkflw_engine::job_handlers::JobHandlers;
use wrkflw_engine::{Engine, Error};
use wrkflw_store::bulk::{Batch, Outcome};
use wrkflw_store::commit::reassessing;

use super::reassessments::{change, instance, task};
use super::*;
use crate::support::app::{TestApp, Timers};
use crate::support::guests::subflows;
use wrkflw_store::reassessments;

/// Counts the reassessments of each instance. Some fail a number of times.
#[derive(Default)]
struct CountingHandlers {
    seen: Mutex<BTreeMap<InstanceId, u32>>,
    order: Mutex<Vec<InstanceId>>,
    refuses: Mutex<BTreeMap<InstanceId, u32>>,
    changed: Notify,
}

impl CountingHandlers {
    fn reassess(&self, instance: InstanceId) -> Result<(), Error> {
        self.order.lock().expect("a lock").push(instance);
        *self
            .seen
            .lock()
            .expect("a lock")
            .entry(instance)
            .or_default() += 1;
        self.changed.notify_one();
        let mut refuses = self.refuses.lock().expect("a lock");
        match refuses.get_mut(&instance) {
            Some(times) if *times > 0 => {
                *times -= 1;
                Err(Error::Busy)
            }
            _ => Ok(()),
        }
    }
}

impl JobHandlers for CountingHandlers {
    fn job<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<(), Error>> {
        assert_eq!(job.kind, "reassess_instance", "{job:?}");
        Box::pin(async move { self.reassess(job.instance) })
    }

    fn item<'a>(
        &'a self,
        batch: &'a Batch,
        _: InstanceId,
    ) -> BoxFuture<'a, Result<Outcome, Error>> {
        panic!("there is no operation, and here is {batch:?}");
    }

    fn reassessment(&self, _: TenantId, instance: InstanceId) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move { self.reassess(instance) })
    }
}

/// A host whose time passes only when the test says so: a walk is the last one if it begins long enough after the change, which on
/// a busy machine may be the first one.
struct Standing {
    engine: Engine,
    time: Arc<AtomicI64>,
}

impl Standing {
    /// The host's clock is an hour behind the database. By that clock its changes are old, so only the host's time counts.
    async fn begin(app: &TestApp) -> Standing {
        let now = app.engine.clock().now() - Duration::from_hours(1);
        let time = Arc::new(AtomicI64::new(now.as_millisecond()));
        let clock = clock::Clock::Manual(time.clone());
        let engine = app.engine_with_clock(clock).await;
        Standing { engine, time }
    }

    /// A change of the group at this moment.
    async fn change(&self, database: &TestDatabase, group: &str) {
        let now = self.engine.clock().now();
        change(database, "group", group, now).await;
        let aged = sqlx::query("update reassessment set created_at = now() - interval '1 hour'");
        aged.execute(database.admin_pool()).await.expect("an age");
    }

    /// Lets time pass, and the worker look, until this holds.
    async fn pass_until(&self, holds: impl AsyncFn() -> bool) {
        let passing = async {
            while !holds().await {
                self.time.fetch_add(1_000, Ordering::SeqCst);
                self.engine.wake_workers();
                tokio::task::yield_now().await;
            }
        };
        let passed = tokio::time::timeout(Duration::from_secs(30), passing);
        passed.await.expect("in time");
    }

    async fn pass_until_done(&self, store: &Store) {
        let done = async || reassessments::next(store).await.expect("a look").is_none();
        self.pass_until(done).await;
    }
}

#[tokio::test]
async fn instances_of_a_stopped_version_get_a_job_and_no_reassessment() {
    let app = TestApp::empty().await;
    let published = app.publish("subflows", subflows(), &json!({})).await;
    published.expect(201);
    let stop = "/v1/definitions/subflows/versions/1/stop";
    let stopped = app.post("admin", stop, json!({ "reason": "harm" })).await;
    stopped.expect(200);
    let (rests, runs) = (
        instance(&app.database, "RUNNING").await,
        instance(&app.database, "RUNNING").await,
    );
    for one in [rests, runs] {
        task(&app.database, one, Some(("group", "crew")), None).await;
    }
    let of_stopped = "update instance set definition_key = 'subflows' where id = $1";
    sqlx::query(of_stopped)
        .bind(rests.0)
        .execute(app.database.admin_pool())
        .await
        .expect("an update");
    let time = Standing::begin(&app).await;
    time.change(&app.database, "crew").await;
    let handlers = Arc::new(CountingHandlers::default());
    let timers = Timers::start(&time.engine, handlers.clone());
    handlers.changed.notified().await;
    time.pass_until_done(app.store()).await;
    timers.stop().await;
    let seen = handlers.seen.lock().expect("a lock").clone();
    assert_eq!(seen, BTreeMap::from([(runs, 2)]), "once in each walk");
    let left: Vec<(Uuid, Uuid, i32)> = sqlx::query_as("select id, instance_id, attempts from job")
        .fetch_all(app.database.admin_pool())
        .await
        .expect("jobs");
    assert_eq!(
        left,
        [(reassessing(rests), rests.0, 0)],
        "one, whatever the walks"
    );
}

#[tokio::test]
async fn every_instance_is_reassessed_although_one_fails() {
    // More than one page, and more than a host processes before others have their turn.
    const INSTANCES: usize = 1_230;
    let app = TestApp::empty().await;
    let mut all = BTreeSet::new();
    for _ in 0..INSTANCES {
        let one = instance(&app.database, "RUNNING").await;
        task(&app.database, one, Some(("group", "crew")), None).await;
        all.insert(one);
    }
    let handlers = Arc::new(CountingHandlers::default());
    let refusing = *all.first().expect("instances");
    handlers.refuses.lock().expect("a lock").insert(refusing, 1);
    let time = Standing::begin(&app).await;
    time.change(&app.database, "crew").await;

    let timers = Timers::start(&time.engine, handlers.clone());
    handlers.changed.notified().await;
    let tries = || {
        handlers
            .seen
            .lock()
            .expect("a lock")
            .get(&refusing)
            .copied()
    };
    // By the walk that failed, by its job, and by the last walk.
    time.pass_until(async || tries() >= Some(3)).await;
    // After the last one the worker finds nothing.
    time.pass_until_done(app.store()).await;
    let jobs = async || {
        let count = sqlx::query_scalar::<_, i64>("select count(*) from job");
        count.fetch_one(app.database.admin_pool()).await
    };
    time.pass_until(async || jobs().await.expect("a count") == 0)
        .await;
    timers.stop().await;
    let seen = handlers.seen.lock().expect("a lock").clone();
    assert_eq!(seen.keys().copied().collect::<BTreeSet<_>>(), all);
    assert!(
        seen.values().all(|times| *times >= 2),
        "there is a second walk"
    );
}

/// The first walk of a host whose clock is an hour ahead, through a change that is due after this time. Returns how long after it the
/// next walk begins; none if it was the last one.
async fn next_of_a_fast_clock(due_in: Duration, known_since: &str) -> Option<SignedDuration> {
    let app = TestApp::empty().await;
    let one = instance(&app.database, "RUNNING").await;
    task(&app.database, one, Some(("group", "crew")), None).await;
    let due_at = app.engine.clock().now() + due_in;
    // Deletes the reassessments of the tests' people.
    let others = sqlx::query("delete from reassessment").execute(app.database.admin_pool());
    others.await.expect("no others");
    change(&app.database, "group", "crew", due_at).await;
    let aged = format!("update reassessment set created_at = now() - interval '{known_since}'");
    let aged = sqlx::query(AssertSqlSafe(aged)).execute(app.database.admin_pool());
    aged.await.expect("an age");
    let ahead = app.engine.clock().now() + Duration::from_hours(1);
    let clock = clock::Clock::Manual(Arc::new(AtomicI64::new(ahead.as_millisecond())));
    let engine = app.engine_with_clock(clock).await;
    let handlers = Arc::new(CountingHandlers::default());
    let timers = Timers::start(&engine, handlers.clone());
    handlers.changed.notified().await;
    timers.stop().await;
    let next = reassessments::next(app.store()).await.expect("a look");
    next.map(|next| next.duration_since(ahead))
}

/// A host whose clock is ahead sees the change as old, while commands that began before it are still running.
#[tokio::test]
async fn a_fast_clock_does_not_make_the_first_walk_the_last() {
    let next = next_of_a_fast_clock(Duration::ZERO, "0 s").await;
    assert!(next.is_some_and(|next| next.is_positive()), "{next:?}");
}

/// The end of an absence is known days before. A host whose clock is ahead walks before it, and somebody must walk after it.
#[tokio::test]
async fn a_fast_clock_does_not_end_the_walks_before_the_change() {
    let next = next_of_a_fast_clock(Duration::from_mins(30), "10 days").await;
    let until_then = SignedDuration::from_mins(29);
    assert!(next.is_some_and(|next| next > until_then), "{next:?}");
}

/// Instances that one change affects.
const MANY: usize = 1_230;
/// A timeout that is not over in a test.
const LONG: Duration = Duration::from_mins(1);

/// How many of these instances of a tenant were processed before the one of another tenant, whose change came at the same time. The
/// first instances of the walk fail once. Commands of the host have this timeout.
async fn turn_of_another(many: usize, failing: usize, timeout: Duration) -> usize {
    let app = TestApp::empty().await;
    let (_, engine) = app.beside_with_engine(app.database.url(), timeout).await;
    let now = engine.clock().now();
    // Deletes the reassessments of the tests' people.
    let others = sqlx::query("delete from reassessment").execute(app.database.admin_pool());
    others.await.expect("no others");
    let handlers = Arc::new(CountingHandlers::default());
    for number in 0..many {
        let one = instance(&app.database, "RUNNING").await;
        task(&app.database, one, Some(("group", "crew")), None).await;
        if number < failing {
            handlers.refuses.lock().expect("a lock").insert(one, 1);
        }
    }
    change(&app.database, "group", "crew", now).await;
    let other = instance(&app.database, "RUNNING").await;
    task(&app.database, other, Some(("group", "others")), None).await;
    change(&app.database, "group", "others", now).await;
    let of_another = "update task set tenant_id = 2 where id in (select task_id from task_candidate where principal = 'others');
        update instance set tenant_id = 2 where id in (select instance_id from task where tenant_id = 2);
        update task_candidate set tenant_id = 2 where principal = 'others';
        update reassessment set tenant_id = 2 where principal = 'others'";
    let moved = sqlx::raw_sql(of_another).execute(app.database.admin_pool());
    moved.await.expect("another tenant");

    let timers = Timers::start(&engine, handlers.clone());
    let place = async {
        loop {
            handlers.changed.notified().await;
            let order = handlers.order.lock().expect("a lock");
            if let Some(place) = order.iter().position(|one| *one == other) {
                return place;
            }
        }
    };
    let place = tokio::time::timeout(Duration::from_secs(30), place).await;
    let place = place.expect("in time");
    timers.stop().await;
    place
}

/// A change that affects many instances of one tenant does not delay another tenant's change until its end.
#[tokio::test]
async fn a_change_that_affects_many_instances_lets_others_go_first() {
    let place = turn_of_another(MANY, 0, LONG).await;
    assert!(place < MANY, "{place} were looked at before it");
}

#[tokio::test]
async fn a_walk_lets_others_go_first_although_an_instance_fails() {
    let place = turn_of_another(MANY, 1, LONG).await;
    assert!(place < MANY, "{place} were looked at before it");
}

/// A turn is bounded by time, too: after the timeout, which is over at once here, no instance of it is begun.
#[tokio::test]
async fn a_walk_lets_others_go_first_after_an_instance_that_takes_long() {
    let place = turn_of_another(10, 0, Duration::ZERO).await;
    assert_eq!(place, 1);
}
