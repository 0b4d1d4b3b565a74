//! The parts of an instance as rows: state instances with their tasks, candidates and decisions, attributes, and subscriptions to
//! signals. Only parts that a change adds, alters or removes have rows.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::jobs::{self, matching};
use super::{
    Attribute, CandidateRow, Decided, Departure, Of, Rows, State, SubscriptionRow, TaskRow,
};
use crate::commit::Change;
use crate::time::Time;
use wrkflw_core::answer::AttributeValue;
use wrkflw_core::ids::StateId;
use wrkflw_core::instance::{Candidate, Instance, PastState, StateInstance, Task};

/// The phase of a state instance.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Phase<'a> {
    Active,
    Waiting,
    Left(&'a PastState),
}

/// All state instances of an instance, in the order in which they were entered. Ids that one command generates are in that
/// order.
pub(super) fn state_instances(instance: &Instance) -> Vec<(&StateInstance, Phase<'_>)> {
    let past = instance.past.iter();
    let mut state_instances: Vec<_> = past.map(|past| (&past.state, Phase::Left(past))).collect();
    state_instances.extend(
        instance
            .waiting
            .iter()
            .map(|state_instance| (state_instance, Phase::Waiting)),
    );
    state_instances.extend(
        instance
            .active
            .iter()
            .map(|state_instance| (state_instance, Phase::Active)),
    );
    state_instances
        .sort_by_key(|(state_instance, _)| (state_instance.entered_at, state_instance.id));
    state_instances
}

impl<'a> Rows<'a> {
    /// Adds the row of a stored state instance that has changed.
    pub(super) fn follow(
        &mut self,
        of: Of,
        before: (&'a StateInstance, Phase<'a>),
        after: (&'a StateInstance, Phase<'a>),
    ) {
        match after.1 {
            Phase::Left(past) if before.1 == Phase::Active && !differ(before.0, after.0) => {
                self.departed.push(Departure {
                    member: of.member,
                    tenant_id: of.tenant,
                    instance_id: of.instance,
                    id: past.state.id.0,
                    left_at: Time(past.left_at),
                    left_trigger: &past.left_trigger,
                    left_actor: past.actor.as_deref(),
                });
            }
            phase if phase != before.1 || before.0 != after.0 => {
                self.changed_states.push(State::of(of, 0, after.0, phase));
            }
            _ => {}
        }
    }
}

/// Whether a column has changed, other than those that leaving the state clears. Tasks have their own rows.
fn differ(before: &StateInstance, after: &StateInstance) -> bool {
    let mut changed = before.changed_columns(after);
    changed.any(|column| !StateInstance::CLEARED.contains(&column))
}

impl<'a> State<'a> {
    pub(super) fn of(
        of: Of,
        ordinal: u32,
        state: &'a StateInstance,
        phase: Phase<'a>,
    ) -> State<'a> {
        let past = match phase {
            Phase::Left(past) => Some(past),
            Phase::Active | Phase::Waiting => None,
        };
        State {
            member: of.member,
            tenant_id: of.tenant,
            instance_id: of.instance,
            ordinal: ordinal.cast_signed(),
            waiting: phase == Phase::Waiting,
            left_at: past.map(|past| Time(past.left_at)),
            left_trigger: past.map(|past| past.left_trigger.as_str()),
            left_actor: past.and_then(|past| past.actor.as_deref()),
            record: state.columns(),
        }
    }
}

impl<'a> Rows<'a> {
    pub(super) fn tasks(
        &mut self,
        of: Of,
        change: &'a Change,
        known: &'a [Task],
        state: &'a StateInstance,
    ) {
        let known: BTreeMap<_, _> = known.iter().map(|known| (known.id, known)).collect();
        for (ordinal, task) in (0_i32..).zip(&state.tasks) {
            let old = known.get(&task.id).copied();
            match old {
                None => {
                    self.created
                        .push(TaskRow::of((of, ordinal), change, state, task));
                    if task.status.is_open() {
                        let offered = listed(&task.candidates, &[]);
                        self.offered.extend(
                            offered.map(|candidate| CandidateRow::of(of, task, Some(candidate))),
                        );
                    }
                }
                Some(old) if old != task || change.is_resighted() => {
                    self.alter((of, ordinal), change, state, (old, task));
                }
                Some(_) => continue,
            }
            if task.decision().is_some() && old.is_none_or(|old| old.decision().is_none()) {
                self.decided.push(Decided::of(of, change, task));
            }
        }
    }

