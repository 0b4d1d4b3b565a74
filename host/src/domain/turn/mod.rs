//! One command, from its checks to its events, as a machine that asks questions and takes answers.
//!
//! The turn never calls flow logic: [`Turn::ask`] says what to find out, [`Turn::answer`] takes what was
//! answered, and whoever drives it - a command, a dry run, a replay - goes on until there is no
//! question left. Every answer is checked against the declared graph and the host's own rules before
//! an event comes of it.
//!
//! Start reading at [`Turn::begin`]; the host's rules stand in `rules` and `standing`, what a plan may say in `plan`, what
//! an assignment may say in `assign`, what is waited for in `wait` and `signal`.

mod able;
mod assign;
mod deadline;
mod effort;
mod fault;
mod fork;
mod hands;
mod ladder;
mod matching;
mod migration;
mod operation;
mod plan;
mod recheck;
mod rules;
mod signal;
mod standing;
mod start;
mod wait;

use std::borrow::Cow;
use std::collections::VecDeque;

use jiff::Timestamp;
use uuid::Uuid;

use super::actor::Actor;
use super::apply::{Stamp, apply_to};
use super::command::Command;
use super::event::Event;
use super::graph::{State, StateKind};
use super::ids::{ForkId, StateId, TaskId};
use super::instance::{Instance, StateInstance};
use super::json::Json;
use super::lookup::Lookup;
use super::question::{Answer, AssignCause, Facts, Occurrence, Question, Source};
use super::shown;
use super::version::Version;

use assign::Looking;
use ladder::Doubt;
use migration::Migration;

pub use fault::{Fault, TurnError};
pub use hands::DELEGATIONS_MAX;
pub use ladder::NOBODY_ABLE;
pub use recheck::LOST_STANDING;
pub use signal::{EARLY_MAX, EARLY_OF_SENDER_MAX, NOBODY_WAITS, SIGNAL_ID_BYTES_MAX};

/// How many router states one command may pass.
pub const ROUTER_STEPS_MAX: u32 = 16;
/// The trigger of the guard's question about a start.
pub const START: &str = "START";

/// What a turn wants to know next.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    /// Of flow logic.
    Logic(Question),
    /// Of the tenant's directory.
    Directory(Lookup),
}

/// The circumstances of a command.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub version: &'a Version,
    /// The version that a migration leaves; none for any other command.
    pub previous: Option<&'a Version>,
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
    /// Joins that wait for nobody any more, and whether they close their fork.
    beginning: VecDeque<(StateId, bool)>,
    /// Stays whose work may have nobody left who is able to do it.
    doubts: VecDeque<Doubt>,
    /// The migration that the command is.
    migration: Option<Migration>,
    router_steps: u32,
    /// What is judged now is a signal that was kept: nobody waits for an answer.
    is_early: bool,
    /// It may add to what flow logic has to be shown.
    adds: bool,
}

/// What the turn is about to ask.
enum Phase {
    Guard(Occurrence, After),
    Transition(Occurrence, Moving),
    /// Somebody must be found for the stay.
    Assign(Box<StateInstance>, AssignCause),
    /// The stay's wait begins.
    Wait(Box<StateInstance>),
    /// The directory must be asked first.
    Look(Lookup, Looking),
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
    /// In whose name, where that is not the actor's own.
    on_behalf_of: Option<String>,
    comment: Option<String>,
    input: Json,
}

/// A state to be entered.
struct Entry {
    name: String,
    predecessors: Vec<StateId>,
    by: Option<String>,
    /// The forks around it, from the outermost.
    forks: Vec<ForkId>,
    /// As of [`StateInstance`].
    choices: u32,
}

/// What a turn came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub instance: Instance,
    pub events: Vec<Event>,
}

impl Context<'_> {
    /// Who acts; none for the host itself.
    fn by(&self) -> Option<&str> {
        (!self.actor.is_host()).then_some(&self.actor.id)
    }
}

