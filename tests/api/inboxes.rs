//! An inbox in one request: what the list of tasks contains about each task, and its cost.

use super::*;
use crate::support::statements::Statements;

/// The tasks of a page.
pub(super) async fn tasks(app: &TestApp, user: &str, query: &str) -> Vec<Value> {
    let page = app
        .get(user, &format!("/v1/tasks?{query}"))
        .await
        .expect(200);
    page["data"].as_array().expect("data").clone()
}

/// The actions on a task as the instance shows them, without what a row of a list leaves out.
async fn actions(app: &TestApp, user: &str, task: &Value) -> Vec<Value> {
    let path = format!(
        "/v1/instances/{}/actions",
        task["instanceId"].as_str().expect("an id")
    );
    let answer = app.get(user, &path).await.expect(200);
    let all = answer["actions"].as_array().expect("actions").iter();
    let of_task = all.filter(|action| action["taskId"] == task["id"]);
    of_task
        .map(|action| {
            let mut action = action.clone();
            let members = action.as_object_mut().expect("an object");
            for repeated in ["taskId", "state"] {
                members.remove(repeated);
            }
            action
        })
        .collect()
}

#[tokio::test]
async fn a_listed_task_has_what_its_decision_needs() {
    let app = TestApp::start().await;
    let put = json!({ "name": "Rita Reviewer" });
    app.put("admin", "/v1/people/reviewer", put)
        .await
        .expect(200);
    let first = app.started("doc-1").await;
    claimed(&app, "reviewer", &first).await;

    let plain = app.get("reviewer", "/v1/tasks").await.expect(200);
    let task = &plain["data"][0];
    for (member, expected) in [
        ("instanceTitle", json!("A plan")),
        ("stateTitle", json!("First review")),
        ("stateDescription", json!("")),
        ("stateId", first["states"][0]["id"].clone()),
        ("entityId", json!("doc-1")),
    ] {
        assert_eq!(task[member], expected, "{member}");
    }
    let reject = json!({
        "outcome": "REJECT", "title": "REJECT", "comment": "required", "needsInput": false, "required": ["/comment"],
    });
    assert_eq!(task["outcomes"][1], reject);
    for absent in [&task["actions"], &plain["people"], &plain["groups"]] {
        assert!(absent.is_null(), "{plain}");
    }

    let path = "/v1/tasks?include=people,actions,outcomes";
    let page = app.get("reviewer", path).await.expect(200);
    let names = json!({ "author": "author", "reviewer": "Rita Reviewer" });
    assert_eq!(page["people"], names);
    assert_eq!(page["groups"], json!({ "reviewers": "reviewers" }));
    let actions = page["data"][0]["actions"].as_array().expect("actions");
    let allowed = actions.iter().filter(|action| action["allowed"] == true);
    let allowed: Vec<_> = allowed.map(|action| &action["action"]).collect();
    assert_eq!(
        allowed,
        ["release", "delegate", "suspend", "decide", "decide"]
    );
    let path = "/v1/tasks?include=people&limit=50&include=actions&include=outcomes";
    assert_eq!(app.get("reviewer", path).await.expect(200), page);
    for wrong in [
        "include=",
        "include=people&include=names",
        "limit=50&limit=50",
        "include=names",
        "include=people,",
        "include=people,%20actions",
    ] {
        let answer = app.get("reviewer", &format!("/v1/tasks?{wrong}")).await;
        answer.problem(400, "malformed_request");
    }
}

#[tokio::test]
async fn a_page_names_only_the_people_of_its_own_tasks() {
    let app = TestApp::start().await;
    let member = "/v1/groups/authors/members/approver";
    app.put("admin", member, json!({})).await.expect(200);
    app.started("doc-1").await;
    let second = app.post("approver", "/v1/instances", approval_start("doc-2"));
    second.await.expect(201);
    let list = "/v1/tasks?view=all&include=people&limit=1";
    let first = app.get("reviewer", list).await.expect(200);
    assert_eq!(first["people"], json!({ "author": "author" }));
    let next = first["page"]["next"].as_str().expect("a cursor");
    let rest = app.get("reviewer", &format!("{list}&after={next}")).await;
    let rest = rest.expect(200);
    assert_eq!(rest["people"], json!({ "approver": "approver" }));
    assert_eq!(rest["page"]["next"], Value::Null);
}

