//! The lineage of a state instance: the states through which the instance came to it.
//!
//! For flows that go back to earlier states. States that are too old to be in the facts count as never visited.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::demands::of_input;
use crate::{Event, Facts, Flow, Graph, Names, PastState, Refusal, StateInstance, invalid};

impl<F: Flow> Facts<F> {
    /// The newest ended instance of a state.
    pub fn last_past_state(&self, state: F::State) -> Option<&PastState> {
        self.past_states(state).next_back()
    }

    /// The past state instances that led to this one, last first. For a join, those of all branches. For a spawned branch, the state
    /// that spawned it is among them once that state has ended.
    pub fn lineage(&self, state_instance: &StateInstance) -> Vec<&PastState> {
        let here = self.active.iter().chain(&self.waiting);
        let here = here.map(|one| (&one.id, &one.predecessors));
        let past = self.past.iter().map(|one| (&one.id, &one.predecessors));
        let led_by: BTreeMap<_, _> = here.chain(past).collect();
        let mut led: BTreeSet<&String> = BTreeSet::new();
        let mut open: Vec<_> = state_instance.predecessors.iter().collect();
        while let Some(id) = open.pop() {
            if led.insert(id) {
                open.extend(led_by.get(id).into_iter().copied().flatten());
            }
        }
        let past = self.past.iter().rev();
        past.filter(|one| led.contains(&one.id)).collect()
    }

    /// Whether a past instance of `state` led to this state instance, so that the flow can go back to it.
    pub fn came_through(&self, state_instance: &StateInstance, state: F::State) -> bool {
        self.lineage(state_instance)
            .iter()
            .any(|past| past.name == state.name())
    }
}

impl<F: Flow> Event<F> {
    /// The state that the input names to go back to. `field` is the JSON Pointer to that name in the input. The instance must have
    /// come through the state, and the graph must declare it as a target of this trigger.
    pub fn way_back(&self, facts: &Facts<F>, field: &str) -> Result<F::State, Refusal> {
        let Some(name) = self.input.pointer(field).and_then(Value::as_str) else {
            return invalid(
                &of_input(field),
                "required",
                "Name the state to go back to.",
            );
        };
        let graph = Graph::of::<F>(&facts.config, self.state);
        let drawn = graph.targets(self.state, self.trigger);
        if !drawn.iter().any(|state| state.name() == name) {
            let names: Vec<_> = drawn.iter().map(|state| state.name()).collect();
            let message = format!("This leads back to {}, not to {name}.", names.join(" or "));
            return invalid(&of_input(field), "no_way", message);
        }
        let been_there = |state: &F::State| facts.came_through(&self.state_instance, *state);
        let Some(state) = F::State::parse(name).filter(been_there) else {
            let message = format!("The instance did not come through {name}.");
            return invalid(&of_input(field), "never_there", message);
        };
        Ok(state)
    }
}
