//! The relay with a real broker, observed by an independent consumer: no event is lost, those of an instance stay in order, and
//! nothing that was rolled back is published.

pub(crate) mod consumer;
pub(crate) mod database;
mod refused;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use wrkflw_core::cloudevent::Naming;
use wrkflw_relay::outbox::Relay;
use wrkflw_relay::outbox::settings::{KafkaSettings, Mode};
use wrkflw_store::outbox::{Backlog, Outbox};

use consumer::{Consumer, Received, partitions};
use database::{Database, record, topic_of};

use crate::support::app::TestApp;
use crate::support::kafka::{OwnBroker, create_topic, shared_address};
use crate::support::statements::Statements;

/// The first words of the statement by which a relay takes a mark.
const MARK: &str = "with drawn as materialized";
/// Two marks of one worker raise the floor. A relay has two workers, so one of them has taken four of these.
const MARKS: usize = 8;
const CLAIMED: &str = r#"{"owner":"reviewer","state":"s","task":"t","type":"TASK_CLAIMED"}"#;

/// A running relay.
struct Running {
    cancel: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    fn start(outbox: Outbox, settings: &KafkaSettings) -> Running {
        let cancel = CancellationToken::new();
        let relay =
            Relay::new(outbox, settings.clone(), Naming::default()).expect("sound settings");
        let run = relay.run(cancel.clone(), Arc::new(Notify::new()));
        Running {
            cancel,
            task: spawn(run),
        }
    }

    async fn stop(self) {
        self.cancel.cancel();
        tokio::time::timeout(Duration::from_secs(10), self.task)
            .await
            .expect("it stops in time")
            .expect("no panic");
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test itself waits for the task"
)]
fn spawn(work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    tokio::spawn(work)
}

/// The shared broker, with a topic for the events of this database only.
fn settings(database: &Database) -> KafkaSettings {
    KafkaSettings {
        brokers: shared_address(),
        topic: database.topic(),
        ..KafkaSettings::default()
    }
}

#[tokio::test]
async fn an_event_has_its_key_its_headers_and_its_data() {
    let database = Database::create().await;
    let settings = settings(&database);
    let relay = Running::start(database.outbox(), &settings);
    let instance = database.instance().await;
    database.record(0, instance, CLAIMED).await;

    assert_eq!(
        partitions(&settings.brokers, &settings.topic).await,
        3,
        "the relay creates the topic, not the broker"
    );
    let mut consumer = Consumer::of(&settings.brokers, &settings.topic).await;
    consumer.receive(1).await;
    database.drained().await;
    relay.stop().await;

    let event = &consumer.received[0];
    assert_eq!(event.key, instance.to_string());
    let id: uuid::Uuid = sqlx::query_scalar("select id from audit_entry")
        .fetch_one(database.pool())
        .await
        .expect("an entry");
    let expected = [
        ("content-type", "application/json".to_owned()),
        ("ce_specversion", "1.0".into()),
        ("ce_id", id.to_string()),
        ("ce_source", format!("/acme/instances/{instance}")),
        ("ce_type", "dev.wrkflw.task.claimed".into()),
        ("ce_subject", instance.to_string()),
        ("ce_time", "2026-01-02T03:04:05.000678Z".into()),
        (
            "ce_dataschema",
            "http://localhost:8080/schemas/v1/dev.wrkflw.task.claimed.json".into(),
        ),
        ("ce_partitionkey", instance.to_string()),
        ("ce_sequence", "00000000000000000001".into()),
        ("ce_authtype", "user".into()),
        ("ce_authid", "reviewer".into()),
        (
            "ce_traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into(),
        ),
    ];
    assert_eq!(
        event.headers,
        expected
            .map(|(name, value)| (name.to_owned(), value))
            .into()
    );
    let data = serde_json::json!({
        "owner": "reviewer", "actor": "reviewer", "instanceId": instance, "revision": 1,
        "definitionKey": "document-approval", "definitionVersion": 2,
        "entityType": "document", "entityId": instance.to_string(),
    });
    assert_eq!(event.value, data);
}

#[tokio::test]
async fn structured_mode_is_one_document() {
    let database = Database::create().await;
    let settings = settings(&database);
    let settings = KafkaSettings {
        mode: Mode::Structured,
        ..settings
    };
    let relay = Running::start(database.outbox(), &settings);
    let instance = database.instance().await;
    database.record(0, instance, CLAIMED).await;
    let mut consumer = Consumer::of(&settings.brokers, &settings.topic).await;
    consumer
        .receive_until(|received| !received.is_empty())
        .await;
    relay.stop().await;

    let event = &consumer.received[0];
    assert_eq!(event.key, instance.to_string());
    assert_eq!(event.headers.len(), 1);
    assert_eq!(
        event.headers["content-type"],
        "application/cloudevents+json; charset=UTF-8"
    );
    assert_eq!(event.value["type"], "dev.wrkflw.task.claimed");
    assert_eq!(event.value["data"]["owner"], "reviewer");
}

