//! Time in a scenario: which deadline passes next. The core determines what it does.

use jiff::{SignedDuration, Timestamp};
use wrkflw_core::actor::Actor;
use wrkflw_core::answer::OverdueAction;
use wrkflw_core::command::Command;
use wrkflw_core::ids::DeadlineId;
use wrkflw_core::instance::{Instance, OpenDeadline, StateInstance, Status, Task};

use super::contract::lower;
use super::event::When;
use super::outcome::{Answer, Outcome};
use super::scenario::Scenario;
use super::when::denied;
use crate::{Flow, Triggers};

/// Maximum number of deadlines that pass in one event of a test.
const PASSING_MAX: usize = 1000;

/// A deadline that has not passed, or that repeats.
#[derive(Clone, Copy)]
struct Due<'a> {
    state: &'a StateInstance,
    /// Of this task alone.
    task: Option<&'a Task>,
    deadline: &'a OpenDeadline,
    at: Timestamp,
}

impl<F: Flow> Scenario<F> {
    /// Moves the time. The deadlines that pass act, the earliest first.
    #[track_caller]
    pub(super) fn later(&mut self, seconds: u32) -> Outcome {
        let until = self.moment() + SignedDuration::from_secs(i64::from(seconds));
        let mut all = Outcome::nothing();
        for _ in 0..PASSING_MAX {
            let Some((at, id)) = self.next_due().filter(|(at, _)| *at <= until) else {
                self.snapshot.now = lower::timestamp(until);
                return all;
            };
            all.add(self.passes(at, id));
        }
        panic!("more than {PASSING_MAX} deadlines pass within {seconds} seconds");
    }

    /// Moves the time to the next deadline that fires this trigger.
    #[track_caller]
    pub(super) fn until_fired(&mut self, when: &When<F::Trigger>, trigger: &str) -> Outcome {
        let fires = |action: &OverdueAction| matches!(action, OverdueAction::Fire(fired) if fired == trigger);
        let next =
            due(self.started()).filter(|due| due.is_meant(when) && fires(&due.deadline.action));
        let next = next.min_by_key(|due| due.at);
        let Some(id) = next.map(|due| due.deadline.id) else {
            return denied(
                "no_deadline",
                format!("no deadline that is open fires {trigger}"),
            );
        };
        self.until_passed(id, 1)
    }

    /// Moves the time until a deadline that escalates passes for the count-th time.
    #[track_caller]
    pub(super) fn until_escalated(&mut self, when: &When<F::Trigger>, count: u32) -> Outcome {
        let escalates = |due: &Due<'_>| {
            let of_what = due.task.is_some() == when.label.is_some();
            of_what && due.is_meant(when) && due.deadline.action == OverdueAction::Escalate
        };
        let next = due(self.started()).filter(escalates);
        let next = next.min_by_key(|due| due.at);
        let next = next.map(|due| (due.deadline.id, count.checked_sub(due.deadline.count)));
        let Some((id, Some(times @ 1..))) = next else {
            let message = format!("no deadline that is open escalates for the {count}. time");
            return denied("no_deadline", message);
        };
        self.until_passed(id, times)
    }

    /// Moves the time until this deadline has passed `times` times. Returns only its last outcome.
    #[track_caller]
    fn until_passed(&mut self, wanted: DeadlineId, mut times: u32) -> Outcome {
        for _ in 0..PASSING_MAX {
            if !due(self.started()).any(|due| due.deadline.id == wanted) {
                let message = "what was due before has ended what the deadline is for".to_owned();
                return denied("no_deadline", message);
            }
            let (at, id) = self.next_due().expect("one is open");
            let outcome = self.passes(at, id);
            if id == wanted {
                times -= 1;
            }
            if times == 0 {
                return outcome;
            }
        }
        panic!("more than {PASSING_MAX} deadlines pass before it");
    }

    fn next_due(&self) -> Option<(Timestamp, DeadlineId)> {
        let instance = self.started();
        let running = (instance.status == Status::Running).then_some(instance);
        let all = running.into_iter().flat_map(due);
        all.map(|due| (due.at, due.deadline.id)).min()
    }

    #[track_caller]
    fn passes(&mut self, at: Timestamp, deadline: DeadlineId) -> Outcome {
        self.snapshot.now = lower::timestamp(at.max(self.moment()));
        let command = Command::Deadline {
            instance: self.started().id,
            deadline,
            due_at: at,
        };
        let outcome = self.run(&Actor::host(), &command);
        let passed = |due: Due<'_>| due.deadline.id == deadline && due.at == at;
        assert!(
            !due(self.started()).any(passed),
            "the host tries this deadline again and again: {outcome:#?}"
        );
        outcome
    }
}

impl Outcome {
    /// Adds a later outcome. The answer is the last one that is not [`Answer::Done`].
    fn add(&mut self, next: Outcome) {
        if !matches!(next.answer, Answer::Done) {
            self.answer = next.answer;
        }
        self.entered.extend(next.entered);
        self.offered.extend(next.offered);
        self.plans.extend(next.plans);
        self.cancelled = self.cancelled.take().or(next.cancelled);
        self.reminded.extend(next.reminded);
        self.unassignable.extend(next.unassignable);
    }
}

impl Due<'_> {
    fn is_meant<T: Triggers>(&self, when: &When<T>) -> bool {
        let label = when.label.as_deref();
        when.state.is_none_or(|name| self.state.name == name)
            && label.is_none_or(|label| self.task.is_some_and(|task| task.label == label))
    }
}

/// The deadlines of active states and of their open tasks, if they count.
fn due(instance: &Instance) -> impl Iterator<Item = Due<'_>> {
    instance.active.iter().flat_map(|state| {
        let of_state = state.deadlines.iter().map(|deadline| (None, deadline));
        let open = state.tasks.iter().filter(|task| task.status.is_open());
        let of_tasks = open.flat_map(|task| {
            let deadlines = task.counting().iter();
            deadlines.map(move |deadline| (Some(task), deadline))
        });
        of_state
            .chain(of_tasks)
            .filter_map(move |(task, deadline)| {
                Some(Due {
                    state,
                    task,
                    deadline,
                    at: deadline.due_at?,
                })
            })
    })
}
