//! The notifier: makes notifications of public entries and posts them to the webhooks of subscribers.
//!
//! A fan-out reads each tenant's entries behind a cursor and writes notifications and deliveries. Dispatchers claim deliveries by
//! lease and post them, at least once, without an order. Any number of processes share both; there is no leader. While a receiver
//! is down, its deliveries wait. After the last attempt they are marked dead. No command waits for any of this.
//!
//! Reading order: [`settings`], `fan_out`, `dispatcher` (the loops), `places` (how concurrent posts are shared), `message` (the
//! content of a request), `post` (the request).

mod dispatcher;
mod fan_out;
mod message;
mod places;
mod post;
pub mod settings;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

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
use wrkflw_store::{Store, StoreError, deliveries, snapshot};

/// How often the backlog is measured.
const MEASURE_EVERY: Duration = Duration::from_secs(5);
/// The time after which operators are told of a transaction that holds back the feed.
const HELD_MAX: Duration = Duration::from_mins(1);

/// Makes notifications and deliveries of events, and posts them.
#[derive(Debug)]
pub struct Notifier {
    store: Store,
    clock: Clock,
    naming: Naming,
    settings: Settings,
    post: Post,
    held: Mutex<FeedBlocker>,
}

/// How long the oldest unfinished transaction of the server has held back the feed.
#[derive(Debug, Default)]
struct FeedBlocker {
    /// The transaction, and when the notifier first found it.
    by: Option<(i64, Instant)>,
    is_told: bool,
}

impl FeedBlocker {
    /// Notes the transaction that holds the feed back. Returns for how long it has done so, and whether to tell operators now.
    fn note(&mut self, by: Option<i64>, now: Instant) -> (Duration, bool) {
        if self.by.map(|(known, _)| known) != by {
            *self = FeedBlocker {
                by: by.map(|transaction| (transaction, now)),
                is_told: false,
            };
        }
        let since = self.by.map_or(now, |(_, since)| since);
        let held = now.duration_since(since);
        let tells = held >= HELD_MAX && !self.is_told;
        self.is_told |= tells;
        (held, tells)
    }
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
            held: Mutex::default(),
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
        let backlog = deliveries::backlog(&self.store).await?;
        let age = |since| self.clock.now().duration_since(since).as_secs_f64();
        let age = backlog.since.map_or(0.0, age);
        metrics::gauge!("wrkflw_webhook_pending").set(gauge_value(backlog.pending));
        metrics::gauge!("wrkflw_webhook_oldest_seconds").set(age.max(0.0));
        metrics::gauge!("wrkflw_webhook_dead").set(gauge_value(backlog.dead));
        let held_by = snapshot::transactions(&self.store).await?.held_by();
        let (held, tells) = self
            .held
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .note(held_by, Instant::now());
        metrics::gauge!("wrkflw_feed_held_seconds").set(held.as_secs_f64());
        if tells {
            tracing::warn!(
                transaction = held_by,
                "a transaction that does not end, maybe of another database of the server, holds back notifications, webhooks, event streams and checkpoints. \
                PostgreSQL tells whose it is: select pid, datname, usename, xact_start from pg_stat_activity where backend_xid is not null order by xact_start; \
                or select * from pg_prepared_xacts"
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_told_once_of_each_transaction_that_holds_back_the_feed() {
        let (mut held, begun) = (FeedBlocker::default(), Instant::now());
        let mut note = |by, seconds| {
            let now = begun + Duration::from_secs(seconds);
            let (held, tells) = held.note(by, now);
            (held.as_secs(), tells)
        };
        assert_eq!(note(None, 0), (0, false));
        assert_eq!(note(Some(7), 100), (0, false));
        assert_eq!(note(Some(7), 159), (59, false));
        assert_eq!(note(Some(7), 160), (60, true));
        assert_eq!(note(Some(7), 165), (65, false));
        assert_eq!(note(Some(8), 170), (0, false), "another transaction");
        assert_eq!(note(Some(8), 230), (60, true));
        assert_eq!(note(None, 235), (0, false));
        assert_eq!(note(Some(8), 240), (0, false));
    }
}
