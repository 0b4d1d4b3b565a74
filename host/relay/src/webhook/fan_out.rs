//! Makes notifications and deliveries from public entries. One turn reads some entries of one tenant and moves its cursor behind
//! them. A failed turn delays no other tenant: its tenant comes last in the next round, with half as many entries.

use std::collections::{BTreeSet, HashMap};
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Notifier;
use wrkflw_core::cloudevent::suffix_of;
use wrkflw_core::ids::TenantId;
use wrkflw_core::notification::{self, Notification, Recipient};
use wrkflw_runtime::worker::{Backoff, Worker};
use wrkflw_store::StoreError;
use wrkflw_store::notifier::{self, Delivery, LockedCursor, OnDuplicate, Unsent};
use wrkflw_store::subscriptions::Subscriber;

/// Entries read at a time.
const BATCH: i64 = 1000;
/// How often commits of other processes are polled.
const POLL: Duration = Duration::from_millis(750);
/// The pause after a commit, so that one turn handles several commits: each turn is itself a commit, which delays commands.
const GATHER: Duration = Duration::from_millis(250);

pub(super) struct FanOut {
    pub(super) notifier: Arc<Notifier>,
    /// Changes after each commit of this process. Its sender is gone if this process executes no commands.
    pub(super) commits: watch::Receiver<u64>,
    /// Changed when there is something to deliver.
    pub(super) wake: watch::Sender<()>,
    pub(super) cancel: CancellationToken,
    /// The tenants whose last turn failed, until they have caught up.
    pub(super) troubled: HashMap<TenantId, Turn>,
}

/// How a tenant is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    /// Entries read at a time.
    limit: i64,
    known: OnDuplicate,
}

impl Default for Turn {
    fn default() -> Turn {
        Turn {
            limit: BATCH,
            known: OnDuplicate::Refused,
        }
    }
}

impl Worker for FanOut {
    type Error = StoreError;

    const BACK_OFF: Backoff = Backoff::constant(Duration::from_secs(1));

    async fn turn(&mut self) -> Result<Duration, StoreError> {
        self.commits.mark_unchanged();
        let more = self.write_all().await?;
        Ok(if more { Duration::ZERO } else { POLL })
    }

    async fn woken(&mut self) {
        if self.commits.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(GATHER).await;
    }

    fn failed(&mut self, error: StoreError, _: Duration) {
        tracing::warn!(%error, "notifications and deliveries could not be made; the host tries again");
    }
}

impl FanOut {
    /// Gives each tenant with new entries one turn. Returns whether a tenant has more entries than one turn reads.
    async fn write_all(&mut self) -> Result<bool, StoreError> {
        let store = &self.notifier.store;
        notifier::ensure_cursors(store).await?;
        let (round, mut more) = (self.notifier.clock.now(), false);
        while !self.cancel.is_cancelled() {
            let cursor = notifier::lock_cursor(&self.notifier.store, round).await?;
            let Some(cursor) = cursor else { break };
            more |= self.write(cursor).await?;
        }
        Ok(more)
    }

    /// Returns whether the tenant may have more entries.
    async fn write(&mut self, cursor: LockedCursor) -> Result<bool, StoreError> {
        let tenant = cursor.tenant;
        let turn = self.troubled.get(&tenant).copied().unwrap_or_default();
        match self.write_new(cursor, turn).await {
            Ok(more) => {
                if !more {
                    self.troubled.remove(&tenant);
                }
                Ok(more)
            }
            // The tenant has another turn in this round.
            Err(error) if error.is_known_notification() => {
                let known = OnDuplicate::Skipped;
                self.troubled.insert(tenant, Turn { known, ..turn });
                Ok(false)
            }
            Err(error) => {
                let limit = (turn.limit / 2).max(1);
                self.troubled.insert(tenant, Turn { limit, ..turn });
                tracing::warn!(%error, tenant.id = tenant.0, limit, "notifications and deliveries of a tenant could not be made; the host tries again with fewer events");
                let notifier = &self.notifier;
                let at = notifier.clock.now();
                notifier::postpone_cursor(&notifier.store, tenant, at).await?;
                Ok(false)
            }
        }
    }

