//! A vote in which nobody learns how others voted until it ends.

use super::*;
use crate::support::until_so;

/// The data of the instance's published events of this type, once there are this many.
async fn published(app: &TestApp, instance: &Value, kind: &str, count: usize) -> Vec<Value> {
    let look = async || {
        let page = app.get("admin", "/v1/events?limit=100").await.expect(200);
        let events = page["data"].as_array().expect("events").iter();
        let of_kind = events.filter(|event| {
            event["subject"] == instance["id"] && event["type"] == format!("dev.wrkflw.{kind}")
        });
        of_kind.cloned().collect::<Vec<Value>>()
    };
    until_so(look, |found: &Vec<Value>| found.len() == count).await
}

/// The event follows a hidden decision, and lacks these members.
fn hides(event: &Value, members: &[&str]) {
    assert_eq!(event["data"]["blind"], true, "{event}");
    for member in members {
        assert!(event["data"][member].is_null(), "{member}: {event}");
    }
    assert_eq!(
        (&event["authtype"], &event["authid"]),
        (&json!("unknown"), &Value::Null)
    );
}

/// A vote of two people. `reviewer` has voted.
async fn half_done(app: &TestApp) -> Value {
    let offers = ["reviewer", "reviewer2"].map(|user| json!({ "users": [user] }));
    let assign = json!({ "offers": offers, "needed": 2, "blind": true });
    let instance = vote(app, "blind", json!({ "assign": assign, "noted": true })).await;
    let first = &tasks(&instance)[0];
    let input = json!({ "data": { "votes": 1 } });
    let vote = json!({ "outcome": "YES", "comment": "between us", "input": input });
    let after = decide(app, "reviewer", first, vote).await;
    // The decider sees it.
    assert_eq!(after["states"][0]["blind"], true);
    assert_eq!(tasks(&after)[0]["decision"]["comment"], "between us");
    after
}

/// Dry runs are refused, because they would reveal how the vote stands.
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
async fn votes_are_hidden_until_the_vote_ends() {
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
    // A person who tries to decide the same task learns only that it is decided.
    let decide_first = format!("{of_task}/decide");
    let problem = app
        .post("reviewer2", &decide_first, json!({ "outcome": "NO" }))
        .await
        .problem(409, "task_taken");
    assert_eq!(problem["conflict"]["action"], "decided");
    assert!(problem["conflict"]["by"].is_null(), "{problem}");
    assert!(problem["conflict"]["outcome"].is_null(), "{problem}");
    // The responses to commands of other people.
    let claimed = format!("/v1/tasks/{}/claim?dryRun=true", id(second));
    let answer = app.post("reviewer2", &claimed, json!({})).await;
    assert!(!answer.text.contains("between us"), "{}", answer.text);

    dry_runs_are_refused(&app, &instance).await;

    let secret = ["outcome", "actor", "comment", "onBehalfOf"];
    let recorded = published(&app, &instance, "decision.recorded", 1).await;
    hides(&recorded[0], &secret);
    let continued = published(&app, &instance, "state.continued", 1).await;
    hides(&continued[0], &["trigger", "actor", "notes"]);
    let of_actor = "/v1/events?actor=reviewer&type=state.*";
    let of_actor = app.get("admin", of_actor).await.expect(200);
    assert_eq!(of_actor["data"], json!([]));
    // The audit has it from the beginning.
    let audit = audited(&app, &instance, "DECISION_RECORDED").await;
    assert_eq!(audit[0]["outcome"], "YES");

    let ended = decide(&app, "reviewer2", second, json!({ "outcome": "YES" })).await;
    assert_eq!(ended["outcome"], "APPROVED");
    let answer = app.get("author", &history).await;
    for disclosed in ["between us", "1 of 2", "2 of 2"] {
        assert!(answer.text.contains(disclosed), "{}", answer.text);
    }
    both_are_disclosed(&app, &instance).await;
    prove_all(&app).await;
}

/// The changes of the data and their actors, as this person sees them.
async fn told_of_change(app: &TestApp, person: &str, instance: &Value) -> Value {
    let path = format!("/v1/instances/{}/changes", id(instance));
    let page = app.get(person, &path).await.expect(200);
    // After the start.
    let step = &page["data"][1];
    assert_eq!(
        (&step["state"], &step["changes"]),
        (
            &json!("Vote"),
            &json!([{ "pointer": "/votes", "after": 1 }])
        )
    );
    json!([step["actor"], step["trigger"]])
}

#[tokio::test]
async fn a_change_of_the_data_does_not_reveal_its_vote() {
    let app = chambers().await;
    let instance = half_done(&app).await;
    let (hidden, disclosed) = (json!([null, null]), json!(["reviewer", "YES"]));
    for person in ["reviewer2", "author", "admin"] {
        let change = told_of_change(&app, person, &instance).await;
        assert_eq!(change, hidden, "{person}");
    }
    assert_eq!(told_of_change(&app, "reviewer", &instance).await, disclosed);
    let second = &tasks(&instance)[1];
    decide(&app, "reviewer2", second, json!({ "outcome": "YES" })).await;
    assert_eq!(told_of_change(&app, "author", &instance).await, disclosed);
}

