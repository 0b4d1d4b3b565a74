//! The notifier: from public entries to notifications, and from there to the webhooks of subscribers.
//!
//! A scribe reads each tenant's entries behind a cursor and writes notifications and deliveries; couriers claim
//! deliveries by lease and post them, at least once, in no promised order. Any number of processes share both; none
//! leads. A receiver that is down is no error: its deliveries wait, and in the end are kept as dead. No command
//! waits for anything here.
//!
//! Reading order: [`settings`], `scribe`, `courier` (the loops), `places` (who is posted to), `message` (what is sent),
//! `post` (how).

mod courier;
mod message;
mod places;
mod post;
mod scribe;
pub mod settings;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::domain::cloudevent::Naming;
use crate::store::{Store, StoreError};
use courier::Courier;
use post::Post;
use scribe::Scribe;
use settings::{Settings, SettingsError};

/// How often the backlog is measured and old dead deliveries are forgotten.
const MEASURE_EVERY: Duration = Duration::from_secs(5);
/// How long a dead delivery is kept.
const DEAD_KEPT: Duration = Duration::from_hours(30 * 24);

/// Tells people and webhooks what happened.
#[derive(Debug)]
pub struct Notifier {
    store: Store,
    clock: Clock,
    naming: Naming,
    settings: Settings,
    post: Post,
}

impl Notifier {
    /// Refuses settings that cannot work. No receiver is contacted yet.
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

    /// Works until `cancel`; then what is being posted is waited for. `commits` tells that something was committed by
    /// this process: what others committed is found by looking.
    pub async fn run(self, cancel: CancellationToken, commits: watch::Receiver<u64>) {
        let wake = Arc::new(Notify::new());
        let mut tasks = JoinSet::new();
        let scribe = Scribe {
            store: self.store.clone(),
            clock: self.clock.clone(),
            wake: Arc::clone(&wake),
            cancel: cancel.clone(),
        };
        tasks.spawn(scribe.run(commits));
        tasks.spawn(measure(
            self.store.clone(),
            self.clock.clone(),
            cancel.clone(),
        ));
        let courier = Courier {
            store: self.store,
            clock: self.clock,
            naming: self.naming,
            settings: self.settings,
            post: self.post,
            wake,
            cancel,
        };
        tasks.spawn(courier.run());
        tracing::info!("telling people and webhooks what happens");
        tasks.join_all().await;
    }
}

async fn measure(store: Store, clock: Clock, cancel: CancellationToken) {
    loop {
        if let Err(error) = look(&store, &clock).await {
            tracing::debug!(%error, "the deliveries could not be measured");
        }
        tokio::select! {
            () = cancel.cancelled() => return,
            () = tokio::time::sleep(MEASURE_EVERY) => {}
        }
    }
}

async fn look(store: &Store, clock: &Clock) -> Result<(), StoreError> {
    let now = clock.now();
    while store.purge_deliveries(now - DEAD_KEPT).await? {}
    let backlog = store.delivery_backlog().await?;
    let age = backlog
        .since
        .map_or(0.0, |since| now.duration_since(since).as_secs_f64());
    metrics::gauge!("wrkflw_webhook_pending").set(counted(backlog.pending));
    metrics::gauge!("wrkflw_webhook_oldest_seconds").set(age.max(0.0));
    metrics::gauge!("wrkflw_webhook_dead").set(counted(backlog.dead));
    Ok(())
}

/// Exact: counts are bounded far below the digits of a float.
fn counted(count: i64) -> f64 {
    f64::from(i32::try_from(count).unwrap_or(i32::MAX))
}
