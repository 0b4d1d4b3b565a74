//! Deadlines: opened with the work that they watch over, and what happens when one passes.
//!
//! When a deadline passes is the host's to find out; what it does is decided here, in one turn: remind, take the work
//! back, assign it anew, or fire a trigger. A deadline that is no longer open, or was put off, does nothing.

use jiff::{SignedDuration, Timestamp};

use super::fault::Fault;
use super::{Moving, Phase, Turn, effort};
use crate::domain::answer::{Assignment, Deadline, Due, OverdueAction, Principal};
use crate::domain::apply::next_due;
use crate::domain::event::Event;
use crate::domain::graph::{FiredBy, Graph};
use crate::domain::ids::{DeadlineId, StateId, TaskId};
use crate::domain::instance::{OpenDeadline, StateInstance, Status, Task, TaskStatus};
use crate::domain::json::Json;
use crate::domain::lookup::Findings;
use crate::domain::question::{AssignCause, Occurrence, Source};

/// Deadlines of one stay or one task.
const DEADLINES_MAX: usize = 16;
/// Deadlines of one assignment that count working time. Each may lie twenty years ahead.
pub(super) const WORKING_MAX: usize = 400;
/// The shortest pause between two repetitions, in seconds.
const REPEAT_MIN: u32 = 60;
/// Why a task was cancelled whose work went to others.
pub(super) const ESCALATED: &str = "escalated";
/// Why a task was taken back from an owner who sat on it.
pub(super) const OVERDUE: &str = "overdue";

/// Why a trigger was refused that the instance's version does not know.
const NOT_DECLARED: &str = "trigger_not_declared";

/// A deadline that has passed, and where it belongs.
struct Passed {
    state: StateId,
    task: Option<TaskId>,
    deadline: OpenDeadline,
}

/// Refuses deadlines that could not be kept.
pub(super) fn check(
    function: &'static str,
    graph: &Graph,
    state: &str,
    deadlines: &[Deadline],
) -> Result<(), Fault> {
    let refuse = |message: String| Err(Fault::new(function, message));
    if deadlines.len() > DEADLINES_MAX {
        return refuse(format!(
            "{state} has more than {DEADLINES_MAX} deadlines in one place"
        ));
    }
    for deadline in deadlines {
        if deadline.repeat.is_some_and(|pause| pause < REPEAT_MIN) {
            return refuse(format!(
                "a deadline of {state} repeats more often than every {REPEAT_MIN} seconds"
            ));
        }
        match &deadline.action {
            OverdueAction::Fire(trigger) if !may_fire(graph, state, trigger) => {
                return refuse(format!(
                    "a deadline of {state} fires {trigger:?}, which is declared for no deadline there"
                ));
            }
            OverdueAction::Fire(_)
            | OverdueAction::Remind
            | OverdueAction::Escalate
            | OverdueAction::Release => {}
        }
    }
    Ok(())
}

fn may_fire(graph: &Graph, state: &str, trigger: &str) -> bool {
    let way = graph.transition(state, trigger);
    way.is_some_and(|way| way.by.contains(&FiredBy::Deadline))
}

/// The calendars that these deadlines count by.
pub(super) fn calendars(deadlines: &[Deadline]) -> impl Iterator<Item = &String> {
    deadlines
        .iter()
        .filter_map(|deadline| match &deadline.when {
            Due::Working { calendar, .. } => Some(calendar),
            Due::After(_) | Due::At(_) => None,
        })
}

/// All deadlines of an assignment.
pub(super) fn of(assignment: &Assignment) -> impl Iterator<Item = &[Deadline]> {
    let of_offers = assignment
        .offers
        .iter()
        .map(|offer| offer.deadlines.as_slice());
    std::iter::once(assignment.deadlines.as_slice()).chain(of_offers)
}

/// The earliest of these.
pub(super) fn earliest(deadlines: &[OpenDeadline]) -> Option<Timestamp> {
    let mut due_at = None;
    next_due(deadlines, &mut due_at);
    due_at
}

