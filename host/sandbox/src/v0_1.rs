//! Version 0.1 of the contract: its bindings, and the conversion between its types and the core's.
//!
//! Each version of the contract has a folder of its own. [`lower`] converts facts to the guest's types and cannot fail. [`lift`]
//! and [`graph`] convert answers and validate them. For tests of flows, the SDK compiles these three with its own bindings, so
//! that both convert alike. [`Logic`] makes the calls.
//!
//! The generated bindings check the types of all functions for every instance, which takes as long as a short call. [`Logic`]
//! finds the functions of a component when it is loaded, and checks only the called one. Only `describe` uses the bindings.
//! It is called on publishing, so publishing refuses a component whose types differ from the contract's.

#[path = "../../../wit/translation@0.1.0/graph.rs"]
pub(super) mod graph;
#[path = "../../../wit/translation@0.1.0/lift.rs"]
pub(super) mod lift;
#[path = "../../../wit/translation@0.1.0/lower.rs"]
pub(super) mod lower;
#[cfg(test)]
mod tests;

use wasmtime::Store;
use wasmtime::component::{
    Component, ComponentExportIndex, ComponentNamedList, InstancePre, Lift, Lower,
};

use crate::call::Allowance;

/// The package that guests are built for.
pub(super) const PACKAGE: &str = "wrkflw:flow@0.1.0";
/// The interface a component must export.
pub(super) const LOGIC: &str = "wrkflw:flow/logic@0.1.0";

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit/flow@0.1.0",
        world: "wrkflw:flow/flow",
        exports: { default: async },
        additional_derives: [PartialEq, serde::Serialize],
    });
}

pub use bindings::wrkflw::flow::types;
use bindings::{Flow, FlowPre};

/// Serialises flags with one size, whichever are set, so that a message can be measured.
macro_rules! flags_with_size {
    ($($flags:ident),*) => {
        $(impl serde::Serialize for types::$flags {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_u32(u32::from(*self == types::$flags::empty()))
            }
        })*
    };
}
flags_with_size!(FiredBy, Reads);

/// A component whose functions can be called.
pub(crate) struct Logic {
    all: FlowPre<Allowance>,
    pub(crate) start: ComponentExportIndex,
    pub(crate) transition: ComponentExportIndex,
    pub(crate) enter: ComponentExportIndex,
}

impl Logic {
    /// Fails if a function of the contract is missing.
    pub(crate) fn new(
        component: &Component,
        linked: InstancePre<Allowance>,
    ) -> wasmtime::Result<Logic> {
        let all = FlowPre::new(linked)?;
        let missing = |name| wasmtime::format_err!("{LOGIC} exports no function `{name}`");
        let logic = component.get_export_index(None, LOGIC);
        let function = |name| {
            component
                .get_export_index(logic.as_ref(), name)
                .ok_or_else(|| missing(name))
        };
        Ok(Logic {
            start: function("start")?,
            transition: function("transition")?,
            enter: function("enter")?,
            all,
        })
    }

    /// An instance after a check of the types of all functions.
    pub(crate) async fn checked(&self, store: &mut Store<Allowance>) -> wasmtime::Result<Flow> {
        let linked = self.all.instance_pre();
        let instance = linked.instantiate_async(&mut *store).await?;
        store.data_mut().is_instantiated = true;
        Flow::new(&mut *store, &instance)
    }

    /// Calls one function in a fresh instance. Fails if its type does not match the question and the answer.
    pub(crate) async fn call<Q, A>(
        &self,
        store: &mut Store<Allowance>,
        function: &ComponentExportIndex,
        question: Q,
    ) -> wasmtime::Result<A>
    where
        Q: ComponentNamedList + Lower,
        A: Lift + 'static,
        (A,): ComponentNamedList + Lift,
    {
        let linked = self.all.instance_pre();
        let instance = linked.instantiate_async(&mut *store).await?;
        store.data_mut().is_instantiated = true;
        let function = instance.get_typed_func::<Q, (A,)>(&mut *store, function)?;
        let (answer,) = function.call_async(store, question).await?;
        Ok(answer)
    }
}