    async fn write_new(&self, cursor: LockedCursor, turn: Turn) -> Result<bool, StoreError> {
        let mut reading = cursor.read(turn.limit).await?;
        let more = reading.more;
        let (mut notifications, mut deliveries) = (Vec::new(), Vec::new());
        let all: Vec<_> = std::mem::take(&mut reading.unsent)
            .into_iter()
            .map(|unsent| (notifications_of(&unsent), unsent))
            .collect();
        let people = all
            .iter()
            .flat_map(|(notices, _)| notices)
            .filter_map(person);
        let people: BTreeSet<_> = people.map(str::to_owned).collect();
        let muted = reading.muted(&Vec::from_iter(people)).await?;
        let is_wanted = |one: &Notification| {
            let by = person(one).map(|id| (id.to_owned(), one.kind.name().to_owned()));
            by.is_none_or(|by| !muted.contains(&by))
        };
        let subscribers = &reading.subscribers;
        for (mut notices, unsent) in all {
            notices.retain(is_wanted);
            let unsent = &unsent;
            let messages = iter::once(None).chain(notices.iter().map(Some));
            deliveries.extend(messages.flat_map(|one| deliveries_of(unsent, one, subscribers)));
            notifications.extend(notices);
        }
        wrkflw_fault::point("notifier.read");
        let (count, waits) = (notifications.len(), !deliveries.is_empty());
        reading
            .finish(
                &notifications,
                &deliveries,
                self.notifier.clock.now(),
                turn.known,
            )
            .await?;
        wrkflw_fault::point("notifier.moved");
        metrics::counter!("wrkflw_notifications_total").increment(count as u64);
        if waits {
            self.wake.send_replace(());
        }
        Ok(more)
    }
}

/// The notified person. None for a group: its members choose when they read.
fn person(notification: &Notification) -> Option<&str> {
    match &notification.recipient {
        Recipient::User(id) => Some(id),
        Recipient::Group(_) => None,
    }
}

/// The notifications of an entry. A damaged entry has none, so that it does not block the next ones.
fn notifications_of(unsent: &Unsent) -> Vec<Notification> {
    notification::of(&unsent.entry, &unsent.requesters).unwrap_or_else(|error| {
        tracing::error!(event.id = %unsent.entry.id, "no notification can be made of a damaged entry: {error}");
        Vec::new()
    })
}

/// The deliveries of an event, or of its notification if that is given.
fn deliveries_of<'a>(
    unsent: &'a Unsent,
    notification: Option<&'a Notification>,
    subscribers: &'a [Subscriber],
) -> impl Iterator<Item = Delivery> + 'a {
    // `notifications_of` reports a damaged entry.
    let of_event = || suffix_of(&unsent.entry).unwrap_or_default();
    let suffix = notification.map_or_else(of_event, |one| one.kind.suffix());
    wanting(unsent, suffix, subscribers).map(move |subscriber| Delivery {
        subscription: subscriber.id,
        message: notification.map_or(unsent.entry.id, |one| one.id),
        notifies: notification.is_some(),
        instance: unsent.entry.instance,
        seq: unsent.seq,
        version: unsent.entry.definition.version,
    })
}

/// The subscribers of this event type and definition that subscribed before the event and were not disabled then.
fn wanting<'a>(
    unsent: &'a Unsent,
    suffix: String,
    subscribers: &'a [Subscriber],
) -> impl Iterator<Item = &'a Subscriber> {
    let entry = &unsent.entry;
    subscribers.iter().filter(move |subscriber| {
        let definition = subscriber.definition.as_ref();
        subscriber.types.matches(&suffix)
            && definition.is_none_or(|key| *key == entry.definition.key)
            && unsent.is_for(subscriber)
    })
}
