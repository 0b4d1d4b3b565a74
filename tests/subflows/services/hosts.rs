//! Calls of killed hosts, of suspended instances and of stopped versions, and slow calls.

use super::*;

#[tokio::test]
async fn another_host_makes_the_attempt_of_a_killed_one() {
    let mut setting = Setting::new().await;
    setting.machine.says([Says::Nothing]);
    let instance = setting.ask("1", json!({})).await;
    let first = setting.machine.next().await;
    setting.timers.kill().await;
    // No other host calls the service while the attempt may be in flight.
    let services = setting.machine.services(8);
    let early = later(&setting.app, services.clone(), 100).await;
    let timers = Timers::start(&early, Arc::new(early.clone()));
    let other = begin(&setting.app, "2", json!({ "first": "Ask" })).await;
    assert_eq!(
        setting.machine.next().await.body["instanceId"],
        json!(other)
    );
    // A host that stops before the answer leaves this call to the next host, which then makes two calls in any order.
    until_status(&setting.app, &other, "COMPLETED").await;
    timers.stop().await;
    let engine = later(&setting.app, services, 600).await;
    let timers = Timers::start(&engine, Arc::new(engine.clone()));
    let second = setting.machine.next().await;
    until_status(&setting.app, &instance, "COMPLETED").await;
    timers.stop().await;
    // It is the same attempt, by its idempotency key.
    assert_eq!(second.body, first.body);
    let key =
        |request: &crate::support::receiver::Received| request.header("idempotency-key").to_owned();
    assert_eq!(key(&second), key(&first));
    assert_eq!(
        audited(&setting.app, &instance, "SERVICE_ANSWERED")
            .await
            .len(),
        1
    );
    assert_eq!(counted(&setting.app, "select count(*) from job").await, 0);
    proven(&setting.app, &instance).await;
}

#[tokio::test]
async fn a_host_that_stops_does_not_wait_for_a_service() {
    let mut setting = Setting::new().await;
    setting.machine.says([Says::Nothing]);
    let instance = setting.ask("1", json!({ "timeout": 120 })).await;
    setting.machine.next().await;
    let stopped = tokio::time::timeout(TIMEOUT, setting.timers.stop()).await;
    stopped.expect("in time");
    // The call is due again at once.
    let timers = setting.app.timers();
    assert_eq!(setting.machine.next().await.body["attempt"], 1);
    until_status(&setting.app, &instance, "COMPLETED").await;
    timers.stop().await;
    proven(&setting.app, &instance).await;
}

/// Waits until the query counts something.
async fn until_counted(app: &TestApp, sql: &'static str) {
    until_so(async || counted(app, sql).await, |found: &i64| *found > 0).await;
}

#[tokio::test]
async fn a_reply_during_a_suspension_waits_and_the_call_is_not_repeated() {
    let mut setting = Setting::new().await;
    setting
        .machine
        .says([Says::Gated(json!({ "output": { "score": 1 } }))]);
    let instance = setting.ask("1", json!({})).await;
    let request = setting.machine.next().await;
    act(
        &setting.app,
        &instance,
        "suspend",
        json!({ "reason": "audit" }),
    )
    .await;
    setting.machine.open(1);
    until_counted(
        &setting.app,
        "select count(*) from job where kind = 'call_service' and payload like '%answered%'",
    )
    .await;
    let held = shown(&setting.app, &instance).await;
    assert_eq!(
        (&held["status"], &held["data"]["asked"]),
        (&json!("SUSPENDED"), &Value::Null)
    );
    act(&setting.app, &instance, "resume", json!({})).await;
    setting.timers.stop().await;
    let engine = later(&setting.app, setting.machine.services(8), 60).await;
    let timers = Timers::start(&engine, Arc::new(engine.clone()));
    until_status(&setting.app, &instance, "COMPLETED").await;
    timers.stop().await;
    assert_eq!(setting.machine.rest().len(), 0);
    let events = setting.app.events().await;
    answered_in_trace(&events, request.header("traceparent"));
    proven(&setting.app, &instance).await;
}

#[tokio::test]
async fn suspended_instances_and_stopped_versions_call_no_service() {
    let mut setting = Setting::new().await;
    setting.timers.stop().await;
    let suspended = begin(&setting.app, "1", json!({ "first": "Ask" })).await;
    act(
        &setting.app,
        &suspended,
        "suspend",
        json!({ "reason": "audit" }),
    )
    .await;
    let timers = setting.app.timers();
    until_counted(
        &setting.app,
        "select count(*) from job where kind = 'call_service' and lease_until > now() and claim is null",
    )
    .await;
    timers.stop().await;
    act(&setting.app, &suspended, "resume", json!({})).await;
    let version = "/v1/definitions/subflows/versions/1";
    let path = format!("{version}/stop");
    setting
        .app
        .post("admin", &path, json!({ "reason": "a flaw" }))
        .await
        .expect(200);
    let engine = later(&setting.app, setting.machine.services(8), 600).await;
    let timers = Timers::start(&engine, Arc::new(engine.clone()));
    until_counted(
        &setting.app,
        "select count(*) from job where kind = 'call_service' and lease_until > now() + interval '10 min' and claim is null",
    )
    .await;
    timers.stop().await;
    assert_eq!(setting.machine.rest().len(), 0);
    let path = format!("{version}/resume");
    setting
        .app
        .post("admin", &path, json!({}))
        .await
        .expect(200);
    let engine = later(&setting.app, setting.machine.services(8), 1_800).await;
    let timers = Timers::start(&engine, Arc::new(engine.clone()));
    until_status(&setting.app, &suspended, "COMPLETED").await;
    timers.stop().await;
    proven(&setting.app, &suspended).await;
}

/// A service that never answers occupies only its own places. Other work and calls of another tenant continue.
#[tokio::test]
async fn a_slow_service_delays_nothing_else() {
    let mut setting = Setting::new().await;
    setting.timers.stop().await;
    let app = serving(setting.app, setting.machine.services(4)).await;
    let timers = app.timers();
    setting.machine.says(vec![Says::Nothing; 2]);
    let mut slow = Vec::new();
    for number in 0..12 {
        let data = json!({ "first": "Ask", "ask": { "timeout": 120 } });
        slow.push(begin(&app, &format!("slow-{number}"), data).await);
    }
    for _ in 0..2 {
        setting.machine.next().await;
    }
    let waits = begin(&app, "quick", json!({ "wait": { "late": 1 } })).await;
    until_status(&app, &waits, "COMPLETED").await;
    // The tenant occupies half of the places of the service, and no more.
    assert_eq!(setting.machine.rest().len(), 0);
    let other = Other::of(&app).await;
    other.start("1", json!({ "first": "Ask" })).await;
    assert_eq!(setting.machine.next().await.body["tenant"], "other");
    for instance in &slow {
        act(&app, instance, "cancel", json!({ "reason": "over" })).await;
    }
    timers.stop().await;
    assert_eq!(
        counted(&app, "select count(*) from job where kind = 'call_service'").await,
        0
    );
}
