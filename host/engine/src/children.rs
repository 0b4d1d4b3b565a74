//! Child instances: the jobs of parents and children. Each job is one command on one instance; no transaction spans two.
//!
//! A parent chooses the id of its child, so a second host that starts the child again finds it. If the parent leaves the state
//! while a host starts the child, the host notices this after the start and cancels the child. A start that no host has begun
//! ends together with the state instance that requested it. Detached children are different: they start and go on.

use std::time::Duration;

use serde::Deserialize;

use super::job_handlers::{self, REST, Unread, payload};
use super::pipeline::load;
use super::request::{Identity, Request, Trace};
use super::{Engine, Error};
use wrkflw_core::command::{Command, Lineage};
use wrkflw_core::ids::{InstanceId, StateId, TenantId};
use wrkflw_core::instance::{CHILD_NOT_STARTED, ChildInstance, Instance, Status};
use wrkflw_core::json::Json;
use wrkflw_core::rejection::Rejection;
use wrkflw_runtime::clock::Clock;
use wrkflw_store::jobs::{self, Job};
use wrkflw_store::load::LoadOptions;
use wrkflw_store::viewer::Viewer;
use wrkflw_store::{Store, descendants, feed};

/// Limit of a line of children, from the first parent down.
const DEPTH_MAX: u32 = 8;
/// The reason in a cancelled child.
const PARENT_LEFT: &str = "parent left the state";
/// The pause before a cancellation checks again whether a concurrent start of the child has ended. If the host of that start
/// died, the checks go on until its lease has expired. The checks do not count as failures, so the pauses do not grow.
const START_AWAITED: Duration = Duration::from_secs(1);
/// Limit of the reason that a parent stores, in bytes.
const REASON_BYTES_MAX: usize = 2_000;

#[derive(Deserialize)]
struct StartChild {
    state: StateId,
    child: ChildInstance,
}

#[derive(Deserialize)]
struct ChildEnded {
    child: InstanceId,
    version: u32,
    outcome: String,
    data: Json,
}

/// The state of a parent, as far as it concerns a child.
enum Parent {
    /// It waits for the child, or the child is detached.
    Wants(Box<Instance>),
    /// It is suspended: its jobs are postponed.
    Suspended,
    /// It has left the state, or the end of the child is recorded.
    Gone,
}

/// Starts a child, or ends it for the parent if it can never start.
pub(super) async fn start_child(engine: &Engine, job: &Job) -> Result<(), Error> {
    let (store, clock) = (&engine.0.store, &engine.0.clock);
    let StartChild { state, child } = payload(job)?;
    let id = child.id;
    let parent = match parent_of(engine, job, state, id).await? {
        Parent::Wants(parent) => parent,
        Parent::Suspended => return rest(store, clock, job).await,
        Parent::Gone => return Ok(descendants::free_place(store, job).await?),
    };
    let is_started = feed::knows_instance(store, job.tenant, id.0).await?;
    if !is_started && let Some(reason) = begin(engine, job, &parent, child).await? {
        descendants::free_place(store, job).await?;
        tracing::info!(instance.id = %job.instance, child = %id, reason, "a child could not be started");
        let command = Command::ChildEnded {
            instance: job.instance,
            child: id,
            version: None,
            outcome: CHILD_NOT_STARTED.to_owned(),
            data: Json::empty(),
            reason: Some(reason),
        };
        return job_handlers::act(engine, job.tenant, command, Some(job.id)).await;
    }
    wrkflw_fault::point("child.started");
    match parent_of(engine, job, state, id).await? {
        Parent::Gone => job_handlers::act(engine, job.tenant, cancel(id), None).await,
        Parent::Wants(_) | Parent::Suspended => Ok(()),
    }
}

/// Cancels a child whose parent has left the state. A child that does not exist yet may be starting concurrently.
pub(super) async fn cancel_child(engine: &Engine, job: &Job) -> Result<(), Error> {
    let (tenant, child) = (job.tenant, job.instance);
    let store = &engine.0.store;
    // If a start ends between the two queries, its child exists, and the command finds it.
    if !feed::knows_instance(store, tenant, child.0).await?
        && jobs::exists(store, tenant, child.0).await?
    {
        return put_off(store, &engine.0.clock, job, START_AWAITED).await;
    }
    job_handlers::act(engine, tenant, cancel(child), Some(job.id)).await
}

