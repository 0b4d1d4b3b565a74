//! Events without Kafka: the feed with its order, and its stream.

use std::time::Duration;

use axum::body::BodyDataStream;
use futures_util::StreamExt as _;
use sqlx::Row as _;

use super::*;

/// The longest time for which transactions of other tests on the same server delay the feed.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The ids of all events, in the order of their positions.
const IN_ORDER: &str = "select id from audit_entry where event_seq is not null order by xid, pos";

/// One page, and the cursor of the next one.
pub(super) async fn page(app: &TestApp, after: &str, limit: usize) -> (Vec<Value>, String) {
    let after = if after.is_empty() {
        String::new()
    } else {
        format!("&after={after}")
    };
    let page = app
        .get("author", &format!("/v1/events?limit={limit}{after}"))
        .await
        .expect(200);
    let events = page["data"].as_array().expect("events").clone();
    (
        events,
        page["page"]["next"].as_str().expect("a cursor").to_owned(),
    )
}

/// Reads on from a cursor until there are this many events.
pub(super) async fn read(
    app: &TestApp,
    mut after: String,
    count: usize,
    limit: usize,
) -> (Vec<Value>, String) {
    let mut found = Vec::new();
    let reading = async {
        while found.len() < count {
            let (events, next) = page(app, &after, limit).await;
            assert!(events.len() <= limit);
            if events.is_empty() {
                crate::support::pause().await;
            }
            found.extend(events);
            after = next;
        }
    };
    tokio::time::timeout(TIMEOUT, reading)
        .await
        .expect("the feed goes on");
    (found, after)
}

/// Adds this many copies of the first entry of each instance.
pub(super) async fn repeat_first(app: &TestApp, count: usize) {
    let entries = "insert into audit_entry
        (tenant_id, stream_kind, stream_id, seq, id, type, revision, command_id, actor, payload, evidence, salt, occurred_at, hash, event_seq)
        select tenant_id, stream_kind, stream_id, 1000 + n, gen_random_uuid(), type, revision, command_id, actor, payload, evidence, salt,
            occurred_at, hash, 1000 + n
        from audit_entry, generate_series(1, $1::bigint) n where stream_kind = 'instance' and seq = 1";
    sqlx::query(entries)
        .bind(i64::try_from(count).expect("a number"))
        .execute(app.database.admin_pool())
        .await
        .expect("entries");
}

pub(super) fn ids(events: &[Value]) -> Vec<String> {
    events
        .iter()
        .map(|event| event["id"].as_str().expect("an id").to_owned())
        .collect()
}

async fn stored(app: &TestApp) -> Vec<String> {
    let rows = sqlx::query(IN_ORDER)
        .fetch_all(app.database.admin_pool())
        .await
        .expect("entries");
    rows.iter()
        .map(|row| row.get::<uuid::Uuid, _>(0).to_string())
        .collect()
}

#[tokio::test]
async fn the_feed_has_every_event_once_and_as_in_responses() {
    let app = TestApp::start().await;
    let mut answered = Vec::new();
    for entity in ["doc-1", "doc-2"] {
        let started = app.start_answer(entity).await;
        let task = task_of(&started["instance"]);
        answered.extend(started["events"].as_array().expect("events").clone());
        for (what, body) in [
            ("claim", json!({})),
            ("release", json!({})),
            ("claim", json!({})),
            (
                "decide",
                json!({ "outcome": "APPROVE", "comment": "fine", "input": { "salary": 1 } }),
            ),
        ] {
            let changed = app
                .post("reviewer", &format!("/v1/tasks/{task}/{what}"), body)
                .await
                .expect(200);
            answered.extend(changed["events"].as_array().expect("events").clone());
        }
    }
    // Dry runs and refusals make no events.
    app.post(
        "author",
        "/v1/instances?dryRun=true",
        approval_start("doc-3"),
    )
    .await
    .expect(200);
    app.post("outsider", "/v1/instances", approval_start("doc-3"))
        .await
        .problem(403, "forbidden");
    let (found, end) = read(&app, String::new(), answered.len(), 4).await;
    assert_eq!(found, answered);
    assert_eq!(ids(&found), stored(&app).await);
    assert!(
        !json!(found).to_string().contains("salary"),
        "what was decided on is nobody else's"
    );
    let (rest, same) = page(&app, &end, 4).await;
    assert_eq!((rest, same), (vec![], end));
}

