//! Makes notifications and deliveries from public entries. One turn reads some entries of one tenant and moves its cursor behind
//! them.

use std::collections::BTreeSet;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Notifier;
use wrkflw_core::cloudevent::suffix_of;
use wrkflw_core::notification::{self, Notification, Recipient};
use wrkflw_runtime::worker::{Backoff, Worker};
use wrkflw_store::StoreError;
use wrkflw_store::notifier::{Delivery, Known, Unsent};
use wrkflw_store::subscriptions::Subscriber;

/// Entries read at a time.
const BATCH: i64 = 1000;
/// How often commits of other processes are polled.
const POLL: Duration = Duration::from_millis(750);
/// The pause after a commit, so that one turn handles several: each turn is a commit itself, which delays commands.
const GATHER: Duration = Duration::from_millis(250);

pub(super) struct FanOut {
    pub(super) notifier: Arc<Notifier>,
    /// Changes after each commit of this process. Its sender is gone if this process executes no commands.
    pub(super) commits: watch::Receiver<u64>,
    /// Changed when there is something to deliver.
    pub(super) wake: watch::Sender<()>,
    pub(super) cancel: CancellationToken,
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
    async fn write_all(&self) -> Result<bool, StoreError> {
        self.notifier.store.ensure_notifier_cursors().await?;
        let (round, mut more) = (self.notifier.clock.now(), false);
        while !self.cancel.is_cancelled() {
            match self.write(round).await? {
                Some(of_tenant) => more |= of_tenant,
                None => break,
            }
        }
        Ok(more)
    }

    /// Returns whether the tenant may have more entries. None when every tenant with new entries had its turn in this round.
    async fn write(&self, round: Timestamp) -> Result<Option<bool>, StoreError> {
        match self.write_new(round, Known::Refused).await {
            Err(error) if error.is_known_notification() => {
                self.write_new(round, Known::Skipped).await
            }
            written => written,
        }
    }

    async fn write_new(&self, round: Timestamp, known: Known) -> Result<Option<bool>, StoreError> {
        let Some(mut reading) = self.notifier.store.read_unsent(BATCH, round).await? else {
            return Ok(None);
        };
        let more = reading.more;
        let (mut notifications, mut deliveries) = (Vec::new(), Vec::new());
        let all: Vec<_> = std::mem::take(&mut reading.unsent)
            .into_iter()
            .map(|unsent| (notifications_of(&unsent), unsent))
            .collect();
        let people = all.iter().flat_map(|(made, _)| made).filter_map(person);
        let people: BTreeSet<_> = people.map(str::to_owned).collect();
        let muted = reading.muted(&Vec::from_iter(people)).await?;
        let is_wanted = |one: &Notification| {
            let by = person(one).map(|id| (id.to_owned(), one.kind.name().to_owned()));
            by.is_none_or(|by| !muted.contains(&by))
        };
        let subscribers = &reading.subscribers;
        for (mut made, unsent) in all {
            made.retain(is_wanted);
            let unsent = &unsent;
            let messages = iter::once(None).chain(made.iter().map(Some));
            deliveries.extend(messages.flat_map(|one| deliveries_of(unsent, one, subscribers)));
            notifications.extend(made);
        }
        wrkflw_fault::point("notifier.read");
        let (count, waits) = (notifications.len(), !deliveries.is_empty());
        reading
            .finish(
                &notifications,
                &deliveries,
                self.notifier.clock.now(),
                known,
            )
            .await?;
        wrkflw_fault::point("notifier.moved");
        metrics::counter!("wrkflw_notifications_total").increment(count as u64);
        if waits {
            self.wake.send_replace(());
        }
        Ok(Some(more))
    }
}

/// The person who is notified; none for a group, whose members choose when they read.
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
    // Damage is reported where the notifications are made.
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

/// The subscribers of this event type and definition that subscribed before the event.
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
            && unsent.is_after(&subscriber.since)
    })
}
