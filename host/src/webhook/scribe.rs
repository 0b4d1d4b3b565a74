//! Writes down who is to be told of what: one turn reads some entries of one tenant and moves its cursor behind them.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::domain::cloudevent::suffix_of;
use crate::domain::notification::{self, Notification};
use crate::store::notifier::{Delivery, Untold};
use crate::store::subscriptions::Subscriber;
use crate::store::{Store, StoreError};

/// Entries read at once.
const BATCH: i64 = 1000;
/// How often it looks for what other processes committed.
const POLL: Duration = Duration::from_millis(500);
/// After a commit, others are let come together: each turn is a commit of its own, which the commands would wait for.
const GATHER: Duration = Duration::from_millis(250);
/// The pause after a failure.
const BACK_OFF: Duration = Duration::from_secs(1);

pub(super) struct Scribe {
    pub(super) store: Store,
    pub(super) clock: Clock,
    /// Told when there is something to deliver.
    pub(super) wake: Arc<Notify>,
    pub(super) cancel: CancellationToken,
}

impl Scribe {
    pub(super) async fn run(self, mut commits: watch::Receiver<u64>) {
        while !self.cancel.is_cancelled() {
            commits.borrow_and_update();
            let pause = match self.write_all().await {
                Ok(true) => Duration::ZERO,
                Ok(false) => {
                    tokio::select! {
                        () = self.cancel.cancelled() => return,
                        Ok(()) = commits.changed() => {}
                        () = tokio::time::sleep(POLL) => {}
                    }
                    GATHER
                }
                Err(error) => {
                    tracing::warn!(%error, "events wait to be told of");
                    BACK_OFF
                }
            };
            tokio::select! {
                () = self.cancel.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// One turn of each tenant that has something to tell; whether some of them have more than one turn takes.
    async fn write_all(&self) -> Result<bool, StoreError> {
        self.store.ensure_notifier_cursors().await?;
        let (round, mut more) = (self.clock.now(), false);
        while !self.cancel.is_cancelled() {
            match self.turn(round).await? {
                Some(read) => more |= read >= BATCH,
                None => break,
            }
        }
        Ok(more)
    }

    /// How many entries were read; none when nobody who has not had a turn in this round has any.
    async fn turn(&self, round: Timestamp) -> Result<Option<i64>, StoreError> {
        let Some(reading) = self.store.read_untold(BATCH, round).await? else {
            return Ok(None);
        };
        let read = i64::try_from(reading.untold.len()).unwrap_or(BATCH);
        let (mut notifications, mut deliveries) = (Vec::new(), Vec::new());
        for untold in &reading.untold {
            let told = told(untold);
            deliveries.extend(of_event(untold, &reading.subscribers));
            deliveries.extend(
                told.iter()
                    .flat_map(|told| of_notification(untold, told, &reading.subscribers)),
            );
            notifications.extend(told);
        }
        crate::fault::point("notifier.read");
        let (count, waits) = (notifications.len(), !deliveries.is_empty());
        reading
            .finish(&notifications, &deliveries, self.clock.now())
            .await?;
        crate::fault::point("notifier.moved");
        metrics::counter!("wrkflw_notifications_total").increment(count as u64);
        if waits {
            self.wake.notify_one();
        }
        Ok(Some(read))
    }
}

/// A damaged entry must not hold up those behind it.
fn told(untold: &Untold) -> Vec<Notification> {
    notification::of(&untold.entry, &untold.requesters).unwrap_or_else(|error| {
        tracing::error!(event.id = %untold.entry.id, "an entry cannot be told of: {error}");
        Vec::new()
    })
}

fn of_event<'a>(
    untold: &'a Untold,
    subscribers: &'a [Subscriber],
) -> impl Iterator<Item = Delivery> + 'a {
    // Damaged entries are reported where their recipients are read.
    let suffix = suffix_of(&untold.entry).unwrap_or_default();
    wanting(untold, suffix, subscribers).map(|subscriber| Delivery {
        subscription: subscriber.id,
        message: untold.entry.id,
        notifies: false,
        instance: untold.entry.instance,
        seq: untold.seq,
        version: untold.entry.definition.version,
    })
}

fn of_notification<'a>(
    untold: &'a Untold,
    told: &'a Notification,
    subscribers: &'a [Subscriber],
) -> impl Iterator<Item = Delivery> + 'a {
    wanting(untold, told.kind.suffix(), subscribers).map(|subscriber| Delivery {
        subscription: subscriber.id,
        message: told.id,
        notifies: true,
        instance: untold.entry.instance,
        seq: untold.seq,
        version: untold.entry.definition.version,
    })
}

/// The subscribers of this event type, of this definition, since before the event.
fn wanting<'a>(
    untold: &'a Untold,
    suffix: String,
    subscribers: &'a [Subscriber],
) -> impl Iterator<Item = &'a Subscriber> {
    let entry = &untold.entry;
    subscribers.iter().filter(move |subscriber| {
        let definition = subscriber.definition.as_ref();
        subscriber.types.matches(&suffix)
            && definition.is_none_or(|key| *key == entry.definition.key)
            && untold.is_after(&subscriber.since)
    })
}
