//! Event streams that stay open: when they end, how many there may be, and their cost.

use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::task::JoinSet;
use wrkflw_runtime::clock::Clock;
use wrkflw_server::http::auth::{AuthSettings, Secret};

use super::events::{Stream, repeat_first};
use super::problems::signed;
use super::*;
use crate::support::app::SECRET;
use crate::support::app::neighbour::Neighbour;
use crate::support::statements::Statements;

const TIMEOUT: Duration = Duration::from_secs(20);
/// The instance, its first state and the task in it.
const EVENTS_OF_A_START: usize = 3;

/// An `Authorization` header of a person with the permissions of users.
fn of(host: &Host, person: &str) -> String {
    bearer(host, person, "default", &["user"]).1
}

/// A stream from the first event on, after the existing events have been read.
async fn past(host: &Host, authorization: &str, events: usize) -> Stream {
    let mut stream = Stream::of(host, authorization, None).await;
    for _ in 0..events {
        stream.next().await;
    }
    stream
}

#[tokio::test]
async fn a_stream_ends_with_its_token() {
    let app = TestApp::start().await;
    let first = app.start_answer("doc-1").await["events"].clone();
    let first = first.as_array().expect("events").len();
    let exact = AuthSettings {
        hs256_secret: Some(Secret::new(SECRET)),
        leeway: Duration::ZERO,
        ..AuthSettings::default()
    };
    let host = app.guarded_by(&exact);
    let expires = Clock::System.now().as_second() + 2;
    let claims = json!({ "sub": "author", "tenant": "default", "roles": ["user"], "exp": expires });
    let token = signed(&claims, SECRET);
    let mut stream = past(&host, &token, first).await;
    // From here on the same token is refused.
    let over = async {
        while host
            .send("", "GET", "/v1/events", &[("authorization", &token)], None)
            .await
            .status
            != 401
        {
            crate::support::pause().await;
        }
    };
    tokio::time::timeout(TIMEOUT, over).await.expect("its end");
    app.started("doc-2").await;
    let late = stream.rest().await;
    assert_eq!(late, [Value::Null; 0], "sent after the token had expired");
}

#[tokio::test]
async fn a_stream_ends_when_its_permission_is_lost() {
    let app = TestApp::start().await;
    let first = app.start_answer("doc-1").await["events"].clone();
    let first = first.as_array().expect("events").len();
    grant(&app, "listener", &["event:read"]).await;
    let host = app.host();
    let (_, listener) = bearer(&host, "author", "default", &["listener"]);
    let mut stream = past(&host, &listener, first).await;
    // Changed permissions of other people end nothing.
    grant(&app, "another", &["event:read"]).await;
    let second = app.start_answer("doc-2").await["events"].clone();
    for expected in second.as_array().expect("events") {
        assert_eq!(&stream.next().await.1, expected);
    }
    sql(&app, "delete from role_permission where role = 'listener'").await;
    app.started("doc-3").await;
    let late = stream.rest().await;
    assert_eq!(late, [Value::Null; 0], "sent after the permission was lost");
}

#[tokio::test]
async fn a_busy_stream_ends_too() {
    const MANY: usize = 2_000;
    let app = TestApp::start().await;
    app.started("doc-1").await;
    repeat_first(&app, MANY).await;
    grant(&app, "listener", &["event:read"]).await;
    let host = app.host();
    let (_, listener) = bearer(&host, "author", "default", &["listener"]);
    let mut stream = past(&host, &listener, 1).await;
    sql(&app, "delete from role_permission where role = 'listener'").await;
    // The host has read some of them for the stream before.
    let late = stream.rest().await.len();
    assert!(late < MANY / 2, "{late} events more");
}

/// The events of the other tenant are read first, because its id is smaller.
#[tokio::test]
async fn a_tenant_with_unreadable_events_stops_no_other() {
    let app = TestApp::start().await;
    let neighbour = Neighbour::of(&app).await;
    // A version in the format of a later release. The first host has cached the version before.
    let unreadable = "set session_replication_role = replica; update definition_version set graph = '{}' where tenant_id = 1";
    sql(&app, unreadable).await;
    let host = app.beside().await;
    let path = "/v1/events/stream";
    let _own = Stream::at(&host, &of(&host, "author"), path, None).await;
    let mut others = Stream::at(&host, &neighbour.admin, path, None).await;
    app.started("doc-1").await;
    for entity in ["doc-2", "doc-3"] {
        let started = neighbour.start(entity).await;
        let (_, event) = others.next().await;
        assert_eq!(event["subject"], started["instance"]["id"], "{event}");
        for _ in 1..EVENTS_OF_A_START {
            others.next().await;
        }
    }
    let path = "/v1/events?after=earliest";
    let own = host.send("author", "GET", path, &[], None).await;
    own.problem(500, "internal");
}

