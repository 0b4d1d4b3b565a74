//! Sub-flows: what the jobs of parents and children do. Each is one command on one instance; no transaction spans two.
//!
//! A child's id is chosen by its parent, so that a second host that starts it again finds it. A parent that leaves the
//! state while its child is being started is seen after the start, and the child is cancelled. A start that nobody has
//! begun ends with the stay that asked for it.

use std::time::Duration;

use serde::Deserialize;
use uuid::Uuid;

use super::perform::{REST, Unread, payload};
use super::request::{Identity, Request, Trace};
use super::{Engine, Error};
use crate::domain::command::{Command, Lineage};
use crate::domain::ids::{InstanceId, StateId};
use crate::domain::instance::{CHILD_NOT_STARTED, ChildInstance, Instance, StateInstance, Status};
use crate::domain::json::Json;
use crate::domain::rejection::Rejection;
use crate::store::commit::Change;
use crate::store::jobs::Job;
use crate::store::load::Asked;

/// How many instances one line of children may have, from the first parent down.
const DEPTH_MAX: u32 = 8;
/// What a cancelled child is told.
const PARENT_LEFT: &str = "parent left the state";
/// When it is looked again whether a start that is in another hand has come to its end. If that hand died, this goes
/// on until its lease is over: waiting, not failing, so the pauses do not grow.
const START_AWAITED: Duration = Duration::from_secs(1);
/// The longest reason that a parent keeps, in bytes.
const REASON_BYTES_MAX: usize = 2_000;

#[derive(Deserialize)]
struct StartChild {
    state: StateId,
    child: ChildInstance,
}

#[derive(Deserialize)]
struct ChildEnded {
    child: InstanceId,
    outcome: String,
    data: Json,
}

/// How a parent stands to a child.
enum Parent {
    /// It waits for the child.
    Waits(Box<Instance>),
    /// It is suspended: nothing happens to it now.
    Rests,
    /// It has left the state, or the child has ended for it.
    Gone,
}

impl Engine {
    /// Starts a child, or tells the parent why it never can.
    pub(super) async fn start_child(&self, job: &Job) -> Result<(), Error> {
        let StartChild { state, child } = payload(job)?;
        let id = child.id;
        let parent = match self.parent(job, state, id).await? {
            Parent::Waits(parent) => parent,
            Parent::Rests => return self.put_off(job, REST).await,
            Parent::Gone => return Ok(()),
        };
        let is_started = self.0.store.knows_instance(job.tenant, id.0).await?;
        if !is_started && let Some(reason) = self.begin(job, &parent, child).await? {
            let command = Command::ChildEnded {
                instance: job.instance,
                child: id,
                outcome: CHILD_NOT_STARTED.to_owned(),
                data: Json::empty(),
                reason: Some(reason),
            };
            return self.act(job.tenant, command, Some(job.id)).await;
        }
        crate::fault::point("child.started");
        match self.parent(job, state, id).await? {
            Parent::Gone => self.act(job.tenant, cancel(id), None).await,
            Parent::Waits(_) | Parent::Rests => Ok(()),
        }
    }

    /// Cancels a child whose parent has left the state. One that is not there yet may be about to start elsewhere.
    pub(super) async fn cancel_child(&self, job: &Job) -> Result<(), Error> {
        let (tenant, child) = (job.tenant, job.instance);
        let store = &self.0.store;
        // A start that ends between the two looks leaves a child, which the command finds.
        if !store.knows_instance(tenant, child.0).await? && store.has_job(tenant, child.0).await? {
            return self.put_off(job, START_AWAITED).await;
        }
        self.act(tenant, cancel(child), Some(job.id)).await
    }

    /// Tells a parent that a child has ended.
    pub(super) async fn child_ended(&self, job: &Job) -> Result<(), Error> {
        let ended: ChildEnded = payload(job)?;
        let command = Command::ChildEnded {
            instance: job.instance,
            child: ended.child,
            outcome: ended.outcome,
            data: ended.data,
            reason: None,
        };
        match self.act(job.tenant, command, Some(job.id)).await {
            Err(Error::Rejected(Rejection::Suspended { .. })) => self.put_off(job, REST).await,
            done => done,
        }
    }

