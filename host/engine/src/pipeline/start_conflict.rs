//! Start conflicts: an instance about the same entity runs already. The database lets one of several starts through. This module
//! tells the others which instance runs. A migration to a version that is sole about its entity may conflict as well.

use super::AttemptResult;
use super::load::{self, NO_INSTANCE};
use crate::Engine;
use crate::error::Error;
use crate::request::{Identity, Request};
use wrkflw_core::command::Command;
use wrkflw_core::instance::Instance;
use wrkflw_core::rejection::{Rejection, Started};
use wrkflw_store::feed;
use wrkflw_store::load::LoadOptions;
use wrkflw_store::starts::{self, Claim, Running};

/// Checks a command that is not committed, such as a dry run, by its result: the database does not check it.
pub(super) async fn check_start_conflict(
    engine: &Engine,
    request: &Request<'_>,
    after: &Instance,
) -> Result<(), Error> {
    let conflicts = match &request.command {
        Command::Start { .. } => true,
        Command::Migrate { .. } => after.sole,
        _ => false,
    };
    if conflicts {
        check_entity_is_free(engine, request.who, &Claim::of(after)).await
    } else {
        Ok(())
    }
}

/// Refuses if another instance is in the way.
pub(crate) async fn check_entity_is_free(
    engine: &Engine,
    who: &Identity,
    claim: &Claim,
) -> Result<(), Error> {
    match starts::in_the_way(&engine.0.store, who.tenant, claim).await? {
        Some(running) => Err(already_running(engine, who, running).await?),
        None => Ok(()),
    }
}

/// The error that another instance runs. Only callers who may read instances see who started it and when.
async fn already_running(engine: &Engine, who: &Identity, found: Running) -> Result<Error, Error> {
    let started = match engine.permit(who, "instance:read").await {
        Ok(()) => Some(Started {
            by: found.initiator,
            at: found.started_at,
        }),
        Err(Error::Permission(_)) => None,
        Err(error) => return Err(error),
    };
    let viewer = engine.viewer(who).await?;
    let is_seen = engine.0.store.sees(&viewer, found.id).await?;
    let (running, started) = (is_seen.then_some(found.id), started.filter(|_| is_seen));
    Ok(Rejection::AlreadyRunning { running, started }.into())
}

/// Handles a commit result `Taken`. The command is refused if another instance runs about the entity or has the id that a
/// start chose. If the idempotency key belongs to another command, the next attempt finds its reply. `claim` is of starts, and
/// of changes of instances that are sole about their entity.
pub(super) async fn start_conflict(
    engine: &Engine,
    request: &Request<'_>,
    claim: Option<Claim>,
) -> Result<AttemptResult, Error> {
    let tenant = request.who.tenant;
    if let (Command::Migrate { .. }, Some(claim)) = (&request.command, &claim) {
        check_entity_is_free(engine, request.who, claim).await?;
    }
    if let (Command::Start { lineage, .. }, Some(claim)) = (&request.command, &claim) {
        let chosen = lineage.as_ref().and_then(|lineage| lineage.id);
        if let Some(running) = chosen
            && feed::knows_instance(&engine.0.store, tenant, running.0).await?
        {
            let (running, started) = (Some(running), None);
            return Err(Rejection::AlreadyRunning { running, started }.into());
        }
        let key = request.idempotency.as_ref().map(|key| key.key.as_str());
        let options = LoadOptions {
            key,
            ..LoadOptions::at(engine.0.clock.now())
        };
        let who = request.who.caller();
        let loaded = load::loaded(engine, &who, NO_INSTANCE, options).await?;
        if loaded.reply.is_none() {
            check_entity_is_free(engine, request.who, claim).await?;
        }
    }
    Ok(AttemptResult::Again)
}
