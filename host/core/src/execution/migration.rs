//! The command that continues an instance under another version of its definition, the target.
//!
//! Every state instance must have a matching state in the target, and the instance's data and attributes must satisfy the
//! target's declarations. Then `enter` of the target is called for the task states. Wait and service states go on unchanged,
//! if the target declares the triggers that move them. Decisions are kept. An owner keeps a task that is offered again, if
//! they are still eligible. A migration is refused as a whole if nobody could do work after it that somebody could do before.

use std::collections::{BTreeMap, BTreeSet};

use super::enter::PendingEntry;
use super::next::may_be_moved;
use super::{Execution, declared, operation, plan, rules};
use crate::answer::{AttributeValue, OverdueAction, Violation};
use crate::event::Event;
use crate::graph::{AttributeType, FiredBy, Graph, State, StateKind};
use crate::ids::StateId;
use crate::instance::{Instance, StateInstance};
use crate::json::escaped;
use crate::question::EntryCause;
use crate::rejection::Rejection;
use crate::version::Version;

/// The progress of a migration.
pub(super) struct Migration {
    /// State instances whose work is still to be assigned under the target.
    pending: BTreeSet<StateId>,
    /// State instances that were not marked unassignable before.
    assignable: BTreeSet<StateId>,
}

/// Migrates to the version of this execution, if the instance fits it.
pub(super) fn begin(
    execution: &mut Execution<'_>,
    states: &BTreeMap<String, String>,
) -> Result<(), Rejection> {
    operation::not_ended(&execution.instance)?;
    let (previous, target) = (execution.context.previous, execution.context.version);
    let previous = previous.expect("a migration comes with the version that is left");
    let violations = migration_violations(&execution.instance, previous, target, states);
    if !violations.is_empty() {
        return Err(Rejection::Invalid(violations));
    }
    let renamed = states.iter().filter(|(old, new)| old != new);
    let renamed = renamed.map(|(old, new)| (old.clone(), new.clone()));
    execution.emit(Event::FlowMigrated {
        previous: execution.instance.definition.clone(),
        definition: target.reference.clone(),
        states: renamed.collect(),
        sole: target.graph.sole_per_entity,
        observers: target.graph.observers.clone(),
    });
    plan::retitle(execution);
    let state_instances = execution.instance.active.iter();
    let worked = state_instances.filter(|state_instance| {
        declared(&target.graph, &state_instance.name).kind == StateKind::Task
    });
    let assignable = worked
        .clone()
        .filter(|state_instance| state_instance.unassignable_since.is_none());
    execution.migration = Some(Migration {
        pending: worked
            .clone()
            .map(|state_instance| state_instance.id)
            .collect(),
        assignable: assignable.map(|state_instance| state_instance.id).collect(),
    });
    Ok(())
}

impl Migration {
    /// The questions to `enter` for the work in the pending state instances, if there are any. Skips those that a join has cancelled
    /// meanwhile.
    pub(super) fn take_pending(&mut self, instance: &Instance) -> Option<Vec<PendingEntry>> {
        let pending = std::mem::take(&mut self.pending);
        let is_pending = |state_instance: &&StateInstance| pending.contains(&state_instance.id);
        let active = instance.active.iter().filter(is_pending);
        let entries: Vec<_> = active
            .map(|state_instance| PendingEntry {
                state_instance: state_instance.clone(),
                cause: EntryCause::Migrated,
            })
            .collect();
        (!entries.is_empty()).then_some(entries)
    }

    /// Refuses the migration if it has made a state instance unassignable.
    pub(super) fn check_still_assignable(&self, instance: &Instance) -> Result<(), Rejection> {
        let left = instance.active.iter().filter(|state_instance| {
            state_instance.unassignable_since.is_some()
                && self.assignable.contains(&state_instance.id)
        });
        let states: Vec<_> = left
            .map(|state_instance| state_instance.name.clone())
            .collect();
        if states.is_empty() {
            Ok(())
        } else {
            Err(Rejection::NobodyLeft { states })
        }
    }
}

/// Every reason why the instance cannot migrate.
fn migration_violations(
    instance: &Instance,
    previous: &Version,
    target: &Version,
    states: &BTreeMap<String, String>,
) -> Vec<Violation> {
    if previous.reference == target.reference {
        let message = format!("the instance runs under {} already", target.reference);
        return vec![violation("/version".into(), "same_version", message)];
    }
    let state_instances = || instance.active.iter().chain(&instance.waiting);
    let mut violations = Vec::new();
    for name in states.keys() {
        if !state_instances().any(|state_instance| state_instance.name == *name) {
            let message = format!("the instance is not in a state {name}");
            violations.push(violation(pointer(name), "not_in_use", message));
        }
    }
    let names: BTreeSet<_> = state_instances()
        .map(|state_instance| state_instance.name.as_str())
        .collect();
    for name in names {
        let new = new_name(states, name);
        if let Err((code, message)) = fits(&previous.graph, &target.graph, name, new) {
            violations.push(violation(pointer(name), code, message));
            continue;
        }
        let (before, after) = ((name, &previous.graph), (new, &target.graph));
        violations.extend(waits_in_vain(instance, before, after));
    }
    violations.extend(merged(instance, states));
    if let Some(schema) = &target.schema
        && let Err(Rejection::Invalid(found)) = rules::satisfies(schema, "/data", &instance.data)
    {
        violations.extend(found);
    }
    violations.extend(undeclared_attributes(instance, &target.graph));
    violations
}

