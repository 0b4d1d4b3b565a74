//! Children whose host is killed in between, is slow, or is not alone; and parents that rest meanwhile.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use wrkflw::clock::Clock;
use wrkflw::domain::ids::TenantId;
use wrkflw::engine::perform::Perform;
use wrkflw::engine::{Engine, Error};
use wrkflw::store::bulk::{Batch, Outcome};
use wrkflw::store::jobs::{Job, Rota};

use super::*;
use crate::support::app::Timers;

/// A host that hangs with the first job in its hand.
struct Hanging {
    claimed: Semaphore,
}

impl Perform for Hanging {
    fn job<'a>(&'a self, _: &'a Job) -> BoxFuture<'a, Result<(), Error>> {
        self.claimed.add_permits(1);
        Box::pin(std::future::pending())
    }

    fn item<'a>(
        &'a self,
        batch: &'a Batch,
        _: InstanceId,
    ) -> BoxFuture<'a, Result<Outcome, Error>> {
        panic!("there is no operation, and here is {batch:?}");
    }

    fn recheck(&self, _: TenantId, _: InstanceId) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async { Ok(()) })
    }
}

fn parent() -> Value {
    json!({ "wait": { "children": [{ "entity": "child", "data": {}, "onEnd": "ENDED" }] } })
}

async fn at(app: &TestApp, seconds: i64) -> Engine {
    let later = app.engine.clock().now() + SignedDuration::from_secs(seconds);
    let clock = Clock::Manual(Arc::new(later.as_millisecond().into()));
    app.engine_with_clock(clock).await
}

/// Everything that can be claimed now, in the hand of nobody in particular.
async fn claim(app: &TestApp) -> Vec<Job> {
    claim_at(app, app.engine.clock().now()).await
}

async fn claim_at(app: &TestApp, now: Timestamp) -> Vec<Job> {
    let lease = now + SignedDuration::from_secs(60);
    let mut rota = Rota::new(10);
    let store = app.engine.store();
    let claimed = store.claim_jobs(now, lease, 10, &mut rota).await;
    claimed.expect("a claim")
}

async fn one(app: &TestApp, kind: &str) -> Job {
    let mut jobs = claim(app).await;
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    assert_eq!(jobs[0].kind, kind);
    jobs.remove(0)
}

#[tokio::test]
async fn another_host_does_what_a_killed_one_had_in_hand() {
    let app = field().await;
    let hanging = Arc::new(Hanging {
        claimed: Semaphore::new(0),
    });
    let killed = app.timers_with(hanging.clone());
    let errand = begin(&app, "1", parent()).await;
    let claimed = tokio::time::timeout(PATIENCE, hanging.claimed.acquire()).await;
    claimed.expect("in time").expect("a claim").forget();
    drop(killed);
    children(&app, &errand, 0).await;
    // Not before its lease is over.
    assert_eq!(claim(&app).await, []);
    let engine = at(&app, 300).await;
    let timers = Timers::start(&engine, Arc::new(engine.clone()));
    let child = children(&app, &errand, 1).await.remove(0);
    signal(&app, &child, "PAID", json!({})).await.expect(200);
    until_status(&app, &errand, "COMPLETED").await;
    timers.stop().await;
    assert_eq!(audited(&app, &errand, "CHILD_ENDED").await.len(), 1);
}

#[tokio::test]
async fn a_job_that_two_hosts_do_at_once_is_done_once() {
    let app = field().await;
    let (_, second) = app.beside_with_engine(app.database.url(), PATIENCE).await;
    let errand = begin(&app, "1", parent()).await;
    let both = async |job: &Job| {
        let (first, second) = tokio::join!(app.engine.job(job), second.job(job));
        first.expect("done");
        second.expect("done");
        // And once more, by a host that claimed it before it was done.
        app.engine.job(job).await.expect("nothing left to do");
    };
    both(&one(&app, "start_child").await).await;
    let child = children(&app, &errand, 1).await.remove(0);
    signal(&app, &child, "PAID", json!({})).await.expect(200);
    both(&one(&app, "child_ended").await).await;
    let done = shown(&app, &errand).await;
    assert_eq!(done["outcome"], "DONE");
    assert_eq!(audited(&app, &errand, "CHILD_ENDED").await.len(), 1);
    assert_eq!(counted(&app, "select count(*) from instance").await, 2);
    assert_eq!(counted(&app, "select count(*) from job").await, 0);
    proven(&app, &errand).await;
    proven(&app, &child).await;
}

