//! Signals to all: every state instance that subscribes when the signal comes gets it once, and nothing is kept.

use serde_json::{Value, json};

use super::*;

fn to_all(id: &str) -> Value {
    json!({ "correlation": "market", "id": id, "deliver": "all" })
}

async fn send(app: &TestApp, body: Value) -> Answer {
    app.post("author", "/v1/signals/PAID", body).await
}

/// The status of the signal, once it is delivered.
async fn delivered(app: &TestApp, sent: &Value) -> Value {
    let path = format!(
        "/v1/signals/{}",
        sent["signal"]["signalId"].as_str().expect("an id")
    );
    let waiting = async {
        loop {
            let receipt = app.get("author", &path).await.expect(200);
            if receipt["status"] == "DELIVERED" {
                return receipt;
            }
            crate::support::pause().await;
        }
    };
    let waited = tokio::time::timeout(TIMEOUT, waiting).await;
    waited.expect("in time")
}

fn tally(receipt: &Value) -> (u64, u64) {
    let count = |name: &str| receipt[name].as_u64().expect("a count");
    (count("taken"), count("refused"))
}

fn waiting(payments: u32) -> Value {
    let one = json!({ "trigger": "PAID", "correlation": "market", "buffered": true });
    json!({ "payments": payments, "wait": { "subscriptions": [one] } })
}

async fn suspend(app: &TestApp, instance: &str) {
    let path = format!("/v1/instances/{instance}/suspend");
    let body = json!({ "reason": "an audit" });
    app.post("admin", &path, body).await.expect(200);
}

/// More than one portion of instances; one of them is suspended, and one has ended before it is its turn.
#[tokio::test]
async fn all_that_wait_get_the_signal_once() {
    let app = fixture().await;
    let mut all = Vec::new();
    for number in 0..103 {
        all.push(begin(&app, &number.to_string(), waiting(2)).await);
    }
    let elsewhere =
        json!({ "wait": { "subscriptions": [{ "trigger": "PAID", "correlation": "shop" }] } });
    let elsewhere = begin(&app, "elsewhere", elsewhere).await;
    let other = Other::of(&app).await;
    other.start("1", waiting(1)).await;
    // No job is left that would wait until the suspended instance goes on.
    let timers = app.timers();
    settled(&app).await;
    timers.stop().await;
    let (asleep, ended) = (all.remove(7), all.remove(70));
    suspend(&app, &asleep).await;
    let sent = send(&app, to_all("open-1")).await.expect(202);
    assert_eq!(sent["dryRun"], false);
    signal(&app, &ended, "LEAVE", json!({})).await.expect(200);
    let timers = app.timers();
    let receipt = delivered(&app, &sent).await;
    assert_eq!(
        (&receipt["deliver"], tally(&receipt)),
        (&json!("all"), (101, 1))
    );
    settled(&app).await;
    for instance in &all {
        let shown = shown(&app, instance).await;
        assert_eq!(
            (&shown["data"]["paid"], &shown["status"]),
            (&json!(1), &json!("RUNNING"))
        );
    }
    for instance in [&elsewhere, &asleep, &ended] {
        assert_eq!(shown(&app, instance).await["data"]["paid"], Value::Null);
    }
    let foreign = "select count(*) from instance where tenant_id <> 1 and revision > 1";
    assert_eq!(counted(&app, foreign).await, 0);
    // The same signal again, and another one.
    let again = send(&app, to_all("open-1")).await.expect(202);
    assert_eq!(again["signal"]["signalId"], sent["signal"]["signalId"]);
    assert_eq!(tally(&delivered(&app, &again).await), (101, 1));
    let next = send(&app, to_all("open-2")).await.expect(202);
    assert_eq!(tally(&delivered(&app, &next).await), (101, 1));
    until_status(&app, &all[0], "COMPLETED").await;
    settled(&app).await;
    timers.stop().await;
    proven(&app, &all[0]).await;
}

/// A later subscription gets nothing, even one with buffered signals. A signal to all does not block one that is buffered.
#[tokio::test]
async fn a_signal_to_all_is_not_kept() {
    let app = fixture().await;
    let timers = app.timers();
    let sent = send(&app, to_all("open-1")).await.expect(202);
    assert_eq!(tally(&delivered(&app, &sent).await), (0, 0));
    let late = begin(&app, "1", waiting(1)).await;
    settled(&app).await;
    assert_eq!(shown(&app, &late).await["revision"], 1);
    timers.stop().await;
}

