//! Service states: the call that the flow requests, and its result.
//!
//! A commit only records the call. The host makes the call afterwards, outside of any command. It reports the reply, or the
//! failure of the last attempt, by a command of its own. A report about a state instance that has ended changes nothing.

use super::enter::{ENTER, check_subscriptions};
use super::fault::{ExecutionError, Fault};
use super::{Execution, blind, deadline, operation, overdue, rules, savepoint, state_instance_of};
use crate::answer::{Reason, ServiceCall, Violation};
use crate::check::names::is_name;
use crate::command::Command;
use crate::event::Event;
use crate::graph::{FiredBy, Graph, Transition};
use crate::ids::StateId;
use crate::instance::{CallResult, OpenCall, StateInstance};
use crate::json::Json;
use crate::lookup::Findings;
use crate::question::Source;
use crate::rejection::Rejection;
use crate::shown::DATA_BYTES_MAX;

/// The longest time of one attempt, in seconds. A worker holds a place for the call during this time.
pub const TIMEOUT_SECONDS_MAX: u32 = 120;
/// The code of a reply that came after its state had ended.
pub(crate) const TOO_LATE: &str = "too_late";
/// How often a call may be tried again, and the longest pause before that, in seconds: 7 days.
const RETRIES_MAX: usize = 10;
const PAUSE_SECONDS_MAX: u32 = 7 * 24 * 60 * 60;

/// Checks the call that `enter` answers for a service state.
pub(super) fn check(graph: &Graph, state: &str, call: &ServiceCall) -> Result<(), Fault> {
    let refuse = |message: String| Err(Fault::new(ENTER, message));
    if !is_name(&call.service) {
        let name = call.service.chars().take(100).collect::<String>();
        return refuse(format!(
            "{state} calls {name:?}, which is no name of a service"
        ));
    }
    request_of(&call.request)?;
    if !(1..=TIMEOUT_SECONDS_MAX).contains(&call.timeout) {
        return refuse(format!(
            "an attempt of {state} may take 1 to {TIMEOUT_SECONDS_MAX} seconds, not {}",
            call.timeout
        ));
    }
    let count = call.retries.len();
    if count > RETRIES_MAX {
        return refuse(format!(
            "{state} calls its service again {RETRIES_MAX} times at most, not {count}"
        ));
    }
    let mut pauses = call.retries.iter();
    if let Some(pause) = pauses.find(|pause| !(1..=PAUSE_SECONDS_MAX).contains(*pause)) {
        return refuse(format!(
            "a pause between the attempts of {state} has 1 to {PAUSE_SECONDS_MAX} seconds, not {pause}"
        ));
    }
    for (trigger, by, what) in [
        (&call.on_reply, FiredBy::Reply, "reply"),
        (&call.on_failure, FiredBy::Failure, "failure"),
    ] {
        let way = graph.transition(state, trigger);
        if !way.is_some_and(|way| way.by.contains(&by)) {
            let trigger = trigger.chars().take(100).collect::<String>();
            return refuse(format!(
                "the {what} of the service of {state} fires {trigger:?}, which is declared for no {what} there"
            ));
        }
    }
    deadline::check_without_tasks(graph, state, &call.deadlines)?;
    check_subscriptions(graph, state, &call.subscriptions)
}

/// Enters a service state after the checks.
pub(super) fn enter(
    execution: &mut Execution<'_>,
    mut state_instance: StateInstance,
    call: ServiceCall,
    findings: &Findings,
) -> Result<(), ExecutionError> {
    let from = deadline::counting_from(&execution.instance, execution.context.now);
    let ids = &mut *execution.ids;
    state_instance.deadlines = deadline::open(ids, from, &call.deadlines, false, findings)?;
    state_instance.due_at = deadline::earliest(&state_instance.deadlines);
    state_instance.subscriptions = call.subscriptions;
    state_instance.call = Some(OpenCall {
        service: call.service.clone(),
        request: request_of(&call.request)?,
        timeout: call.timeout,
        retries: call.retries,
        on_reply: call.on_reply,
        on_failure: call.on_failure,
        result: None,
    });
    let state = state_instance.id;
    blind::emit_entered(execution, state_instance);
    execution.emit(Event::ServiceRequested {
        state,
        service: call.service,
    });
    execution.dropping.push(state);
    Ok(())
}

