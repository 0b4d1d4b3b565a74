//! The facts that would reveal a hidden decision: the trigger and the person that led to another state instance, or ended one.
//!
//! A decision is hidden while the blind state in which it was made is active.

use super::{Decision, Instance, PastState, StateInstance, Task};

/// The hidden decisions, each with its state instance.
fn hidden_decisions(instance: &Instance) -> impl Iterator<Item = (&StateInstance, &Decision)> {
    let blind = instance.active.iter().filter(|source| source.blind);
    blind.flat_map(|source| {
        let decisions = source.tasks.iter().filter_map(Task::decision);
        decisions.map(move |decision| (source, decision))
    })
}

/// The hidden decision that led to the state instance, which began beside the blind one.
pub fn hidden_entry<'i>(instance: &'i Instance, of: &StateInstance) -> Option<&'i Decision> {
    let mut hidden = hidden_decisions(instance);
    let found = hidden.find(|(source, decision)| {
        of.predecessors.contains(&source.id)
            && of.entered_trigger.as_ref() == Some(&decision.outcome)
            && of.caller.as_ref() == Some(&decision.actor)
    });
    found.map(|(_, decision)| decision)
}

/// The hidden decision whose plan cancelled the state instance.
pub fn hidden_end<'i>(instance: &'i Instance, of: &PastState) -> Option<&'i Decision> {
    let mut hidden = hidden_decisions(instance);
    let found = hidden.find(|(_, decision)| {
        of.left_at == decision.decided_at
            && of.left_trigger == decision.outcome
            && of.actor.as_ref() == Some(&decision.actor)
    });
    found.map(|(_, decision)| decision)
}
