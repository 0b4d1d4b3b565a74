//! How much a host takes on at once.

use clap::Args;

use super::between;
use crate::http::admission::{Admission, IN_FLIGHT_MAX, WAITING_MAX};

/// Bounds on the requests in hand.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct AdmissionArgs {
    /// Requests worked on at once
    #[arg(long, env = "WRKFLW_REQUESTS_IN_FLIGHT_MAX", default_value_t = IN_FLIGHT_MAX, value_parser = between::<usize>(1, 100_000))]
    pub requests_in_flight_max: usize,
    /// Requests that wait for a place; more are refused at once, with 503 and Retry-After
    #[arg(long, env = "WRKFLW_REQUESTS_WAITING_MAX", default_value_t = WAITING_MAX, value_parser = between::<usize>(0, 1_000_000))]
    pub requests_waiting_max: usize,
}

impl AdmissionArgs {
    pub fn admission(&self) -> Admission {
        Admission::new(self.requests_in_flight_max, self.requests_waiting_max)
    }
}
