//! Signals by correlation: for whoever waits under a name of the flow's own, now or later.
//!
//! Each is kept first, then given to the instance with the oldest stay that takes it, as a signal of its sender. One for
//! which nobody waits is given to the next stay that is entered under that name, if that one counts early signals.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::perform::{REST, Unread, payload};
use super::request::{Done, Identity, Rendered, Reply, Request, Trace};
use super::{Engine, Error};
use crate::clock;
use crate::domain::command::Command;
use crate::domain::graph::{FiredBy, Graph};
use crate::domain::ids::{InstanceId, StateId};
use crate::domain::instance::{StateInstance, Status};
use crate::domain::json::Json;
use crate::domain::rejection::Rejection;
use crate::store::jobs::Job;
use crate::store::load::Asked;
use crate::store::signals::Kept;

/// How many undelivered signals are kept under one name.
const INBOX_MAX: i64 = 100;
/// How long signals by correlation are kept, delivered or not.
pub const SIGNALS_KEPT: Duration = Duration::from_hours(30 * 24);
/// When a signal that was given to an instance is delivered by a job, should the host that gave it have died: longer
/// than a request goes on.
const HANDED_OVER: Duration = Duration::from_mins(2);

/// A signal for whoever waits under a name.
#[derive(Debug, Clone)]
pub struct Correlated {
    pub correlation: String,
    pub trigger: String,
    pub id: String,
    /// For instances of this definition alone.
    pub definition: Option<String>,
    pub input: Json,
    pub dry_run: bool,
    pub trace: Trace,
}

/// Who sent a kept signal, to be judged as that person when it is delivered.
#[derive(Serialize, Deserialize)]
struct Sender {
    id: String,
    roles: Vec<String>,
}

#[derive(Deserialize)]
struct Matching {
    correlation: String,
    /// The one that was given to the instance; none for all that a stay waits for.
    signal: Option<String>,
}

/// What became of a delivery.
enum Delivered {
    Reply(Reply),
    /// The instance ended meanwhile; the signal is nobody's again.
    Returned,
}

