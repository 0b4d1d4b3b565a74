//! Signals by correlation key: sent to an instance that waits for the key, now or later.
//!
//! Each signal is stored first, then delivered in its sender's name to the instance with the oldest state instance that takes it.
//! If no state instance waits for it, it is delivered to the next one that is entered with that key and takes buffered signals.
//! `handing` assigns and delivers. A signal may be for all that subscribe to it instead, and is never kept then: `broadcast`.

mod broadcast;
pub(super) mod handing;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use self::handing::Sending;
use super::permission::need;
use super::pipeline::load::{self, NO_INSTANCE};
use super::pipeline::reply;
use super::request::{Done, Idempotency, Identity, Rendered, Reply, Trace};
use super::{Engine, Error};
use wrkflw_audit::seal::SealKeys;
use wrkflw_core::answer::Reason;
use wrkflw_core::command::SignalKey;
use wrkflw_core::graph::{FiredBy, Graph, Transition};
use wrkflw_core::ids::{InstanceId, TenantId};
use wrkflw_core::json::Json;
use wrkflw_core::rejection::{FirstSignal, Rejection};
use wrkflw_runtime::clock;
use wrkflw_store::directory::tenants;
use wrkflw_store::load::LoadOptions;
use wrkflw_store::receipts::{self, Receipt};
use wrkflw_store::signals::{
    self, INBOX_MAX, INBOX_OF_SENDER_MAX, Keeping, NewSignal, StoredSignal, TO_ALL_OF_SENDER_MAX,
};
use wrkflw_store::{Store, StoreError};

/// The permission to send signals.
const SENDS: &str = "instance:signal";
/// The permission to see the status of other people's signals.
const SEES_ALL: &str = "audit:read";
/// Limit of the triggers that the message of a refusal lists.
const NAMED_MAX: usize = 50;

/// A signal to an instance that waits for a correlation key.
#[derive(Debug, Clone)]
pub struct Correlated {
    pub correlation: String,
    pub trigger: String,
    pub id: String,
    /// Deliver only to instances of this definition. None: of any.
    pub definition: Option<String>,
    pub input: Json,
    /// Deliver it to all state instances that subscribe to it now, not to one.
    pub to_all: bool,
    pub idempotency: Option<Idempotency>,
    pub dry_run: bool,
    pub trace: Trace,
}

/// Renders the answer to a signal. The `Uuid` is the host's id of the signal. There is none on a dry run. A signal to all is
/// answered with `kept`.
pub struct Rendering<'a> {
    /// An instance has taken it.
    pub taken: &'a (dyn Fn(&Done<'_>, Option<Uuid>) -> Rendered + Send + Sync),
    /// The signal is kept for later.
    pub kept: &'a (dyn Fn(Option<Uuid>) -> Rendered + Send + Sync),
}

/// The sender of a kept signal. The signal is delivered with this person's permissions.
#[derive(Serialize, Deserialize)]
struct Sender {
    id: String,
    roles: Vec<String>,
}

/// The answer that a signal is kept.
struct Answer {
    signal: Uuid,
    /// Whether this request has stored the signal, and not an earlier one.
    is_new: bool,
    rendered: Rendered,
}

/// A signal as its sender may see it.
#[derive(Debug, Clone)]
pub struct SentSignal {
    pub receipt: Receipt,
    pub status: SignalStatus,
    /// Whether its sender may know how many states took it.
    pub tells_numbers: bool,
}

/// The status of a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignalStatus {
    /// It waits for an instance.
    Kept,
    /// It is being delivered to an instance, or to all.
    Assigned,
    /// The instance has taken it, with the id of the audit entry. Of a signal to all: every subscriber has taken or refused it.
    Delivered(Option<Uuid>),
    /// No instance took it in time.
    Expired,
    /// The instance refused it after its sender was answered.
    Refused(Reason),
}

/// Signals by correlation key: sends them, and reports their status.
#[derive(Clone, Copy)]
pub struct Signals<'a> {
    pub(super) engine: &'a Engine,
}

