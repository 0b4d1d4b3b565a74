//! Drives one execution: answers its questions by calls of flow logic and reads of the directory, and records every evaluation.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use crate::Engine;
use crate::error::{Error, LogicError};
use wrkflw_audit::evidence::Evaluation;
use wrkflw_core::command::Command;
use wrkflw_core::execution::{
    Ask, Context, Execution, ExecutionError, Fault, LOGIC_FAULT, Outcome,
};
use wrkflw_core::ids::{InstanceId, TenantId};
use wrkflw_core::instance::Instance;
use wrkflw_core::lookup::{Findings, Lookup};
use wrkflw_core::question::Question;
use wrkflw_core::rejection::Rejection;
use wrkflw_core::version::Version;
use wrkflw_runtime::clock;
use wrkflw_sandbox::{Asking, Cause, Evaluation as Answered, GuestError, Pinned, Sandbox};
use wrkflw_store::{Store, definitions, lookups};

/// The directory as an execution reads it.
#[derive(Clone, Copy)]
pub(crate) struct DirectoryAt {
    pub(crate) tenant: TenantId,
    /// As of [`Loaded::access_mark`](wrkflw_store::load::Loaded::access_mark) in the command's load.
    pub(crate) mark: Uuid,
    pub(crate) now: Timestamp,
}

/// The result of an execution, with everything that a replay needs.
pub(crate) struct ExecutionResult {
    pub(crate) outcome: Outcome,
    pub(crate) evaluations: Vec<Evaluation>,
    pub(crate) lookups: Vec<(Lookup, Arc<Findings>)>,
    /// The ids that the execution made, in order.
    pub(crate) made_ids: Vec<Uuid>,
    pub(crate) guest_time: Duration,
    pub(crate) fuel: u64,
}

/// The next question of an execution.
enum NextQuestion {
    Nothing,
    Logic(Question, Asking),
    Directory(Lookup),
}

/// The next question. The execution is mutable because it is sent to another thread, not shared with one.
fn next_question(execution: &mut Execution<'_>) -> Result<NextQuestion, ExecutionError> {
    Ok(match execution.ask()? {
        None => NextQuestion::Nothing,
        Some(Ask::Directory(lookup)) => NextQuestion::Directory(lookup),
        Some(Ask::Logic(question)) => {
            let instance = execution.instance();
            let asking = Asking::of(&execution.facts(&instance), &question);
            drop(instance);
            NextQuestion::Logic(question, asking)
        }
    })
}

/// Runs an execution whose effect is not stored.
pub(crate) async fn execute_once(
    engine: &Engine,
    directory: DirectoryAt,
    context: Context<'_>,
    before: Option<&Instance>,
    command: &Command,
) -> Result<ExecutionResult, Error> {
    let instance = InstanceId(clock::new_id());
    execute_new(engine, instance, directory, context, before, command).await
}

/// Runs an execution. A start whose instance has no id yet makes the instance `instance`.
pub(crate) async fn execute_new(
    engine: &Engine,
    instance: InstanceId,
    directory: DirectoryAt,
    context: Context<'_>,
    before: Option<&Instance>,
    command: &Command,
) -> Result<ExecutionResult, Error> {
    let version = context.version;
    let mut made_ids = Vec::new();
    // A start without an id takes the first id for its instance.
    let mut first = begins(command).then_some(instance.0);
    let mut ids = || {
        let id = first.take().unwrap_or_else(clock::new_id);
        made_ids.push(id);
        id
    };
    let mut evaluations: Vec<Evaluation> = Vec::new();
    let mut lookups = Vec::new();
    let (mut guest_time, mut fuel) = (Duration::ZERO, 0);
    let refused = |error| refused(version, error);
    let (store, sandbox) = (&engine.0.store, &engine.0.sandbox);
    let (offload, tenant) = (&engine.0.offload, directory.tenant);
    let effort = Execution::beginning(context, before, command);
    let captured = &mut ids;
    let begin = move || {
        // Moved out of the closure, because the execution keeps it.
        let ids = captured;
        Execution::begin(context, before.cloned(), command, ids)
    };
    let mut execution = offload
        .in_place(tenant, effort, begin)
        .await?
        .map_err(refused)?;
    loop {
        let effort = execution.asking();
        let find_next = || next_question(&mut execution);
        let next = offload.in_place(tenant, effort, find_next);
        let (question, asking) = match next.await?.map_err(refused)? {
            NextQuestion::Nothing => break,
            NextQuestion::Logic(question, asking) => (question, asking),
            NextQuestion::Directory(lookup) => {
                let findings = look_up(engine, directory, &lookup).await?;
                let effort = execution.finding(&findings);
                let found = || execution.found(&findings);
                offload
                    .in_place(tenant, effort, found)
                    .await?
                    .map_err(refused)?;
                lookups.push((lookup, findings));
                continue;
            }
        };
        let survives = execution.survives_fault();
        let evaluating = ask_logic(store, sandbox, version, &question, asking, survives);
        let (evaluation, took) = evaluating.await?;
        guest_time += took;
        fuel += evaluation.fuel;
        let given = evaluation.answer.clone();
        evaluations.push(evaluation);
        let effort = execution.answering(&given);
        let answer = || execution.answer(given);
        offload
            .in_place(tenant, effort, answer)
            .await?
            .map_err(refused)?;
    }
    let outcome = execution.finish();
    Ok(ExecutionResult {
        outcome,
        evaluations,
        lookups,
        made_ids,
        guest_time,
        fuel,
    })
}

