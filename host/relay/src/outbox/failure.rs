//! Classifies failed deliveries: the event itself, or everything else. Retries and dead letters follow from the class.
//!
//! Only a failure of the record itself counts against the event. An unknown or forbidden topic affects all events alike. They
//! wait until an operator has repaired it, and none is parked.

use rdkafka::error::{KafkaError, RDKafkaErrorCode};

/// Why an event was not acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Failure {
    /// The event itself is the cause: another attempt would fail in the same way.
    #[error("{0}")]
    Refused(String),
    /// The broker, the connection or the client is the cause: the same event may be sent again.
    #[error("{0}")]
    Transport(String),
}

impl From<KafkaError> for Failure {
    fn from(error: KafkaError) -> Failure {
        match error.rdkafka_error_code() {
            Some(code) if concerns_the_record(code) => {
                Failure::Refused(format!("the broker refuses it: {code}"))
            }
            Some(code) if concerns_the_topic(code) => Failure::Transport(format!(
                "the topic cannot be written: {code}; create it or grant the relay's user the right to write it"
            )),
            _ => Failure::Transport(error.to_string()),
        }
    }
}

fn concerns_the_record(code: RDKafkaErrorCode) -> bool {
    matches!(
        code,
        RDKafkaErrorCode::MessageSizeTooLarge
            | RDKafkaErrorCode::InvalidMessageSize
            | RDKafkaErrorCode::MessageBatchTooLarge
            | RDKafkaErrorCode::InvalidTimestamp
            | RDKafkaErrorCode::InvalidRecord
            | RDKafkaErrorCode::PolicyViolation
    )
}

fn concerns_the_topic(code: RDKafkaErrorCode) -> bool {
    matches!(
        code,
        RDKafkaErrorCode::UnknownTopic
            | RDKafkaErrorCode::UnknownTopicOrPartition
            | RDKafkaErrorCode::UnknownPartition
            | RDKafkaErrorCode::InvalidTopic
            | RDKafkaErrorCode::TopicAuthorizationFailed
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_record_itself_counts_against_an_event() {
        let failure = |code| Failure::from(KafkaError::MessageProduction(code));
        for code in [
            RDKafkaErrorCode::MessageSizeTooLarge,
            RDKafkaErrorCode::InvalidRecord,
        ] {
            assert!(matches!(failure(code), Failure::Refused(_)), "{code:?}");
        }
        for code in [
            RDKafkaErrorCode::QueueFull,
            RDKafkaErrorCode::PurgeQueue,
            RDKafkaErrorCode::MessageTimedOut,
            RDKafkaErrorCode::Fatal,
            RDKafkaErrorCode::NotLeaderForPartition,
            RDKafkaErrorCode::UnknownTopic,
            RDKafkaErrorCode::TopicAuthorizationFailed,
        ] {
            assert!(matches!(failure(code), Failure::Transport(_)), "{code:?}");
        }
    }
}
