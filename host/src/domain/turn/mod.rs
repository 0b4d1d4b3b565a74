//! One command, from its checks to its events, as a machine that asks questions and takes answers.
//!
//! The turn never calls flow logic: [`Turn::question`] says what to ask, [`Turn::answer`] takes what was
//! answered, and whoever drives it - a command, a dry run, a replay - goes on until there is no
//! question left. Every answer is checked against the declared graph and the host's own rules before
//! an event comes of it.
//!
//! Start reading at [`Turn::begin`]; the host's rules stand in `rules`, what a plan may say in `plan`, what
//! an assignment may say in `assign`.

mod assign;
mod fault;
mod plan;
mod rules;

use std::borrow::Cow;
use std::collections::VecDeque;

use jiff::Timestamp;
use uuid::Uuid;

use super::actor::Actor;
use super::answer::Verdict;
use super::apply::{Stamp, apply};
use super::command::Command;
use super::event::Event;
use super::graph::StateKind;
use super::ids::{InstanceId, StateId, TaskId};
use super::instance::{Instance, StateInstance};
use super::json::Json;
use super::question::{Answer, Facts, Occurrence, Question, Source};
use super::rejection::Rejection;
use super::version::Version;

pub use fault::{Fault, TurnError};

/// How many router states one command may pass.
pub const ROUTER_STEPS_MAX: u32 = 16;
/// The trigger of the guard's question about a start.
pub const START: &str = "START";

/// The circumstances of a command.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub version: &'a Version,
    pub tenant: &'a str,
    pub actor: &'a Actor,
    /// Never before the instance's last entry.
    pub now: Timestamp,
}

/// A command under way.
pub struct Turn<'a> {
    context: Context<'a>,
    /// Makes the ids that the command needs; they are recorded, so that a replay can hand out the same.
    ids: &'a mut (dyn FnMut() -> Uuid + Send),
    instance: Instance,
    revision: u32,
    events: Vec<Event>,
    phase: Phase,
    entering: VecDeque<Entry>,
    router_steps: u32,
}

/// What the turn is about to ask.
enum Phase {
    Guard(Occurrence, After),
    Transition(Occurrence, Moving),
    /// Somebody must be found for the stay.
    Assign(Box<StateInstance>),
    /// Nothing, until the states waiting to be entered have been looked at.
    Settle,
}

/// What an allowing guard leads to.
enum After {
    Enter,
    Transition(Moving),
}

/// The stay that a plan moves, and the decision that it follows from.
#[derive(Clone)]
struct Moving {
    state: StateId,
    decision: Option<Deciding>,
}

#[derive(Clone)]
struct Deciding {
    task: TaskId,
    outcome: String,
    comment: Option<String>,
    input: Json,
}

/// A state to be entered.
struct Entry {
    name: String,
    predecessors: Vec<StateId>,
    by: Option<String>,
}

/// What a turn came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub instance: Instance,
    pub events: Vec<Event>,
}