/// Reports to a parent that a child has ended.
pub(super) async fn child_ended(engine: &Engine, job: &Job) -> Result<(), Error> {
    let ended: ChildEnded = payload(job)?;
    let command = Command::ChildEnded {
        instance: job.instance,
        child: ended.child,
        version: Some(ended.version),
        outcome: ended.outcome,
        data: ended.data,
        reason: None,
    };
    match job_handlers::act(engine, job.tenant, command, Some(job.id)).await {
        Err(Error::Rejected(Rejection::Suspended { .. })) => {
            rest(&engine.0.store, &engine.0.clock, job).await
        }
        done => done,
    }
}

async fn parent_of(
    engine: &Engine,
    job: &Job,
    state: StateId,
    child: InstanceId,
) -> Result<Parent, Error> {
    let host = Identity::host(job.tenant, "").caller();
    let options = LoadOptions::at(engine.0.clock.now());
    let loaded = load::loaded(engine, &host, job.instance, options).await?;
    let Some(instance) = loaded.found.map(|stored| stored.instance) else {
        return Ok(Parent::Gone);
    };
    let left = instance.past.iter().map(|past| (&past.state, true));
    let active = instance.active.iter().map(|active| (active, false));
    let mut state_instances = active.chain(left).filter(|(found, _)| found.id == state);
    let is_wanted = state_instances.any(|(state_instance, is_left)| {
        let mut children = state_instance.children.iter();
        let known = children.find(|known| known.id == child && known.outcome.is_none());
        known.is_some_and(|known| known.detached || !is_left)
    });
    if !is_wanted {
        return Ok(Parent::Gone);
    }
    Ok(match instance.status {
        Status::Suspended { .. } => Parent::Suspended,
        _ => Parent::Wants(Box::new(instance)),
    })
}

/// Starts the child. Returns the reason if it can never be started.
async fn begin(
    engine: &Engine,
    job: &Job,
    parent: &Instance,
    child: ChildInstance,
) -> Result<Option<String>, Error> {
    let store = &engine.0.store;
    let line = descendants::ancestry(store, job.tenant, parent.id, DEPTH_MAX).await?;
    if line.depth >= DEPTH_MAX {
        let reason = format!("at most {DEPTH_MAX} instances may be nested below each other");
        return Ok(Some(reason));
    }
    let budgets = engine.0.budgets;
    let place = descendants::take_place(store, job, line.root, budgets.below_a_root());
    if let Some(reason) = budgets.refusal(place.await?, line.root) {
        return Ok(Some(reason));
    }
    let name = engine.tenant_name(job.tenant).await?;
    let who = Identity::host(job.tenant, &name);
    let id = child.id;
    let started = engine.execute(Request {
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
        // Another host has started this child first.
        Err(Error::Rejected(Rejection::AlreadyRunning { running, .. })) if running == Some(id) => {
            Ok(None)
        }
        Err(error) if is_final(&error) => {
            let reason = for_everybody(store, job.tenant, error).await?;
            Ok(Some(bounded(reason.to_string())))
        }
        Err(error) => Err(error),
    }
}

/// The refusal in a form for everybody who sees the parent: it does not name a restricted instance that is the reason.
async fn for_everybody(store: &Store, tenant: TenantId, error: Error) -> Result<Error, Error> {
    let Error::Rejected(Rejection::AlreadyRunning {
        running: Some(running),
        ..
    }) = &error
    else {
        return Ok(error);
    };
    if store.sees(&Viewer::from(tenant), *running).await? {
        return Ok(error);
    }
    let (running, started) = (None, None);
    Ok(Rejection::AlreadyRunning { running, started }.into())
}

/// Postpones a job that waits for the resumption of its instance. This does not count as a failure.
pub(super) async fn rest(store: &Store, clock: &Clock, job: &Job) -> Result<(), Error> {
    let until = clock.now() + REST;
    Ok(jobs::rest(store, job, until).await?)
}

/// Postpones a job, because it has done a portion or another host works on the same. This does not count as a failure.
pub(super) async fn put_off(
    store: &Store,
    clock: &Clock,
    job: &Job,
    pause: Duration,
) -> Result<(), Error> {
    let until = clock.now() + pause;
    Ok(jobs::put_off(store, job, until).await?)
}

/// Whether the same start would fail again in the same way.
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