/// The host died after it had delivered a portion and before it recorded it.
#[tokio::test]
async fn a_portion_that_is_delivered_again_counts_once() {
    let app = fixture().await;
    let (first, second) = (
        begin(&app, "1", waiting(9)).await,
        begin(&app, "2", waiting(9)).await,
    );
    let timers = app.timers();
    let sent = send(&app, to_all("open-1")).await.expect(202);
    delivered(&app, &sent).await;
    settled(&app).await;
    let again = "update signal_inbox set delivered_at = null, taken = 0, after_at = 'epoch',
            after_state = '00000000-0000-0000-0000-000000000000';
        insert into job (tenant_id, id, kind, instance_id, due_at, payload)
        select tenant_id, id, 'deliver_signal', id, now(), '{}' from signal_inbox";
    sqlx::raw_sql(again)
        .execute(app.database.admin_pool())
        .await
        .expect("a portion to repeat");
    app.engine.wake_workers();
    assert_eq!(tally(&delivered(&app, &sent).await), (2, 0));
    settled(&app).await;
    timers.stop().await;
    for instance in [first, second] {
        assert_eq!(shown(&app, &instance).await["data"]["paid"], 1);
        assert_eq!(audited(&app, &instance, "SIGNAL_RECEIVED").await.len(), 1);
        proven(&app, &instance).await;
    }
}

/// Only the failures of one instance in a row count. The job has failed nine times before, for others.
#[tokio::test]
async fn failures_with_successes_between_them_do_not_add_up() {
    let app = fixture().await;
    for entity in ["1", "2"] {
        begin(&app, entity, waiting(9)).await;
    }
    let timers = app.timers();
    settled(&app).await;
    timers.stop().await;
    let run = async |sql: &'static str| {
        let ran = sqlx::raw_sql(sql).execute(app.database.admin_pool()).await;
        ran.expect("a statement");
    };
    run("create sequence broken;
        create function fail_while_broken() returns trigger language plpgsql security definer as $$
            begin
                if (select last_value from public.broken) = 1 then raise exception 'broken'; end if;
                return new;
            end $$;
        create trigger fail_while_broken before update on instance for each row
            when (new.entity_id = '2') execute function fail_while_broken()")
    .await;
    let sent = send(&app, to_all("open-1")).await.expect(202);
    run("update job set attempts = 9, last_error = 'broken'").await;
    let timers = app.timers();
    let one = async {
        while counted(&app, "select count(*) from signal_inbox where taken = 1").await < 1 {
            crate::support::pause().await;
        }
    };
    let one = tokio::time::timeout(TIMEOUT, one).await;
    one.expect("the first instance takes it");
    run("select setval('broken', 2)").await;
    assert_eq!(tally(&delivered(&app, &sent).await), (2, 0));
    timers.stop().await;
}

#[tokio::test]
async fn a_signal_to_all_is_checked_before_it_is_accepted() {
    let app = fixture().await;
    let waits = begin(&app, "1", waiting(1)).await;
    let tried = app
        .post("author", "/v1/signals/PAID?dryRun=true", to_all("open-1"))
        .await;
    assert_eq!(tried.expect(202)["dryRun"], true);
    assert_eq!(counted(&app, "select count(*) from signal_inbox").await, 0);
    let mut wrong = to_all("open-1");
    wrong["deliver"] = json!("some");
    send(&app, wrong).await.problem(422, "invalid_request");
    // One id stands for one signal: to one, or to all.
    send(&app, to_all("open-1")).await.expect(202);
    let mut to_one = to_all("open-1");
    to_one["deliver"] = json!("one");
    send(&app, to_one).await.problem(409, "signal_id_reused");
    for number in 2..=20 {
        send(&app, to_all(&format!("open-{number}")))
            .await
            .expect(202);
    }
    let full = send(&app, to_all("open-21"))
        .await
        .problem(409, "limit_reached");
    assert!(
        full["detail"]
            .as_str()
            .expect("a detail")
            .contains("20 signals of yours"),
        "{full}"
    );
    assert_eq!(shown(&app, &waits).await["revision"], 1);
}
