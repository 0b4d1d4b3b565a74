//! Where a stay comes from: the states that an instance has been in on the way to it.
//!
//! For flows that lead back. What is too long ago for the facts is not known here, and counts as a
//! place where the instance has never been.

use serde_json::Value;

use crate::{Event, Facts, Flow, Names, PastState, StateInstance, Violation};

impl<F: Flow> Facts<F> {
    /// The newest stay in a state that has ended.
    pub fn last_stay(&self, state: F::State) -> Option<&PastState> {
        self.past_stays(state).next_back()
    }

    /// The stays that led to this one, the nearest first; of a join's, all branches.
    pub fn lineage(&self, stay: &StateInstance) -> Vec<&PastState> {
        let mut wanted: Vec<_> = stay.predecessors.iter().collect();
        let mut lineage = vec![];
        for past in self.past.iter().rev() {
            if wanted.contains(&&past.id) {
                wanted.extend(&past.predecessors);
                lineage.push(past);
            }
        }
        lineage
    }

    /// Whether the instance came to this stay through that state, and so can be led back to it.
    pub fn came_through(&self, stay: &StateInstance, state: F::State) -> bool {
        self.lineage(stay)
            .iter()
            .any(|past| past.name == state.name())
    }
}

impl<F: Flow> Event<F> {
    /// The state that the input asks to be led back to, in the field that the JSON Pointer names, if
    /// the instance came through it. The graph says which states that may be.
    pub fn way_back(&self, facts: &Facts<F>, field: &str) -> Result<F::State, Vec<Violation>> {
        let name = self.input.pointer(field).and_then(Value::as_str);
        let name = name.ok_or_else(|| {
            vec![Violation::new(
                field,
                "required",
                "Name the state to go back to.",
            )]
        })?;
        let known = F::State::parse(name).filter(|state| facts.came_through(&self.stay, *state));
        known.ok_or_else(|| {
            let message = format!("The instance did not come through {name:?}.");
            vec![Violation::new(field, "never_there", message)]
        })
    }
}
