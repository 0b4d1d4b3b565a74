//! Purchases over HTTP: who approves, the quorum, late work, and notifications.

use super::*;
use crate::support::app::Answer;
use crate::support::guests::purchase_approval;

const FINANCE: [&str; 5] = ["fay", "finn", "flora", "frank", "fred"];

/// The directory of the purchases: meg manages ann, max manages meg, fiona manages fay.
pub(super) async fn company() -> (TestApp, Time) {
    let time = Time::begin();
    let app = TestApp::empty_at(time.clock()).await;
    let config = json!({ "finance": FINANCE, "cfoAbove": 50000 });
    group(&app, "cfo").await;
    group(&app, "finance-office").await;
    for person in FINANCE {
        member(&app, "finance-office", person).await;
    }
    for person in ["ann", "meg", "mia", "max", "fiona"] {
        let path = format!("/v1/people/{person}");
        let put = app.put("admin", &path, json!({ "name": person }));
        put.await.expect(200);
    }
    member(&app, "cfo", "cora").await;
    offer(&app, "purchase-approval", purchase_approval(), config).await;
    for (of, by) in [("ann", "meg"), ("meg", "max"), ("fay", "fiona")] {
        manager(&app, of, by).await;
    }
    (app, time)
}

/// A purchase requested by ann.
pub(super) async fn purchase(app: &TestApp, amount: Value, more: Value) -> Value {
    let mut data = json!({ "amount": amount, "currency": "EUR", "supplier": "Desks Ltd" });
    let (into, from) = (data.as_object_mut(), more.as_object());
    into.expect("data").extend(from.expect("data").clone());
    let body = json!({
        "definitionKey": "purchase-approval", "entityType": "purchase", "entityId": amount.to_string(), "data": data,
    });
    app.post("ann", "/v1/instances", body).await.started()
}

pub(super) fn approve() -> Value {
    json!({ "outcome": "APPROVE", "input": { "costCentre": "4711" } })
}

pub(super) fn reject() -> Value {
    json!({ "outcome": "REJECT", "comment": "Too dear." })
}

/// The open task that is offered to this person or group.
#[track_caller]
fn task_for(instance: &Value, candidate: &str) -> Value {
    let all = tasks(instance).iter();
    let open = all.filter(|task| {
        ["PENDING", "CLAIMED"].contains(&task["status"].as_str().expect("a status"))
    });
    let mut own = open.filter(|task| {
        let candidates = task["candidates"].as_array().expect("candidates");
        candidates.iter().any(|one| one["id"] == candidate)
    });
    own.next()
        .unwrap_or_else(|| panic!("nothing for {candidate} in {instance}"))
        .clone()
}

/// Each person decides their own task.
pub(super) async fn follow(app: &TestApp, instance: &Value, decisions: &[(&str, Value)]) -> Value {
    let mut now = shown(app, instance).await;
    for (user, decision) in decisions {
        let task = task_for(&now, if *user == "cora" { "cfo" } else { user });
        now = decide(app, user, &task, decision.clone()).await;
    }
    now
}

fn state(instance: &Value) -> &str {
    instance["states"][0]["name"].as_str().unwrap_or("none")
}

/// The data of the flow's custom events of this name.
async fn published(app: &TestApp, name: &str) -> Vec<Value> {
    sqlx::query_scalar("select payload::jsonb from audit_entry where type = 'CUSTOM' and payload::jsonb ->> 'name' = $1 order by pos")
        .bind(name)
        .fetch_all(app.database.admin_pool())
        .await
        .expect("events")
}

