//! The functions of one component: found when it is loaded, each held against its type when it is called.
//!
//! The generated bindings hold all functions against their types for every instance, which takes as long as a short
//! answer does. Here that happens to the one function that is called. Only `describe` goes through the bindings:
//! publishing asks it, and so refuses a component that exports other types than the contract's.

use wasmtime::Store;
use wasmtime::component::{
    Component, ComponentExportIndex, ComponentNamedList, InstancePre, Lift, Lower,
};

use super::{Flow, FlowPre, LOGIC};
use crate::limits::Allowance;

/// A component that is ready to be asked.
pub(crate) struct Logic {
    all: FlowPre<Allowance>,
    pub(crate) guard: ComponentExportIndex,
    pub(crate) transition: ComponentExportIndex,
    pub(crate) enter: ComponentExportIndex,
}

impl Logic {
    /// Fails where a function of the contract is missing.
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
            guard: function("guard")?,
            transition: function("transition")?,
            enter: function("enter")?,
            all,
        })
    }

    /// An instance with all functions held against their types.
    pub(crate) async fn checked(&self, store: &mut Store<Allowance>) -> wasmtime::Result<Flow> {
        self.all.instantiate_async(store).await
    }

    /// Calls one function in a fresh instance. Fails where its type is not that of the question and answer.
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
        let function = instance.get_typed_func::<Q, (A,)>(&mut *store, function)?;
        let (answer,) = function.call_async(store, question).await?;
        Ok(answer)
    }
}
