//! Blind states: their decisions are hidden from other people until the state ends. Then one event discloses them.
//!
//! Flow logic and the audit always know them. The fact that somebody has decided is not hidden: claims and owners show it.

use super::{Execution, Moving, state_instance_of};
use crate::command::Command;
use crate::event::{Disclosed, Event};
use crate::ids::StateId;
use crate::instance::blind::hidden_entry;
use crate::instance::{Instance, StateInstance, Task};
use crate::rejection::Rejection;

/// Emits that a state is entered.
pub(super) fn emit_entered(execution: &mut Execution<'_>, state: StateInstance) {
    let blind = hidden_entry(&execution.instance, &state).is_some();
    execution.emit(Event::StateEntered { state, blind });
}

/// Whether a decision that is hidden moves the state instance.
pub(super) fn is_blind(instance: &Instance, moving: &Moving) -> bool {
    moving.decision.is_some() && state_instance_of(instance, moving.state).blind
}

/// The code of the refusal by [`check_dry_run`].
pub const BLIND: &str = "blind";

/// Refuses a dry run that would reveal how others voted: a decision in a blind state, because its effect depends on the other
/// decisions, or a command that ends such a state. `before` is the instance before the command, and `events` are the effects.
pub fn check_dry_run(
    before: Option<&Instance>,
    command: &Command,
    events: &[Event],
) -> Result<(), Rejection> {
    let decided = match command {
        Command::Decide { task, .. } => before.and_then(|instance| instance.open_task(*task)),
        _ => None,
    };
    let is_blind = decided.is_some_and(|(state_instance, _)| state_instance.blind);
    let tells = |event: &Event| matches!(event, Event::StateDisclosed { .. });
    if !is_blind && !events.iter().any(tells) {
        return Ok(());
    }
    let message = "a dry run would tell how others voted, which is hidden until the vote ends";
    Err(Rejection::forbidden(BLIND, message))
}

/// The decisions that are no longer hidden after the event, which ends their states.
pub(super) fn disclosed_by(instance: &Instance, event: &Event) -> Vec<Event> {
    let ends = |state: StateId| match event {
        Event::StateTransitioned { state: ended, .. }
        | Event::StateCancelled { state: ended, .. } => *ended == state,
        Event::FlowCompleted { .. } | Event::FlowCancelled { .. } => true,
        _ => false,
    };
    let active = instance.active.iter();
    active
        .filter(|state_instance| state_instance.blind && ends(state_instance.id))
        .filter_map(disclosed)
        .collect()
}

fn disclosed(state_instance: &StateInstance) -> Option<Event> {
    let decision = |task: &Task| {
        let decision = task.decision()?;
        Some(Disclosed {
            task: task.id,
            outcome: decision.outcome.clone(),
            actor: decision.actor.clone(),
            on_behalf_of: decision.on_behalf_of.clone(),
            comment: decision.comment.clone(),
            decided_at: decision.decided_at,
        })
    };
    let decisions: Vec<_> = state_instance.tasks.iter().filter_map(decision).collect();
    (!decisions.is_empty()).then(|| Event::StateDisclosed {
        state: state_instance.id,
        name: state_instance.name.clone(),
        decisions,
    })
}
