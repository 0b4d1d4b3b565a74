//! The engine: one per process. Features and fuel costs are the same wherever code is compiled or run.
//!
//! [`base`] has the configuration that machine code depends on; the compiling child shares it. [`new`] adds what only running
//! needs: the pool of instances and the ticker.

use std::sync::Arc;
use std::time::Duration;

use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, OperatorCost, PoolingAllocationConfig,
    VariableOperatorCost, WasmFeatures,
};

use super::functions::Functions;
use super::settings::{Compiler, Settings};

/// The version of `wasmtime` in use. It is part of every evaluation's record.
pub(super) const WASMTIME_VERSION: &str = "48.0.8";
/// Stack that guest code may use.
pub(super) const STACK_BYTES_MAX: usize = 512 << 10;
/// Fuel per page requested from `memory.grow`. Without it, failing to grow would cost time but no fuel.
pub(super) const GROW_FUEL_PER_PAGE: u8 = 64;
/// The interval at which running guests yield their thread. The host notices a deadline up to one interval late. A guest keeps
/// the thread of its caller for at most two intervals.
const TICK: Duration = Duration::from_millis(2);
const FIBER_STACK_BYTES: usize = 2 << 20;
const BACKTRACE_FRAMES_MAX: usize = 20;
/// Core instances of one component. The largest toolchain tried (Python) makes 38.
pub(super) const CORE_INSTANCES_MAX: u32 = 64;
const MEMORIES_PER_COMPONENT_MAX: u32 = 4;
const TABLES_PER_COMPONENT_MAX: u32 = 4;
const INSTANCE_BYTES_MAX: usize = 1 << 20;
const MEMORY_KEEP_RESIDENT_BYTES: usize = 1 << 20;
const TABLE_KEEP_RESIDENT_BYTES: usize = 64 << 10;

/// WebAssembly features that guests may use: the standard and deterministic ones.
pub(super) fn features() -> WasmFeatures {
    WasmFeatures::default() & !refused_features()
}

fn refused_features() -> WasmFeatures {
    WasmFeatures::RELAXED_SIMD
        | WasmFeatures::MEMORY64
        | WasmFeatures::THREADS
        | WasmFeatures::SHARED_EVERYTHING_THREADS
        | WasmFeatures::EXCEPTIONS
        | WasmFeatures::LEGACY_EXCEPTIONS
        | WasmFeatures::GC
        | WasmFeatures::FUNCTION_REFERENCES
        | WasmFeatures::STACK_SWITCHING
        | WasmFeatures::TAIL_CALL
        | WasmFeatures::CUSTOM_PAGE_SIZES
        | WasmFeatures::WIDE_ARITHMETIC
        | WasmFeatures::CM_ASYNC
}

/// The configuration that machine code depends on.
pub(super) fn base() -> Config {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .operator_cost(OperatorCost {
            variable: VariableOperatorCost {
                memory_grow_per_page: GROW_FUEL_PER_PAGE,
                ..VariableOperatorCost::new()
            },
            ..OperatorCost::new()
        })
        .epoch_interruption(true)
        .cranelift_nan_canonicalization(true)
        .wasm_features(refused_features(), false)
        .max_wasm_stack(STACK_BYTES_MAX)
        .async_stack_size(FIBER_STACK_BYTES)
        .wasm_backtrace_details(wasmtime::WasmBacktraceDetails::Disable)
        .wasm_backtrace_max_frames(std::num::NonZeroUsize::new(BACKTRACE_FRAMES_MAX));
    config
}

/// The engine that runs guests, with its ticker started.
pub(super) fn new(settings: &Settings) -> Result<Engine, String> {
    let mut config = compiling(settings)?;
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(settings)));
    let engine = Engine::new(&config).or_else(|error| {
        // Containers with a low limit of address space cannot reserve the pool. Slow instances are better than none.
        tracing::warn!(error = %format!("{error:#}"), "no pool of guest instances, allocating on demand");
        let mut config = compiling(settings).map_err(wasmtime::Error::msg)?;
        config.allocation_strategy(InstanceAllocationStrategy::OnDemand);
        Engine::new(&config)
    });
    let engine = engine.map_err(|error| cannot_start(&error))?;
    start_ticker(&engine)?;
    Ok(engine)
}

