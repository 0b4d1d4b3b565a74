//! Fifty people vote concurrently, through two hosts, in a state that needs twenty-five votes.

use tokio::task::JoinSet;

use super::*;
use crate::support::app::Answer;

const VOTERS: usize = 50;
const NEEDED: usize = 25;
/// The last ones vote NO, too few to change the result.
const CONTRARY: usize = 20;

fn voter(number: usize) -> String {
    format!("voter-{number:02}")
}

async fn all(app: &TestApp, paths: Vec<(String, String, Value)>) -> Vec<Answer> {
    let hosts = [app.host(), app.beside().await];
    let mut callers = JoinSet::new();
    for (number, (user, path, body)) in paths.into_iter().enumerate() {
        let host = hosts[number % 2].clone();
        callers.spawn(async move { host.send(&user, "POST", &path, &[], Some(body)).await });
    }
    callers.join_all().await
}

async fn count(app: &TestApp, sql: &'static str) -> usize {
    let count: i64 = sqlx::query_scalar(sql)
        .fetch_one(app.database.admin_pool())
        .await
        .expect("a count");
    usize::try_from(count).expect("a small number")
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::too_many_lines, reason = "one table of counts")]
async fn fifty_vote_concurrently_and_the_state_ends_once() {
    let app = chambers().await;
    group(&app, "voters").await;
    for number in 0..VOTERS {
        member(&app, "voters", &voter(number)).await;
    }
    let offers = vec![json!({ "groups": ["voters"] }); VOTERS];
    let assign = json!({ "offers": offers, "needed": NEEDED });
    let instance = vote(&app, "large", json!({ "assign": assign })).await;
    let path = |number: usize, action: &str| {
        let task = tasks(&instance)[number]["id"].as_str().expect("an id");
        format!("/v1/tasks/{task}/{action}")
    };
    let claims = (0..VOTERS).map(|number| (voter(number), path(number, "claim"), json!({})));
    for answer in all(&app, claims.collect()).await {
        answer.expect(200);
    }
    let votes = (0..VOTERS).map(|number| {
        let outcome = if number < VOTERS - CONTRARY {
            "YES"
        } else {
            "NO"
        };
        (
            voter(number),
            path(number, "decide"),
            json!({ "outcome": outcome }),
        )
    });
    let answers = all(&app, votes.collect()).await;

    let (counted, refused): (Vec<_>, Vec<_>) =
        answers.into_iter().partition(|answer| answer.status == 200);
    let moved = counted
        .iter()
        .filter(|answer| answer.body["instance"]["status"] == "COMPLETED");
    assert_eq!(moved.count(), 1);
    assert!(counted.len() >= NEEDED, "{}", counted.len());
    let cancelled = VOTERS - counted.len();
    assert_eq!(refused.len(), cancelled);
    for answer in refused {
        let problem = answer.problem(409, "task_taken");
        assert_eq!(problem["conflict"]["action"], "cancelled");
    }
    for (sql, expected) in [
        ("select count(*) from decision", counted.len()),
        ("select count(distinct actor) from decision", counted.len()),
        (
            "select count(*) from decision where outcome = 'YES'",
            NEEDED,
        ),
        (
            "select count(*) from audit_entry where type = 'DECISION_RECORDED'",
            counted.len(),
        ),
        (
            "select count(*) from audit_entry where type = 'STATE_TRANSITIONED'",
            1,
        ),
        (
            "select count(*) from audit_entry where type = 'FLOW_COMPLETED'",
            1,
        ),
        (
            "select count(*) from audit_entry where type = 'TASK_CANCELLED'",
            cancelled,
        ),
        (
            "select count(*) from task where status = 'CANCELLED'",
            cancelled,
        ),
        ("select count(*) from task_candidate", 0),
    ] {
        assert_eq!(count(&app, sql).await, expected, "{sql}");
    }
    assert_eq!(shown(&app, &instance).await["outcome"], "APPROVED");
}
