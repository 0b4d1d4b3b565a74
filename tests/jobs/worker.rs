//! The worker: what it hands out, how often, and when it stops.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{Mutex, Semaphore, mpsc};
use wrkflw::domain::ids::{InstanceId, TenantId};
use wrkflw::engine::Error;
use wrkflw::engine::perform::Perform;
use wrkflw::store::bulk::{Batch, Outcome};
use wrkflw::telemetry;

use super::*;
use crate::support::app::{TestApp, Timers};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Notes what it is asked, and answers as it is told to.
struct StandIn {
    asked: mpsc::UnboundedSender<Job>,
    /// What happens to the next jobs; those behind succeed.
    script: Mutex<VecDeque<Scene>>,
    /// Jobs wait for a permit here, where the script says so.
    gate: Semaphore,
}

enum Scene {
    Fails,
    Panics,
    Waits,
}

struct Stage {
    app: TestApp,
    stand_in: Arc<StandIn>,
    asked: mpsc::UnboundedReceiver<Job>,
}

impl Perform for StandIn {
    fn job<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let scene = self.script.lock().await.pop_front();
            self.asked.send(job.clone()).expect("the test listens");
            match scene {
                None => Ok(()),
                Some(Scene::Fails) => Err(Error::Busy),
                Some(Scene::Panics) => panic!("as the script says"),
                Some(Scene::Waits) => {
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

    fn recheck(&self, _: TenantId, _: InstanceId) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async { Ok(()) })
    }
}

impl Stage {
    async fn new(script: impl IntoIterator<Item = Scene>) -> Stage {
        let (sender, asked) = mpsc::unbounded_channel();
        let stand_in = Arc::new(StandIn {
            asked: sender,
            script: Mutex::new(script.into_iter().collect()),
            gate: Semaphore::new(0),
        });
        Stage {
            app: TestApp::empty().await,
            stand_in,
            asked,
        }
    }

    fn timers(&self) -> Timers {
        self.app.timers_with(self.stand_in.clone())
    }

    async fn leave(&self, instance: Uuid, late: i64) -> Uuid {
        let due_at = self.app.engine.clock().now() - seconds(late);
        leave(&self.app.database, instance, due_at).await
    }

