//! Asks the brokers once, for operators who check their settings. Creates nothing.

use rdkafka::producer::{BaseProducer, Producer as _};
use rdkafka::types::RDKafkaErrorCode;

use super::kafka::ANSWER_MAX;
use super::settings::KafkaSettings;

/// The answer of the brokers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Brokers {
    pub count: usize,
    /// Partitions of the topic. None if there is no such topic: the relay creates it.
    pub partitions: Option<usize>,
}

/// Asks for the brokers and the topic. The error says why no broker answers. Blocks for five seconds at most.
pub fn brokers(settings: &KafkaSettings) -> Result<Brokers, String> {
    let config = settings
        .client_config()
        .map_err(|error| error.to_string())?;
    let client: BaseProducer = config.create().map_err(|error| error.to_string())?;
    // Asks for all topics: a request for a missing topic may create it.
    let metadata = client
        .client()
        .fetch_metadata(None, ANSWER_MAX)
        .map_err(|error| error.to_string())?;
    let topics = metadata.topics().iter();
    let mut ours = topics.filter(|topic| topic.name() == settings.topic);
    let partitions = match ours
        .next()
        .map(|topic| (topic.error(), topic.partitions().len()))
    {
        Some((Some(error), _)) => return Err(RDKafkaErrorCode::from(error).to_string()),
        Some((None, partitions)) => Some(partitions),
        None => None,
    };
    Ok(Brokers {
        count: metadata.brokers().len(),
        partitions,
    })
}
