//! What connections of callers may cost. What each bound means stands with `http::server` and `http::pace`.

use std::time::Duration;

use clap::Args;

use super::{DAY_SECONDS, SECONDS_MAX, between};
use crate::http::pace::Pace;
use crate::http::server::Limits;

/// Bounds on connections; the defaults suit callers anywhere on the internet.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub struct ConnectionArgs {
    /// Connections of callers at once. Where there is no room, idle ones are closed, and further ones told to come back
    #[arg(long, env = "WRKFLW_CONNECTIONS_MAX", default_value_t = Limits::default().connections_max, value_parser = between::<usize>(1, 1_000_000))]
    pub connections_max: usize,
    /// How long a connection may wait between requests, in seconds
    #[arg(long, env = "WRKFLW_IDLE_SECONDS_MAX", default_value_t = Limits::default().idle_max.as_secs(), value_parser = between::<u64>(1, DAY_SECONDS))]
    pub idle_seconds_max: u64,
    /// How long the head of a request may take to arrive, in seconds
    #[arg(long, env = "WRKFLW_HEAD_SECONDS_MAX", default_value_t = Limits::default().head_max.as_secs(), value_parser = between::<u64>(1, SECONDS_MAX))]
    pub head_seconds_max: u64,
    /// How long the body of a request may take to arrive, in seconds, besides a second for each 16 KiB of it
    #[arg(long, env = "WRKFLW_BODY_SECONDS_MAX", default_value_t = Pace::default().body_max.as_secs(), value_parser = between::<u64>(1, SECONDS_MAX))]
    pub body_seconds_max: u64,
    /// How long a client may read nothing of its answer, in seconds
    #[arg(long, env = "WRKFLW_UNREAD_SECONDS_MAX", default_value_t = Limits::default().unread_max.as_secs(), value_parser = between::<u64>(1, SECONDS_MAX))]
    pub unread_seconds_max: u64,
}

impl ConnectionArgs {
    /// What connections may cost.
    pub fn limits(&self) -> Limits {
        Limits {
            connections_max: self.connections_max,
            idle_max: Duration::from_secs(self.idle_seconds_max),
            head_max: Duration::from_secs(self.head_seconds_max),
            unread_max: Duration::from_secs(self.unread_seconds_max),
        }
    }

    /// How slowly bodies may come.
    pub fn pace(&self) -> Pace {
        Pace {
            body_max: Duration::from_secs(self.body_seconds_max),
        }
    }
}
