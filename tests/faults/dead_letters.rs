//! Events that a real broker refuses for good: parked with the later ones of their instance, then retried or discarded by an
//! operator.

use std::sync::Arc;

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;
use wrkflw_core::cloudevent::Naming;
use wrkflw_relay::outbox::Relay;
use wrkflw_relay::outbox::settings::KafkaSettings;

use super::program::{Folder, Program, command, run, serve};
use super::*;
use crate::events::consumer::Consumer;
use crate::events::database::topic_of;
use crate::support::kafka::{create_topic, shared_address};

/// Larger than the topic accepts.
const HUGE: usize = 30_000;
const LIMIT: (&str, &str) = ("max.message.bytes", "20000");

/// Sends this database's events to a topic of its own.
pub(crate) struct Sending {
    _ends: DropGuard,
    _tasks: JoinSet<()>,
}

pub(crate) fn settings(app: &TestApp) -> KafkaSettings {
    KafkaSettings {
        brokers: shared_address(),
        topic: topic_of(&app.database),
        ..KafkaSettings::default()
    }
}

pub(crate) fn send(app: &TestApp, settings: &KafkaSettings) -> Sending {
    let cancel = CancellationToken::new();
    let outbox = app.store().outbox();
    let relay = Relay::new(outbox, settings.clone(), Naming::default()).expect("sound settings");
    let mut tasks = JoinSet::new();
    tasks.spawn(relay.run(cancel.clone(), Arc::new(Notify::new())));
    Sending {
        _ends: cancel.drop_guard(),
        _tasks: tasks,
    }
}

/// Makes the topic accept records of this size.
async fn let_in(settings: &KafkaSettings, bytes: &str) {
    let admin: AdminClient<DefaultClientContext> = ClientConfig::new()
        .set("bootstrap.servers", &settings.brokers)
        .create()
        .expect("a client");
    let topic = AlterConfig::new(ResourceSpecifier::Topic(&settings.topic)).set(LIMIT.0, bytes);
    let altered = admin
        .alter_configs(&[topic], &AdminOptions::new())
        .await
        .expect("an answer");
    assert!(altered.iter().all(Result::is_ok), "{altered:?}");
}

/// An instance with a decision whose event the topic refuses, and later events.
struct Stuck {
    id: String,
    instance: Value,
}

/// Claims, and decides with a comment of this length.
async fn decide(app: &TestApp, user: &str, instance: &Value, comment: usize) -> Value {
    let decision = json!({ "outcome": "APPROVE", "comment": "x".repeat(comment) });
    app.decided(user, instance, decision).await
}

async fn stuck(app: &TestApp, entity: &str) -> Stuck {
    let started = app.started(entity).await;
    let instance = decide(app, "reviewer", &started, 10).await;
    let id = instance["id"].as_str().expect("an id").to_owned();
    // A public event that is larger than Kafka accepts. The API prevents it, so it is written to the database.
    let grow = format!(
        "set local session_replication_role = replica;
         update audit_entry set payload = (payload::jsonb || jsonb_build_object('comment', repeat('x', {HUGE})))::text
         where stream_id = '{id}' and type = 'DECISION_RECORDED'"
    );
    sql(app, &grow).await;
    Stuck { id, instance }
}

fn ids(page: &Value) -> Vec<&str> {
    let data = page["data"].as_array().expect("a page");
    data.iter()
        .map(|item| item["instanceId"].as_str().expect("an id"))
        .collect()
}

/// The operation entries of the tenant's stream, each with actor and reason.
async fn audited(app: &TestApp) -> Vec<(String, String, String)> {
    sqlx::query_as(
        "select type, actor, payload::json ->> 'reason' from audit_entry
         where stream_kind = 'operation' and type like 'DEAD_LETTER%' order by seq",
    )
    .fetch_all(app.database.admin_pool())
    .await
    .expect("entries")
}