/// A token identifies a person. The directory need not contain them, and the eligibility shows that.
#[tokio::test]
async fn people_of_finance_who_are_not_in_the_directory_are_shown_as_unknown() {
    let (app, _) = company().await;
    let config = json!({ "finance": ["fay", "finn", "flora", "ghost"], "cfoAbove": 50000 });
    let key = "purchase-approval";
    let published = app.publish(key, purchase_approval(), &config).await;
    assert_eq!(published.expect(201)["version"], 2);
    let activate = format!("/v1/definitions/{key}/versions/2/activate");
    app.post("admin", &activate, json!({}))
        .await
        .problem(409, "unknown_names");
    let forced = app.post("admin", &activate, json!({ "force": true }));
    forced.await.expect(200);
    let instance = purchase(&app, json!(10), json!({})).await;
    let at_finance = follow(&app, &instance, &[("meg", approve())]).await;
    assert_eq!(state(&at_finance), "Finance");
    let path = format!(
        "/v1/instances/{}/eligibility",
        instance["id"].as_str().expect("an id")
    );
    let unknown = async || {
        let answer = app.get("admin", &path).await.expect(200);
        let tasks = answer["tasks"].as_array().expect("tasks").clone();
        let of = |task: &Value| {
            (
                task["eligible"][0]["person"].clone(),
                task["unknown"].clone(),
            )
        };
        let mut listed: Vec<_> = tasks.iter().map(of).collect();
        listed.sort_by_key(|(person, _)| person.to_string());
        listed
    };
    let known = |person: &str| (json!(person), json!([]));
    let listed = unknown().await;
    assert_eq!(listed[..3], ["fay", "finn", "flora"].map(known));
    assert_eq!(
        listed[3],
        (json!("ghost"), json!(["ghost"])),
        "who counts as eligible"
    );
    let put = app.put("admin", "/v1/people/ghost", json!({ "name": "Gus" }));
    put.await.expect(200);
    assert_eq!(unknown().await[3], known("ghost"));
}

#[tokio::test]
async fn a_manager_and_then_two_of_finance_approve() {
    let (app, _) = company().await;
    let instance = purchase(&app, json!(1999.9), json!({})).await;
    assert_eq!(
        tasks(&instance)[0]["candidates"],
        json!([{ "type": "user", "id": "meg" }])
    );
    let at_finance = follow(&app, &instance, &[("meg", approve())]).await;
    assert_eq!(
        (state(&at_finance), tasks(&at_finance).len()),
        ("Finance", 5)
    );
    let path = format!("/v1/tasks/{}/decide", id(&task_for(&at_finance, "fay")));
    claim(&app, "fay", &task_for(&at_finance, "fay")).await;
    let bare = app
        .post("fay", &path, json!({ "outcome": "APPROVE" }))
        .await;
    let problem = bare.problem(422, "invalid_input");
    assert_eq!(
        problem["errors"][0]["pointer"], "/input/costCentre",
        "{problem}"
    );
    app.post("fay", &path, approve()).await.expect(200);
    let ended = follow(&app, &instance, &[("finn", reject()), ("fred", approve())]).await;
    assert_eq!(ended["outcome"], "APPROVED");
    assert_eq!(audited(&app, &instance, "TASK_CANCELLED").await.len(), 2);
    let ordered = json!({ "entity": "1999.9", "amount": "1999.9", "currency": "EUR" });
    let published = published(&app, "purchase.approved").await;
    assert_eq!(published.len(), 1);
    assert_eq!(published[0]["data"], ordered, "{published:?}");
    prove_all(&app).await;
}

#[tokio::test]
async fn a_requester_does_not_choose_who_approves() {
    let (app, _) = company().await;
    for (amount, named) in [(10, "mia"), (20, "ann"), (30, "fay")] {
        let instance = purchase(&app, json!(amount), json!({ "managerId": named })).await;
        assert_eq!(
            tasks(&instance)[0]["candidates"],
            json!([{ "type": "user", "id": "meg" }])
        );
        let path = format!("/v1/tasks/{}/claim", id(&tasks(&instance)[0]));
        assert_eq!(app.post(named, &path, json!({})).await.status, 403);
        let ended = follow(&app, &instance, &[("meg", reject())]).await;
        assert_eq!(ended["outcome"], "REJECTED");
    }
    prove_all(&app).await;
}