/// Whether a state instance in `old` may continue in `new`.
fn fits(
    previous: &Graph,
    target: &Graph,
    old: &str,
    new: &str,
) -> Result<(), (&'static str, String)> {
    let Some(after) = target.state(new) else {
        return Err((
            "unknown_state",
            format!("the version has no state {new}; name the state that replaces it"),
        ));
    };
    let before = previous.state(old);
    let differs =
        |is_same: fn(&State, &State) -> bool| before.is_some_and(|before| !is_same(before, after));
    if differs(|before, after| before.kind == after.kind) {
        let message = format!("{new} is a {} state there", after.kind.name());
        return Err(("other_kind", message));
    }
    if differs(|before, after| before.join.is_join() == after.join.is_join()) {
        let is = if after.join.is_join() { "a" } else { "no" };
        return Err(("other_join", format!("{new} is {is} join there")));
    }
    if differs(|before, after| before.own_work == after.own_work) {
        let is = if after.own_work { "the" } else { "not the" };
        let message = format!("{new} is {is} initiator's own work there");
        return Err(("other_own_work", message));
    }
    Ok(())
}

/// The losses of wait and service states of this name in the target, because `enter` is not asked for them again: triggers that
/// they wait for, and the signals without which nothing moves them. A state instance that nothing moves already loses nothing.
fn waits_in_vain(
    instance: &Instance,
    (name, previous): (&str, &Graph),
    (new, target): (&str, &Graph),
) -> Vec<Violation> {
    let kind = target.state(new).map(|state| &state.kind);
    if !matches!(kind, Some(StateKind::Wait | StateKind::Service)) {
        return Vec::new();
    }
    let active = instance.active.iter();
    let here: Vec<_> = active.filter(|one| one.name == name).collect();
    let undeclared = here
        .iter()
        .flat_map(|one| undeclared_triggers(one, new, target));
    let mut violations: Vec<_> = undeclared.collect();
    let is_lost = |one: &&StateInstance| {
        may_be_moved(previous, name, one, |_| false) && !may_be_moved(target, new, one, |_| false)
    };
    if here.iter().any(is_lost) {
        let message = format!(
            "only a signal moves {name}, and {new} takes none there; declare a signal that leaves {new}"
        );
        violations.push(violation(pointer(name), "nothing_moves_it", message));
    }
    violations
}

/// Triggers of a wait or service state instance that the target does not declare.
fn undeclared_triggers(
    state_instance: &StateInstance,
    name: &str,
    target: &Graph,
) -> Vec<Violation> {
    let due = state_instance
        .deadlines
        .iter()
        .filter_map(|deadline| match &deadline.action {
            OverdueAction::Fire(trigger) => Some((trigger, FiredBy::Deadline)),
            _ => None,
        });
    let running = state_instance
        .children
        .iter()
        .filter(|child| child.outcome.is_none());
    let ends = running.filter_map(|child| {
        child
            .on_end
            .as_ref()
            .map(|trigger| (trigger, FiredBy::Child))
    });
    let signals = state_instance.subscriptions.iter();
    let signals = signals.map(|one| (&one.trigger, FiredBy::Signal));
    let call = state_instance.open_call().into_iter();
    let answers = call.flat_map(|call| {
        [
            (&call.on_reply, FiredBy::Reply),
            (&call.on_failure, FiredBy::Failure),
        ]
    });
    due.chain(ends)
        .chain(answers)
        .chain(signals)
        .filter(|(trigger, by)| {
            let way = target.transition(name, trigger);
            way.is_none_or(|way| !way.by.contains(by))
        })
        .map(|(trigger, _)| {
            let message = format!("{name} waits for {trigger}, which is not declared there");
            violation(pointer(&state_instance.name), "unknown_trigger", message)
        })
        .collect()
}

/// State instances that would be the same one after the migration: active ones by their name and key, waiting ones by their
/// join and its forks, because a join begins once for all branches of its fork.
fn merged(instance: &Instance, states: &BTreeMap<String, String>) -> Vec<Violation> {
    let mut keys = BTreeSet::new();
    let keyed = instance
        .active
        .iter()
        .filter_map(|one| Some((one, one.key.as_ref()?)));
    let same_keys = keyed.filter(|(one, key)| !keys.insert((new_name(states, &one.name), *key)));
    let same_keys = same_keys.map(|(one, key)| {
        let message = format!("another state has the key {key:?} there");
        violation(pointer(&one.name), "same_key", message)
    });
    let mut joins = BTreeSet::new();
    let waiting = instance.waiting.iter();
    let same_joins = waiting.filter(|one| !joins.insert((new_name(states, &one.name), &one.forks)));
    let same_joins = same_joins.map(|one| {
        let new = new_name(states, &one.name);
        let message = format!(
            "branches of one fork wait in two joins, and both would be {new}; name a join for each, or wait until one has begun"
        );
        violation(pointer(&one.name), "same_join", message)
    });
    same_keys.chain(same_joins).collect()
}

/// Attributes that the target does not declare with their type.
fn undeclared_attributes(instance: &Instance, target: &Graph) -> Vec<Violation> {
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

/// The name in the target.
fn new_name<'s>(states: &'s BTreeMap<String, String>, name: &'s str) -> &'s str {
    states.get(name).map_or(name, String::as_str)
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

fn violation(field: String, code: &str, message: String) -> Violation {
    Violation {
        expected: None,
        field,
        code: code.to_owned(),
        message,
    }
}
