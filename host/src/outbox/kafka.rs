//! One producer and its topic: the only conversation with Kafka.
//!
//! Records are handed over in order and their delivery reports awaited. A producer that failed is thrown away with
//! everything that it still holds, so that nothing it was given can arrive after what a new one is given.

use std::sync::Arc;
use std::time::Duration;

use rdkafka::ClientContext;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::Client;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::future_producer::FutureProducerContext;
use rdkafka::producer::{DeliveryFuture, FutureProducer, FutureRecord, Producer as _, PurgeConfig};
use tokio::sync::Notify;

use super::failure::Failure;
use super::settings::{KafkaSettings, Mode};
use crate::domain::cloudevent::{CloudEvent, STRUCTURED_CONTENT_TYPE};

/// How long a broker may take to answer about the topic.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Whether a refused record ends its producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gaps {
    /// It does, and what was sent behind the record does not arrive: the only way to keep order while many
    /// records are under way.
    Forbidden,
    /// It does not. For producers that are given one record at a time.
    Permitted,
}

/// A connected producer.
pub(super) struct Producer {
    inner: FutureProducer<Context>,
    troubled: Arc<Notify>,
    topic: Arc<str>,
    mode: Mode,
}

impl Producer {
    /// Connects, and creates the topic if there is none.
    pub(super) async fn connect(settings: &KafkaSettings, gaps: Gaps) -> Result<Producer, Failure> {
        let mut config = settings
            .client_config()
            .map_err(|error| Failure::Transport(error.to_string()))?;
        if gaps == Gaps::Permitted {
            config
                .set("enable.gapless.guarantee", "false")
                .set("linger.ms", "0");
        }
        let context = Context::default();
        let troubled = Arc::clone(&context.troubled);
        let inner: FutureProducer<Context> = config.create_with_context(context)?;
        let producer = Producer {
            inner,
            troubled,
            topic: settings.topic.as_str().into(),
            mode: settings.mode,
        };
        match producer.ensure_topic(&config, settings.partitions).await {
            Ok(()) => Ok(producer),
            Err(failure) => {
                producer.discard().await;
                Err(failure)
            }
        }
    }

    /// Hands one event over; the future tells what became of it.
    pub(super) fn send(&self, event: &CloudEvent) -> Result<DeliveryFuture, Failure> {
        let key = event.instance.to_string();
        let (headers, value) = match self.mode {
            Mode::Binary => {
                let headers = OwnedHeaders::new();
                let headers = event
                    .binary_headers()
                    .fold(headers, |headers, (name, value)| {
                        headers.insert(header(&name, value))
                    });
                (headers, event.data.clone())
            }
            Mode::Structured => (
                OwnedHeaders::new().insert(header("content-type", STRUCTURED_CONTENT_TYPE)),
                event.structured(),
            ),
        };
        let record = FutureRecord::to(&self.topic)
            .key(&key)
            .headers(headers)
            .payload(value.as_str());
        self.inner
            .send_result(record)
            .map_err(|(error, _)| error.into())
    }

    /// Completes when the client can deliver nothing more.
    pub(super) async fn broken(&self) {
        while self.inner.client().fatal_error().is_none() {
            self.troubled.notified().await;
        }
    }

    /// Gives up what was not acknowledged yet; its futures end with a failure.
    pub(super) fn purge(&self) {
        self.inner.purge(PurgeConfig::default().queue().inflight());
    }

    /// Ends the producer. It may have to wait for its threads, so not on the runtime's.
    pub(super) async fn discard(self) {
        if tokio::task::spawn_blocking(move || drop(self))
            .await
            .is_err()
        {
            tracing::warn!("a Kafka producer ended in a panic");
        }
    }

    async fn ensure_topic(&self, config: &ClientConfig, partitions: u16) -> Result<(), Failure> {
        if self.topic_exists().await? {
            return Ok(());
        }
        let admin: AdminClient<Context> = config.create_with_context(Context::default())?;
        let topic = NewTopic::new(
            &self.topic,
            i32::from(partitions),
            TopicReplication::Fixed(REPLICATION_OF_BROKER),
        );
        let options = AdminOptions::new()
            .request_timeout(Some(ANSWER_MAX))
            .operation_timeout(Some(ANSWER_MAX));
        let answers = admin.create_topics([&topic], &options).await?;
        match answers.into_iter().next() {
            Some(Err((name, RDKafkaErrorCode::TopicAlreadyExists))) => {
                tracing::debug!(
                    topic = name,
                    "the Kafka topic was just created by another host"
                );
                Ok(())
            }
            Some(Err((name, code))) => Err(Failure::Transport(format!(
                "the Kafka topic '{name}' does not exist and cannot be created: {code}; create it, or grant the relay's \
                 user the right to"
            ))),
            Some(Ok(_)) | None => {
                tracing::info!(
                    topic = &*self.topic,
                    partitions,
                    "created the Kafka topic, which did not exist"
                );
                Ok(())
            }
        }
    }

    async fn topic_exists(&self) -> Result<bool, Failure> {
        let (inner, topic) = (self.inner.clone(), Arc::clone(&self.topic));
        let found = tokio::task::spawn_blocking(move || describe(inner.client(), &topic)).await;
        found.unwrap_or_else(|panic| Err(Failure::Transport(panic.to_string())))
    }
}

/// The brokers' own default.
const REPLICATION_OF_BROKER: i32 = -1;

fn describe(client: &Client<FutureProducerContext<Context>>, topic: &str) -> Result<bool, Failure> {
    let metadata = client.fetch_metadata(Some(topic), ANSWER_MAX)?;
    let error = metadata
        .topics()
        .iter()
        .find(|found| found.name() == topic)
        .and_then(rdkafka::metadata::MetadataTopic::error);
    match error.map(RDKafkaErrorCode::from) {
        None => Ok(true),
        Some(RDKafkaErrorCode::UnknownTopicOrPartition | RDKafkaErrorCode::UnknownTopic) => {
            Ok(false)
        }
        Some(code) => Err(KafkaError::MetadataFetch(code).into()),
    }
}

fn header<'a>(name: &'a str, value: &'a str) -> Header<'a, &'a str> {
    Header {
        key: name,
        value: Some(value),
    }
}

/// Brings the client's own words into the log. Its errors are not alarms: it mends connections by itself,
/// and what it cannot mend comes back as a failed delivery.
#[derive(Clone, Default)]
struct Context {
    /// Told of every error; some of them mean that the client delivers nothing more.
    troubled: Arc<Notify>,
}

impl ClientContext for Context {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        tracing::debug!(?level, facility, message, "Kafka client");
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(%error, reason, "Kafka client");
        self.troubled.notify_one();
    }
}