impl<'a> Turn<'a> {
    /// Checks what the host alone can judge. `instance` is none for a start.
    pub fn begin(
        context: Context<'a>,
        instance: Option<Instance>,
        command: &Command,
        ids: &'a mut (dyn FnMut() -> Uuid + Send),
    ) -> Result<Turn<'a>, TurnError> {
        if matches!(
            command,
            Command::Start { .. } | Command::Decide { .. } | Command::Signal { .. }
        ) {
            shown::check_actor(context.actor)?;
        }
        match instance {
            Some(instance) => Turn::resume(context, instance, command, ids),
            None => Turn::start(context, command, ids),
        }
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
            beginning: VecDeque::new(),
            doubts: VecDeque::new(),
            migration: None,
            router_steps: 0,
            is_early: false,
            adds: adds(command),
        };
        operation::not_suspended(&turn.instance, command)?;
        match command {
            Command::Start { .. } => unreachable!("a start has no instance yet"),
            Command::Claim { task } => turn.claim(*task)?,
            Command::Release { task } => turn.release(*task)?,
            Command::Delegate { task, to, reason } => turn.delegate(*task, to, reason)?,
            Command::Resolve { task } => turn.resolve(*task)?,
            Command::Reassign { task, to, reason } => turn.reassign(*task, to, reason)?,
            Command::Reset { task, reason } => turn.reset(*task, reason)?,
            Command::Decide {
                task,
                outcome,
                comment,
                input,
            } => {
                let deciding = Deciding {
                    task: *task,
                    outcome: outcome.clone(),
                    on_behalf_of: None,
                    comment: comment.clone(),
                    input: input.clone(),
                };
                turn.phase = rules::may_decide(context, &turn.instance, deciding)?;
            }
            Command::Cancel { reason, .. } => turn.cancel(reason)?,
            Command::Suspend { reason, .. } => turn.suspend(reason)?,
            Command::Resume { .. } => turn.go_on()?,
            Command::Migrate { states, .. } => turn.migrate(states)?,
            Command::Recheck { .. } => turn.doubt_all(),
            Command::Deadline {
                deadline, due_at, ..
            } => turn.deadline(*deadline, *due_at),
            Command::Signal {
                trigger,
                id,
                input,
                correlation,
                ..
            } => turn.signal(trigger, id, input, correlation.as_deref())?,
            Command::ChildEnded {
                child,
                outcome,
                data,
                reason,
                ..
            } => turn.child_ended(*child, outcome, data, reason.as_ref()),
        }
        Ok(turn)
    }

    /// What to find out next; none when the turn is complete.
    pub fn ask(&mut self) -> Result<Option<Ask>, TurnError> {
        while matches!(self.phase, Phase::Settle) {
            if let Some(entry) = self.entering.pop_front() {
                self.enter(entry)?;
            } else if self.take_early() || self.begin_joins()? || self.assign_next() {
            } else if let Some(doubt) = self.doubts.pop_front() {
                self.review(doubt);
            } else {
                self.somebody_left()?;
                if self.adds && self.instance.status.ended_at().is_none() {
                    shown::check(&self.instance)?;
                }
                return Ok(None);
            }
        }
        let question = match &self.phase {
            Phase::Guard(occurrence, _) => Question::Guard(occurrence.clone()),
            Phase::Transition(occurrence, _) => Question::Transition(occurrence.clone()),
            Phase::Assign(stay, cause) => Question::Assign(stay.name.clone(), cause.clone()),
            Phase::Wait(stay) => Question::Wait(stay.name.clone()),
            Phase::Look(lookup, _) => return Ok(Some(Ask::Directory(lookup.clone()))),
            Phase::Settle => unreachable!("left by the loop above"),
        };
        Ok(Some(Ask::Logic(question)))
    }

    /// The instance as the pending question sees it.
    pub fn instance(&self) -> Cow<'_, Instance> {
        match &self.phase {
            // Asked again about a stay that stands, flow logic sees it as it stands.
            Phase::Assign(stay, _) | Phase::Wait(stay) if !self.is_active(stay.id) => {
                let mut instance = self.instance.clone();
                instance.waiting.retain(|waiting| waiting.id != stay.id);
                instance.active.push(StateInstance::clone(stay));
                Cow::Owned(instance)
            }
            _ => Cow::Borrowed(&self.instance),
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

    fn is_active(&self, id: StateId) -> bool {
        self.instance.active.iter().any(|stay| stay.id == id)
    }

    /// Takes the answer to the pending question.
    pub fn answer(&mut self, answer: Answer) -> Result<(), TurnError> {
        match (std::mem::replace(&mut self.phase, Phase::Settle), answer) {
            (Phase::Guard(occurrence, after), Answer::Verdict(verdict)) => {
                let judged = fault::judge(verdict);
                if let After::Transition(moving) = after {
                    if self.is_early {
                        return self.judged_early(occurrence, moving, judged);
                    }
                    self.phase = Phase::Transition(occurrence, moving);
                }
                judged
            }
            (Phase::Transition(occurrence, moving), Answer::Plan(plan)) => {
                self.planned(&occurrence, moving, plan)
            }
            (Phase::Assign(stay, cause), Answer::Assignment(assignment)) => {
                self.look_up(stay, cause, assignment)
            }
            (Phase::Wait(stay), Answer::Waiting(waiting)) => self.wait_for(stay, waiting),
            _ => unreachable!("the driver answers what was asked"),
        }
    }

    /// What the turn came to, once there is no question left.
    pub fn finish(self) -> Outcome {
        assert!(matches!(self.phase, Phase::Settle) && self.entering.is_empty());
        Outcome {
            instance: self.instance,
            events: self.events,
        }
    }

    fn enter(&mut self, entry: Entry) -> Result<(), TurnError> {
        let declared = self.declared(&entry.name);
        let stay = self.stay(&entry);
        if declared.join {
            self.arrive(stay);
            return Ok(());
        }
        self.begin_stay(stay)
    }

    /// Begins a stay by its kind.
    fn begin_stay(&mut self, stay: StateInstance) -> Result<(), TurnError> {
        let declared = self.declared(&stay.name);
        match &declared.kind {
            StateKind::Task => self.phase = Phase::Assign(Box::new(stay), AssignCause::Entered),
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
                    .leaving(&stay.name)
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
                self.beginning.clear();
                self.cancel_open_tasks(None);
                self.emit(Event::StateEntered { state: stay });
                self.emit(Event::FlowCompleted {
                    outcome: outcome.clone(),
                });
            }
            StateKind::Wait => self.phase = Phase::Wait(Box::new(stay)),
            StateKind::Service => unreachable!("versions with such states are not published"),
        }
        Ok(())
    }

    fn declared(&self, name: &str) -> &'a State {
        self.context
            .version
            .graph
            .state(name)
            .expect("plans name declared states only")
    }

    fn stay(&mut self, entry: &Entry) -> StateInstance {
        StateInstance {
            predecessors: entry.predecessors.clone(),
            entered_by: entry.by.clone(),
            caller: self.context.by().map(str::to_owned),
            forks: entry.forks.clone(),
            choices: entry.choices,
            ..StateInstance::new(StateId((self.ids)()), &entry.name, self.context.now)
        }
    }

    fn emit(&mut self, event: Event) {
        let stamp = Stamp {
            instance: self.instance.id,
            revision: self.revision,
            at: self.context.now,
            actor: self.context.by(),
        };
        apply_to(&mut self.instance, &event, stamp).expect("a turn emits what can happen");
        self.doubt_after(&event);
        self.events.push(event);
    }
}

/// Whether the command may add to what flow logic has to be shown. What gives work back, stops it or ends it does not,
/// and is never refused for its size.
fn adds(command: &Command) -> bool {
    !matches!(
        command,
        Command::Release { .. }
            | Command::Resolve { .. }
            | Command::Reset { .. }
            | Command::Cancel { .. }
            | Command::Suspend { .. }
            | Command::Resume { .. }
            | Command::Recheck { .. }
    )
}

#[cfg(test)]
mod tests;
