//! The work of a state in a scenario: its tasks, and how they are offered anew.

use super::event::When;
use super::outcome::{Answer, Entered};
use super::scenario::Scenario;
use crate::bindings::exports::wrkflw::flow::logic::Guest;
use crate::export::Logic;
use crate::{
    AssignCause, Assignment, Flow, Offer, Overdue, Principal, Reason, StateInstance, Task,
    TaskStatus,
};

impl<F: Flow> Scenario<F> {
    /// A deadline with the action `escalate` has passed: the tasks still open are offered anew.
    pub(super) fn escalate(
        &mut self,
        when: &When<F::Trigger>,
        count: u32,
        entered: &mut Vec<Entered>,
    ) -> Answer {
        let mut stays = self
            .snapshot
            .active
            .iter()
            .filter(|stay| when.state.is_none_or(|name| stay.name == name));
        let Some((id, name)) = stays
            .find(|stay| stay.tasks.iter().any(Task::is_open))
            .map(|stay| (stay.id.clone(), stay.name.clone()))
        else {
            return Answer::Denied(Reason::new(
                "nothing_overdue",
                "No state being worked on has an open task.",
            ));
        };
        let cause = AssignCause::Overdue(Overdue { task: None, count });
        let assignment = Logic::<F>::assign(self.snapshot.clone(), name.clone(), cause);
        let tasks = self
            .snapshot
            .active
            .iter_mut()
            .filter(|stay| stay.id == id)
            .flat_map(|stay| &mut stay.tasks);
        tasks
            .filter(|task| task.is_open())
            .for_each(|task| task.status = TaskStatus::Cancelled);
        self.offer(&id, &assignment);
        entered.push(Entered::Task(name, assignment));
        Answer::Done
    }

    /// Creates the tasks that an assignment offers.
    #[track_caller]
    pub(super) fn offer(&mut self, id: &str, assignment: &Assignment) {
        let somebody = |offer: &Offer| !offer.candidates.is_empty() || offer.owner.is_some();
        assert!(
            assignment.fallback.is_some() || assignment.offers.iter().any(somebody),
            "the flow offers the work of this state to nobody: {assignment:#?}"
        );
        let tasks: Vec<_> = assignment
            .offers
            .iter()
            .map(|offer| self.task(offer))
            .collect();
        self.stays
            .entry(id.into())
            .or_default()
            .exclude
            .extend(assignment.exclude.iter().cloned());
        for stay in self.snapshot.active.iter_mut().filter(|stay| stay.id == id) {
            stay.needed = assignment.needed;
            stay.tasks.extend(tasks.iter().cloned());
        }
    }

    /// A stay in a state, before anybody works on it.
    pub(super) fn stay(&mut self, name: &str, from: &[String]) -> StateInstance {
        StateInstance {
            id: self.id("state"),
            name: name.into(),
            entered_at: self.snapshot.now.clone(),
            due_at: None,
            predecessors: from.to_vec(),
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
