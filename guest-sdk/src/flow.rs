//! The trait that a flow implements.
//!
//! Every function is pure: the same facts give the same answer on every host, as long as the audit is kept. Every function may
//! refuse: see [`Refusal`]. There is no clock, no randomness and no memory between two calls.

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Actor, Assignment, Event, Facts, FiredBy, Graph, Names, Overdue, Plan, Refusal, ServiceCall,
    States, Triggers, Verdict, Violation, Waiting, allow,
};

/// The logic of a flow. Only the graph is required. The defaults of the other functions follow the
/// graph.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a flow",
    label = "`Flow` is not implemented for it",
    note = "write `impl wrkflw_guest::Flow for {Self}` and draw its graph there"
)]
pub trait Flow: Sized + 'static {
    /// The settings that are published with a version: [`config!`](crate::config!) or
    /// [`NoConfig`](crate::NoConfig).
    type Config: DeserializeOwned;
    /// The data of an instance, or the part of it that the logic looks at.
    type Data: Serialize + DeserializeOwned;
    /// The states, declared by [`states!`](crate::states).
    type State: States;
    /// The triggers, declared by [`triggers!`](crate::triggers).
    type Trigger: Triggers;

    /// The graph for these settings. When a version is published, all of it is declared. Calls of flow logic ask for single states: then
    /// only the block of that state runs. So a block must not need what another block did, and a graph must not be kept for later calls.
    fn graph(config: &Self::Config) -> Graph<Self::State, Self::Trigger>;

    /// What is wrong with the settings beyond their type. Called when a version is published.
    fn check(_config: &Self::Config) -> Vec<Violation> {
        vec![]
    }

    /// May this person start an instance with this data? The host has already checked the
    /// initiators that the graph names, and the data against its schema.
    fn start(_facts: &Facts<Self>, _actor: &Actor) -> Verdict {
        allow()
    }

    /// May this decision or signal happen now? The SDK calls this before [`transition`](Self::transition), in the same call of the
    /// host. The host has already checked who owns the task. It is not called for deadlines, ends of children, service replies and
    /// entries, where no person acts.
    fn guard(_facts: &Facts<Self>, _event: &Event<Self>) -> Verdict {
        allow()
    }

    /// What follows? By default, what the graph says: the only target, all targets of a fork, branches beside the state, or the
    /// end of a vote.
    fn transition(facts: &Facts<Self>, event: &Event<Self>) -> Result<Plan<Self::State>, Refusal> {
        Plan::along(facts, event)
    }

    /// Who works on the task state that is entered, offered anew or migrated to? By default: the initiator in states of own work,
    /// and nobody elsewhere. Work that is offered to nobody goes to the initiator's manager. Without a manager, the host reports
    /// the state as unassignable, and a test with `testing` fails. So name somebody for every task state.
    fn assign(facts: &Facts<Self>, state: Self::State) -> Result<Assignment, Refusal> {
        let graph = Graph::of::<Self>(&facts.config, state);
        Ok(match graph.drawn(state.name()) {
            Some(drawn) if drawn.own_work => Assignment::to_user(facts.initiator()),
            _ => Assignment::nobody(),
        })
    }

    /// Who gets overdue work? The offers replace the overdue task or, if the state as a whole is overdue, its open tasks. By
    /// default: [the managers](Assignment::upwards) of the people who had it.
    fn escalate(
        facts: &Facts<Self>,
        state: Self::State,
        overdue: &Overdue,
    ) -> Result<Assignment, Refusal> {
        Assignment::upwards(facts, state, overdue)
    }

    /// Which service does the service state call, and with which request? By default: the service with the name of the state,
    /// with the instance's data.
    fn call(facts: &Facts<Self>, state: Self::State) -> Result<ServiceCall, Refusal> {
        let graph = Graph::of::<Self>(&facts.config, state);
        let fired = |by| graph.fired(state, by).map_or("", Names::name);
        Ok(ServiceCall::between(
            state.name(),
            facts.instance.data.clone(),
            fired(FiredBy::REPLY),
            fired(FiredBy::FAILURE),
        ))
    }

    /// What does the wait state wait for? By default: its signals.
    fn wait(_facts: &Facts<Self>, _state: Self::State) -> Result<Waiting, Refusal> {
        Ok(Waiting::for_signals())
    }
}