    async fn asked(&mut self) -> Job {
        let asked = tokio::time::timeout(PATIENCE, self.asked.recv()).await;
        asked.expect("in time").expect("a worker")
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
async fn what_is_late_is_done_in_order_and_ended() {
    let mut stage = Stage::new([]).await;
    let instance = clock::new_id();
    let mut expected = Vec::new();
    for late in [300, 200, 100, 0] {
        expected.push(stage.leave(instance, late).await);
    }
    let timers = stage.timers();
    for id in expected {
        assert_eq!(stage.asked().await.id, id);
    }
    timers.stop().await;
    assert_eq!(stage.left().await, []);
    let measured = telemetry::metrics().expect("metrics").render();
    for line in [
        "wrkflw_jobs_total{kind=\"deadline\",result=\"done\"} ",
        "wrkflw_job_lateness_seconds_bucket{le=\"600\"} ",
        "wrkflw_jobs_stuck ",
    ] {
        assert!(measured.contains(line), "{line} is not in {measured}");
    }
}

#[tokio::test]
async fn a_job_to_come_is_done_when_it_is_due() {
    let mut stage = Stage::new([]).await;
    let clock = stage.app.engine.clock().clone();
    let timers = stage.timers();
    let due_at = clock.now() + SignedDuration::from_millis(300);
    leave(&stage.app.database, clock::new_id(), due_at).await;
    stage.app.engine.work().notify_one();
    assert_eq!(
        stage.asked().await.due_at.as_millisecond(),
        due_at.as_millisecond()
    );
    assert!(clock.now() >= due_at);
    timers.stop().await;
}

#[tokio::test]
async fn failures_are_tried_again_and_panics_are_failures() {
    for (scene, error) in [
        (Scene::Fails, "too much is asked at once; try again"),
        (Scene::Panics, "the host panicked over it"),
    ] {
        let mut stage = Stage::new([scene, Scene::Waits]).await;
        let id = stage.leave(clock::new_id(), 0).await;
        let timers = stage.timers();
        assert_eq!(stage.asked().await.attempts, 1);
        // After a second, by itself.
        assert_eq!(stage.asked().await.attempts, 2);
        assert_eq!(stage.left().await, [(id, 2, Some(error.to_owned()))]);
        stage.stand_in.gate.add_permits(1);
        timers.stop().await;
        assert_eq!(stage.left().await, []);
    }
}

#[tokio::test]
async fn one_job_that_lasts_holds_nobody_up() {
    let mut stage = Stage::new([Scene::Waits]).await;
    let lasting = stage.leave(clock::new_id(), 60).await;
    let timers = stage.timers();
    assert_eq!(stage.asked().await.id, lasting);
    for _ in 0..10 {
        let id = stage.leave(clock::new_id(), 0).await;
        stage.app.engine.work().notify_one();
        assert_eq!(stage.asked().await.id, id);
    }
    stage.stand_in.gate.add_permits(1);
    timers.stop().await;
    assert_eq!(stage.left().await, []);
}

#[tokio::test]
async fn so_many_jobs_are_in_hand_at_once_and_no_more() {
    let mut stage = Stage::new((0..5).map(|_| Scene::Waits)).await;
    for _ in 0..5 {
        stage.leave(clock::new_id(), 0).await;
    }
    let timers = stage.timers();
    for _ in 0..4 {
        stage.asked().await;
    }
    // The fifth is not even claimed before another one ends.
    let claimed = |left: Vec<(Uuid, i32, _)>| left.iter().filter(|job| job.1 > 0).count();
    assert_eq!(claimed(stage.left().await), 4);
    stage.stand_in.gate.add_permits(1);
    stage.asked().await;
    stage.stand_in.gate.add_permits(4);
    timers.stop().await;
    assert_eq!(stage.left().await, []);
}

#[tokio::test]
async fn a_worker_that_stops_ends_what_it_has_in_hand() {
    let mut stage = Stage::new([Scene::Waits]).await;
    stage.leave(clock::new_id(), 0).await;
    let timers = stage.timers();
    stage.asked().await;
    let stopping = timers.stop();
    tokio::pin!(stopping);
    assert!(futures_util::poll!(&mut stopping).is_pending());
    let left = stage.leave(clock::new_id(), 0).await;
    stage.stand_in.gate.add_permits(1);
    stopping.await;
    assert_eq!(stage.left().await, [(left, 0, None)]);
}

#[tokio::test]
async fn two_workers_do_each_job_once() {
    let mut stage = Stage::new([]).await;
    for _ in 0..60 {
        stage.leave(clock::new_id(), 1).await;
    }
    let (_, engine) = stage
        .app
        .beside_with_engine(stage.app.database.url(), PATIENCE)
        .await;
    let workers = [
        stage.timers(),
        Timers::start(&engine, stage.stand_in.clone()),
    ];
    let mut done = Vec::new();
    for _ in 0..60 {
        done.push(stage.asked().await.id);
    }
    for worker in workers {
        worker.stop().await;
    }
    done.sort_unstable();
    done.dedup();
    assert_eq!((done.len(), stage.left().await), (60, vec![]));
}

/// As in the midst of an upgrade: another host is a release ahead.
#[tokio::test]
async fn a_kind_that_this_host_does_not_know_is_left_for_others() {
    let stage = Stage::new([]).await;
    let id = stage.leave(clock::new_id(), 0).await;
    sqlx::raw_sql(
        "alter table job drop constraint job_kind_check; update job set kind = 'of_tomorrow'",
    )
    .execute(stage.app.database.admin_pool())
    .await
    .expect("a later schema");
    let timers = stage.app.timers();
    let failed = async {
        loop {
            if let [(_, 1, Some(error))] = &stage.left().await[..] {
                return error.clone();
            }
            tokio::task::yield_now().await;
        }
    };
    let error = tokio::time::timeout(PATIENCE, failed)
        .await
        .expect("in time");
    assert!(error.contains("of_tomorrow"), "{error}");
    timers.stop().await;
    assert_eq!(stage.left().await[0].0, id);
}