    async fn parent(&self, job: &Job, state: StateId, child: InstanceId) -> Result<Parent, Error> {
        let host = Identity::host(job.tenant, "").principalship();
        let asked = Asked::at(self.0.clock.now());
        let loaded = self.0.store.load(&host, job.instance, asked).await?;
        let Some(instance) = loaded.found.map(|stored| stored.instance) else {
            return Ok(Parent::Gone);
        };
        let stay = instance.active.iter().find(|stay| stay.id == state);
        let mut children = stay.into_iter().flat_map(|stay| &stay.children);
        if !children.any(|known| known.id == child && known.outcome.is_none()) {
            return Ok(Parent::Gone);
        }
        Ok(match instance.status {
            Status::Suspended { .. } => Parent::Rests,
            _ => Parent::Waits(Box::new(instance)),
        })
    }

    /// Starts the child; says why not, where trying again would not help.
    async fn begin(
        &self,
        job: &Job,
        parent: &Instance,
        child: ChildInstance,
    ) -> Result<Option<String>, Error> {
        let store = &self.0.store;
        let line = store.line(job.tenant, parent.id, DEPTH_MAX).await?;
        if line.depth >= DEPTH_MAX {
            let reason = format!("{DEPTH_MAX} instances below each other are as many as may be");
            return Ok(Some(reason));
        }
        let most = self.0.budgets.descendants_max;
        if !store.take_place(job, line.root, most).await? {
            let reason = format!(
                "{most} instances below {} are as many as may be started (descendants_max)",
                line.root
            );
            return Ok(Some(reason));
        }
        let name = self.tenant_name(job.tenant).await?;
        let who = Identity::host(job.tenant, &name);
        let id = child.id;
        let started = self.execute(Request {
            who: &who,
            command: Command::Start {
                definition: child.key,
                entity: child.entity,
                data: child.data,
                lineage: Some(Box::new(Lineage {
                    id: Some(id),
                    initiator: Some(parent.initiator.clone()),
                    predecessor: None,
                    parent: Some(parent.id),
                    requesters: parent.requesters.clone(),
                })),
            },
            if_match: None,
            idempotency: None,
            dry_run: false,
            trace: Trace::default(),
            job: Some(job.id),
            render: &Unread::render,
        });
        match started.await {
            Ok(_) => Ok(None),
            // Another host was faster with this very child.
            Err(Error::Rejected(Rejection::AlreadyRunning { running, .. })) if running == id => {
                Ok(None)
            }
            Err(error) if is_final(&error) => Ok(Some(bounded(error.to_string()))),
            Err(error) => Err(error),
        }
    }

    /// Looks at a job again after a pause: what it is about rests, or is in another hand. That is no failure.
    pub(super) async fn put_off(&self, job: &Job, pause: Duration) -> Result<(), Error> {
        let until = self.0.clock.now() + pause;
        Ok(self.0.store.put_off_job(job, until).await?)
    }
}

/// Whether the same start would come to the same again.
fn is_final(error: &Error) -> bool {
    matches!(
        error,
        Error::Rejected(_)
            | Error::Permission(_)
            | Error::NotFound { .. }
            | Error::NoActiveVersion(_)
    )
}

fn bounded(mut reason: String) -> String {
    reason.truncate(reason.floor_char_boundary(REASON_BYTES_MAX));
    reason
}

fn cancel(child: InstanceId) -> Command {
    Command::Cancel {
        instance: child,
        reason: PARENT_LEFT.to_owned(),
    }
}

/// Whether a commit left jobs that are due at once: for children, for a parent, or for signals sent by correlation.
pub(super) fn leaves_work(change: &Change) -> bool {
    let linked = |instance: &Instance| -> Vec<Uuid> {
        let is_linked =
            |stay: &&StateInstance| stay.correlation.is_some() || !stay.children.is_empty();
        let stays = instance.active.iter().filter(is_linked);
        stays.map(|stay| stay.id.0).collect()
    };
    let before = change.before.as_ref().map(|stored| &stored.instance);
    let after = &change.after;
    let tells_parent = after.parent.is_some() && after.status.ended_at().is_some();
    tells_parent || before.map(linked).unwrap_or_default() != linked(after)
}