/// Calls flow logic. Also returns how long that took. If the execution survives a fault, a failure that would come again is
/// an answer.
async fn ask_logic(
    store: &Store,
    sandbox: &Sandbox,
    version: &Version,
    question: &Question,
    asking: Asking,
    survives: bool,
) -> Result<(Evaluation, Duration), Error> {
    let pinned = Pinned {
        reference: version.reference.clone(),
        digest: version.component,
    };
    let fetch = || definitions::component(store, version.component);
    let digest = asking.digest();
    let evaluating = sandbox.ask_prepared(&pinned, asking, fetch);
    let evaluated = evaluating.await.or_else(|error| {
        let answer = Answered::of_failure(digest, question, &error.cause);
        match answer.filter(|_| survives) {
            Some(answer) => {
                tracing::warn!(%error, "flow logic failed over a buffered signal");
                Ok(answer)
            }
            None => Err(misbehaved(error)),
        }
    })?;
    let evaluation = Evaluation {
        asked: evaluated.asked,
        answer: evaluated.answer,
        fuel: evaluated.fuel,
        micros: u64::try_from(evaluated.duration.as_micros()).unwrap_or(u64::MAX),
    };
    Ok((evaluation, evaluated.duration))
}

/// Reads the directory. A lasting lookup is answered from memory until the tenant's access mark changes.
async fn look_up(
    engine: &Engine,
    directory: DirectoryAt,
    lookup: &Lookup,
) -> Result<Arc<Findings>, Error> {
    let store = &engine.0.store;
    let fetch = async || lookups::look_up(store, directory.tenant, lookup, directory.now).await;
    if !lookup.is_lasting() {
        return Ok(Arc::new(fetch().await?));
    }
    let key = (directory.tenant, directory.mark, lookup.clone());
    if let Some(known) = engine.0.lookups.get(&key) {
        return Ok(known);
    }
    let found = Arc::new(fetch().await?);
    engine.0.lookups.insert(key, found.clone());
    Ok(found)
}

/// Whether the command starts an instance whose id is still to be made.
fn begins(command: &Command) -> bool {
    matches!(command, Command::Start { lineage, .. } if lineage.as_ref().is_none_or(|lineage| lineage.id.is_none()))
}

pub(crate) fn refused(version: &Version, error: ExecutionError) -> Error {
    match error {
        ExecutionError::Rejected(rejection) => rejection.into(),
        ExecutionError::Fault(Fault { function, message }) => LogicError {
            reference: version.reference.clone(),
            digest: version.component,
            function,
            code: LOGIC_FAULT,
            message,
        }
        .into(),
    }
}

fn misbehaved(error: GuestError) -> Error {
    // This is no error of the flow's author: the instance's facts exceed the limit.
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
        // While a component is compiled, many callers may get the same answer.
        if error.cause != Cause::Loading {
            tracing::error!(%error, "flow logic could not be called");
        }
        // The details are of the host: of its database or its disk.
        Error::Unavailable(match error.cause {
            Cause::Unavailable { .. } => {
                "its component could not be loaded; the host's log has the reason".to_owned()
            }
            cause => cause.to_string(),
        })
    }
}
