//! Jobs of children whose host is killed or slow, or that two hosts run at once; and suspended parents.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use wrkflw_core::ids::TenantId;
use wrkflw_engine::job_handlers::JobHandlers;
use wrkflw_engine::{Engine, Error};
use wrkflw_runtime::clock::Clock;
use wrkflw_store::bulk::{Batch, Outcome};
use wrkflw_store::descendants::{self, Bounds, PlaceResult};
use wrkflw_store::jobs::{self, Job, TenantSlots};

use super::*;
use crate::support::app::Timers;

/// A host that hangs in its first job.
struct Hanging {
    claimed: Semaphore,
}

impl JobHandlers for Hanging {
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

    fn reassessment(&self, _: TenantId, _: InstanceId) -> BoxFuture<'_, Result<(), Error>> {
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

/// Claims all jobs that are due now.
async fn claim(app: &TestApp) -> Vec<Job> {
    claim_at(app, app.engine.clock().now()).await
}

async fn claim_at(app: &TestApp, now: Timestamp) -> Vec<Job> {
    let lease = now + SignedDuration::from_secs(60);
    let mut slots = TenantSlots::new(10);
    let store = app.store();
    let claimed = jobs::claim(store, now, lease, 10, &mut slots).await;
    claimed.expect("a claim")
}

/// Claims the only job that is due, which must be of this kind.
async fn one(app: &TestApp, kind: &str) -> Job {
    let mut jobs = claim(app).await;
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    assert_eq!(jobs[0].kind, kind);
    jobs.remove(0)
}

#[tokio::test]
async fn another_host_does_the_job_of_a_killed_one() {
    let app = fixture().await;
    let hanging = Arc::new(Hanging {
        claimed: Semaphore::new(0),
    });
    let killed = app.timers_with(hanging.clone());
    let subflow = begin(&app, "1", parent()).await;
    let claimed = tokio::time::timeout(TIMEOUT, hanging.claimed.acquire()).await;
    claimed.expect("in time").expect("a claim").forget();
    drop(killed);
    children(&app, &subflow, 0).await;
    // Not before its lease has expired.
    assert_eq!(claim(&app).await, []);
    let engine = at(&app, 300).await;
    let timers = Timers::start(&engine, Arc::new(engine.clone()));
    let child = children(&app, &subflow, 1).await.remove(0);
    signal(&app, &child, "PAID", json!({})).await.expect(200);
    until_status(&app, &subflow, "COMPLETED").await;
    timers.stop().await;
    assert_eq!(audited(&app, &subflow, "CHILD_ENDED").await.len(), 1);
}

#[tokio::test]
async fn a_job_that_two_hosts_do_at_once_is_done_once() {
    let app = fixture().await;
    let (_, second) = app.beside_with_engine(app.database.url(), TIMEOUT).await;
    let subflow = begin(&app, "1", parent()).await;
    let both = async |job: &Job| {
        let (first, second) = tokio::join!(app.engine.job(job), second.job(job));
        first.expect("done");
        second.expect("done");
        // And again, by a host that claimed it before it was done.
        app.engine.job(job).await.expect("nothing left to do");
    };
    both(&one(&app, "start_child").await).await;
    let child = children(&app, &subflow, 1).await.remove(0);
    signal(&app, &child, "PAID", json!({})).await.expect(200);
    both(&one(&app, "child_ended").await).await;
    let done = shown(&app, &subflow).await;
    assert_eq!(done["outcome"], "DONE");
    assert_eq!(audited(&app, &subflow, "CHILD_ENDED").await.len(), 1);
    assert_eq!(counted(&app, "select count(*) from instance").await, 2);
    assert_eq!(counted(&app, "select count(*) from job").await, 0);
    proven(&app, &subflow).await;
    proven(&app, &child).await;
}

/// Two hosts start the child. It ends before the second host, which found no child, asks for a place for it.
#[tokio::test]
async fn a_child_that_has_ended_gets_no_place_again() {
    let app = fixture().await;
    let subflow = begin(&app, "1", parent()).await;
    let start = one(&app, "start_child").await;
    app.engine.job(&start).await.expect("a start");
    let child = children(&app, &subflow, 1).await.remove(0);
    let root = InstanceId(subflow.parse().expect("an id"));
    let bounds = Bounds {
        running_max: 1,
        started_max: 1,
    };
    let take = async || descendants::take_place(app.store(), &start, root, bounds).await;
    let places = "select count(*) from descendant_place";
    assert_eq!(take().await.expect("an answer"), PlaceResult::Taken);
    assert_eq!(counted(&app, places).await, 1, "it had one");
    signal(&app, &child, "PAID", json!({})).await.expect(200);
    assert_eq!(counted(&app, places).await, 0);
    assert_eq!(take().await.expect("an answer"), PlaceResult::Taken);
    assert_eq!(counted(&app, places).await, 0);
    let started = "select sum(started)::int8 from descendant_count";
    assert_eq!(counted(&app, started).await, 1);
}

/// The parent leaves the state while a host starts its child. The job that cancels the child waits until the start has ended. That
/// is no failure: the job is due again after a second, however often it has waited, and never counts as stuck.
#[tokio::test]
async fn a_cancelling_waits_for_a_child_that_is_being_started() {
    let app = fixture().await;
    let subflow = begin(&app, "1", parent()).await;
    let start = one(&app, "start_child").await;
    signal(&app, &subflow, "LEAVE", json!({})).await.expect(200);
    let mut cancel = one(&app, "cancel_child").await;
    let engine = at(&app, 0).await;
    let Clock::Manual(time) = engine.clock() else {
        panic!("a clock to set");
    };
    for _ in 0..12 {
        engine.job(&cancel).await.expect("put off");
        jobs::finish(app.store(), &cancel)
            .await
            .expect("the job is kept");
        assert_eq!(claim_at(&app, engine.clock().now()).await, []);
        time.fetch_add(1000, Ordering::Relaxed);
        let mut jobs = claim_at(&app, engine.clock().now()).await;
        cancel = jobs.pop().expect("the cancelling");
        assert_eq!((jobs.len(), cancel.kind.as_str()), (0, "cancel_child"));
        assert_eq!(cancel.attempts, 1, "waiting is no attempt");
    }
    app.engine.job(&start).await.expect("nothing to start");
    jobs::finish(app.store(), &start).await.expect("an end");
    app.engine.job(&cancel).await.expect("nothing to cancel");
    children(&app, &subflow, 0).await;
}

/// The parent leaves the state after a host started the child. The start job, which another host may repeat then, has no effect.
#[tokio::test]
async fn a_child_whose_parent_leaves_is_cancelled_and_not_started_again() {
    let app = fixture().await;
    let subflow = begin(&app, "1", parent()).await;
    let start = one(&app, "start_child").await;
    app.engine.job(&start).await.expect("a start");
    let child = children(&app, &subflow, 1).await.remove(0);
    signal(&app, &subflow, "LEAVE", json!({})).await.expect(200);
    let cancel = one(&app, "cancel_child").await;
    app.engine.job(&cancel).await.expect("cancelled");
    assert_eq!(shown(&app, &child).await["status"], "CANCELLED");
    app.engine.job(&start).await.expect("nothing to do");
    let job = one(&app, "child_ended").await;
    app.engine.job(&job).await.expect("nothing to tell");
    assert_eq!(counted(&app, "select count(*) from instance").await, 2);
}

#[tokio::test]
async fn jobs_of_a_suspended_parent_wait_and_none_is_lost() {
    let app = fixture().await;
    let subflow = begin(&app, "1", parent()).await;
    let command = async |name: &str| {
        let path = format!("/v1/instances/{subflow}/{name}");
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
    jobs::finish(app.store(), &start)
        .await
        .expect("the job is kept");
    assert_eq!(claim(&app).await, []);
    command("resume").await;
    let due_at = start.due_at;
    let start = claim_at(&app, later(20)).await.remove(0);
    assert_eq!((start.due_at, start.attempts), (due_at, 2));
    app.engine.job(&start).await.expect("a start");
    let child = children(&app, &subflow, 1).await.remove(0);
    command("suspend").await;
    signal(&app, &child, "PAID", json!({})).await.expect(200);
    let job = one(&app, "child_ended").await;
    app.engine.job(&job).await.expect("put off");
    jobs::finish(app.store(), &job)
        .await
        .expect("the job is kept");
    assert_eq!(shown(&app, &subflow).await["status"], "SUSPENDED");
    command("resume").await;
    let due_at = job.due_at;
    let job = claim_at(&app, later(20)).await.remove(0);
    assert_eq!(job.due_at, due_at, "it has kept its place");
    app.engine.job(&job).await.expect("told");
    assert_eq!(shown(&app, &subflow).await["outcome"], "DONE");
    proven(&app, &subflow).await;
}
