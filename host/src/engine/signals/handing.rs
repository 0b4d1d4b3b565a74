//! Giving a kept signal to whoever waits, and delivering it. Where the instance ends before it is delivered, the next
//! one is looked for, by the request that sent it and by the job beside it alike.

use std::time::Duration;

use serde::Deserialize;
use tokio::time::Instant;
use uuid::Uuid;

use super::super::perform::{REST, Unread, payload};
use super::super::request::{Done, Idempotency, Identity, Rendered, Reply, Request, Trace};
use super::super::{Engine, Error};
use super::{Sender, by_signal};
use crate::domain::answer::Reason;
use crate::domain::command::Command;
use crate::domain::graph::Graph;
use crate::domain::ids::{InstanceId, StateId, TenantId};
use crate::domain::instance::{StateInstance, Status};
use crate::domain::rejection::Rejection;
use crate::domain::turn::NOBODY_WAITS;
use crate::store::jobs::Job;
use crate::store::load::Asked;
use crate::store::receipts::Forgotten;
use crate::store::signals::{Correlating, Kept, Taking};

/// When a job delivers a signal that was given to an instance, should the host that gave it have died: so much longer
/// than a request goes on.
const HANDED_OVER: Duration = Duration::from_secs(5);
/// How many signals one job delivers before the jobs of others have their turn.
const DELIVERIES_MAX: u32 = 50;
/// Before a request looks for the next instance.
const PAUSE: Duration = Duration::from_millis(5);
/// How many instances in a row may end with the signal in their hands before a job rests.
const HANDS_MAX: u32 = 20;

/// How a signal is delivered.
pub(super) struct Sending<'a> {
    pub(super) trace: Trace,
    pub(super) key: Option<Idempotency>,
    pub(super) dry_run: bool,
    /// Nobody was told that the signal is kept.
    pub(super) is_new: bool,
    pub(super) render: &'a (dyn Fn(&Done<'_>) -> Rendered + Send + Sync),
}

#[derive(Deserialize)]
struct Matching {
    correlation: String,
    /// The sender's id of the one that was given to the instance; none for all that a stay waits for.
    signal: Option<String>,
    /// The host's id of it; none where a host of an earlier release gave it.
    kept: Option<Uuid>,
}

/// What is left of a signal that was refused.
enum Left {
    Nothing,
    /// It goes on by itself.
    Open,
    Settled(Kept),
}

/// What became of a delivery.
enum Delivered {
    Reply(Reply),
    /// The instance ended, or waits no longer; the signal is nobody's again.
    Returned,
}