impl<'a> Turn<'a> {
    /// Checks what the host alone can judge. `instance` is none for a start.
    pub fn begin(
        context: Context<'a>,
        instance: Option<Instance>,
        command: &Command,
        ids: &'a mut (dyn FnMut() -> Uuid + Send),
    ) -> Result<Turn<'a>, TurnError> {
        match instance {
            Some(instance) => Turn::resume(context, instance, command, ids),
            None => Turn::start(context, command, ids),
        }
    }

    fn start(
        context: Context<'a>,
        command: &Command,
        ids: &'a mut (dyn FnMut() -> Uuid + Send),
    ) -> Result<Turn<'a>, TurnError> {
        let Command::Start { entity, data, .. } = command else {
            unreachable!("only a start has no instance")
        };
        rules::may_start(context, data)?;
        let event = Event::FlowStarted {
            definition: context.version.reference.clone(),
            entity: entity.clone(),
            initiator: context.actor.id.clone(),
            requesters: vec![context.actor.id.clone()],
            predecessor: None,
            parent: None,
            data: data.clone(),
        };
        let stamp = Stamp {
            instance: InstanceId(ids()),
            revision: 1,
            at: context.now,
            actor: Some(&context.actor.id),
        };
        let instance = apply(None, &event, stamp).expect("a start begins an instance");
        let proposed = Occurrence {
            state_instance: None,
            trigger: START.to_owned(),
            source: Source::Start(context.actor.clone()),
            input: Json::empty(),
        };
        let initial = Entry {
            name: context.version.graph.initial.clone(),
            predecessors: Vec::new(),
            by: None,
        };
        Ok(Turn {
            context,
            ids,
            instance,
            revision: 1,
            events: vec![event],
            phase: Phase::Guard(proposed, After::Enter),
            entering: VecDeque::from([initial]),
            router_steps: 0,
        })
    }

    fn resume(
        context: Context<'a>,
        instance: Instance,
        command: &Command,
        ids: &'a mut (dyn FnMut() -> Uuid + Send),
    ) -> Result<Turn<'a>, TurnError> {
        let revision = instance.revision + 1;
        let mut turn = Turn {
            context,
            ids,
            instance,
            revision,
            events: Vec::new(),
            phase: Phase::Settle,
            entering: VecDeque::new(),
            router_steps: 0,
        };
        match command {
            Command::Start { .. } => unreachable!("a start has no instance yet"),
            Command::Claim { task } => {
                let state = rules::may_claim(context, &turn.instance, *task)?;
                turn.emit(Event::TaskClaimed {
                    task: *task,
                    state,
                    owner: context.actor.id.clone(),
                });
            }
            Command::Release { task } => {
                let state = rules::may_release(context, &turn.instance, *task)?;
                turn.emit(Event::TaskReleased {
                    task: *task,
                    state,
                    owner: context.actor.id.clone(),
                });
            }
            Command::Decide {
                task,
                outcome,
                comment,
                input,
            } => {
                let deciding = Deciding {
                    task: *task,
                    outcome: outcome.clone(),
                    comment: comment.clone(),
                    input: input.clone(),
                };
                turn.phase = rules::may_decide(context, &turn.instance, deciding)?;
            }
            Command::Cancel { reason, .. } => {
                rules::may_cancel(&turn.instance)?;
                turn.cancel_open_tasks(None);
                turn.emit(Event::FlowCancelled {
                    reason: reason.clone(),
                });
            }
        }
        Ok(turn)
    }

    /// The next question for flow logic; none when the turn is complete.
    pub fn question(&mut self) -> Result<Option<Question>, TurnError> {
        while matches!(self.phase, Phase::Settle) {
            match self.entering.pop_front() {
                Some(entry) => self.enter(entry)?,
                None => return Ok(None),
            }
        }
        Ok(Some(match &self.phase {
            Phase::Guard(occurrence, _) => Question::Guard(occurrence.clone()),
            Phase::Transition(occurrence, _) => Question::Transition(occurrence.clone()),
            Phase::Assign(stay) => Question::Assign(stay.name.clone()),
            Phase::Settle => unreachable!("left by the loop above"),
        }))
    }

    /// The instance as the pending question sees it.
    pub fn instance(&self) -> Cow<'_, Instance> {
        match &self.phase {
            Phase::Assign(stay) => {
                let mut instance = self.instance.clone();
                instance.active.push(StateInstance::clone(stay));
                Cow::Owned(instance)
            }
            Phase::Guard(..) | Phase::Transition(..) | Phase::Settle => {
                Cow::Borrowed(&self.instance)
            }
        }
    }

    /// The facts of the pending question.
    pub fn facts<'f>(&'f self, instance: &'f Instance) -> Facts<'f> {
        Facts {
            now: self.context.now,
            tenant: self.context.tenant,
            config: &self.context.version.config,
            instance,
        }
    }

    /// Takes the answer to the pending question.
    pub fn answer(&mut self, answer: Answer) -> Result<(), TurnError> {
        match (std::mem::replace(&mut self.phase, Phase::Settle), answer) {
            (Phase::Guard(occurrence, after), Answer::Verdict(verdict)) => {
                judge(verdict)?;
                if let After::Transition(moving) = after {
                    self.phase = Phase::Transition(occurrence, moving);
                }
                Ok(())
            }
            (Phase::Transition(occurrence, moving), Answer::Plan(plan)) => {
                self.planned(&occurrence, moving, plan)
            }
            (Phase::Assign(stay), Answer::Assignment(assignment)) => {
                self.assigned(*stay, assignment)
            }
            _ => unreachable!("the driver answers what was asked"),
        }
    }

    /// What the turn came to, once there is no question left.
    pub fn finish(self) -> Outcome {
        debug_assert!(matches!(self.phase, Phase::Settle) && self.entering.is_empty());
        Outcome {
            instance: self.instance,
            events: self.events,
        }
    }

    fn enter(&mut self, entry: Entry) -> Result<(), TurnError> {
        let declared = self
            .context
            .version
            .graph
            .state(&entry.name)
            .expect("plans name declared states only");
        let stay = self.stay(&entry);
        match &declared.kind {
            StateKind::Task => self.phase = Phase::Assign(Box::new(stay)),
            StateKind::Router => {
                self.router_steps += 1;
                if self.router_steps > ROUTER_STEPS_MAX {
                    return Err(Fault::new(
                        "transition",
                        format!("more than {ROUTER_STEPS_MAX} router states in a row"),
                    )
                    .into());
                }
                let way_out = self
                    .context
                    .version
                    .graph
                    .leaving(&entry.name)
                    .next()
                    .expect("a router has one way out");
                let occurrence = Occurrence {
                    state_instance: Some(stay.id.to_string()),
                    trigger: way_out.trigger.clone(),
                    source: Source::Entry,
                    input: Json::empty(),
                };
                self.phase = Phase::Transition(
                    occurrence,
                    Moving {
                        state: stay.id,
                        decision: None,
                    },
                );
                self.emit(Event::StateEntered { state: stay });
            }
            StateKind::Terminal(outcome) => {
                self.entering.clear();
                self.cancel_open_tasks(None);
                self.emit(Event::StateEntered { state: stay });
                self.emit(Event::FlowCompleted {
                    outcome: outcome.clone(),
                });
            }
            StateKind::Service | StateKind::Wait => {
                unreachable!("versions with such states are not published")
            }
        }
        Ok(())
    }

    fn stay(&mut self, entry: &Entry) -> StateInstance {
        StateInstance {
            id: StateId((self.ids)()),
            name: entry.name.clone(),
            entered_at: self.context.now,
            due_at: None,
            predecessors: entry.predecessors.clone(),
            entered_by: entry.by.clone(),
            caller: Some(self.context.actor.id.clone()),
            needed: 1,
            exclude: Vec::new(),
            fallback: None,
            priority: 0,
            tasks: Vec::new(),
        }
    }

    /// Cancels the open tasks of one stay, or of all.
    fn cancel_open_tasks(&mut self, of: Option<StateId>) {
        let open: Vec<_> = self
            .instance
            .active
            .iter()
            .filter(|state| of.is_none_or(|id| id == state.id))
            .flat_map(|state| {
                state
                    .tasks
                    .iter()
                    .filter(|task| task.status.is_open())
                    .map(|task| (state.id, task.id))
            })
            .collect();
        for (state, task) in open {
            self.emit(Event::TaskCancelled { task, state });
        }
    }

    fn emit(&mut self, event: Event) {
        let stamp = Stamp {
            instance: self.instance.id,
            revision: self.revision,
            at: self.context.now,
            actor: Some(&self.context.actor.id),
        };
        let folded = apply(Some(self.instance.clone()), &event, stamp);
        self.instance = folded.expect("a turn emits what can happen");
        self.events.push(event);
    }
}

fn judge(verdict: Verdict) -> Result<(), TurnError> {
    match verdict {
        Verdict::Allow => Ok(()),
        Verdict::Deny(reason) => Err(Rejection::Forbidden(fault::reason("guard", reason)?).into()),
        Verdict::Invalid(violations) => {
            Err(Rejection::Invalid(fault::violations("guard", violations)?).into())
        }
    }
}

#[cfg(test)]
mod tests;