impl Turn<'_> {
    /// Opens deadlines, counted from this moment; while the instance is suspended, from the moment that its time
    /// stopped at.
    pub(super) fn open_deadlines(
        &mut self,
        function: &'static str,
        deadlines: &[Deadline],
        findings: &Findings,
    ) -> Result<Vec<OpenDeadline>, Fault> {
        let now = match self.instance.status {
            Status::Suspended { at, .. } => at,
            _ => self.context.now,
        };
        let mut open = Vec::with_capacity(deadlines.len());
        for deadline in deadlines {
            let due_at = due(&deadline.when, now, findings)
                .map_err(|message| Fault::new(function, message))?;
            open.push(OpenDeadline {
                id: DeadlineId((self.ids)()),
                due_at,
                repeat: deadline.repeat,
                action: deadline.action.clone(),
                count: 0,
            });
        }
        Ok(open)
    }

    /// Carries out what a deadline is for, if it is still open and due at that moment.
    pub(super) fn deadline(&mut self, id: DeadlineId, due_at: Timestamp) {
        if self.instance.status != Status::Running {
            return;
        }
        let Some(passed) = self
            .open_deadline(id)
            .filter(|found| found.deadline.due_at == due_at)
        else {
            return;
        };
        let (state, task) = (passed.state, passed.task);
        let count = passed.deadline.count.saturating_add(1);
        let late = self.context.now.duration_since(due_at).as_secs();
        self.emit(Event::DeadlinePassed {
            deadline: id,
            state,
            task,
            action: passed.deadline.action.clone(),
            due_at,
            count,
            late: u64::try_from(late).unwrap_or(0),
            next: again(&passed.deadline, self.context.now),
        });
        match passed.deadline.action {
            OverdueAction::Remind => self.remind(state, task, due_at, count),
            OverdueAction::Release => self.take_back(state, task),
            OverdueAction::Escalate => self.escalate(state, task, due_at, count),
            OverdueAction::Fire(trigger) if self.may_fire(state, &trigger) => {
                self.fire(state, trigger, Source::Deadline, Json::empty());
            }
            OverdueAction::Fire(trigger) => self.emit(Event::TriggerRefused {
                state,
                message: format!("the definition declares {trigger} for no deadline there"),
                trigger,
                code: NOT_DECLARED.to_owned(),
            }),
        }
    }

    /// It was checked under the version of the time, which a migration may have changed.
    fn may_fire(&self, state: StateId, trigger: &str) -> bool {
        let graph = &self.context.version.graph;
        may_fire(graph, &self.stay_of(state).name, trigger)
    }

    fn open_deadline(&self, id: DeadlineId) -> Option<Passed> {
        let found = |deadlines: &[OpenDeadline]| {
            deadlines.iter().find(|deadline| deadline.id == id).cloned()
        };
        self.instance.active.iter().find_map(|stay| {
            let state = stay.id;
            let of_stay = found(&stay.deadlines).map(|deadline| (None, deadline));
            let open = stay.tasks.iter().filter(|task| task.status.is_open());
            let mut of_tasks =
                open.filter_map(|task| Some((Some(task.id), found(&task.deadlines)?)));
            let (task, deadline) = of_stay.or_else(|| of_tasks.next())?;
            Some(Passed {
                state,
                task,
                deadline,
            })
        })
    }

    /// The open tasks that a deadline is about.
    fn overdue(&self, state: StateId, task: Option<TaskId>) -> Vec<Task> {
        let stay = self.stay_of(state);
        let open = stay
            .tasks
            .iter()
            .filter(|known| known.status.is_open() && task.is_none_or(|task| task == known.id));
        open.cloned().collect()
    }

    fn remind(&mut self, state: StateId, task: Option<TaskId>, due_at: Timestamp, count: u32) {
        let recipients = holders(&self.overdue(state, task));
        if !recipients.is_empty() {
            self.emit(Event::TaskReminded {
                state,
                task,
                recipients,
                due_at,
                count,
            });
        }
    }

    fn take_back(&mut self, state: StateId, task: Option<TaskId>) {
        for task in self.overdue(state, task) {
            if let TaskStatus::Claimed { owner, .. } = task.status {
                self.emit(Event::TaskReleased {
                    task: task.id,
                    state,
                    owner,
                    reason: Some(OVERDUE.to_owned()),
                });
            }
        }
    }

    /// Asks for others. The work is theirs when the answer is there.
    fn escalate(&mut self, state: StateId, task: Option<TaskId>, due_at: Timestamp, count: u32) {
        let overdue = self.overdue(state, task);
        if overdue.is_empty() {
            return;
        }
        self.emit(Event::TaskEscalated {
            state,
            task,
            // Nobody, where there is nobody who could do it.
            from: holders(&overdue),
            due_at,
            count,
        });
        let stay = Box::new(self.stay_of(state).clone());
        self.phase = Phase::Assign(stay, AssignCause::Overdue { task, count });
    }

    /// Takes overdue work from those who had it; the new offers follow.
    pub(super) fn withdraw_overdue(
        &mut self,
        stay: &StateInstance,
        task: Option<TaskId>,
        assignment: &Assignment,
    ) {
        self.emit(Event::StateReassigned {
            state: stay.id,
            needed: assignment.needed.max(1),
            exclude: assignment.exclude.clone(),
            fallback: assignment.fallback.clone(),
            priority: assignment.priority,
            deadlines: None,
        });
        for overdue in self.overdue(stay.id, task) {
            self.emit(Event::TaskCancelled {
                task: overdue.id,
                state: stay.id,
                reason: Some(ESCALATED.to_owned()),
            });
        }
    }

    /// Moves a state without anybody's decision: `transition` alone is asked.
    pub(super) fn fire(&mut self, state: StateId, trigger: String, source: Source, input: Json) {
        let occurrence = Occurrence {
            state_instance: Some(state.to_string()),
            trigger,
            source,
            input,
        };
        let moving = Moving {
            state,
            decision: None,
        };
        self.phase = Phase::Transition(occurrence, moving);
    }
}

