//! One call of one function in a fresh instance, under all limits.
//!
//! The store is made for the call and dropped with it, however the call ends: after a trap an instance is unusable, and after an
//! answer it might keep state. This module also classifies failures.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};
use wasmtime::{Engine, ResourceLimiter, Store};

use super::error::{Cause, of_component};
use super::library::Ready;
use super::priority::{Ended, Pools};
use super::settings::Settings;
use super::size::size;
use super::trap::Trap;
use super::v0_1::{Logic, PACKAGE, types};
use wrkflw_core::text::tame;

const MESSAGE_CHARS_MAX: usize = 300;
/// The initial capacity of encoded arguments. Those of most calls fit into it.
const ARGUMENTS_BYTES: usize = 2048;
/// The limit of a call's wall time, as a multiple of its deadline of processor time. A busy machine needs the difference.
const WALL_PER_DEADLINE: u32 = 20;
/// The engine's message for an answer that costs more than the store allows. It has no error type for that.
const ANSWER_TOO_COSTLY: &str = "fuel allocated for hostcalls has been exhausted";

/// What the host may allocate for a guest's answer before its exact size is known. This is a multiple of the output limit,
/// because the overhead of the types counts, too.
const LIFTED_BYTES_PER_OUTPUT_BYTE: usize = 4;
/// The contract has no resources, but the engine requires a number.
const HANDLES_MAX: usize = 64;

/// A function of the guest with its arguments, in the guest's types.
pub(super) enum Call {
    Describe(String),
    Start(types::Snapshot, types::Actor),
    Transition(types::Snapshot, types::Event),
    Enter(types::Snapshot, Vec<types::Entry>),
}

/// The answer of a function, not checked yet.
#[derive(serde::Serialize, PartialEq)]
pub(super) enum RawAnswer {
    Described(Result<Box<types::Definition>, Vec<types::Violation>>),
    Start(Result<(), types::Refusal>),
    Transition(Result<types::Plan, types::Refusal>),
    Enter(Result<Vec<types::Work>, types::Refusal>),
}

fn encode(value: &impl serde::Serialize, bytes: &mut Vec<u8>) {
    postcard::to_io(value, bytes).expect("a vector takes every byte, and every list has a length");
}

/// The result of a call, and what the call used.
pub(super) struct CallResult {
    pub(super) answer: Result<RawAnswer, Cause>,
    /// The whole budget if the guest failed, because the remaining fuel is not reliable after a trap. Zero if the call never ran.
    pub(super) fuel: u64,
    pub(super) duration: Duration,
}

impl CallResult {
    fn not_run(cause: Cause) -> CallResult {
        CallResult {
            answer: Err(cause),
            fuel: 0,
            duration: Duration::ZERO,
        }
    }
}

impl Call {
    /// The number of functions.
    pub(super) const FUNCTIONS: usize = 4;

    /// The index of the function, from 0.
    pub(super) fn number(&self) -> usize {
        match self {
            Call::Describe(_) => 0,
            Call::Start(..) => 1,
            Call::Transition(..) => 2,
            Call::Enter(..) => 3,
        }
    }

