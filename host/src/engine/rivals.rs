//! Starts that meet another running instance about the same entity. Of several, the database's index lets one through;
//! here the others learn which.

use super::Engine;
use super::error::Error;
use super::execute::Attempt;
use super::request::{Identity, Request};
use crate::domain::command::Command;
use crate::domain::rejection::{Rejection, Started};
use crate::store::starts::Running;

impl Engine {
    /// A start that is not committed does not meet the index that settles it, so it looks.
    pub(super) async fn would_start(&self, request: &Request<'_>) -> Result<(), Error> {
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

    /// That another instance runs; by whom and when it was started is told to those who may read instances.
    pub(super) async fn already_running(
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

    /// A start, or a key, was somebody else's: the reply to the key is found when looking again; another running
    /// instance is a conflict.
    pub(super) async fn who_took(&self, request: &Request<'_>) -> Result<Attempt, Error> {
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
            let replied = self
                .0
                .store
                .load_start(&request.who.principalship(), definition, key)
                .await?
                .reply
                .is_some();
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
