//! Tells others that this host runs, and writes what it counted: a row of the list of hosts, and points of the series. Every host
//! does so, whatever its roles.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::tally::Tally;
use wrkflw_runtime::worker::every;
use wrkflw_store::error::Outage;
use wrkflw_store::hosts::{HOST_EXPIRY, NewHost};
use wrkflw_store::{Store, StoreError};

/// How often a host renews its row and writes what it counted. A host that fails loses the counts of this time at most.
const RENEW_EVERY: Duration = Duration::from_secs(HOST_EXPIRY.as_secs() / 3);

/// The presence of one host.
#[derive(Clone)]
pub struct Presence(Arc<Parts>);

struct Parts {
    store: Store,
    host: NewHost,
    /// What the engine counts; none on a host without commands.
    tally: Option<Arc<Tally>>,
}

impl Presence {
    pub fn new(store: Store, host: NewHost, tally: Option<Arc<Tally>>) -> Presence {
        Presence(Arc::new(Parts { store, host, tally }))
    }

    /// Renews until `cancel`. Call [`Presence::leave`] when the last command has ended.
    pub async fn run(self, cancel: CancellationToken) {
        every(RENEW_EVERY, &cancel, || self.renew_or_warn()).await;
    }

    /// Renews the row of this host and writes what it counted. A failure is only logged: the next turn makes up for it. Connections that
    /// may only read are replaced, also on hosts to which nobody sends requests.
    pub async fn renew_or_warn(&self) {
        if let Err(error) = self.renew().await {
            if error.outage() == Some(Outage::ReadOnly) {
                self.0.store.renew();
            }
            tracing::warn!(%error, "the row of this host could not be renewed; it is tried again soon");
        }
    }

    /// Renews the row of this host, writes what it counted, and measures if it is the first of the hosts.
    pub async fn renew(&self) -> Result<(), StoreError> {
        let Parts { store, host, .. } = &*self.0;
        store.renew_host(host).await?;
        self.write().await?;
        store.measure(host.id).await
    }

    /// Writes what this host counted, and deletes its row.
    pub async fn leave(&self) -> Result<(), StoreError> {
        let written = self.write().await;
        self.0.store.delete_host(self.0.host.id).await?;
        written
    }

    /// Counts that cannot be written are kept for the next time. If the answer to a write is lost, they may be counted twice.
    async fn write(&self) -> Result<(), StoreError> {
        let Some(tally) = &self.0.tally else {
            return Ok(());
        };
        let counted = tally.take();
        if counted.is_empty() {
            return Ok(());
        }
        let written = self.0.store.count(&counted).await;
        if written.is_err() {
            tally.put_back(&counted);
        }
        written
    }
}
