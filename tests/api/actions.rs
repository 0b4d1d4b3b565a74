//! An offered action can be executed, and a refused one cannot: each response is compared with the commands themselves.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;

const CASES: u32 = 6;
const STEPS_MAX: usize = 5;
const ACTORS: [&str; 6] = [
    "author",
    "reviewer",
    "reviewer2",
    "approver",
    "outsider",
    "admin",
];

async fn actions(app: &TestApp, user: &str, instance: &str) -> Vec<Value> {
    let path = format!("/v1/instances/{instance}/actions");
    let answer = app.get(user, &path).await.expect(200);
    answer["actions"].as_array().expect("actions").clone()
}

/// Bodies for the command of an action. The first one is the smallest.
fn bodies(action: &Value, inputs: &[Value]) -> Vec<Value> {
    let outcome = &action["outcome"];
    match action["action"].as_str() {
        Some("decide") => {
            let least = [json!({ "outcome": outcome })];
            let with_inputs = inputs.iter().map(|input| {
                let mut body = input.clone();
                body["outcome"] = outcome.clone();
                body
            });
            least.into_iter().chain(with_inputs).collect()
        }
        Some("suspend") if action["taskId"].is_string() => {
            vec![json!({}), json!({ "reason": "withdrawn" })]
        }
        Some("comment") => vec![json!({ "comment": "" }), json!({ "comment": "Hm." })],
        Some("cancel" | "suspend" | "reset") => {
            vec![json!({ "reason": "" }), json!({ "reason": "withdrawn" })]
        }
        Some("delegate" | "reassign") => {
            let to = [
                "",
                "approver",
                "reviewer2",
                "reviewer",
                "author",
                "dee",
                "eli",
            ];
            let to =
                to.map(|to| json!({ "to": to, "reason": if to.is_empty() { "" } else { "away" } }));
            to.to_vec()
        }
        _ => vec![json!({})],
    }
}

/// Compares one action with its command: it is offered if and only if some input is accepted.
async fn hold(app: &TestApp, user: &str, instance: &str, action: &Value, inputs: &[Value]) {
    let what = action["action"].as_str().expect("an action");
    let path = match action["taskId"].as_str() {
        Some(task) => format!("/v1/tasks/{task}/{what}?dryRun=true"),
        None => format!("/v1/instances/{instance}/{what}?dryRun=true"),
    };
    let mut answers = Vec::new();
    for body in bodies(action, inputs) {
        answers.push(app.post(user, &path, body).await);
    }
    let accepted = answers.iter().any(|answer| answer.status == 200);
    assert_eq!(action["allowed"], accepted, "{user}: {action} {answers:?}");
    let least = &answers[0];
    let required = action["required"].as_array();
    assert_eq!(
        required.is_none(),
        !accepted || least.status == 200,
        "{user}: {action} {least:?}"
    );
    if least.body["code"] == "invalid_input" && accepted {
        let required = required.expect("violations");
        assert_eq!(json!(required), least.body["errors"]);
    }
    // A refused action has the reason of the command's problem, for every input.
    // A malformed input is refused before the host checks the sender.
    let refused = answers.iter().filter(|_| !accepted);
    for answer in refused.filter(|answer| answer.body["code"] != "invalid_request") {
        let problem = &answer.body;
        let code = match problem["code"].as_str() {
            Some("forbidden") => &problem["reason"],
            _ => &problem["code"],
        };
        assert_eq!(
            &action["refusal"]["code"], code,
            "{user}: {action} {problem}"
        );
        if code != "logic_fault" {
            assert_eq!(
                action["refusal"]["message"], problem["detail"],
                "{user}: {action}"
            );
        }
    }
}

/// Checks all actions of each actor, then executes one that an actor may do.
async fn walk(app: &TestApp, entity: &str, choices: &[(usize, usize)]) {
    let inputs = [json!({ "comment": "because" })];
    let started = app.started(entity).await;
    let id = started["id"].as_str().expect("an id");
    for (actor, choice) in choices {
        let mut open = Vec::new();
        for offset in 0..3 {
            let user = ACTORS[(actor + offset * 2 + offset) % ACTORS.len()];
            let listed = actions(app, user, id).await;
            assert!(listed.iter().any(|action| action["action"] == "cancel"));
            for action in &listed {
                hold(app, user, id, action, &inputs).await;
            }
            open.extend(
                listed
                    .into_iter()
                    .filter(|one| one["allowed"] == true)
                    .map(|one| (user, one)),
            );
        }
        let Some((user, action)) = open.get(choice % open.len().max(1)) else {
            continue;
        };
        let what = action["action"].as_str().expect("an action");
        let path = match action["taskId"].as_str() {
            Some(task) => format!("/v1/tasks/{task}/{what}"),
            None => format!("/v1/instances/{id}/{what}"),
        };
        let accepted = |answer: &Answer| matches!(answer.status, 200 | 201);
        let mut done = false;
        for body in bodies(action, &inputs).into_iter().rev() {
            done = done || accepted(&app.post(user, &path, body).await);
        }
        assert!(done, "{user}: {action}");
    }
}

