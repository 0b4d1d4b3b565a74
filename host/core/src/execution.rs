//! The execution of one command: a step machine that asks questions, takes answers, and emits events.
//!
//! It does no input or output. [`Execution::ask`] returns the next question to flow logic or to the directory,
//! [`Execution::answer`] and [`Execution::found`] take the answer. A command, a dry run and a replay drive it the same way, until
//! no question is left. Every answer is checked against the declared graph and the host's rules before an event is emitted.
//!
//! Start reading at [`Execution::begin`]. The modules below have functions: one that changes the execution takes it, and a check takes only
//! what it reads. The host's rules are in `rules` and `eligibility`. `plan` and `next` check the answers of `transition`. `enter`, `assign`,
//! `service` and `wait` check those of `enter`. `savepoint` undoes a refused trigger without a caller.

mod allocation;
mod assign;
mod blind;
mod comment;
mod deadline;
pub mod effort;
mod eligibility;
mod enter;
mod fallback;
mod familiar;
mod fault;
mod fork;
mod forward;
mod members;
mod migration;
mod next;
mod operation;
mod overdue;
mod ownership;
mod plan;
mod reassessment;
mod reoffer;
mod rules;
mod savepoint;
mod separate;
mod service;
mod signal;
mod staffing;
mod start;
mod suspension;
mod wait;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use uuid::Uuid;

use super::actor::Actor;
use super::answer::Work;
use super::apply::{Stamp, apply_to};
use super::command::Command;
use super::event::Event;
use super::graph::{Graph, State};
use super::ids::{ForkId, StateId, TaskId};
use super::instance::{Instance, StateInstance, Status};
use super::json::Json;
use super::lookup::{Findings, Lookup};
use super::question::{Answer, Facts, Occurrence, Question};
use super::shown;
use super::version::Version;

use assign::LookupPurpose;
use enter::PendingEntry;
use fallback::StaffingCheck;
use forward::Forward;
use migration::Migration;
use savepoint::Savepoint;
use staffing::OpenState;

pub use blind::{BLIND, check_dry_run};
pub use comment::MENTIONS_MAX;
pub use fault::{ExecutionError, Fault, LOGIC_FAULT};
pub use ownership::DELEGATIONS_MAX;
pub use service::TIMEOUT_SECONDS_MAX;
pub use signal::{NOBODY_WAITS, check_signal_id};

/// How many router states may follow each other.
pub(crate) const ROUTER_STEPS_MAX: u32 = 16;
const START: &str = "start";

/// Makes the ids that a command needs. They are recorded, so that a replay uses the same.
type Ids<'a> = dyn FnMut() -> Uuid + Send + 'a;

/// The next question of an execution.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    /// To flow logic.
    Logic(Question),
    /// To the tenant's directory.
    Directory(Lookup),
}

/// The context in which a command runs.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub version: &'a Version,
    /// For a migration, the version that the instance runs before it.
    pub previous: Option<&'a Version>,
    pub tenant: &'a str,
    pub actor: &'a Actor,
    /// Not earlier than the instance's last audit entry.
    pub now: Timestamp,
}

/// A command that is being executed.
pub struct Execution<'a> {
    context: Context<'a>,
    ids: &'a mut Ids<'a>,
    instance: Instance,
    revision: u32,
    events: Vec<Event>,
    phase: Phase,
    entering: VecDeque<Pending>,
    /// Work that flow logic has returned and that has not begun.
    works: VecDeque<(PendingEntry, Work)>,
    /// Joins that wait for no further branch, and whether they close their fork.
    ready_joins: VecDeque<(StateId, bool)>,
    /// Computed when a join first needs it.
    forward: OnceCell<Forward<'a>>,
    /// Wait and service states entered since buffered signals were last dropped.
    dropping: Vec<StateId>,
    /// State instances whose staffing is to be checked.
    staffing_checks: VecDeque<StaffingCheck>,
    /// Set if the command is a migration.
    migration: Option<Migration>,
    /// The routers entered since the command or the newest trigger without a caller, each with the length of the row of routers
    /// that leads to it, itself included.
    routers: BTreeMap<StateId, u32>,
    /// Buffered signals that the command has taken.
    signals_taken: u32,
    /// Set if the execution follows a trigger without a caller.
    savepoint: Option<Box<Savepoint>>,
    /// The command may enlarge the facts that flow logic is shown.
    may_enlarge: bool,
}