/// Cancelled while a host had the start in its hand: the cancelling waits for the start to come to its end. That is
/// no failure, so however long it takes, it is at hand a second later and never called stuck.
#[tokio::test]
async fn a_child_about_to_start_is_not_forgotten_by_the_cancelling() {
    let app = field().await;
    let errand = begin(&app, "1", parent()).await;
    let start = one(&app, "start_child").await;
    signal(&app, &errand, "LEAVE", json!({})).await.expect(200);
    let mut cancel = one(&app, "cancel_child").await;
    let engine = at(&app, 0).await;
    let Clock::Manual(time) = engine.clock() else {
        panic!("a clock to set");
    };
    for _ in 0..12 {
        engine.job(&cancel).await.expect("put off");
        engine.store().finish_job(&cancel).await.expect("stays");
        assert_eq!(claim_at(&app, engine.clock().now()).await, []);
        time.fetch_add(1000, Ordering::Relaxed);
        let mut jobs = claim_at(&app, engine.clock().now()).await;
        cancel = jobs.pop().expect("the cancelling");
        assert_eq!((jobs.len(), cancel.kind.as_str()), (0, "cancel_child"));
        assert_eq!(cancel.attempts, 1, "waiting is no attempt");
    }
    app.engine.job(&start).await.expect("nothing to start");
    app.engine.store().finish_job(&start).await.expect("an end");
    app.engine.job(&cancel).await.expect("nothing to cancel");
    children(&app, &errand, 0).await;
}

/// A host that started the child finds that its parent has left meanwhile: here, by doing the start a second time.
#[tokio::test]
async fn a_child_that_started_too_late_is_cancelled() {
    let app = field().await;
    let errand = begin(&app, "1", parent()).await;
    let start = one(&app, "start_child").await;
    app.engine.job(&start).await.expect("a start");
    let child = children(&app, &errand, 1).await.remove(0);
    signal(&app, &errand, "LEAVE", json!({})).await.expect(200);
    let cancel = one(&app, "cancel_child").await;
    app.engine.job(&cancel).await.expect("cancelled");
    assert_eq!(shown(&app, &child).await["status"], "CANCELLED");
    app.engine.job(&start).await.expect("nothing to do");
    let told = one(&app, "child_ended").await;
    app.engine.job(&told).await.expect("nothing to tell");
    assert_eq!(counted(&app, "select count(*) from instance").await, 2);
}

#[tokio::test]
async fn nothing_comes_to_a_suspended_parent_and_nothing_is_lost() {
    let app = field().await;
    let errand = begin(&app, "1", parent()).await;
    let command = async |name: &str| {
        let path = format!("/v1/instances/{errand}/{name}");
        let body = if name == "suspend" {
            json!({ "reason": "an audit" })
        } else {
            json!({})
        };
        app.post("admin", &path, body).await.expect(200);
    };
    let later = |seconds| app.engine.clock().now() + SignedDuration::from_secs(seconds);
    command("suspend").await;
    let start = one(&app, "start_child").await;
    app.engine.job(&start).await.expect("put off");
    app.engine.store().finish_job(&start).await.expect("stays");
    assert_eq!(claim(&app).await, []);
    command("resume").await;
    let start = claim_at(&app, later(20)).await.remove(0);
    assert_eq!(start.attempts, 1, "resting is no attempt");
    app.engine.job(&start).await.expect("a start");
    let child = children(&app, &errand, 1).await.remove(0);
    command("suspend").await;
    signal(&app, &child, "PAID", json!({})).await.expect(200);
    let told = one(&app, "child_ended").await;
    app.engine.job(&told).await.expect("put off");
    app.engine.store().finish_job(&told).await.expect("stays");
    assert_eq!(shown(&app, &errand).await["status"], "SUSPENDED");
    command("resume").await;
    let told = claim_at(&app, later(20)).await.remove(0);
    app.engine.job(&told).await.expect("told");
    assert_eq!(shown(&app, &errand).await["outcome"], "DONE");
    proven(&app, &errand).await;
}