#[test]
fn an_action_is_offered_if_and_only_if_some_input_is_accepted() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let app = runtime.block_on(TestApp::start());
    // Further people, so that a task can always be reassigned; one of them is a substitute.
    runtime.block_on(people::known(&app, &["dee", "eli"]));
    runtime.block_on(people::absent(&app, "reviewer", "outsider", None));
    let mut runner = TestRunner::new(Config {
        cases: CASES,
        failure_persistence: None,
        ..Config::default()
    });
    let number = std::cell::Cell::new(0);
    let walks = prop::collection::vec((0..ACTORS.len(), 0..100_usize), 1..=STEPS_MAX);
    let done = runner.run(&walks, |choices| {
        number.set(number.get() + 1);
        runtime.block_on(walk(&app, &format!("doc-{}", number.get()), &choices));
        Ok(())
    });
    done.unwrap_or_else(|error| panic!("{error}"));
    runtime.block_on(async move { drop(app) });
}

/// The same for a flow whose answer depends on the input.
#[tokio::test]
async fn an_action_is_offered_if_it_depends_on_the_input() {
    let app = TestApp::empty().await;
    with_hostile(&app).await;
    let behave = |behaviour: &str| json!({ "input": { "behaviour": behaviour } });
    let inputs = [behave("invalid"), behave("ok"), behave("deny")];
    for (number, data) in [json!({}), json!({ "behaviour": "unfit" })]
        .into_iter()
        .enumerate()
    {
        let body = hostile_start(&format!("t-{number}"), data);
        let instance = app.post("author", "/v1/instances", body).await.started();
        claimed(&app, "reviewer", &instance).await;
        let id = instance["id"].as_str().expect("an id");
        let listed = actions(&app, "reviewer", id).await;
        let decide = listed
            .iter()
            .find(|one| one["action"] == "decide")
            .expect("a decision");
        assert_eq!(
            (&decide["allowed"], &decide["outcome"]),
            (&json!(true), &json!("GO"))
        );
        for action in &listed {
            hold(&app, "reviewer", id, action, &inputs).await;
        }
    }
}

#[tokio::test]
async fn an_invalid_verdict_lists_what_is_required() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    claimed(&app, "reviewer", &instance).await;
    let id = instance["id"].as_str().expect("an id");
    let listed = actions(&app, "reviewer", id).await;
    let of = |what: &str, outcome: Option<&str>| {
        let found = listed
            .iter()
            .find(|one| one["action"] == what && one["outcome"].as_str() == outcome);
        found
            .unwrap_or_else(|| panic!("{what} is not explained"))
            .clone()
    };
    let reject = of("decide", Some("REJECT"));
    assert_eq!(
        (&reject["allowed"], &reject["required"][0]["pointer"]),
        (&json!(true), &json!("/comment"))
    );
    let approve = of("decide", Some("APPROVE"));
    assert_eq!(
        (&approve["allowed"], &approve["required"]),
        (&json!(true), &Value::Null)
    );
    assert_eq!(of("release", None)["allowed"], true);
    let cancel = of("cancel", None);
    assert_eq!(
        (&cancel["allowed"], &cancel["refusal"]["code"]),
        (&json!(false), &json!("permission_missing"))
    );

    // The author gets the reason why she may not decide.
    let listed = actions(&app, "author", id).await;
    let claim = listed
        .iter()
        .find(|one| one["action"] == "claim")
        .expect("a claim");
    assert_eq!(claim["refusal"]["code"], "own_request");
    assert!(
        claim["refusal"]["message"]
            .as_str()
            .expect("words")
            .contains("author")
    );

    // An ended instance offers only a comment, and gives its end as the reason for the rest.
    app.post(
        "admin",
        &format!("/v1/instances/{id}/cancel"),
        json!({ "reason": "withdrawn" }),
    )
    .await
    .expect(200);
    let listed = actions(&app, "admin", id).await;
    assert_eq!(listed.len(), 3);
    assert_eq!(
        (&listed[0]["action"], &listed[0]["allowed"]),
        (&json!("comment"), &json!(true))
    );
    assert_eq!(listed[1]["refusal"]["code"], "instance_ended", "{listed:?}");
    // The administrator is not the author, who may restart the instance.
    assert_eq!(
        (&listed[2]["action"], &listed[2]["refusal"]["code"]),
        (&json!("restart"), &json!("not_an_initiator"))
    );
    let message = listed[2]["refusal"]["message"].as_str().expect("a text");
    assert!(message.contains("group authors"), "{message}");
    assert!(message.contains("GET /v1/groups/authors"), "{message}");
    let listed = actions(&app, "author", id).await;
    assert_eq!(
        (&listed[2]["action"], &listed[2]["allowed"]),
        (&json!("restart"), &json!(true))
    );
}