impl Signals<'_> {
    /// Receives a signal by correlation.
    pub async fn send(
        self,
        who: &Identity,
        signal: Correlated,
        rendering: &Rendering<'_>,
    ) -> Result<Reply, Error> {
        let key = signal.idempotency.as_ref().filter(|_| !signal.dry_run);
        let options = LoadOptions {
            key: key.map(|key| key.key.as_str()),
            ..LoadOptions::at(self.engine.0.clock.now())
        };
        let (store, seals, tenant) = (&self.engine.0.store, &self.engine.0.seals, who.tenant);
        let loaded = load::loaded(self.engine, &who.caller(), NO_INSTANCE, options).await?;
        need(&loaded.actor, SENDS)?;
        if let (Some(reply), Some(key)) = (loaded.reply, key) {
            return reply::repeat(seals, who, reply, key);
        }
        let new = new(who, &signal);
        self.check_trigger(who, &new).await?;
        if signal.dry_run && signal.to_all {
            let known = signals::sent(store, tenant, &new).await?;
            if let Some(known) = &known {
                self.check_same(who, known, &new).await?;
            }
            return Ok(Reply::fresh((rendering.kept)(None)));
        }
        if signal.dry_run {
            return self.try_signal(who, &new, signal.trace, rendering).await;
        }
        let kept = match signals::keep(store, tenant, &new, self.engine.0.clock.now()).await? {
            Keeping::Kept(kept) => *kept,
            full => return Err(inbox_full(&full, &new).into()),
        };
        self.check_same(who, &kept, &new).await?;
        wrkflw_fault::point("signal.kept");
        let (id, is_new) = (kept.signal, kept.signal == new.signal);
        let answer = Answer {
            signal: id,
            is_new,
            rendered: (rendering.kept)(Some(id)),
        };
        if kept.to_all.is_some() {
            // The workers are woken after the answer is stored: while none has begun to deliver the signal, it can still be withdrawn.
            let reply = acknowledge(store, seals, who, key, answer).await;
            self.engine.wake_workers();
            return reply;
        }
        let taken = |done: &Done<'_>| (rendering.taken)(done, Some(id));
        let sending = Sending {
            trace: signal.trace,
            key: key.cloned(),
            dry_run: false,
            is_new,
            render: &taken,
        };
        if let Some(reply) = handing::hand_over(self.engine, who, kept, &sending).await? {
            return Ok(reply);
        }
        acknowledge(store, seals, who, key, answer).await
    }

    /// The answer that sending the signal would get. Nothing is written. The limits of kept signals are not checked.
    async fn try_signal(
        self,
        who: &Identity,
        new: &NewSignal,
        trace: Trace,
        rendering: &Rendering<'_>,
    ) -> Result<Reply, Error> {
        let known = signals::sent(&self.engine.0.store, who.tenant, new).await?;
        if let Some(known) = &known {
            self.check_same(who, known, new).await?;
        }
        let taken = |done: &Done<'_>| (rendering.taken)(done, None);
        let sending = Sending {
            trace,
            key: None,
            dry_run: true,
            is_new: false,
            render: &taken,
        };
        let kept = known.unwrap_or_else(|| as_kept(new, self.engine.0.clock.now()));
        let tried = handing::try_over(self.engine, who, kept, &sending).await?;
        Ok(tried.unwrap_or_else(|| Reply::fresh((rendering.kept)(None))))
    }

    /// Refuses another signal under an id that was used. Which instance took the first one is told to those who see it.
    async fn check_same(
        self,
        who: &Identity,
        kept: &StoredSignal,
        new: &NewSignal,
    ) -> Result<(), Error> {
        let Err(mut refusal) = check_same(kept, new) else {
            return Ok(());
        };
        if let (Rejection::SignalIdReused { first, .. }, Some(instance)) =
            (&mut refusal, kept.instance)
        {
            let viewer = self.engine.viewer(who).await?;
            if !self.engine.0.store.sees(&viewer, instance).await? {
                first.instance = None;
            }
        }
        Err(refusal.into())
    }

    /// Refuses a trigger that neither an active version nor a version with running instances takes as a signal.
    async fn check_trigger(self, who: &Identity, new: &NewSignal) -> Result<(), Error> {
        let (store, tenant) = (&self.engine.0.store, who.tenant);
        let definition = new.definition.as_deref();
        let mut taken = BTreeSet::new();
        let active = signals::versions_in_use(store, tenant, definition, true).await?;
        for reference in &active {
            let version = self.engine.versions().get(tenant, reference).await?;
            taken.extend(signals(&version.graph).cloned());
        }
        if taken.contains(&new.trigger) {
            return Ok(());
        }
        let others = signals::versions_in_use(store, tenant, definition, false).await?;
        for reference in &others {
            let version = self.engine.versions().get(tenant, reference).await?;
            let declared = signals(&version.graph).any(|trigger| *trigger == new.trigger);
            if declared && signals::is_running(store, tenant, reference).await? {
                return Ok(());
            }
        }
        let none = active.is_empty() && others.is_empty();
        Err(unknown(definition, none, taken).into())
    }

    /// The status of a signal: for its sender, and for callers who may read the audit.
    pub async fn status(self, who: &Identity, signal: Uuid) -> Result<SentSignal, Error> {
        let store = &self.engine.0.store;
        let (actor, _) = tenants::actor(store, &who.caller()).await?;
        let sees_all = actor.may(SEES_ALL);
        if !sees_all {
            need(&actor, SENDS)?;
        }
        let found = receipts::get(store, who.tenant, signal).await?;
        let found = found.filter(|receipt| sees_all || receipt.sender == who.subject);
        let receipt = found.ok_or_else(|| Error::NotFound {
            what: "signal of yours",
            id: signal.to_string(),
        })?;
        let mut sent = sent(store, who.tenant, receipt).await?;
        let asks = sent.receipt.instance.is_some() || sent.receipt.to_all.is_some();
        if !sees_all && asks {
            let viewer = self.engine.viewer(who).await?;
            // The numbers also count state instances that the sender may not see.
            sent.tells_numbers = !viewer.is_restricted();
            if let Some(instance) = sent.receipt.instance
                && !store.sees(&viewer, instance).await?
            {
                sent.conceal();
            }
        }
        Ok(sent)
    }
}

