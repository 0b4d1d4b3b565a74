//! Deadlines when hosts die, are down, work concurrently, or race with a decision: each acts once, in its order.

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use wrkflw_core::ids::{InstanceId, TenantId};
use wrkflw_engine::Error;
use wrkflw_engine::job_handlers::JobHandlers;
use wrkflw_store::bulk::{Batch, Outcome};
use wrkflw_store::jobs::Job;

use super::*;
use crate::support::app::Timers;

/// Longer than the lease of a job.
const LEASE: i64 = 61;

/// Compares the jobs of deadlines with the open deadlines of running instances.
const WATCHED: &str = "with state_instance as (
        select s.deadlines::jsonb as deadlines from state_instance s join instance i using (tenant_id)
        where s.instance_id = i.id and i.status = 'RUNNING' and s.left_at is null and s.deadlines is not null
    ), task as (
        select t.deadlines::jsonb as deadlines from task t join instance i using (tenant_id)
        where t.instance_id = i.id and i.status = 'RUNNING' and t.status in ('PENDING', 'CLAIMED') and t.deadlines is not null
    ), open as (
        select (deadline ->> 'id')::uuid as id, (deadline ->> 'dueAt')::timestamptz as due_at
        from (select * from state_instance union all select * from task) of, jsonb_array_elements(of.deadlines) deadline
    )
    select count(*) filter (where job.id is not null and open.id is not null),
           count(*) filter (where job.id is null or open.id is null)
    from open full join (select * from job where kind = 'deadline') job on job.id = open.id and job.due_at = open.due_at";

fn under(deadlines: &Value) -> Value {
    let offer = json!({ "groups": ["reviewers"], "deadlines": deadlines });
    json!({
        "assign": { "offers": [offer] },
        "overdue": { "offers": [{ "groups": ["approvers"] }] },
    })
}

async fn count(app: &TestApp, sql: &'static str) -> i64 {
    let count = sqlx::query_scalar(sql).fetch_one(app.database.admin_pool());
    count.await.expect("a count")
}

/// The number of open deadlines with a job, and of differences.
async fn watched(app: &TestApp) -> (i64, i64) {
    let both = sqlx::query_as(WATCHED).fetch_one(app.database.admin_pool());
    both.await.expect("counts")
}

/// Another host on the same database and with the same time.
async fn beside(app: &TestApp, time: &Time) -> Engine {
    app.engine_with_clock(time.clock()).await
}