    pub(super) fn function(&self) -> &'static str {
        match self {
            Call::Describe(_) => "describe",
            Call::Start(..) => "start",
            Call::Transition(..) => "transition",
            Call::Enter(..) => "enter",
        }
    }

    /// The arguments, each in postcard 1.0 (<https://postcard.jamesmunns.com/wire-format>). The encoding has no names: it depends on
    /// the order and the types of the members in the contract.
    pub(super) fn arguments(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(ARGUMENTS_BYTES);
        match self {
            Call::Describe(config) => encode(config, &mut bytes),
            Call::Start(facts, by) => encode(&(facts, by), &mut bytes),
            Call::Transition(facts, event) => encode(&(facts, event), &mut bytes),
            Call::Enter(facts, entries) => encode(&(facts, entries), &mut bytes),
        }
        bytes
    }

    /// SHA-256 of the contract's package and the name of the function, each followed by a zero byte, and the
    /// [arguments](Call::arguments).
    pub(super) fn digest(&self, arguments: &[u8]) -> [u8; 32] {
        let mut hasher = Sha256::new();
        for text in [PACKAGE, self.function()] {
            hasher.update(text);
            hasher.update([0]);
        }
        hasher.update(arguments);
        hasher.finalize().into()
    }

    /// The name of the tenant; empty if an upload describes itself.
    fn tenant(&self) -> &str {
        match self {
            Call::Describe(_) => "",
            Call::Start(facts, _) | Call::Transition(facts, _) | Call::Enter(facts, _) => {
                &facts.instance.tenant
            }
        }
    }

    fn fuel(&self, settings: &Settings) -> u64 {
        match self {
            Call::Describe(_) => settings.fuel_describe,
            Call::Start(..) => settings.fuel_start,
            Call::Transition(..) => settings.fuel_transition,
            Call::Enter(..) => settings.fuel_enter,
        }
    }

    fn input_bytes(&self) -> usize {
        match self {
            Call::Describe(config) => config.len(),
            Call::Start(facts, by) => size(facts) + size(by),
            Call::Transition(facts, event) => size(facts) + size(event),
            Call::Enter(facts, entries) => size(facts) + size(entries),
        }
    }

    async fn ask(
        &self,
        logic: &Logic,
        store: &mut Store<Allowance>,
    ) -> wasmtime::Result<RawAnswer> {
        Ok(match self {
            Call::Describe(config) => {
                let flow = logic.checked(store).await?;
                let described = flow.wrkflw_flow_logic().call_describe(store, config);
                RawAnswer::Described(described.await?.map(Box::new))
            }
            Call::Start(facts, by) => {
                RawAnswer::Start(logic.call(store, &logic.start, (facts, by)).await?)
            }
            Call::Transition(facts, event) => {
                let question = (facts, event);
                RawAnswer::Transition(logic.call(store, &logic.transition, question).await?)
            }
            Call::Enter(facts, entries) => {
                let question = (facts, entries.as_slice());
                RawAnswer::Enter(logic.call(store, &logic.enter, question).await?)
            }
        })
    }
}

/// Runs calls, at most as many at a time as the pool has instances.
pub(super) struct Caller {
    engine: Engine,
    settings: Arc<Settings>,
    pools: Pools,
}

impl Caller {
    pub(super) fn new(engine: Engine, settings: Arc<Settings>) -> Result<Caller, String> {
        let pools = Pools::new(settings.concurrency)?;
        Ok(Caller {
            engine,
            settings,
            pools,
        })
    }

    pub(super) async fn run(&self, ready: &Arc<Ready>, call: &Arc<Call>) -> CallResult {
        let (bytes, bytes_max) = (call.input_bytes(), self.settings.input_bytes_max);
        if bytes > bytes_max {
            return CallResult::not_run(Cause::InputTooLarge { bytes, bytes_max });
        }
        let Settings {
            queue_ms_max,
            deadline_ms,
            ..
        } = *self.settings;
        let deadline = Duration::from_millis(deadline_ms);
        let mut turned_slow = false;
        loop {
            let function = (call.number(), call.tenant());
            let waiting = self.pools.places(&ready.own, function, turned_slow);
            let waited = tokio::time::timeout(Duration::from_millis(queue_ms_max), waiting).await;
            let Ok(Ok(places)) = waited else {
                return CallResult::not_run(Cause::Busy { queue_ms_max });
            };
            let begun = Instant::now();
            let work = evaluate(
                self.engine.clone(),
                Arc::clone(&self.settings),
                Arc::clone(ready),
                Arc::clone(call),
            );
            let running = self.pools.run(&ready.own, function, places, deadline, work);
            let ended = tokio::time::timeout(deadline * WALL_PER_DEADLINE, running).await;
            if let Ok(None) = ended {
                turned_slow = true;
                continue;
            }
            let (answer, fuel) = match answered(ended.ok().flatten(), deadline_ms) {
                Ok((answer, fuel)) => (Ok(answer), fuel),
                Err(cause) => (Err(cause), call.fuel(&self.settings)),
            };
            return CallResult {
                answer,
                fuel,
                duration: begun.elapsed(),
            };
        }
    }
}

/// The answer with the fuel that it took. `ended` is `None` for a call that exceeded its wall time only, because the machine was
/// busy. A call that used up its own processor time is an overrun.
fn answered<T>(ended: Option<Ended<Result<T, Cause>>>, deadline_ms: u64) -> Result<T, Cause> {
    match ended {
        Some(Ended::Answered(answer)) => answer,
        Some(Ended::Lost) => Err(Cause::Interrupted),
        Some(Ended::Overrun) => Err(Cause::DeadlinePassed { deadline_ms }),
        None => Err(Cause::Starved {
            wall_ms: deadline_ms * u64::from(WALL_PER_DEADLINE),
        }),
    }
}