#[tokio::test]
async fn events_arrive_in_order_from_two_relays_of_which_one_stops() {
    let database = Database::create().await;
    let settings = settings(&database);
    let first = Running::start(database.outbox(), &settings);
    let second = Running::start(database.outbox(), &settings);
    database.record_many(200, 10).await;
    let mut consumer = Consumer::of(&settings.brokers, &settings.topic).await;
    consumer
        .receive_until(|received| received.len() > 500)
        .await;
    first.stop().await;
    database.record_many(200, 5).await;
    database.drained().await;
    consumer.receive(3000).await;
    second.stop().await;
    consumer.assert_in_order();
}

#[tokio::test]
async fn an_unavailable_broker_delays_events_and_loses_none() {
    let (broker, database) = (OwnBroker::start().await, Database::create().await);
    let settings = KafkaSettings {
        brokers: broker.address().to_owned(),
        ..settings(&database)
    };
    create_topic(&settings.brokers, &settings.topic, 3, &[]).await;
    broker.stop().await;
    database.record_many(20, 5).await;
    let relay = Running::start(database.outbox(), &settings);
    broker.start_again().await;
    let mut consumer = Consumer::of(&settings.brokers, &settings.topic).await;
    consumer.receive(100).await;

    let instance = database.instance().await;
    database.record(3, instance, CLAIMED).await;
    consumer.receive(101).await;
    broker.kill().await;
    for _ in 0..20 {
        database.record(3, instance, CLAIMED).await;
    }
    database.record_many(20, 5).await;
    database
        .eventually("select exists (select from outbox_partition where last_error is not null)")
        .await;
    broker.start_again().await;
    consumer.receive(221).await;
    database.drained().await;
    relay.stop().await;
    consumer.assert_in_order();
    assert_eq!(
        database.outbox().backlog().await.expect("a measure"),
        Backlog::default()
    );
}