#[tokio::test]
async fn the_streams_of_a_person_are_limited() {
    const MAX: usize = 20;
    let app = TestApp::start().await;
    app.started("doc-1").await;
    let host = app.host();
    let author = of(&host, "author");
    let mut open = Vec::new();
    for _ in 0..MAX {
        open.push(past(&host, &author, 1).await);
    }
    let headers = [("authorization", author.as_str())];
    let path = "/v1/events/stream";
    // A stream that was opened would not end.
    let refused = host.send("", "GET", path, &headers, None);
    let refused = tokio::time::timeout(TIMEOUT, refused).await;
    let refused = refused.expect("an answer");
    assert_eq!(refused.headers["retry-after"], "10");
    refused.problem(429, "too_many_streams");
    past(&host, &of(&host, "reviewer"), 1).await;
    open.pop();
    past(&host, &author, 1).await;
}

/// For any number of streams, whether their clients read or not.
#[tokio::test]
async fn streams_share_the_reads_of_the_database() {
    const LISTENERS: usize = 60;
    const COMMITS: usize = 5;
    let app = TestApp::start().await;
    let first = app.start_answer("doc-0").await["events"].clone();
    let first = first.as_array().expect("events").len();
    let host = app.host();
    // Half of the clients read, half do not.
    let (mut reading, mut unread) = (JoinSet::new(), Vec::new());
    for number in 0..LISTENERS {
        let mut stream = past(&host, &of(&host, &format!("p-{number}")), first).await;
        if number % 2 == 0 {
            unread.push(stream);
            continue;
        }
        reading.spawn(async move {
            for _ in 0..COMMITS * first {
                stream.next().await;
            }
        });
    }
    // The reading clients get the events and wait for more.
    let mut another = past(&host, &of(&host, "author"), first).await;
    let statements = Statements::count();
    for number in 0..COMMITS {
        app.started(&format!("doc-{}", number + 1)).await;
        for _ in 0..first {
            another.next().await;
        }
    }
    reading.join_all().await;
    let sent = statements.since_last();
    // The commits themselves, and a few reads for each. One read per stream and commit would be 900 statements.
    assert!((COMMITS..200).contains(&sent), "{sent} statements");
    // A client that did not read finds everything later.
    for stream in &mut unread {
        for _ in 0..COMMITS * first {
            stream.next().await;
        }
    }
}

/// A download is as slow as its reader.
#[tokio::test]
async fn a_long_download_is_aborted_when_its_permission_is_lost() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let rejected = json!({ "outcome": "REJECT", "comment": "too dear" });
    app.decided("reviewer", &instance, rejected).await;
    let copies = "insert into audit_entry (tenant_id, stream_kind, stream_id, seq, id, type, revision, command_id, actor, task_id, payload,
            salt, occurred_at, hash)
        select tenant_id, stream_kind, stream_id, 1000 + n, gen_random_uuid(), type, revision, command_id, actor, task_id, payload, salt,
            occurred_at + n * interval '1 ms', hash
        from audit_entry, generate_series(1, 2000) n where type = 'DECISION_RECORDED'";
    sql(&app, copies).await;
    grant(&app, "auditor", &["audit:read"]).await;
    let host = app.host();
    let (name, auditor) = bearer(&host, "author", "default", &["auditor"]);
    let path = "/v1/entities/document/doc-1/custody?format=csv";
    let request = host.request("", "GET", path).header(name, auditor);
    let response = host.open(request.body(Body::empty()).expect("a request"));
    let mut file = response.await.into_body().into_data_stream();
    let first = file.next().await.expect("a page").expect("bytes");
    assert!(first.starts_with(b"occurred_at"), "{first:?}");
    sql(&app, "delete from role_permission where role = 'auditor'").await;
    let mut pages = 1;
    while file
        .next()
        .await
        .expect("no end as if it were whole")
        .is_ok()
    {
        pages += 1;
    }
    // One chunk was read ahead.
    assert!(pages <= 2, "{pages} pages");
}