/// The call itself. It owns all that it needs, because a slow call moves to another thread.
async fn evaluate(
    engine: Engine,
    settings: Arc<Settings>,
    ready: Arc<Ready>,
    call: Arc<Call>,
) -> Result<(RawAnswer, u64), Cause> {
    let budget = call.fuel(&settings);
    let mut store = store(&engine, &settings, budget);
    let answered = call.ask(&ready.logic, &mut store).await;
    store.data().count_refusals();
    let answer = answered.map_err(|error| cause(&settings, &error, budget, store.data()))?;
    let bytes_max = settings.output_bytes_max;
    if size(&answer) > bytes_max {
        return Err(Cause::OutputTooLarge { bytes_max });
    }
    let left = store.get_fuel().expect("the engine counts fuel");
    Ok((answer, budget - left))
}

fn cause(
    settings: &Settings,
    error: &wasmtime::Error,
    budget: u64,
    allowance: &Allowance,
) -> Cause {
    let bytes_max = settings.memory_bytes_max;
    match error.downcast_ref::<wasmtime::Trap>() {
        Some(wasmtime::Trap::OutOfFuel) => Cause::FuelExhausted { budget },
        Some(kind) if allowance.memory_refused => Cause::MemoryExhausted {
            bytes_max,
            trap: Trap::of(*kind, error),
        },
        Some(kind) => Cause::Trapped(Trap::of(*kind, error)),
        None => {
            let message = tame(&format!("{error:#}"), MESSAGE_CHARS_MAX);
            without_trap(settings, message, allowance)
        }
    }
}

/// The cause of an error that is no trap: of instantiation, or of the conversion of the answer.
fn without_trap(settings: &Settings, message: String, allowance: &Allowance) -> Cause {
    if message.contains(ANSWER_TOO_COSTLY) {
        let bytes_max = settings.output_bytes_max;
        return Cause::OutputTooLarge { bytes_max };
    }
    if allowance.is_instantiated {
        return Cause::Malformed { detail: message };
    }
    // Modules declare the initial sizes of their memories and tables. If they exceed the limits, the component is at fault.
    if allowance.memory_refused || allowance.table_refused {
        return Cause::Incompatible(vec![of_component("component_rejected", message)]);
    }
    // The machine has no memory for it, for example.
    Cause::Unavailable { detail: message }
}

/// Counts all memories and tables of a call together. The engine's own limits apply to each alone.
#[derive(Debug)]
pub(super) struct Allowance {
    memory_bytes_left: usize,
    table_elements_left: usize,
    /// Whether the guest was refused memory. Most guests trap then.
    memory_refused: bool,
    table_refused: bool,
    /// Whether there is an instance. Errors before that are not caused by an answer.
    pub(super) is_instantiated: bool,
}

impl Allowance {
    fn new(settings: &Settings) -> Allowance {
        Allowance {
            memory_bytes_left: settings.memory_bytes_max,
            table_elements_left: settings.table_elements_max,
            memory_refused: false,
            table_refused: false,
            is_instantiated: false,
        }
    }

    /// Counts refusals in the metrics: a guest may go on after one, so that no error reports it.
    fn count_refusals(&self) {
        for (refused, what) in [
            (self.memory_refused, "memory"),
            (self.table_refused, "table"),
        ] {
            if refused {
                metrics::counter!("wrkflw_guest_growth_refused_total", "what" => what).increment(1);
            }
        }
    }
}

impl ResourceLimiter for Allowance {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        // The guest's own maximum. The host has refused nothing.
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        let granted = take(&mut self.memory_bytes_left, current, desired);
        self.memory_refused |= !granted;
        Ok(granted)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let granted = take(&mut self.table_elements_left, current, desired);
        self.table_refused |= !granted;
        Ok(granted)
    }
}

fn take(left: &mut usize, current: usize, desired: usize) -> bool {
    let wanted = desired.saturating_sub(current);
    match left.checked_sub(wanted) {
        Some(rest) => {
            *left = rest;
            true
        }
        None => false,
    }
}

/// A store for one call, with all limits but that of wall time, which the caller enforces by dropping the call.
fn store(engine: &Engine, settings: &Settings, fuel: u64) -> Store<Allowance> {
    let mut store = Store::new(engine, Allowance::new(settings));
    store.limiter(|allowance| allowance);
    store
        .set_fuel(fuel)
        .expect("the engine is configured to count fuel");
    // At least a whole tick before the first yield, at which a call may move to the slow pool.
    store.set_epoch_deadline(2);
    store.epoch_deadline_async_yield_and_update(1);
    store.set_hostcall_fuel(settings.output_bytes_max * LIFTED_BYTES_PER_OUTPUT_BYTE);
    store.set_max_component_handles(HANDLES_MAX);
    store
}

#[cfg(test)]
mod tests;