/// The actions on the task that an operator gets, and those on the instance.
#[tokio::test]
async fn actions_that_do_not_apply_are_not_listed() {
    let app = TestApp::start().await;
    people::known(&app, &["dee"]).await;
    let instance = app.started("doc-1").await;
    let id = instance["id"].as_str().expect("an id");
    let (task, whole) = (task_of(&instance), format!("/v1/instances/{id}"));
    let reason = json!({ "reason": "a question" });
    let names = async || -> Vec<String> {
        let listed = actions(&app, "admin", id).await;
        let names = listed.iter().filter_map(|one| one["action"].as_str());
        names.map(str::to_owned).collect()
    };
    let steps = [
        (
            "",
            json!({}),
            "claim reassign suspend decide decide comment cancel suspend",
        ),
        (
            "claim",
            json!({}),
            "claim release delegate reassign reset suspend decide decide comment cancel suspend",
        ),
        (
            "delegate",
            json!({ "to": "dee", "reason": "away" }),
            "claim release delegate resolve reassign reset suspend decide decide comment cancel suspend",
        ),
        (
            "suspend",
            reason.clone(),
            "claim release delegate resolve reassign reset resume decide decide comment cancel suspend",
        ),
    ];
    for (verb, body, wanted) in steps {
        let user = if verb == "suspend" { "dee" } else { "reviewer" };
        if !verb.is_empty() {
            let path = format!("/v1/tasks/{task}/{verb}");
            app.post(user, &path, body).await.expect(200);
        }
        assert_eq!(names().await.join(" "), wanted, "after {verb}");
    }
    for (verb, last) in [("suspend", "cancel resume"), ("cancel", "cancel restart")] {
        let path = format!("{whole}/{verb}");
        app.post("admin", &path, reason.clone()).await.expect(200);
        assert!(names().await.join(" ").ends_with(last), "after {verb}");
    }
}

#[tokio::test]
async fn a_response_has_a_limited_number_of_actions_and_counts_the_rest() {
    const TASKS: usize = 40;
    const BYTES_MAX: usize = 1_200_000;
    let app = TestApp::empty().await;
    app.publish("committee", guests::committee(), &json!({}))
        .await
        .expect(201);
    let path = "/v1/definitions/committee/versions/1/activate";
    app.post("admin", path, json!({})).await.expect(200);
    let offers = vec![json!({ "owner": "reviewer", "groups": ["reviewers"] }); TASKS];
    let (mut counts, mut paths) = (Vec::new(), Vec::new());
    for complaints in [1, 90] {
        let start = json!({
            "definitionKey": "committee", "entityType": "thing", "entityId": complaints.to_string(),
            "data": { "assign": { "offers": offers, "needed": 1 }, "complaints": complaints },
        });
        let instance = app.post("author", "/v1/instances", start).await.started();
        let id = instance["id"].as_str().expect("an id");
        let path = format!("/v1/instances/{id}/actions");
        let answer = app.get("reviewer", &path).await;
        paths.push(path);
        assert!(answer.text.len() < BYTES_MAX, "{} bytes", answer.text.len());
        let answer = answer.expect(200);
        let tried = answer["actions"].as_array().expect("actions").len();
        let untried = answer["omitted"]["actions"].as_u64().expect("a number");
        counts.push((tried, untried));
    }
    // A host with nearly no time for a request tries one action, and lists those of the instance as a whole.
    let hasty = app
        .beside_at(app.database.url(), Duration::from_millis(1))
        .await;
    let answer = hasty.send("reviewer", "GET", &paths[0], &[], None).await;
    let answer = answer.expect(200);
    let left = answer["omitted"]["actions"].as_u64().expect("a number");
    assert!(left > 0, "{answer}");
    let listed = answer["actions"].as_array().expect("actions");
    let names: Vec<_> = listed
        .iter()
        .filter_map(|one| one["action"].as_str())
        .collect();
    assert!(
        names.ends_with(&["comment", "cancel", "suspend"]),
        "{names:?}"
    );
    let [(few, none), (cut, left)] = counts[..] else {
        unreachable!("two were told");
    };
    assert!(none == 0 && left > 0, "{counts:?}");
    assert_eq!(few, cut + usize::try_from(left).expect("few"), "{counts:?}");
}
