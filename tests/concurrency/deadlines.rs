//! A decision competes with a deadline. Whichever comes first, the deadline acts at most once. For each deadline, both orders are certain
//! in some rounds.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use wrkflw_engine::Engine;
use wrkflw_runtime::clock::Clock;

use super::*;
use crate::audit::commands::prove_all;
use crate::support::app::Timers;
use crate::support::length::at_length;

/// Longer than anything here takes on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(1);

/// What a deadline does, and what is recorded if it came first.
struct DeadlineCase {
    what: &'static str,
    kind: &'static str,
    /// Whether the decision is then refused. Otherwise it claims the task again.
    too_late: bool,
}

const DEADLINES: [DeadlineCase; 3] = [
    DeadlineCase {
        what: "LATE",
        kind: "STATE_TRANSITIONED",
        too_late: true,
    },
    DeadlineCase {
        what: "release",
        kind: "TASK_RELEASED",
        too_late: false,
    },
    DeadlineCase {
        what: "escalate",
        kind: "TASK_ESCALATED",
        too_late: true,
    },
];

/// What comes first in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    Deadline,
    Decision,
    /// Both come at the same time.
    Either,
}

/// Waits until no job is due.
async fn settled(app: &TestApp, now: Timestamp) {
    let due = "select count(*) from job where due_at <= $1::text::timestamptz";
    let settling = async {
        loop {
            let due = sqlx::query_scalar::<_, i64>(due).bind(now.to_string());
            let left = due.fetch_one(app.database.admin_pool()).await;
            if left.expect("a count") == 0 {
                return;
            }
            crate::support::pause().await;
        }
    };
    let settled = tokio::time::timeout(TIMEOUT, settling).await;
    settled.expect("what is due is done in time");
}

/// The hosts, and their common clock.
struct Fixture {
    app: TestApp,
    hosts: Vec<Host>,
    engines: Vec<Engine>,
    time: Arc<AtomicI64>,
}

impl Fixture {
    async fn new() -> Fixture {
        let monday: Timestamp = "2026-01-05T09:00Z".parse().expect("a moment");
        let time = Arc::new(AtomicI64::new(monday.as_millisecond()));
        let app = TestApp::empty_at(Clock::Manual(time.clone())).await;
        vote_on(&app, &[json!({})]).await;
        let (mut hosts, mut engines) = (vec![app.host()], vec![app.engine.clone()]);
        for _ in 1..3 {
            let (host, engine) = app.beside_at_time(Clock::Manual(time.clone())).await;
            hosts.push(host);
            engines.push(engine);
        }
        Fixture {
            app,
            hosts,
            engines,
            time,
        }
    }

    /// Moves the clock by a minute and wakes every worker.
    fn pass(&self) {
        self.time.fetch_add(60_000, Ordering::SeqCst);
        for engine in &self.engines {
            engine.wake_workers();
        }
    }

    /// Waits until no job is due for any host.
    async fn settled(&self) {
        settled(&self.app, self.engines[0].clock().now()).await;
    }

    /// One round: the owner decides through each of the hosts, in the minute in which the deadline is due, or before it.
    async fn meet(&self, deadline: &DeadlineCase, count: usize, round: usize, first: First) {
        let (app, what) = (&self.app, deadline.what);
        let offer = json!({ "groups": ["reviewers"], "deadlines": [{ "after": 60, "do": what }] });
        let data = json!({
            "assign": { "offers": [offer], "needed": 1 },
            "overdue": { "offers": [{ "groups": ["approvers"] }], "needed": 1 },
        });
        let instance = vote(app, &format!("{what} {count} {round}"), data).await;
        let task = id(&instance["states"][0]["tasks"][0]).to_owned();
        let path = |what: &str| format!("/v1/tasks/{task}/{what}");
        let claim = path("claim");
        app.post("reviewer", &claim, json!({})).await.expect(200);
        let outcomes = ["YES", "NO"].into_iter().cycle().take(count);
        let decide =
            |outcome| HostRequest::new("reviewer", path("decide"), json!({ "outcome": outcome }));
        if first != First::Decision {
            self.pass();
        }
        if first == First::Deadline {
            self.settled().await;
        }
        let answers = at_once(&self.hosts[..count], outcomes.map(decide).collect()).await;
        if first == First::Decision {
            self.pass();
        }
        self.settled().await;
        let was_decided = answers.iter().any(|answer| answer.status == 200);
        let passed = recorded(app, &instance, "DEADLINE_PASSED").await;
        match first {
            First::Deadline => assert_eq!(passed, 1, "{what}"),
            First::Decision => assert_eq!(passed, 0, "{what}"),
            First::Either => {}
        }
        let decisions = recorded(app, &instance, "DECISION_RECORDED").await;
        assert_eq!(decisions, usize::from(was_decided), "{what}");
        let is_late = passed == 1 && deadline.too_late;
        assert_eq!((passed <= 1, was_decided), (true, !is_late), "{what}");
        if was_decided {
            let claims = recorded(app, &instance, "TASK_CLAIMED").await;
            assert_eq!(claims, 1 + passed, "{what}");
            let (_, others) = winner(answers, 200);
            for lost in others {
                let problem = lost.problem(409, "task_taken");
                assert_eq!(problem["conflict"]["action"], "decided");
            }
            return;
        }
        assert_eq!(recorded(app, &instance, deadline.kind).await, 1);
        for lost in answers {
            let problem = lost.problem(409, "task_taken");
            assert_eq!(problem["conflict"]["action"], "cancelled");
            // The host itself came first.
            assert_eq!(problem["conflict"]["by"], Value::Null);
            assert!(problem["conflict"]["revision"].is_u64(), "{problem}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_and_a_deadline_act_one_after_the_other() {
    let fixture = Fixture::new().await;
    for count in HOSTS {
        let workers: Vec<_> = fixture.engines[..count]
            .iter()
            .map(|engine| Timers::start(engine, Arc::new(engine.clone())))
            .collect();
        for deadline in &DEADLINES {
            for round in 0..at_length(6, 200) {
                let first = match round {
                    0 => First::Deadline,
                    1 => First::Decision,
                    _ => First::Either,
                };
                fixture.meet(deadline, count, round, first).await;
            }
        }
        for worker in workers {
            worker.stop().await;
        }
    }
    prove_all(&fixture.app).await;
}
