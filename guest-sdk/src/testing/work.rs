//! The work of a state in a scenario: its tasks, who claims them, and how they are offered anew.

use super::checks;
use super::event::When;
use super::outcome::{Answer, Entered};
use super::scenario::Scenario;
use crate::bindings::exports::wrkflw::flow::logic::Guest;
use crate::bindings::wrkflw::flow::types::Definition;
use crate::export::Logic;
use crate::{
    AssignCause, Assignment, Flow, Offer, Overdue, Principal, Reason, StateInstance, Task,
    TaskStatus,
};

impl<F: Flow> Scenario<F> {
    /// Somebody claims the task that they are offered.
    pub(super) fn claim(
        &mut self,
        definition: &Definition,
        when: &When<F::Trigger>,
        user: &str,
    ) -> Result<Answer, Reason> {
        let label = when.label.as_deref();
        let here = |stay: &&StateInstance| when.state.is_none_or(|name| stay.name == name);
        let stays = || self.snapshot.active.iter().filter(here);
        let mine = stays().find(|stay| self.offered(stay, user, label).is_some());
        let stay = mine.or_else(|| stays().next()).cloned();
        let stay = stay.ok_or_else(|| Reason::new("not_candidate", "No state is active."))?;
        let id = self.decidable(definition, &stay, when, user)?.id.clone();
        self.own(&id, Some(user));
        Ok(Answer::Done)
    }

    /// Somebody gives back the task that they own.
    pub(super) fn release(&mut self, user: &str) -> Result<Answer, Reason> {
        let mut tasks = self.snapshot.active.iter().flat_map(|stay| &stay.tasks);
        let owned = tasks.find(|task| task.is_open() && task.owner.as_deref() == Some(user));
        let none = || Reason::new("not_owner", format!("{user} owns no open task."));
        let id = owned.ok_or_else(none)?.id.clone();
        self.own(&id, None);
        Ok(Answer::Done)
    }

    fn own(&mut self, id: &str, owner: Option<&str>) {
        let now = &self.snapshot.now;
        let tasks = self
            .snapshot
            .active
            .iter_mut()
            .flat_map(|stay| &mut stay.tasks);
        for task in tasks.filter(|task| task.id == id) {
            task.owner = owner.map(Into::into);
            task.claimed_at = owner.map(|_| now.clone());
            task.status = match owner {
                Some(_) => TaskStatus::Claimed,
                None => TaskStatus::Pending,
            };
        }
    }

    /// A deadline with the action `escalate` has passed for a task, or for the state as a whole.
    pub(super) fn escalate(
        &mut self,
        when: &When<F::Trigger>,
        count: u32,
        entered: &mut Vec<Entered>,
    ) -> Result<Answer, Reason> {
        let wanted = |task: &&Task| {
            let named = when.label.as_ref().is_none_or(|label| &task.label == label);
            task.is_open() && named
        };
        let stays = self.snapshot.active.iter();
        let mut overdue = stays
            .filter(|stay| when.state.is_none_or(|name| stay.name == name))
            .filter_map(|stay| Some((stay, stay.tasks.iter().find(wanted)?)));
        let none = || {
            Reason::new(
                "nothing_overdue",
                "No state being worked on has such a task.",
            )
        };
        let (stay, task) = overdue.next().ok_or_else(none)?;
        let task = when.label.as_ref().map(|_| task.id.clone());
        let stay = stay.id.clone();
        self.offer_anew(&stay, Overdue { task, count }, entered);
        Ok(Answer::Done)
    }

    /// The work of each state is offered as this version of the flow says.
    pub(super) fn migrate(&mut self, entered: &mut Vec<Entered>) -> Answer {
        for stay in self.snapshot.active.clone() {
            let open: Vec<_> = stay.tasks.iter().filter(|task| task.is_open()).collect();
            if open.is_empty() {
                continue;
            }
            let name = stay.name.clone();
            let cause = AssignCause::Migrated;
            let assignment = Logic::<F>::assign(self.snapshot.clone(), name.clone(), cause);
            self.cancel_open(&stay.id, None);
            self.offer(&stay.id, &assignment);
            for task in open {
                let Some(owner) = &task.owner else { continue };
                let mut stays = self.snapshot.active.iter();
                let now = stays.find(|one| one.id == stay.id);
                let again = now.and_then(|now| self.offered(now, owner, Some(&task.label)));
                if let Some(id) = again.map(|task| task.id.clone()) {
                    self.own(&id, Some(owner));
                }
            }
            entered.push(Entered::Task(name, assignment));
        }
        Answer::Done
    }