    fn alter(
        &mut self,
        (of, ordinal): (Of, i32),
        change: &Change,
        state: &'a StateInstance,
        (old, task): (&'a Task, &'a Task),
    ) {
        self.changed
            .push(TaskRow::of((of, ordinal), change, state, task));
        if task.status.is_open() {
            let new = listed(&task.candidates, &old.candidates);
            self.reoffered
                .extend(new.map(|candidate| CandidateRow::of(of, task, Some(candidate))));
            let gone = listed(&old.candidates, &task.candidates);
            self.withdrawn
                .extend(gone.map(|candidate| CandidateRow::of(of, task, Some(candidate))));
        } else if old.status.is_open() {
            // A row without a candidate withdraws all of them.
            self.withdrawn.push(CandidateRow::of(of, task, None));
        }
    }
}

impl<'a> CandidateRow<'a> {
    fn of(of: Of, task: &Task, candidate: Option<(&'static str, &'a str)>) -> CandidateRow<'a> {
        let (kind, principal) = candidate.unzip();
        CandidateRow {
            member: of.member,
            tenant_id: of.tenant,
            task_id: task.id.0,
            kind,
            principal,
        }
    }
}

impl<'a> Decided<'a> {
    fn of(of: Of, change: &'a Change, task: &'a Task) -> Decided<'a> {
        let decision = task.decision().expect("asked for a decided task only");
        let mut seals = change.seals.iter();
        let seal = seals.find(|seal| seal.task == task.id);
        let seal = seal.expect("every decision is sealed");
        Decided {
            member: of.member,
            tenant_id: of.tenant,
            instance_id: of.instance,
            task_id: task.id.0,
            key_id: &seal.key_id,
            mac_version: seal.version,
            mac: &seal.mac,
            record: decision.columns(),
        }
    }
}

impl<'a> TaskRow<'a> {
    fn of(
        (of, ordinal): (Of, i32),
        change: &Change,
        state: &StateInstance,
        task: &'a Task,
    ) -> TaskRow<'a> {
        let mut record = task.columns();
        record.extend(task.status.columns());
        TaskRow {
            member: of.member,
            tenant_id: of.tenant,
            instance_id: of.instance,
            state_id: state.id.0,
            ordinal,
            restricted: change.after.observers.is_some(),
            record,
        }
    }
}

/// The kinds and ids of the candidates that are not in `others`, without duplicates.
fn listed<'a>(
    candidates: &'a [Candidate],
    others: &'a [Candidate],
) -> impl Iterator<Item = (&'static str, &'a str)> {
    fn row(candidate: &Candidate) -> (&'static str, &str) {
        (candidate.principal_kind(), candidate.id())
    }
    let others: Vec<_> = others.iter().map(row).collect();
    let rows = candidates.iter().map(row);
    let mut listed: Vec<_> = rows.filter(|row| !others.contains(row)).collect();
    listed.sort_unstable();
    listed.dedup();
    listed.into_iter()
}

impl<'a> Rows<'a> {
    /// Adds the rows of changed attributes, with one value column each. The row of a removed attribute has no type.
    pub(super) fn attributes(&mut self, of: Of, before: Option<&'a Instance>, after: &'a Instance) {
        let old = before.map(|before| &before.attributes);
        let gone = old.into_iter().flat_map(|old| old.keys());
        for name in gone.filter(|name| !after.attributes.contains_key(*name)) {
            self.attributes.push(Attribute::of(of, name, None));
        }
        for (name, value) in &after.attributes {
            if old.and_then(|old| old.get(name)) != Some(value) {
                self.attributes.push(Attribute::of(of, name, Some(value)));
            }
        }
    }
}

