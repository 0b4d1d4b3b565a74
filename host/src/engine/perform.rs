//! What a job does. Each is one ordinary command on its instance, whose commit deletes the job.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::request::{Done, Identity, Rendered, Request, Trace};
use super::{Engine, Error};
use crate::domain::command::Command;
use crate::domain::ids::{InstanceId, TenantId};
use crate::store::jobs::Job;

/// Does what the worker claimed. Both may be asked twice for the same, after a host that died.
pub trait Perform: Send + Sync + 'static {
    /// Does the job. `Ok` says that it is done or that nothing was left to do: the worker deletes it, unless its due
    /// time has changed.
    fn job<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<(), Error>>;

    /// Looks again at who is able to work on a running instance.
    fn recheck(&self, tenant: TenantId, instance: InstanceId) -> BoxFuture<'_, Result<(), Error>>;
}

impl Perform for Engine {
    fn job<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<(), Error>> {
        // A later release may have left it; its hosts take it over when the pause after this failure is over.
        let unknown = format!("this host does not know jobs of the kind {}", job.kind);
        Box::pin(async { Err(Error::Unavailable(unknown)) })
    }

    fn recheck(&self, tenant: TenantId, instance: InstanceId) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.look_again(tenant, instance))
    }
}

impl Engine {
    /// Looks again at who is able to work on an instance. One that is gone or has ended needs no looking at.
    pub async fn look_again(&self, tenant: TenantId, instance: InstanceId) -> Result<(), Error> {
        let name = self.tenant_name(tenant).await?;
        let who = Identity::host(tenant, &name);
        let looked = self.execute(Request {
            who: &who,
            command: Command::Recheck { instance },
            if_match: None,
            idempotency: None,
            dry_run: false,
            trace: Trace::default(),
            job: None,
            render: &unread,
        });
        match looked.await {
            Ok(_) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// What a tenant is called outside. It stays so for good.
    async fn tenant_name(&self, tenant: TenantId) -> Result<Arc<str>, Error> {
        if let Some(name) = self.0.tenants.get(&tenant).await {
            return Ok(name);
        }
        let name: Arc<str> = self.0.store.tenant_name(tenant).await?.into();
        self.0.tenants.insert(tenant, name.clone()).await;
        Ok(name)
    }
}

/// The reply to a command that nobody waits for.
fn unread(_: &Done<'_>) -> Rendered {
    Rendered {
        status: 200,
        body: String::new(),
        headers: String::new(),
    }
}