/// Answers that a signal is kept, under the request's key if it has one. If the key belongs to another request, the signal is
/// withdrawn and the request refused. A signal that stays, because it has had an effect or a repeat was told that it is kept, is
/// not refused.
async fn acknowledge(
    store: &Store,
    seals: &SealKeys,
    who: &Identity,
    key: Option<&Idempotency>,
    answer: Answer,
) -> Result<Reply, Error> {
    let (tenant, signal) = (who.tenant, answer.signal);
    if !answer.is_new && !receipts::acknowledge(store, tenant, signal).await? {
        return Err(StoreError::Lost.into());
    }
    let Some(key) = key else {
        return Ok(Reply::fresh(answer.rendered));
    };
    match reply::keep(store, seals, who, key, answer.rendered.clone()).await {
        Err(Error::KeyReused)
            if answer.is_new && !receipts::withdraw(store, tenant, signal).await? =>
        {
            Ok(Reply::fresh(answer.rendered))
        }
        reply => reply,
    }
}

/// The status of a received signal, as a caller who sees everything may know it.
async fn sent(store: &Store, tenant: TenantId, receipt: Receipt) -> Result<SentSignal, Error> {
    let status = match (&receipt.refusal, receipt.instance) {
        _ if receipt.to_all.is_some() && receipt.settled_at.is_some() => {
            SignalStatus::Delivered(None)
        }
        _ if receipt.to_all.is_some() => SignalStatus::Assigned,
        (Some(refusal), _) => {
            let reason = serde_json::from_str(refusal.as_str())
                .map_err(|error| StoreError::inconsistent("signal_inbox", receipt.signal, error))?;
            SignalStatus::Refused(reason)
        }
        (None, None) if receipt.is_expired => SignalStatus::Expired,
        (None, None) => SignalStatus::Kept,
        (None, Some(instance)) => {
            let key = SignalKey {
                trigger: receipt.trigger.clone(),
                id: receipt.id.clone(),
                correlation: Some(receipt.correlation.clone()),
                state: None,
            };
            // The host that delivered it may have died before it recorded that.
            let received = receipts::reception(store, tenant, instance, &receipt.sender, &key);
            match received.await? {
                Some(event) => SignalStatus::Delivered(event),
                None if receipt.settled_at.is_some() => SignalStatus::Delivered(None),
                None => SignalStatus::Assigned,
            }
        }
    };
    Ok(SentSignal {
        receipt,
        status,
        tells_numbers: true,
    })
}

