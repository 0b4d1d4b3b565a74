//! A decision meets every other command: whichever comes first, the other is told.

use super::*;
use crate::audit::commands::prove_all;
use crate::support::length::at_length;

/// A command that does not go together with a decision.
struct Rival {
    what: &'static str,
    user: &'static str,
    body: Value,
    /// About the instance, rather than its task.
    whole: bool,
    /// What the decider is told when it came first: the code, and the reason or what the conflict names.
    told: (&'static str, Value),
}

fn rivals() -> Vec<Rival> {
    let why = json!({ "reason": "urgent" });
    let on = json!({ "to": "approver", "reason": "away" });
    let rival = |what, user, body: &Value, whole, told| Rival {
        what,
        user,
        body: body.clone(),
        whole,
        told,
    };
    let taken = || ("forbidden", json!("not_owner"));
    let cancelled = json!({ "action": "cancelled", "by": "admin" });
    let suspended = json!({ "reason": "urgent", "by": "admin" });
    let away = json!({ "version": 2 });
    vec![
        rival("release", "reviewer", &json!({}), false, taken()),
        rival("delegate", "reviewer", &on, false, taken()),
        rival("reassign", "admin", &on, false, taken()),
        rival("reset", "admin", &why, false, taken()),
        // The second version asks others.
        rival("migrate", "admin", &away, true, taken()),
        rival("cancel", "admin", &why, true, ("task_taken", cancelled)),
        rival(
            "suspend",
            "admin",
            &why,
            true,
            ("instance_suspended", suspended),
        ),
    ]
}

/// One round: the owner decides, through all hosts but the last, while the rival acts through that one.
async fn meet(app: &TestApp, hosts: &[Host], rival: &Rival, round: usize) -> bool {
    let entity = format!("{} {} {round}", rival.what, hosts.len());
    let data = json!({ "assign": { "offers": [{ "groups": ["reviewers"] }], "needed": 1 } });
    let instance = vote(app, &entity, data).await;
    let task = id(&instance["states"][0]["tasks"][0]).to_owned();
    let path = |what: &str| format!("/v1/tasks/{task}/{what}");
    app.post("reviewer", &path("claim"), json!({}))
        .await
        .expect(200);
    let outcomes = ["YES", "NO"].into_iter().take(hosts.len() - 1);
    let decide = |outcome| Wish::new("reviewer", path("decide"), json!({ "outcome": outcome }));
    let mut wishes: Vec<_> = outcomes.map(decide).collect();
    let of = if rival.whole {
        format!("/v1/instances/{}/{}", id(&instance), rival.what)
    } else {
        path(rival.what)
    };
    wishes.push(Wish::new(rival.user, of, rival.body.clone()));
    let mut answers = at_once(hosts, wishes).await;
    let other = answers.pop().expect("the rival's answer");
    let after = shown(app, &instance).await;
    let by_decision = answers.iter().any(|answer| answer.status == 200);
    let decisions = recorded(app, &instance, "DECISION_RECORDED").await;
    assert_eq!(decisions, usize::from(by_decision));
    if by_decision {
        decided(answers, &other, rival, &after);
    } else {
        let changed = other.expect(200);
        assert_eq!(changed["instance"]["revision"], after["revision"]);
        for lost in answers {
            undecided(&lost, rival, &after);
        }
    }
    by_decision
}

/// The decision came first, and ended the instance: all others are told of it.
#[track_caller]
fn decided(answers: Vec<Answer>, other: &Answer, rival: &Rival, after: &Value) {
    let (won, lost) = winner(answers, 200);
    let outcome = &won["task"]["decision"]["outcome"];
    let ended = if outcome == "YES" {
        "APPROVED"
    } else {
        "REJECTED"
    };
    assert_eq!(after["outcome"], ended);
    let of_task = (!rival.whole).then_some(other);
    for lost in lost.iter().chain(of_task) {
        assert_eq!(lost.body["code"], "task_taken", "{}", lost.text);
        let conflict = &lost.body["conflict"];
        let named = (&conflict["by"], &conflict["action"], &conflict["outcome"]);
        assert_eq!(named, (&json!("reviewer"), &json!("decided"), outcome));
        assert_eq!(conflict["revision"], after["revision"]);
    }
    if rival.whole {
        assert_eq!(other.body["code"], "instance_ended", "{}", other.text);
        let conflict = &other.body["conflict"];
        let named = (&conflict["status"], &conflict["revision"]);
        assert_eq!(named, (&json!("COMPLETED"), &after["revision"]));
    }
}

/// The rival came first.
#[track_caller]
fn undecided(lost: &Answer, rival: &Rival, after: &Value) {
    let (code, told) = &rival.told;
    assert_eq!(lost.body["code"], *code, "{}: {}", rival.what, lost.text);
    if let Some(reason) = told.as_str() {
        assert_eq!(
            (lost.status, lost.body["reason"].as_str()),
            (403, Some(reason))
        );
        let task = &after["states"][0]["tasks"][0];
        // Whoever has it now is named, if anybody.
        let conflict = &lost.body["conflict"];
        assert_eq!(conflict["owner"], task["owner"], "{}", lost.text);
        assert_eq!(conflict["at"].is_string(), task["owner"].is_string());
        assert_eq!(conflict["revision"], after["revision"]);
        return;
    }
    assert_eq!(lost.status, 409);
    for (name, value) in told.as_object().expect("members") {
        assert_eq!(lost.body["conflict"][name], *value, "{}", lost.text);
    }
    assert_eq!(lost.body["conflict"]["revision"], after["revision"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_and_its_rival_never_both_win() {
    let (app, hosts) = ring().await;
    vote_on(&app, &[json!({}), json!({ "group": "approvers" })]).await;
    let mut first = 0;
    let mut rounds = 0;
    for rival in rivals() {
        for count in HOSTS {
            for round in 0..at_length(6, 200) {
                first += usize::from(meet(&app, &hosts[..count], &rival, round).await);
                rounds += 1;
            }
        }
    }
    // Both orders were seen.
    assert!(first > 0 && first < rounds, "{first} of {rounds}");
    prove_all(&app).await;
}

/// An operator's word stands, whether somebody had claimed the task before or not.
#[tokio::test(flavor = "multi_thread")]
async fn reassign_against_claim_leaves_one_owner() {
    let (app, hosts) = ring().await;
    vote_on(&app, &[json!({})]).await;
    for count in HOSTS {
        for round in 0..at_length(6, 200) {
            let data =
                json!({ "assign": { "offers": [{ "groups": ["reviewers"] }], "needed": 1 } });
            let instance = vote(&app, &format!("given {count} {round}"), data).await;
            let task = id(&instance["states"][0]["tasks"][0]).to_owned();
            let path = |what: &str| format!("/v1/tasks/{task}/{what}");
            let people = ["reviewer", "reviewer2"].into_iter().take(count - 1);
            let mut wishes: Vec<_> = people
                .map(|user| Wish::new(user, path("claim"), json!({})))
                .collect();
            let to = json!({ "to": "approver", "reason": "urgent" });
            wishes.push(Wish::new("admin", path("reassign"), to));
            let mut answers = at_once(&hosts[..count], wishes).await;
            let reassigned = answers.pop().expect("an answer").expect(200);
            let previous = &reassigned["events"][0]["data"]["previous"];
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
