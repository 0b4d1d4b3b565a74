//! The functions of one component: found when it is loaded, and each type-checked when it is called.
//!
//! The generated bindings check the types of all functions for every instance, which takes as long as a short call. This
//! module checks only the function that is called. Only `describe` uses the bindings: it is called on publishing, so
//! a component whose types differ from the contract's is refused there.

use wasmtime::Store;
use wasmtime::component::{
    Component, ComponentExportIndex, ComponentNamedList, InstancePre, Lift, Lower,
};

use super::{Flow, FlowPre, LOGIC};
use crate::limits::Allowance;

/// A component whose functions can be called.
pub(crate) struct Logic {
    all: FlowPre<Allowance>,
    pub(crate) guard: ComponentExportIndex,
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
            guard: function("guard")?,
            transition: function("transition")?,
            enter: function("enter")?,
            all,
        })
    }

    /// An instance after a check of the types of all functions.
    pub(crate) async fn checked(&self, store: &mut Store<Allowance>) -> wasmtime::Result<Flow> {
        self.all.instantiate_async(store).await
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
        let function = instance.get_typed_func::<Q, (A,)>(&mut *store, function)?;
        let (answer,) = function.call_async(store, question).await?;
        Ok(answer)
    }
}