/// Who has the work: the owner, or those who may claim it.
fn holders(tasks: &[Task]) -> Vec<Principal> {
    let of = |task: &Task| match task.owner() {
        Some(owner) => vec![Principal::User(owner.to_owned())],
        None => task.candidates.clone(),
    };
    let mut holders: Vec<_> = tasks.iter().flat_map(of).collect();
    holders.sort_unstable();
    holders.dedup();
    holders
}

/// When a deadline passes again: after as many pauses as it takes to come after this moment. What was missed while no
/// host ran is not made up for one by one.
fn again(deadline: &OpenDeadline, now: Timestamp) -> Option<Timestamp> {
    let pause = i64::from(deadline.repeat?).max(1);
    let missed = now.duration_since(deadline.due_at).as_secs().max(0) / pause;
    let seconds = pause.checked_mul(missed + 1)?;
    let next = SignedDuration::from_secs(seconds);
    deadline.due_at.checked_add(next).ok()
}

fn due(when: &Due, now: Timestamp, findings: &Findings) -> Result<Timestamp, String> {
    match when {
        Due::At(at) => Ok(*at),
        Due::After(seconds) => now
            .checked_add(SignedDuration::from_secs(i64::from(*seconds)))
            .map_err(|error| error.to_string()),
        Due::Working { seconds, calendar } => {
            let settings = findings.calendars.get(calendar).ok_or_else(|| {
                format!("there is no calendar {calendar:?}; the tenant must set it up first")
            })?;
            let parsed = effort::calendar(settings)
                .ok_or_else(|| format!("the calendar {calendar:?} cannot be read"))?;
            let at = parsed.after(now, *seconds);
            at.ok_or_else(|| {
                format!("the calendar {calendar:?} never has {seconds} working seconds")
            })
        }
    }
}