#[tokio::test]
async fn the_feed_waits_for_a_late_commit() {
    let app = TestApp::start().await;
    app.started("doc-1").await;
    let early = stored(&app).await.len();
    let (_, cursor) = read(&app, String::new(), early, 100).await;
    // An event that is written before others and committed after them.
    let mut late = app
        .database
        .admin_pool()
        .begin()
        .await
        .expect("a transaction");
    let id: uuid::Uuid = sqlx::query_scalar(
        "insert into audit_entry (tenant_id, stream_kind, stream_id, seq, id, type, revision, command_id, actor, payload, salt,
             occurred_at, hash, event_seq)
         select tenant_id, stream_kind, stream_id, 1000, gen_random_uuid(), type, revision, command_id, actor, payload, salt,
             occurred_at, hash, 1000
         from audit_entry where event_seq = 1 returning id",
    )
    .fetch_one(&mut *late)
    .await
    .expect("an entry");
    let others = app.start_answer("doc-2").await;
    let others = ids(others["events"].as_array().expect("events"));
    let (shown, cursor) = page(&app, &cursor, 100).await;
    assert_eq!(
        shown,
        [Value::Null; 0],
        "an event is not shown while an earlier one may still be committed"
    );

    late.commit().await.expect("a commit");
    let (found, _) = read(&app, cursor, 1 + others.len(), 100).await;
    assert_eq!(ids(&found), [vec![id.to_string()], others].concat());
}

/// Requests events after a cursor in each possible way.
pub(super) async fn expired(app: &TestApp, cursor: &str) {
    for path in ["/v1/events", "/v1/events/stream"] {
        let answer = app.get("author", &format!("{path}?after={cursor}")).await;
        answer.problem(410, "cursor_expired");
    }
    let headers = [("last-event-id", cursor)];
    let host = app.host();
    let answer = host.send("author", "GET", "/v1/events/stream", &headers, None);
    answer.await.problem(410, "cursor_expired");
}

/// The database was set back, and another event has the position of a lost one.
#[tokio::test]
async fn a_cursor_whose_position_another_event_has_is_expired() {
    let app = TestApp::start().await;
    app.started("doc-1").await;
    let (_, cursor) = read(&app, String::new(), 1, 1).await;
    let other = "begin; set local session_replication_role = replica;
        update audit_entry set id = gen_random_uuid() where event_seq = 1; commit";
    sql(&app, other).await;
    expired(&app, &cursor).await;
    let (again, _) = read(&app, String::new(), 1, 1).await;
    assert_eq!(again.len(), 1);
}

/// A backup without the event was restored.
#[tokio::test]
async fn a_cursor_of_a_missing_event_is_expired() {
    let app = TestApp::start().await;
    app.started("doc-1").await;
    let (found, cursor) = read(&app, String::new(), 1, 1).await;
    let path = format!("/v1/events?after={cursor}");
    app.get("author", &path).await.expect(200);
    let id = ids(&found).remove(0);
    let lost = format!(
        "begin; set local session_replication_role = replica; delete from audit_entry where id = '{id}'; commit"
    );
    let pool = app.database.admin_pool();
    let lost = sqlx::raw_sql(sqlx::AssertSqlSafe(lost)).execute(pool).await;
    lost.expect("it is gone");
    app.started("doc-2").await;
    expired(&app, &cursor).await;
}

#[tokio::test]
async fn events_have_what_consumers_rely_on() {
    let app = TestApp::start().await;
    let started = app.started("doc-1").await;
    let id = started["id"].as_str().expect("an id");
    claimed(&app, "reviewer", &started).await;
    let (events, _) = read(&app, String::new(), 4, 100).await;
    let mut types = Vec::new();
    for (number, event) in events.iter().enumerate() {
        let kind = event["type"].as_str().expect("a type");
        types.push(kind);
        let schema = format!("http://localhost:8080/schemas/v1/{kind}.json");
        for (attribute, value) in [
            ("specversion", json!("1.0")),
            ("source", json!(format!("/default/instances/{id}"))),
            ("subject", json!(id)),
            ("partitionkey", json!(id)),
            ("datacontenttype", json!("application/json")),
            ("dataschema", json!(schema)),
            ("sequence", json!(format!("{:020}", number + 1))),
            ("authtype", json!("user")),
        ] {
            assert_eq!(event[attribute], value, "{kind}: {attribute}");
        }
        event["time"]
            .as_str()
            .expect("a time")
            .parse::<jiff::Timestamp>()
            .expect("RFC 3339");
        let data = &event["data"];
        assert_eq!(
            (&data["instanceId"], &data["entityType"], &data["entityId"]),
            (&json!(id), &json!("document"), &json!("doc-1"))
        );
        assert_eq!(
            (&data["definitionKey"], &data["definitionVersion"]),
            (&json!("document-approval"), &json!(1))
        );
        let path = schema.strip_prefix("http://localhost:8080").expect("ours");
        let schema = app.get("", path).await.expect(200);
        for member in schema["required"].as_array().expect("members") {
            let member = member.as_str().expect("a name");
            assert!(data.get(member).is_some(), "{kind} lacks {member}");
        }
    }
    let prefix = "dev.wrkflw.";
    let types: Vec<_> = types
        .iter()
        .map(|kind| kind.strip_prefix(prefix).expect("ours"))
        .collect();
    assert_eq!(
        types,
        [
            "flow.started",
            "state.entered",
            "task.created",
            "task.claimed"
        ]
    );
    assert_eq!(
        (&events[0]["authid"], &events[3]["authid"]),
        (&json!("author"), &json!("reviewer"))
    );
    app.get("", "/schemas/v1/dev.wrkflw.nothing.json")
        .await
        .problem(404, "not_found");
}

