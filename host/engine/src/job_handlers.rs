//! Runs jobs. A job is usually one command on its instance, whose commit deletes the job.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::request::{Done, Identity, Rendered, Request, Trace};
use super::{Engine, Error};
use wrkflw_core::command::Command;
use wrkflw_core::ids::{DeadlineId, InstanceId, TenantId};
use wrkflw_core::rejection::Rejection;
use wrkflw_store::StoreError;
use wrkflw_store::bulk::{Batch, Outcome};
use wrkflw_store::jobs::Job;

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
        Box::pin(self.handle_job(job))
    }

    fn item<'a>(
        &'a self,
        batch: &'a Batch,
        instance: InstanceId,
    ) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(Engine::item(self, batch, instance))
    }

    fn reassessment(
        &self,
        tenant: TenantId,
        instance: InstanceId,
    ) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.look_again(tenant, instance))
    }
}

impl Engine {
    async fn handle_job(&self, job: &Job) -> Result<(), Error> {
        match job.kind.as_str() {
            "deadline" => self.pass(job).await,
            "start_child" => self.start_child(job).await,
            "cancel_child" => self.cancel_child(job).await,
            "child_ended" => self.child_ended(job).await,
            "match_signals" => self.match_signals(job).await,
            "deliver_signal" => self.deliver_signal(job).await,
            "reassess_instance" => {
                let instance = job.instance;
                let command = Command::Reassessment { instance };
                rested(self.act(job.tenant, command, Some(job.id)).await)
            }
            // A newer release may have added the job. One of its hosts may claim it after the pause that follows this failure.
            unknown => {
                let detail = format!("this host does not know jobs of the kind {unknown}");
                Err(StoreError::inconsistent("job", job.id, detail).into())
            }
        }
    }

    /// Runs a deadline that has passed.
    async fn pass(&self, job: &Job) -> Result<(), Error> {
        let command = Command::Deadline {
            instance: job.instance,
            deadline: DeadlineId(job.id),
            due_at: payload::<DueAt>(job)?.due_at,
        };
        rested(self.act(job.tenant, command, Some(job.id)).await)
    }

    /// Reassesses an instance. Does nothing if it does not exist or has ended. If its version was just stopped, inserts a job
    /// that reassesses it when the version is resumed.
    pub async fn look_again(&self, tenant: TenantId, instance: InstanceId) -> Result<(), Error> {
        let looked = self
            .act(tenant, Command::Reassessment { instance }, None)
            .await;
        if let Err(Error::Stopped { .. }) = looked {
            let (store, now) = (&self.0.store, self.0.clock.now());
            return Ok(store.leave_reassessments(tenant, &[instance], now).await?);
        }
        rested(looked)
    }

    /// Executes a command of the host itself. It is no error if the instance does not exist or has ended.
    pub(super) async fn act(
        &self,
        tenant: TenantId,
        command: Command,
        job: Option<Uuid>,
    ) -> Result<(), Error> {
        let done = self.act_in(Trace::default(), tenant, command, job).await;
        done.map(drop)
    }

    /// The same in a trace. False if the instance does not exist or has ended.
    pub(super) async fn act_in(
        &self,
        trace: Trace,
        tenant: TenantId,
        command: Command,
        job: Option<Uuid>,
    ) -> Result<bool, Error> {
        let name = self.tenant_name(tenant).await?;
        let who = Identity::host(tenant, &name);
        let done = self.execute(Request {
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

    /// The external name of a tenant. It never changes.
    pub(super) async fn tenant_name(&self, tenant: TenantId) -> Result<Arc<str>, Error> {
        if let Some(name) = self.0.tenants.get(&tenant) {
            return Ok(name);
        }
        let name: Arc<str> = self.0.store.tenant_name(tenant).await?.into();
        self.0.tenants.insert(tenant, name.clone());
        Ok(name)
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
