//! Delivers a signal to all state instances that subscribed to it before it came, in the order in which they were entered.
//!
//! A job delivers it in portions, and goes behind other jobs after each portion. A portion is recorded when it is done. If
//! the host dies before that, another host repeats the portion: each state instance counts a signal once. The signal is not
//! kept for later state instances.

use std::time::Duration;

use tokio::time::Instant;

use super::handing::{Sending, is_gone, is_refusal, request, sender_of};
use crate::job_handlers::Unread;
use crate::request::{Identity, Trace};
use crate::{Engine, Error, children};
use wrkflw_store::broadcasts::{self, Portion};
use wrkflw_store::jobs::{Job, STUCK_ATTEMPTS};
use wrkflw_store::signals::{StoredSignal, SubscriberPosition};

/// Limit of the state instances in one portion. Then other jobs have their turn.
const PORTION_MAX: i64 = 50;
/// The pause after a failure that followed successful deliveries.
const PAUSE: Duration = Duration::from_secs(1);

/// Delivers the next portion, after the place `after`.
pub(super) async fn broadcast(
    engine: &Engine,
    host: &Identity,
    signal: &StoredSignal,
    after: SubscriberPosition,
    job: &Job,
) -> Result<(), Error> {
    let (store, clock, begun) = (&engine.0.store, &engine.0.clock, Instant::now());
    let sender = sender_of(host, signal)?;
    let recipients = broadcasts::recipients(store, job.tenant, signal, after, PORTION_MAX);
    let recipients = recipients.await?;
    let sending = Sending {
        trace: Trace::default(),
        key: None,
        dry_run: false,
        is_new: false,
        render: &Unread::render,
    };
    let (mut portion, mut failure) = (Portion::default(), None);
    let mut left = recipients.iter();
    for recipient in left.by_ref() {
        let to = (recipient.instance, Some(recipient.place.state));
        match engine.execute(request(&sender, signal, to, &sending)).await {
            Ok(_) => portion.taken += 1,
            // It has ended meanwhile.
            Err(error) if is_gone(&error) => {}
            Err(error) if is_lasting(&error) || is_stuck(job, &portion) => {
                tracing::warn!(%error, instance.id = %recipient.instance, signal = %signal.signal, "a signal to all was refused");
                portion.refused += 1;
            }
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
        portion.last = Some(recipient.place);
        if begun.elapsed() >= engine.0.timeout {
            break;
        }
    }
    let is_short = i64::try_from(recipients.len()).is_ok_and(|count| count < PORTION_MAX);
    portion.is_last = failure.is_none() && is_short && left.len() == 0;
    wrkflw_fault::point("signal.broadcast");
    let recorded = broadcasts::record_portion(store, job.tenant, signal.signal, after, portion);
    recorded.await?;
    match failure {
        // Failures of different state instances do not add up.
        Some(error) if portion.last.is_some() => {
            tracing::warn!(%error, signal = %signal.signal, "a signal to all goes on after a pause");
            children::put_off(store, clock, job, PAUSE).await
        }
        Some(error) => Err(error),
        None if portion.is_last => Ok(()),
        None => children::put_off(store, clock, job, Duration::ZERO).await,
    }
}

/// Whether the state instance would refuse the signal again.
fn is_lasting(error: &Error) -> bool {
    is_refusal(error) || matches!(error, Error::Logic(_) | Error::Stopped { .. })
}

/// Whether the first state instance of the portion has failed so often that those behind it do not wait any longer.
fn is_stuck(job: &Job, portion: &Portion) -> bool {
    portion.last.is_none() && job.attempts >= STUCK_ATTEMPTS
}
