//! Deadlines: how they are opened with their work, and what happens when one passes.
//!
//! The host issues a command when a deadline is due. Its execution reminds, takes the work back, reassigns it, or fires a
//! trigger. A deadline that is no longer open, or was postponed, does nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::fault::Fault;
use super::{Execution, Moving, Phase, assign, effort};
use crate::answer::{Assignment, Deadline, Due, OverdueAction, Reason, Since};
use crate::apply::next_due;
use crate::calendar::Calendar;
use crate::event::Event;
use crate::graph::{FiredBy, Graph};
use crate::ids::{DeadlineId, StateId, TaskId};
use crate::instance::{Candidate, OpenDeadline, StateInstance, Status, Task, TaskStatus};
use crate::json::Json;
use crate::lookup::Findings;
use crate::question::{EntryCause, Occurrence, Source};
use crate::rejection::Rejection;

/// Deadlines of one state instance or one task.
pub(super) const DEADLINES_MAX: usize = 16;
/// Deadlines of one assignment that count by a calendar. The calculation of each may go through twenty years.
pub(super) const WORKING_MAX: usize = 400;
/// The shortest pause between two repetitions, in seconds.
const REPEAT_MIN: u32 = 60;
/// The longest reason of a deadline that cancels.
const REASON_CHARS_MAX: usize = 2_000;
/// The reason of a cancelled task whose work went to others.
pub(super) const ESCALATED: &str = "escalated";
/// The reason of a release at a deadline.
pub(super) const OVERDUE: &str = "overdue";

/// The code of a refused trigger that the instance's version does not declare.
const NOT_DECLARED: &str = "trigger_not_declared";
/// The code of a refused claim whose deadlines cannot be computed, because the calendar was changed or deleted.
const CALENDAR: &str = "calendar_unusable";

/// A deadline that has passed, with its state instance and task.
struct Passed {
    state: StateId,
    task: Option<TaskId>,
    deadline: OpenDeadline,
}

