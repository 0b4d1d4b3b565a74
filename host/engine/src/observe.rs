//! The telemetry of commands. Each command is counted once and logged once. A command of the host that changed nothing is only counted.

use std::time::{Duration, Instant};

use super::Engine;
use super::error::Error;
use super::pipeline::executions::ExecutionResult;
use super::request::{Reply, Request, Trace};
use wrkflw_core::actor::HOST;
use wrkflw_core::audit::Entry;
use wrkflw_core::command::Command;
use wrkflw_core::ids::{InstanceId, VersionRef};
use wrkflw_core::instance::Instance;
use wrkflw_core::rejection::Rejection;
use wrkflw_runtime::clock;
use wrkflw_store::attempts::{self, NewRefusedAttempt};

/// Counts the states that nobody is eligible for.
pub(super) fn committed(entries: &[Entry]) {
    let stuck = entries
        .iter()
        .filter(|entry| entry.draft.kind == "STATE_UNASSIGNABLE");
    let stuck = u64::try_from(stuck.count()).expect("a small number");
    if stuck > 0 {
        metrics::counter!("wrkflw_states_unassignable_total").increment(stuck);
    }
}

/// Collects the fields of the log line.
pub(super) struct Observation {
    begun: Instant,
    action: &'static str,
    actor: String,
    tenant: String,
    trace: Trace,
    definition: Option<VersionRef>,
    /// The key that a start names, whether or not there is such a definition.
    requested_definition: Option<String>,
    instance: Option<String>,
    from: Vec<String>,
    to: Vec<String>,
    guest_time: Duration,
    fuel: u64,
    dry_run: bool,
    /// Whether the command was executed, and there was nothing to change.
    unchanged: bool,
    reported: bool,
}

/// Reports a command that panicked, or whose caller went away.
impl Drop for Observation {
    fn drop(&mut self) {
        if !self.reported {
            let error = "dropped before its end; the audit shows whether it was committed";
            self.report("system_error", false, Some(error.to_owned()));
        }
    }
}

impl Observation {
    pub(super) fn begin(request: &Request<'_>) -> Observation {
        let requested_definition = match &request.command {
            Command::Start { definition, .. } => Some(definition.clone()),
            _ => None,
        };
        Observation {
            begun: Instant::now(),
            action: request.command.action(),
            actor: request.who.subject.clone(),
            tenant: request.who.tenant_name.clone(),
            trace: request.trace.clone(),
            definition: None,
            requested_definition,
            instance: None,
            from: Vec::new(),
            to: Vec::new(),
            guest_time: Duration::ZERO,
            fuel: 0,
            dry_run: request.dry_run,
            unchanged: false,
            reported: false,
        }
    }

    /// Notes the instance before anything is read.
    pub(super) fn about(&mut self, instance: Option<InstanceId>) {
        self.instance = instance.map(|instance| instance.to_string());
    }

    pub(super) fn saw(&mut self, definition: &VersionRef, instance: Option<&Instance>) {
        self.definition = Some(definition.clone());
        self.from = instance.map(states).unwrap_or_default();
        self.to.clone_from(&self.from);
    }

    pub(super) fn executed(&mut self, executed: &ExecutionResult) {
        let after = &executed.outcome.instance;
        self.instance = Some(after.id.to_string());
        self.to = match after.status.ended_at() {
            Some(_) => after
                .past
                .last()
                .map(|past| past.state.name.clone())
                .into_iter()
                .collect(),
            None => states(after),
        };
        self.unchanged = executed.outcome.events.is_empty();
        self.guest_time = executed.guest_time;
        self.fuel = executed.fuel;
    }

    pub(super) fn end(mut self, result: &Result<Reply, Error>) {
        let outcome = result.as_ref().map_or_else(Error::outcome, |_| "success");
        let replayed = result.as_ref().is_ok_and(|reply| reply.replayed);
        let error = result.as_ref().err().map(ToString::to_string);
        self.report(outcome, replayed, error);
    }

    fn report(&mut self, outcome: &'static str, replayed: bool, error: Option<String>) {
        self.reported = true;
        self.trace.tell();
        // A key without a definition is text of the caller. As labels, such keys would have no bound.
        let definition = self
            .definition
            .as_ref()
            .map_or("", |definition| definition.key.as_str());
        let elapsed = self.begun.elapsed();
        metrics::counter!("wrkflw_transitions_total",
            "definition" => definition.to_owned(), "action" => self.action, "outcome" => outcome)
        .increment(1);
        metrics::histogram!("wrkflw_transition_duration_seconds", "definition" => definition.to_owned(), "action" => self.action)
            .record(elapsed.as_secs_f64());
        // One change of the directory reassesses many instances, and few of them change.
        if self.actor == HOST && self.unchanged && outcome == "success" {
            return;
        }
        tracing::info!(
            target: "wrkflw::command",
            tenant = self.tenant,
            instance = self.instance,
            definition = self.definition.as_ref().map(|definition| definition.key.clone()).or_else(|| self.requested_definition.clone()),
            version = self.definition.as_ref().map(|definition| definition.version),
            action = self.action,
            from = self.from.join(","),
            to = self.to.join(","),
            actor = self.actor,
            durationMs = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            guestUs = u64::try_from(self.guest_time.as_micros()).unwrap_or(u64::MAX),
            fuel = self.fuel,
            outcome,
            replayed,
            dryRun = self.dry_run,
            requestId = self.trace.request_id,
            traceId = self.trace.id(),
            error,
            "{} {outcome}",
            self.action
        );
    }
}

fn states(instance: &Instance) -> Vec<String> {
    instance
        .active
        .iter()
        .map(|state| state.name.clone())
        .collect()
}

/// Counts a refused command by its reason, and records one that the actor was not allowed to give. Dry runs, commands of the host
/// itself, failures of the host and questions about a key are not counted as refusals. A failure to record it is only logged, so that
/// the caller still gets the answer.
pub(super) async fn note_refusal(engine: &Engine, request: &Request<'_>, error: &Error) {
    let Some(reason) = error.reason() else {
        return;
    };
    if request.dry_run || request.who.is_host() || asks_about_key(request, error) {
        return;
    }
    engine
        .0
        .post_commit
        .counts
        .refused(request.who.tenant, reason);
    let code = match error {
        Error::Rejected(rejection) => rejection.forbids(),
        Error::Permission(_) => Some("permission_missing"),
        _ => None,
    };
    let Some(code) = code else {
        return;
    };
    let attempt = NewRefusedAttempt {
        id: clock::new_id(),
        at: engine.0.clock.now(),
        actor: &request.who.subject,
        action: request.command.action(),
        instance: about(&request.command),
        task: request.command.task(),
        code,
        detail: &error.to_string(),
        request_id: request.trace.request_id.as_deref(),
    };
    if let Err(error) = attempts::note(&engine.0.store, request.who.tenant, &attempt).await {
        tracing::error!(%error, "a refused attempt could not be recorded");
    }
}

/// Whether this request only asks whether a key has a reply, as the console does. No instance has revision 0, so the command can change
/// nothing, like a dry run. A missing permission is another answer, so that nobody can hide an attempt in this way.
fn asks_about_key(request: &Request<'_>, error: &Error) -> bool {
    let answers = matches!(
        error,
        Error::KeyReused | Error::Rejected(Rejection::Stale { .. })
    );
    request.if_match == Some(0) && answers
}

/// The instance of a refused attempt. For a restart, the ended one.
fn about(command: &Command) -> Option<InstanceId> {
    match command {
        Command::Start { lineage, .. } => lineage.as_ref().and_then(|from| from.predecessor),
        _ => command.instance(),
    }
}
