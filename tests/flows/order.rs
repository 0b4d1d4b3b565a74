//! Orders over HTTP: two parallel checks by different people, a join, a due date, and transitions back.

use super::*;
use crate::support::guests::order_handling;

async fn company() -> (TestApp, Time) {
    let time = Time::begin();
    let app = TestApp::empty_at(time.clock()).await;
    offer(&app, "order-handling", order_handling(), json!({})).await;
    for (name, people) in [
        ("intake", &["ida"][..]),
        ("credit", &["cleo", "both"]),
        ("warehouse", &["walt", "both"]),
        ("dispatch", &["dora"]),
    ] {
        group(&app, name).await;
        for person in people {
            member(&app, name, person).await;
        }
    }
    app.put("admin", "/v1/people/dan", json!({ "name": "dan" }))
        .await
        .expect(200);
    manager(&app, "dora", "dan").await;
    (app, time)
}

async fn order(app: &TestApp, entity: &str, total: Value) -> Value {
    ordered(app, entity, total, false).await
}

async fn ordered(app: &TestApp, entity: &str, total: Value, in_advance: bool) -> Value {
    let data = json!({
        "customer": "Lamps Inc", "total": total, "weight": 12.5, "express": true, "inAdvance": in_advance,
        "shipBy": "2026-01-12T17:00:00+01:00", "lines": ["2 lamps", "1 bulb"],
    });
    let body = json!({
        "definitionKey": "order-handling", "entityType": "order", "entityId": entity, "data": data,
    });
    app.post("author", "/v1/instances", body).await.started()
}

/// The names of the active states, sorted.
fn states(instance: &Value) -> Vec<&str> {
    let all = instance["states"].as_array().expect("states").iter();
    let mut names: Vec<_> = all
        .map(|one| one["name"].as_str().expect("a name"))
        .collect();
    names.sort_unstable();
    names
}

#[track_caller]
fn task_in(instance: &Value, state: &str) -> Value {
    let mut all = instance["states"].as_array().expect("states").iter();
    let state_instance = all.find(|one| one["name"] == state);
    let state_instance = state_instance.unwrap_or_else(|| panic!("no {state} in {instance}"));
    state_instance["tasks"][0].clone()
}

fn outcome(outcome: &str) -> Value {
    json!({ "outcome": outcome })
}

async fn step(app: &TestApp, instance: &Value, user: &str, state: &str, decision: Value) -> Value {
    let now = shown(app, instance).await;
    decide(app, user, &task_in(&now, state), decision).await
}

async fn accepted(app: &TestApp, entity: &str) -> Value {
    let instance = order(app, entity, json!(1999.9)).await;
    step(app, &instance, "ida", "Received", outcome("ACCEPT")).await
}

/// Both checks are done.
async fn checked(app: &TestApp, entity: &str) -> Value {
    let instance = accepted(app, entity).await;
    assert_eq!(states(&instance), ["CreditCheck", "StockReservation"]);
    let one = step(
        app,
        &instance,
        "walt",
        "StockReservation",
        outcome("RESERVE"),
    )
    .await;
    assert_eq!(states(&one), ["CreditCheck"]);
    step(app, &instance, "cleo", "CreditCheck", outcome("GRANT")).await
}

#[tokio::test]
async fn an_order_is_checked_by_two_people_and_shipped() {
    let (app, _) = company().await;
    let instance = checked(&app, "1").await;
    assert_eq!(states(&instance), ["Shipping"]);
    let shipping = &instance["states"][0];
    assert_eq!(shipping["dueAt"], "2026-01-11T16:00:00Z");
    assert_eq!(
        shipping["predecessorIds"].as_array().map(Vec::len),
        Some(2),
        "{shipping}"
    );
    assert_eq!(audited(&app, &instance, "BRANCH_ARRIVED").await.len(), 2);
    let ended = step(&app, &instance, "dora", "Shipping", outcome("SHIP")).await;
    assert_eq!(ended["outcome"], "SHIPPED");
    prove_all(&app).await;
}

#[tokio::test]
async fn nobody_does_both_checks() {
    let (app, _) = company().await;
    let instance = accepted(&app, "1").await;
    let [stock, credit] =
        ["StockReservation", "CreditCheck"].map(|state| task_in(&instance, state));
    claim(&app, "both", &credit).await;
    decide(&app, "both", &stock, outcome("RESERVE")).await;
    // Both checks had begun. The person who did this one loses the task of the other one.
    let released = audited(&app, &instance, "TASK_RELEASED").await;
    assert_eq!(
        (&released[0]["task"], &released[0]["reason"]),
        (&credit["id"], &json!("lost_eligibility"))
    );
    for action in ["claim", "decide"] {
        let path = format!("/v1/tasks/{}/{action}", id(&credit));
        let body = if action == "claim" {
            json!({})
        } else {
            outcome("GRANT")
        };
        let refused = app.post("both", &path, body).await;
        let problem = refused.problem(403, "forbidden");
        let detail = "both decided in StockReservation, and nobody decides in both StockReservation and CreditCheck";
        assert_eq!(problem["detail"], detail, "{problem}");
    }
    assert_eq!(states(&shown(&app, &instance).await), ["CreditCheck"]);
    step(&app, &instance, "cleo", "CreditCheck", outcome("GRANT")).await;
    assert_eq!(states(&shown(&app, &instance).await), ["Shipping"]);
    prove_all(&app).await;
}

