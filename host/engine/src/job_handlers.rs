//! Runs jobs. A job is usually one command on its instance, whose commit deletes the job.

use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::request::{Done, Identity, Rendered, Request, Trace};
use super::signals::handing;
use super::{Engine, Error, children};
use wrkflw_core::command::Command;
use wrkflw_core::ids::{DeadlineId, InstanceId, TenantId};
use wrkflw_core::rejection::Rejection;
use wrkflw_store::bulk::{Batch, Outcome};
use wrkflw_store::jobs::Job;
use wrkflw_store::{StoreError, reassessments};

/// The pause until a job on a suspended instance is tried again.
pub(super) const REST: Duration = Duration::from_secs(15);

/// Runs the rows that a worker claimed. After the failure of a host, each method may be called twice for the same row.
pub trait JobHandlers: Send + Sync + 'static {
    /// Runs the job. `Ok` means that it is done or that nothing was left to do. The worker then deletes it, unless its due
    /// time has changed.
    fn job<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<(), Error>>;

    /// Runs one item of an operation. An error is transient: the item is tried again.
    fn item<'a>(
        &'a self,
        batch: &'a Batch,
        instance: InstanceId,
    ) -> BoxFuture<'a, Result<Outcome, Error>>;

    /// Reassesses a running instance.
    fn reassessment(
        &self,
        tenant: TenantId,
        instance: InstanceId,
    ) -> BoxFuture<'_, Result<(), Error>>;
}

impl JobHandlers for Engine {
    fn job<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(handle_job(self, job))
    }

    fn item<'a>(
        &'a self,
        batch: &'a Batch,
        instance: InstanceId,
    ) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(self.bulk().item(batch, instance))
    }

    fn reassessment(
        &self,
        tenant: TenantId,
        instance: InstanceId,
    ) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(look_again(self, tenant, instance))
    }
}

async fn handle_job(engine: &Engine, job: &Job) -> Result<(), Error> {
    match job.kind.as_str() {
        "deadline" => pass(engine, job).await,
        "start_child" => children::start_child(engine, job).await,
        "cancel_child" => children::cancel_child(engine, job).await,
        "child_ended" => children::child_ended(engine, job).await,
        "match_signals" => handing::match_signals(engine, job).await,
        "deliver_signal" => handing::deliver_signal(engine, job).await,
        "reassess_instance" => {
            let instance = job.instance;
            let command = Command::Reassessment { instance };
            rested(act(engine, job.tenant, command, Some(job.id)).await)
        }
        // A newer release may have added the job. One of its hosts may claim it after the pause that follows this failure.
        unknown => {
            let detail = format!("this host does not know jobs of the kind {unknown}");
            Err(StoreError::inconsistent("job", job.id, detail).into())
        }
    }
}

/// Runs a deadline that has passed.
async fn pass(engine: &Engine, job: &Job) -> Result<(), Error> {
    let command = Command::Deadline {
        instance: job.instance,
        deadline: DeadlineId(job.id),
        due_at: payload::<DueAt>(job)?.due_at,
    };
    rested(act(engine, job.tenant, command, Some(job.id)).await)
}

/// Reassesses an instance. Does nothing if it does not exist or has ended. If its version was just stopped, inserts a job
/// that reassesses it when the version is resumed.
pub async fn look_again(
    engine: &Engine,
    tenant: TenantId,
    instance: InstanceId,
) -> Result<(), Error> {
    let looked = act(engine, tenant, Command::Reassessment { instance }, None).await;
    if let Err(Error::Stopped { .. }) = looked {
        let (store, now) = (&engine.0.store, engine.0.clock.now());
        return Ok(reassessments::leave(store, tenant, &[instance], now).await?);
    }
    rested(looked)
}

/// Executes a command of the host itself. It is no error if the instance does not exist or has ended.
pub(super) async fn act(
    engine: &Engine,
    tenant: TenantId,
    command: Command,
    job: Option<Uuid>,
) -> Result<(), Error> {
    let done = act_in(engine, Trace::default(), tenant, command, job).await;
    done.map(drop)
}

/// The same in a trace. False if the instance does not exist or has ended.
pub(super) async fn act_in(
    engine: &Engine,
    trace: Trace,
    tenant: TenantId,
    command: Command,
    job: Option<Uuid>,
) -> Result<bool, Error> {
    let name = engine.tenant_name(tenant).await?;
    let who = Identity::host(tenant, &name);
    let done = engine.execute(Request {
        who: &who,
        command,
        if_match: None,
        idempotency: None,
        dry_run: false,
        trace,
        job,
        render: &Unread::render,
    });
    match done.await {
        Ok(_) => Ok(true),
        Err(Error::NotFound { .. } | Error::Rejected(Rejection::Ended { .. })) => Ok(false),
        // Also for a suspended instance: the caller decides whether the command must wait until it is resumed.
        Err(error) => Err(error),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DueAt {
    due_at: Timestamp,
}

/// A suspended instance is no error: when it is resumed, its deadlines are inserted again and it is reassessed.
fn rested(done: Result<(), Error>) -> Result<(), Error> {
    match done {
        Err(Error::Rejected(Rejection::Suspended { .. })) => Ok(()),
        done => done,
    }
}

/// The payload of the job.
pub(super) fn payload<T: DeserializeOwned>(job: &Job) -> Result<T, Error> {
    serde_json::from_str(job.payload.as_str())
        .map_err(|error| StoreError::inconsistent("job", job.id, error).into())
}

/// The reply to a command of the host, which nobody reads.
pub(super) struct Unread;

impl Unread {
    pub(super) fn render(_: &Done<'_>) -> Rendered {
        Rendered {
            status: 200,
            body: String::new(),
            headers: String::new(),
        }
    }
}
