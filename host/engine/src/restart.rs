//! Restarts an ended instance: starts a new one about the same entity, in the active version.

use super::Engine;
use super::error::Error;
use super::pipeline::load;
use super::request::Identity;
use super::visibility::missing;
use wrkflw_core::command::{Command, Lineage};
use wrkflw_core::ids::InstanceId;
use wrkflw_core::instance::Instance;
use wrkflw_core::json::Json;
use wrkflw_core::rejection::Rejection;
use wrkflw_store::load::LoadOptions;

/// The command that restarts an instance, with this data or with the data at its end. An ended instance stays ended, so the
/// check that it has ended still holds when the command is executed. `key` is the idempotency key of the request.
pub async fn successor(
    engine: &Engine,
    who: &Identity,
    id: InstanceId,
    data: Option<Json>,
    (if_match, key): (Option<u32>, Option<&str>),
) -> Result<Command, Error> {
    let options = LoadOptions {
        key,
        ..LoadOptions::at(engine.0.clock.now())
    };
    let loaded = load::loaded(engine, &who.caller(), id, options).await?;
    let instance = loaded.found.ok_or_else(|| missing(id))?.instance;
    let command = start_after(&instance, data);
    engine
        .check_seen(who.tenant, &loaded.actor, &instance)
        .await?;
    // A caller without the permission learns nothing about the instance: the execution refuses the command and records that.
    if loaded.actor.may(command.permission()) {
        has_ended(&instance)?;
        match if_match {
            // The execution repeats a stored reply. A comment may have changed the revision since.
            Some(given) if given != instance.revision && loaded.reply.is_none() => {
                let current = instance.revision;
                return Err(Rejection::Stale { given, current }.into());
            }
            Some(_) | None => {}
        }
    }
    Ok(command)
}

/// Refuses an instance that has not ended.
pub(super) fn has_ended(instance: &Instance) -> Result<(), Rejection> {
    match instance.status.ended_at() {
        Some(_) => Ok(()),
        None => Err(Rejection::not_now(
            "instance_running",
            format!("instance {} has not ended", instance.id),
        )),
    }
}

/// A start whose requesters are the actor and the requesters of the predecessor.
pub(super) fn start_after(predecessor: &Instance, data: Option<Json>) -> Command {
    let lineage = Lineage {
        id: None,
        initiator: None,
        predecessor: Some(predecessor.id),
        parent: None,
        requesters: predecessor.requesters.clone(),
    };
    Command::Start {
        definition: predecessor.definition.key.clone(),
        entity: predecessor.entity.clone(),
        data: data.unwrap_or_else(|| predecessor.data.clone()),
        lineage: Some(Box::new(lineage)),
    }
}
