//! The execution of a loaded command: its audit entries, its reply and the change to commit. Nothing is written here.

use std::time::Duration;

use jiff::Timestamp;

use super::executions::{self, DirectoryAt};
use super::load::LoadedCommand;
use super::{Run, reply, start_conflict};
use crate::Engine;
use crate::error::Error;
use crate::observe::Observation;
use crate::request::{Done, Rendered, Request};
use wrkflw_audit::evidence::Circumstances;
use wrkflw_audit::seal::delegation::{self, DelegationSeal};
use wrkflw_audit::seal::{Seal, SealKeys};
use wrkflw_core::audit::{Draft, Entry, Head, Stream, StreamKind};
use wrkflw_core::event::Event;
use wrkflw_core::execution::{Context, Outcome, check_dry_run, effort};
use wrkflw_core::ids::CommandId;
use wrkflw_core::instance::Instance;
use wrkflw_core::json::Json;
use wrkflw_core::participant::{self, Participant};
use wrkflw_core::rejection::{FirstSignal, Rejection};
use wrkflw_runtime::clock::{self, Clock};
use wrkflw_sandbox::Sandbox;
use wrkflw_store::commit::{Allocated, Change, Signalled};
use wrkflw_store::load::Stored;

/// An executed command.
pub(super) struct Executed {
    pub(super) rendered: Rendered,
    /// None if there is nothing to write.
    pub(super) change: Option<Change>,
}

impl Executed {
    fn unchanged(rendered: Rendered) -> Executed {
        Executed {
            rendered,
            change: None,
        }
    }
}

/// Executes a loaded command.
pub(super) async fn execute_loaded(
    engine: &Engine,
    run: Run<'_>,
    loaded: LoadedCommand,
    observation: &mut Observation,
) -> Result<Executed, Error> {
    let request = run.request;
    let command_id = CommandId(clock::new_id());
    wrkflw_fault::point("command.loaded");
    let before = loaded.stored.as_ref().map(|stored| &stored.instance);
    observation.saw(&loaded.version.reference, before);
    loaded.check_seen(request)?;
    loaded.check_permission(request)?;
    // This comes before the check of the state: the first receipt may have changed the revision, and a repeated signal is answered even
    // if the version was stopped since.
    if let Some(rendered) = counted_before(request, &loaded)? {
        return Ok(Executed::unchanged(rendered));
    }
    loaded.check_state(request)?;
    let now = now_for(&engine.0.clock, loaded.stored.as_deref());
    let context = Context {
        version: &loaded.version,
        previous: loaded.previous.as_deref(),
        tenant: &request.who.tenant_name,
        actor: &loaded.actor,
        now,
    };
    let directory = DirectoryAt {
        tenant: request.who.tenant,
        mark: loaded.access_mark,
        now,
    };
    let (new, command) = (run.new_instance, &request.command);
    let executing = executions::execute_new(engine, new, directory, context, before, command);
    let executed = executing.await?;
    observation.executed(&executed);
    let (after, events) = (&executed.outcome.instance, &executed.outcome.events);
    if request.dry_run {
        check_dry_run(before, command, events)?;
    }
    let is_host = loaded.actor.is_host();
    engine.0.budgets.check(before, after, is_host)?;
    let (sandbox, seals) = (&engine.0.sandbox, &engine.0.seals);
    let record = || {
        let entries = entries(sandbox, request, &loaded, &executed, command_id, now);
        let rendered = render(request, &loaded, after, events, &entries);
        let seals = sealed(seals, context.tenant, before, &executed.outcome, &entries);
        (entries, rendered, seals)
    };
    let effort = recording(before, &executed);
    let recorded = engine.0.offload.in_place(directory.tenant, effort, record);
    let (entries, rendered, (decision_seals, delegation_seals)) = recorded.await?;
    if request.dry_run {
        start_conflict::check_start_conflict(engine, request, after).await?;
    }
    if request.dry_run || events.is_empty() {
        return Ok(Executed::unchanged(rendered));
    }
    let keyed = |key| reply::keyed(seals, request.who, key, &rendered);
    let change = Some(Change {
        tenant: request.who.tenant,
        command: command_id,
        access_mark: loaded.cached.map(|cached| cached.access_mark),
        participants: joining(before, &executed.outcome, &loaded.actor.id),
        before: loaded.stored,
        allocations: allocated(&executed.outcome, now),
        after: executed.outcome.instance,
        signals: signalled(request, &entries).into_iter().collect(),
        entries,
        seals: decision_seals,
        delegation_seals,
        replies: request.key().map(keyed).into_iter().collect(),
        done: request.job.into_iter().collect(),
        now: now.min(engine.0.clock.now()),
    });
    Ok(Executed { rendered, change })
}

