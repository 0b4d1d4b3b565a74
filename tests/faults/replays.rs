//! Replays of published events.

use super::dead_letters::{send, settings};
use super::*;
use crate::events::consumer::Consumer;

async fn missing(app: &TestApp) -> i64 {
    sqlx::query_scalar("select missing_events()")
        .fetch_one(app.database.admin_pool())
        .await
        .expect("a number")
}

#[tokio::test]
async fn events_that_wait_for_kafka_are_not_sent_again() {
    let app = TestApp::start().await;
    app.started("doc-1").await;
    app.events().await;
    let all = json!({ "after": "earliest", "reason": "too early" });
    let answer = app.post("admin", "/v1/events/replay", all).await;
    assert_eq!(answer.expect(200)["replayed"], 0);
    sql(&app, "delete from outbox_event").await;
    let all = json!({ "after": "earliest", "reason": "the index was lost" });
    let answer = app.post("admin", "/v1/events/replay", all).await;
    assert_eq!(answer.expect(200)["replayed"], 3);
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one story, told in order")]
async fn a_range_is_sent_again_under_the_same_ids_and_on_record() {
    let app = TestApp::start().await;
    let settings = settings(&app);
    let first = app.started("doc-1").await;
    app.started("doc-2").await;
    let events = app.events().await;
    let _relay = send(&app, &settings);
    drained(&app).await;

    let range =
        json!({ "after": "earliest", "instanceId": first["id"], "reason": "the index was lost" });
    app.post("author", "/v1/events/replay", range.clone())
        .await
        .problem(403, "permission_missing");
    let answer = app
        .post("admin", "/v1/events/replay", range)
        .await
        .expect(200);
    assert_eq!(
        (&answer["replayed"], &answer["more"]),
        (&json!(3), &json!(false))
    );
    let limited = json!({ "after": "earliest", "limit": 2, "reason": "a try" });
    let answer = app
        .post("admin", "/v1/events/replay", limited)
        .await
        .expect(200);
    assert_eq!(
        (&answer["replayed"], &answer["more"]),
        (&json!(2), &json!(true))
    );
    let rest = json!({ "after": answer["next"], "until": answer["next"], "reason": "nothing" });
    let answer = app
        .post("admin", "/v1/events/replay", rest)
        .await
        .expect(200);
    assert_eq!(
        (&answer["replayed"], &answer["more"]),
        (&json!(0), &json!(false))
    );
    let backwards = json!({ "after": answer["next"], "until": "earliest", "reason": "a slip" });
    let refused = app.post("admin", "/v1/events/replay", backwards).await;
    let detail = refused.problem(422, "invalid_request");
    assert!(
        detail["detail"]
            .as_str()
            .is_some_and(|text| text.starts_with("/until: ")),
        "{detail}"
    );
    for wrong in [
        json!({ "after": "x", "reason": "r" }),
        json!({ "after": "earliest", "limit": 0, "reason": "r" }),
    ] {
        assert!((400..=422).contains(&app.post("admin", "/v1/events/replay", wrong).await.status));
    }
    drained(&app).await;
    assert_eq!(missing(&app).await, 0, "a replay is no new event");

    let mut consumer = Consumer::of(&settings.brokers, &settings.topic).await;
    let all = events.len() + 5;
    consumer
        .receive_until(|received| received.len() >= all)
        .await;
    let (again, once): (Vec<_>, Vec<_>) = consumer
        .received
        .iter()
        .partition(|record| record.headers.contains_key("wrkflw-replayed"));
    assert_eq!((once.len(), again.len()), (events.len(), 5));
    for record in again {
        let original = once.iter().find(|one| one.id() == record.id());
        let original = original.expect("published before");
        assert_eq!(
            (&original.key, &original.value),
            (&record.key, &record.value)
        );
    }
    let audited: Vec<(String, String)> = sqlx::query_as(
        "select actor, payload::jsonb ->> 'reason' from audit_entry where type = 'EVENTS_REPLAYED' order by seq",
    )
    .fetch_all(app.database.admin_pool())
    .await
    .expect("entries");
    let by = |reason: &str| ("admin".to_owned(), reason.to_owned());
    assert_eq!(
        audited,
        [by("the index was lost"), by("a try"), by("nothing")]
    );
}
