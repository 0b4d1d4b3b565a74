//! What operators see: log lines on stderr, metrics for a scraper, trace context across services.
//!
//! Set up once, by the command that runs; everything else only emits. Settings arrive as values: the environment is
//! read elsewhere. What is measured stands in `measures`, how requests are told apart across services in `trace`.

mod log;
mod measures;
mod trace;

pub use log::{COMMAND_TARGET, LogFormat, LogSettings};
pub use measures::{Metrics, metrics};
pub use trace::traceparent;

/// What a process needs of its telemetry once that is set up.
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
