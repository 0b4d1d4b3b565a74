//! How to reach Kafka and what to send. The settings are checked when the host starts, not at the first event.
//!
//! Operators may pass any property on to librdkafka, except those on which order and delivery depend.

use std::collections::BTreeMap;

use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::error::KafkaError;

use wrkflw_core::checkpoint::topic_beside;

/// The settings of operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KafkaSettings {
    /// `host:port`, several with commas between.
    pub brokers: String,
    pub topic: String,
    /// The topic of audit checkpoints.
    pub checkpoint_topic: String,
    pub mode: Mode,
    /// Further librdkafka properties, such as those of TLS and SASL.
    pub properties: BTreeMap<String, String>,
}

/// How a `CloudEvent` becomes a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Attributes as headers, data as value.
    #[default]
    Binary,
    /// One JSON document as value.
    Structured,
}

/// An invalid setting.
#[derive(Debug, thiserror::Error)]
pub enum KafkaSettingsError {
    #[error(
        "Kafka setting '{property}' is the relay's own: it is always '{value}', because the order of events and the partitions of topics depend on it"
    )]
    Reserved {
        property: String,
        value: &'static str,
    },
    #[error("Kafka setting '{property}' has its own setting: use '{instead}'")]
    Named {
        property: String,
        instead: &'static str,
    },
    #[error(
        "the Kafka topic name '{0}' is not valid: use 1 to 249 letters, digits, '.', '_' and '-'"
    )]
    Topic(String),
    #[error("the Kafka client refuses the settings: {0}")]
    Client(String),
}

/// Properties that the relay depends on. A message never times out by itself: single timeouts would let later events overtake
/// earlier ones. At its own deadline the relay purges all messages together. A broker must not create a topic on request: it would
/// have the broker's number of partitions, which is one by default.
const RESERVED: [(&str, &str); 5] = [
    ("enable.idempotence", "true"),
    ("acks", "all"),
    ("message.timeout.ms", "0"),
    ("enable.gapless.guarantee", "true"),
    ("allow.auto.create.topics", "false"),
];
/// Other names under which librdkafka takes the same property.
const ALIASES: [(&str, &str); 2] = [
    ("request.required.acks", "acks"),
    ("delivery.timeout.ms", "message.timeout.ms"),
];
/// Defaults that operators may change: the partition of a record as Java clients compute it, and a short wait to fill batches.
const DEFAULTS: [(&str, &str); 4] = [
    ("client.id", "wrkflw"),
    ("partitioner", "murmur2_random"),
    ("linger.ms", "1"),
    ("reconnect.backoff.max.ms", "2000"),
];
const TOPIC_CHARACTERS_MAX: usize = 249;

impl Default for KafkaSettings {
    fn default() -> KafkaSettings {
        KafkaSettings {
            brokers: "localhost:9092".into(),
            topic: "wrkflw.events".into(),
            checkpoint_topic: topic_beside("wrkflw.events"),
            mode: Mode::Binary,
            properties: BTreeMap::new(),
        }
    }
}

fn is_topic(name: &str) -> bool {
    (1..=TOPIC_CHARACTERS_MAX).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        && !matches!(name, "." | "..")
}

/// The client's error without the value of the property, which may be a password.
fn named(error: &KafkaError) -> String {
    match error {
        KafkaError::ClientConfig(_, _, property, _) => {
            format!("it has no property {property:?}, or the value of that property is invalid")
        }
        error => error.to_string(),
    }
}

impl KafkaSettings {
    /// Checks that the client accepts the settings. Makes no connection.
    pub fn checked(&self) -> Result<(), KafkaSettingsError> {
        self.client_config().map(drop)
    }

    /// The producer's configuration. The error says which setting is invalid. Makes no connection.
    pub(super) fn client_config(&self) -> Result<ClientConfig, KafkaSettingsError> {
        self.check()?;
        let mut config = ClientConfig::new();
        for (property, value) in DEFAULTS {
            config.set(property, value);
        }
        for (property, value) in &self.properties {
            config.set(property, value);
        }
        for (property, value) in RESERVED {
            config.set(property, value);
        }
        config.set("bootstrap.servers", &self.brokers);
        config.set_log_level(RDKafkaLogLevel::Warning);
        config
            .create_native_config()
            .map_err(|error| KafkaSettingsError::Client(named(&error)))?;
        Ok(config)
    }

    fn check(&self) -> Result<(), KafkaSettingsError> {
        for topic in [&self.topic, &self.checkpoint_topic] {
            if !is_topic(topic) {
                return Err(KafkaSettingsError::Topic(topic.clone()));
            }
        }
        for property in self.properties.keys() {
            if matches!(
                property.as_str(),
                "bootstrap.servers" | "metadata.broker.list"
            ) {
                return Err(KafkaSettingsError::Named {
                    property: property.clone(),
                    instead: "brokers",
                });
            }
            let name = ALIASES
                .iter()
                .find(|(alias, _)| alias == property)
                .map_or(property.as_str(), |(_, name)| name);
            if let Some((_, value)) = RESERVED.iter().find(|(reserved, _)| *reserved == name) {
                return Err(KafkaSettingsError::Reserved {
                    property: property.clone(),
                    value,
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(property: &str, value: &str) -> Result<ClientConfig, KafkaSettingsError> {
        KafkaSettings {
            properties: BTreeMap::from([(property.to_owned(), value.to_owned())]),
            ..KafkaSettings::default()
        }
        .client_config()
    }

    #[test]
    fn operators_may_pass_properties_on_and_override_defaults() {
        let config = with("linger.ms", "20").expect("a known property");
        assert_eq!(config.get("linger.ms"), Some("20"));
        assert_eq!(config.get("enable.idempotence"), Some("true"));
    }

    #[test]
    fn wrong_settings_are_refused_by_name() {
        for (property, value, words) in [
            ("enable.idempotence", "false", "is always 'true'"),
            ("delivery.timeout.ms", "1000", "is always '0'"),
            ("allow.auto.create.topics", "true", "is always 'false'"),
            ("metadata.broker.list", "x:1", "use 'brokers'"),
            ("linger.mss", "20", "linger.mss"),
            ("linger.ms", "soon", "linger.ms"),
        ] {
            let message = with(property, value).expect_err(property).to_string();
            assert!(message.contains(words), "{property}: {message}");
        }
        let named = KafkaSettings {
            topic: "my events".into(),
            ..KafkaSettings::default()
        };
        assert!(
            named
                .client_config()
                .expect_err("a blank")
                .to_string()
                .contains("'my events'")
        );
    }
}
