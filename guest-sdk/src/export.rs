//! Between the contract and [`Flow`]: reads what the host sends into the author's types, asks,
//! and hands back the answer. It decides nothing.
//!
//! What cannot be read is refused in words. Only `assign`, `call` and `wait` have no refusal in
//! the contract; `transition` lets no data through that they could not read, and data from another
//! version of the flow gets an answer that nobody can act on, which the host reports.

use std::marker::PhantomData;

use crate::bindings::exports::wrkflw::flow::logic::Guest;
use crate::bindings::wrkflw::flow::types as wire;
use crate::{
    AssignCause, Assignment, Event, EventSource, Facts, Flow, Names, Offer, Reason, ServiceCall,
    Verdict, Violation, Waiting, json,
};

/// Answers the contract's questions by a flow.
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

    fn guard(snapshot: wire::Snapshot, event: wire::Event) -> Verdict {
        let facts = match Facts::<F>::read(snapshot) {
            Ok(facts) => facts,
            Err(violations) => return Verdict::Invalid(violations),
        };
        if let EventSource::Start(actor) = &event.source {
            return F::start(&facts, actor);
        }
        match Event::read(event, &facts) {
            Ok(event) => F::guard(&facts, &event),
            Err(reason) => Verdict::Deny(reason),
        }
    }

    fn transition(snapshot: wire::Snapshot, event: wire::Event) -> Result<wire::Plan, Reason> {
        let facts = Facts::<F>::read(snapshot)?;
        let event = Event::read(event, &facts)?;
        F::transition(&facts, &event)?.finish(&facts)
    }

    fn assign(snapshot: wire::Snapshot, state: String, cause: AssignCause) -> Assignment {
        match entered::<F>(snapshot, &state) {
            Ok((facts, entered)) => {
                let assignment = match &cause {
                    AssignCause::Overdue(overdue) => F::escalate(&facts, entered, overdue),
                    AssignCause::Entered | AssignCause::Migrated => F::assign(&facts, entered),
                };
                assignment.labelled::<F>(&F::graph(&facts.config), &state)
            }
            Err(reason) => Assignment::new([Offer::new(&reason.message)]),
        }
    }

    fn call(snapshot: wire::Snapshot, state: String) -> ServiceCall {
        match entered::<F>(snapshot, &state) {
            Ok((facts, entered)) => F::call(&facts, entered),
            Err(reason) => ServiceCall::between(
                "",
                serde_json::json!({ "error": reason.message }).to_string(),
                "",
                "",
            ),
        }
    }

    fn wait(snapshot: wire::Snapshot, state: String) -> Waiting {
        entered::<F>(snapshot, &state).map_or_else(
            |_| Waiting::for_signals(),
            |(facts, entered)| F::wait(&facts, entered),
        )
    }
}

fn entered<F: Flow>(snapshot: wire::Snapshot, state: &str) -> Result<(Facts<F>, F::State), Reason> {
    let facts = Facts::read(snapshot)?;
    let state = F::State::parse(state).ok_or_else(|| {
        Reason::new(
            "unknown_state",
            format!("This flow knows no state {state}."),
        )
    })?;
    Ok((facts, state))
}

/// Makes a component of a flow: `wrkflw_guest::export!(MyFlow);`, once per crate.
///
/// Natively, as for tests, it only makes sure that the type is a flow: the names of a component's
/// exports are none that a native linker accepts.
#[macro_export]
macro_rules! export {
    ($flow:ty) => {
        const _: () = $crate::plumbing::is_flow::<$flow>();

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

/// Compiles for flows only.
pub const fn is_flow<F: Flow>() {}
