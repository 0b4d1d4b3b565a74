//! Assigns a kept signal to an instance that waits for it, and delivers it. If the instance ends before the delivery, the signal
//! goes to the next one. The sender's request and a concurrent job work in the same way.

use std::time::Duration;

use tokio::time::Instant;

use super::{Sender, broadcast};
use crate::job_handlers::Unread;
use crate::pipeline::load;
use crate::request::{Done, Idempotency, Identity, Rendered, Reply, Request, Trace};
use crate::{Engine, Error, children};
use wrkflw_core::answer::Reason;
use wrkflw_core::command::Command;
use wrkflw_core::execution::NOBODY_WAITS;
use wrkflw_core::ids::{InstanceId, StateId, TenantId};
use wrkflw_core::instance::{StateInstance, Status};
use wrkflw_core::rejection::Rejection;
use wrkflw_store::commit::matching;
use wrkflw_store::jobs::{Job, STUCK_ATTEMPTS};
use wrkflw_store::load::LoadOptions;
use wrkflw_store::signals::{self, StoredSignal};
use wrkflw_store::{Store, StoreError, receipts};

/// How long after the request's timeout a job delivers an assigned signal, if the host that assigned it has died.
const HANDED_OVER: Duration = Duration::from_secs(5);
/// Limit of the signals that one run of a job delivers. Then other jobs have their turn.
const DELIVERIES_MAX: u32 = 50;
/// The pause before a request searches for the next instance.
const PAUSE: Duration = Duration::from_millis(5);
/// Limit of instances in a row that end while the signal is assigned to them. Beyond it the job fails and is retried.
const ASSIGNMENTS_MAX: u32 = 20;

/// How a signal is delivered.
pub(super) struct Sending<'a> {
    pub(super) trace: Trace,
    pub(super) key: Option<Idempotency>,
    pub(super) dry_run: bool,
    /// This request stored the signal, so no earlier one has acknowledged it.
    pub(super) is_new: bool,
    pub(super) render: &'a (dyn Fn(&Done<'_>) -> Rendered + Send + Sync),
}

/// The state of a signal after a refusal.
enum Left {
    Nothing,
    /// Still open: another request or job handles it.
    Open,
    Settled(Box<StoredSignal>),
}

/// The result of a delivery.
enum Delivered {
    Reply(Reply),
    /// The instance ended or waits no longer. The signal is no longer assigned.
    Returned,
}

