//! Stays in states as rows: those entered, those left, and those that go on otherwise than before.

use super::{Rows, Stays, array, filled};
use crate::domain::instance::{Instance, PastState, StateInstance};
use crate::store::time::Time;

/// Where a stay stands.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Standing<'a> {
    Active,
    Waiting,
    Left(&'a PastState),
}

/// All stays of an instance, in the order of their entering: that of the ids, which one generator made within one
/// command.
pub(super) fn stays(instance: &Instance) -> Vec<(&StateInstance, Standing<'_>)> {
    let past = instance.past.iter();
    let mut stays: Vec<_> = past
        .map(|past| (&past.state, Standing::Left(past)))
        .collect();
    stays.extend(
        instance
            .waiting
            .iter()
            .map(|stay| (stay, Standing::Waiting)),
    );
    stays.extend(instance.active.iter().map(|stay| (stay, Standing::Active)));
    stays.sort_by_key(|(stay, _)| (stay.entered_at, stay.id));
    stays
}

impl Rows {
    pub(super) fn enter(
        &mut self,
        member: i32,
        ordinal: u32,
        state: &StateInstance,
        standing: Standing<'_>,
    ) {
        self.entered.push(member, ordinal, state, standing);
    }

    /// Writes what has changed of a stay that had been written before.
    pub(super) fn follow(
        &mut self,
        member: i32,
        before: (&StateInstance, Standing<'_>),
        after: (&StateInstance, Standing<'_>),
    ) {
        if matches!(before.1, Standing::Left(_)) {
            return;
        }
        match after.1 {
            Standing::Left(past) if before.1 == Standing::Active && !differ(before.0, after.0) => {
                let rows = &mut self.departed;
                rows.member.push(member);
                rows.id.push(past.state.id.0);
                rows.left_at.push(Time(past.left_at));
                rows.left_by.push(past.left_by.clone());
                rows.left_actor.push(past.actor.clone());
            }
            standing if standing != before.1 || before.0 != after.0 => {
                self.restayed.push(member, 0, after.0, standing);
            }
            _ => {}
        }
    }
}

/// Whether more has changed than what leaving changes. Tasks have rows of their own.
fn differ(before: &StateInstance, after: &StateInstance) -> bool {
    lasting(before) != lasting(after)
}

/// What leaving does not change, in pieces that can be compared.
fn lasting(stay: &StateInstance) -> impl PartialEq {
    let StateInstance {
        id,
        name,
        entered_at,
        due_at,
        predecessors,
        entered_by,
        caller,
        needed,
        exclude,
        fallback,
        priority,
        tasks: _,
        forks,
        choices,
        deadlines: _,
        correlation,
        keep_early,
        children,
        unassignable_since: _,
    } = stay;
    (
        (id, name, entered_at, due_at, predecessors),
        (entered_by, caller, needed, exclude, fallback, priority),
        (forks, choices, correlation, keep_early, children),
    )
}

impl Stays {
    fn push(&mut self, member: i32, ordinal: u32, state: &StateInstance, standing: Standing<'_>) {
        self.member.push(member);
        self.id.push(state.id.0);
        self.ordinal.push(ordinal.cast_signed());
        self.name.push(state.name.clone());
        self.entered_at.push(Time(state.entered_at));
        self.due_at.push(state.due_at.map(Time));
        self.predecessors.push(array(&state.predecessors));
        self.entered_by.push(state.entered_by.clone());
        self.caller.push(state.caller.clone());
        self.needed.push(state.needed.cast_signed());
        self.exclude.push(array(&state.exclude));
        self.fallback.push(state.fallback.clone());
        self.priority.push(state.priority.into());
        self.forks.push(array(&state.forks));
        self.choices.push(state.choices.cast_signed());
        self.waiting.push(standing == Standing::Waiting);
        self.deadlines.push(filled(&state.deadlines));
        self.correlation.push(state.correlation.clone());
        self.keep_early.push(state.keep_early);
        self.children.push(filled(&state.children));
        self.unassignable_since
            .push(state.unassignable_since.map(Time));
        let past = match standing {
            Standing::Left(past) => Some(past),
            Standing::Active | Standing::Waiting => None,
        };
        self.left_at.push(past.map(|past| Time(past.left_at)));
        self.left_by.push(past.map(|past| past.left_by.clone()));
        self.left_actor
            .push(past.and_then(|past| past.actor.clone()));
    }
}