#[tokio::test]
async fn a_relay_without_a_broker_stops_at_once() {
    let database = Database::create().await;
    database.record_many(1, 1).await;
    let nowhere = KafkaSettings {
        brokers: "127.0.0.1:1".into(),
        ..KafkaSettings::default()
    };
    let relay = Running::start(database.outbox(), &nowhere);
    let begun = Instant::now();
    relay.stop().await;
    assert!(
        begun.elapsed() < Duration::from_secs(6),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(
        database.outbox().backlog().await.expect("a measure").events,
        1
    );
}

#[tokio::test]
async fn a_rolled_back_event_is_never_published() {
    let database = Database::create().await;
    let settings = settings(&database);
    let relay = Running::start(database.outbox(), &settings);
    let instance = database.instance().await;
    let mut transaction = database.pool().begin().await.expect("a transaction");
    record(
        &mut *transaction,
        0,
        instance,
        r#"{"reason":"mistake","type":"FLOW_CANCELLED"}"#,
    )
    .await;
    transaction.rollback().await.expect("rolled back");
    database.record(0, instance, CLAIMED).await;
    database.drained().await;
    let mut consumer = Consumer::of(&settings.brokers, &settings.topic).await;
    consumer.receive(1).await;
    relay.stop().await;
    assert_eq!(
        consumer.received[0].headers["ce_type"],
        "dev.wrkflw.task.claimed"
    );
    consumer.assert_in_order();
}

#[tokio::test]
async fn an_approval_over_http_is_published_from_start_to_end_and_dry_runs_are_not() {
    let app = TestApp::start().await;
    let topic = topic_of(&app.database);
    let settings = KafkaSettings {
        brokers: shared_address(),
        checkpoint_topic: format!("{topic}.checkpoints"),
        topic,
        ..KafkaSettings::default()
    };
    let outbox = app.store().outbox();
    let relay = Running::start(outbox, &settings);
    let start = json!({
        "definitionKey": "document-approval", "entityType": "document", "entityId": "never", "data": {"title": "A plan"},
    });
    let dry = app.post("author", "/v1/instances?dryRun=true", start).await;
    assert_eq!(dry.status / 100, 2, "{}", dry.text);
    let instance = app.started("d-1").await;
    let approve = json!({"outcome": "APPROVE"});
    let reviewed = app.decided("reviewer", &instance, approve.clone()).await;
    let approved = app.decided("approver", &reviewed, approve).await;
    assert_eq!(approved["status"], "COMPLETED");
    // Checkpoints of the audit are for auditors, and have a topic of their own.
    let keys = crate::audit::checkpoints::keys(&[("one", 1)]);
    let signed = crate::audit::checkpoints::sign(&app.engine, &keys).await;
    let mut proofs = Consumer::of(&settings.brokers, &settings.checkpoint_topic).await;
    proofs
        .receive_until(|received| received.len() >= signed as usize)
        .await;
    for proof in &proofs.received {
        assert_eq!(proof.headers["ce_type"], "dev.wrkflw.audit.checkpoint");
    }

    let mut consumer = Consumer::of(&settings.brokers, &settings.topic).await;
    let is_last = |received: &Received| received.headers["ce_type"] == "dev.wrkflw.flow.completed";
    consumer
        .receive_until(|received| received.iter().any(is_last))
        .await;
    relay.stop().await;
    consumer.assert_in_order();
    assert_eq!(consumer.sequences().len(), 1, "nothing of the dry run");
    let types: Vec<&str> = consumer
        .received
        .iter()
        .map(|event| event.headers["ce_type"].trim_start_matches("dev.wrkflw."))
        .collect();
    let reviewed = [
        "task.claimed",
        "decision.recorded",
        "state.transitioned",
        "state.entered",
    ];
    let expected = [
        &["flow.started", "state.entered", "task.created"][..],
        &reviewed,
        &["task.created"],
        &reviewed,
        &["flow.completed"],
    ];
    assert_eq!(types, expected.concat());
    for event in &consumer.received {
        let suffix = event.headers["ce_type"].trim_start_matches("dev.wrkflw.");
        let schema = wrkflw_server::asyncapi::schema(suffix).expect("a documented type");
        let required = schema["required"].as_array().expect("required members");
        for member in required.iter().filter_map(|name| name.as_str()) {
            assert!(event.value.get(member).is_some(), "{suffix} lacks {member}");
        }
    }
}

#[tokio::test]
async fn a_late_commit_with_a_lower_position_is_neither_skipped_nor_overtaken() {
    let database = Database::create().await;
    let settings = settings(&database);
    create_topic(&settings.brokers, &settings.topic, 1, &[]).await;
    let relay = Running::start(database.outbox(), &settings);
    let (stalled, busy) = (database.instance().await, database.instance().await);
    let mut consumer = Consumer::of(&settings.brokers, &settings.topic).await;
    database.record(0, busy, CLAIMED).await;

    let mut stalling = database.pool().begin().await.expect("a transaction");
    let late = record(&mut *stalling, 0, stalled, CLAIMED).await;
    // Enough marks follow for the floor to rise, if there were no stalled transaction.
    let (begun, marks) = (Instant::now(), Statements::count_with(MARK));
    let (mut published, mut marked) = (1, 0);
    while marked < MARKS {
        database.record(0, busy, CLAIMED).await;
        published += 1;
        consumer.receive(published).await;
        marked += marks.since_last();
        assert!(
            begun.elapsed() < consumer::TIMEOUT,
            "the relay has taken only {marked} marks"
        );
    }
    let floor = floor_of_partition(&database).await;
    assert!(
        floor < late,
        "the floor {floor} has passed the unfinished position {late}"
    );
    stalling.commit().await.expect("committed");
    database.record(0, stalled, CLAIMED).await;
    consumer.receive(published + 2).await;
    consumer.assert_in_order();

    // Once no transaction is stalled, the floor rises.
    while floor_of_partition(&database).await < late {
        database.record(0, busy, CLAIMED).await;
        database.drained().await;
        assert!(begun.elapsed() < consumer::TIMEOUT, "the floor never rose");
    }
    relay.stop().await;
}

#[tokio::test]
async fn a_mark_is_younger_than_every_writer_that_took_a_position_before_it() {
    let database = Database::create().await;
    let instance = database.instance().await;
    let mut stalling = database.pool().begin().await.expect("a transaction");
    let late = record(&mut *stalling, 0, instance, CLAIMED).await;
    let writer: i64 = sqlx::query_scalar("select pg_current_xact_id()::text::bigint")
        .fetch_one(&mut *stalling)
        .await
        .expect("a transaction number");
    let mark = database.outbox().mark().await.expect("a mark");
    assert_eq!(mark.drawn, late);
    assert!(mark.oldest <= writer, "the writer is unfinished");
    assert!(mark.xid > writer, "so the position must wait for it");
}

async fn floor_of_partition(database: &Database) -> i64 {
    sqlx::query_scalar("select floor from outbox_partition where partition = 0")
        .fetch_one(database.pool())
        .await
        .expect("a partition")
}

/// A checkpoint is an event that has no entry in the audit of an instance.
#[tokio::test]
async fn the_age_of_the_backlog_counts_checkpoints_and_no_replays() {
    let database = Database::create().await;
    let signed = "insert into checkpoint (tenant_id, number, size, root, previous_root, signed_at, key_id, signature, frontier)
        values (1, 1, 0, '', '', now() - interval '1 hour', 'key', '', '')";
    let announced = "insert into outbox_event (partition, pos, tenant_id, instance_id, seq)
        values (0, 1000000, 1, '00000000-0000-0000-0000-000000000000', 1)";
    for sql in [signed, announced] {
        sqlx::query(sql)
            .execute(database.pool())
            .await
            .expect("a row");
    }
    let backlog = database.outbox().backlog().await.expect("a measure");
    assert_eq!(backlog.events, 1);
    assert!(
        (3600.0..3700.0).contains(&backlog.oldest_seconds),
        "{backlog:?}"
    );
    let again = sqlx::query("update outbox_event set replayed = true").execute(database.pool());
    again.await.expect("a replay");
    let backlog = database.outbox().backlog().await.expect("a measure");
    assert_eq!(backlog.events, 1);
    assert!(backlog.oldest_seconds < 1.0, "{backlog:?}");
}
