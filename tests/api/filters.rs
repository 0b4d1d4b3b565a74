//! Filters of the feed and of its stream, and their cost.

use std::time::Duration;

use super::events::Stream;
use super::notifications::reading;
use super::*;
use crate::support::plans::{explained_query, nodes, pages};
use wrkflw_store::feed::READ_BYTES_MAX;
use wrkflw_store::notifier;

/// More events than one request reads.
const CROWD: i32 = 5_000;

/// The types of the events that a query finds in the whole feed, and the number of requests.
async fn found(app: &TestApp, query: &str) -> (Vec<String>, usize) {
    let (mut types, mut after, mut requests) = (Vec::new(), "earliest".to_owned(), 0);
    loop {
        let path = format!("/v1/events?limit=100&after={after}&{query}");
        let page = app.get("author", &path).await.expect(200);
        requests += 1;
        let events = page["data"].as_array().expect("events").iter();
        types.extend(events.map(|event| {
            let kind = event["type"].as_str().expect("a type");
            kind.trim_start_matches("dev.wrkflw.").to_owned()
        }));
        let next = page["page"]["next"].as_str().expect("a cursor").to_owned();
        if next == after {
            return (types, requests);
        }
        after = next;
    }
}

/// Two instances, with a claim in the second one.
async fn two(app: &TestApp) -> (Value, Value) {
    let first = app.started("doc-1").await;
    let second = app.started("doc-2").await;
    claimed(app, "reviewer", &second).await;
    // All of these events are behind the horizon of the feed now.
    app.events().await;
    (first, second)
}

#[tokio::test]
async fn each_filter_finds_what_it_names_and_nothing_else() {
    let app = TestApp::start().await;
    let (first, second) = two(&app).await;
    let started = ["flow.started", "state.entered", "task.created"];
    let claimed = [&started[..], &["task.claimed"]].concat();
    let all = [&started[..], &claimed].concat();
    let of_first = format!("instanceId={}", first["id"].as_str().expect("an id"));
    let of_second = format!(
        "instanceId={}&type=task.*",
        second["id"].as_str().expect("an id")
    );
    for (query, expected) in [
        ("", &all[..]),
        ("type=task.claimed", &["task.claimed"]),
        ("type=dev.wrkflw.task.claimed", &["task.claimed"]),
        ("type=flow.*", &["flow.started", "flow.started"]),
        (
            "definitionKey=document-approval&type=task.claimed",
            &["task.claimed"],
        ),
        ("definitionKey=other", &[]),
        ("entityType=document&entityId=doc-1", &started),
        ("entityId=doc-2", &claimed),
        ("entityType=invoice", &[]),
        ("actor=reviewer", &["task.claimed"]),
        ("actor=nobody", &[]),
        (&of_first, &started),
        (&of_second, &["task.created", "task.claimed"]),
    ] {
        assert_eq!(found(&app, query).await.0, expected, "{query}");
    }
    for (query, reason) in [
        ("type=task.eaten", "task.eaten"),
        ("type=notification.mention", "/v1/notifications"),
        ("type=notification.*", "/v1/notifications"),
    ] {
        let problem = app.get("author", &format!("/v1/events?{query}")).await;
        let problem = problem.problem(400, "malformed_request");
        let detail = problem["detail"].as_str().expect("a detail");
        assert!(detail.contains(reason), "{detail}");
    }
}

/// An empty page has a next cursor, and no filter reads the whole table.
#[tokio::test]
async fn the_cost_of_a_filter_does_not_grow_with_the_feed() {
    let app = TestApp::start().await;
    let (first, second) = two(&app).await;
    let crowd = "insert into audit_entry (tenant_id, stream_kind, stream_id, seq, id, type, revision, command_id, actor, payload, salt, occurred_at, hash, event_seq)
        select i.tenant_id, 'instance', i.id, 1000 + n, gen_random_uuid(), 'TASK_RELEASED', 9, gen_random_uuid(), 'crowd', '{\"type\":\"TASK_RELEASED\"}',
            ''::bytea, now(), ''::bytea, 1000 + n
        from instance i cross join generate_series(1, $2) n where i.id = $1::uuid";
    sqlx::query(crowd)
        .bind(second["id"].as_str().expect("an id"))
        .bind(CROWD)
        .execute(app.database.admin_pool())
        .await
        .expect("a crowd");
    sqlx::query("analyze audit_entry")
        .execute(app.database.admin_pool())
        .await
        .expect("statistics");
    let third = app.started("doc-3").await;
    let until = async {
        while found(&app, "entityId=doc-3").await.0.len() < 3 {
            crate::support::pause().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), until)
        .await
        .expect("the feed goes on");
    let (types, requests) = found(&app, "entityId=doc-3").await;
    assert_eq!(types.len(), 3);
    assert!((5..=8).contains(&requests), "{requests} requests");
    let (types, requests) = found(
        &app,
        &format!("instanceId={}", third["id"].as_str().expect("an id")),
    )
    .await;
    assert_eq!((types.len(), requests), (3, 2));

    let epoch: i32 = sqlx::query_scalar("select max(epoch) from feed_epoch")
        .fetch_one(app.database.admin_pool())
        .await
        .expect("a number");
    let query = "select e.epoch as \"epoch!\"";
    let horizon = i64::MAX;
    let scan = format!("(1, 0, 0, {horizon}, 1000, null, {epoch}, null, {READ_BYTES_MAX})");
    let plan = explained_query(&app.database, query, &scan).await;
    assert!(
        nodes(&plan)
            .iter()
            .any(|node| node.contains("audit_entry_feed")),
        "{:?}",
        nodes(&plan)
    );
    let id = first["id"].as_str().expect("an id");
    let one = format!("(1, 0, 0, {horizon}, 1000, null, {epoch}, '{id}', {READ_BYTES_MAX})");
    let plan = explained_query(&app.database, query, &one).await;
    assert!(
        nodes(&plan)
            .iter()
            .any(|node| node.contains("audit_entry_pkey")),
        "{:?}",
        nodes(&plan)
    );
    assert!(pages(&plan) < 100, "{} pages", pages(&plan));
}

