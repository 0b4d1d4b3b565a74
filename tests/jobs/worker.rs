//! The job worker: which jobs it runs, how often, and how it stops.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{Mutex, Semaphore, mpsc};
use wrkflw_core::ids::{InstanceId, TenantId};
use wrkflw_engine::Error;
use wrkflw_engine::job_handlers::JobHandlers;
use wrkflw_runtime::telemetry;
use wrkflw_store::bulk::{Batch, Outcome};

use super::*;
use crate::support::app::{TestApp, Timers};

/// Longer than anything here takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Records its calls, and returns the results of a script.
struct FakeHandlers {
    asked: mpsc::UnboundedSender<Job>,
    /// The results of the next jobs. All later ones succeed.
    script: Mutex<VecDeque<Step>>,
    /// Jobs wait for a permit here, if the script says so.
    gate: Semaphore,
}

enum Step {
    Fails,
    Panics,
    Waits,
}

struct WorkerFixture {
    app: TestApp,
    handlers: Arc<FakeHandlers>,
    asked: mpsc::UnboundedReceiver<Job>,
}

impl JobHandlers for FakeHandlers {
    fn job<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let step = self.script.lock().await.pop_front();
            self.asked.send(job.clone()).expect("the test receives");
            match step {
                None => Ok(()),
                Some(Step::Fails) => Err(Error::Busy),
                Some(Step::Panics) => panic!("as the script says"),
                Some(Step::Waits) => {
                    self.gate.acquire().await.expect("an open gate").forget();
                    Ok(())
                }
            }
        })
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

impl WorkerFixture {
    async fn new(script: impl IntoIterator<Item = Step>) -> WorkerFixture {
        let (sender, jobs) = mpsc::unbounded_channel();
        let handlers = Arc::new(FakeHandlers {
            asked: sender,
            script: Mutex::new(script.into_iter().collect()),
            gate: Semaphore::new(0),
        });
        WorkerFixture {
            app: TestApp::empty().await,
            handlers,
            asked: jobs,
        }
    }

    fn timers(&self) -> Timers {
        self.app.timers_with(self.handlers.clone())
    }

    async fn leave(&self, instance: Uuid, late: i64) -> Uuid {
        let due_at = self.app.engine.clock().now() - seconds(late);
        leave(&self.app.database, instance, due_at).await
    }

    async fn next_job(&mut self) -> Job {
        let received = tokio::time::timeout(TIMEOUT, self.asked.recv()).await;
        received.expect("in time").expect("a worker")
    }

    /// Id, attempts and error of each job that is left.
    async fn left(&self) -> Vec<(Uuid, i32, Option<String>)> {
        sqlx::query_as("select id, attempts, last_error from job order by due_at, id")
            .fetch_all(self.app.database.admin_pool())
            .await
            .expect("jobs")
    }
}

#[tokio::test]
async fn late_jobs_are_done_in_order_and_deleted() {
    let mut fixture = WorkerFixture::new([]).await;
    let instance = clock::new_id();
    let mut expected = Vec::new();
    for late in [300, 200, 100, 0] {
        expected.push(fixture.leave(instance, late).await);
    }
    let timers = fixture.timers();
    for id in expected {
        assert_eq!(fixture.next_job().await.id, id);
    }
    timers.stop().await;
    assert_eq!(fixture.left().await, []);
    let measured = telemetry::metrics().expect("metrics").render();
    for line in [
        "wrkflw_jobs_total{kind=\"deadline\",result=\"done\"} ",
        "wrkflw_job_lateness_seconds_bucket{le=\"600\"} ",
        "wrkflw_jobs_stuck ",
        "wrkflw_jobs_failing ",
    ] {
        assert!(measured.contains(line), "{line} is not in {measured}");
    }
}

#[tokio::test]
async fn a_future_job_is_done_when_it_is_due() {
    let mut fixture = WorkerFixture::new([]).await;
    let clock = fixture.app.engine.clock().clone();
    let timers = fixture.timers();
    let due_at = clock.now() + SignedDuration::from_millis(300);
    leave(&fixture.app.database, clock::new_id(), due_at).await;
    fixture.app.engine.wake_workers();
    assert_eq!(
        fixture.next_job().await.due_at.as_millisecond(),
        due_at.as_millisecond()
    );
    assert!(clock.now() >= due_at);
    timers.stop().await;
}

