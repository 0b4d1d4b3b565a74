//! Version 0.1 of the contract: its bindings, and the conversion between its types and the core's.
//!
//! Each version of the contract has a folder of its own. [`lower`] converts facts to the guest's types and cannot fail. [`lift`]
//! and [`graph`] convert answers and validate them. For tests of flows, the SDK compiles these three with its own bindings, so
//! that both convert alike. [`Logic`] makes the calls.
//!
//! The generated bindings check the types of all functions for every instance, which takes as long as a short call. [`Logic`]
//! finds the functions of a component when it is loaded, and checks the type of each at its first call. Only `describe` uses the
//! bindings. It is called on publishing, so publishing refuses a component whose types differ from the contract's.

#[path = "../../../wit/translation@0.1.0/graph.rs"]
pub(super) mod graph;
#[path = "../../../wit/translation@0.1.0/lift.rs"]
pub(super) mod lift;
#[path = "../../../wit/translation@0.1.0/lower.rs"]
pub(super) mod lower;
#[cfg(test)]
mod tests;

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};

use wasmtime::Store;
use wasmtime::component::{
    Component, ComponentExportIndex, ComponentNamedList, Instance, InstancePre, Lift, Lower,
    TypedFunc,
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

/// The arguments and the answer of a function of the contract.
pub(crate) trait Signature {
    type Arguments<'a>: ComponentNamedList + Lower + Send + Sync;
    type Answer: Lift + Send + Sync + 'static;
}

pub(crate) struct Start;
impl Signature for Start {
    type Arguments<'a> = (&'a types::Snapshot, &'a types::Actor);
    type Answer = Result<(), types::Refusal>;
}

pub(crate) struct Transition;
impl Signature for Transition {
    type Arguments<'a> = (&'a types::Snapshot, &'a types::Event);
    type Answer = Result<types::Plan, types::Refusal>;
}

pub(crate) struct Enter;
impl Signature for Enter {
    type Arguments<'a> = (&'a types::Snapshot, &'a [types::Entry]);
    type Answer = Result<Vec<types::Work>, types::Refusal>;
}

/// An exported function of a component.
pub(crate) struct Function<S> {
    index: ComponentExportIndex,
    /// Whether its type was compared with the signature. The comparison takes a tenth of a call.
    is_checked: AtomicBool,
    signature: PhantomData<S>,
}

impl<S: Signature> Function<S>
where
    (S::Answer,): ComponentNamedList + Lift,
{
    fn new(index: ComponentExportIndex) -> Function<S> {
        Function {
            index,
            is_checked: AtomicBool::new(false),
            signature: PhantomData,
        }
    }

    /// The function in an instance of its component. Fails if its type is another one.
    fn of<'a>(
        &self,
        store: &mut Store<Allowance>,
        instance: Instance,
    ) -> wasmtime::Result<TypedFunc<S::Arguments<'a>, (S::Answer,)>> {
        if !self.is_checked.load(Ordering::Acquire) {
            let function = instance.get_typed_func(&mut *store, self.index)?;
            self.is_checked.store(true, Ordering::Release);
            return Ok(function);
        }
        let function = instance.get_func(&mut *store, self.index);
        let function = function.ok_or_else(|| wasmtime::format_err!("a function is missing"))?;
        #[expect(
            unsafe_code,
            reason = "the type of an export is that of its component, which was compared at the first call"
        )]
        // SAFETY: an index is valid for one component only, and all instances of a component export the same types. The type of this
        // export was compared with this signature.
        let typed = unsafe { TypedFunc::new_unchecked(function) };
        Ok(typed)
    }
}

/// A component whose functions can be called.
pub(crate) struct Logic {
    all: FlowPre<Allowance>,
    pub(crate) start: Function<Start>,
    pub(crate) transition: Function<Transition>,
    pub(crate) enter: Function<Enter>,
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
        let index = |name| {
            component
                .get_export_index(logic.as_ref(), name)
                .ok_or_else(|| missing(name))
        };
        Ok(Logic {
            start: Function::new(index("start")?),
            transition: Function::new(index("transition")?),
            enter: Function::new(index("enter")?),
            all,
        })
    }

    /// An instance after a check of the types of all functions.
    pub(crate) async fn checked(&self, store: &mut Store<Allowance>) -> wasmtime::Result<Flow> {
        let instance = self.instance(store).await?;
        Flow::new(&mut *store, &instance)
    }

    /// Calls one of its functions in a fresh instance. Fails if the function's type is not the contract's.
    pub(crate) async fn call<S: Signature>(
        &self,
        store: &mut Store<Allowance>,
        function: &Function<S>,
        arguments: S::Arguments<'_>,
    ) -> wasmtime::Result<S::Answer>
    where
        (S::Answer,): ComponentNamedList + Lift,
    {
        let instance = self.instance(store).await?;
        let function = function.of(store, instance)?;
        let (answer,) = function.call_async(store, arguments).await?;
        Ok(answer)
    }

    async fn instance(&self, store: &mut Store<Allowance>) -> wasmtime::Result<Instance> {
        let linked = self.all.instance_pre();
        let instance = linked.instantiate_async(&mut *store).await?;
        store.data_mut().is_instantiated = true;
        Ok(instance)
    }
}
