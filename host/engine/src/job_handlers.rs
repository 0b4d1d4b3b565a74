//! What a job does. Each is one ordinary command on its instance, whose commit deletes the job.

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

/// When a job on a suspended instance is looked at again.
pub(super) const REST: Duration = Duration::from_secs(15);

/// Does what the worker claimed. Both may be asked twice for the same, after a host that died.
pub trait JobHandlers: Send + Sync + 'static {
    /// Does the job. `Ok` says that it is done or that nothing was left to do: the worker deletes it, unless its due
    /// time has changed.
    fn job<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<(), Error>>;

    /// Does one item of an operation. Errors pass: it is tried again.
    fn item<'a>(
        &'a self,
        batch: &'a Batch,
        instance: InstanceId,
    ) -> BoxFuture<'a, Result<Outcome, Error>>;

    /// Looks again at who is able to work on a running instance.
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
            "reassess_instance" => {
                let instance = job.instance;
                let command = Command::Reassessment { instance };
                rested(self.act(job.tenant, command, Some(job.id)).await)
            }
            // A later release may have left it; its hosts take it over when the pause after this failure is over.
            unknown => {
                let detail = format!("this host does not know jobs of the kind {unknown}");
                Err(StoreError::inconsistent("job", job.id, detail).into())
            }
        }
    }

    /// A deadline has passed.
    async fn pass(&self, job: &Job) -> Result<(), Error> {
        let command = Command::Deadline {
            instance: job.instance,
            deadline: DeadlineId(job.id),
            due_at: payload::<DueAt>(job)?.due_at,
        };
        rested(self.act(job.tenant, command, Some(job.id)).await)
    }

    /// Looks again at who is able to work on an instance. One that is gone or has ended needs no looking at; one whose
    /// version is stopped, just now, is looked at when that is resumed.
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

    /// Carries out a command of the host's own. What is gone or has ended needs nothing more.
    pub(super) async fn act(
        &self,
        tenant: TenantId,
        command: Command,
        job: Option<Uuid>,
    ) -> Result<(), Error> {
        let name = self.tenant_name(tenant).await?;
        let who = Identity::host(tenant, &name);
        let done = self.execute(Request {
            who: &who,
            command,
            if_match: None,
            idempotency: None,
            dry_run: false,
            trace: Trace::default(),
            job,
            render: &Unread::render,
        });
        match done.await {
            Ok(_) | Err(Error::NotFound { .. } | Error::Rejected(Rejection::Ended { .. })) => {
                Ok(())
            }
            // A suspension among them: what others tell an instance waits until it goes on.
            Err(error) => Err(error),
        }
    }

    /// What a tenant is called outside. It stays so for good.
    pub(super) async fn tenant_name(&self, tenant: TenantId) -> Result<Arc<str>, Error> {
        if let Some(name) = self.0.tenants.get(&tenant).await {
            return Ok(name);
        }
        let name: Arc<str> = self.0.store.tenant_name(tenant).await?.into();
        self.0.tenants.insert(tenant, name.clone()).await;
        Ok(name)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DueAt {
    due_at: Timestamp,
}

/// A suspended instance needs nothing either: when it goes on, its deadlines are left anew, and all is looked at again.
fn rested(done: Result<(), Error>) -> Result<(), Error> {
    match done {
        Err(Error::Rejected(Rejection::Suspended { .. })) => Ok(()),
        done => done,
    }
}

/// What the job says.
pub(super) fn payload<T: DeserializeOwned>(job: &Job) -> Result<T, Error> {
    serde_json::from_str(job.payload.as_str())
        .map_err(|error| StoreError::inconsistent("job", job.id, error).into())
}

/// The reply to a command that nobody waits for.
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
