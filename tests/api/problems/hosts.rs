//! Problems of a host: it is busy, overloaded or broken, or an operator must decide.

use super::*;

/// Two callers wait for an instance that a third one has locked.
pub(super) async fn of_a_busy_instance(app: &TestApp) -> Asked {
    let instance = app.started("doc-busy").await;
    let path = format!("/v1/tasks/{}/claim", task_of(&instance));
    let url = app.database.url();
    let host = app.beside_at(url, Duration::from_millis(300)).await;
    let mut lock = app
        .database
        .admin_pool()
        .begin()
        .await
        .expect("a transaction");
    sqlx::query("select from instance for update")
        .execute(&mut *lock)
        .await
        .expect("a lock");
    let claim = || Box::pin(host.send("reviewer", "POST", &path, &[], Some(json!({}))));
    let (first, other) = match select(claim(), claim()).await {
        Either::Left(settled) | Either::Right(settled) => settled,
    };
    lock.rollback().await.expect("a rollback");
    assert!(matches!(other.await.status, 200 | 503));
    (path.clone(), first)
}

/// A host with one request place, which a stuck request occupies.
pub(super) async fn of_a_full_host(app: &TestApp) -> Asked {
    let host = app.admitting(Admission::new(1, 0));
    let mut lock = app
        .database
        .admin_pool()
        .begin()
        .await
        .expect("a transaction");
    sqlx::raw_sql("lock table instance in access exclusive mode")
        .execute(&mut *lock)
        .await
        .expect("a lock");
    let path = "/v1/instances";
    let read = || Box::pin(host.send("author", "GET", path, &[], None));
    let (first, other) = match select(read(), read()).await {
        Either::Left(settled) | Either::Right(settled) => settled,
    };
    lock.rollback().await.expect("a rollback");
    other.await.expect(200);
    (path.to_owned(), first)
}

/// More streams than one person may open.
pub(super) async fn of_too_many_streams(app: &TestApp) -> Asked {
    let (host, path) = (app.host(), "/v1/events/stream");
    let mut open = Vec::new();
    for _ in 0..20 {
        let request = host.request("reviewer", "GET", path).body(Body::empty());
        let response = host.open(request.expect("a request")).await;
        assert_eq!(response.status(), 200);
        open.push(response);
    }
    ask(app, "reviewer", "GET", path, &[], None).await
}

pub(super) async fn of_dead_letters(app: &TestApp) -> Asked {
    let instance = app.started("doc-parked").await;
    let id = instance["id"].as_str().expect("an id");
    let parked = format!(
        "insert into dead_letter (tenant_id, instance_id, seq, partition, pos, error, attempts, parked_at)
         select tenant_id, instance_id, seq, partition, pos, 'refused', 3, now() from outbox_event where instance_id = '{id}' limit 1"
    );
    sqlx::raw_sql(AssertSqlSafe(parked))
        .execute(app.database.admin_pool())
        .await
        .expect("a dead letter");
    let path = format!("/v1/dead-letters/{id}/discard");
    let body = json!({ "entry": 999, "reason": "mistaken" });
    ask(app, "admin", "POST", &path, &[], Some(body)).await
}

/// A test event of a subscription, discarded twice. It is not sent, because no notifier runs.
pub(super) async fn of_deliveries(app: &TestApp) -> Asked {
    let subscription = subscribe(app, "http://127.0.0.1:9/", &["task.created"]).await;
    let path = format!(
        "/v1/subscriptions/{}",
        subscription["id"].as_str().expect("an id")
    );
    let test = app.post("admin", &format!("{path}/test"), json!({})).await;
    let delivery = test.expect(202)["id"].clone();
    let path = format!(
        "{path}/deliveries/{}/discard",
        delivery.as_str().expect("an id")
    );
    let body = json!({ "reason": "mistaken" });
    let first = app.post("admin", &path, body.clone()).await;
    assert_eq!(first.status, 204);
    ask(app, "admin", "POST", &path, &[], Some(body)).await
}

pub(super) async fn of_signals(app: &TestApp) -> Asked {
    app.publish("subflows", subflows(), &json!({}))
        .await
        .expect(201);
    let path = "/v1/definitions/subflows/versions/1/activate";
    app.post("admin", path, json!({})).await.expect(200);
    let body = |amount: u32| {
        let input = json!({ "amount": amount });
        json!({ "correlation": "order 7", "id": "p-1", "input": input })
    };
    let path = "/v1/signals/PAID";
    app.post("author", path, body(1)).await.expect(202);
    ask(app, "author", "POST", path, &[], Some(body(2))).await
}

pub(super) async fn of_a_broken_host(app: &TestApp) -> Vec<Asked> {
    let instance = app.started("doc-broken").await;
    let path = format!("/v1/instances/{}", instance["id"].as_str().expect("an id"));
    sql(app, "update task set candidates = 'no JSON'").await;
    let broken = ask(app, "author", "GET", &path, &[], None).await;
    assert!(
        !broken.1.text.contains("candidates") && !broken.1.text.contains("no JSON"),
        "{}",
        broken.1.text
    );
    app.store().close().await;
    vec![broken, ask(app, "author", "GET", &path, &[], None).await]
}
