//! A running instance goes on under another version of its definition, by a person's command.
//!
//! Every stay must have a place in the target that is like its own, and what the instance holds must be what the target
//! declares. Then the work of each task state is offered as the target says; decisions stand, and whoever owns a task
//! keeps it where it is offered again and they are able to do it. A migration that would leave somebody's work to
//! nobody is refused as a whole: it writes nothing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::able::Circle;
use super::ladder::Cause;
use super::{Phase, Turn, TurnError, operation, rules};
use crate::domain::answer::{Assignment, AttributeValue, Offer, OverdueAction, Violation};
use crate::domain::event::Event;
use crate::domain::graph::{AttributeType, FiredBy, Graph, State, StateKind};
use crate::domain::ids::StateId;
use crate::domain::instance::{Instance, StateInstance, Task, TaskStatus};
use crate::domain::lookup::Findings;
use crate::domain::question::AssignCause;
use crate::domain::rejection::Rejection;
use crate::domain::version::Version;

/// Why a task was cancelled that the target does not offer, or offers to others; and why one that its owner keeps is
/// offered to others from now on.
pub(super) const MIGRATED: &str = "migrated";

/// What is left of a migration to do.
pub(super) struct Migration {
    /// Stays whose work is not yet assigned as the target says.
    pending: VecDeque<StateId>,
    /// Stays that somebody was able to work on before.
    assignable: BTreeSet<StateId>,
}