#[tokio::test]
async fn a_refusal_cancels_the_other_branch() {
    let (app, _) = company().await;
    let instance = accepted(&app, "1").await;
    let other = task_in(&instance, "StockReservation");
    let ended = step(&app, &instance, "cleo", "CreditCheck", outcome("REFUSE")).await;
    assert_eq!(ended["outcome"], "REFUSED");
    let cancelled = audited(&app, &instance, "TASK_CANCELLED").await;
    assert_eq!(cancelled[0]["task"], other["id"]);
    assert_eq!(
        audited(&app, &instance, "STATE_CANCELLED").await[0]["name"],
        "StockReservation"
    );
    let path = format!("/v1/tasks/{}/claim", id(&other));
    app.post("walt", &path, json!({}))
        .await
        .problem(409, "task_taken");

    // The reverse order: a branch that has arrived at the join is cancelled, too.
    let instance = accepted(&app, "2").await;
    step(
        &app,
        &instance,
        "walt",
        "StockReservation",
        outcome("RESERVE"),
    )
    .await;
    let ended = step(&app, &instance, "cleo", "CreditCheck", outcome("REFUSE")).await;
    assert_eq!(ended["outcome"], "REFUSED");
    prove_all(&app).await;
}

#[tokio::test]
async fn failed_steps_are_repeated() {
    let (app, _) = company().await;
    let instance = checked(&app, "1").await;
    let path = format!("/v1/instances/{}/diagram.svg", id(&instance));
    let drawn = app.get("admin", &path).await.text;
    // Through the router into both checks, and out of both.
    let taken = drawn.matches(r#"<g class="label taken">"#).count();
    assert_eq!(taken, 5, "{drawn}");
    let mut shown = instance["states"].as_array().expect("states").iter();
    let shipping = shown.find(|one| one["name"] == "Shipping").expect("active");
    let due = shipping["dueAt"].as_str().expect("it is due")[..16].replace('T', " ");
    for line in ["for dispatch".to_owned(), format!("due {due} UTC")] {
        assert!(
            drawn.contains(&format!(">{line}</text>")),
            "{line}: {drawn}"
        );
    }
    let back = |to: &str| json!({ "outcome": "ROLLBACK", "input": { "to": to } });
    claim(&app, "dora", &task_in(&instance, "Shipping")).await;
    let path = format!("/v1/tasks/{}/decide", id(&task_in(&instance, "Shipping")));
    for (to, code) in [("Shipped", "no_way"), ("Nowhere", "no_way")] {
        let problem = app
            .post("dora", &path, back(to))
            .await
            .problem(422, "invalid_input");
        assert_eq!(
            (
                &problem["errors"][0]["pointer"],
                &problem["errors"][0]["code"]
            ),
            (&json!("/input/to"), &json!(code))
        );
    }
    let again = app
        .post("dora", &path, back("StockReservation"))
        .await
        .expect(200);
    assert_eq!(states(&again["instance"]), ["StockReservation"]);
    let shipping = step(
        &app,
        &instance,
        "walt",
        "StockReservation",
        outcome("RESERVE"),
    )
    .await;
    assert_eq!(states(&shipping), ["Shipping"]);
    let received = step(&app, &instance, "dora", "Shipping", back("Received")).await;
    assert_eq!(states(&received), ["Received"]);
    let both = step(&app, &instance, "ida", "Received", outcome("ACCEPT")).await;
    assert_eq!(states(&both), ["CreditCheck", "StockReservation"]);
    prove_all(&app).await;
}

#[tokio::test]
async fn late_shipping_is_reminded_of_and_escalated() {
    let (app, time) = company().await;
    let instance = checked(&app, "1").await;
    let timers = app.timers();
    // A day before it is due, on Sunday at four.
    time.work(&app, &[&app.engine], 6 * 86_400 + 7 * 3600).await;
    let reminded = audited(&app, &instance, "TASK_REMINDED").await;
    assert_eq!(
        reminded[0]["recipients"],
        json!([{ "type": "group", "id": "dispatch" }])
    );
    claim(&app, "dora", &task_in(&instance, "Shipping")).await;
    time.work(&app, &[&app.engine], 86_400).await;
    timers.stop().await;
    let escalated = audited(&app, &instance, "TASK_ESCALATED").await;
    assert_eq!(
        escalated[0]["from"],
        json!([{ "type": "user", "id": "dora" }])
    );
    let now = shown(&app, &instance).await;
    let open = tasks(&now).iter().find(|task| task["status"] == "PENDING");
    let ended = decide(&app, "dan", open.expect("his task"), outcome("SHIP")).await;
    assert_eq!(ended["outcome"], "SHIPPED");
    prove_all(&app).await;
}

#[tokio::test]
async fn orders_are_found_by_attributes_of_every_type() {
    let (app, _) = company().await;
    let small = order(&app, "small", json!(99.95)).await;
    let large = order(&app, "large", json!(100.01)).await;
    let both = [id(&small), id(&large)];
    for (query, expected) in [
        ("attribute.total=gt:100", &both[1..]),
        ("attribute.total=lte:99.95", &both[..1]),
        ("attribute.customer=eq:Lamps%20Inc", &both[..]),
        ("attribute.express=eq:true", &both[..]),
        ("attribute.express=eq:false", &[]),
        ("attribute.weight=gte:12.5", &both[..]),
        ("attribute.shipBy=lt:2026-01-12T16:00:00Z", &[]),
        (
            "attribute.shipBy=eq:2026-01-12T16:00:00Z&attribute.total=gt:100",
            &both[1..],
        ),
    ] {
        let page = app
            .get("author", &format!("/v1/instances?{query}"))
            .await
            .expect(200);
        let mut found: Vec<_> = page["data"]
            .as_array()
            .expect("instances")
            .iter()
            .map(id)
            .collect();
        found.sort_unstable();
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(found, expected, "{query}");
    }
    prove_all(&app).await;
}

/// If the conversion did not round correctly in its last step, the logic would read 441.7279999999999.
#[tokio::test]
async fn a_float_is_found_by_the_sent_number() {
    let (app, _) = company().await;
    let body = json!({
        "definitionKey": "order-handling", "entityType": "order", "entityId": "1",
        "data": {
            "customer": "Lamps Inc", "total": 10, "weight": 441.727_999_999_999_95,
            "shipBy": "2026-01-12T17:00:00+01:00", "lines": ["1 bulb"],
        },
    });
    let instance = app.post("author", "/v1/instances", body).await.started();
    let path = "/v1/instances?attribute.weight=441.72799999999995";
    let page = app.get("author", path).await.expect(200);
    assert_eq!(page["data"][0]["id"], instance["id"], "{page}");
}

/// The bank knows only the number of the order.
async fn paid(app: &TestApp, entity: &str) -> u16 {
    let body = json!({ "correlation": entity, "id": format!("payment-{entity}"), "input": {} });
    app.post("author", "/v1/signals/PAID", body).await.status
}

#[tokio::test]
async fn an_order_waits_only_once_for_its_payment_in_advance() {
    let (app, _) = company().await;
    let instance = ordered(&app, "77", json!(10), true).await;
    let forked = step(&app, &instance, "ida", "Received", outcome("ACCEPT")).await;
    assert_eq!(
        states(&forked),
        ["CreditCheck", "Payment", "StockReservation"]
    );
    step(
        &app,
        &instance,
        "walt",
        "StockReservation",
        outcome("RESERVE"),
    )
    .await;
    let waits = step(&app, &instance, "cleo", "CreditCheck", outcome("GRANT")).await;
    assert_eq!(states(&waits), ["Payment"]);
    assert_eq!([paid(&app, "77").await, paid(&app, "77").await], [200, 200]);
    let shipping = shown(&app, &instance).await;
    assert_eq!(states(&shipping), ["Shipping"]);
    assert_eq!(
        shipping["states"][0]["predecessorIds"]
            .as_array()
            .map(Vec::len),
        Some(3)
    );
    assert_eq!(audited(&app, &instance, "SIGNAL_RECEIVED").await.len(), 1);
    prove_all(&app).await;
}

#[tokio::test]
async fn a_payment_may_come_before_its_wait_state() {
    let (app, time) = company().await;
    assert_eq!(paid(&app, "78").await, 202);
    let instance = ordered(&app, "78", json!(10), true).await;
    let timers = app.timers();
    step(&app, &instance, "ida", "Received", outcome("ACCEPT")).await;
    time.work(&app, &[&app.engine], 0).await;
    timers.stop().await;
    assert_eq!(
        states(&shown(&app, &instance).await),
        ["CreditCheck", "StockReservation"]
    );
    prove_all(&app).await;
}