/// The configuration with the place where functions are stored, if the settings ask for it.
fn compiling(settings: &Settings) -> Result<Config, String> {
    let mut config = base();
    if matches!(settings.compiler, Compiler::Incremental) {
        config
            .enable_incremental_compilation(Arc::new(Functions::default()))
            .map_err(|error| cannot_start(&error))?;
    }
    Ok(config)
}

fn cannot_start(error: &wasmtime::Error) -> String {
    format!("the WebAssembly engine cannot start: {error:#}")
}

fn pool(settings: &Settings) -> PoolingAllocationConfig {
    // The same number for quick calls and for slow calls.
    let calls = 2 * u32::try_from(settings.concurrency).expect("the ceiling of concurrency fits");
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(calls)
        .total_stacks(calls)
        .total_core_instances(calls * CORE_INSTANCES_MAX)
        .total_memories(calls * MEMORIES_PER_COMPONENT_MAX)
        .total_tables(calls * TABLES_PER_COMPONENT_MAX)
        .max_core_instances_per_component(CORE_INSTANCES_MAX)
        .max_memories_per_component(MEMORIES_PER_COMPONENT_MAX)
        .max_tables_per_component(TABLES_PER_COMPONENT_MAX)
        .max_memories_per_module(2)
        .max_tables_per_module(2)
        .table_elements(settings.table_elements_max)
        .max_memory_size(settings.memory_bytes_max)
        .max_component_instance_size(INSTANCE_BYTES_MAX)
        .max_core_instance_size(INSTANCE_BYTES_MAX)
        .linear_memory_keep_resident(MEMORY_KEEP_RESIDENT_BYTES)
        .table_keep_resident(TABLE_KEEP_RESIDENT_BYTES)
        .pagemap_scan(Enabled::Auto)
        .max_unused_warm_slots(calls * MEMORIES_PER_COMPONENT_MAX);
    pool
}

/// A thread, not a task: while guests keep the runtime busy, it could not run the task that interrupts them.
fn start_ticker(engine: &Engine) -> Result<(), String> {
    let engine = engine.weak();
    std::thread::Builder::new()
        .name("guest-ticker".into())
        .spawn(move || {
            while let Some(engine) = engine.upgrade() {
                engine.increment_epoch();
                drop(engine);
                std::thread::sleep(TICK);
            }
        })
        .map(drop)
        .map_err(|error| format!("the thread that interrupts guests cannot start: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorded_version_is_the_one_built() {
        let lock = include_str!("../../../Cargo.lock");
        let entry = format!("name = \"wasmtime\"\nversion = \"{WASMTIME_VERSION}\"\n");
        assert!(lock.contains(&entry), "update WASMTIME_VERSION");
    }

    #[test]
    fn the_compiler_and_the_runner_make_compatible_code() {
        let settings = Settings::new(super::super::Compiler::InProcess);
        let hash = |engine: &Engine| super::super::artifacts::compatibility(engine);
        let runner = new(&settings).expect("engine");
        let compiler = Engine::new(&base()).expect("engine");
        assert_eq!(hash(&runner), hash(&compiler));
    }

    #[test]
    fn functions_compiled_before_give_the_same_machine_code() {
        let component = |result: u32| {
            let module = format!(
                r#"(component (core module $m
                  (func (export "same") (param i32) (result i32) local.get 0 i32.const 7 i32.mul)
                  (func (export "other") (result i32) i32.const {result}))
                  (core instance (instantiate $m)))"#
            );
            wat::parse_str(module).expect("a component")
        };
        let whole = Engine::new(&base()).expect("engine");
        let settings = Settings::new(Compiler::Incremental);
        let functions = Arc::new(Functions::default());
        let incremental = {
            let mut config = base();
            let stored = Arc::clone(&functions);
            config
                .enable_incremental_compilation(stored)
                .expect("enabled");
            Engine::new(&config).expect("engine")
        };
        let runner = new(&settings).expect("engine");
        let (mut first, mut stored) = (0, 0);
        for result in [1, 1, 2] {
            let component = component(result);
            let code = whole.precompile_component(&component).expect("code");
            assert_eq!(
                incremental.precompile_component(&component).expect("code"),
                code
            );
            assert_eq!(runner.precompile_component(&component).expect("code"), code);
            // Threads may compile the same function twice, but never all functions.
            let added = functions.len() - stored;
            if stored == 0 {
                first = added;
            } else {
                assert!(added < first, "{result}: {added} of {first}");
            }
            stored = functions.len();
        }
    }
}