impl Turn<'_> {
    /// Goes over to the version of this turn, if the instance fits it.
    pub(super) fn migrate(&mut self, states: &BTreeMap<String, String>) -> Result<(), Rejection> {
        operation::not_ended(&self.instance)?;
        let previous = self.context.previous;
        let previous = previous.expect("a migration comes with the version that is left");
        let target = self.context.version;
        let violations = unfit(&self.instance, previous, target, states);
        if !violations.is_empty() {
            return Err(Rejection::Invalid(violations));
        }
        let renamed = states.iter().filter(|(old, new)| old != new);
        let renamed = renamed.map(|(old, new)| (old.clone(), new.clone()));
        self.emit(Event::FlowMigrated {
            previous: self.instance.definition.clone(),
            definition: target.reference.clone(),
            states: renamed.collect(),
        });
        let stays = self.instance.active.iter();
        let worked = stays.filter(|stay| self.declared(&stay.name).kind == StateKind::Task);
        let assignable = worked
            .clone()
            .filter(|stay| stay.unassignable_since.is_none());
        self.migration = Some(Migration {
            pending: worked.clone().map(|stay| stay.id).collect(),
            assignable: assignable.map(|stay| stay.id).collect(),
        });
        Ok(())
    }

    /// Asks about the next stay whose work is to be assigned anew, if there is one. What was kept for the target, or
    /// begins under it, may have moved some of them on already: those are passed over.
    pub(super) fn assign_next(&mut self) -> bool {
        while let Some(migration) = &mut self.migration
            && let Some(next) = migration.pending.pop_front()
        {
            let stay = self.instance.active.iter().find(|stay| stay.id == next);
            if let Some(stay) = stay.cloned() {
                self.phase = Phase::Assign(Box::new(stay), AssignCause::Migrated);
                return true;
            }
        }
        false
    }

    /// Refuses a migration after which nobody could do what somebody could do before.
    pub(super) fn somebody_left(&self) -> Result<(), Rejection> {
        let Some(migration) = &self.migration else {
            return Ok(());
        };
        let stays = self.instance.active.iter();
        let left = stays.filter(|stay| {
            stay.unassignable_since.is_some() && migration.assignable.contains(&stay.id)
        });
        let states: Vec<_> = left.map(|stay| stay.name.clone()).collect();
        if states.is_empty() {
            Ok(())
        } else {
            Err(Rejection::NobodyLeft { states })
        }
    }

    /// Replaces the open tasks of a stay by what the target offers.
    pub(super) fn assign_migrated(
        &mut self,
        stay: &StateInstance,
        assignment: Assignment,
        findings: &Findings,
    ) -> Result<(), TurnError> {
        let deadlines = self.open_deadlines("assign", &assignment.deadlines, findings)?;
        self.emit(Event::StateReassigned {
            state: stay.id,
            needed: assignment.needed.max(1),
            exclude: assignment.exclude,
            fallback: assignment.fallback,
            priority: assignment.priority,
            deadlines: Some(deadlines),
        });
        let mut offers = self.completed(&stay.name, assignment.offers);
        let mut made = Vec::new();
        for task in stay.tasks.iter().filter(|task| task.status.is_open()) {
            let again = offers
                .iter()
                .position(|offer| self.is_kept(stay.id, task, offer));
            let Some(offer) = again.map(|place| offers.remove(place)) else {
                self.withdraw(stay.id, task);
                continue;
            };
            let new = Task {
                status: task.status.clone(),
                ..self.task(offer, findings)?
            };
            // A form or a deadline cannot change in a task that stands; its owner gets the new one instead.
            if new.form == task.form && new.deadlines.is_empty() && task.deadlines.is_empty() {
                self.offer_kept(stay.id, task, new);
            } else {
                self.withdraw(stay.id, task);
                made.push(new);
            }
        }
        for offer in offers {
            made.push(self.task(offer, findings)?);
        }
        for task in made {
            self.emit(Event::TaskCreated {
                state: stay.id,
                state_name: stay.name.clone(),
                task,
            });
        }
        self.doubt(stay.id, Cause::Rechecked);
        Ok(())
    }

    /// Whether the task is offered again, and its owner may do it. Whether the owner is still among those whom it is
    /// offered to takes the directory: that is looked into with the doubts.
    fn is_kept(&self, state: StateId, task: &Task, offer: &Offer) -> bool {
        let TaskStatus::Claimed { owner, holding, .. } = &task.status else {
            return false;
        };
        let stay = self.stay_of(state);
        let circle = Circle {
            instance: &self.instance,
            stay,
            own_work: self.is_own_work(&stay.name),
        };
        let barred = circle.barred();
        let mut concerned = std::iter::once(owner.as_str()).chain(holding.principal());
        // A claim needs the owner to be a candidate; who is given the work need not be one, and gets a task of their own.
        let is_given = holding.assigned || !holding.delegations.is_empty();
        offer.label == task.label
            && offer.owner.iter().all(|given| given == owner && is_given)
            && !concerned.any(|person| barred.contains(person))
    }

    /// Leaves a task to its owner, and offers it to whom the target says.
    fn offer_kept(&mut self, state: StateId, task: &Task, offered: Task) {
        if offered.candidates != task.candidates {
            self.emit(Event::TaskRerouted {
                task: task.id,
                state,
                step: MIGRATED.to_owned(),
                candidates: offered.candidates,
            });
        }
    }

    fn withdraw(&mut self, state: StateId, task: &Task) {
        self.emit(Event::TaskCancelled {
            task: task.id,
            state,
            reason: Some(MIGRATED.to_owned()),
        });
    }
}

/// All that keeps the instance from going over.
fn unfit(
    instance: &Instance,
    previous: &Version,
    target: &Version,
    states: &BTreeMap<String, String>,
) -> Vec<Violation> {
    if previous.reference == target.reference {
        let message = format!("the instance runs under {} already", target.reference);
        return vec![violation("/version".into(), "same_version", message)];
    }
    let stays = || instance.active.iter().chain(&instance.waiting);
    let mut violations = Vec::new();
    for name in states.keys() {
        if !stays().any(|stay| stay.name == *name) {
            let message = format!("the instance is not in a state {name}");
            violations.push(violation(pointer(name), "not_in_use", message));
        }
    }
    let names: BTreeSet<_> = stays().map(|stay| stay.name.as_str()).collect();
    for name in names {
        let new = states.get(name).map_or(name, String::as_str);
        if let Err((code, message)) = fits(&previous.graph, &target.graph, name, new) {
            violations.push(violation(pointer(name), code, message));
            continue;
        }
        for stay in stays().filter(|stay| stay.name == name) {
            violations.extend(waits_in_vain(stay, new, &target.graph));
        }
    }
    if let Some(schema) = &target.schema
        && let Err(Rejection::Invalid(found)) = rules::satisfies(schema, "/data", &instance.data)
    {
        violations.extend(found);
    }
    violations.extend(undeclared(instance, &target.graph));
    violations
}

