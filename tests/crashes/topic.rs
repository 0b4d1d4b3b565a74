//! The whole topic, read by an independent consumer after the relay is done.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::message::Headers as _;
use rdkafka::{ClientConfig, Message as _, Offset, TopicPartitionList};
use serde_json::Value;

use super::fixture::TIMEOUT;

/// The timeout of one call of the broker, which may just have been started.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// One record.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Record {
    pub(super) key: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) data: Value,
    partition: i32,
}

impl Record {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// Every record from the beginning to the present end, each partition in order.
pub(super) async fn records(brokers: &str, topic: &str) -> Vec<Record> {
    let (brokers, topic) = (brokers.to_owned(), topic.to_owned());
    let reading = tokio::task::spawn_blocking(move || read(&brokers, &topic));
    reading.await.expect("no panic")
}

fn read(brokers: &str, topic: &str) -> Vec<Record> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("group.id", "checker")
        .set("enable.auto.commit", "false")
        .set("reconnect.backoff.max.ms", "500")
        .create()
        .expect("a consumer");
    let deadline = Instant::now() + TIMEOUT;
    let mut ends = BTreeMap::new();
    let mut assignment = TopicPartitionList::new();
    for partition in 0..super::fixture::PARTITIONS {
        let end = loop {
            match consumer.fetch_watermarks(topic, partition, ANSWER_MAX) {
                Ok((_, end)) => break end,
                Err(error) => assert!(Instant::now() < deadline, "no broker: {error}"),
            }
        };
        ends.insert(partition, end);
        assignment
            .add_partition_offset(topic, partition, Offset::Beginning)
            .expect("a partition");
    }
    consumer.assign(&assignment).expect("an assignment");
    let mut records = Vec::new();
    ends.retain(|_, end| *end > 0);
    while !ends.is_empty() {
        assert!(
            Instant::now() < deadline,
            "records up to {ends:?} never came"
        );
        // The client retries while the broker is starting.
        let Some(Ok(message)) = consumer.poll(ANSWER_MAX) else {
            continue;
        };
        let partition = message.partition();
        if ends
            .get(&partition)
            .is_some_and(|end| message.offset() + 1 >= *end)
        {
            ends.remove(&partition);
        }
        let headers = message.headers().expect("headers").iter().map(|header| {
            let value = header.value.expect("a value").to_vec();
            (
                header.key.to_owned(),
                String::from_utf8(value).expect("text"),
            )
        });
        records.push(Record {
            key: String::from_utf8(message.key().expect("a key").to_vec()).expect("text"),
            headers: headers.collect(),
            data: serde_json::from_slice(message.payload().expect("a value")).expect("JSON"),
            partition,
        });
    }
    records
}
