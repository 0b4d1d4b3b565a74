//! The relay: from the outbox to Kafka, at least once, in order per instance. The only module that names `rdkafka`.
//!
//! A worker holds one lane at a time by its row lock, publishes its events in order, and deletes in the same
//! transaction what the broker acknowledged. A crash in between sends events again, under the same ids. Any number of
//! workers and processes share the lanes; none leads. Kafka being down is no error: events wait.
//!
//! Reading order: [`settings`], `worker` (the loop), `publish` (one claim), `failure` (whose fault), `kafka` (the
//! client), `fence` (how far floors rise).

mod failure;
mod fence;
mod kafka;
mod publish;
pub mod settings;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::domain::cloudevent::Naming;
use crate::store::outbox::Outbox;
use settings::{KafkaSettings, KafkaSettingsError};
use worker::Worker;

/// Lanes that one process works on at a time; each takes one database connection and one producer.
pub const WORKERS: usize = 2;
/// How often the backlog is measured.
const MEASURE_EVERY: Duration = Duration::from_secs(5);

/// Carries events from the outbox to Kafka.
#[derive(Debug, Clone)]
pub struct Relay {
    outbox: Outbox,
    settings: Arc<KafkaSettings>,
    naming: Arc<Naming>,
}

impl Relay {
    /// Refuses settings that cannot work. No broker is contacted yet.
    pub fn new(
        outbox: Outbox,
        settings: KafkaSettings,
        naming: Naming,
    ) -> Result<Relay, KafkaSettingsError> {
        settings.client_config()?;
        Ok(Relay {
            outbox,
            settings: Arc::new(settings),
            naming: Arc::new(naming),
        })
    }

    /// Works until `cancel`; then it finishes what is under way, or leaves it for the next relay. `wake` tells that
    /// something was committed: without it events are found by looking, a quarter of a second later at most.
    pub async fn run(self, cancel: CancellationToken, wake: Arc<Notify>) {
        let mut tasks = JoinSet::new();
        for _ in 0..WORKERS {
            let worker = Worker {
                outbox: self.outbox.clone(),
                settings: Arc::clone(&self.settings),
                naming: Arc::clone(&self.naming),
                wake: Arc::clone(&wake),
                cancel: cancel.clone(),
            };
            tasks.spawn(worker.run());
        }
        tasks.spawn(measure(self.outbox, cancel));
        tracing::info!(
            topic = self.settings.topic,
            brokers = self.settings.brokers,
            "relaying events to Kafka"
        );
        tasks.join_all().await;
    }
}

async fn measure(outbox: Outbox, cancel: CancellationToken) {
    loop {
        match outbox.backlog().await {
            Ok(backlog) => {
                metrics::gauge!("wrkflw_outbox_depth").set(counted(backlog.events));
                metrics::gauge!("wrkflw_outbox_oldest_seconds").set(backlog.oldest_seconds);
                metrics::gauge!("wrkflw_dead_letters").set(counted(backlog.dead_letters));
            }
            Err(error) => tracing::debug!(%error, "the outbox could not be measured"),
        }
        tokio::select! {
            () = cancel.cancelled() => return,
            () = tokio::time::sleep(MEASURE_EVERY) => {}
        }
    }
}

/// Exact: counts are bounded far below the digits of a float.
fn counted(count: i64) -> f64 {
    f64::from(i32::try_from(count).unwrap_or(i32::MAX))
}