/// Whether a stay in `old` may go on in `new`.
fn fits(
    previous: &Graph,
    target: &Graph,
    old: &str,
    new: &str,
) -> Result<(), (&'static str, String)> {
    let Some(after) = target.state(new) else {
        return Err((
            "unknown_state",
            format!("the version has no state {new}; say which one takes its place"),
        ));
    };
    let before = previous.state(old);
    let differs =
        |is_same: fn(&State, &State) -> bool| before.is_some_and(|before| !is_same(before, after));
    if differs(|before, after| before.kind == after.kind) {
        let message = format!("{new} is a {} state there", after.kind.name());
        return Err(("other_kind", message));
    }
    if differs(|before, after| before.join == after.join) {
        let is = if after.join { "a" } else { "no" };
        return Err(("other_join", format!("{new} is {is} join there")));
    }
    if differs(|before, after| before.own_work == after.own_work) {
        let is = if after.own_work { "the" } else { "not the" };
        let message = format!("{new} is {is} initiator's own work there");
        return Err(("other_own_work", message));
    }
    Ok(())
}

/// Triggers that a wait would fire and that the target does not know.
fn waits_in_vain(stay: &StateInstance, name: &str, target: &Graph) -> Vec<Violation> {
    if target
        .state(name)
        .is_none_or(|state| state.kind != StateKind::Wait)
    {
        return Vec::new();
    }
    let due = stay
        .deadlines
        .iter()
        .filter_map(|deadline| match &deadline.action {
            OverdueAction::Fire(trigger) => Some((trigger, FiredBy::Deadline)),
            _ => None,
        });
    let running = stay.children.iter().filter(|child| child.outcome.is_none());
    let ends = running.filter_map(|child| {
        child
            .on_end
            .as_ref()
            .map(|trigger| (trigger, FiredBy::Child))
    });
    due.chain(ends)
        .filter(|(trigger, by)| {
            let way = target.transition(name, trigger);
            way.is_none_or(|way| !way.by.contains(by))
        })
        .map(|(trigger, _)| {
            let message = format!("{name} waits for {trigger}, which leads nowhere there");
            violation(pointer(&stay.name), "unknown_trigger", message)
        })
        .collect()
}

/// Attributes that the target does not declare so.
fn undeclared(instance: &Instance, target: &Graph) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (name, value) in &instance.attributes {
        let declared = target.attributes.iter().find(|known| known.name == *name);
        if declared.is_none_or(|declared| declared.kind != kind_of(value)) {
            let message = format!("the version declares no attribute {name} of this type");
            let field = format!("/attributes/{}", escaped(name));
            violations.push(violation(field, "undeclared_attribute", message));
        }
    }
    violations
}

fn kind_of(value: &AttributeValue) -> AttributeType {
    match value {
        AttributeValue::Text(_) => AttributeType::Text,
        AttributeValue::Boolean(_) => AttributeType::Boolean,
        AttributeValue::Decimal(_) => AttributeType::Decimal,
        AttributeValue::Float(_) => AttributeType::Float,
        AttributeValue::Timestamp(_) => AttributeType::Timestamp,
        AttributeValue::Bytes(_) => AttributeType::Bytes,
    }
}

fn pointer(state: &str) -> String {
    format!("/states/{}", escaped(state))
}

/// As a segment of a JSON Pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn violation(field: String, code: &str, message: String) -> Violation {
    Violation {
        field,
        code: code.to_owned(),
        message,
    }
}