#[tokio::test]
async fn outcomes_have_their_forms() {
    let app = TestApp::empty().await;
    let finance = ["reviewer", "reviewer2", "fay", "finn", "approver"];
    people::known(&app, &finance).await;
    for group in ["cfo", "finance-office"] {
        let path = format!("/v1/groups/{group}");
        app.put("admin", &path, json!({ "name": group }))
            .await
            .expect(200);
    }
    let config = json!({ "finance": finance });
    let published = app
        .publish("purchase-approval", guests::purchase_approval(), &config)
        .await;
    published.expect(201);
    let activate = "/v1/definitions/purchase-approval/versions/1/activate";
    app.post("admin", activate, json!({})).await.expect(200);
    let manager = json!({ "manager": "approver" });
    app.put("admin", "/v1/people/author/manager", manager)
        .await
        .expect(200);
    let body = json!({
        "definitionKey": "purchase-approval", "entityType": "purchase", "entityId": "1",
        "data": { "amount": 900, "currency": "EUR", "supplier": "Paper & Co" },
    });
    let instance = app.post("author", "/v1/instances", body).await.started();
    app.decided("approver", &instance, json!({ "outcome": "APPROVE" }))
        .await;
    let finance = tasks(&app, "reviewer", "view=available&include=outcomes").await;
    let approve = &finance[0]["outcomes"][0];
    assert_eq!(approve["outcome"], "APPROVE");
    assert_eq!(
        approve["required"],
        json!(["/input/costCentre"]),
        "{approve}"
    );
    assert!(
        approve["input"]["properties"]["costCentre"].is_object(),
        "{approve}"
    );
    let brief = tasks(&app, "reviewer", "view=available").await;
    let brief = &brief[0]["outcomes"][0];
    assert_eq!(
        (&brief["required"], &brief["input"]),
        (&approve["required"], &Value::Null)
    );
    // The approver decided as the manager, and the states of a purchase are separate.
    let all = tasks(&app, "approver", "view=all&include=actions").await;
    let task = all
        .iter()
        .find(|task| task["state"] == "Finance")
        .expect("a vote");
    assert_eq!(
        task["actions"][0]["refusal"]["code"], "decided_elsewhere",
        "{task}"
    );
    assert_eq!(
        task["actions"],
        json!(actions(&app, "approver", task).await)
    );
}