/// Each read takes few large events, whatever its limit. No event is left out.
#[tokio::test]
async fn large_events_make_short_pages() {
    const BYTES: usize = 64 * 1024;
    const COUNT: usize = 150;
    let app = TestApp::start().await;
    let (first, _) = two(&app).await;
    let crowd = "insert into audit_entry (tenant_id, stream_kind, stream_id, seq, id, type, revision, command_id, actor, payload, salt, occurred_at, hash, event_seq)
        select i.tenant_id, 'instance', i.id, 1000 + n, gen_random_uuid(), 'TASK_RESOLVED', 9, gen_random_uuid(), 'crowd',
            '{\"message\":\"' || repeat('x', $2) || '\",\"type\":\"TASK_RESOLVED\"}', ''::bytea, now(), ''::bytea, 1000 + n
        from instance i cross join generate_series(1, $3) n where i.id = $1::uuid";
    sqlx::query(crowd)
        .bind(first["id"].as_str().expect("an id"))
        .bind(i32::try_from(BYTES).expect("a number"))
        .bind(i32::try_from(COUNT).expect("a number"))
        .execute(app.database.admin_pool())
        .await
        .expect("a crowd");
    let until = async {
        while found(&app, "type=task.resolved").await.0.len() < COUNT {
            crate::support::pause().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), until)
        .await
        .expect("the feed goes on");
    let of_page = usize::try_from(READ_BYTES_MAX).expect("a number") / BYTES;
    let pages = COUNT.div_ceil(of_page);
    for query in ["", "actor=crowd"] {
        let (types, requests) = found(&app, query).await;
        let resolved = types.iter().filter(|kind| *kind == "task.resolved");
        assert_eq!(resolved.count(), COUNT, "{query}");
        assert!(
            (pages..=pages + 2).contains(&requests),
            "{query}: {requests} requests"
        );
    }

    // The notifier knows that there are more, so it does not wait for the next commit.
    let store = app.store();
    notifier::ensure_cursors(store).await.expect("cursors");
    let reading = reading(&app, 1_000).await.expect("entries");
    assert!(reading.more && reading.unsent.len() <= of_page + 2);
    drop(reading);

    // Marks them as sent, so that they can be replayed.
    sql(&app, "delete from outbox_event").await;
    let (mut after, mut replayed, mut calls) = (json!("earliest"), 0, 0);
    loop {
        let body = json!({ "after": after, "reason": "lost", "instanceId": first["id"] });
        let answer = app.post("admin", "/v1/events/replay", body).await;
        let answer = answer.expect(200);
        (replayed, calls) = (
            replayed + answer["replayed"].as_u64().expect("a number"),
            calls + 1,
        );
        after = answer["next"].clone();
        if answer["more"] == false {
            break;
        }
    }
    assert_eq!(
        (replayed, calls),
        (COUNT as u64 + 3, pages),
        "the events of the instance itself, too"
    );
}

/// A client that reconnects does not read skipped events again.
#[tokio::test]
async fn an_idle_stream_sends_its_position() {
    let app = TestApp::start().await;
    two(&app).await;
    let host = app.host();
    let token = format!("Bearer {}", host.token("author"));
    let path = "/v1/events/stream?after=earliest&entityId=doc-3";
    let mut stream = Stream::at(&host, &token, path, None).await;
    let (first, second) = (stream.position().await, stream.position().await);
    assert_ne!(first, second);
    let path = format!("/v1/events?after={second}");
    let rest = app.get("author", &path).await.expect(200);
    assert_eq!(rest["data"], json!([]), "everything was read");
}

#[tokio::test]
async fn a_stream_begins_now_and_skips_events_that_do_not_match() {
    let app = TestApp::start().await;
    let first = app.started("doc-1").await;
    claimed(&app, "reviewer", &first).await;
    app.events().await;
    let host = app.host();
    let token = format!("Bearer {}", host.token("author"));
    let mut live = Stream::at(&host, &token, "/v1/events/stream", None).await;
    let path = "/v1/events/stream?type=task.*&actor=reviewer";
    let mut filtered = Stream::at(&host, &token, path, None).await;
    let path = "/v1/events/stream?after=earliest&entityId=doc-2";
    let mut earlier = Stream::at(&host, &token, path, None).await;
    let second = app.started("doc-2").await;
    claimed(&app, "reviewer", &second).await;
    for expected in [
        "flow.started",
        "state.entered",
        "task.created",
        "task.claimed",
    ] {
        for stream in [&mut live, &mut earlier] {
            let (_, event) = stream.next().await;
            assert_eq!(event["type"], format!("dev.wrkflw.{expected}"));
            assert_eq!(event["subject"], second["id"]);
        }
    }
    let (_, event) = filtered.next().await;
    assert_eq!(event["type"], "dev.wrkflw.task.claimed");
    assert_eq!(event["subject"], second["id"]);
}
