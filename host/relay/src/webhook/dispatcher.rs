//! Claims deliveries that are due, posts them, and stores the result of each.
//!
//! A receiver that hangs occupies only its own places. [`super::places`] says how places are shared.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::Notifier;
use super::message::Message;
use super::places::{POSTS_MAX, Places, SUBSCRIPTION_MAX};
use super::post::PostError;
use wrkflw_core::subscription::target;
use wrkflw_runtime::clock;
use wrkflw_runtime::lease_worker::{Claim, LeaseQueue, Window};
use wrkflw_store::StoreError;
use wrkflw_store::deliveries::{self, Claimed, DeliveryQueue, Refusal, Settlement};

/// The number of subscriptions that one statement reads, and of such statements in a row. Then the dispatcher waits for posts,
/// and later reads on from there.
const QUEUES_MAX: i64 = 256;
const LOOKS_MAX: usize = 8;
/// How much longer a lease is than the time that a post may take.
const LEASE_MARGIN: Duration = Duration::from_secs(20);
/// Limit of a stored error, in characters.
const ERROR_CHARS_MAX: usize = 300;
/// The status by which a receiver unsubscribes.
const GONE: u16 = 410;

/// The queue of deliveries.
pub(super) struct Dispatcher {
    notifier: Arc<Notifier>,
    places: Places,
    /// The next claim begins after this subscription, so that each subscription has its turn.
    after: DeliveryQueue,
}

impl Dispatcher {
    pub(super) fn new(notifier: Arc<Notifier>) -> Dispatcher {
        Dispatcher {
            notifier,
            places: Places::default(),
            after: DeliveryQueue::FIRST,
        }
    }

    /// Claims deliveries of the next subscriptions and moves `after` behind them, or back to the beginning after the last one.
    async fn look(&mut self, window: Window) -> Result<Vec<Claim<DeliveryQueue>>, StoreError> {
        let Window { now, lease_end, .. } = window;
        let count_max = i64::try_from(SUBSCRIPTION_MAX).unwrap_or(1);
        let store = &self.notifier.store;
        let queues = deliveries::queues(store, now, self.after, QUEUES_MAX, count_max).await?;
        let more = i64::try_from(queues.len()).is_ok_and(|found| found >= QUEUES_MAX);
        let last = queues.last().filter(|_| more);
        self.after = last.map_or(DeliveryQueue::FIRST, |(queue, _)| *queue);
        let shares = self.places.share(&queues);
        if shares.is_empty() {
            return Ok(Vec::new());
        }
        let claimed = deliveries::claim(store, now, lease_end, &shares).await?;
        let claim = |claimed: Claimed| {
            let (queue, notifier) = (claimed.queue, Arc::clone(&self.notifier));
            self.places.take(queue, 1);
            wrkflw_fault::point("webhook.claimed");
            Claim::new(queue, async move { notifier.deliver(claimed).await })
        };
        Ok(claimed.into_iter().map(claim).collect())
    }
}

impl LeaseQueue for Dispatcher {
    type Place = DeliveryQueue;
    type Error = StoreError;

    const NAME: &'static str = "deliveries";
    const PLACES: usize = POSTS_MAX;

    /// Claims as many deliveries as there are free places, and takes the places.
    async fn claim(&mut self, window: Window) -> Result<Vec<Claim<DeliveryQueue>>, StoreError> {
        let mut claims = Vec::new();
        // Whether the list was read from its beginning, so that all subscriptions are read once its end is reached.
        let mut whole = self.after == DeliveryQueue::FIRST;
        for _ in 0..LOOKS_MAX {
            if !self.places.are_free() {
                break;
            }
            match self.look(window).await {
                Ok(found) => claims.extend(found),
                // Claimed deliveries must be sent. If the failure lasts, the next call returns it.
                Err(_) if !claims.is_empty() => break,
                Err(error) => return Err(error),
            }
            if self.after == DeliveryQueue::FIRST {
                if whole {
                    break;
                }
                whole = true;
            }
        }
        Ok(claims)
    }

    fn ended(&mut self, queue: DeliveryQueue) {
        self.places.free(queue);
    }
}

impl Notifier {
    /// The length of a lease: longer than a post may take.
    pub(super) fn lease(&self) -> Duration {
        self.settings.timeout + LEASE_MARGIN
    }

