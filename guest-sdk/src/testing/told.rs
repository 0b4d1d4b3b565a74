//! Makes the [`Outcome`] that tests inspect from the events of a command.

use wrkflw_core::command::Command;
use wrkflw_core::event::Event;
use wrkflw_core::graph::{Graph, StateKind};
use wrkflw_core::ids::{StateId, TaskId};
use wrkflw_core::instance::{Candidate, Instance};

use super::contract::lower;
use super::outcome::{Answer, Entered, Outcome};
use super::run::Said;
use crate::{Assignment, Reason};

/// The outcome of a command that was executed. The scenario adds the end of the instance.
#[track_caller]
pub(super) fn outcome(
    (instance, events, recorded): (&Instance, &[Event], &Said),
    graph: &Graph,
    command: &Command,
) -> Outcome {
    let mut outcome = Outcome {
        answer: answer(events, recorded, command),
        entered: entered(events, recorded, graph),
        plans: recorded.plans.clone(),
        ..Outcome::nothing()
    };
    for event in events {
        match event {
            Event::TaskCreated { task, .. } => offered(&mut outcome, &task.candidates),
            Event::TaskRerouted { candidates, .. } => offered(&mut outcome, candidates),
            Event::TaskReminded { state, task, .. } => {
                let of = reminded(instance, *state, *task);
                outcome.reminded.push(of);
            }
            Event::FlowCancelled { reason, .. } => outcome.cancelled = Some(reason.clone()),
            Event::StateUnassignable { name, .. } => {
                somebody_named(&outcome, name);
                outcome.unassignable.push(name.clone());
            }
            _ => {}
        }
    }
    outcome
}

fn answer(events: &[Event], recorded: &Said, command: &Command) -> Answer {
    let by_itself = matches!(
        command,
        Command::Deadline { .. }
            | Command::ChildEnded { .. }
            | Command::ServiceAnswered { .. }
            | Command::ServiceFailed { .. }
    );
    let mut answers = events.iter().filter_map(|event| match event {
        Event::TriggerRefused { code, message, .. } if by_itself => {
            Some(Answer::Refused(Reason::new(code, message)))
        }
        Event::SignalReceived { state: None, .. } => Some(Answer::Kept),
        _ => None,
    });
    let planned = recorded.plans.first().cloned().map(Answer::Planned);
    answers.next().or(planned).unwrap_or(Answer::Done)
}

/// The states that were entered or assigned anew, with the flow's answer for each.
fn entered(events: &[Event], recorded: &Said, graph: &Graph) -> Vec<Entered> {
    let mut recorded = recorded.entered.iter().cloned();
    let mut entered = Vec::new();
    for event in events {
        match event {
            Event::StateEntered { state, .. } => {
                let declared = graph.state(&state.name).map(|declared| &declared.kind);
                if matches!(declared, Some(StateKind::Terminal(_))) {
                    entered.push(Entered::Passive(state.name.clone()));
                } else {
                    entered.extend(recorded.next());
                }
            }
            Event::BranchArrived { state } => entered.push(Entered::Passive(state.name.clone())),
            Event::StateReassigned { .. } => entered.extend(recorded.next()),
            _ => {}
        }
    }
    entered
}

fn offered(outcome: &mut Outcome, candidates: &[Candidate]) {
    outcome
        .offered
        .extend(candidates.iter().map(lower::principal));
}

/// The label of the task that is due, or the name of the state.
fn reminded(instance: &Instance, state: StateId, task: Option<TaskId>) -> String {
    if let Some(task) = task.and_then(|task| instance.task(task)) {
        return task.label.clone();
    }
    let mut states = instance.state_instances();
    let due = states.find(|state_instance| state_instance.id == state);
    due.map(|state_instance| state_instance.name.clone())
        .unwrap_or_default()
}

/// Panics if the flow named nobody for the work, which is a mistake of the author. Otherwise the directory is the reason that
/// nobody is eligible.
#[track_caller]
fn somebody_named(outcome: &Outcome, state: &str) {
    let mut assignments = outcome.entered.iter().filter_map(|entered| match entered {
        Entered::Task(name, assignment) if name == state => Some(assignment),
        _ => None,
    });
    let names_nobody = |assignment: &&Assignment| {
        let mut offers = assignment.offers.iter();
        offers.all(|offer| {
            offer.candidates.is_empty() && offer.owner.is_none() && offer.each_member.is_none()
        })
    };
    let to_nobody = assignments.find(names_nobody);
    assert!(
        to_nobody.is_none(),
        "the flow offers the work of {state} to nobody, and the host finds nobody else: {to_nobody:#?}"
    );
}
