//! The limits of one call. A store is made for each call and dropped after it.

use wasmtime::{Engine, ResourceLimiter, Store};

use super::settings::Settings;

/// What the host may allocate for a guest's answer before its exact size is known. This is a multiple of the output limit,
/// because the overhead of the types counts, too.
const LIFTED_BYTES_PER_OUTPUT_BYTE: usize = 4;
/// The contract has no resources, but the engine requires a number.
const HANDLES_MAX: usize = 64;

/// Counts all memories and tables of a call together. The engine's own limits apply to each alone.
#[derive(Debug)]
pub(super) struct Allowance {
    memory_bytes_left: usize,
    table_elements_left: usize,
    /// Whether the guest was refused memory. Most guests trap then.
    pub(super) memory_refused: bool,
    table_refused: bool,
}

impl Allowance {
    fn new(settings: &Settings) -> Allowance {
        Allowance {
            memory_bytes_left: settings.memory_bytes_max,
            table_elements_left: settings.table_elements_max,
            memory_refused: false,
            table_refused: false,
        }
    }

    /// Counts refusals in the metrics: a guest may go on after one, so that no error reports it.
    pub(super) fn count_refusals(&self) {
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
        let granted = maximum.is_none_or(|maximum| desired <= maximum)
            && take(&mut self.memory_bytes_left, current, desired);
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

/// A store with all limits but that of wall time, which the caller enforces by dropping the call.
pub(super) fn store(engine: &Engine, settings: &Settings, fuel: u64) -> Store<Allowance> {
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
