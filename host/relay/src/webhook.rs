//! The notifier: makes notifications of public entries and posts them to the webhooks of subscribers.
//!
//! A fan-out reads each tenant's entries behind a cursor and writes notifications and deliveries. Dispatchers claim deliveries by
//! lease and post them, at least once, without an order. Any number of processes share both; there is no leader. While a receiver
//! is down, its deliveries wait, and are marked dead after the last attempt. No command waits for any of this.
//!
//! Reading order: [`settings`], `fan_out`, `dispatcher` (the loops), `places` (how concurrent posts are shared), `message` (what
//! is sent), `post` (how).

mod dispatcher;
mod fan_out;
mod message;
mod places;
mod post;
pub mod settings;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use dispatcher::Dispatcher;
use fan_out::FanOut;
use post::Post;
use settings::{Settings, SettingsError};
use wrkflw_core::cloudevent::Naming;
use wrkflw_runtime::clock::Clock;
use wrkflw_runtime::lease_worker::LeaseWorker;
use wrkflw_runtime::telemetry::gauge_value;
use wrkflw_runtime::worker::{self, every};
use wrkflw_store::{Store, StoreError};

/// How often the backlog is measured.
const MEASURE_EVERY: Duration = Duration::from_secs(5);

/// Makes notifications and deliveries of events, and posts them.
#[derive(Debug)]
pub struct Notifier {
    store: Store,
    clock: Clock,
    naming: Naming,
    settings: Settings,
    post: Post,
}

impl Notifier {
    /// Refuses invalid settings. Contacts no receiver yet.
    pub fn new(
        store: Store,
        clock: Clock,
        naming: Naming,
        settings: Settings,
    ) -> Result<Notifier, SettingsError> {
        let post = Post::new(&settings)?;
        Ok(Notifier {
            store,
            clock,
            naming,
            settings,
            post,
        })
    }

    /// Runs until `cancel`, then waits for the posts in flight. `commits` changes after each commit of this process. Commits of
    /// other processes are found by polling.
    pub async fn run(self, cancel: CancellationToken, commits: watch::Receiver<u64>) {
        let (notifier, wake) = (Arc::new(self), watch::Sender::new(()));
        let (clock, lease) = (notifier.clock.clone(), notifier.lease());
        let queue = Dispatcher::new(notifier.clone());
        let dispatcher = LeaseWorker::new(queue, clock, lease, wake.subscribe());
        let mut fan_out = FanOut {
            notifier: notifier.clone(),
            commits,
            wake,
            cancel: cancel.clone(),
            troubled: HashMap::new(),
        };
        let mut tasks = JoinSet::new();
        let cancelled = cancel.clone();
        tasks.spawn(async move { worker::run(&mut fan_out, &cancelled).await });
        let cancelled = cancel.clone();
        tasks.spawn(async move { dispatcher.run(&cancelled).await });
        tasks.spawn(async move {
            every(MEASURE_EVERY, &cancel, || notifier.measure()).await;
        });
        tracing::info!("sending notifications and webhooks");
        tasks.join_all().await;
    }

    async fn measure(&self) {
        if let Err(error) = self.set_gauges().await {
            tracing::warn!(%error, "the deliveries could not be measured");
        }
    }

    async fn set_gauges(&self) -> Result<(), StoreError> {
        let backlog = self.store.delivery_backlog().await?;
        let age = |since| self.clock.now().duration_since(since).as_secs_f64();
        let age = backlog.since.map_or(0.0, age);
        metrics::gauge!("wrkflw_webhook_pending").set(gauge_value(backlog.pending));
        metrics::gauge!("wrkflw_webhook_oldest_seconds").set(age.max(0.0));
        metrics::gauge!("wrkflw_webhook_dead").set(gauge_value(backlog.dead));
        Ok(())
    }
}
