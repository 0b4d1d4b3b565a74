//! Drives one turn: asks flow logic what the turn wants to know, and keeps a record of every evaluation.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use super::Engine;
use super::error::{Error, LogicError};
use super::evidence::Evaluation;
use crate::clock;
use crate::domain::audit::sha256;
use crate::domain::command::Command;
use crate::domain::ids::{InstanceId, TenantId};
use crate::domain::instance::Instance;
use crate::domain::json::Json;
use crate::domain::lookup::{Findings, Lookup};
use crate::domain::question::Question;
use crate::domain::rejection::Rejection;
use crate::domain::turn::{Ask, Context, Fault, Outcome, Turn, TurnError};
use crate::domain::version::Version;
use crate::wasm::{Cause, GuestError, Pinned};

/// The directory that a turn asks.
#[derive(Clone, Copy)]
pub(super) struct Directory {
    pub(super) tenant: TenantId,
    /// As of [`Loaded::standing`](crate::store::load::Loaded::standing), which the command started from.
    pub(super) mark: Uuid,
    pub(super) now: Timestamp,
}

/// What a turn came to, with all that a replay needs.
pub(super) struct Turned {
    pub(super) outcome: Outcome,
    pub(super) evaluations: Vec<Evaluation>,
    pub(super) lookups: Vec<(Lookup, Findings)>,
    /// The ids that the turn made, in their order.
    pub(super) made: Vec<Uuid>,
    pub(super) guest_time: Duration,
    pub(super) fuel: u64,
}

impl Engine {
    /// A turn whose effect nobody keeps.
    pub(super) async fn turn(
        &self,
        ground: Directory,
        context: Context<'_>,
        before: Option<Instance>,
        command: &Command,
    ) -> Result<Turned, Error> {
        let made = InstanceId(clock::new_id());
        self.turn_making(made, ground, context, before, command)
            .await
    }

    /// A turn. Where it is a start that has not got an id from elsewhere, it makes the instance of this one.
    pub(super) async fn turn_making(
        &self,
        instance: InstanceId,
        ground: Directory,
        context: Context<'_>,
        before: Option<Instance>,
        command: &Command,
    ) -> Result<Turned, Error> {
        let version = context.version;
        let mut made = Vec::new();
        // The first that such a start asks for is its instance's.
        let mut first = begins(command).then_some(instance.0);
        let mut ids = || {
            let id = first.take().unwrap_or_else(clock::new_id);
            made.push(id);
            id
        };
        let mut evaluations = Vec::new();
        let mut lookups = Vec::new();
        let (mut guest_time, mut fuel) = (Duration::ZERO, 0);
        let refused = |error| refused(version, error);
        let (offload, tenant) = (&self.0.offload, ground.tenant);
        let effort = Turn::beginning(context, before.as_ref(), command);
        let begin = || Turn::begin(context, before, command, &mut ids);
        let mut turn = offload
            .in_place(tenant, effort, begin)
            .await?
            .map_err(refused)?;
        while let Some(ask) = turn.ask().map_err(refused)? {
            let question = match ask {
                Ask::Logic(question) => question,
                Ask::Directory(lookup) => {
                    let findings = self.look_up(ground, &lookup).await?;
                    let effort = turn.finding(&findings);
                    let found = || turn.found(&findings);
                    offload
                        .in_place(tenant, effort, found)
                        .await?
                        .map_err(refused)?;
                    lookups.push((lookup, Findings::clone(&findings)));
                    continue;
                }
            };
            let (evaluation, took) = self.ask_logic(version, &mut turn, question).await?;
            guest_time += took;
            fuel += evaluation.fuel;
            let given = evaluation.answer.clone();
            evaluations.push(evaluation);
            let effort = turn.answering(&given);
            let answer = || turn.answer(given);
            offload
                .in_place(tenant, effort, answer)
                .await?
                .map_err(refused)?;
        }
        let outcome = turn.finish();
        Ok(Turned {
            outcome,
            evaluations,
            lookups,
            made,
            guest_time,
            fuel,
        })
    }

    /// Asks flow logic about the instance as the turn has it so far; tells how long that took, too.
    async fn ask_logic(
        &self,
        version: &Version,
        // Mutable, since a turn may be sent to another thread and not shared with one.
        turn: &mut Turn<'_>,
        question: Question,
    ) -> Result<(Evaluation, Duration), Error> {
        let pinned = Pinned {
            reference: version.reference.clone(),
            digest: version.component,
        };
        let instance = turn.instance();
        let facts = turn.facts(&instance);
        let facts_digest = sha256(Json::of(&facts).as_str().as_bytes());
        let fetch = || self.0.store.component(version.component);
        let asked = self.0.sandbox.ask(&pinned, facts, &question, fetch);
        let evaluated = asked.await.map_err(misbehaved)?;
        let evaluation = Evaluation {
            question,
            facts_digest,
            answer: evaluated.answer,
            fuel: evaluated.fuel,
            micros: u64::try_from(evaluated.duration.as_micros()).unwrap_or(u64::MAX),
        };
        Ok((evaluation, evaluated.duration))
    }

    /// Asks the directory, unless it was asked the same and has not changed since.
    async fn look_up(&self, ground: Directory, lookup: &Lookup) -> Result<Arc<Findings>, Error> {
        let ask = async || {
            self.0
                .store
                .look_up(ground.tenant, lookup, ground.now)
                .await
        };
        if !lookup.is_lasting() {
            return Ok(Arc::new(ask().await?));
        }
        let key = (ground.tenant, ground.mark, lookup.clone());
        if let Some(known) = self.0.lookups.get(&key).await {
            return Ok(known);
        }
        let found = Arc::new(ask().await?);
        self.0.lookups.insert(key, found.clone()).await;
        Ok(found)
    }
}

/// Whether the command begins an instance whose id is still to be made.
fn begins(command: &Command) -> bool {
    matches!(command, Command::Start { lineage, .. } if lineage.as_ref().is_none_or(|lineage| lineage.id.is_none()))
}

fn refused(version: &Version, error: TurnError) -> Error {
    match error {
        TurnError::Rejected(rejection) => rejection.into(),
        TurnError::Fault(Fault { function, message }) => LogicError {
            reference: version.reference.clone(),
            digest: version.component,
            function,
            code: "logic_fault",
            message,
        }
        .into(),
    }
}

fn misbehaved(error: GuestError) -> Error {
    // Its author did nothing wrong: there is more to be told than fits.
    if let Cause::InputTooLarge { .. } = error.cause {
        return Rejection::not_now("limit_reached", error.cause.to_string()).into();
    }
    if error.cause.is_guests_fault() {
        let message = error.cause.to_string();
        let code = error.code();
        LogicError {
            reference: error.pinned.reference,
            digest: error.pinned.digest,
            function: error.function,
            code,
            message,
        }
        .into()
    } else {
        tracing::error!(%error, "flow logic could not be asked");
        Error::Unavailable(error.cause.to_string())
    }
}