impl Engine {
    /// Gives a signal to whoever waits for it. None: it is kept.
    pub(super) async fn hand_over(
        &self,
        who: &Identity,
        mut kept: Kept,
        sending: &Sending<'_>,
    ) -> Result<Option<Reply>, Error> {
        let deadline = Instant::now() + self.0.patience;
        let (store, tenant) = (&self.0.store, who.tenant);
        loop {
            let Some(instance) = kept.instance else {
                let Some(taker) = self.taker(tenant, &kept).await? else {
                    store.leave_signal(tenant, kept.signal).await?;
                    return Ok(None);
                };
                if self.assign(tenant, &kept, taker.instance).await? {
                    kept.instance = Some(taker.instance);
                    crate::fault::point("signal.assigned");
                } else if let Some(again) = self.still_kept(tenant, &kept).await? {
                    kept = again;
                } else {
                    return Err(Error::Busy);
                }
                continue;
            };
            match self.deliver(who, &kept, instance, sending).await {
                Ok(Delivered::Reply(reply)) => return Ok(Some(reply)),
                Ok(Delivered::Returned) if Instant::now() >= deadline => return Err(Error::Busy),
                Ok(Delivered::Returned) => {
                    kept.instance = None;
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) if !kept.is_settled && is_final(&error) => {
                    match self.refused(tenant, &kept, sending.is_new, &error).await? {
                        Left::Nothing => return Err(error),
                        Left::Open => return Ok(None),
                        // Somebody was faster, and may have heard another answer.
                        Left::Settled(settled) => kept = settled,
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes down that a signal was refused while its sender waits. As with any other command, nothing is left of it;
    /// unless it was acknowledged before.
    async fn refused(
        &self,
        tenant: TenantId,
        kept: &Kept,
        is_new: bool,
        error: &Error,
    ) -> Result<Left, Error> {
        let store = &self.0.store;
        let rests = matches!(error, Error::Rejected(Rejection::Suspended { .. }));
        if !is_new && rests {
            return Ok(Left::Open);
        }
        // Another request of its sender has the key: this one never was.
        if !is_new && matches!(error, Error::KeyReused) {
            return Ok(Left::Nothing);
        }
        if !is_new {
            let reason = reason(error);
            store
                .settle_signal(tenant, kept.signal, Some(&reason))
                .await?;
            return Ok(Left::Nothing);
        }
        if store.forget_signal(tenant, kept.signal).await? == Forgotten::Yes {
            return Ok(Left::Nothing);
        }
        Ok(match self.still_kept(tenant, kept).await? {
            None => Left::Nothing,
            Some(settled) if settled.is_settled => Left::Settled(settled),
            // A worker has it in hand: its fate is open, and the sender may ask.
            Some(_) => Left::Open,
        })
    }

    /// What giving a signal to whoever waits for it would come to, with nothing written.
    pub(super) async fn try_over(
        &self,
        who: &Identity,
        kept: Kept,
        sending: &Sending<'_>,
    ) -> Result<Option<Reply>, Error> {
        let instance = match kept.instance {
            Some(instance) => instance,
            None => match self.taker(who.tenant, &kept).await? {
                Some(taker) => taker.instance,
                None => return Ok(None),
            },
        };
        match self.execute(request(who, &kept, instance, sending)).await {
            Ok(reply) => Ok(Some(reply)),
            Err(error) if is_gone(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn still_kept(&self, tenant: TenantId, kept: &Kept) -> Result<Option<Kept>, Error> {
        let nobody = InstanceId(Uuid::nil());
        let earlier = (kept.correlation.as_str(), kept.id.as_str(), nobody);
        let store = &self.0.store;
        Ok(store
            .kept_signal(tenant, Some(kept.signal), earlier)
            .await?)
    }

    /// The oldest stay that takes the signal; of an instance that rests where no other does.
    async fn taker(&self, tenant: TenantId, signal: &Kept) -> Result<Option<Correlating>, Error> {
        let definition = signal.definition.as_deref();
        let store = &self.0.store;
        let stays = store
            .correlating(tenant, &signal.correlation, definition)
            .await?;
        for stay in stays {
            let version = self.version(tenant, &stay.definition).await?;
            if taken(&version.graph, &stay.state).any(|trigger| *trigger == signal.trigger) {
                return Ok(Some(stay));
            }
        }
        Ok(None)
    }

    async fn assign(
        &self,
        tenant: TenantId,
        signal: &Kept,
        instance: InstanceId,
    ) -> Result<bool, Error> {
        let later = self.0.clock.now() + self.0.patience + HANDED_OVER;
        let store = &self.0.store;
        Ok(store.assign_signal(tenant, signal, instance, later).await?)
    }

    /// Gives the instance the signal that it was assigned, in the name of the sender.
    async fn deliver(
        &self,
        who: &Identity,
        signal: &Kept,
        instance: InstanceId,
        sending: &Sending<'_>,
    ) -> Result<Delivered, Error> {
        let sender: Sender = serde_json::from_str(signal.sender.as_str())
            .map_err(|error| Error::Unavailable(format!("a sender cannot be read: {error}")))?;
        let sender = Identity {
            subject: sender.id,
            roles: sender.roles,
            ..who.clone()
        };
        let (store, tenant) = (&self.0.store, who.tenant);
        match self
            .execute(request(&sender, signal, instance, sending))
            .await
        {
            Ok(reply) => {
                store.settle_signal(tenant, signal.signal, None).await?;
                Ok(Delivered::Reply(reply))
            }
            Err(error) if is_gone(&error) && !signal.is_settled => {
                store
                    .release_signal(tenant, signal.signal, instance)
                    .await?;
                Ok(Delivered::Returned)
            }
            Err(error) => Err(error),
        }
    }

    /// Delivers what was sent for a stay before it was there, or what a host gave to an instance and left behind.
    pub(in super::super) async fn match_signals(&self, job: &Job) -> Result<(), Error> {
        let matching: Matching = payload(job)?;
        let name = self.tenant_name(job.tenant).await?;
        let host = Identity::host(job.tenant, &name);
        if let Some(id) = &matching.signal {
            let earlier = (matching.correlation.as_str(), id.as_str(), job.instance);
            let store = &self.0.store;
            let kept = store
                .kept_signal(job.tenant, matching.kept, earlier)
                .await?;
            // Whoever gave it to another instance left another job.
            let is_open = |kept: &Kept| {
                !kept.is_settled
                    && kept
                        .instance
                        .is_none_or(|instance| instance == job.instance)
            };
            return match kept.filter(is_open) {
                Some(kept) => self.hand_over_later(&host, kept, job).await.map(drop),
                None => Ok(()),
            };
        }
        // Each one that is delivered may end the stay, or change what it takes.
        for _ in 0..DELIVERIES_MAX {
            let Some(mut kept) = self.next_match(&host, job, &matching.correlation).await? else {
                return Ok(());
            };
            if self.assign(job.tenant, &kept, job.instance).await? {
                kept.instance = Some(job.instance);
                if !self.hand_over_later(&host, kept, job).await? {
                    return Ok(());
                }
            }
        }
        self.put_off(job, Duration::ZERO).await
    }

    /// The oldest signal that nobody has and that the job's stay takes.
    async fn next_match(
        &self,
        host: &Identity,
        job: &Job,
        correlation: &str,
    ) -> Result<Option<Kept>, Error> {
        let asked = Asked::at(self.0.clock.now());
        let principal = host.principalship();
        let store = &self.0.store;
        let loaded = store.load(&principal, job.instance, asked).await?;
        let Some(instance) = loaded.found.map(|stored| stored.instance) else {
            return Ok(None);
        };
        let is_meant = |stay: &&StateInstance| stay.id == StateId(job.id);
        let Some(stay) = instance.active.iter().find(is_meant) else {
            return Ok(None);
        };
        if let Status::Suspended { .. } = instance.status {
            self.put_off(job, REST).await?;
            return Ok(None);
        }
        let version = self.version(job.tenant, &instance.definition).await?;
        let triggers: Vec<String> = taken(&version.graph, &stay.name).cloned().collect();
        let taking = Taking {
            correlation,
            definition: &instance.definition.key,
            triggers: &triggers,
            since: (!stay.keep_early).then_some(stay.entered_at),
        };
        Ok(store.unclaimed_signal(job.tenant, taking).await?)
    }

    /// Delivers for a sender who has long gone. A refusal ends the matter; false where the instance rests.
    async fn hand_over_later(
        &self,
        host: &Identity,
        mut kept: Kept,
        job: &Job,
    ) -> Result<bool, Error> {
        let (store, tenant) = (&self.0.store, job.tenant);
        let sending = Sending {
            trace: Trace::default(),
            key: None,
            dry_run: false,
            is_new: false,
            render: &Unread::render,
        };
        for _ in 0..HANDS_MAX {
            let Some(instance) = kept.instance else {
                let Some(taker) = self.taker(tenant, &kept).await? else {
                    store.leave_signal(tenant, kept.signal).await?;
                    return Ok(true);
                };
                if !self.assign(tenant, &kept, taker.instance).await? {
                    // Somebody was faster, and left a job.
                    return Ok(true);
                }
                kept.instance = Some(taker.instance);
                continue;
            };
            match self.deliver(host, &kept, instance, &sending).await {
                Ok(Delivered::Reply(_)) => return Ok(true),
                Ok(Delivered::Returned) => kept.instance = None,
                Err(Error::Rejected(Rejection::Suspended { .. })) => {
                    let taker = self.taker(tenant, &kept).await?;
                    if taker.is_none_or(|taker| taker.is_suspended) {
                        self.put_off(job, REST).await?;
                        return Ok(false);
                    }
                    store.release_signal(tenant, kept.signal, instance).await?;
                    kept.instance = None;
                }
                Err(error) if is_refusal(&error) => {
                    let reason = reason(&error);
                    tracing::warn!(%error, instance.id = %instance, signal = %kept.signal, "a signal that was kept is refused");
                    store
                        .settle_signal(tenant, kept.signal, Some(&reason))
                        .await?;
                    return Ok(true);
                }
                Err(error) => return Err(error),
            }
        }
        Err(Error::Busy)
    }
}

fn request<'a>(
    who: &'a Identity,
    signal: &Kept,
    instance: InstanceId,
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
        },
        if_match: None,
        idempotency: sending.key.clone(),
        dry_run: sending.dry_run,
        trace: sending.trace.clone(),
        // It stays until the delivery is noted, or a host that dies in between would leave the note undone.
        job: None,
        render: sending.render,
    }
}

/// The triggers that a state takes as signals.
fn taken<'a>(graph: &'a Graph, state: &'a str) -> impl Iterator<Item = &'a String> {
    let ways = graph.leaving(state).filter(|way| by_signal(way));
    ways.map(|way| &way.trigger)
}

/// Whether the instance has judged the signal.
fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Rejected(_) | Error::Permission(_))
}

/// Whether the request that brought the signal comes to nothing.
fn is_final(error: &Error) -> bool {
    is_refusal(error) || matches!(error, Error::KeyReused | Error::Stopped { .. })
}

/// Whether the instance does not wait for the signal, or no longer.
fn is_gone(error: &Error) -> bool {
    match error {
        Error::Rejected(Rejection::NotNow { code, .. }) => *code == NOBODY_WAITS,
        Error::Rejected(Rejection::Ended { .. }) | Error::NotFound { .. } => true,
        _ => false,
    }
}

fn reason(error: &Error) -> Reason {
    match error {
        Error::Rejected(Rejection::Forbidden(reason) | Rejection::Refused(reason)) => {
            reason.clone()
        }
        Error::Rejected(rejection) => Reason {
            code: rejection.code().to_owned(),
            message: rejection.to_string(),
        },
        other => Reason {
            code: "permission_missing".to_owned(),
            message: other.to_string(),
        },
    }
}