#[tokio::test]
async fn a_form_keeps_its_digits_in_a_page_of_selected_members() {
    let app = TestApp::empty().await;
    let maximum = r#""maximum":50000.000000000000000001"#;
    let schema =
        format!(r#"{{"type":"object","properties":{{"amount":{{{maximum},"type":"number"}}}}}}"#);
    let config = json!({ "input": schema });
    app.publish("hostile", guests::hostile(), &config)
        .await
        .expect(201);
    let activate = "/v1/definitions/hostile/versions/1/activate";
    app.post("admin", activate, json!({})).await.expect(200);
    let start = hostile_start("1", json!({}));
    app.post("author", "/v1/instances", start).await.expect(201);
    for members in ["", "&fields=outcomes"] {
        let path = format!("/v1/tasks?view=all&include=outcomes{members}");
        let page = app.get("admin", &path).await;
        assert_eq!(page.status, 200, "{}", page.text);
        assert!(page.text.contains(maximum), "{path}: {}", page.text);
    }
}

/// A list shows for each task what its instance shows. Only flow logic, which a list does not call, may refuse more.
#[tokio::test]
async fn a_list_uses_the_rules_of_the_commands() {
    let app = TestApp::start().await;
    people::known(&app, &["dee", "eli"]).await;
    people::absent(&app, "reviewer", "outsider", None).await;
    let (claim, release) = (app.started("doc-1").await, app.started("doc-2").await);
    claimed(&app, "reviewer", &claim).await;
    let suspended = claimed(&app, "reviewer2", &release).await;
    let suspend = format!("/v1/tasks/{suspended}/suspend");
    app.post("reviewer2", &suspend, json!({})).await.expect(200);
    let approved = app.started("doc-3").await;
    app.decided("reviewer", &approved, json!({ "outcome": "APPROVE" }))
        .await;
    let rejected = app.started("doc-4").await;
    let reject = json!({ "outcome": "REJECT", "comment": "Too short" });
    app.decided("reviewer", &rejected, reject).await;
    let whole = app.started("doc-5").await;
    let path = format!(
        "/v1/instances/{}/suspend",
        whole["id"].as_str().expect("an id")
    );
    app.post("admin", &path, json!({ "reason": "a holiday" }))
        .await
        .expect(200);
    for user in [
        "author",
        "reviewer",
        "reviewer2",
        "approver",
        "outsider",
        "admin",
    ] {
        let listed = tasks(&app, user, "view=all&include=actions").await;
        assert_eq!(listed.len(), 5);
        for task in &listed {
            let expected = actions(&app, user, task).await;
            assert!(expected.len() >= 5, "{expected:?}");
            assert_eq!(task["actions"], json!(expected), "{user}: {task}");
        }
    }
    let stop = "/v1/definitions/document-approval/versions/1/stop";
    app.post("admin", stop, json!({ "reason": "wrong" }))
        .await
        .expect(200);
    for task in tasks(&app, "reviewer", "view=all&include=actions").await {
        assert_eq!(
            task["actions"],
            json!(actions(&app, "reviewer", &task).await)
        );
    }
}

/// A committee that votes on three tasks of one group. The tasks, as `reviewer` sees them.
async fn three_votes(app: &TestApp) -> Vec<Value> {
    app.publish("committee", guests::committee(), &json!({}))
        .await
        .expect(201);
    let path = "/v1/definitions/committee/versions/1/activate";
    app.post("admin", path, json!({})).await.expect(200);
    let offers = vec![json!({ "groups": ["reviewers"] }); 3];
    let start = json!({
        "definitionKey": "committee", "entityType": "thing", "entityId": "votes",
        "data": { "assign": { "offers": offers, "needed": 3 } },
    });
    app.post("outsider", "/v1/instances", start).await.started();
    let votes = tasks(app, "reviewer", "view=all&include=actions").await;
    assert_eq!(votes.len(), 3);
    votes
}

async fn decided(app: &TestApp, user: &str, task: &Value) {
    let path = format!("/v1/tasks/{}/decide", task["id"].as_str().expect("an id"));
    let body = json!({ "outcome": task["outcomes"][0]["outcome"] });
    app.post(user, &path, body).await.expect(200);
}

/// A list also considers the other states and tasks of an instance: votes and separate states.
#[tokio::test]
async fn a_list_considers_decisions_in_other_states() {
    let app = TestApp::empty().await;
    let votes = three_votes(&app).await;
    decided(&app, "reviewer", &votes[0]).await;
    let votes = tasks(&app, "reviewer", "view=all&include=actions").await;
    assert_eq!(votes.len(), 2);
    for vote in &votes {
        assert_eq!(
            vote["actions"][0]["refusal"]["code"], "already_decided",
            "{vote}"
        );
        assert_eq!(
            vote["actions"],
            json!(actions(&app, "reviewer", vote).await)
        );
    }
}

/// A person who has decided in a state may claim none of its other tasks, neither for themselves nor may somebody for them.
#[tokio::test]
async fn an_inbox_offers_no_second_vote() {
    let app = TestApp::empty().await;
    let votes = three_votes(&app).await;
    let now = app.engine.clock().now();
    let until = now + jiff::SignedDuration::from_hours(1);
    let away = json!({ "substitute": "approver", "from": now, "until": until });
    app.post("admin", "/v1/people/reviewer/absences", away)
        .await
        .expect(201);
    let offered = async |user: &str, view: &str| {
        let query = format!("view={view}&include=actions");
        let listed = tasks(&app, user, &query).await;
        for task in &listed {
            assert_eq!(task["actions"][0]["action"], "claim", "{user}: {task}");
            assert_eq!(task["actions"][0]["allowed"], true, "{user}: {task}");
        }
        listed.len()
    };
    for user in ["reviewer", "reviewer2", "approver"] {
        assert_eq!(offered(user, "available").await, 3, "{user}");
    }
    decided(&app, "reviewer", &votes[0]).await;
    for (user, view, expected) in [
        ("reviewer", "available", 0),
        ("reviewer", "groups", 0),
        ("approver", "available", 0),
        ("reviewer2", "available", 2),
        ("reviewer2", "groups", 2),
    ] {
        assert_eq!(offered(user, view).await, expected, "{user} {view}");
    }
    // A search reads the tasks in another way.
    let found = tasks(&app, "reviewer", "view=available&q=votes").await;
    assert_eq!(found, Vec::<Value>::new());
}

/// A requester may claim tasks of own work alone, also where flow logic offers a task to them by name.
#[tokio::test]
async fn an_inbox_offers_no_own_request() {
    let app = TestApp::empty().await;
    app.publish("committee", guests::committee(), &json!({}))
        .await
        .expect(201);
    let path = "/v1/definitions/committee/versions/1/activate";
    app.post("admin", path, json!({})).await.expect(200);
    let start = json!({
        "definitionKey": "committee", "entityType": "thing", "entityId": "own",
        "data": { "assign": { "offers": [{ "users": ["outsider", "reviewer"] }] } },
    });
    app.post("outsider", "/v1/instances", start).await.started();
    for (user, expected) in [("outsider", 0), ("reviewer", 1)] {
        let offered = tasks(&app, user, "view=available&include=actions").await;
        assert_eq!(offered.len(), expected, "{user}: {offered:?}");
    }
    let all = tasks(&app, "outsider", "view=all&include=actions").await;
    assert_eq!(all[0]["actions"][0]["refusal"]["code"], "own_request");
}

/// The number of statements does not depend on the length of the page, and flow logic is not called.
#[tokio::test]
async fn a_page_takes_as_many_statements_as_a_task() {
    let app = TestApp::start().await;
    app.started("doc-0").await;
    let path = "/v1/tasks?view=available&limit=100&include=outcomes,actions,people";
    app.get("reviewer", path).await.expect(200);
    let statements = Statements::count();
    app.get("reviewer", path).await.expect(200);
    let of_one = statements.since_last();
    drop(statements);
    for number in 1..20 {
        app.started(&format!("doc-{number}")).await;
    }
    let statements = Statements::count();
    let page = app.get("reviewer", path).await.expect(200);
    let of_many = statements.since_last();
    drop(statements);
    assert_eq!(page["data"].as_array().expect("data").len(), 20);
    assert!(of_many > 0 && of_many <= of_one, "{of_one}, then {of_many}");
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table of requests and responses")]
async fn an_instance_shows_who_works_on_it_its_priority_its_deadline_and_the_states_ahead() {
    let app = TestApp::empty().await;
    app.publish("committee", guests::committee(), &json!({}))
        .await
        .expect(201);
    let path = "/v1/definitions/committee/versions/1/activate";
    app.post("admin", path, json!({})).await.expect(200);
    let deadlines = |hours: u32| json!([{ "after": hours * 3600, "do": "remind" }]);
    let offers = json!([
        { "groups": ["reviewers"], "deadlines": deadlines(2) }, { "owner": "approver" },
    ]);
    let start = json!({
        "definitionKey": "committee", "entityType": "thing", "entityId": "one",
        "data": { "assign": { "offers": offers, "needed": 2, "priority": 7, "deadlines": deadlines(5) } },
    });
    let started = app.post("author", "/v1/instances", start).await.started();
    let path = format!("/v1/instances/{}", started["id"].as_str().expect("an id"));
    let shown = app.get("author", &path).await.expect(200);
    let due = &started["states"][0]["tasks"][0]["dueAt"];
    assert!(due.is_string(), "{started}");
    assert_eq!(
        (&shown["priority"], &shown["nextDueAt"]),
        (&json!(7), due),
        "{shown}"
    );
    assert_eq!(
        shown["people"],
        json!({ "author": "author", "approver": "approver" })
    );
    assert_eq!(shown["groups"], json!({ "reviewers": "reviewers" }));
    let ahead = shown["ahead"].as_array().expect("steps");
    assert!(
        ahead.iter().any(|step| step["kind"] == "terminal"),
        "{shown}"
    );

    for step in ahead {
        let expected = format!(
            "{}: what is done.",
            step["title"].as_str().expect("a title")
        );
        assert_eq!(step["description"], expected, "{shown}");
    }

    let list = app
        .get("author", "/v1/instances?include=people,ahead")
        .await
        .expect(200);
    let line = &list["data"][0];
    for member in ["priority", "nextDueAt", "ahead"] {
        assert_eq!(line[member], shown[member], "{member}");
    }
    assert_eq!(line["owners"], json!(["approver"]));
    assert_eq!(
        line["candidates"],
        json!([{ "type": "group", "id": "reviewers" }])
    );
    assert_eq!(
        (&list["people"], &list["groups"]),
        (&shown["people"], &shown["groups"])
    );
    let task = started["states"][0]["tasks"][0]["id"]
        .as_str()
        .expect("an id");
    let of_task = app
        .get("author", &format!("/v1/tasks/{task}"))
        .await
        .expect(200);
    assert_eq!(of_task["instance"], shown);

    // Deadlines are paused while it is suspended. An ended instance has no states ahead.
    people::known(&app, &["admin"]).await;
    app.post(
        "admin",
        &format!("{path}/suspend"),
        json!({ "reason": "a holiday" }),
    )
    .await
    .expect(200);
    let shown = app.get("author", &path).await.expect(200);
    assert_eq!(shown["people"]["admin"], "admin", "who suspended it");
    let list = app.get("author", "/v1/instances").await.expect(200);
    assert!(
        shown["nextDueAt"].is_null() && list["data"][0]["nextDueAt"].is_null(),
        "{list}"
    );
    app.post(
        "admin",
        &format!("{path}/cancel"),
        json!({ "reason": "withdrawn" }),
    )
    .await
    .expect(200);
    let shown = app.get("author", &path).await.expect(200);
    assert_eq!(
        (&shown["ahead"], &shown["priority"]),
        (&json!([]), &Value::Null)
    );
    assert_eq!(shown["people"]["admin"], "admin", "who cancelled it");
}