/// The host enforces the separate states of the graph for every person, also for substitutes and delegates.
#[tokio::test]
async fn nobody_approves_in_two_steps() {
    let (app, _) = company().await;
    member(&app, "cfo", "meg").await;
    let path = "/v1/people/meg/absences";
    let from = app.engine.clock().now();
    let until = from + Duration::from_hours(24);
    let absence = json!({ "substitute": "mia", "from": from, "until": until });
    app.post("admin", path, absence).await.expect(201);
    let instance = purchase(&app, json!(60000), json!({})).await;
    let decisions = [("meg", approve()), ("fay", approve()), ("fred", approve())];
    let at_cfo = follow(&app, &instance, &decisions).await;
    assert_eq!(state(&at_cfo), "Cfo");
    let path = format!("/v1/instances/{}/eligibility", id(&instance));
    let explained = app.get("admin", &path).await.expect(200);
    let excluded = &explained["tasks"][0]["excluded"];
    let expected = json!([
        { "person": "meg", "exclusions": [{ "why": "excluded" }] },
        { "person": "mia", "exclusions": [{ "why": "for_excluded", "of": "meg" }] },
    ]);
    assert_eq!(*excluded, expected, "{explained}");
    let task = task_for(&at_cfo, "cfo");
    let path = |action: &str| format!("/v1/tasks/{}/{action}", id(&task));
    // mia is a substitute of meg.
    let refused = [
        ("meg", "claim", json!({})),
        ("meg", "decide", approve()),
        ("mia", "claim", json!({})),
    ];
    for (user, action, body) in refused {
        let refused = app.post(user, &path(action), body).await;
        let problem = refused.problem(403, "forbidden");
        let detail = "meg decided in Manager, and nobody decides in both Manager and Cfo";
        assert_eq!(problem["detail"], detail, "{user} {action}: {problem}");
    }
    for user in ["meg", "mia"] {
        let available = app.get(user, "/v1/tasks?view=available").await.expect(200);
        assert_eq!(available["data"], json!([]), "{user}: {available}");
    }
    claim(&app, "cora", &task).await;
    for (user, action) in [("cora", "delegate"), ("admin", "reassign")] {
        let to_meg = json!({ "to": "meg", "reason": "busy" });
        let refused = app.post(user, &path(action), to_meg).await;
        refused.problem(403, "forbidden");
    }
    let decided = app.post("cora", &path("decide"), approve()).await;
    assert_eq!(decided.expect(200)["instance"]["outcome"], "APPROVED");
    prove_all(&app).await;
}

#[tokio::test]
async fn a_vote_ends_when_too_few_voters_are_left() {
    let (app, _) = company().await;
    let instance = purchase(&app, json!(30), json!({})).await;
    let votes = [
        ("meg", approve()),
        ("fay", approve()),
        ("finn", reject()),
        ("flora", reject()),
    ];
    let open = follow(&app, &instance, &votes).await;
    assert_eq!(state(&open), "Finance");
    let open = follow(&app, &instance, &[("frank", reject())]).await;
    assert_eq!(state(&open), "Finance");
    let ended = follow(&app, &instance, &[("fred", reject())]).await;
    assert_eq!(ended["outcome"], "REJECTED");

    let instance = purchase(&app, json!(40), json!({})).await;
    let votes = [
        ("meg", approve()),
        ("fay", reject()),
        ("finn", reject()),
        ("flora", reject()),
        ("frank", reject()),
    ];
    let ended = follow(&app, &instance, &votes).await;
    assert_eq!(ended["outcome"], "REJECTED");
    assert_eq!(audited(&app, &instance, "TASK_CANCELLED").await.len(), 1);
    assert_eq!(published(&app, "purchase.approved").await, [] as [Value; 0]);
    prove_all(&app).await;
}

#[tokio::test]
async fn the_cfo_decides_above_the_limit_only() {
    let (app, _) = company().await;
    let both = [("meg", approve()), ("fay", approve()), ("fred", approve())];
    let small = purchase(&app, json!(50000), json!({})).await;
    assert_eq!(follow(&app, &small, &both).await["outcome"], "APPROVED");
    let large = purchase(&app, json!(50000.01), json!({})).await;
    let at_cfo = follow(&app, &large, &both).await;
    assert_eq!(state(&at_cfo), "Cfo");
    let ended = follow(&app, &large, &[("cora", approve())]).await;
    assert_eq!(ended["outcome"], "APPROVED");
    let above = json!({
        "code": "above_limit", "message": "The CFO approves what is above the limit.",
        "detail": { "cfoAbove": 50000 },
    });
    let within = json!({ "code": "within_limit", "message": "Finance suffices for this amount." });
    for (instance, note) in [(&small, within), (&large, above)] {
        let moves = audited(&app, instance, "STATE_TRANSITIONED").await;
        let notes: Vec<_> = moves
            .iter()
            .filter_map(|one| one["notes"].as_array())
            .collect();
        assert_eq!(notes, [&vec![note.clone()]]);
        let history = format!("/v1/instances/{}/history", id(instance));
        let history = app.get("ann", &history).await.expect(200);
        let states = history["data"].as_array().expect("states").iter();
        let plans = states.flat_map(|state| state["plans"].as_array().expect("plans"));
        let plans: Vec<_> = plans
            .map(|plan| (&plan["trigger"], &plan["notes"]))
            .collect();
        assert_eq!(plans, [(&json!("SORT"), &json!([note]))], "{history}");
        assert_eq!(history["notesOmitted"], false);
    }
    let found = app
        .get("ann", "/v1/instances?attribute.amount=gt:50000")
        .await
        .expect(200);
    let found: Vec<_> = found["data"]
        .as_array()
        .expect("instances")
        .iter()
        .map(id)
        .collect();
    assert_eq!(found, [id(&large)]);
    prove_all(&app).await;
}