/// Delivers a signal to an instance that waits for it. None if the signal stays kept: no instance takes it now, or
/// another delivery handles or has settled it.
pub(super) async fn hand_over(
    engine: &Engine,
    who: &Identity,
    mut kept: StoredSignal,
    sending: &Sending<'_>,
) -> Result<Option<Reply>, Error> {
    let deadline = Instant::now() + engine.0.timeout;
    let (store, tenant) = (&engine.0.store, who.tenant);
    loop {
        let Some(instance) = kept.instance else {
            // One delivery has released the signal, and another has settled it. A settled signal is not assigned to an instance.
            if kept.is_settled {
                return Ok(None);
            }
            let Some(taker) = signals::subscriber(store, tenant, &kept).await? else {
                receipts::leave(store, tenant, kept.signal).await?;
                return Ok(None);
            };
            if assign(engine, tenant, &kept, taker.instance).await? {
                kept.instance = Some(taker.instance);
            } else if Instant::now() < deadline
                && let Some(again) = still_kept(store, tenant, &kept).await?
            {
                kept = again;
            } else {
                return Err(Error::Busy);
            }
            continue;
        };
        match deliver(engine, who, &kept, instance, sending).await {
            Ok(Delivered::Reply(reply)) => return Ok(Some(reply)),
            Ok(Delivered::Returned) if Instant::now() >= deadline => return Err(Error::Busy),
            Ok(Delivered::Returned) => {
                kept.instance = None;
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) if !kept.is_settled && is_final(&error) => {
                match refused(store, tenant, &kept, sending.is_new, &error).await? {
                    Left::Nothing => return Err(error),
                    Left::Open => return Ok(None),
                    // A concurrent delivery has settled it, perhaps with another answer.
                    Left::Settled(settled) => kept = *settled,
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// Handles a refusal while the sender waits. The signal is deleted, unless an earlier request has acknowledged it.
async fn refused(
    store: &Store,
    tenant: TenantId,
    kept: &StoredSignal,
    is_new: bool,
    error: &Error,
) -> Result<Left, Error> {
    // It is delivered later: after a resumption, or with a repaired version.
    let rests = matches!(
        error,
        Error::Rejected(Rejection::Suspended { .. }) | Error::Stopped { .. } | Error::Logic(_)
    );
    if !is_new && rests {
        return Ok(Left::Open);
    }
    // The idempotency key belongs to another request of the sender, so this request has no effect.
    if !is_new && matches!(error, Error::KeyReused) {
        return Ok(Left::Nothing);
    }
    if !is_new {
        let reason = reason(error);
        receipts::settle(store, tenant, kept.signal, Some(&reason)).await?;
        return Ok(Left::Nothing);
    }
    if receipts::withdraw(store, tenant, kept.signal).await? {
        return Ok(Left::Nothing);
    }
    Ok(match still_kept(store, tenant, kept).await? {
        None => Left::Nothing,
        Some(settled) if settled.is_settled => Left::Settled(Box::new(settled)),
        // A concurrent delivery handles the signal, or a repeated request got the answer that it is kept. The sender can query it.
        Some(_) => Left::Open,
    })
}

/// The result that a delivery would have. Writes nothing.
pub(super) async fn try_over(
    engine: &Engine,
    who: &Identity,
    kept: StoredSignal,
    sending: &Sending<'_>,
) -> Result<Option<Reply>, Error> {
    let instance = match kept.instance {
        Some(instance) => instance,
        None => match signals::subscriber(&engine.0.store, who.tenant, &kept).await? {
            Some(taker) => taker.instance,
            None => return Ok(None),
        },
    };
    match engine
        .execute(request(who, &kept, (instance, None), sending))
        .await
    {
        Ok(reply) => Ok(Some(reply)),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn still_kept(
    store: &Store,
    tenant: TenantId,
    kept: &StoredSignal,
) -> Result<Option<StoredSignal>, Error> {
    Ok(signals::kept(store, tenant, kept.signal).await?)
}

async fn assign(
    engine: &Engine,
    tenant: TenantId,
    signal: &StoredSignal,
    instance: InstanceId,
) -> Result<bool, Error> {
    let later = engine.0.clock.now() + engine.0.timeout + HANDED_OVER;
    let store = &engine.0.store;
    let is_assigned = receipts::assign(store, tenant, signal.signal, instance, later).await?;
    if is_assigned {
        wrkflw_fault::point("signal.assigned");
    }
    Ok(is_assigned)
}

/// Delivers the signal to the instance that it is assigned to, in the name of the sender.
async fn deliver(
    engine: &Engine,
    who: &Identity,
    signal: &StoredSignal,
    instance: InstanceId,
    sending: &Sending<'_>,
) -> Result<Delivered, Error> {
    let sender = sender_of(who, signal)?;
    let (store, tenant) = (&engine.0.store, who.tenant);
    match engine
        .execute(request(&sender, signal, (instance, None), sending))
        .await
    {
        Ok(reply) => {
            receipts::settle(store, tenant, signal.signal, None).await?;
            Ok(Delivered::Reply(reply))
        }
        Err(error) if is_gone(&error) && !signal.is_settled => {
            receipts::release(store, tenant, signal.signal, instance).await?;
            Ok(Delivered::Returned)
        }
        Err(error) => Err(error),
    }
}

/// Delivers a signal that a host assigned and did not deliver, or one to all.
pub(crate) async fn deliver_signal(engine: &Engine, job: &Job) -> Result<(), Error> {
    let store = &engine.0.store;
    let kept = signals::kept(store, job.tenant, job.id).await?;
    // If another host assigned it to another instance, that host has added another job.
    let is_open = |kept: &StoredSignal| {
        let is_here = |instance| instance == job.instance;
        !kept.is_settled && kept.instance.is_none_or(is_here)
    };
    let Some(kept) = kept.filter(is_open) else {
        return Ok(());
    };
    let host = host_of(engine, job.tenant).await?;
    match kept.to_all {
        Some(after) => broadcast::broadcast(engine, &host, &kept, after, job).await,
        None => hand_over_later(engine, &host, kept, job).await.map(drop),
    }
}

/// Delivers the signals that were sent before a state instance was entered.
pub(crate) async fn match_signals(engine: &Engine, job: &Job) -> Result<(), Error> {
    let host = host_of(engine, job.tenant).await?;
    // Each delivery may end the state instance, or change which signals it takes.
    for _ in 0..DELIVERIES_MAX {
        let Some(mut kept) = next_match(engine, &host, job).await? else {
            return Ok(());
        };
        if assign(engine, job.tenant, &kept, job.instance).await? {
            kept.instance = Some(job.instance);
            if !hand_over_later(engine, &host, kept, job).await? {
                return Ok(());
            }
        }
    }
    children::put_off(&engine.0.store, &engine.0.clock, job, Duration::ZERO).await
}

async fn host_of(engine: &Engine, tenant: TenantId) -> Result<Identity, Error> {
    let name = engine.tenant_name(tenant).await?;
    Ok(Identity::host(tenant, &name))
}

/// The oldest unassigned signal that the job's state instance takes.
async fn next_match(
    engine: &Engine,
    host: &Identity,
    job: &Job,
) -> Result<Option<StoredSignal>, Error> {
    let (store, clock) = (&engine.0.store, &engine.0.clock);
    let options = LoadOptions::at(clock.now());
    let loaded = load::loaded(engine, &host.caller(), job.instance, options).await?;
    let Some(instance) = loaded.found.map(|stored| stored.instance) else {
        return Ok(None);
    };
    let is_meant = |state_instance: &&StateInstance| matching(state_instance.id) == job.id;
    let Some(state_instance) = instance.active.iter().find(is_meant) else {
        return Ok(None);
    };
    if let Status::Suspended { .. } = instance.status {
        children::rest(store, clock, job).await?;
        return Ok(None);
    }
    let definition = &instance.definition.key;
    Ok(signals::unclaimed(store, job.tenant, definition, state_instance).await?)
}

/// Delivers a signal whose sender is no longer waiting. A refusal settles it. Returns false if the instance is suspended.
async fn hand_over_later(
    engine: &Engine,
    host: &Identity,
    mut kept: StoredSignal,
    job: &Job,
) -> Result<bool, Error> {
    let (store, tenant) = (&engine.0.store, job.tenant);
    let sending = Sending {
        trace: Trace::default(),
        key: None,
        dry_run: false,
        is_new: false,
        render: &Unread::render,
    };
    for _ in 0..ASSIGNMENTS_MAX {
        let Some(instance) = kept.instance else {
            let Some(taker) = signals::subscriber(store, tenant, &kept).await? else {
                receipts::leave(store, tenant, kept.signal).await?;
                return Ok(true);
            };
            if !assign(engine, tenant, &kept, taker.instance).await? {
                // A concurrent delivery has assigned it, and has added a job.
                return Ok(true);
            }
            kept.instance = Some(taker.instance);
            continue;
        };
        match deliver(engine, host, &kept, instance, &sending).await {
            Ok(Delivered::Reply(_)) => return Ok(true),
            Ok(Delivered::Returned) => kept.instance = None,
            Err(Error::Rejected(Rejection::Suspended { .. })) => {
                let taker = signals::subscriber(store, tenant, &kept).await?;
                if taker.is_none_or(|taker| taker.is_suspended) {
                    children::rest(store, &engine.0.clock, job).await?;
                    return Ok(false);
                }
                receipts::release(store, tenant, kept.signal, instance).await?;
                kept.instance = None;
            }
            // Every later job of the instance waits for this one, and the sender chose the input with which flow logic fails.
            Err(error)
                if is_refusal(&error) || is_faulty(&error) && job.attempts >= STUCK_ATTEMPTS =>
            {
                let reason = reason(&error);
                tracing::warn!(%error, instance.id = %instance, signal = %kept.signal, "a kept signal was refused on delivery");
                receipts::settle(store, tenant, kept.signal, Some(&reason)).await?;
                return Ok(true);
            }
            Err(error) => return Err(error),
        }
    }
    Err(Error::Busy)
}

/// The sender of the signal, in whose name it is delivered.
pub(super) fn sender_of(who: &Identity, signal: &StoredSignal) -> Result<Identity, Error> {
    let sender: Sender = serde_json::from_str(signal.sender.as_str())
        .map_err(|error| StoreError::inconsistent("signal_inbox", signal.signal, error))?;
    Ok(Identity {
        subject: sender.id,
        roles: sender.roles,
        ..who.clone()
    })
}

pub(super) fn request<'a>(
    who: &'a Identity,
    signal: &StoredSignal,
    (instance, state): (InstanceId, Option<StateId>),
    sending: &'a Sending<'a>,
) -> Request<'a> {
    Request {
        who,
        command: Command::Signal {
            instance,
            trigger: signal.trigger.clone(),
            id: signal.id.clone(),
            input: signal.input.clone(),
            correlation: Some(signal.correlation.clone()),
            state,
        },
        if_match: None,
        idempotency: sending.key.clone(),
        dry_run: sending.dry_run,
        trace: sending.trace.clone(),
        // The job stays until the delivery is recorded. Otherwise a host that dies in between would leave it unrecorded.
        job: None,
        render: sending.render,
    }
}

/// Whether the instance has refused the signal.
pub(super) fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Rejected(_) | Error::Permission(_))
}

/// Whether flow logic fails with this signal for another reason than a lack of processor time.
fn is_faulty(error: &Error) -> bool {
    matches!(error, Error::Logic(logic) if logic.code != "logic_busy")
}

/// Whether the sender's request fails for good.
fn is_final(error: &Error) -> bool {
    is_refusal(error)
        || is_faulty(error)
        || matches!(error, Error::KeyReused | Error::Stopped { .. })
}

/// Whether the instance does not wait for the signal (any more).
pub(super) fn is_gone(error: &Error) -> bool {
    match error {
        Error::Rejected(Rejection::NotNow { code, .. }) => *code == NOBODY_WAITS,
        Error::Rejected(Rejection::Ended { .. }) | Error::NotFound { .. } => true,
        _ => false,
    }
}

fn reason(error: &Error) -> Reason {
    match error {
        Error::Rejected(rejection) => rejection.clone().into_reason(),
        other => Reason {
            code: other.code().unwrap_or("internal").to_owned(),
            message: other.to_string(),
        },
    }
}
