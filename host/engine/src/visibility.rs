//! The caller as a viewer, and whether the viewer sees an instance. The database filters lists; this module examines one
//! instance at a time.

use super::Engine;
use super::error::Error;
use super::permission::need;
use super::request::Identity;
use wrkflw_core::actor::Actor;
use wrkflw_core::ids::{InstanceId, TenantId};
use wrkflw_core::instance::Instance;
use wrkflw_core::participant::{Circle, READ_ALL};
use wrkflw_store::directory::tenants;
use wrkflw_store::load::{Loaded, Stored};
use wrkflw_store::viewer::Viewer;

impl Engine {
    /// The caller as a viewer. Refuses a caller without the permission.
    pub async fn viewing(&self, who: &Identity, permission: &'static str) -> Result<Viewer, Error> {
        let (actor, restricts) = tenants::actor(&self.0.store, &who.caller()).await?;
        need(&actor, permission)?;
        self.as_viewer(who, actor, restricts).await
    }

    /// The caller as a viewer, whatever their permissions.
    pub(super) async fn viewer(&self, who: &Identity) -> Result<Viewer, Error> {
        if who.is_host() {
            return Ok(Viewer::all(who.tenant));
        }
        let (actor, restricts) = tenants::actor(&self.0.store, &who.caller()).await?;
        self.as_viewer(who, actor, restricts).await
    }

    /// The absences are read only if the caller may need them.
    async fn as_viewer(
        &self,
        who: &Identity,
        actor: Actor,
        restricts: bool,
    ) -> Result<Viewer, Error> {
        let actor = if restricts && !actor.may(READ_ALL) {
            self.actor(who).await?
        } else {
            actor
        };
        Ok(Viewer::of(who.tenant, actor, restricts))
    }

    /// The caller of a stream as a viewer. Restricted instances that the tenant may get later are considered, too.
    pub async fn watching(
        &self,
        who: &Identity,
        permission: &'static str,
    ) -> Result<Viewer, Error> {
        let actor = self.actor(who).await?;
        need(&actor, permission)?;
        Ok(Viewer::of(who.tenant, actor, true))
    }

    /// Whether the actor sees the instance. The database is asked only if the instance itself does not show it: for managers,
    /// and for people who gave a task back.
    pub(super) async fn is_seen(
        &self,
        tenant: TenantId,
        actor: &Actor,
        instance: &Instance,
    ) -> Result<bool, Error> {
        if instance.observers.is_none() || actor.is_host() || actor.may(READ_ALL) {
            return Ok(true);
        }
        if Circle::of(instance).includes(actor, &instance.definition.key) {
            return Ok(true);
        }
        let viewer = Viewer::of(tenant, actor.clone(), true);
        Ok(self.0.store.sees(&viewer, instance.id).await?)
    }

    /// The loaded instance, if there is one and the actor sees it.
    pub(super) async fn seen(
        &self,
        tenant: TenantId,
        id: InstanceId,
        loaded: Loaded,
    ) -> Result<Stored, Error> {
        let stored = loaded.found.ok_or_else(|| missing(id))?;
        self.check_seen(tenant, &loaded.actor, &stored.instance)
            .await?;
        Ok(stored)
    }

    /// Gives the same answer for an instance that the actor does not see as for one that does not exist.
    pub(super) async fn check_seen(
        &self,
        tenant: TenantId,
        actor: &Actor,
        instance: &Instance,
    ) -> Result<(), Error> {
        if self.is_seen(tenant, actor, instance).await? {
            Ok(())
        } else {
            Err(missing(instance.id))
        }
    }
}

pub(super) fn missing(id: InstanceId) -> Error {
    Error::NotFound {
        what: "instance",
        id: id.to_string(),
    }
}