#[tokio::test]
async fn late_work_is_reminded_of_and_goes_to_the_next_manager() {
    let (app, time) = company().await;
    let instance = purchase(&app, json!(60), json!({})).await;
    let timers = app.timers();
    time.work(&app, &[&app.engine], 24 * 3600).await;
    let reminded = audited(&app, &instance, "TASK_REMINDED").await;
    assert_eq!(
        reminded[0]["recipients"],
        json!([{ "type": "user", "id": "meg" }])
    );
    let task = task_for(&instance, "meg");
    claim(&app, "meg", &task).await;
    time.work(&app, &[&app.engine], 24 * 3600).await;
    let late = app
        .post("meg", &format!("/v1/tasks/{}/decide", id(&task)), approve())
        .await;
    assert_eq!(late.status, 409);
    let at_finance = follow(&app, &instance, &[("max", approve())]).await;
    assert_eq!(tasks(&at_finance).len(), 5);
    claim(&app, "fay", &task_for(&at_finance, "fay")).await;
    time.work(&app, &[&app.engine], 72 * 3600).await;
    timers.stop().await;
    // fay's task has gone to her manager, whose vote counts as one of five. The others have no manager, so their tasks go to the office.
    let votes = [("fiona", approve())];
    let open = follow(&app, &instance, &votes).await;
    assert_eq!(
        (state(&open), &open["states"][0]["needed"]),
        ("Finance", &json!(2))
    );
    let escalated = audited(&app, &instance, "TASK_ESCALATED").await;
    let late = escalated.iter().filter(|one| one["reason"] == "overdue");
    assert_eq!(late.count(), 6);
    assert!(
        escalated
            .iter()
            .any(|one| one["from"] == json!([{ "type": "user", "id": "fay" }]))
    );
    prove_all(&app).await;
}

#[tokio::test]
async fn a_delegate_approves_on_behalf_of_the_manager() {
    let (app, _) = company().await;
    let instance = purchase(&app, json!(70), json!({})).await;
    let task = task_for(&instance, "meg");
    claim(&app, "meg", &task).await;
    let delegation = |to: &str| json!({ "to": to, "reason": "on holiday" });
    let path = format!("/v1/tasks/{}/delegate", id(&task));
    let own = app.post("meg", &path, delegation("ann")).await;
    assert_eq!(own.problem(403, "forbidden")["reason"], "own_request");
    app.post("meg", &path, delegation("mia")).await.expect(200);
    let path = format!("/v1/tasks/{}/decide", id(&task));
    let decided = app.post("mia", &path, approve()).await.expect(200);
    assert_eq!(state(&decided["instance"]), "Finance");
    let recorded = audited(&app, &instance, "DECISION_RECORDED").await;
    assert_eq!(recorded[0]["onBehalfOf"], "meg");
    prove_all(&app).await;
}

async fn withdraw(app: &TestApp, user: &str, instance: &Value) -> Answer {
    let path = format!("/v1/instances/{}/signals/WITHDRAW", id(instance));
    app.post(user, &path, json!({})).await
}