/// The audit entries of an executed command, hashed onto its stream. The first one has the evidence.
fn entries(
    sandbox: &Sandbox,
    request: &Request<'_>,
    loaded: &LoadedCommand,
    executed: &executions::ExecutionResult,
    id: CommandId,
    now: Timestamp,
) -> Vec<Entry> {
    let after = &executed.outcome.instance;
    let stream = Stream {
        tenant: request.who.tenant,
        kind: StreamKind::Instance,
        id: after.id.0,
    };
    let mut head = loaded
        .stored
        .as_ref()
        .map_or_else(|| Head::genesis(stream), |stored| stored.head.clone());
    let circumstances = Circumstances {
        id,
        command: &request.command,
        actor: &loaded.actor,
        now,
        version: &loaded.version,
        profile: sandbox.profile().digest.to_string(),
        request_id: request.trace.request_id.as_deref(),
        embedded_by: request.who.embedded_by.as_deref(),
        evaluations: &executed.evaluations,
        lookups: &executed.lookups,
        made: &executed.made_ids,
    };
    let mut evidence = Some(circumstances.evidence());
    let draft = |event: &Event, evidence| Draft {
        id: clock::new_id(),
        kind: event.kind().to_owned(),
        revision: after.revision,
        command: id,
        actor: (!loaded.actor.is_host()).then(|| loaded.actor.id.clone()),
        task: event.task(),
        payload: Json::of(event),
        evidence,
        salt: clock::random(),
        at: now,
        public: event.is_public(),
        traceparent: request.trace.traceparent.clone(),
    };
    executed
        .outcome
        .events
        .iter()
        .map(|event| head.append(stream, draft(event, evidence.take())))
        .collect()
}

/// The seals of new decisions, and of new delegations and their returns.
fn sealed(
    seals: &SealKeys,
    tenant: &str,
    before: Option<&Instance>,
    outcome: &Outcome,
    entries: &[Entry],
) -> (Vec<Seal>, Vec<DelegationSeal>) {
    let after = &outcome.instance;
    let is_delegation = |event: &Event| event.delegation().is_some();
    let delegation_seals = if outcome.events.iter().any(is_delegation) {
        let recorded = outcome.events.iter().zip(entries);
        delegation::seal(seals, tenant, after.id, recorded)
    } else {
        Vec::new()
    };
    (seals.seal(tenant, before, after), delegation_seals)
}

/// The time of a command is never before the last entry of its instance, even if this host's clock is slow.
fn now_for(clock: &Clock, stored: Option<&Stored>) -> Timestamp {
    let now = clock.now();
    stored.map_or(now, |stored| now.max(stored.instance.updated_at))
}

/// The reply to an executed command.
fn render(
    request: &Request<'_>,
    loaded: &LoadedCommand,
    instance: &Instance,
    events: &[Event],
    entries: &[Entry],
) -> Rendered {
    (request.render)(&Done {
        command: &request.command,
        actor: &loaded.actor,
        version: &loaded.version,
        instance,
        events,
        entries,
        is_seen: loaded.is_seen,
        dry_run: request.dry_run,
    })
}

/// The estimated time to make the audit entries and the reply, and to seal a decision.
fn recording(before: Option<&Instance>, executed: &executions::ExecutionResult) -> Duration {
    let after = &executed.outcome.instance;
    let grown = after
        .weight()
        .saturating_sub(before.map_or(0, Instance::weight));
    // The added data is serialized once each for entries, evidence and reply.
    effort::copying(after) + effort::serialising(3 * grown)
}

/// The reply to a signal that was received before: nothing changes. A signal of other content under the same id is refused.
fn counted_before(
    request: &Request<'_>,
    loaded: &LoadedCommand,
) -> Result<Option<Rendered>, Rejection> {
    let (Some(counted), Some(stored)) = (&loaded.signalled, &loaded.stored) else {
        return Ok(None);
    };
    let content = request.command.content();
    let differs = |known: &Vec<u8>| content.is_none_or(|content| known[..] != content);
    if let Some(key) = request.command.signal()
        && counted.content.as_ref().is_some_and(differs)
    {
        return Err(Rejection::SignalIdReused {
            trigger: key.trigger,
            id: key.id,
            first: FirstSignal {
                signal: None,
                instance: loaded.is_seen.then_some(stored.instance.id),
                event: counted.entry.filter(|_| loaded.is_seen),
                at: counted.at,
            },
        });
    }
    let rendered = render(request, loaded, &stored.instance, &[], &[]);
    Ok(Some(rendered))
}

/// The participants whom the command by this person adds: none if everybody of the tenant sees the instance.
fn joining(before: Option<&Instance>, outcome: &Outcome, by: &str) -> Vec<Participant> {
    let after = &outcome.instance;
    if after.observers.is_none() {
        return Vec::new();
    }
    participant::joining(before, after, &outcome.events, by)
}

/// The tasks that the command gave to people by choice.
fn allocated(outcome: &Outcome, at: Timestamp) -> Vec<Allocated> {
    let given = outcome.events.iter().filter_map(Event::allocation);
    given
        .map(|(state, person)| Allocated {
            definition: outcome.instance.definition.key.clone(),
            state: state.to_owned(),
            person: person.to_owned(),
            at,
        })
        .collect()
}

/// The signal to record, if the command is one.
fn signalled(request: &Request<'_>, entries: &[Entry]) -> Option<Signalled> {
    let received = |entry: &&Entry| entry.draft.kind == "SIGNAL_RECEIVED";
    Some(Signalled {
        key: request.command.signal()?,
        sender: request.who.subject.clone(),
        content: request.command.content()?,
        entry: entries.iter().find(received).map(|entry| entry.draft.id),
    })
}
