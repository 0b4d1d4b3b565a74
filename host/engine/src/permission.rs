//! Checks the permission of a caller, and notes who makes a change and when. Use cases begin with this.

use super::error::Error;
use super::request::Identity;
use wrkflw_core::actor::Actor;
use wrkflw_core::ids::CommandId;
use wrkflw_runtime::clock::{self, Clock};
use wrkflw_store::Store;
use wrkflw_store::directory::tenants;
use wrkflw_store::streams::Note;

/// Refuses a caller without the permission.
pub(super) async fn permit(
    store: &Store,
    who: &Identity,
    permission: &'static str,
) -> Result<(), Error> {
    permit_all(store, who, &[permission]).await
}

/// Refuses a caller without one of the permissions, which are read at once. It names the first that is missing.
pub(super) async fn permit_all(
    store: &Store,
    who: &Identity,
    permissions: &[&'static str],
) -> Result<(), Error> {
    let (actor, _) = tenants::actor(store, &who.caller()).await?;
    for &permission in permissions {
        need(&actor, permission)?;
    }
    Ok(())
}

/// Refuses an actor without the permission.
pub(super) fn need(actor: &Actor, permission: &'static str) -> Result<(), Error> {
    let may = actor.may(permission).then_some(());
    may.ok_or(Error::Permission(permission))
}

/// The actor and the time of a change, for the audit.
pub(super) fn note<'a>(clock: &Clock, actor: &'a str) -> Note<'a> {
    Note {
        id: clock::new_id(),
        command: CommandId(clock::new_id()),
        actor,
        at: clock.now(),
        salt: clock::random(),
    }
}