#[tokio::test]
async fn two_concurrent_votes_do_not_reveal_each_other() {
    let (app, _standing) = chambers_at().await;
    let offers = ["reviewer", "reviewer2", "approver"].map(|user| json!({ "users": [user] }));
    let assign = json!({ "offers": offers, "needed": 3, "blind": true });
    let instance = vote(&app, "blind", json!({ "assign": assign })).await;
    for (place, person) in ["reviewer", "reviewer2"].into_iter().enumerate() {
        let input = json!({ "data": { "votes": place + 1 } });
        let vote = json!({ "outcome": "YES", "input": input });
        decide(&app, person, &tasks(&instance)[place], vote).await;
    }
    let path = format!("/v1/instances/{}/changes", id(&instance));
    for (person, expected) in [
        (
            "reviewer",
            [json!(["reviewer", "YES"]), json!([null, null])],
        ),
        (
            "reviewer2",
            [json!([null, null]), json!(["reviewer2", "YES"])],
        ),
    ] {
        let page = app.get(person, &path).await.expect(200);
        let steps = &page["data"];
        assert_eq!(steps[1]["at"], steps[2]["at"], "{page}");
        let found = [1_usize, 2].map(|step| json!([steps[step]["actor"], steps[step]["trigger"]]));
        assert_eq!(found, expected, "{person}");
    }
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

/// A dry run of a bulk cancellation counts it, and reveals no votes.
#[tokio::test]
async fn a_dry_run_of_a_bulk_cancellation_counts_a_blind_vote_as_done() {
    let app = chambers().await;
    half_done(&app).await;
    let body = json!({ "definitionKey": "committee", "version": 1, "reason": "no longer wanted" });
    let dry = app.post("admin", "/v1/cancellations?dryRun=true", body);
    let dry = dry.await.expect(200);
    assert_eq!((&dry["done"], &dry["refused"]), (&json!(1), &json!(0)));
    assert!(!dry.to_string().contains("between us"), "{dry}");
}

/// A blind vote of three people. `reviewer` has asked for advice, which is a branch beside the vote.
async fn advised(app: &TestApp) -> Value {
    offer(app, "committee", committee(), json!({ "advice": true })).await;
    let offers = ["reviewer", "reviewer2", "approver"].map(|user| json!({ "users": [user] }));
    let data = json!({
        "assign": { "offers": offers, "needed": 3, "blind": true },
        "advice": { "offers": [{ "users": ["admin"] }], "needed": 1 },
    });
    let instance = vote(app, "advised", data).await;
    let decision = json!({ "outcome": "ASK" });
    decide(app, "reviewer", &tasks(&instance)[0], decision).await
}

/// What began the advice and what ended it, as this person sees it.
async fn told_of_advice(app: &TestApp, person: &str, instance: &Value) -> Value {
    let path = format!("/v1/instances/{}/history", id(instance));
    let history = app.get(person, &path).await.expect(200);
    let mut states = history["data"].as_array().expect("states").iter();
    let advice = states.find(|state| state["name"] == "Advice");
    let advice = advice.expect("the advice");
    let left = &advice["left"];
    json!([
        advice["enteredTrigger"],
        advice["caller"],
        left["trigger"],
        left["actor"]
    ])
}

#[tokio::test]
async fn the_vote_that_began_or_cancelled_a_branch_is_hidden() {
    let app = TestApp::empty().await;
    let advised = advised(&app).await;
    let of_instance = format!("/v1/instances/{}", id(&advised));
    let diagram = format!("{of_instance}/diagram.svg");
    for (person, led) in [("reviewer2", json!(null)), ("reviewer", json!("ASK"))] {
        let caller = led.as_str().map(|_| person);
        let shown = app.get(person, &of_instance).await.expect(200);
        let advice = &shown["states"][1];
        assert_eq!(
            (
                &advice["name"],
                &advice["enteredTrigger"],
                &advice["caller"]
            ),
            (&json!("Advice"), &led, &json!(caller))
        );
        let found = told_of_advice(&app, person, &advised).await;
        assert_eq!(found, json!([led, caller, null, null]), "{person}");
        let drawn = app.get(person, &diagram).await;
        assert_eq!(drawn.text.contains(" led to "), led.is_string());
    }
    let entered = published(&app, &advised, "state.entered", 2).await;
    hides(&entered[1], &["actor"]);
    let state = &entered[1]["data"]["state"];
    assert_eq!(
        (&state["name"], state.get("enteredTrigger")),
        (&json!("Advice"), None)
    );

    let decision = json!({ "outcome": "ASK" });
    decide(&app, "reviewer2", &tasks(&advised)[1], decision).await;
    let cancelled = published(&app, &advised, "state.cancelled", 1).await;
    hides(&cancelled[0], &["trigger", "actor"]);
    for (person, expected) in [
        ("approver", json!([null, null, null, null])),
        ("reviewer", json!(["ASK", "reviewer", null, null])),
        ("reviewer2", json!([null, null, "ASK", "reviewer2"])),
    ] {
        let found = told_of_advice(&app, person, &advised).await;
        assert_eq!(found, expected, "{person}");
    }

    let no = json!({ "outcome": "NO" });
    decide(&app, "approver", &tasks(&advised)[2], no).await;
    let found = told_of_advice(&app, "author", &advised).await;
    assert_eq!(found, json!(["ASK", "reviewer", "ASK", "reviewer2"]));
    prove_all(&app).await;
}

#[tokio::test]
async fn a_released_task_does_not_reveal_who_voted() {
    let app = chambers().await;
    let offer = json!({ "users": ["reviewer", "reviewer2"] });
    let assign = json!({ "offers": [offer, offer, offer], "needed": 2, "blind": true });
    let instance = vote(&app, "blind", json!({ "assign": assign })).await;
    claim(&app, "reviewer", &tasks(&instance)[1]).await;
    let vote = json!({ "outcome": "YES" });
    decide(&app, "reviewer", &tasks(&instance)[0], vote).await;
    let released = published(&app, &instance, "task.released", 1).await;
    hides(&released[0], &["actor"]);
    assert_eq!(released[0]["data"]["previousOwner"], "reviewer");
    prove_all(&app).await;
}