#[tokio::test]
async fn failures_are_tried_again_and_panics_are_failures() {
    for (step, error) in [
        (Step::Fails, "too much is asked at once; try again"),
        (Step::Panics, "the host panicked over it"),
    ] {
        let mut fixture = WorkerFixture::new([step, Step::Waits]).await;
        let id = fixture.leave(clock::new_id(), 0).await;
        let timers = fixture.timers();
        assert_eq!(fixture.next_job().await.attempts, 1);
        // After a second, without another wake-up.
        assert_eq!(fixture.next_job().await.attempts, 2);
        assert_eq!(fixture.left().await, [(id, 2, Some(error.to_owned()))]);
        fixture.handlers.gate.add_permits(1);
        timers.stop().await;
        assert_eq!(fixture.left().await, []);
    }
}

#[tokio::test]
async fn a_long_job_delays_no_other() {
    let mut fixture = WorkerFixture::new([Step::Waits]).await;
    let lasting = fixture.leave(clock::new_id(), 60).await;
    let timers = fixture.timers();
    assert_eq!(fixture.next_job().await.id, lasting);
    for _ in 0..10 {
        let id = fixture.leave(clock::new_id(), 0).await;
        fixture.app.engine.wake_workers();
        assert_eq!(fixture.next_job().await.id, id);
    }
    fixture.handlers.gate.add_permits(1);
    timers.stop().await;
    assert_eq!(fixture.left().await, []);
}

#[tokio::test]
async fn jobs_in_flight_are_limited() {
    let mut fixture = WorkerFixture::new((0..3).map(|_| Step::Waits)).await;
    for _ in 0..3 {
        fixture.leave(clock::new_id(), 0).await;
    }
    let timers = fixture.timers();
    for _ in 0..2 {
        fixture.next_job().await;
    }
    // The third job of a tenant is not even claimed before another one ends.
    let claimed = |left: Vec<(Uuid, i32, _)>| left.iter().filter(|job| job.1 > 0).count();
    assert_eq!(claimed(fixture.left().await), 2);
    fixture.handlers.gate.add_permits(1);
    fixture.next_job().await;
    fixture.handlers.gate.add_permits(2);
    timers.stop().await;
    assert_eq!(fixture.left().await, []);
}

#[tokio::test]
async fn a_stopping_worker_finishes_its_jobs() {
    let mut fixture = WorkerFixture::new([Step::Waits]).await;
    fixture.leave(clock::new_id(), 0).await;
    let timers = fixture.timers();
    fixture.next_job().await;
    let stopping = timers.stop();
    tokio::pin!(stopping);
    assert!(futures_util::poll!(&mut stopping).is_pending());
    let left = fixture.leave(clock::new_id(), 0).await;
    fixture.handlers.gate.add_permits(1);
    stopping.await;
    assert_eq!(fixture.left().await, [(left, 0, None)]);
}

#[tokio::test]
async fn two_workers_do_each_job_once() {
    let mut fixture = WorkerFixture::new([]).await;
    for _ in 0..60 {
        fixture.leave(clock::new_id(), 1).await;
    }
    let (_, engine) = fixture
        .app
        .beside_with_engine(fixture.app.database.url(), TIMEOUT)
        .await;
    let workers = [
        fixture.timers(),
        Timers::start(&engine, fixture.handlers.clone()),
    ];
    let mut done = Vec::new();
    for _ in 0..60 {
        done.push(fixture.next_job().await.id);
    }
    for worker in workers {
        worker.stop().await;
    }
    done.sort_unstable();
    done.dedup();
    assert_eq!((done.len(), fixture.left().await), (60, vec![]));
}

/// As during an upgrade, when another host has a newer release.
#[tokio::test]
async fn a_kind_that_this_host_does_not_know_is_left_for_others() {
    let fixture = WorkerFixture::new([]).await;
    let id = fixture.leave(clock::new_id(), 0).await;
    sqlx::raw_sql(
        "alter table job drop constraint job_kind_check; update job set kind = 'of_tomorrow'",
    )
    .execute(fixture.app.database.admin_pool())
    .await
    .expect("a later schema");
    let timers = fixture.app.timers();
    let failed = async {
        loop {
            if let [(_, 1, Some(error))] = &fixture.left().await[..] {
                return error.clone();
            }
            crate::support::pause().await;
        }
    };
    let error = tokio::time::timeout(TIMEOUT, failed)
        .await
        .expect("in time");
    assert!(error.contains("of_tomorrow"), "{error}");
    timers.stop().await;
    assert_eq!(fixture.left().await[0].0, id);
}
