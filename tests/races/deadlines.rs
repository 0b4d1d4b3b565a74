//! A decision meets the clock: whether the deadline or the decision comes first, the deadline acts once or not at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use wrkflw::clock::Clock;
use wrkflw::engine::Engine;

use super::*;
use crate::audit::commands::prove_all;
use crate::support::app::Timers;
use crate::support::length::at_length;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// What a deadline does, what the decider is told when it came first, and what stands in the record then.
struct Passing {
    what: &'static str,
    code: &'static str,
    /// The reason, or what the conflict says was done.
    told: &'static str,
    kind: &'static str,
}

const DEADLINES: [Passing; 3] = [
    Passing {
        what: "LATE",
        code: "task_taken",
        told: "cancelled",
        kind: "STATE_TRANSITIONED",
    },
    Passing {
        what: "release",
        code: "forbidden",
        told: "not_owner",
        kind: "TASK_RELEASED",
    },
    Passing {
        what: "escalate",
        code: "task_taken",
        told: "cancelled",
        kind: "TASK_ESCALATED",
    },
];

/// Waits until nothing is due any more.
async fn settled(app: &TestApp, now: Timestamp) {
    let due = "select count(*) from job where due_at <= $1::text::timestamptz";
    let settling = async {
        loop {
            let due = sqlx::query_scalar::<_, i64>(due).bind(now.to_string());
            let left = due.fetch_one(app.database.admin_pool()).await;
            if left.expect("a count") == 0 {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    let settled = tokio::time::timeout(PATIENCE, settling).await;
    settled.expect("what is due is done in time");
}

/// The hosts, and the time of them all.
struct Chambers {
    app: TestApp,
    hosts: Vec<Host>,
    engines: Vec<Engine>,
    time: Arc<AtomicI64>,
}

impl Chambers {
    async fn new() -> Chambers {
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
        Chambers {
            app,
            hosts,
            engines,
            time,
        }
    }

    /// A minute passes, and every host is told.
    fn pass(&self) {
        self.time.fetch_add(60_000, Ordering::SeqCst);
        for engine in &self.engines {
            engine.work().notify_one();
        }
    }

    /// One round: the owner decides through each of so many hosts, in the minute in which the deadline passes.
    async fn meet(&self, deadline: &Passing, count: usize, round: usize) {
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
        let decide = |outcome| Wish::new("reviewer", path("decide"), json!({ "outcome": outcome }));
        self.pass();
        let answers = at_once(&self.hosts[..count], outcomes.map(decide).collect()).await;
        settled(app, self.engines[0].clock().now()).await;
        let by_decision = answers.iter().any(|answer| answer.status == 200);
        let passed = recorded(app, &instance, "DEADLINE_PASSED").await;
        assert_eq!(passed, usize::from(!by_decision), "{what}");
        let decisions = recorded(app, &instance, "DECISION_RECORDED").await;
        assert_eq!(decisions, 1 - passed);
        if by_decision {
            let (_, others) = winner(answers, 200);
            for lost in others {
                let problem = lost.problem(409, "task_taken");
                assert_eq!(problem["conflict"]["action"], "decided");
            }
            return;
        }
        assert_eq!(recorded(app, &instance, deadline.kind).await, 1);
        for lost in answers {
            assert_eq!(lost.body["code"], deadline.code, "{}", lost.text);
            let told = [&lost.body["reason"], &lost.body["conflict"]["action"]];
            assert!(told.contains(&&json!(deadline.told)), "{}", lost.text);
            // The host itself was faster.
            assert_eq!(lost.body["conflict"]["by"], Value::Null);
            assert_eq!(lost.body["conflict"]["owner"], Value::Null);
            assert!(lost.body["conflict"]["revision"].is_u64(), "{}", lost.text);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_and_a_deadline_never_both_win() {
    let chambers = Chambers::new().await;
    for count in HOSTS {
        let workers: Vec<_> = chambers.engines[..count]
            .iter()
            .map(|engine| Timers::start(engine, Arc::new(engine.clone())))
            .collect();
        for deadline in &DEADLINES {
            for round in 0..at_length(5, 200) {
                chambers.meet(deadline, count, round).await;
            }
        }
        for worker in workers {
            worker.stop().await;
        }
    }
    prove_all(&chambers.app).await;
}