impl SentSignal {
    /// Leaves out which instance takes the signal, for a sender who does not see it.
    fn conceal(&mut self) {
        self.receipt.instance = None;
        if let SignalStatus::Delivered(event) = &mut self.status {
            *event = None;
        }
    }
}

fn new(who: &Identity, signal: &Correlated) -> NewSignal {
    NewSignal {
        signal: clock::new_id(),
        correlation: signal.correlation.clone(),
        id: signal.id.clone(),
        trigger: signal.trigger.clone(),
        definition: signal.definition.clone(),
        input: signal.input.clone(),
        to_all: signal.to_all,
        sender_id: who.subject.clone(),
        sender: Json::of(&Sender {
            id: who.subject.clone(),
            roles: who.roles.clone(),
        }),
    }
}

/// The signal as it would be kept.
fn as_kept(new: &NewSignal, received_at: Timestamp) -> StoredSignal {
    StoredSignal {
        signal: new.signal,
        correlation: new.correlation.clone(),
        id: new.id.clone(),
        trigger: new.trigger.clone(),
        definition: new.definition.clone(),
        input: new.input.clone(),
        sender: new.sender.clone(),
        received_at,
        instance: None::<InstanceId>,
        is_settled: false,
        to_all: None,
    }
}

/// The same id must stand for the same content. Otherwise other content would be acknowledged and lost.
fn check_same(kept: &StoredSignal, new: &NewSignal) -> Result<(), Rejection> {
    let is_same = kept.to_all.is_some() == new.to_all;
    if is_same && kept.definition == new.definition && kept.input == new.input {
        return Ok(());
    }
    Err(Rejection::SignalIdReused {
        trigger: kept.trigger.clone(),
        id: kept.id.clone(),
        first: FirstSignal {
            signal: Some(kept.signal),
            instance: kept.instance,
            event: None,
            at: kept.received_at,
        },
    })
}

fn inbox_full(full: &Keeping, new: &NewSignal) -> Rejection {
    let correlation = &new.correlation;
    let message = match full {
        Keeping::FullForCorrelation => {
            format!(
                "{INBOX_MAX} signals of yours with the correlation key {correlation} are waiting, which is the limit; send more when some are taken or have expired"
            )
        }
        Keeping::FullToAll => {
            format!(
                "{TO_ALL_OF_SENDER_MAX} signals of yours are being delivered to all, which is the limit; try again later"
            )
        }
        _ => format!(
            "{INBOX_OF_SENDER_MAX} signals of yours are waiting, which is the limit; send more when some are taken or have expired"
        ),
    };
    Rejection::not_now("limit_reached", message)
}

fn unknown(definition: Option<&str>, none: bool, taken: BTreeSet<String>) -> Rejection {
    if let (Some(definition), true) = (definition, none) {
        let message = format!("there is no definition {definition}");
        return Rejection::invalid("/definitionKey", "unknown_definition", message);
    }
    let whose = definition.map_or_else(
        || "the active definitions take".to_owned(),
        |definition| format!("the active version of {definition} takes"),
    );
    let more = taken.len().saturating_sub(NAMED_MAX);
    let named: Vec<String> = taken.into_iter().take(NAMED_MAX).collect();
    let message = match (named.is_empty(), more) {
        (true, _) => format!("{whose} no signals"),
        (false, 0) => format!("{whose} the signals {}", named.join(", ")),
        (false, more) => format!("{whose} the signals {} and {more} more", named.join(", ")),
    };
    Rejection::invalid("/trigger", "unknown_signal", message)
}

/// The triggers that some state takes as signals.
fn signals(graph: &Graph) -> impl Iterator<Item = &String> {
    let ways = graph.transitions.iter().filter(|way| by_signal(way));
    ways.map(|way| &way.trigger)
}

fn by_signal(way: &Transition) -> bool {
    way.by.contains(&FiredBy::Signal)
}
