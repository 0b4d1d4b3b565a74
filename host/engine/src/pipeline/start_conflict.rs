//! Start conflicts: an instance about the same entity runs already. A unique index of the database lets one of several starts
//! through. This module tells the others which instance runs.

use super::Attempt;
use crate::Engine;
use crate::error::Error;
use crate::pipeline::load::NO_INSTANCE;
use crate::request::{Identity, Request};
use wrkflw_core::command::Command;
use wrkflw_core::rejection::{Rejection, Started};
use wrkflw_store::load::Asked;
use wrkflw_store::starts::Running;

impl Engine {
    /// Checks a start that is not committed, such as a dry run: the database's index does not check it.
    pub(super) async fn check_start_conflict(&self, request: &Request<'_>) -> Result<(), Error> {
        let Command::Start {
            definition, entity, ..
        } = &request.command
        else {
            return Ok(());
        };
        let store = &self.0.store;
        let tenant = request.who.tenant;
        match store
            .running(tenant, definition, &entity.kind, &entity.id)
            .await?
        {
            Some(running) => Err(self.already_running(request.who, running).await?),
            None => Ok(()),
        }
    }

    /// The error that another instance runs. Only callers who may read instances see who started it and when.
    pub(crate) async fn already_running(
        &self,
        who: &Identity,
        found: Running,
    ) -> Result<Error, Error> {
        let started = match self.permit(who, "instance:read").await {
            Ok(()) => Some(Started {
                by: found.initiator,
                at: found.started_at,
            }),
            Err(Error::Permission(_)) => None,
            Err(error) => return Err(error),
        };
        let running = found.id;
        Ok(Rejection::AlreadyRunning { running, started }.into())
    }

    /// Handles a commit result `Taken`. The start is refused if another instance runs about the entity or has the id that the
    /// start chose. If the idempotency key belongs to another command, the next attempt finds its reply.
    pub(super) async fn start_conflict(&self, request: &Request<'_>) -> Result<Attempt, Error> {
        let tenant = request.who.tenant;
        if let Command::Start {
            definition,
            entity,
            lineage,
            ..
        } = &request.command
        {
            let chosen = lineage.as_ref().and_then(|lineage| lineage.id);
            if let Some(running) = chosen
                && self.0.store.knows_instance(tenant, running.0).await?
            {
                let started = None;
                return Err(Rejection::AlreadyRunning { running, started }.into());
            }
            let key = request.idempotency.as_ref().map(|key| key.key.as_str());
            let asked = Asked {
                key,
                ..Asked::at(self.0.clock.now())
            };
            let who = request.who.principalship();
            let loaded = self.loaded(&who, NO_INSTANCE, asked).await?;
            let replied = loaded.reply.is_some();
            let running = self
                .0
                .store
                .running(tenant, definition, &entity.kind, &entity.id)
                .await?;
            if let (false, Some(running)) = (replied, running) {
                return Err(self.already_running(request.who, running).await?);
            }
        }
        Ok(Attempt::Again)
    }
}