#[tokio::test]
async fn only_a_requester_withdraws_and_at_every_step() {
    let (app, _) = company().await;
    let steps = [("meg", approve()), ("fay", approve()), ("fred", approve())];
    for (amount, done) in [(60_000, 0), (60_001, 1), (60_002, 3)] {
        let instance = purchase(&app, json!(amount), json!({})).await;
        let now = follow(&app, &instance, &steps[..done]).await;
        let open = tasks(&now)[0].clone();
        let stranger = withdraw(&app, "meg", &instance).await;
        assert_eq!(
            stranger.problem(403, "forbidden")["reason"],
            "not_requester"
        );
        let gone = withdraw(&app, "ann", &instance).await.expect(200);
        assert_eq!(gone["instance"]["outcome"], "WITHDRAWN");
        let path = format!("/v1/tasks/{}/claim", id(&open));
        app.post("fay", &path, json!({}))
            .await
            .problem(409, "task_taken");
    }
    assert_eq!(published(&app, "purchase.approved").await, [] as [Value; 0]);
    prove_all(&app).await;
}

/// The names in the config are looked up: unknown ones are reported when the version is published, and block its activation.
#[tokio::test]
async fn the_names_of_a_config_must_exist() {
    let app = TestApp::empty().await;
    let sla = json!({ "remindHours": 4, "escalateHours": 16, "calendar": "office" });
    let config = json!({ "finance": FINANCE, "managerSla": sla });
    let published = app.publish("purchase-approval", purchase_approval(), &config);
    let published = published.await.expect(201);
    let named = |list: &Value, kind: &str, name: &str| -> Vec<String> {
        let list = list.as_array().expect("a list").iter();
        let line = |one: &Value| format!("{} {}", one[kind], one[name]).replace('"', "");
        list.map(line).collect()
    };
    let mut unknown = vec!["group cfo".to_owned(), "group finance-office".to_owned()];
    let mut finance = FINANCE;
    finance.sort_unstable();
    unknown.extend(finance.map(|person| format!("person {person}")));
    unknown.push("calendar office".to_owned());
    assert_eq!(named(&published["warnings"], "kind", "name"), unknown);
    // A name of the config has a pointer. The groups are the flow's own defaults, which have none.
    let warnings = published["warnings"].as_array().expect("a list");
    let pointers: Vec<_> = warnings.iter().map(|one| &one["pointer"]).collect();
    assert_eq!(pointers[0], &Value::Null);
    assert_eq!(pointers[2], "/finance/0");
    assert_eq!(pointers[pointers.len() - 1], "/managerSla/calendar");

    let path = "/v1/definitions/purchase-approval/versions/1/activate";
    let tried = format!("{path}?dryRun=true");
    let tried = app.post("admin", &tried, json!({})).await.expect(200);
    assert_eq!(named(&tried["effects"]["unknown"], "kind", "name"), unknown);
    let refused = app.post("admin", path, json!({})).await;
    let problem = refused.problem(409, "unknown_names");
    let expected = unknown.iter().map(|one| {
        let kind = one.split(' ').next().unwrap_or_default();
        format!("unknown_{kind} there is no {one}")
    });
    let expected: Vec<_> = expected.collect();
    assert_eq!(named(&problem["errors"], "code", "detail"), expected);
    app.post("admin", path, json!({ "forced": true }))
        .await
        .problem(422, "invalid_request");

    group(&app, "cfo").await;
    group(&app, "finance-office").await;
    for person in FINANCE {
        member(&app, "finance-office", person).await;
    }
    let refused = app.post("admin", path, json!({ "force": false })).await;
    let problem = refused.problem(409, "unknown_names");
    assert_eq!(
        named(&problem["errors"], "code", "detail"),
        ["unknown_calendar there is no calendar office"]
    );
    // By force, which is recorded in the audit.
    let forced = app
        .post("admin", path, json!({ "force": true }))
        .await
        .expect(200);
    assert_eq!(forced["active"], true);
    let payload: String = sqlx::query_scalar(
        "select payload from audit_entry where type = 'VERSION_ACTIVATED' and payload like '%purchase%'",
    )
    .fetch_one(app.database.admin_pool())
    .await
    .expect("an entry");
    let payload: Value = serde_json::from_str(&payload).expect("JSON");
    assert_eq!(
        payload["unknown"],
        json!([{ "kind": "calendar", "name": "office" }])
    );
    prove_all(&app).await;
}