/// Checks the number, the beginning, the repetition and the triggers of deadlines: of a task, or of a state as a whole.
pub(super) fn check(
    function: &'static str,
    graph: &Graph,
    state: &str,
    deadlines: &[Deadline],
    of_task: bool,
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
        if matches!(deadline.when, Due::WorkingDays { days: 0, .. }) {
            return refuse(format!(
                "a deadline of {state} counts no working day; it must count at least one"
            ));
        }
        let from_claim = deadline.since == Since::Claimed;
        if from_claim && !of_task {
            return refuse(format!(
                "a deadline of {state} as a whole counts from a claim; only a deadline of a task can"
            ));
        }
        if from_claim && matches!(deadline.when, Due::At(_)) {
            return refuse(format!(
                "a deadline of {state} is at a fixed time and counts from a claim; it can be only one of them"
            ));
        }
        match &deadline.action {
            OverdueAction::Fire(trigger) if !may_fire(graph, state, trigger) => {
                return refuse(format!(
                    "a deadline of {state} fires {trigger:?}, which is declared for no deadline there"
                ));
            }
            OverdueAction::Cancel(reason) if reason.trim().is_empty() => {
                return refuse(format!("a deadline of {state} cancels for no reason"));
            }
            OverdueAction::Cancel(reason) if reason.chars().count() > REASON_CHARS_MAX => {
                return refuse(format!(
                    "the reason for which a deadline of {state} cancels has more than {REASON_CHARS_MAX} characters"
                ));
            }
            OverdueAction::Fire(_)
            | OverdueAction::Cancel(_)
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
        .filter_map(|deadline| deadline.when.calendar())
}

/// All deadlines of an assignment.
pub(super) fn of(assignment: &Assignment) -> impl Iterator<Item = &[Deadline]> {
    let of_offers = assignment
        .offers
        .iter()
        .map(|offer| offer.deadlines.as_slice());
    std::iter::once(assignment.deadlines.as_slice()).chain(of_offers)
}

/// The earliest due time.
pub(super) fn earliest(deadlines: &[OpenDeadline]) -> Option<Timestamp> {
    let mut due_at = None;
    next_due(deadlines, &mut due_at);
    due_at
}

impl Execution<'_> {
    /// Opens deadlines, counted from now, or from the moment of suspension while the instance is suspended. Those that count
    /// from a claim are computed as well, so that a missing calendar is found at once; they do not count yet unless the task
    /// `is_owned`.
    pub(super) fn open_deadlines(
        &mut self,
        function: &'static str,
        deadlines: &[Deadline],
        is_owned: bool,
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
            let from_claim = deadline.since == Since::Claimed;
            open.push(OpenDeadline {
                id: DeadlineId((self.ids)()),
                due_at: (is_owned || !from_claim).then_some(due_at),
                since_claim: from_claim.then(|| deadline.when.clone()),
                repeat: deadline.repeat,
                action: deadline.action.clone(),
                count: 0,
            });
        }
        Ok(open)
    }

    /// The calendars that a claim of this task needs.
    pub(super) fn calendars_of_claim(&self, id: TaskId) -> BTreeSet<String> {
        let task = self.instance.open_task(id).map(|(_, task)| task);
        let deadlines = task.into_iter().flat_map(|task| &task.deadlines);
        let counted = deadlines.filter_map(|deadline| deadline.since_claim.as_ref());
        counted.filter_map(Due::calendar).cloned().collect()
    }

    /// The deadlines of this task that count from a claim, as they are if it is claimed now.
    pub(super) fn since_claim(
        &self,
        id: TaskId,
        findings: &Findings,
    ) -> Result<Vec<OpenDeadline>, Rejection> {
        let task = self.instance.open_task(id).map(|(_, task)| task);
        let deadlines = task.into_iter().flat_map(|task| &task.deadlines);
        let counting = deadlines.filter_map(|deadline| {
            let when = deadline.since_claim.as_ref()?;
            let due_at = due(when, self.context.now, findings);
            let due_at = due_at.map_err(|message| {
                let code = CALENDAR.to_owned();
                Rejection::RefusedNow(Reason { code, message })
            });
            Some(due_at.map(|due_at| OpenDeadline {
                due_at: Some(due_at),
                ..deadline.clone()
            }))
        });
        counting.collect()
    }

    /// Runs the action of a deadline, if it is still open and due at that moment.
    pub(super) fn deadline(&mut self, id: DeadlineId, due_at: Timestamp) {
        if self.instance.status != Status::Running {
            return;
        }
        if self.resumes(id, due_at) {
            return;
        }
        let Some(passed) = self
            .open_deadline(id)
            .filter(|found| found.deadline.due_at == Some(due_at))
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
            next: next_repetition(due_at, passed.deadline.repeat, self.context.now),
        });
        match passed.deadline.action {
            OverdueAction::Remind => self.remind(state, task, due_at, count),
            OverdueAction::Release => self.take_back(state, task),
            OverdueAction::Escalate => self.escalate(state, task, due_at, count),
            OverdueAction::Cancel(reason) => self.cancel_all(&reason, Some((state, id))),
            OverdueAction::Fire(trigger) if self.may_fire(state, &trigger) => {
                let source = Source::Deadline {
                    task,
                    due_at,
                    count,
                };
                self.fire(state, trigger, source, Json::empty());
            }
            OverdueAction::Fire(trigger) => self.emit(Event::TriggerRefused {
                state,
                message: format!("the definition declares {trigger} for no deadline there"),
                trigger,
                code: NOT_DECLARED.to_owned(),
            }),
        }
    }

    /// The trigger was checked when the deadline was opened; a migration may have changed the version since.
    fn may_fire(&self, state: StateId, trigger: &str) -> bool {
        let graph = &self.context.version.graph;
        may_fire(graph, &self.state_instance_of(state).name, trigger)
    }

    fn open_deadline(&self, id: DeadlineId) -> Option<Passed> {
        let found = |deadlines: &[OpenDeadline]| {
            deadlines.iter().find(|deadline| deadline.id == id).cloned()
        };
        self.instance.active.iter().find_map(|state_instance| {
            let state = state_instance.id;
            let of_state_instance =
                found(&state_instance.deadlines).map(|deadline| (None, deadline));
            let open = state_instance
                .tasks
                .iter()
                .filter(|task| task.status.is_open());
            let mut of_tasks =
                open.filter_map(|task| Some((Some(task.id), found(task.counting())?)));
            let (task, deadline) = of_state_instance.or_else(|| of_tasks.next())?;
            Some(Passed {
                state,
                task,
                deadline,
            })
        })
    }

    /// The open tasks of a deadline.
    fn overdue(&self, state: StateId, task: Option<TaskId>) -> Vec<Task> {
        let state_instance = self.state_instance_of(state);
        let open = state_instance
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

    /// Asks `enter` for a new assignment of the overdue work.
    fn escalate(&mut self, state: StateId, task: Option<TaskId>, due_at: Timestamp, count: u32) {
        let overdue = self.overdue(state, task);
        if overdue.is_empty() {
            return;
        }
        self.emit(Event::TaskEscalated {
            state,
            task,
            // Empty if nobody is eligible.
            from: holders(&overdue),
            reason: OVERDUE.to_owned(),
            to: Vec::new(),
            due_at: Some(due_at),
            count: Some(count),
        });
        self.ask_again(state, EntryCause::Overdue { task, count });
    }

    /// Cancels the overdue tasks; the new offers follow.
    pub(super) fn withdraw_overdue(
        &mut self,
        state_instance: &StateInstance,
        task: Option<TaskId>,
        assignment: &Assignment,
    ) {
        let kept = assign::kept(state_instance, &EntryCause::Overdue { task, count: 0 });
        self.emit(Event::StateReassigned {
            state: state_instance.id,
            needed: assignment.needed_of(assignment.offers.len() + kept),
            share: assignment.share,
            exclude: self.all_excluded(&state_instance.name, assignment.exclude.clone()),
            fallback: assignment.fallback.clone(),
            priority: assignment.priority,
            priority_name: self.priority_name(assignment.priority),
            deadlines: None,
            subscriptions: None,
        });
        for overdue in self.overdue(state_instance.id, task) {
            self.emit(Event::TaskCancelled {
                task: overdue.id,
                state: state_instance.id,
                reason: Some(ESCALATED.to_owned()),
            });
        }
    }

    /// Fires a trigger without a caller: `guard` is skipped, only `transition` is called.
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
        self.set_savepoint(state, &occurrence.trigger);
        self.phase = Phase::Transition(occurrence, moving);
    }
}