/// Runs `wrkflw dead-letter` as the operator. Returns its exit code and its JSON.
async fn run_cli(
    folder: &Folder,
    app: &TestApp,
    host: &Program,
    line: &str,
) -> (Option<i32>, Value) {
    let mut command = command(folder, &format!("dead-letter {line} --output json"));
    command
        .env("WRKFLW_SERVER", format!("http://{}", host.address))
        .env("WRKFLW_TOKEN", app.host().token("admin"));
    let output = run(command).await;
    let text = if output.stdout.is_empty() {
        output.stderr
    } else {
        output.stdout
    };
    let text = String::from_utf8(text).expect("text");
    let value = serde_json::from_str::<Value>(&text).unwrap_or_else(|_| panic!("{line}: {text}"));
    (output.status.code(), value)
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one story")]
async fn refused_events_are_sent_in_order_once_the_broker_accepts_them() {
    let app = TestApp::start().await;
    let settings = settings(&app);
    create_topic(&settings.brokers, &settings.topic, 1, &[LIMIT]).await;
    let (poisoned, neighbour) = (stuck(&app, "doc-1").await, app.started("doc-2").await);
    let _sending = send(&app, &settings);
    drained(&app).await;
    let approved = decide(&app, "approver", &poisoned.instance, 1).await;
    assert_eq!(approved["status"], "COMPLETED", "callers notice nothing");
    decide(&app, "reviewer", &neighbour, 1).await;
    drained(&app).await;

    let page = app.get("admin", "/v1/dead-letters").await.expect(200);
    assert_eq!(ids(&page), [&poisoned.id], "the neighbour goes on");
    let first = &page["data"][0];
    assert_eq!(first["type"], "DECISION_RECORDED");
    assert_eq!(first["attempts"], 3);
    assert!(
        first["error"]
            .as_str()
            .is_some_and(|error| error.contains("too large")),
        "{first}"
    );
    let path = format!("/v1/dead-letters/{}", poisoned.id);
    let all = app
        .get("admin", &format!("{path}?limit=100"))
        .await
        .expect(200);
    let events = all["data"].as_array().expect("events");
    assert_eq!(first["followers"], events.len() - 1);
    let sequences: Vec<i64> = events
        .iter()
        .filter_map(|event| event["sequence"].as_i64())
        .collect();
    assert_eq!(sequences.len(), events.len());
    assert!(
        sequences.windows(2).all(|pair| pair[1] == pair[0] + 1),
        "{sequences:?}"
    );

    let body = json!({ "reason": "the topic takes more now" });
    app.post("author", &format!("{path}/retry"), body.clone())
        .await
        .problem(403, "permission_missing");
    app.get("author", "/v1/dead-letters")
        .await
        .problem(403, "permission_missing");
    app.post("admin", &format!("{path}/retry"), json!({ "reason": " " }))
        .await
        .problem(422, "invalid_request");
    // Nothing has changed yet: the event is refused again, and all stay parked.
    app.post(
        "admin",
        &format!("{path}/retry"),
        json!({ "reason": "a try" }),
    )
    .await
    .expect(200);
    drained(&app).await;
    let again = app.get("admin", "/v1/dead-letters").await.expect(200);
    assert_eq!(again["data"][0]["entry"], first["entry"]);
    assert_eq!(again["data"][0]["followers"], first["followers"]);

    let_in(&settings, "1000000").await;
    let moved = app
        .post("admin", &format!("{path}/retry"), body)
        .await
        .expect(200);
    assert_eq!(
        (&moved["released"], &moved["more"]),
        (&json!(events.len()), &json!(false))
    );
    drained(&app).await;
    assert_eq!(
        ids(&app.get("admin", "/v1/dead-letters").await.expect(200)),
        [""; 0]
    );
    app.get("admin", &path).await.problem(404, "not_found");

    let public: i64 =
        sqlx::query_scalar("select count(*) from audit_entry where event_seq is not null")
            .fetch_one(app.database.admin_pool())
            .await
            .expect("a count");
    let mut consumer = Consumer::of(&settings.brokers, &settings.topic).await;
    consumer
        .receive(usize::try_from(public).expect("a count"))
        .await;
    consumer.assert_in_order();
    let known: Vec<&str> = events
        .iter()
        .filter_map(|event| event["eventId"].as_str())
        .collect();
    let sent: Vec<&str> = consumer
        .received
        .iter()
        .map(crate::events::consumer::Received::id)
        .collect();
    assert!(known.iter().all(|id| sent.contains(id)), "the same ids");
    let entry = |reason: &str| ("DEAD_LETTERS_RETRIED".into(), "admin".into(), reason.into());
    assert_eq!(
        audited(&app).await,
        [entry("a try"), entry("the topic takes more now")]
    );
}

#[tokio::test]
async fn a_discarded_event_releases_the_later_ones() {
    let (folder, app) = (Folder::new(), TestApp::start().await);
    let settings = settings(&app);
    create_topic(&settings.brokers, &settings.topic, 1, &[LIMIT]).await;
    let poisoned = stuck(&app, "doc-1").await;
    let _sending = send(&app, &settings);
    drained(&app).await;
    let host = Program::start(&folder, serve(&folder, &app, "--roles api")).await;
    let cli = async |line: &str| run_cli(&folder, &app, &host, line).await;
    let (code, page) = cli("list").await;
    assert_eq!((code, ids(&page)), (Some(0), vec![&*poisoned.id]));
    let entry = page["data"][0]["entry"].as_u64().expect("an entry");
    let missed = page["data"][0]["sequence"].as_u64().expect("a number");
    let (code, listed) = cli(&format!("list --instance {} --limit 100", poisoned.id)).await;
    assert_eq!(code, Some(0));
    let behind = listed["data"].as_array().expect("events").len() - 1;
    let discard = |entry: u64| format!("discard {} --entry {entry} --reason unneeded", poisoned.id);
    let (code, problem) = cli(&discard(entry + 1)).await;
    assert_eq!((code, &problem["code"]), (Some(5), &json!("not_first")));
    assert_eq!(problem["conflict"]["entry"], entry);

    let (code, moved) = cli(&discard(entry)).await;
    assert_eq!((code, &moved["released"]), (Some(0), &json!(behind)));
    assert_eq!(
        moved["discarded"]["sequence"], missed,
        "what was given up is named"
    );
    drained(&app).await;
    assert_eq!(cli("list").await.1["data"], json!([]));
    let (code, problem) = cli(&discard(entry)).await;
    assert_eq!((code, &problem["code"]), (Some(4), &json!("not_found")));

    let mut consumer = Consumer::of(&settings.brokers, &settings.topic).await;
    let all = usize::try_from(missed).expect("small") - 1 + behind;
    consumer.receive(all).await;
    let sequence = &consumer.sequences()[&poisoned.id];
    let expected: Vec<u64> = (1..=all as u64 + 1)
        .filter(|number| *number != missed)
        .collect();
    assert_eq!(sequence, &expected, "one gap, where it was given up");
    let history = app
        .get("author", &format!("/v1/instances/{}/history", poisoned.id))
        .await
        .expect(200);
    let decision = &history["data"][0]["tasks"][0]["decision"];
    assert_eq!(decision["outcome"], "APPROVE", "only the event is gone");
    let entries = audited(&app).await;
    assert_eq!(
        entries,
        [(
            "DEAD_LETTER_DISCARDED".into(),
            "admin".into(),
            "unneeded".into()
        )]
    );
    assert_eq!(
        cli("retry --all --reason again").await,
        (
            Some(0),
            json!({ "instances": 0, "released": 0, "refused": [] })
        )
    );
}

/// One of three is refused again at once. The others are sent all the same, and the refused one is named with the reason.
#[tokio::test]
async fn an_event_that_is_refused_again_delays_no_other_instance() {
    let (folder, app) = (Folder::new(), TestApp::start().await);
    let host = Program::start(&folder, serve(&folder, &app, "--roles api")).await;
    let mut instances = Vec::new();
    for entity in ["doc-1", "doc-2", "doc-3"] {
        let instance = app.started(entity).await;
        instances.push(instance["id"].as_str().expect("an id").to_owned());
    }
    // The first in the order of the list, as if the broker answered before the next call.
    instances.sort();
    let refused = &instances[0];
    sql(
        &app,
        &format!(
            "insert into dead_letter (tenant_id, instance_id, seq, partition, pos, error, attempts, parked_at)
             select tenant_id, instance_id, seq, partition, pos, 'refused', 3, now() from outbox_event;
             delete from outbox_event;
             create function refuse() returns trigger language plpgsql security definer as $$ begin
                 insert into dead_letter (tenant_id, instance_id, seq, partition, pos, error, attempts, parked_at)
                 values (new.tenant_id, new.instance_id, new.seq, new.partition, new.pos, 'still too large', 3, now());
                 return null;
             end $$;
             create trigger refuse before insert on outbox_event for each row
             when (new.instance_id = '{refused}') execute function refuse()"
        ),
    )
    .await;
    let (code, report) = run_cli(&folder, &app, &host, "retry --all --reason again").await;
    assert_eq!(
        (code, &report["instances"]),
        (Some(1), &json!(2)),
        "{report}"
    );
    let listed = report["refused"].as_array().expect("a list");
    assert_eq!(
        (listed.len(), &listed[0]["instanceId"]),
        (1, &json!(refused))
    );
    let reason = listed[0]["reason"].as_str().expect("a reason");
    assert!(reason.contains("still too large"), "{reason}");
    let left = app.get("admin", "/v1/dead-letters").await.expect(200);
    assert_eq!(ids(&left), [refused]);
    let waiting: i64 = sqlx::query_scalar("select count(*) from outbox_event")
        .fetch_one(app.database.admin_pool())
        .await
        .expect("a count");
    assert_eq!(report["released"], waiting, "all events of the other two");
}

/// A deleted topic affects all events alike: none is parked, and all are sent once it exists again.
#[tokio::test]
async fn a_topic_that_is_deleted_parks_nothing() {
    let app = TestApp::start().await;
    let settings = settings(&app);
    create_topic(&settings.brokers, &settings.topic, 1, &[]).await;
    let _sending = send(&app, &settings);
    app.started("doc-1").await;
    drained(&app).await;
    let admin: AdminClient<DefaultClientContext> = ClientConfig::new()
        .set("bootstrap.servers", &settings.brokers)
        .create()
        .expect("a client");
    let options = AdminOptions::new().operation_timeout(Some(TIMEOUT));
    let deleted = admin.delete_topics(&[&settings.topic], &options).await;
    assert!(deleted.expect("an answer").iter().all(Result::is_ok));
    let instance = app.started("doc-2").await;
    let id = instance["id"].as_str().expect("an id");
    drained(&app).await;
    let mut consumer = Consumer::of(&settings.brokers, &settings.topic).await;
    consumer
        .receive_until(|received| received.iter().filter(|event| event.key == id).count() >= 3)
        .await;
    assert_eq!(consumer.sequences()[id], [1, 2, 3]);
    assert_eq!(
        ids(&app.get("admin", "/v1/dead-letters").await.expect(200)),
        [""; 0]
    );
}

/// More events than one call releases: each call takes the first ones, and none overtakes another.
#[tokio::test]
async fn many_events_are_released_in_parts_and_in_order() {
    let app = TestApp::start().await;
    let settings = settings(&app);
    create_topic(&settings.brokers, &settings.topic, 1, &[]).await;
    let instance = app.started("doc-1").await;
    let id = instance["id"].as_str().expect("an id");
    let parked = format!(
        "insert into audit_entry (tenant_id, stream_kind, stream_id, seq, id, type, revision, command_id, actor, payload,
             salt, occurred_at, hash, event_seq)
         select 1, 'instance', '{id}', 1000 + n, gen_random_uuid(), 'TASK_CLAIMED', 1, gen_random_uuid(), 'reviewer',
             '{{\"owner\":\"reviewer\",\"state\":\"s\",\"task\":\"t\",\"type\":\"TASK_CLAIMED\"}}', '', now(), '',
             (select max(event_seq) from audit_entry where stream_id = '{id}') + n
         from generate_series(1, 2500) n;
         insert into dead_letter (tenant_id, instance_id, seq, partition, pos, error, attempts, parked_at)
         select 1, '{id}', a.seq, o.partition, a.pos, 'refused', 3, now()
         from audit_entry a, (select partition from outbox_event where instance_id = '{id}' limit 1) o
         where a.stream_id = '{id}' and a.seq > 1000"
    );
    sql(&app, &parked).await;
    let _sending = send(&app, &settings);
    drained(&app).await;
    let path = format!("/v1/dead-letters/{id}/retry");
    for (released, more) in [(1000, true), (1000, true), (500, false)] {
        let moved = app
            .post("admin", &path, json!({ "reason": "r" }))
            .await
            .expect(200);
        assert_eq!(
            (&moved["released"], &moved["more"]),
            (&json!(released), &json!(more))
        );
    }
    drained(&app).await;
    let mut consumer = Consumer::of(&settings.brokers, &settings.topic).await;
    let id: Uuid = id.parse().expect("an id");
    consumer
        .receive_until(|received| received.len() >= 2500 + 3)
        .await;
    consumer.assert_in_order();
    let left: i64 = sqlx::query_scalar("select count(*) from dead_letter where instance_id = $1")
        .bind(id)
        .fetch_one(app.database.admin_pool())
        .await
        .expect("a count");
    assert_eq!(left, 0);
}
