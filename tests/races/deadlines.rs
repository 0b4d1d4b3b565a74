//! A decision meets the clock: whether the deadline or the decision comes first, the deadline acts once or not at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use wrkflw::clock::Clock;

use super::*;
use crate::audit::commands::prove_all;
use crate::support::app::Timers;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// What a deadline does, what the decider is told when it came first, and what stands in the record then.
const DEADLINES: [(&str, &str, &str, &str); 3] = [
    ("LATE", "task_taken", "cancelled", "STATE_TRANSITIONED"),
    ("release", "forbidden", "not_owner", "TASK_RELEASED"),
    ("escalate", "task_taken", "cancelled", "TASK_ESCALATED"),
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

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_and_a_deadline_never_both_win() {
    let monday: Timestamp = "2026-01-05T09:00Z".parse().expect("a moment");
    let time = Arc::new(AtomicI64::new(monday.as_millisecond()));
    let clock = || Clock::Manual(time.clone());
    let app = TestApp::empty_at(clock()).await;
    vote_on(&app, &[json!({})]).await;
    let (mut hosts, mut engines) = (vec![app.host()], vec![app.engine.clone()]);
    for _ in 1..3 {
        let (host, engine) = app.beside_at_time(clock()).await;
        hosts.push(host);
        engines.push(engine);
    }
    let mut first = 0;
    let mut rounds = 0;
    for count in HOSTS {
        let workers: Vec<_> = engines[..count]
            .iter()
            .map(|engine| Timers::start(engine, Arc::new(engine.clone())))
            .collect();
        for (what, code, told, kind) in DEADLINES {
            for round in 0..at_length(5, 200) {
                let deadline = json!({ "after": 60, "do": what });
                let offer = json!({ "groups": ["reviewers"], "deadlines": [deadline] });
                let data = json!({
                    "assign": { "offers": [offer], "needed": 1 },
                    "overdue": { "offers": [{ "groups": ["approvers"] }], "needed": 1 },
                });
                let instance = vote(&app, &format!("{what} {count} {round}"), data).await;
                let task = id(&instance["states"][0]["tasks"][0]).to_owned();
                let path = |what: &str| format!("/v1/tasks/{task}/{what}");
                app.post("reviewer", &path("claim"), json!({}))
                    .await
                    .expect(200);
                let outcomes = ["YES", "NO"].into_iter().cycle().take(count);
                let decide =
                    |outcome| Wish::new("reviewer", path("decide"), json!({ "outcome": outcome }));
                time.fetch_add(60_000, Ordering::SeqCst);
                engines.iter().for_each(|engine| engine.work().notify_one());
                let answers = at_once(&hosts[..count], outcomes.map(decide).collect()).await;
                settled(&app, clock().now()).await;
                let by_decision = answers.iter().any(|answer| answer.status == 200);
                let passed = recorded(&app, &instance, "DEADLINE_PASSED").await;
                assert_eq!(passed, usize::from(!by_decision), "{what}");
                assert_eq!(
                    recorded(&app, &instance, "DECISION_RECORDED").await,
                    1 - passed
                );
                if by_decision {
                    let (_, others) = winner(answers, 200);
                    for lost in others {
                        let problem = lost.problem(409, "task_taken");
                        assert_eq!(problem["conflict"]["action"], "decided");
                    }
                } else {
                    assert_eq!(recorded(&app, &instance, kind).await, 1);
                    for lost in answers {
                        assert_eq!(lost.body["code"], code, "{}", lost.text);
                        let reason = [&lost.body["reason"], &lost.body["conflict"]["action"]];
                        assert!(reason.contains(&&json!(told)), "{}", lost.text);
                        // The host itself was faster.
                        assert_eq!(lost.body["conflict"]["by"], Value::Null);
                    }
                }
                first += usize::from(by_decision);
                rounds += 1;
            }
        }
        for worker in workers {
            worker.stop().await;
        }
    }
    assert!(rounds > 0 && first <= rounds);
    prove_all(&app).await;
}
