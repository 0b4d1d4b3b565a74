//! Starts that meet another running instance about the same entity. Of several, the database's index lets one through;
//! here the others learn which.

use super::Engine;
use super::error::Error;
use super::execute::Attempt;
use super::request::Request;
use crate::domain::command::Command;
use crate::domain::rejection::Rejection;

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
            Some(running) => Err(Rejection::AlreadyRunning { running }.into()),
            None => Ok(()),
        }
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
                return Err(Rejection::AlreadyRunning { running }.into());
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
                return Err(Rejection::AlreadyRunning { running }.into());
            }
        }
        Ok(Attempt::Again)
    }
}
