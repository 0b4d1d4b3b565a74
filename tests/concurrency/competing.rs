//! A decision competes with each command that ends, moves or reassigns its task. The refusal names the winner. After a command that
//! releases the task to its candidates, the decision claims it again, and both succeed.

use super::*;
use crate::audit::commands::prove_all;
use crate::support::length::at_length;

/// A command that competes with a decision.
struct Competitor {
    what: &'static str,
    user: &'static str,
    body: Value,
    /// Whether it is on the instance, not on its task.
    whole: bool,
    /// The response to the decider if this command came first: the code, and the reason or the conflict. None if the decision
    /// succeeds anyway.
    told: Option<(&'static str, Value)>,
}

fn competing() -> Vec<Competitor> {
    let why = json!({ "reason": "urgent" });
    let on = json!({ "to": "approver", "reason": "away" });
    let competitor = |what, user, body: &Value, whole, told| Competitor {
        what,
        user,
        body: body.clone(),
        whole,
        told,
    };
    let taken = || Some(("forbidden", json!("not_owner")));
    let others = ("forbidden", json!("not_a_candidate"));
    let cancelled = json!({ "action": "cancelled", "by": "admin" });
    let suspended = json!({ "reason": "urgent", "by": "admin" });
    let away = json!({ "version": 2 });
    vec![
        competitor("release", "reviewer", &json!({}), false, None),
        competitor("delegate", "reviewer", &on, false, taken()),
        competitor("reassign", "admin", &on, false, taken()),
        competitor("reset", "admin", &why, false, None),
        // The second version has other candidates.
        competitor("migrate", "admin", &away, true, Some(others)),
        competitor(
            "cancel",
            "admin",
            &why,
            true,
            Some(("task_taken", cancelled)),
        ),
        competitor(
            "suspend",
            "admin",
            &why,
            true,
            Some(("instance_suspended", suspended)),
        ),
    ]
}

/// One round: the owner decides through all hosts but the last, while the competing command goes through that one.
async fn meet(app: &TestApp, hosts: &[Host], competitor: &Competitor, round: usize) -> bool {
    let entity = format!("{} {} {round}", competitor.what, hosts.len());
    let data = json!({ "assign": { "offers": [{ "groups": ["reviewers"] }], "needed": 1 } });
    let instance = vote(app, &entity, data).await;
    let task = id(&instance["states"][0]["tasks"][0]).to_owned();
    let path = |what: &str| format!("/v1/tasks/{task}/{what}");
    app.post("reviewer", &path("claim"), json!({}))
        .await
        .expect(200);
    let outcomes = ["YES", "NO"].into_iter().take(hosts.len() - 1);
    let decide =
        |outcome| HostRequest::new("reviewer", path("decide"), json!({ "outcome": outcome }));
    let mut requests: Vec<_> = outcomes.map(decide).collect();
    let of = if competitor.whole {
        format!("/v1/instances/{}/{}", id(&instance), competitor.what)
    } else {
        path(competitor.what)
    };
    requests.push(HostRequest::new(
        competitor.user,
        of,
        competitor.body.clone(),
    ));
    let mut answers = at_once(hosts, requests).await;
    let other = answers.pop().expect("the competitor's answer");
    let after = shown(app, &instance).await;
    let was_decided = answers.iter().any(|answer| answer.status == 200);
    let by_decision = was_decided && other.status != 200;
    let decisions = recorded(app, &instance, "DECISION_RECORDED").await;
    assert_eq!(decisions, usize::from(was_decided));
    if by_decision {
        decided(answers, &other, competitor, &after);
    } else if competitor.told.is_none() {
        assert!(
            was_decided,
            "{}: the task was offered anew",
            competitor.what
        );
        assert_eq!(recorded(app, &instance, "TASK_CLAIMED").await, 2);
        winner(answers, 200);
    } else {
        let changed = other.expect(200);
        assert_eq!(changed["instance"]["revision"], after["revision"]);
        for lost in answers {
            undecided(&lost, competitor, &after);
        }
    }
    by_decision
}

/// The decision came first and ended the instance. All others are refused for that reason.
#[track_caller]
fn decided(answers: Vec<Answer>, other: &Answer, competitor: &Competitor, after: &Value) {
    let (won, lost) = winner(answers, 200);
    let outcome = &won["task"]["decision"]["outcome"];
    let ended = if outcome == "YES" {
        "APPROVED"
    } else {
        "REJECTED"
    };
    assert_eq!(after["outcome"], ended);
    let of_task = (!competitor.whole).then_some(other);
    for lost in lost.iter().chain(of_task) {
        assert_eq!(lost.body["code"], "task_taken", "{}", lost.text);
        let conflict = &lost.body["conflict"];
        let named = (&conflict["by"], &conflict["action"], &conflict["outcome"]);
        assert_eq!(named, (&json!("reviewer"), &json!("decided"), outcome));
        assert_eq!(conflict["revision"], after["revision"]);
    }
    if competitor.whole {
        assert_eq!(other.body["code"], "instance_ended", "{}", other.text);
        let conflict = &other.body["conflict"];
        let named = (&conflict["status"], &conflict["revision"]);
        assert_eq!(named, (&json!("COMPLETED"), &after["revision"]));
    }
}

/// The competing command came first.
#[track_caller]
fn undecided(lost: &Answer, competitor: &Competitor, after: &Value) {
    let (code, details) = competitor.told.as_ref().expect("the decision is lost");
    assert_eq!(
        lost.body["code"], *code,
        "{}: {}",
        competitor.what, lost.text
    );
    if let Some(reason) = details.as_str() {
        assert_eq!(
            (lost.status, lost.body["reason"].as_str()),
            (403, Some(reason))
        );
        if reason != "not_owner" {
            return;
        }
        let task = &after["states"][0]["tasks"][0];
        // The present owner is named, if there is one.
        let conflict = &lost.body["conflict"];
        assert_eq!(conflict["owner"], task["owner"], "{}", lost.text);
        assert_eq!(conflict["at"].is_string(), task["owner"].is_string());
        assert_eq!(conflict["revision"], after["revision"]);
        return;
    }
    assert_eq!(lost.status, 409);
    for (name, value) in details.as_object().expect("members") {
        assert_eq!(lost.body["conflict"][name], *value, "{}", lost.text);
    }
    assert_eq!(lost.body["conflict"]["revision"], after["revision"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_and_a_conflicting_command_never_both_succeed() {
    let (app, hosts) = three_hosts().await;
    vote_on(&app, &[json!({}), json!({ "group": "approvers" })]).await;
    let mut first = 0;
    let mut rounds = 0;
    for competitor in competing() {
        for count in HOSTS {
            for round in 0..at_length(6, 200) {
                first += usize::from(meet(&app, &hosts[..count], &competitor, round).await);
                rounds += 1;
            }
        }
    }
    // Both orders occurred, though not necessarily for each command.
    assert!(first > 0 && first < rounds, "{first} of {rounds}");
    prove_all(&app).await;
}

/// A reassignment succeeds, whether or not somebody has claimed the task before.
#[tokio::test(flavor = "multi_thread")]
async fn a_reassignment_beats_a_concurrent_claim() {
    let (app, hosts) = three_hosts().await;
    vote_on(&app, &[json!({})]).await;
    for count in HOSTS {
        for round in 0..at_length(6, 200) {
            let data =
                json!({ "assign": { "offers": [{ "groups": ["reviewers"] }], "needed": 1 } });
            let instance = vote(&app, &format!("given {count} {round}"), data).await;
            let task = id(&instance["states"][0]["tasks"][0]).to_owned();
            let path = |what: &str| format!("/v1/tasks/{task}/{what}");
            let people = ["reviewer", "reviewer2"].into_iter().take(count - 1);
            let mut requests: Vec<_> = people
                .map(|user| HostRequest::new(user, path("claim"), json!({})))
                .collect();
            let to = json!({ "to": "approver", "reason": "urgent" });
            requests.push(HostRequest::new("admin", path("reassign"), to));
            let mut answers = at_once(&hosts[..count], requests).await;
            let reassigned = answers.pop().expect("an answer").expect(200);
            let previous = &reassigned["events"][0]["data"]["previousOwner"];
            let (won, lost): (Vec<_>, Vec<_>) =
                answers.into_iter().partition(|answer| answer.status == 200);
            let owners: Vec<_> = won
                .iter()
                .map(|answer| &answer.body["task"]["owner"])
                .collect();
            assert_eq!(
                owners,
                previous
                    .as_str()
                    .map(|_| previous)
                    .into_iter()
                    .collect::<Vec<_>>()
            );
            for lost in lost {
                let problem = lost.problem(409, "task_taken");
                let conflict = &problem["conflict"];
                assert_eq!(conflict["action"], "claimed");
                let by = &conflict["by"];
                assert!(*by == json!("approver") || by == previous, "{conflict}");
            }
            let after = shown(&app, &instance).await;
            assert_eq!(after["states"][0]["tasks"][0]["owner"], "approver");
        }
    }
    prove_all(&app).await;
}