    /// Withdraws the task, or every open one of the stay.
    fn cancel_open(&mut self, stay: &str, task: Option<&str>) {
        let stays = self.snapshot.active.iter_mut().filter(|one| one.id == stay);
        let tasks = stays
            .flat_map(|stay| &mut stay.tasks)
            .filter(|one| one.is_open() && task.is_none_or(|id| one.id == id));
        tasks.for_each(|task| task.status = TaskStatus::Cancelled);
    }

    /// What is overdue is offered as the flow says now.
    #[track_caller]
    pub(super) fn offer_anew(&mut self, id: &str, overdue: Overdue, entered: &mut Vec<Entered>) {
        let mut stays = self.snapshot.active.iter();
        let stay = stays.find(|stay| stay.id == id);
        let name = stay.expect("only active stays are overdue").name.clone();
        let task = overdue.task.clone();
        let cause = AssignCause::Overdue(overdue);
        let assignment = Logic::<F>::assign(self.snapshot.clone(), name.clone(), cause);
        self.cancel_open(id, task.as_deref());
        self.offer(id, &assignment);
        entered.push(Entered::Task(name, assignment));
    }

    /// Creates the tasks that an assignment offers.
    #[track_caller]
    pub(super) fn offer(&mut self, id: &str, assignment: &Assignment) {
        let definition = self.definition();
        let mut stays = self.snapshot.active.iter();
        let stay = stays.find(|stay| stay.id == id);
        let stay = stay.expect("only active stays are assigned");
        let tasks = stay.tasks.iter();
        let kept = tasks.filter(|task| task.status != TaskStatus::Cancelled);
        let requesters = &self.snapshot.instance.requesters;
        checks::assignment(&definition, stay, kept.count(), assignment, requesters);
        let first = stay.tasks.is_empty();
        let offers = assignment.offers.iter();
        let tasks: Vec<_> = offers.map(|offer| self.task(offer)).collect();
        let known = self.stays.entry(id.into()).or_default();
        known.exclude = assignment.exclude.iter().cloned().collect();
        if first {
            self.schedule(id, None, &assignment.deadlines);
        }
        for (task, offer) in tasks.iter().zip(&assignment.offers) {
            self.schedule(id, Some(&task.id), &offer.deadlines);
        }
        for stay in self.snapshot.active.iter_mut().filter(|stay| stay.id == id) {
            stay.needed = assignment.needed;
            stay.tasks.extend(tasks.iter().cloned());
        }
    }

    /// A stay in a state, before anybody works on it.
    pub(super) fn stay(&mut self, name: &str, from: Option<&String>) -> StateInstance {
        StateInstance {
            id: self.id("state"),
            name: name.into(),
            entered_at: self.snapshot.now.clone(),
            due_at: None,
            predecessors: from.into_iter().cloned().collect(),
            needed: 0,
            tasks: vec![],
            children: vec![],
        }
    }

    pub(super) fn id(&mut self, kind: &str) -> String {
        self.ids += 1;
        format!("{kind}-{}", self.ids)
    }

    fn task(&mut self, offer: &Offer) -> Task {
        let owned = offer.owner.is_some();
        Task {
            id: self.id("task"),
            label: offer.label.clone(),
            status: if owned {
                TaskStatus::Claimed
            } else {
                TaskStatus::Pending
            },
            candidates: offer
                .candidates
                .iter()
                .map(|candidate| self.looked_up(candidate))
                .collect(),
            owner: offer.owner.clone(),
            created_at: self.snapshot.now.clone(),
            claimed_at: owned.then(|| self.snapshot.now.clone()),
            due_at: None,
            decision: None,
        }
    }

    fn looked_up(&self, candidate: &Principal) -> Principal {
        let Principal::ManagerOf(user) = candidate else {
            return candidate.clone();
        };
        let manager = self
            .people
            .get(user)
            .and_then(|person| person.manager.clone());
        manager.map_or_else(|| candidate.clone(), Principal::User)
    }
}
