//! Time in a scenario: selects the deadlines that a test names. The core runs them.

use jiff::{SignedDuration, Timestamp};
use wrkflw_core::actor::Actor;
use wrkflw_core::answer::OverdueAction;
use wrkflw_core::command::Command;
use wrkflw_core::ids::DeadlineId;
use wrkflw_core::scenario::{Due, PASSING_MAX, due, is_still_due, next_moment};

use super::contract::lower;
use super::event::When;
use super::outcome::{Answer, Outcome};
use super::scenario::Scenario;
use super::when::denied;
use crate::{Flow, Triggers};

impl<F: Flow> Scenario<F> {
    /// Moves the time. The deadlines that pass act, the earliest first.
    #[track_caller]
    pub(super) fn later(&mut self, seconds: u32) -> Outcome {
        let until = self.world.now + SignedDuration::from_secs(i64::from(seconds));
        self.started();
        let mut all = Outcome::nothing();
        for _ in 0..PASSING_MAX {
            let Some((_, outcome)) = self.passes(until) else {
                self.snapshot.now = lower::timestamp(until);
                return all;
            };
            all.add(outcome);
        }
        panic!("more than {PASSING_MAX} deadlines pass within {seconds} seconds");
    }

    /// Moves the time to the next deadline that fires this trigger.
    #[track_caller]
    pub(super) fn until_fired(&mut self, when: &When<F::Trigger>, trigger: &str) -> Outcome {
        let fires = |action: &OverdueAction| matches!(action, OverdueAction::Fire(fired) if fired == trigger);
        let next =
            due(self.started()).filter(|due| is_meant(due, when) && fires(&due.deadline.action));
        let next = next.min_by_key(|due| due.at);
        let Some(id) = next.map(|due| due.deadline.id) else {
            return denied("no_deadline", format!("no open deadline fires {trigger}"));
        };
        self.until_passed(id, 1)
    }

    /// Moves the time until an escalating deadline passes for the count-th time.
    #[track_caller]
    pub(super) fn until_escalated(&mut self, when: &When<F::Trigger>, count: u32) -> Outcome {
        let escalates = |due: &Due<'_>| {
            let of_what = due.task.is_some() == when.label.is_some();
            of_what && is_meant(due, when) && due.deadline.action == OverdueAction::Escalate
        };
        let next = due(self.started()).filter(escalates);
        let next = next.min_by_key(|due| due.at);
        let next = next.map(|due| (due.deadline.id, count.checked_sub(due.deadline.count)));
        let Some((id, Some(times @ 1..))) = next else {
            let message = format!("no open deadline has escalation number {count} still to come");
            return denied("no_deadline", message);
        };
        self.until_passed(id, times)
    }

    /// Moves the time until this deadline has passed `times` times. Returns only its last outcome.
    #[track_caller]
    fn until_passed(&mut self, wanted: DeadlineId, mut times: u32) -> Outcome {
        for _ in 0..PASSING_MAX {
            if !due(self.started()).any(|due| due.deadline.id == wanted) {
                let message = "an earlier deadline has already ended the state or task that this deadline belongs to".to_owned();
                return denied("no_deadline", message);
            }
            let (id, outcome) = self.passes(Timestamp::MAX).expect("one is open");
            if id == wanted {
                times -= 1;
            }
            if times == 0 {
                return outcome;
            }
        }
        panic!("more than {PASSING_MAX} deadlines pass before it");
    }

    /// Moves the time to the next deadline up to `until`, and runs it. None if there is no such deadline.
    #[track_caller]
    fn passes(&mut self, until: Timestamp) -> Option<(DeadlineId, Outcome)> {
        let command = next_moment(&mut self.world, until)?;
        let Command::Deadline { deadline, .. } = command else {
            unreachable!("absences of native tests have no end")
        };
        let outcome = self.run(&Actor::host(), &command);
        assert!(
            !is_still_due(&self.world, &command),
            "the host tries this deadline again and again: {outcome:#?}"
        );
        Some((deadline, outcome))
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

fn is_meant<T: Triggers>(due: &Due<'_>, when: &When<T>) -> bool {
    let label = when.label.as_deref();
    when.meant().is(due.state)
        && label.is_none_or(|label| due.task.is_some_and(|task| task.label == label))
}
