//! The Kafka client: one producer and its topics, that of events and that of checkpoints.
//!
//! The relay sends records in order and awaits their delivery reports. It discards a failed producer with all records that it
//! still holds, so that none of them can arrive after a record of the next producer.

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
use wrkflw_core::cloudevent::{CloudEvent, STRUCTURED_CONTENT_TYPE};

/// How long a broker may take to describe the topic.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(5);

/// The header that marks a record as a repetition of one that was published before.
const REPLAYED: &str = "wrkflw-replayed";

/// Whether a refused record ends its producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gaps {
    /// A refused record ends its producer: records sent after it are not delivered. This is the only way to keep the order with
    /// many records in flight.
    Forbidden,
    /// A refused record does not end its producer. For producers with one record in flight at a time.
    Permitted,
}

/// A connected producer.
pub(super) struct Producer {
    inner: FutureProducer<Context>,
    troubled: Arc<Notify>,
    events: Arc<str>,
    checkpoints: Arc<str>,
    mode: Mode,
}

impl Producer {
    /// Connects, and creates the topics that do not exist.
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
            events: settings.topic.as_str().into(),
            checkpoints: settings.checkpoint_topic.as_str().into(),
            mode: settings.mode,
        };
        match producer.ensure_topics(&config).await {
            Ok(()) => Ok(producer),
            Err(failure) => {
                producer.discard().await;
                Err(failure)
            }
        }
    }

    /// Queues one event for sending. The future resolves to the delivery report.
    pub(super) fn send(
        &self,
        event: &CloudEvent,
        replayed: bool,
    ) -> Result<DeliveryFuture, Failure> {
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
        let headers = if replayed {
            headers.insert(header(REPLAYED, "true"))
        } else {
            headers
        };
        let topic = if event.is_checkpoint() {
            &self.checkpoints
        } else {
            &self.events
        };
        let record = FutureRecord::to(topic)
            .key(&key)
            .headers(headers)
            .payload(value.as_str());
        self.inner
            .send_result(record)
            .map_err(|(error, _)| error.into())
    }

    /// Completes when the client cannot deliver any more.
    pub(super) async fn broken(&self) {
        while self.inner.client().fatal_error().is_none() {
            self.troubled.notified().await;
        }
    }

    /// Discards all records that were not acknowledged yet. Its futures end with a failure.
    pub(super) fn purge(&self) {
        self.inner.purge(PurgeConfig::default().queue().inflight());
    }

    /// Ends the producer, off the runtime's threads, because that may wait for the client's threads.
    pub(super) async fn discard(self) {
        if tokio::task::spawn_blocking(move || drop(self))
            .await
            .is_err()
        {
            tracing::warn!("a Kafka producer ended in a panic");
        }
    }

    async fn ensure_topics(&self, config: &ClientConfig) -> Result<(), Failure> {
        self.ensure_topic(config, &self.events).await?;
        self.ensure_topic(config, &self.checkpoints).await
    }

    async fn ensure_topic(&self, config: &ClientConfig, topic: &Arc<str>) -> Result<(), Failure> {
        if self.topic_exists(topic).await? {
            return Ok(());
        }
        let admin: AdminClient<Context> = config.create_with_context(Context::default())?;
        let new = NewTopic::new(
            topic,
            TOPIC_PARTITIONS,
            TopicReplication::Fixed(REPLICATION_OF_BROKER),
        );
        let options = AdminOptions::new()
            .request_timeout(Some(ANSWER_MAX))
            .operation_timeout(Some(ANSWER_MAX));
        let answers = admin.create_topics([&new], &options).await?;
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
                    topic = &**topic,
                    partitions = TOPIC_PARTITIONS,
                    "created the Kafka topic, which did not exist"
                );
                Ok(())
            }
        }
    }

    async fn topic_exists(&self, topic: &Arc<str>) -> Result<bool, Failure> {
        let (inner, topic) = (self.inner.clone(), Arc::clone(topic));
        let found = tokio::task::spawn_blocking(move || describe(inner.client(), &topic)).await;
        found.unwrap_or_else(|panic| Err(Failure::Transport(panic.to_string())))
    }
}

/// Partitions of a topic that the relay creates, the usual number. For another number, operators create the topic.
const TOPIC_PARTITIONS: i32 = 3;
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

/// Forwards the client's messages to the log. Its errors are logged at debug level: the client repairs connections by itself, and
/// an error that it cannot repair ends as a failed delivery.
#[derive(Clone, Default)]
struct Context {
    /// Notified of every error. After some of them the client can deliver nothing more.
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
