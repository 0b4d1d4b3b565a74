//! The default escalation: the manager of the person who had the overdue work gets it.
//!
//! Form, deadlines and exclusions of the assignment do not change. So a task that nobody decides goes up from manager to manager.

use crate::{
    Assignment, Facts, Flow, Graph, Member, Names, Offer, Overdue, Principal, Refusal, Task,
    TaskStatus,
};

impl Assignment {
    /// The default of [`Flow::escalate`]: offers the overdue work to the manager of its owner. Work without an owner goes to the
    /// managers of its candidates. Own work, and work that is offered to groups only, is offered as before. Concerns
    /// [`Facts::entering`] alone: other instances of the state keep their work.
    pub fn upwards<F: Flow>(
        facts: &Facts<F>,
        state: F::State,
        overdue: &Overdue,
    ) -> Result<Self, Refusal> {
        let graph = Graph::of::<F>(&facts.config, state);
        let own_work = graph
            .drawn(state.name())
            .is_some_and(|drawn| drawn.own_work);
        let again = F::assign(facts, state)?.labelled::<F>(&graph, state.name());
        let concerned = |task: &&Task| match &overdue.task {
            Some(id) => &task.id == id,
            None => task.is_open(),
        };
        let entering = facts.entering();
        let all = entering.map_or(&[][..], |state_instance| state_instance.tasks.as_slice());
        let offers: Vec<_> = all
            .iter()
            .filter(concerned)
            .map(|task| {
                let before = offer_of(task, all, &again.offers).cloned();
                let offer = before.unwrap_or_else(|| as_it_was(task));
                match superiors(task) {
                    Some(candidates) if !own_work => Offer {
                        candidates,
                        owner: None,
                        each_member: None,
                        ..offer
                    },
                    _ => offer,
                }
            })
            .collect();
        Ok(Self { offers, ..again })
    }
}

/// The offer that created a task: the only one with its label. Among several, the one with the same candidates, or else the one at the same
/// position. A task that went to a manager has other candidates than its offer.
fn offer_of<'a>(task: &Task, all: &[Task], offers: &'a [Offer]) -> Option<&'a Offer> {
    let labelled = offers.iter().filter(|offer| offer.label == task.label);
    let labelled: Vec<_> = labelled.collect();
    if let [only] = labelled.as_slice() {
        return Some(*only);
    }
    let fitting = labelled.iter().find(|offer| fits(offer, task));
    let in_order = labelled.iter().all(|offer| offer.each_member.is_none());
    let there = || labelled.get(place(task, all, labelled.len())?);
    fitting.or_else(|| there().filter(|_| in_order)).copied()
}

/// The position of the task's offer among the offers with its label. Tasks have the order of their offers. Later tasks replace the
/// cancelled ones in the same order.
fn place(task: &Task, all: &[Task], offers: usize) -> Option<usize> {
    let labelled = all.iter().filter(|one| one.label == task.label);
    let labelled: Vec<_> = labelled.collect();
    let is_gone = |at: &usize| labelled[*at].status == TaskStatus::Cancelled;
    let gone: Vec<_> = (0..labelled.len()).filter(is_gone).collect();
    let mut place = labelled.iter().position(|one| one.id == task.id)?;
    while place >= offers {
        place = gone
            .get(place - offers)
            .copied()
            .filter(|before| *before < place)?;
    }
    Some(place)
}

/// Whether the offer would create a task with these candidates.
fn fits(offer: &Offer, task: &Task) -> bool {
    match (&offer.each_member, task.candidates.as_slice()) {
        (Some(group), [Principal::Member(member)]) => member.group == *group,
        (Some(_), _) => false,
        (None, candidates) => offer.candidates == candidates,
    }
}

/// An offer for a task whose offer the assignment no longer has, or whose offer is ambiguous.
fn as_it_was(task: &Task) -> Offer {
    Offer {
        candidates: task.candidates.clone(),
        ..Offer::new(&task.label)
    }
}

fn superiors(task: &Task) -> Option<Vec<Principal>> {
    if let Some(owner) = &task.owner {
        return Some(vec![Principal::ManagerOf(owner.clone())]);
    }
    let manager = |candidate: &Principal| {
        let (Principal::User(user) | Principal::Member(Member { person: user, .. })) = candidate
        else {
            return None;
        };
        Some(Principal::ManagerOf(user.clone()))
    };
    let managers: Vec<_> = task.candidates.iter().filter_map(manager).collect();
    (!managers.is_empty()).then_some(managers)
}
