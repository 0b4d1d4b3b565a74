//! One call of one function in a fresh instance, under every limit.
//!
//! The store is made for the call and dropped with it, whatever its end: after a trap an instance is
//! unusable, and after an answer it might remember. How a call failed is told apart here.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wasmtime::{Engine, Store, WasmBacktrace};

use super::error::{Cause, Trap};
use super::lane::{Ended, Lanes};
use super::library::Ready;
use super::limits::{self, Allowance};
use super::settings::Settings;
use super::size::size;
use super::text::tame;
use super::v0_1::{logic::Logic, types};

const MESSAGE_CHARS_MAX: usize = 300;
const FRAME_CHARS_MAX: usize = 120;
/// How much longer than its deadline of processor time a call may take by the clock, on a machine that is busy.
const WALL_PER_DEADLINE: u32 = 20;
/// How the engine says that an answer cost more than the store allows; it has no type to ask for.
const ANSWER_TOO_COSTLY: &str = "fuel allocated for hostcalls has been exhausted";

/// A question in the guest's types.
pub(super) enum Call {
    Describe(String),
    Guard(types::Snapshot, types::Event),
    Transition(types::Snapshot, types::Event),
    Assign(types::Snapshot, String, types::AssignCause),
    Wait(types::Snapshot, String),
}

/// Its answer, not yet believed.
#[derive(serde::Serialize, PartialEq)]
pub(super) enum Said {
    Described(Result<types::Definition, Vec<types::Violation>>),
    Verdict(types::Verdict),
    Plan(Result<types::Plan, types::Reason>),
    Assignment(types::Assignment),
    Waiting(types::Waiting),
}

/// How a call ended and what it took.
pub(super) struct Ran {
    pub(super) said: Result<Said, Cause>,
    /// The whole budget when the guest failed: what is left after a trap is not reliable. None when it never ran.
    pub(super) fuel: u64,
    pub(super) duration: Duration,
}

impl Ran {
    fn not_at_all(cause: Cause) -> Ran {
        Ran {
            said: Err(cause),
            fuel: 0,
            duration: Duration::ZERO,
        }
    }
}

impl Call {
    pub(super) fn function(&self) -> &'static str {
        match self {
            Call::Describe(_) => "describe",
            Call::Guard(..) => "guard",
            Call::Transition(..) => "transition",
            Call::Assign(..) => "assign",
            Call::Wait(..) => "wait",
        }
    }

    fn fuel(&self, settings: &Settings) -> u64 {
        match self {
            Call::Describe(_) => settings.fuel_describe,
            Call::Guard(..) => settings.fuel_guard,
            Call::Transition(..) => settings.fuel_transition,
            Call::Assign(..) | Call::Wait(..) => settings.fuel_assign,
        }
    }

    fn input_bytes(&self) -> usize {
        match self {
            Call::Describe(config) => config.len(),
            Call::Guard(facts, event) | Call::Transition(facts, event) => size(facts) + size(event),
            Call::Assign(facts, state, _) | Call::Wait(facts, state) => size(facts) + state.len(),
        }
    }

    async fn ask(&self, logic: &Logic, store: &mut Store<Allowance>) -> wasmtime::Result<Said> {
        Ok(match self {
            Call::Describe(config) => {
                let flow = logic.checked(store).await?;
                let described = flow.wrkflw_flow_logic().call_describe(store, config);
                Said::Described(described.await?)
            }
            Call::Guard(facts, event) => {
                Said::Verdict(logic.call(store, &logic.guard, (facts, event)).await?)
            }
            Call::Transition(facts, event) => {
                Said::Plan(logic.call(store, &logic.transition, (facts, event)).await?)
            }
            Call::Assign(facts, state, cause) => {
                let question = (facts, state.as_str(), cause);
                Said::Assignment(logic.call(store, &logic.assign, question).await?)
            }
            Call::Wait(facts, state) => {
                let question = (facts, state.as_str());
                Said::Waiting(logic.call(store, &logic.wait, question).await?)
            }
        })
    }
}

/// Runs calls, no more at once than the pool has room for.
pub(super) struct Caller {
    engine: Engine,
    settings: Arc<Settings>,
    lanes: Lanes,
}