/// Which question is pending.
#[expect(
    clippy::large_enum_variant,
    reason = "an execution has one at a time, and boxes would cost an allocation for each"
)]
enum Phase {
    /// Whether the person may start.
    Start(Actor),
    Transition(Arc<Occurrence>, Moving),
    /// The work in these state instances.
    Enter(Vec<PendingEntry>),
    /// A question to the directory.
    Lookup(Lookup, LookupPurpose),
    /// No question is pending.
    Settle,
}

/// The state instance that a plan is about, and the decision that caused it.
#[derive(Clone)]
struct Moving {
    state: StateId,
    decision: Option<Deciding>,
}

#[derive(Clone)]
struct Deciding {
    task: TaskId,
    outcome: String,
    /// The person on whose behalf it is made; none if the actor decides for themselves.
    on_behalf_of: Option<String>,
    comment: Option<String>,
    input: Json,
}

/// A state to be entered.
struct Pending {
    name: String,
    predecessors: Vec<StateId>,
    by: Option<String>,
    /// The forks around it, outermost first.
    forks: Vec<ForkId>,
    /// As in [`StateInstance`], also the members that follow.
    choices: u32,
    key: Option<String>,
    data: Option<Json>,
}

/// The result of an execution.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub instance: Instance,
    pub events: Vec<Event>,
}

impl Context<'_> {
    /// The acting person; none for the host itself.
    fn by(&self) -> Option<&str> {
        (!self.actor.is_host()).then_some(&self.actor.id)
    }
}