impl Engine {
    /// Takes a signal by correlation. None: it is kept.
    pub async fn signal(
        &self,
        who: &Identity,
        signal: Correlated,
        render: &(dyn Fn(&Done<'_>) -> Rendered + Send + Sync),
    ) -> Result<Option<Reply>, Error> {
        self.permit(who, "instance:signal").await?;
        let sender = Sender {
            id: who.subject.clone(),
            roles: who.roles.clone(),
        };
        let (dry_run, trace) = (signal.dry_run, signal.trace);
        let new = Kept {
            correlation: signal.correlation,
            id: signal.id,
            trigger: signal.trigger,
            definition: signal.definition,
            input: signal.input,
            sender: Json::of(&sender),
            instance: None,
            is_delivered: false,
        };
        if dry_run {
            let Some(instance) = self.taker(who, &new).await? else {
                return Ok(None);
            };
            let request = Request {
                dry_run,
                ..request(who, &new, instance, trace, None, render)
            };
            return Ok(Some(self.execute(request).await?));
        }
        let now = self.0.clock.now();
        let store = &self.0.store;
        let kept = store.keep_signal(who.tenant, &new, now, INBOX_MAX).await?;
        let Some(mut kept) = kept else {
            let message = format!(
                "{INBOX_MAX} signals for {} wait already; nobody takes them",
                new.correlation
            );
            return Err(Rejection::not_now("limit_reached", message).into());
        };
        let job = clock::new_id();
        crate::fault::point("signal.kept");
        while kept.instance.is_none() {
            let Some(instance) = self.taker(who, &kept).await? else {
                return Ok(None);
            };
            if self.assign(who, &kept, instance, job).await? {
                kept.instance = Some(instance);
            } else {
                let (correlation, id) = (&new.correlation, &new.id);
                let again = store.kept_signal(who.tenant, correlation, id).await?;
                let Some(again) = again else { return Ok(None) };
                kept = again;
            }
        }
        crate::fault::point("signal.assigned");
        match self.deliver(who, &kept, trace, job, render).await {
            Ok(Delivered::Reply(reply)) => Ok(Some(reply)),
            Ok(Delivered::Returned) => Ok(None),
            Err(error) if is_refusal(&error) => {
                // As with any other command, nothing is left of one that was refused.
                store.forget_signal(who.tenant, &kept, job).await?;
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    /// The instance with the oldest stay that takes the signal.
    async fn taker(&self, who: &Identity, signal: &Kept) -> Result<Option<InstanceId>, Error> {
        let definition = signal.definition.as_deref();
        let stays = self
            .0
            .store
            .correlating(who.tenant, &signal.correlation, definition)
            .await?;
        for stay in stays {
            let version = self.version(who.tenant, &stay.definition).await?;
            if takes(&version.graph, &stay.state, &signal.trigger) {
                return Ok(Some(stay.instance));
            }
        }
        Ok(None)
    }

    async fn assign(
        &self,
        who: &Identity,
        signal: &Kept,
        instance: InstanceId,
        job: Uuid,
    ) -> Result<bool, Error> {
        let later = self.0.clock.now() + HANDED_OVER;
        let assigned = self
            .0
            .store
            .assign_signal(who.tenant, signal, instance, job, later);
        Ok(assigned.await?)
    }

    /// Gives the instance the signal that it was assigned, in the name of the sender.
    async fn deliver(
        &self,
        who: &Identity,
        signal: &Kept,
        trace: Trace,
        job: Uuid,
        render: &(dyn Fn(&Done<'_>) -> Rendered + Send + Sync),
    ) -> Result<Delivered, Error> {
        let sender: Sender = serde_json::from_str(signal.sender.as_str())
            .map_err(|error| Error::Unavailable(format!("a sender cannot be read: {error}")))?;
        let sender = Identity {
            subject: sender.id,
            roles: sender.roles,
            ..who.clone()
        };
        let instance = signal.instance.expect("given to an instance");
        let request = request(&sender, signal, instance, trace, Some(job), render);
        let store = &self.0.store;
        match self.execute(request).await {
            Ok(reply) => {
                let now = self.0.clock.now();
                store.delivered_signal(who.tenant, signal, now).await?;
                Ok(Delivered::Reply(reply))
            }
            Err(Error::Rejected(Rejection::Ended { .. }) | Error::NotFound { .. })
                if !signal.is_delivered =>
            {
                store.release_signal(who.tenant, signal, job).await?;
                Ok(Delivered::Returned)
            }
            Err(error) => Err(error),
        }
    }

    /// Delivers what was sent for a stay before it was there, or what a host gave to the instance and left behind.
    pub(super) async fn match_signals(&self, job: &Job) -> Result<(), Error> {
        let matching: Matching = payload(job)?;
        let name = self.tenant_name(job.tenant).await?;
        let host = Identity::host(job.tenant, &name);
        if let Some(id) = &matching.signal {
            let (store, correlation) = (&self.0.store, &matching.correlation);
            let kept = store.kept_signal(job.tenant, correlation, id).await?;
            let Some(kept) =
                kept.filter(|kept| kept.instance == Some(job.instance) && !kept.is_delivered)
            else {
                return Ok(());
            };
            return self
                .deliver_later(&host, &kept, job, job.id)
                .await
                .map(drop);
        }
        // Each one that is delivered may end the stay, or change what it takes.
        while let Some(kept) = self.next_match(&host, job, &matching.correlation).await? {
            let handed_over = clock::new_id();
            if self.assign(&host, &kept, job.instance, handed_over).await? {
                let kept = Kept {
                    instance: Some(job.instance),
                    ..kept
                };
                if !self.deliver_later(&host, &kept, job, handed_over).await? {
                    return Ok(());
                }
            }
        }
        Ok(())
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
        let loaded = self.0.store.load(&principal, job.instance, asked).await?;
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
        let since = (!stay.keep_early).then_some(stay.entered_at);
        let key = &instance.definition.key;
        let found = self
            .0
            .store
            .unclaimed_signals(job.tenant, correlation, key, since, INBOX_MAX)
            .await?;
        let version = self.version(job.tenant, &instance.definition).await?;
        let mut found = found.into_iter();
        Ok(found.find(|kept| takes(&version.graph, &stay.name, &kept.trigger)))
    }

    /// Delivers for a sender who has long gone. A refusal ends the matter; false where the instance rests.
    async fn deliver_later(
        &self,
        host: &Identity,
        kept: &Kept,
        job: &Job,
        handed_over: Uuid,
    ) -> Result<bool, Error> {
        let trace = Trace::default();
        let store = &self.0.store;
        let delivered = self
            .deliver(host, kept, trace, handed_over, &Unread::render)
            .await;
        match delivered {
            Ok(_) => Ok(true),
            Err(Error::Rejected(Rejection::Suspended { .. })) => {
                if handed_over != job.id {
                    store.release_signal(job.tenant, kept, handed_over).await?;
                }
                self.put_off(job, REST).await?;
                Ok(false)
            }
            Err(error) if is_refusal(&error) => {
                tracing::warn!(%error, instance.id = %job.instance, signal = kept.id, "a signal that was kept is refused");
                let now = self.0.clock.now();
                store.delivered_signal(job.tenant, kept, now).await?;
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }
}

fn request<'a>(
    who: &'a Identity,
    signal: &Kept,
    instance: InstanceId,
    trace: Trace,
    job: Option<Uuid>,
    render: &'a (dyn Fn(&Done<'_>) -> Rendered + Send + Sync),
) -> Request<'a> {
    Request {
        who,
        command: Command::Signal {
            instance,
            trigger: signal.trigger.clone(),
            id: signal.id.clone(),
            input: signal.input.clone(),
        },
        if_match: None,
        idempotency: None,
        dry_run: false,
        trace,
        job,
        render,
    }
}

fn takes(graph: &Graph, state: &str, trigger: &str) -> bool {
    let way = graph.transition(state, trigger);
    way.is_some_and(|way| way.by.contains(&FiredBy::Signal))
}

/// Whether the instance has judged the signal.
fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Rejected(_) | Error::Permission(_))
}