impl Caller {
    pub(super) fn new(engine: Engine, settings: Arc<Settings>) -> Result<Caller, String> {
        let lanes = Lanes::new(settings.concurrency)?;
        Ok(Caller {
            engine,
            settings,
            lanes,
        })
    }

    pub(super) async fn run(&self, ready: &Arc<Ready>, call: &Arc<Call>) -> Ran {
        let (bytes, bytes_max) = (call.input_bytes(), self.settings.input_bytes_max);
        if bytes > bytes_max {
            return Ran::not_at_all(Cause::InputTooLarge { bytes, bytes_max });
        }
        let queue_ms_max = self.settings.queue_ms_max;
        let waiting = self.lanes.turns(&ready.own);
        let waited = tokio::time::timeout(Duration::from_millis(queue_ms_max), waiting).await;
        let Ok(Ok(turns)) = waited else {
            return Ran::not_at_all(Cause::Busy { queue_ms_max });
        };
        let begun = Instant::now();
        let fuel = call.fuel(&self.settings);
        let work = evaluate(
            self.engine.clone(),
            Arc::clone(&self.settings),
            Arc::clone(ready),
            Arc::clone(call),
        );
        let deadline_ms = self.settings.deadline_ms;
        let deadline = Duration::from_millis(deadline_ms);
        let running = self.lanes.run(&ready.own, turns, deadline, work);
        let said = match tokio::time::timeout(deadline * WALL_PER_DEADLINE, running).await {
            Ok(Ended::Answered(Ok((said, fuel)))) => {
                return Ran {
                    said: Ok(said),
                    fuel,
                    duration: begun.elapsed(),
                };
            }
            Ok(Ended::Answered(Err(cause))) => Err(cause),
            Ok(Ended::Lost) => Err(Cause::Unavailable {
                detail: "the call was given up".into(),
            }),
            Ok(Ended::Overrun) | Err(_) => Err(Cause::DeadlinePassed { deadline_ms }),
        };
        Ran {
            said,
            fuel,
            duration: begun.elapsed(),
        }
    }
}

/// The call itself, with all that it needs: it may move to another thread when it takes long.
async fn evaluate(
    engine: Engine,
    settings: Arc<Settings>,
    ready: Arc<Ready>,
    call: Arc<Call>,
) -> Result<(Said, u64), Cause> {
    let budget = call.fuel(&settings);
    let mut store = limits::store(&engine, &settings, budget);
    let answered = call.ask(&ready.logic, &mut store).await;
    store.data().count_refusals();
    let said = answered.map_err(|error| cause(&settings, &error, budget, store.data()))?;
    let bytes_max = settings.output_bytes_max;
    if size(&said) > bytes_max {
        return Err(Cause::OutputTooLarge { bytes_max });
    }
    let left = store.get_fuel().expect("the engine counts fuel");
    Ok((said, budget - left))
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
        Some(wasmtime::Trap::Interrupt) => Cause::DeadlinePassed {
            deadline_ms: settings.deadline_ms,
        },
        Some(kind) if allowance.memory_refused => Cause::MemoryExhausted {
            bytes_max,
            trap: trap(*kind, error),
        },
        Some(kind) => Cause::Trapped(trap(*kind, error)),
        None => {
            let message = format!("{error:#}");
            if message.contains(ANSWER_TOO_COSTLY) {
                let bytes_max = settings.output_bytes_max;
                return Cause::OutputTooLarge { bytes_max };
            }
            Cause::Malformed {
                detail: tame(&message, MESSAGE_CHARS_MAX),
            }
        }
    }
}

fn trap(kind: wasmtime::Trap, error: &wasmtime::Error) -> Trap {
    let frames = error
        .downcast_ref::<WasmBacktrace>()
        .map_or(&[][..], WasmBacktrace::frames);
    Trap {
        message: tame(&kind.to_string(), MESSAGE_CHARS_MAX),
        frames: frames
            .iter()
            .map(|frame| {
                let mut text = tame(frame.func_name().unwrap_or("?"), FRAME_CHARS_MAX);
                if let Some(offset) = frame.module_offset() {
                    // Writing to a string cannot fail.
                    let _ = write!(text, " at {offset:#x}");
                }
                text
            })
            .collect(),
    }
}
