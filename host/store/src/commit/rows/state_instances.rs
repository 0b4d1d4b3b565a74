//! State instances as rows: those that were entered, left or changed.

use super::{Departure, Of, Rows, State};
use crate::time::Time;
use wrkflw_core::instance::{Instance, PastState, StateInstance};

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
                    left_by: &past.left_by,
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

/// Whether a column has changed that leaving does not clear. Tasks have their own rows.
fn differ(before: &StateInstance, after: &StateInstance) -> bool {
    let values = before.columns().into_iter().zip(after.columns());
    let mut columns = StateInstance::COLUMNS.iter().zip(values);
    columns.any(|(name, (before, after))| !StateInstance::CLEARED.contains(name) && before != after)
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
            left_by: past.map(|past| past.left_by.as_str()),
            left_actor: past.and_then(|past| past.actor.as_deref()),
            record: state.columns(),
        }
    }
}
