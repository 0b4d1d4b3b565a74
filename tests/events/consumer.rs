//! An independent consumer: it uses Kafka and CloudEvents, and no code of wrkflw.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer as _, StreamConsumer};
use rdkafka::message::Headers as _;
use rdkafka::{ClientConfig, Message as _, Offset, TopicPartitionList};

use crate::support::until_on_thread;

/// Longer than anything that a test waits for.
pub(crate) const TIMEOUT: Duration = Duration::from_mins(1);

pub(crate) struct Consumer {
    inner: StreamConsumer,
    pub(crate) received: Vec<Received>,
    /// The received events; some come more than once.
    ids: HashSet<String>,
}

/// One record as it was received.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) key: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) value: serde_json::Value,
}

impl Received {
    /// The event id, from a header or from the document of the structured mode.
    pub(crate) fn id(&self) -> &str {
        let header = self.headers.get("ce_id").map(String::as_str);
        header
            .or_else(|| self.value["id"].as_str())
            .expect("every event has an id")
    }

    pub(crate) fn sequence(&self) -> u64 {
        assert_eq!(self.headers["ce_sequence"].len(), 20);
        self.headers["ce_sequence"].parse().expect("a number")
    }
}

impl Consumer {
    /// Reads every partition of `topic` from its beginning.
    pub(crate) async fn of(brokers: &str, topic: &str) -> Consumer {
        let inner: StreamConsumer = ClientConfig::new()
            .set("bootstrap.servers", brokers)
            .set("group.id", "independent")
            .set("enable.auto.commit", "false")
            .set("fetch.wait.max.ms", "20")
            .set("reconnect.backoff.max.ms", "500")
            .create()
            .expect("a consumer");
        let mut assignment = TopicPartitionList::new();
        for partition in 0..partitions(brokers, topic).await {
            assignment
                .add_partition_offset(topic, partition, Offset::Beginning)
                .expect("a partition");
        }
        inner.assign(&assignment).expect("an assignment");
        Consumer {
            inner,
            received: Vec::new(),
            ids: HashSet::new(),
        }
    }

    /// Receives until `done` holds for everything received.
    pub(crate) async fn receive_until(&mut self, done: impl Fn(&[Received]) -> bool) {
        while !done(&self.received) {
            self.receive_one().await;
        }
    }

    /// Receives until `count` different events have come.
    pub(crate) async fn receive(&mut self, count: usize) {
        while self.ids.len() < count {
            self.receive_one().await;
        }
        assert_eq!(self.ids.len(), count);
    }

    /// The timeout is for each record, not for all of them: a machine may be slow, but an existing record must come.
    async fn receive_one(&mut self) {
        let arriving = async {
            loop {
                // The client retries while a broker is down.
                if let Ok(message) = self.inner.recv().await {
                    return message;
                }
            }
        };
        let message = tokio::time::timeout(TIMEOUT, arriving)
            .await
            .unwrap_or_else(|_| {
                let (records, events) = (self.received.len(), self.ids.len());
                let sent = self.sent();
                panic!("only {records} records of {events} events arrived; the topic has {sent}")
            });
        let headers = message.headers().expect("headers");
        let received = Received {
            key: String::from_utf8(message.key().expect("a key").to_vec()).expect("text"),
            headers: headers
                .iter()
                .map(|header| {
                    let value = header.value.expect("a value").to_vec();
                    let value = String::from_utf8(value).expect("text");
                    (header.key.to_owned(), value)
                })
                .collect(),
            value: serde_json::from_slice(message.payload().expect("a value")).expect("JSON"),
        };
        self.ids.insert(received.id().to_owned());
        self.received.push(received);
    }

    /// The number of records of the topic, if the broker responds.
    fn sent(&self) -> String {
        let assignment = self.inner.assignment().expect("an assignment");
        let counted = assignment.elements().into_iter().map(|partition| {
            let (topic, number) = (partition.topic(), partition.partition());
            self.inner
                .fetch_watermarks(topic, number, Duration::from_secs(5))
        });
        match counted.collect::<Result<Vec<_>, _>>() {
            Ok(marks) => format!(
                "{}: {marks:?}",
                marks.iter().map(|(_, end)| end).sum::<i64>()
            ),
            Err(error) => error.to_string(),
        }
    }

    /// The sequence numbers of each instance in the order of arrival, without repetitions.
    pub(crate) fn sequences(&self) -> HashMap<String, Vec<u64>> {
        let mut sequences: HashMap<String, Vec<u64>> = HashMap::new();
        let mut seen = HashSet::new();
        for received in &self.received {
            if seen.insert(received.id().to_owned()) {
                sequences
                    .entry(received.key.clone())
                    .or_default()
                    .push(received.sequence());
            }
        }
        sequences
    }

    /// Checks that each instance has its events from 1 on, in order and without a gap.
    pub(crate) fn assert_in_order(&self) {
        for (instance, sequence) in self.sequences() {
            let expected: Vec<u64> = (1..=sequence.len() as u64).collect();
            assert_eq!(sequence, expected, "instance {instance}");
        }
    }
}

/// Waits until the topic exists.
pub(crate) async fn partitions(brokers: &str, topic: &str) -> i32 {
    let (brokers, topic) = (brokers.to_owned(), topic.to_owned());
    let count = tokio::task::spawn_blocking(move || {
        let client: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", brokers)
            .create()
            .expect("a client");
        let look = || {
            let metadata = client.fetch_metadata(Some(&topic), Duration::from_secs(1));
            metadata.map_or(0, |metadata| metadata.topics()[0].partitions().len())
        };
        let what = format!("the topic {topic} exists");
        until_on_thread(&what, look, |count: &usize| *count > 0)
    });
    i32::try_from(count.await.expect("a topic")).expect("few partitions")
}
