//! What a job does. Each is one ordinary command on its instance, whose commit deletes the job.

use futures_util::future::BoxFuture;

use super::{Engine, Error};
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
        let unable = format!("this host cannot look again at {instance} of tenant {tenant}");
        Box::pin(async { Err(Error::Unavailable(unable)) })
    }
}
