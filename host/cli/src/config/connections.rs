//! Limits of client connections. `http::server` and `http::pace` explain each.

use clap::Args;

use super::between;
use wrkflw_server::http::pace::Pace;
use wrkflw_server::http::server::{Limits, Timeouts};

/// Limits of connections. The defaults suit clients on the internet.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct ConnectionArgs {
    /// Client connections at a time. If there are more, idle ones are closed, and further ones are refused with Retry-After
    #[arg(long, env = "WRKFLW_CONNECTIONS_MAX", default_value_t = Limits::default().connections_max, value_parser = between::<usize>(1, 1_000_000))]
    pub connections_max: usize,
    /// The timeouts of a connection. Not a setting: tests of the program use shorter ones.
    #[arg(skip)]
    pub timeouts: Timeouts,
    /// The minimum rate of request bodies. Not a setting, either.
    #[arg(skip)]
    pub pace: Pace,
}

impl ConnectionArgs {
    pub fn limits(&self) -> Limits {
        Limits {
            connections_max: self.connections_max,
            timeouts: self.timeouts,
        }
    }
}