impl<'a> Attribute<'a> {
    fn of(of: Of, name: &'a str, value: Option<&'a AttributeValue>) -> Attribute<'a> {
        let mut row = Attribute {
            member: of.member,
            tenant_id: of.tenant,
            instance_id: of.instance,
            name,
            r#type: None,
            text_value: None,
            boolean_value: None,
            decimal_value: None,
            float_value: None,
            timestamp_value: None,
            bytes_value: None,
        };
        let kind = match value {
            None => return row,
            Some(AttributeValue::Text(value)) => {
                row.text_value = Some(value);
                "text"
            }
            Some(AttributeValue::Boolean(value)) => {
                row.boolean_value = Some(*value);
                "boolean"
            }
            Some(AttributeValue::Decimal(value)) => {
                row.decimal_value = Some(value);
                "decimal"
            }
            Some(AttributeValue::Float(value)) => {
                row.float_value = Some(*value);
                "float"
            }
            Some(AttributeValue::Timestamp(value)) => {
                row.timestamp_value = Some(Time(*value));
                "timestamp"
            }
            Some(AttributeValue::Bytes(value)) => {
                row.bytes_value = Some(value);
                "bytes"
            }
        };
        row.r#type = Some(kind);
        row
    }
}

/// A state instance, when it was entered, a trigger and a correlation key.
type SubscriptionKey<'a> = (StateId, Timestamp, &'a str, &'a str);

impl<'a> Rows<'a> {
    /// Adds and removes the rows of subscriptions. A state instance gets a job that matches earlier signals if it has a new
    /// subscription, or one that takes buffered signals from now on. The job ends with the last subscription.
    pub(super) fn subscriptions(&mut self, of: Of, change: &'a Change) {
        let before = change.before.as_ref().map(|stored| &stored.instance);
        let (old, new) = (before.map(known).unwrap_or_default(), known(&change.after));
        let states =
            |all: &BTreeMap<SubscriptionKey<'_>, bool>| all.keys().map(|one| one.0).collect();
        let (earlier, current): (BTreeSet<StateId>, BTreeSet<StateId>) =
            (states(&old), states(&new));
        let begins = |(one, buffered): &(&SubscriptionKey<'_>, &bool)| match old.get(one) {
            None => true,
            Some(was_buffered) => **buffered && !was_buffered,
        };
        let begun: BTreeSet<StateId> = new.iter().filter(begins).map(|(one, _)| one.0).collect();
        let row = |one: &SubscriptionKey<'a>| SubscriptionRow::of(of, *one);
        let subscribed = new.keys().filter(|one| !old.contains_key(*one));
        self.subscribed.extend(subscribed.map(row));
        let unsubscribed = old.keys().filter(|one| !new.contains_key(*one));
        self.unsubscribed.extend(unsubscribed.map(row));
        for state in earlier.difference(&current) {
            jobs::finish(self, of, matching(*state));
        }
        let (instance, now) = (change.after.id, change.now);
        for state in begun {
            jobs::job(
                self,
                of,
                matching(state),
                "match_signals",
                instance,
                now,
                &serde_json::json!({}),
            );
        }
    }
}

/// The subscriptions with a correlation key, and whether they take buffered signals.
fn known(instance: &Instance) -> BTreeMap<SubscriptionKey<'_>, bool> {
    let active = instance.active.iter();
    let all = active.flat_map(|state_instance| {
        let (id, entered_at) = (state_instance.id, state_instance.entered_at);
        let correlated = state_instance.correlated();
        correlated
            .map(move |(one, key)| ((id, entered_at, one.trigger.as_str(), key), one.buffered))
    });
    all.collect()
}

impl<'a> SubscriptionRow<'a> {
    fn of(
        of: Of,
        (state, entered_at, trigger, correlation): SubscriptionKey<'a>,
    ) -> SubscriptionRow<'a> {
        SubscriptionRow {
            member: of.member,
            tenant_id: of.tenant,
            correlation,
            trigger,
            entered_at: Time(entered_at),
            state_id: state.0,
            instance_id: of.instance,
        }
    }
}