fn started(engine: &Engine) -> Timers {
    Timers::start(engine, Arc::new(engine.clone()))
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_hosts_one_runs_due_deadlines() {
    const INSTANCES: i64 = 30;
    let (app, time) = chambers_at().await;
    let other = beside(&app, &time).await;
    let deadlines = json!([
        { "after": 60, "every": 60, "do": "remind" },
        { "after": 150, "do": "escalate" },
    ]);
    for number in 0..INSTANCES {
        vote(&app, &format!("motion-{number}"), under(&deadlines)).await;
    }
    let workers = [started(&app.engine), started(&other)];
    let hosts = [&app.engine, &other];
    assert_eq!(watched(&app).await, (2 * INSTANCES, 0));
    time.work(&app, &hosts, 60).await;
    assert_eq!(watched(&app).await, (2 * INSTANCES, 0));
    time.work(&app, &hosts, 60).await;
    time.work(&app, &hosts, 30).await;
    assert_eq!(watched(&app).await, (0, 0));
    for worker in workers {
        worker.stop().await;
    }
    for (sql, expected) in [
        (
            "select count(*) from audit_entry where type = 'DEADLINE_PASSED'",
            3 * INSTANCES,
        ),
        (
            "select count(distinct (payload::jsonb ->> 'deadline', payload::jsonb ->> 'count'))
            from audit_entry where type = 'DEADLINE_PASSED'",
            3 * INSTANCES,
        ),
        (
            "select count(*) from audit_entry where type = 'TASK_REMINDED'",
            2 * INSTANCES,
        ),
        (
            "select count(*) from audit_entry where type = 'TASK_ESCALATED'",
            INSTANCES,
        ),
        (
            "select count(*) from task where status = 'PENDING'",
            INSTANCES,
        ),
        ("select count(*) from job", 0),
    ] {
        assert_eq!(count(&app, sql).await, expected, "{sql}");
    }
    prove_all(&app).await;
}

/// A host that dies with a job in flight, before or after the job is done.
struct Dying {
    engine: Engine,
    is_done: bool,
    dead: mpsc::UnboundedSender<()>,
}

impl JobHandlers for Dying {
    fn job<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            if self.is_done {
                self.engine.job(job).await.expect("it is done");
            }
            self.dead.send(()).expect("the test listens");
            std::future::pending().await
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

#[tokio::test]
async fn claimed_jobs_of_a_dead_host_are_done_once_by_another() {
    for is_done in [false, true] {
        let (app, time) = chambers_at().await;
        let deadlines = json!([{ "after": 60, "every": 3600, "do": "remind" }]);
        let instance = vote(&app, "motion", under(&deadlines)).await;
        let (dead, mut dies) = mpsc::unbounded_channel();
        let dying = Dying {
            engine: app.engine.clone(),
            is_done,
            dead,
        };
        let killed = Timers::start(&app.engine, Arc::new(dying));
        time.pass(60);
        app.engine.wake_workers();
        let claimed = tokio::time::timeout(TIMEOUT, dies.recv()).await;
        claimed.expect("in time").expect("a claim");
        killed.kill().await;

        let other = beside(&app, &time).await;
        let survivor = started(&other);
        time.work(&app, &[&other], LEASE).await;
        survivor.stop().await;
        let passed = audited(&app, &instance, "DEADLINE_PASSED").await;
        let late = if is_done { 0 } else { LEASE };
        assert_eq!(passed.len(), 1, "{passed:?}");
        assert_eq!(
            (&passed[0]["count"], &passed[0]["late"]),
            (&json!(1), &json!(late))
        );
        assert_eq!(audited(&app, &instance, "TASK_REMINDED").await.len(), 1);
        assert_eq!(watched(&app).await, (1, 0));
        prove_all(&app).await;
    }
}

#[tokio::test]
async fn after_an_outage_overdue_deadlines_act_in_order() {
    let (app, time) = chambers_at().await;
    let deadlines = json!([
        { "after": 180, "do": "escalate" },
        { "after": 120, "do": "release" },
        { "after": 60, "do": "remind" },
    ]);
    let instance = vote(&app, "motion", under(&deadlines)).await;
    claim(&app, "reviewer", &tasks(&instance)[0]).await;
    time.pass(36_000);
    let timers = app.timers();
    time.work(&app, &[&app.engine], 0).await;
    timers.stop().await;
    let passed = audited(&app, &instance, "DEADLINE_PASSED").await;
    let listed: Vec<_> = passed
        .iter()
        .map(|entry| {
            (
                entry["action"].as_str().expect("an action"),
                entry["late"].as_i64(),
            )
        })
        .collect();
    let expected = [
        ("remind", Some(35_940)),
        ("release", Some(35_880)),
        ("escalate", Some(35_820)),
    ];
    assert_eq!(listed, expected);
    // The owner was reminded. Nobody owned the task when it was escalated.
    let reminded = audited(&app, &instance, "TASK_REMINDED").await;
    assert_eq!(
        reminded[0]["recipients"],
        json!([{ "type": "user", "id": "reviewer" }])
    );
    let escalated = audited(&app, &instance, "TASK_ESCALATED").await;
    assert_eq!(
        escalated[0]["from"],
        json!([{ "type": "group", "id": "reviewers" }])
    );
    prove_all(&app).await;
}

/// Flow logic always fails for the escalation. The reminder needs no flow logic.
#[tokio::test]
async fn a_failing_deadline_delays_no_other() {
    let (app, time) = chambers_at().await;
    let deadlines = json!([
        { "after": 60, "do": "escalate" },
        { "after": 120, "do": "remind" },
    ]);
    let mut data = under(&deadlines);
    data["overdue"]["needed"] = json!(9);
    let instance = vote(&app, "motion", data).await;
    let timers = app.timers();
    time.pass(120);
    for attempt in 1..=10_i32 {
        app.engine.wake_workers();
        let has_failed = async {
            let failed = "select count(*) from job where attempts = $1 and claim is null and last_error is not null";
            loop {
                let failed = sqlx::query_scalar::<_, i64>(failed).bind(attempt);
                let failed = failed.fetch_one(app.database.admin_pool()).await;
                if failed.expect("a count") > 0 {
                    return;
                }
                crate::support::pause().await;
            }
        };
        let has_failed = tokio::time::timeout(TIMEOUT, has_failed).await;
        has_failed.expect("it fails in time");
        if attempt < 10 {
            assert!(audited(&app, &instance, "TASK_REMINDED").await.is_empty());
        }
        // Longer than each pause.
        time.pass(600);
    }
    app.engine.wake_workers();
    let is_reminded = async {
        while audited(&app, &instance, "TASK_REMINDED").await.is_empty() {
            crate::support::pause().await;
        }
    };
    let is_reminded = tokio::time::timeout(TIMEOUT, is_reminded).await;
    is_reminded.expect("it reminds in time");
    timers.stop().await;
    assert!(audited(&app, &instance, "TASK_ESCALATED").await.is_empty());
    assert_eq!(watched(&app).await, (1, 0));
    prove_all(&app).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_concurrent_decision_and_a_deadline_one_wins() {
    const INSTANCES: usize = 24;
    let (app, time) = chambers_at().await;
    let other = beside(&app, &time).await;
    let deadlines = json!([{ "after": 60, "do": "LATE" }]);
    let mut paths = Vec::new();
    for number in 0..INSTANCES {
        let instance = vote(&app, &format!("motion-{number}"), under(&deadlines)).await;
        let task = tasks(&instance)[0].clone();
        claim(&app, "reviewer", &task).await;
        paths.push(format!("/v1/tasks/{}/decide", id(&task)));
    }
    let workers = [started(&app.engine), started(&other)];
    let mut callers = JoinSet::new();
    time.pass(60);
    for engine in [&app.engine, &other] {
        engine.wake_workers();
    }
    // From the end of the list, which the hosts reach last.
    for path in paths.into_iter().rev() {
        let host = app.host();
        callers.spawn(async move {
            let vote = json!({ "outcome": "YES" });
            host.send("reviewer", "POST", &path, &[], Some(vote)).await
        });
    }
    let answers = callers.join_all().await;
    time.work(&app, &[&app.engine, &other], 0).await;
    for worker in workers {
        worker.stop().await;
    }
    let decided = answers.iter().filter(|answer| answer.status == 200).count();
    assert!(
        answers
            .iter()
            .all(|answer| [200, 409].contains(&answer.status)),
        "{answers:?}"
    );
    let decided = i64::try_from(decided).expect("few");
    let all = i64::try_from(INSTANCES).expect("few");
    for (sql, expected) in [
        (
            "select count(*) from audit_entry where type = 'DECISION_RECORDED'",
            decided,
        ),
        (
            "select count(*) from audit_entry where type = 'DEADLINE_PASSED'",
            all - decided,
        ),
        (
            "select count(*) from audit_entry where type = 'STATE_TRANSITIONED'",
            all,
        ),
        (
            "select count(*) from instance where outcome = 'APPROVED'",
            decided,
        ),
        (
            "select count(*) from instance where outcome = 'REJECTED'",
            all - decided,
        ),
        ("select count(*) from job", 0),
    ] {
        assert_eq!(count(&app, sql).await, expected, "{sql}");
    }
    prove_all(&app).await;
}
