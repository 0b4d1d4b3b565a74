//! Reports that this host runs, by its row in the list of hosts, and writes its counts, as points of the series. Every host does
//! so, whatever its roles.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::host_counts::HostCounts;
use wrkflw_runtime::worker::every;
use wrkflw_store::error::Outage;
use wrkflw_store::hosts::{self, HOST_EXPIRY, NewHost};
use wrkflw_store::{Store, StoreError, series};

/// How often a host renews its row and writes its counts. A failing host loses at most the counts of this period.
const RENEW_EVERY: Duration = Duration::from_secs(HOST_EXPIRY.as_secs() / 3);

/// Writes the row and the counts of one host.
#[derive(Clone)]
pub struct Presence(Arc<Parts>);

struct Parts {
    store: Store,
    host: NewHost,
    /// The counts of the engine; none on a host without commands.
    counts: Option<Arc<HostCounts>>,
}

impl Presence {
    pub fn new(store: Store, host: NewHost, counts: Option<Arc<HostCounts>>) -> Presence {
        Presence(Arc::new(Parts {
            store,
            host,
            counts,
        }))
    }

    /// Renews until `cancel`. Call [`Presence::leave`] when the last command has ended.
    pub async fn run(self, cancel: CancellationToken) {
        every(RENEW_EVERY, &cancel, || self.renew_or_warn()).await;
    }

    /// Renews the row of this host and writes its counts. A failure is only logged, because the next turn repeats the work. Read-only
    /// connections are replaced, also on hosts that get no requests.
    pub async fn renew_or_warn(&self) {
        if let Err(error) = self.renew().await {
            if error.outage() == Some(Outage::ReadOnly) {
                self.0.store.renew();
            }
            tracing::warn!(%error, "the row of this host could not be renewed; the host tries again soon");
        }
    }

    /// Renews the row of this host, writes its counts, and measures if it is the first of the hosts.
    pub async fn renew(&self) -> Result<(), StoreError> {
        let Parts { store, host, .. } = &*self.0;
        hosts::renew(store, host).await?;
        self.write().await?;
        series::measure(store, host.id).await
    }

    /// Writes the counts of this host, and deletes its row.
    pub async fn leave(&self) -> Result<(), StoreError> {
        let written = self.write().await;
        hosts::delete(&self.0.store, self.0.host.id).await?;
        written
    }

    /// Counts that cannot be written are kept for the next turn. If the answer to a write is lost, they may be counted twice.
    async fn write(&self) -> Result<(), StoreError> {
        let Some(counts) = &self.0.counts else {
            return Ok(());
        };
        let counted = counts.take();
        if counted.is_empty() {
            return Ok(());
        }
        let written = series::count(&self.0.store, &counted).await;
        if written.is_err() {
            counts.put_back(&counted);
        }
        written
    }
}
