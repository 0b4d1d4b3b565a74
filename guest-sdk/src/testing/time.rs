//! Time in a scenario: the deadlines that work was given, and what they do when they pass.
//!
//! No calendar is known here: working time passes like any other.

use super::outcome::{Answer, Entered};
use super::scenario::Scenario;
use crate::bindings::wrkflw::flow::types::{Definition, Event};
use crate::{Deadline, Due, EventSource, Flow, Moment, Overdue, OverdueAction, TaskStatus};

/// Deadlines that may pass in one go.
const PASSING_MAX: usize = 1000;

/// A deadline that has not passed, or that comes again.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    at: Moment,
    /// Of this task alone.
    pub(super) task: Option<String>,
    deadline: Deadline,
    count: u32,
}

impl<F: Flow> Scenario<F> {
    pub(super) fn moment(&self) -> Moment {
        Moment::parse(&self.snapshot.now).expect("`now` is given as RFC 3339")
    }

    /// From now on these deadlines count for the stay, or for one task of it.
    #[track_caller]
    pub(super) fn schedule(&mut self, stay: &str, task: Option<&str>, deadlines: &[Deadline]) {
        let now = self.moment();
        let pending = deadlines.iter().map(|deadline| Pending {
            at: match &deadline.when {
                Due::After(seconds) => now.after(*seconds),
                Due::Working(working) => now.after(working.time),
                Due::At(time) => Moment::parse(time)
                    .unwrap_or_else(|| panic!("a deadline is at {time:?}, which is no time")),
            },
            task: task.map(Into::into),
            deadline: deadline.clone(),
            count: 0,
        });
        let pending: Vec<_> = pending.collect();
        let stay = self.stays.entry(stay.into()).or_default();
        stay.deadlines.extend(pending);
    }

    /// Time goes on, and what is due meanwhile acts, the earliest first.
    #[track_caller]
    pub(super) fn pass(
        &mut self,
        definition: &Definition,
        seconds: u32,
        entered: &mut Vec<Entered>,
    ) -> Answer {
        let until = self.moment().after(seconds);
        let mut answer = Answer::Done;
        for _ in 0..PASSING_MAX {
            let Some((stay, due)) = self.next_due(until) else {
                self.snapshot.now = until.to_string();
                return answer;
            };
            self.snapshot.now = due.at.max(self.moment()).to_string();
            if let Some(after) = self.act(definition, &stay, &due, entered) {
                answer = after;
            }
        }
        panic!("more than {PASSING_MAX} deadlines pass within {seconds} seconds");
    }

    /// Takes the deadline that passes next, and puts it back in where it repeats.
    fn next_due(&mut self, until: Moment) -> Option<(String, Pending)> {
        let active = self.snapshot.active.iter();
        let due = active.flat_map(|stay| {
            let deadlines = self.stays.get(&stay.id).map(|known| &known.deadlines);
            let open = |one: &&Pending| match &one.task {
                None => true,
                Some(id) => stay
                    .tasks
                    .iter()
                    .any(|task| &task.id == id && task.is_open()),
            };
            let due = deadlines.into_iter().flatten().enumerate();
            due.filter(move |(_, one)| open(one))
                .map(|(at, one)| (one.at, stay.id.clone(), at))
        });
        let (at, id, index) = due.min().filter(|(at, ..)| *at <= until)?;
        let deadlines = &mut self.stays.get_mut(&id)?.deadlines;
        let mut passing = deadlines.remove(index);
        passing.count += 1;
        if let Some(pause) = passing.deadline.repeat {
            let at = at.after(pause.max(1));
            let again = Pending {
                at,
                ..passing.clone()
            };
            deadlines.insert(index, again);
        }
        Some((id, passing))
    }

    #[track_caller]
    fn act(
        &mut self,
        definition: &Definition,
        stay: &str,
        due: &Pending,
        entered: &mut Vec<Entered>,
    ) -> Option<Answer> {
        match &due.deadline.action {
            OverdueAction::Remind => {
                self.reminded.push(self.called(stay, due));
                None
            }
            OverdueAction::Release => {
                self.release_overdue(stay, due.task.as_deref());
                None
            }
            OverdueAction::Escalate => {
                let (task, count) = (due.task.clone(), due.count);
                self.offer_anew(stay, Overdue { task, count }, entered);
                None
            }
            OverdueAction::Fire(trigger) => {
                let event = Event {
                    state_instance: Some(stay.into()),
                    trigger: trigger.clone(),
                    source: EventSource::Deadline,
                    input: "{}".into(),
                };
                Some(self.put(definition, &event, entered))
            }
        }
    }

    /// The label of the task that is due, or the name of the state.
    fn called(&self, stay: &str, due: &Pending) -> String {
        let mut stays = self.snapshot.active.iter();
        let stay = stays.find(|one| one.id == stay);
        let stay = stay.expect("only active stays have deadlines");
        let mut tasks = stay.tasks.iter();
        let task = tasks.find(|task| Some(&task.id) == due.task.as_ref());
        task.map_or_else(|| stay.name.clone(), |task| task.label.clone())
    }

    fn release_overdue(&mut self, stay: &str, task: Option<&str>) {
        let stays = self.snapshot.active.iter_mut().filter(|one| one.id == stay);
        let tasks = stays
            .flat_map(|stay| &mut stay.tasks)
            .filter(|one| one.status == TaskStatus::Claimed)
            .filter(|one| task.is_none_or(|id| one.id == id));
        for task in tasks {
            (task.status, task.owner, task.claimed_at) = (TaskStatus::Pending, None, None);
        }
    }

    /// Writes into the facts when the next deadline of each stay and task passes.
    pub(super) fn tell_due(&mut self) {
        for stay in &mut self.snapshot.active {
            let Some(known) = self.stays.get(&stay.id) else {
                continue;
            };
            let next = |task: Option<&String>| {
                let deadlines = known.deadlines.iter();
                let due = deadlines.filter(|one| one.task.as_ref() == task);
                due.map(|one| one.at).min().map(|at| at.to_string())
            };
            stay.due_at = next(None);
            for task in &mut stay.tasks {
                task.due_at = if task.is_open() {
                    next(Some(&task.id))
                } else {
                    None
                };
            }
        }
    }
}
