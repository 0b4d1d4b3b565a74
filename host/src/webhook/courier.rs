//! Claims deliveries that are due, posts them, and writes down what became of each.
//!
//! A receiver that hangs holds its own places only: how they are shared stands in [`super::places`].

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::message::Message;
use super::places::{Places, SUBSCRIPTION_MAX};
use super::post::{Post, PostError};
use super::settings::Settings;
use crate::clock::{self, Clock};
use crate::domain::cloudevent::Naming;
use crate::domain::subscription::target;
use crate::store::deliveries::{Claimed, Line, Refusal, Settlement};
use crate::store::{Store, StoreError};

/// Subscriptions that are looked at in one statement, and how often in a row: then posts are waited for, and the next
/// look goes on behind them.
const LINES_MAX: i64 = 256;
const LOOKS_MAX: usize = 8;
/// How long a claim holds beyond the time that a post may take.
const LEASE_MARGIN: Duration = Duration::from_secs(20);
/// How often it looks for what became due.
const POLL: Duration = Duration::from_secs(1);
/// What is kept of an error, in characters.
const ERROR_CHARS_MAX: usize = 300;
/// The receiver wants nothing any more.
const GONE: u16 = 410;

#[derive(Debug)]
pub(super) struct Courier {
    pub(super) store: Store,
    pub(super) clock: Clock,
    pub(super) naming: Naming,
    pub(super) settings: Settings,
    pub(super) post: Post,
    pub(super) wake: Arc<Notify>,
    pub(super) cancel: CancellationToken,
}

impl Courier {
    pub(super) async fn run(self) {
        let courier = Arc::new(self);
        let mut posts = JoinSet::new();
        let (mut places, mut after) = (Places::default(), Line::FIRST);
        while !courier.cancel.is_cancelled() {
            for claimed in courier.claim(&mut places, &mut after).await {
                crate::fault::point("webhook.claimed");
                let courier = Arc::clone(&courier);
                let line = line_of(&claimed);
                posts.spawn(async move {
                    courier.deliver(claimed).await;
                    line
                });
            }
            tokio::select! {
                () = courier.cancel.cancelled() => {}
                Some(done) = posts.join_next() => match done {
                    Ok(line) => places.free(line),
                    // A panic: the lease brings the delivery back, and the places are counted anew.
                    Err(error) => {
                        tracing::error!(%error, "a delivery ended unexpectedly");
                        places = Places::default();
                    }
                },
                () = courier.wake.notified() => {}
                () = tokio::time::sleep(POLL) => {}
            }
        }
        posts.join_all().await;
    }

    /// As many as there are places for, which are taken by then. Looks along the lines from where it ended before, so
    /// that each has its turn.
    async fn claim(&self, places: &mut Places, after: &mut Line) -> Vec<Claimed> {
        let mut claimed = Vec::new();
        // Whether there is nothing before the first look.
        let mut whole = *after == Line::FIRST;
        for _ in 0..LOOKS_MAX {
            if !places.are_free() {
                break;
            }
            match self.look(places, after).await {
                Ok(found) => claimed.extend(found),
                Err(error) => {
                    tracing::warn!(%error, "deliveries wait");
                    break;
                }
            }
            if *after == Line::FIRST {
                if whole {
                    break;
                }
                whole = true;
            }
        }
        claimed
    }

    /// Claims from the next lines, and goes behind them; behind the last ones, to the beginning.
    async fn look(
        &self,
        places: &mut Places,
        after: &mut Line,
    ) -> Result<Vec<Claimed>, StoreError> {
        let (now, count_max) = (
            self.clock.now(),
            i64::try_from(SUBSCRIPTION_MAX).unwrap_or(1),
        );
        let lines = self
            .store
            .delivery_lines(now, *after, LINES_MAX, count_max)
            .await?;
        let more = i64::try_from(lines.len()).is_ok_and(|found| found >= LINES_MAX);
        let last = lines.last().filter(|_| more);
        *after = last.map_or(Line::FIRST, |(line, _)| *line);
        let shares = places.share(&lines);
        if shares.is_empty() {
            return Ok(Vec::new());
        }
        let lease = now + self.settings.timeout + LEASE_MARGIN;
        let claimed = self.store.claim_deliveries(now, lease, &shares).await?;
        for one in &claimed {
            places.take(line_of(one), 1);
        }
        Ok(claimed)
    }

    async fn deliver(&self, claimed: Claimed) {
        let settlement = self.attempt(&claimed).await;
        crate::fault::point("webhook.posted");
        let (result, refusal) = match &settlement {
            Settlement::Delivered => ("delivered", None),
            Settlement::Later(_, refusal) => ("retried", Some(refusal)),
            Settlement::Dead(refusal) => ("dead", Some(refusal)),
            Settlement::Gone(refusal) => ("gone", Some(refusal)),
        };
        metrics::counter!("wrkflw_webhook_deliveries_total", "result" => result).increment(1);
        if let Some(refusal) = refusal {
            tracing::warn!(
                subscription.id = %claimed.subscription, message.id = %claimed.message, result,
                "a webhook was not accepted: {}", refusal.error
            );
        }
        let now = self.clock.now();
        if let Err(error) = self.store.settle_delivery(&claimed, &settlement, now).await {
            tracing::warn!(%error, message.id = %claimed.message, "a delivery is made again when its lease is over");
        }
    }

    async fn attempt(&self, claimed: &Claimed) -> Settlement {
        let dead = |error: &str| Settlement::Dead(refusal(None, error));
        if !claimed.active {
            return dead("the subscription is disabled");
        }
        let message = match Message::of(claimed, &self.naming, self.clock.now()) {
            Ok(message) => message,
            Err(error) => return dead(&format!("the event cannot be read: {error}")),
        };
        let sent = match target(&claimed.url, self.settings.reach) {
            Ok(url) => self.post.send(&url, message).await,
            Err(reason) => Err(PostError::Forbidden(format!("the URL {reason}"))),
        };
        match sent {
            Ok(status) if (200..300).contains(&status) => Settlement::Delivered,
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
            Some(pause) => {
                Settlement::Later(after(self.clock.now(), *pause, clock::random()), refusal)
            }
            None => Settlement::Dead(refusal),
        }
    }
}

fn line_of(claimed: &Claimed) -> Line {
    Line {
        tenant: claimed.tenant,
        subscription: claimed.subscription,
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

/// A fifth more or less by chance, so that what failed together does not come back together.
fn after(now: Timestamp, pause: Duration, chance: [u8; 2]) -> Timestamp {
    let share = f64::from(u16::from_be_bytes(chance)) / f64::from(u16::MAX);
    now + pause.mul_f64(0.8 + 0.4 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_spread_by_a_fifth() {
        let now = Timestamp::UNIX_EPOCH;
        let pause = |chance| after(now, Duration::from_secs(10), chance).as_millisecond();
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