/// Events as the stream sends them.
pub(crate) struct Stream {
    body: BodyDataStream,
    text: String,
}

impl Stream {
    async fn open(app: &TestApp, last_event_id: Option<&str>) -> Stream {
        let host = app.host();
        let token = format!("Bearer {}", host.token("author"));
        Stream::of(&host, &token, last_event_id).await
    }

    /// The stream for this `Authorization` header.
    pub(crate) async fn of(
        host: &Host,
        authorization: &str,
        last_event_id: Option<&str>,
    ) -> Stream {
        // Without an event id, the stream begins with the first event.
        let path = match last_event_id {
            Some(_) => "/v1/events/stream",
            None => "/v1/events/stream?after=earliest",
        };
        Stream::at(host, authorization, path, last_event_id).await
    }

    pub(crate) async fn at(
        host: &Host,
        authorization: &str,
        path: &str,
        last_event_id: Option<&str>,
    ) -> Stream {
        let request = host.request("", "GET", path);
        let mut request = request.header("authorization", authorization);
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        let response = host
            .open(request.body(Body::empty()).expect("a request"))
            .await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let body = response.into_body().into_data_stream();
        Stream {
            body,
            text: String::new(),
        }
    }

    /// The id of the next message, which must have no event.
    pub(super) async fn position(&mut self) -> String {
        let reading = tokio::time::timeout(Duration::from_mins(1), self.message());
        let message = reading.await.expect("a message within a minute");
        let message = message.expect("the stream goes on");
        message
            .strip_prefix("id: ")
            .expect("an id alone")
            .to_owned()
    }

    /// The next message, without the empty line at its end. None at the end of the stream.
    async fn message(&mut self) -> Option<String> {
        loop {
            if let Some((message, rest)) = self.text.split_once("\n\n") {
                let (message, rest) = (message.to_owned(), rest.to_owned());
                self.text = rest;
                return Some(message);
            }
            let bytes = self.body.next().await?.expect("bytes");
            self.text += str::from_utf8(&bytes).expect("text");
        }
    }

    /// The next event with its id. Skips messages without an event.
    pub(crate) async fn next(&mut self) -> (String, Value) {
        let next = self.next_if_any().await;
        next.expect("the stream goes on")
    }

    /// Everything that the stream sends until the host ends it.
    pub(super) async fn rest(&mut self) -> Vec<Value> {
        let mut rest = Vec::new();
        while let Some((_, event)) = self.next_if_any().await {
            rest.push(event);
        }
        rest
    }

    /// The next event. None at the end of the stream.
    async fn next_if_any(&mut self) -> Option<(String, Value)> {
        let reading = async {
            loop {
                let message = self.message().await?;
                let mut lines = message.lines();
                let mut line = |name: &str| {
                    let found = lines.find_map(|line| line.strip_prefix(name));
                    found.map(str::trim)
                };
                if let (Some(id), Some(data)) = (line("id:"), line("data:")) {
                    let event = serde_json::from_str(data).expect("JSON");
                    return Some((id.to_owned(), event));
                }
            }
        };
        tokio::time::timeout(TIMEOUT, reading)
            .await
            .expect("an event")
    }
}

#[tokio::test]
async fn a_stream_resumes_where_it_ended_and_continues_live() {
    let app = TestApp::start().await;
    let first = app.start_answer("doc-1").await["events"]
        .as_array()
        .expect("events")
        .clone();
    let mut stream = Stream::open(&app, None).await;
    let (id, event) = stream.next().await;
    assert_eq!(event, first[0]);
    drop(stream);

    let mut resumed = Stream::open(&app, Some(&id)).await;
    let mut last = id;
    for expected in &first[1..] {
        let (id, event) = resumed.next().await;
        assert_eq!(&event, expected);
        last = id;
    }
    // The stream has commits of all hosts.
    let second = app.start_answer("doc-2").await["events"]
        .as_array()
        .expect("events")
        .clone();
    let other = app.beside().await;
    let third = other
        .send(
            "author",
            "POST",
            "/v1/instances",
            &[],
            Some(approval_start("doc-3")),
        )
        .await;
    let third = third.expect(201)["events"]
        .as_array()
        .expect("events")
        .clone();
    for expected in second.iter().chain(&third) {
        assert_eq!(&resumed.next().await.1, expected);
    }
    // Event ids are cursors of pages, too.
    let (rest, _) = read(&app, last, second.len() + third.len(), 100).await;
    assert_eq!(rest, [second, third].concat());
}