/// The owners of the tasks, and the candidates of those without an owner.
fn holders(tasks: &[Task]) -> Vec<Candidate> {
    let of = |task: &Task| match task.owner() {
        Some(owner) => vec![Candidate::User(owner.to_owned())],
        None => task.candidates.clone(),
    };
    let mut holders: Vec<_> = tasks.iter().flat_map(of).collect();
    holders.sort_unstable();
    holders.dedup();
    holders
}

/// The next repetition after now. Repetitions that were missed while no host ran are skipped.
fn next_repetition(due_at: Timestamp, repeat: Option<u32>, now: Timestamp) -> Option<Timestamp> {
    let pause = i64::from(repeat?).max(1);
    let missed = now.duration_since(due_at).as_secs().max(0) / pause;
    let seconds = pause.checked_mul(missed + 1)?;
    let next = SignedDuration::from_secs(seconds);
    due_at.checked_add(next).ok()
}

fn due(when: &Due, now: Timestamp, findings: &Findings) -> Result<Timestamp, String> {
    match when {
        Due::At(at) => Ok(*at),
        Due::After(seconds) => now
            .checked_add(SignedDuration::from_secs(i64::from(*seconds)))
            .map_err(|error| error.to_string()),
        Due::Working { seconds, calendar } => {
            let at = calendar_of(calendar, findings)?.after(now, *seconds);
            at.ok_or_else(|| {
                format!("the calendar {calendar:?} has fewer than {seconds} working seconds in twenty years")
            })
        }
        Due::WorkingDays { days, calendar } => {
            let at = calendar_of(calendar, findings)?.days_after(now, *days);
            at.ok_or_else(|| {
                format!(
                    "the calendar {calendar:?} has fewer than {days} working days in twenty years"
                )
            })
        }
    }
}

fn calendar_of(name: &str, findings: &Findings) -> Result<Arc<Calendar>, String> {
    let settings = findings
        .calendars
        .get(name)
        .ok_or_else(|| format!("there is no calendar {name:?}; the tenant must set it up first"))?;
    effort::calendar(settings).ok_or_else(|| format!("the calendar {name:?} cannot be read"))
}