impl<'a> Execution<'a> {
    /// Checks the rules that need no flow logic. `instance` is none for a start.
    pub fn begin(
        context: Context<'a>,
        instance: Option<Instance>,
        command: &Command,
        ids: &'a mut (dyn FnMut() -> Uuid + Send),
    ) -> Result<Execution<'a>, ExecutionError> {
        if matches!(
            command,
            Command::Start { .. } | Command::Decide { .. } | Command::Signal { .. }
        ) {
            shown::check_actor(context.actor)?;
        }
        match instance {
            Some(instance) => Execution::resume(context, instance, command, ids),
            None => start::begin(context, command, ids),
        }
    }

    /// An execution without events and without a pending question.
    fn new(
        context: Context<'a>,
        instance: Instance,
        revision: u32,
        ids: &'a mut Ids<'a>,
    ) -> Execution<'a> {
        Execution {
            context,
            ids,
            instance,
            revision,
            events: Vec::new(),
            phase: Phase::Settle,
            entering: VecDeque::new(),
            works: VecDeque::new(),
            ready_joins: VecDeque::new(),
            forward: OnceCell::new(),
            dropping: Vec::new(),
            staffing_checks: VecDeque::new(),
            migration: None,
            routers: BTreeMap::new(),
            signals_taken: 0,
            savepoint: None,
            may_enlarge: true,
        }
    }

    /// Checks the rules of a command on an instance.
    fn resume(
        context: Context<'a>,
        instance: Instance,
        command: &Command,
        ids: &'a mut Ids<'a>,
    ) -> Result<Execution<'a>, ExecutionError> {
        let revision = instance.revision + 1;
        let mut execution = Execution::new(context, instance, revision, ids);
        execution.may_enlarge = rules::may_enlarge(command);
        rules::not_suspended(&execution.instance, command)?;
        match command {
            Command::Start { .. } => unreachable!("a start has no instance yet"),
            Command::Claim { task } => ownership::claim(&mut execution, *task)?,
            Command::Release { task } => ownership::release(&mut execution, *task)?,
            Command::Delegate { task, to, reason } => {
                ownership::delegate(&mut execution, *task, to, reason)?;
            }
            Command::Resolve { task } => ownership::resolve(&mut execution, *task)?,
            Command::Reassign { task, to, reason } => {
                ownership::reassign(&mut execution, *task, to, reason)?;
            }
            Command::Reset { task, reason } => ownership::reset(&mut execution, *task, reason)?,
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
                rules::claim_if_pending(&mut execution, *task)?;
                execution.phase = rules::may_decide(context, &execution.instance, deciding)?;
            }
            Command::SuspendTask {
                task,
                reason,
                until,
            } => suspension::suspend(&mut execution, *task, reason.as_deref(), *until)?,
            Command::ResumeTask { task } => suspension::resume(&mut execution, *task)?,
            Command::Comment { .. } => comment::add(&mut execution, command)?,
            Command::Cancel { reason, .. } => operation::cancel(&mut execution, reason)?,
            Command::Suspend { reason, .. } => operation::suspend(&mut execution, reason)?,
            Command::Resume { .. } => operation::end_suspension(&mut execution)?,
            Command::Migrate { states, .. } => migration::begin(&mut execution, states)?,
            Command::Reassessment { .. } => {
                fallback::queue_all_checks(&execution.instance, &mut execution.staffing_checks);
            }
            Command::Deadline {
                deadline, due_at, ..
            } => overdue::act(&mut execution, *deadline, *due_at),
            Command::Signal {
                trigger,
                id,
                input,
                correlation,
                state,
                ..
            } => {
                let correlation = correlation.as_deref();
                signal::receive(&mut execution, trigger, id, input, correlation, *state)?;
            }
            Command::ChildEnded { child, .. } => wait::child_ended(&mut execution, *child, command),
            Command::ServiceAnswered { state, .. } | Command::ServiceFailed { state, .. } => {
                service::call_ended(&mut execution, *state, command)?;
            }
        }
        Ok(execution)
    }

    /// The next question; none when the execution is complete.
    pub fn ask(&mut self) -> Result<Option<Ask>, ExecutionError> {
        while matches!(self.phase, Phase::Settle) {
            match self.settle() {
                Ok(true) => {}
                Ok(false) => {
                    if let Some(migration) = &self.migration {
                        migration.check_still_assignable(&self.instance)?;
                    }
                    return Ok(None);
                }
                Err(error) => savepoint::undo_faulty(self, error)?,
            }
        }
        let question = match &self.phase {
            Phase::Start(actor) => Question::Start(actor.clone()),
            Phase::Transition(occurrence, _) => Question::Transition(occurrence.clone()),
            Phase::Enter(entries) => {
                Question::Enter(entries.iter().map(PendingEntry::entry).collect())
            }
            Phase::Lookup(lookup, _) => return Ok(Some(Ask::Directory(lookup.clone()))),
            Phase::Settle => unreachable!("the loop above leaves this phase"),
        };
        Ok(Some(Ask::Logic(question)))
    }

    /// Does the next step. False if nothing is left.
    fn settle(&mut self) -> Result<bool, ExecutionError> {
        let may_join = !self.instance.waiting.is_empty() || !self.ready_joins.is_empty();
        if let Some((entry, work)) = self.works.pop_front() {
            enter::look_up_work(self, entry, work)?;
        } else if !self.entering.is_empty() {
            enter::begin_pending(self)?;
        } else if may_join && fork::begin_joins(self)? {
        } else if let Some(migration) = &mut self.migration
            && let Some(entries) = migration.take_pending(&self.instance)
        {
            self.phase = Phase::Enter(entries);
        } else if let Some(staffing_check) = self.staffing_checks.pop_front() {
            fallback::review(self, staffing_check);
        } else if !self.refuse_outgrown()? {
            if self.instance.buffered.is_empty() {
                return Ok(false);
            }
            signal::drop_buffered(self);
            return Ok(signal::take_buffered(self));
        }
        Ok(true)
    }

    /// If the facts for flow logic would be too large, refuses the trigger without a caller or, if there is none, the command.
    /// Returns whether a trigger was refused.
    fn refuse_outgrown(&mut self) -> Result<bool, ExecutionError> {
        if !self.may_enlarge || self.instance.status.ended_at().is_some() {
            return Ok(false);
        }
        let Err(outgrown) = shown::check(&self.instance) else {
            return Ok(false);
        };
        savepoint::reject(self, outgrown)?;
        Ok(true)
    }

    /// The instance as the pending question sees it.
    pub fn instance(&self) -> Cow<'_, Instance> {
        match &self.phase {
            Phase::Enter(entries) => enter::with_entered(&self.instance, entries),
            _ => Cow::Borrowed(&self.instance),
        }
    }

    /// The facts of the pending question.
    pub fn facts<'f>(&'f self, instance: &'f Instance) -> Facts<'f> {
        Facts {
            now: self.context.now,
            tenant: self.context.tenant,
            config: self.context.version.config.json(),
            instance,
            reads: &self.context.version.graph.reads,
        }
    }

    /// Takes the answer to the pending question.
    pub fn answer(&mut self, answer: Answer) -> Result<(), ExecutionError> {
        let answered = self.answered(answer);
        answered.or_else(|error| savepoint::undo_faulty(self, error))
    }

    fn answered(&mut self, answer: Answer) -> Result<(), ExecutionError> {
        match (std::mem::replace(&mut self.phase, Phase::Settle), answer) {
            (Phase::Start(_), Answer::Start(Ok(()))) => Ok(()),
            (Phase::Transition(occurrence, moving), Answer::Transition(Ok(plan))) => {
                plan::run(self, &occurrence, moving, plan)
            }
            (Phase::Enter(entries), Answer::Enter(Ok(works))) => {
                Ok(enter::take_answer(self, entries, works)?)
            }
            (Phase::Start(_), Answer::Start(Err(refusal))) => {
                savepoint::take_refusal(self, START, refusal)
            }
            (Phase::Transition(..), Answer::Transition(Err(refusal))) => {
                savepoint::take_refusal(self, plan::TRANSITION, refusal)
            }
            (Phase::Enter(entries), Answer::Enter(Err(refusal))) => {
                enter::work_refused(self, &entries, refusal)
            }
            _ => unreachable!("the driver answers the pending question"),
        }
    }

    /// Takes the directory's answer to the pending question.
    pub fn found(&mut self, findings: &Findings) -> Result<(), ExecutionError> {
        let taken = assign::take_findings(self, findings);
        taken.or_else(|error| savepoint::undo_faulty(self, error))
    }

    /// Whether a fault of flow logic only undoes a buffered signal now, and does not end the command.
    pub fn survives_fault(&self) -> bool {
        let newest = self.savepoint.as_ref();
        newest.is_some_and(|savepoint| savepoint.of_signal)
    }

    /// The result, once there is no question left.
    pub fn finish(self) -> Outcome {
        assert!(matches!(self.phase, Phase::Settle) && self.entering.is_empty());
        Outcome {
            instance: self.instance,
            events: self.events,
        }
    }

    /// The state instance, if it has open tasks and the instance runs.
    fn open_state(&self, state: StateId) -> Option<OpenState<'_>> {
        // A migration checks suspended instances, too.
        if self.instance.status != Status::Running && self.migration.is_none() {
            return None;
        }
        OpenState::find(&self.context.version.graph, &self.instance, state)
    }

    /// Emits an event, after the decisions that it discloses.
    fn emit(&mut self, event: Event) {
        for disclosed in blind::disclosed_by(&self.instance, &event) {
            self.record(disclosed);
        }
        self.record(event);
    }

    fn record(&mut self, event: Event) {
        let stamp = Stamp {
            instance: self.instance.id,
            revision: self.revision,
            at: self.context.now,
            actor: self.context.by(),
        };
        apply_to(&mut self.instance, &event, stamp).expect("an execution emits only legal events");
        fallback::queue_check_after(&self.instance, &event, &mut self.staffing_checks);
        self.events.push(event);
    }
}

fn declared<'g>(graph: &'g Graph, name: &str) -> &'g State {
    graph.state(name).expect("plans name declared states only")
}

/// The state instance of this id, which is active or waits.
fn state_instance_of(instance: &Instance, id: StateId) -> &StateInstance {
    let mut here = instance.active.iter().chain(&instance.waiting);
    here.find(|state| state.id == id)
        .expect("checked to be active")
}

#[cfg(test)]
mod tests;