/// Takes the report that a service answered, or that its last attempt failed. A reply that does not fit the transition is
/// refused, and the instance does not change. A repeated report changes nothing. A reply to a state that has ended is recorded.
pub(super) fn call_ended(
    execution: &mut Execution<'_>,
    state: StateId,
    command: &Command,
) -> Result<(), ExecutionError> {
    operation::not_ended(&execution.instance)?;
    let mut active = execution.instance.active.iter();
    let found = active.find(|state_instance| state_instance.id == state);
    let Some(open) = found.and_then(StateInstance::open_call).cloned() else {
        record_late_reply(execution, state, command);
        return Ok(());
    };
    let (result, output) = result_of(command);
    let service = open.service;
    let trigger = if let Some(output) = output {
        let name = &state_instance_of(&execution.instance, state).name;
        let graph = &execution.context.version.graph;
        check_reply(graph.transition(name, &open.on_reply), output)?;
        execution.emit(Event::ServiceAnswered {
            state,
            service: service.clone(),
            result: result.clone(),
        });
        open.on_reply
    } else {
        execution.emit(Event::ServiceFailed {
            state,
            service: service.clone(),
            result: result.clone(),
        });
        open.on_failure
    };
    let input = output.cloned().unwrap_or_else(Json::empty);
    let source = Source::Service { service, result };
    overdue::fire(execution, state, trigger, source, input);
    Ok(())
}

/// Refuses a reply that does not fit the transition.
fn check_reply(way: Option<&Transition>, output: &Json) -> Result<(), Rejection> {
    let refuse = |code: &str, message: String| {
        Err(Rejection::Invalid(vec![Violation {
            expected: None,
            field: "/output".to_owned(),
            code: code.to_owned(),
            message,
        }]))
    };
    if !output.is_object() {
        return refuse("type", "is no JSON object".to_owned());
    }
    if output.as_str().len() > DATA_BYTES_MAX {
        return refuse(
            "too_large",
            format!("is longer than {DATA_BYTES_MAX} bytes"),
        );
    }
    let violations = way.map_or(Vec::new(), |way| rules::input_violations(way, output));
    if violations.is_empty() {
        return Ok(());
    }
    Err(Rejection::Invalid(violations))
}

/// Records a reply to a call without a result in a state that has ended meanwhile. A failure is not recorded, because nobody needs it.
fn record_late_reply(execution: &mut Execution<'_>, state: StateId, command: &Command) {
    let mut past = execution.instance.past.iter();
    let left = past.find(|past| past.state.id == state);
    let Some(open) = left.and_then(|past| past.state.open_call()) else {
        return;
    };
    if matches!(command, Command::ServiceAnswered { .. }) {
        let message = format!(
            "the service {} answered after the state had ended",
            open.service
        );
        let reason = Reason {
            code: TOO_LATE.to_owned(),
            message,
        };
        let trigger = open.on_reply.clone();
        savepoint::record_refusal(execution, state, trigger, reason);
    }
}

/// The content of a report: the result, and the output of a reply.
fn result_of(command: &Command) -> (CallResult, Option<&Json>) {
    match command {
        Command::ServiceAnswered {
            attempts,
            output,
            model,
            model_version,
            ..
        } => {
            let result = CallResult {
                attempts: *attempts,
                error: None,
                model: model.clone(),
                model_version: model_version.clone(),
            };
            (result, Some(output))
        }
        Command::ServiceFailed {
            attempts, error, ..
        } => {
            let result = CallResult {
                attempts: *attempts,
                error: Some(error.clone()),
                model: None,
                model_version: None,
            };
            (result, None)
        }
        _ => unreachable!("called only for the end of a call"),
    }
}

/// The request to a service.
fn request_of(text: &str) -> Result<Json, Fault> {
    let request = Json::parse(text)
        .map_err(|error| Fault::new(ENTER, format!("the request to a service has {error}")))?;
    if request.as_str().len() > DATA_BYTES_MAX {
        let message = format!("the request to a service is longer than {DATA_BYTES_MAX} bytes");
        return Err(Fault::new(ENTER, message));
    }
    Ok(request)
}
