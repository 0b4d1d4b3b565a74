//! A vote in which nobody is told how others voted, until it ends.

use super::*;

/// The data of the instance's events of this type, once there are so many.
async fn published(app: &TestApp, instance: &Value, kind: &str, count: usize) -> Vec<Value> {
    let reading = async {
        loop {
            let page = app.get("admin", "/v1/events?limit=100").await.expect(200);
            let events = page["data"].as_array().expect("events").iter();
            let of_kind = events.filter(|event| {
                event["subject"] == instance["id"] && event["type"] == format!("dev.wrkflw.{kind}")
            });
            let found: Vec<_> = of_kind.cloned().collect();
            if found.len() == count {
                return found;
            }
            tokio::task::yield_now().await;
        }
    };
    let read = tokio::time::timeout(TIMEOUT, reading).await;
    read.unwrap_or_else(|_| panic!("{kind} is not published {count} times"))
}

/// The one event of this type follows a hidden decision, and lacks these members.
async fn is_published_without(app: &TestApp, instance: &Value, kind: &str, members: &[&str]) {
    let event = &published(app, instance, kind, 1).await[0];
    assert_eq!(event["data"]["blind"], true, "{event}");
    for member in members {
        assert!(event["data"][member].is_null(), "{member}: {event}");
    }
    assert_eq!(
        (&event["authtype"], &event["authid"]),
        (&json!("unknown"), &Value::Null)
    );
}

/// A vote of two, of whom `reviewer` has voted.
async fn half_done(app: &TestApp) -> Value {
    let offers = ["reviewer", "reviewer2"].map(|user| json!({ "users": [user] }));
    let assign = json!({ "offers": offers, "needed": 2, "blind": true });
    let instance = vote(app, "blind", json!({ "assign": assign, "noted": true })).await;
    let first = &tasks(&instance)[0];
    let vote = json!({ "outcome": "YES", "comment": "between us" });
    let after = decide(app, "reviewer", first, vote).await;
    // Who decided sees it.
    assert_eq!(after["states"][0]["blind"], true);
    assert_eq!(tasks(&after)[0]["decision"]["comment"], "between us");
    after
}

/// Nobody tries out how the vote stands.
async fn dry_runs_are_refused(app: &TestApp, instance: &Value) {
    let second = &tasks(instance)[1];
    let of_instance = format!("/v1/instances/{}", id(instance));
    for (person, path, body) in [
        (
            "reviewer2",
            format!("/v1/tasks/{}/decide", id(second)),
            json!({ "outcome": "YES" }),
        ),
        (
            "reviewer2",
            format!("/v1/tasks/{}/decide", id(second)),
            json!({ "outcome": "MORE" }),
        ),
        (
            "admin",
            format!("{of_instance}/cancel"),
            json!({ "reason": "curious" }),
        ),
    ] {
        let dry = app.post(person, &format!("{path}?dryRun=true"), body).await;
        assert!(!dry.text.contains("between us"), "{}", dry.text);
        dry.problem(403, "forbidden");
    }
}

async fn both_are_disclosed(app: &TestApp, instance: &Value) {
    let disclosed = &published(app, instance, "state.disclosed", 1).await[0]["data"];
    let decisions = disclosed["decisions"].as_array().expect("decisions").iter();
    let decisions: Vec<_> = decisions
        .map(|decision| {
            (
                &decision["actor"],
                &decision["outcome"],
                &decision["comment"],
            )
        })
        .collect();
    let (yes, comment) = (json!("YES"), json!("between us"));
    assert_eq!(
        decisions,
        [
            (&json!("reviewer"), &yes, &comment),
            (&json!("reviewer2"), &yes, &Value::Null)
        ]
    );
}

#[tokio::test]
async fn nobody_is_told_how_others_voted_until_the_vote_ends() {
    let app = chambers().await;
    let instance = half_done(&app).await;
    let (first, second) = (&tasks(&instance)[0], &tasks(&instance)[1]);
    let of_task = format!("/v1/tasks/{}", id(first));
    let of_instance = format!("/v1/instances/{}", id(&instance));
    let history = format!("{of_instance}/history");
    for path in [&of_task, &of_instance, &history] {
        for person in ["reviewer2", "author", "admin"] {
            let answer = app.get(person, path).await;
            assert_eq!(answer.status, 200, "{}", answer.text);
            for secret in ["between us", "\"YES\"", "1 of 2"] {
                assert!(!answer.text.contains(secret), "{path}: {}", answer.text);
            }
        }
        let own = app.get("reviewer", path).await;
        assert!(own.text.contains("between us"), "{path}: {}", own.text);
    }
    let hidden = tasks(&shown(&app, &instance).await)[0].clone();
    assert_eq!(
        (&hidden["status"], &hidden["owner"], &hidden["decision"]),
        (&json!("COMPLETED"), &Value::Null, &Value::Null)
    );
    // Whoever tries to decide it, too, learns only that it is decided.
    let decide_first = format!("{of_task}/decide");
    let problem = app
        .post("reviewer2", &decide_first, json!({ "outcome": "NO" }))
        .await
        .problem(409, "task_taken");
    assert_eq!(problem["conflict"]["action"], "decided");
    assert!(problem["conflict"]["by"].is_null(), "{problem}");
    assert!(problem["conflict"]["outcome"].is_null(), "{problem}");
    // What others get in answer to their own commands.
    let claimed = format!("/v1/tasks/{}/claim?dryRun=true", id(second));
    let answer = app.post("reviewer2", &claimed, json!({})).await;
    assert!(!answer.text.contains("between us"), "{}", answer.text);

    dry_runs_are_refused(&app, &instance).await;

    let secret = ["outcome", "actor", "comment", "onBehalfOf"];
    is_published_without(&app, &instance, "decision.recorded", &secret).await;
    let secret = ["trigger", "actor", "notes"];
    is_published_without(&app, &instance, "state.continued", &secret).await;
    let of_actor = "/v1/events?actor=reviewer&type=state.*";
    let of_actor = app.get("admin", of_actor).await.expect(200);
    assert_eq!(of_actor["data"], json!([]));
    // The audit has it from the beginning.
    let audit = audited(&app, &instance, "DECISION_RECORDED").await;
    assert_eq!(audit[0]["outcome"], "YES");

    let ended = decide(&app, "reviewer2", second, json!({ "outcome": "YES" })).await;
    assert_eq!(ended["outcome"], "APPROVED");
    let told = app.get("author", &history).await;
    for disclosed in ["between us", "1 of 2", "2 of 2"] {
        assert!(told.text.contains(disclosed), "{}", told.text);
    }
    both_are_disclosed(&app, &instance).await;
    prove_all(&app).await;
}

#[tokio::test]
async fn a_cancelled_vote_is_disclosed() {
    let app = chambers().await;
    let instance = half_done(&app).await;
    let cancel = format!("/v1/instances/{}/cancel", id(&instance));
    app.post("admin", &cancel, json!({ "reason": "no longer wanted" }))
        .await
        .expect(200);
    let disclosed = published(&app, &instance, "state.disclosed", 1).await;
    assert_eq!(
        disclosed[0]["data"]["decisions"][0]["comment"],
        "between us"
    );
    prove_all(&app).await;
}
