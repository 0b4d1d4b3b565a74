//! Kafka is down for long, then up again: the outbox fills, decisions go on, and a relay with bounded memory sends all events in
//! order, at a rate that is printed.

use std::collections::HashMap;
use std::time::Instant;

use rdkafka::consumer::{Consumer as _, StreamConsumer};
use rdkafka::message::{Headers as _, Message as _};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use super::program::{Folder, Program, serve};
use super::*;
use crate::events::consumer::partitions;
use crate::events::database::{record_many, topic_of};
use crate::support::kafka::{OwnBroker, create_topic};
use crate::support::length::at_length;

const EVENTS_OF_EACH: i32 = 10;
/// Instances that one statement inserts.
const INSTANCES_AT_ONCE: i32 = 2_000;
/// Limit of the memory that the backlog may add to the relay.
const GROWTH_BYTES_MAX: u64 = 96 << 20;
/// How long the relay may take to catch up in the long run.
const CAUGHT_UP_MAX: Duration = Duration::from_mins(20);
/// How long the next record may take.
const SILENCE_MAX: Duration = Duration::from_mins(2);

/// Counts different events, and checks that each instance's events come in order, with repetitions or without.
struct Tally {
    inner: StreamConsumer,
    next: HashMap<String, u64>,
    count: u64,
}

impl Tally {
    async fn of(brokers: &str, topic: &str) -> Tally {
        let inner: StreamConsumer = ClientConfig::new()
            .set("bootstrap.servers", brokers)
            .set("group.id", "tally")
            .set("enable.auto.commit", "false")
            .set("queued.max.messages.kbytes", "16384")
            .create()
            .expect("a consumer");
        let mut assignment = TopicPartitionList::new();
        for partition in 0..partitions(brokers, topic).await {
            assignment
                .add_partition_offset(topic, partition, Offset::Beginning)
                .expect("a partition");
        }
        inner.assign(&assignment).expect("an assignment");
        Tally {
            inner,
            next: HashMap::new(),
            count: 0,
        }
    }

    /// Reads until so many different events have come.
    async fn read(&mut self, events: u64) {
        while self.count < events {
            let message = tokio::time::timeout(SILENCE_MAX, self.inner.recv())
                .await
                .unwrap_or_else(|_| panic!("only {} of {events} came", self.count))
                .expect("a record");
            let key = String::from_utf8_lossy(message.key().expect("a key")).into_owned();
            let headers = message.headers().expect("headers");
            let sequence = headers
                .iter()
                .find(|header| header.key == "ce_sequence")
                .and_then(|header| str::from_utf8(header.value?).ok()?.parse::<u64>().ok())
                .expect("a sequence");
            let next = self.next.entry(key).or_insert(1);
            assert!(sequence <= *next, "{sequence} came before {next}");
            if sequence == *next {
                *next += 1;
                self.count += 1;
            }
        }
        assert_eq!(self.count, events);
    }
}

/// Decides documents one after the other. Returns the time of each decision.
async fn decide(app: &TestApp, prefix: &str, count: usize) -> Vec<Duration> {
    let mut took = Vec::with_capacity(count);
    for number in 0..count {
        let instance = app.started(&format!("{prefix}-{number}")).await;
        claim(&app.host(), "reviewer", &instance).await.expect(200);
        let path = format!("/v1/tasks/{}/decide", task_of(&instance));
        let begun = Instant::now();
        app.post("reviewer", &path, json!({ "outcome": "APPROVE" }))
            .await
            .expect(200);
        took.push(begun.elapsed());
    }
    took.sort_unstable();
    took
}

fn shown(took: &[Duration]) -> String {
    let at = |quantile: usize| took[(took.len() - 1) * quantile / 100].as_secs_f64() * 1000.0;
    format!("p50 {:.1} ms, p95 {:.1} ms", at(50), at(95))
}

async fn count(app: &TestApp, what: &'static str) -> u64 {
    let count: i64 = sqlx::query_scalar(what)
        .fetch_one(app.database.admin_pool())
        .await
        .expect("a count");
    count.cast_unsigned()
}

#[tokio::test]
#[expect(clippy::print_stdout, reason = "the figures of a run")]
async fn a_long_outage_of_kafka_is_recovered_from() {
    let (folder, app) = (Folder::new(), TestApp::start().await);
    let (broker, topic) = (OwnBroker::start().await, topic_of(&app.database));
    create_topic(broker.address(), &topic, 3, &[]).await;
    broker.stop().await;
    let mut command = serve(&folder, &app, "--roles relay");
    command
        .env("WRKFLW_KAFKA_BROKERS", broker.address())
        .env("WRKFLW_KAFKA_TOPIC", &topic);
    let relay = Program::start(&folder, command).await;
    let quiet = decide(&app, "quiet", 20).await;
    let instances = at_length(2_000, 100_000);
    for _ in 0..instances / INSTANCES_AT_ONCE {
        record_many(app.database.admin_pool(), INSTANCES_AT_ONCE, EVENTS_OF_EACH).await;
    }
    let during = decide(&app, "away", 20).await;
    let waiting = count(&app, "select count(*) from outbox_event").await;
    let public = "select count(*) from audit_entry where event_seq is not null";
    assert_eq!(waiting, count(&app, public).await, "all wait, none is lost");
    assert_eq!(
        relay.get("", "/readyz").await.expect("an answer").status,
        200
    );
    let before = relay.resident_bytes();

    broker.start_again().await;
    relay
        .metric_reaches("wrkflw_relay_published_total", |figure| figure > 0.5)
        .await;
    let begun = Instant::now();
    let left = "select count(*) from (select from outbox_event limit 1) one";
    let caught_up = async {
        while count(&app, left).await > 0 {
            crate::support::pause().await;
        }
    };
    let caught_up = tokio::time::timeout(CAUGHT_UP_MAX, caught_up);
    let (catching_up, caught_up) = tokio::join!(decide(&app, "back", 20), caught_up);
    assert!(caught_up.is_ok(), "not all events are sent in time");
    let seconds = begun.elapsed().as_secs_f64();
    let (after, all) = (relay.resident_bytes(), count(&app, public).await);
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let rate = waiting as f64 / seconds;
    println!(
        "backlog: {waiting} events drained in {seconds:.1} s, {rate:.0}/s; memory of the relay {} -> {} MB; decisions {} \
         before, {} without Kafka, {} while catching up",
        before >> 20,
        after >> 20,
        shown(&quiet),
        shown(&during),
        shown(&catching_up)
    );
    assert!(after < before + GROWTH_BYTES_MAX, "{before} -> {after}");
    let mut tally = Tally::of(broker.address(), &topic).await;
    tally.read(all).await;
}