    async fn deliver(&self, claimed: Claimed) {
        let begun = Instant::now();
        let settlement = self.attempt(&claimed).await;
        let took = begun.elapsed();
        wrkflw_fault::point("webhook.posted");
        let (result, refusal) = match &settlement {
            Settlement::Delivered(_) => ("delivered", None),
            Settlement::Later(_, refusal) => ("failed", Some(refusal)),
            Settlement::Dead(refusal) | Settlement::Unsendable(refusal) => ("dead", Some(refusal)),
            Settlement::Gone(refusal) => ("gone", Some(refusal)),
        };
        metrics::counter!("wrkflw_webhook_deliveries_total", "result" => result).increment(1);
        if let Some(refusal) = refusal {
            tracing::warn!(
                subscription.id = %claimed.queue.subscription, message.id = %claimed.message, result,
                "a webhook was not accepted: {}", refusal.error
            );
        }
        let now = self.clock.now();
        if let Err(error) = deliveries::settle(&self.store, &claimed, &settlement, took, now).await
        {
            tracing::warn!(%error, message.id = %claimed.message, "the result of a delivery could not be stored; the delivery is repeated");
        }
    }

    async fn attempt(&self, claimed: &Claimed) -> Settlement {
        let unsendable = |error: &str| Settlement::Unsendable(refusal(None, error));
        if !claimed.active {
            return unsendable("the subscription is disabled");
        }
        // The receiver may not have subscribed to the event of the notification.
        if claimed.notifies && claimed.notification.is_none() {
            return unsendable("the notification has expired");
        }
        let message = match Message::of(claimed, &self.naming, self.clock.now()) {
            Ok(message) => message,
            Err(error) => return unsendable(&format!("the event cannot be read: {error}")),
        };
        let sent = match target(&claimed.url, self.settings.reach) {
            Ok(url) => self.post.send(&url, message).await,
            Err(reason) => Err(PostError::Forbidden(format!("the URL {reason}"))),
        };
        match sent {
            Ok(status) if (200..300).contains(&status) => Settlement::Delivered(status),
            Ok(GONE) => Settlement::Gone(refusal(Some(GONE), "the receiver answered 410 Gone")),
            Ok(status) => {
                let error = format!("the receiver answered {status}; only 2xx accepts");
                self.failed(claimed.attempts, refusal(Some(status), &error))
            }
            Err(error) => self.failed(claimed.attempts, refusal(None, &error.to_string())),
        }
    }

    fn failed(&self, attempts: i32, refusal: Refusal) -> Settlement {
        let pause = usize::try_from(attempts)
            .ok()
            .and_then(|taken| self.settings.pauses.get(taken));
        match pause {
            Some(pause) => Settlement::Later(
                next_attempt_at(self.clock.now(), *pause, clock::random()),
                refusal,
            ),
            None => Settlement::Dead(refusal),
        }
    }
}

fn refusal(status: Option<u16>, error: &str) -> Refusal {
    let error = error
        .chars()
        .filter(|c| !c.is_control())
        .take(ERROR_CHARS_MAX)
        .collect();
    Refusal { status, error }
}

/// The time of the next attempt, after the pause. The pause changes by up to a fifth at random, so that deliveries that failed
/// together are not repeated together.
fn next_attempt_at(now: Timestamp, pause: Duration, random: [u8; 2]) -> Timestamp {
    let share = f64::from(u16::from_be_bytes(random)) / f64::from(u16::MAX);
    now + pause.mul_f64(0.8 + 0.4 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_spread_by_a_fifth() {
        let now = Timestamp::UNIX_EPOCH;
        let pause = |random| next_attempt_at(now, Duration::from_secs(10), random).as_millisecond();
        assert_eq!((pause([0, 0]), pause([255, 255])), (8_000, 12_000));
        assert!((9_990..10_010).contains(&pause([128, 0])));
    }

    #[test]
    fn what_is_kept_of_an_error_is_bounded_and_plain() {
        let kept = refusal(None, &format!("a\nb\0{}", "x".repeat(1_000))).error;
        assert!(
            kept.starts_with("abx") && kept.len() == ERROR_CHARS_MAX,
            "{kept}"
        );
    }
}
