//! Telemetry for operators: log lines on stderr, metrics for a scraper, trace context across services.
//!
//! The program sets it up once; all other code only emits. Settings are passed as values, not read from the environment.
//! `measures` lists the metrics, and `trace` handles trace context.

mod log;
mod measures;
mod trace;

pub use log::{COMMAND_TARGET, LogFormat, LogSettings};
pub use measures::{Metrics, metrics};
pub use trace::traceparent;

/// The telemetry of a process, set up.
#[derive(Debug, Clone)]
pub struct Telemetry {
    pub metrics: Metrics,
}

/// Sends logs to stderr and collects metrics. A process has one log: the second call is refused.
pub fn init(settings: &LogSettings) -> Result<Telemetry, String> {
    let metrics = metrics()?;
    log::install(settings)?;
    Ok(Telemetry { metrics })
}

/// A count as the value of a gauge. Exact for the counts of this host, which stay far below 2^53.
pub fn gauge_value(count: i64) -> f64 {
    f64::from(i32::try_from(count).unwrap_or(i32::MAX))
}
