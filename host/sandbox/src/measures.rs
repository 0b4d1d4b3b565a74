//! The metrics of a component's calls.
//!
//! A component keeps the handles of the definition that called it last, because finding two metrics by their names and labels took 1.6 %
//! of the host's processor time.

use std::sync::{Mutex, PoisonError};

use metrics::Histogram;

use super::call::{Call, CallResult};

/// The metrics of one component.
#[derive(Default)]
pub(super) struct Measures(Mutex<OfDefinition>);

#[derive(Default)]
struct OfDefinition {
    key: String,
    /// By [`Call::number`].
    functions: [Option<OfFunction>; Call::FUNCTIONS],
}

struct OfFunction {
    duration: Histogram,
    fuel: Histogram,
}

impl Measures {
    /// Records a call, also a failed one, because operators need to know what it used.
    pub(super) fn record(&self, definition: &str, call: &Call, ran: &CallResult) {
        if ran.duration.is_zero() {
            return;
        }
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if last.key != definition {
            *last = OfDefinition {
                key: definition.to_owned(),
                ..OfDefinition::default()
            };
        }
        let function = &mut last.functions[call.number()];
        let function = function.get_or_insert_with(|| OfFunction::new(definition, call.function()));
        function.duration.record(ran.duration.as_secs_f64());
        #[expect(
            clippy::cast_precision_loss,
            reason = "a histogram needs no exact count, and budgets stay far below 2^53"
        )]
        function.fuel.record(ran.fuel as f64);
    }
}

impl OfFunction {
    fn new(definition: &str, function: &'static str) -> OfFunction {
        let labels = [
            ("definition", definition.to_owned()),
            ("function", function.to_owned()),
        ];
        OfFunction {
            duration: metrics::histogram!("wrkflw_guest_duration_seconds", &labels),
            fuel: metrics::histogram!("wrkflw_guest_fuel", &labels),
        }
    }
}
