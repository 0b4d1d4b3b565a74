//! The relay: sends the events of the outbox to Kafka, at least once, in order per instance. The only module that names
//! `rdkafka`.
//!
//! A worker claims one partition at a time by a row lock and publishes its events in order. In the same transaction it deletes
//! the events that the broker acknowledged. After a crash in between, events are sent again under the same ids. Any number of
//! workers and processes share the partitions; there is no leader. While Kafka is down, events wait; that is no error.
//!
//! Reading order: [`settings`], `partition_worker` (one turn), `publish` (the events of one claim), `failure` (classes of failures),
//! `kafka` (the client), [`probe`] (for operators), `fence` (how far floors rise), `passed_positions` (events that wait for a later
//! release).

mod failure;
mod fence;
mod kafka;
mod partition_worker;
mod passed_positions;
pub mod probe;
mod publish;
pub mod settings;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use partition_worker::PartitionWorker;
use settings::{KafkaSettings, KafkaSettingsError};
use wrkflw_core::cloudevent::Naming;
use wrkflw_runtime::telemetry::gauge_value;
use wrkflw_runtime::worker::{self, every};
use wrkflw_store::outbox::Outbox;

/// Partitions of the outbox that one process works on at a time; each takes one database connection and one producer.
pub const WORKERS: usize = 2;
/// How often the backlog is measured.
const MEASURE_EVERY: Duration = Duration::from_secs(5);

/// Sends events from the outbox to Kafka.
#[derive(Debug, Clone)]
pub struct Relay {
    outbox: Outbox,
    settings: Arc<KafkaSettings>,
    naming: Arc<Naming>,
}

impl Relay {
    /// Refuses invalid settings. Contacts no broker yet.
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

    /// Runs until `cancel`. Then it finishes the events in flight, or leaves them to another relay. `wake` is notified after
    /// each commit of this process. Without it, events are found by polling, after at most a quarter of a second.
    pub async fn run(self, cancel: CancellationToken, wake: Arc<Notify>) {
        let mut tasks = JoinSet::new();
        for _ in 0..WORKERS {
            let mut worker = PartitionWorker::new(self.clone(), wake.clone(), cancel.clone());
            let cancel = cancel.clone();
            tasks.spawn(async move {
                worker::run(&mut worker, &cancel).await;
                worker.stop().await;
            });
        }
        let outbox = self.outbox;
        tasks.spawn(async move { every(MEASURE_EVERY, &cancel, || measure(&outbox)).await });
        tracing::info!(
            topic = self.settings.topic,
            brokers = self.settings.brokers,
            "relaying events to Kafka"
        );
        tasks.join_all().await;
    }
}

async fn measure(outbox: &Outbox) {
    match outbox.backlog().await {
        Ok(backlog) => {
            metrics::gauge!("wrkflw_outbox_depth").set(gauge_value(backlog.events));
            metrics::gauge!("wrkflw_outbox_oldest_seconds").set(backlog.oldest_seconds);
            metrics::gauge!("wrkflw_dead_letters").set(gauge_value(backlog.dead_letters));
        }
        Err(error) => tracing::warn!(%error, "the outbox could not be measured"),
    }
}
