//! The adapter between the contract and [`Flow`]: converts the arguments of the host to the author's types, calls the flow and
//! converts the answer. It has no rules of its own.
//!
//! Data that cannot be read is refused: as invalid if the caller of a start or decision sent it, otherwise as a fault.

use std::marker::PhantomData;

use crate::bindings::exports::wrkflw::flow::logic::Guest;
use crate::bindings::wrkflw::flow::types as wire;
use crate::refusal::unreadable;
use crate::{
    Actor, EntryCause, Event, Facts, Flow, Graph, Names, Refusal, Verdict, Violation, fault, json,
};

/// Implements the contract by calling a flow.
#[derive(Debug)]
pub struct Logic<F>(PhantomData<F>);

impl<F: Flow> Guest for Logic<F> {
    fn describe(config: String) -> Result<wire::Definition, Vec<Violation>> {
        let config = json::parse(&config)?;
        match F::check(&config) {
            violations if violations.is_empty() => Ok(F::graph(&config).definition()),
            violations => Err(violations),
        }
    }

    fn start(snapshot: wire::Snapshot, by: Actor) -> Verdict {
        let facts = Facts::read(snapshot)?;
        let verdict = F::start(&facts, &by);
        leak((facts, by));
        verdict
    }

    fn transition(snapshot: wire::Snapshot, event: wire::Event) -> Result<wire::Plan, Refusal> {
        let facts = facts::<F>(snapshot)?;
        let event = Event::read(event, &facts)?;
        if event.actor().is_some() {
            F::guard(&facts, &event)?;
        }
        let plan = F::transition(&facts, &event)?.finish(&facts);
        leak((facts, event));
        plan
    }

    fn enter(
        snapshot: wire::Snapshot,
        entries: Vec<wire::Entry>,
    ) -> Result<Vec<wire::Work>, Refusal> {
        let mut facts = facts::<F>(snapshot)?;
        let (mut works, mut drawn) = (vec![], vec![]);
        for entry in &entries {
            let mut active = facts.active.iter();
            facts.entering = active.position(|one| one.id == entry.state_instance);
            works.push(work(&facts, &mut drawn, entry)?);
        }
        leak((facts, entries, drawn));
        Ok(works)
    }
}

/// Ends the use of a value. A component does not drop it, because the instance is dropped at the end of the call, with all of its memory.
pub(crate) fn leak<T>(value: T) {
    if cfg!(target_arch = "wasm32") {
        std::mem::forget(value);
    }
}

fn facts<F: Flow>(snapshot: wire::Snapshot) -> Result<Facts<F>, Refusal> {
    Facts::read(snapshot).map_err(|refusal| match refusal {
        Refusal::Invalid(violations) => unreadable(&violations),
        other => other,
    })
}

/// The graphs of the states that this call has asked about so far.
type Drawn<F> = Vec<(
    <F as Flow>::State,
    Graph<<F as Flow>::State, <F as Flow>::Trigger>,
)>;

fn work<F: Flow>(
    facts: &Facts<F>,
    drawn: &mut Drawn<F>,
    entry: &wire::Entry,
) -> Result<wire::Work, Refusal> {
    let name = &entry.state;
    let unknown = || fault("unknown_state", format!("This flow knows no state {name}."));
    let Some(state) = F::State::parse(name) else {
        return unknown();
    };
    // A fork over many items enters one state many times.
    if !drawn.iter().any(|(of, _)| *of == state) {
        drawn.push((state, Graph::of::<F>(&facts.config, state)));
    }
    let graph = drawn.iter().find(|(of, _)| *of == state);
    let declared = graph.and_then(|(_, graph)| Some((graph, graph.drawn(name)?)));
    let Some((graph, declared)) = declared else {
        return unknown();
    };
    Ok(match declared.kind {
        wire::StateKind::Task => {
            let assignment = match &entry.cause {
                EntryCause::Overdue(overdue) => F::escalate(facts, state, overdue)?,
                EntryCause::Entered | EntryCause::Migrated | EntryCause::Reoffered => {
                    F::assign(facts, state)?
                }
            };
            wire::Work::Task(assignment.labelled::<F>(graph, name))
        }
        wire::StateKind::Service => wire::Work::Service(F::call(facts, state)?),
        wire::StateKind::Wait => wire::Work::Wait(F::wait(facts, state)?),
        wire::StateKind::Router | wire::StateKind::Terminal(_) => {
            return fault("no_work", format!("There is no work in {name}."));
        }
    })
}

/// Makes a component of a flow: `wrkflw_guest::export!(MyFlow);`, once per crate.
///
/// In a native build, this only checks that the type is a flow, because native linkers reject the export names of components. The
/// crate also gets the test `the_flow_can_be_published`. It checks that a host accepts the flow's graph, with the `config.json`
/// beside the crate's `Cargo.toml`, or with the config `{}` if there is none.
#[macro_export]
macro_rules! export {
    ($flow:ty) => {
        const _: () = $crate::plumbing::is_flow::<$flow>();
        $crate::publication_test!($flow);

        #[cfg(target_arch = "wasm32")]
        const _: () = {
            type Exported = $crate::plumbing::Logic<$flow>;
    $crate::plumbing::export_logic!(Exported with_types_in $crate::plumbing);

            #[used]
            #[unsafe(link_section = "wrkflw:sdk")]
            static SDK: [u8; $crate::plumbing::SDK.len()] = *$crate::plumbing::SDK;
        };
    };
}

/// The test that `export!` adds. It needs the harness.
#[cfg(feature = "testing")]
#[doc(hidden)]
#[macro_export]
macro_rules! publication_test {
    ($flow:ty) => {
        #[cfg(test)]
        #[test]
        fn the_flow_can_be_published() {
            $crate::testing::can_be_published::<$flow>(env!("CARGO_MANIFEST_DIR"));
        }
    };
}

#[cfg(not(feature = "testing"))]
#[doc(hidden)]
#[macro_export]
macro_rules! publication_test {
    ($flow:ty) => {};
}

/// Compiles for flows only.
pub const fn is_flow<F: Flow>() {}

#[cfg(test)]
mod tests;
