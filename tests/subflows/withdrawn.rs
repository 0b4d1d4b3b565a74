//! Signals by correlation whose request loses its idempotency key after it has stored the signal: withdrawn, unless the signal has
//! had an effect or another request was told that it is kept.

use serde_json::{Value, json};

use super::*;
use crate::support::plug::Gate;

const PAID: &str = "/v1/signals/PAID";

fn payment(id: &str, to_all: bool) -> Value {
    let deliver = if to_all { "all" } else { "one" };
    json!({ "correlation": "order 7", "id": id, "deliver": deliver, "input": { "amount": 1 } })
}

/// Another command takes each key after its request has looked for it.
async fn take_keys(app: &TestApp) {
    let sql = "create function take_key() returns trigger language plpgsql security definer as $$ begin
            if new.fingerprint <> '\\xff' then
                insert into idempotency_key (tenant_id, principal, key, fingerprint, status, body, headers, created_at, command_id)
                values (new.tenant_id, new.principal, new.key, '\\xff', 200, '', '{}', now(), gen_random_uuid());
            end if;
            return new;
        end $$;
        create trigger take_key before insert on idempotency_key for each row execute function take_key()";
    let made = sqlx::raw_sql(sql).execute(app.database.admin_pool());
    made.await.expect("a trigger");
}

async fn send(host: &Host, key: Option<&str>, body: Value) -> Answer {
    let headers: Vec<_> = key
        .map(|key| ("idempotency-key", key))
        .into_iter()
        .collect();
    host.send("author", "POST", PAID, &headers, Some(body))
        .await
}

async fn status(app: &TestApp, answer: &Value) -> Value {
    let signal = answer["signal"]["signalId"].as_str().expect("an id");
    let answer = app.get("author", &format!("/v1/signals/{signal}")).await;
    answer.expect(200)["status"].clone()
}

#[tokio::test]
async fn a_signal_that_only_the_refused_request_stored_is_withdrawn() {
    let app = fixture().await;
    let host = app.host();
    let kept = send(&host, None, payment("p-1", false)).await.expect(202);
    take_keys(&app).await;
    // The signal was acknowledged before, so it is kept.
    let repeated = send(&host, Some("k-1"), payment("p-1", false)).await;
    repeated.problem(422, "idempotency_key_reused");
    assert_eq!(status(&app, &kept).await, "KEPT");
    for to_all in [false, true] {
        let new = send(&host, Some("k-2"), payment("p-2", to_all)).await;
        new.problem(422, "idempotency_key_reused");
        assert_eq!(counted(&app, "select count(*) from signal_inbox").await, 1);
        assert_eq!(counted(&app, "select count(*) from job").await, 0);
    }
}

/// Runs `between` after the request has stored the signal and before it learns that it has lost its key. Returns its answer.
async fn losing_its_key(app: &TestApp, body: Value, between: impl AsyncFnOnce(&TestApp)) -> Value {
    take_keys(app).await;
    let gate = Gate::shut(&app.database, "idempotency_key").await;
    let host = app.host();
    let meanwhile = async {
        gate.is_met().await;
        between(app).await;
        gate.open().await;
    };
    let (answer, ()) = tokio::join!(send(&host, Some("k-1"), body), meanwhile);
    // The signal is not withdrawn, so the answer says what holds.
    answer.expect(202)
}

#[tokio::test]
async fn a_signal_that_a_repeat_was_told_is_kept_stays() {
    for to_all in [false, true] {
        let app = fixture().await;
        let body = payment("p-1", to_all);
        let repeat = async |app: &TestApp| {
            send(&app.host(), None, payment("p-1", to_all))
                .await
                .expect(202);
        };
        let answer = losing_its_key(&app, body, repeat).await;
        let status = status(&app, &answer).await;
        assert_eq!(status, if to_all { "ASSIGNED" } else { "KEPT" });
    }
}

#[tokio::test]
async fn a_signal_that_was_delivered_meanwhile_is_not_refused() {
    for to_all in [false, true] {
        let app = fixture().await;
        let wait =
            json!({ "payments": 1, "wait": { "correlation": "order 7", "bufferSignals": true } });
        let early = async |app: &TestApp| begin(app, "1", wait.clone()).await;
        if to_all {
            early(&app).await;
        }
        let deliver = async |app: &TestApp| {
            if !to_all {
                early(app).await;
            }
            let timers = app.timers();
            settled(app).await;
            timers.stop().await;
        };
        let answer = losing_its_key(&app, payment("p-1", to_all), deliver).await;
        assert_eq!(status(&app, &answer).await, "DELIVERED");
    }
}
