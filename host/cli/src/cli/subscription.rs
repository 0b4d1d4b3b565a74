//! `wrkflw subscription`: webhooks.

mod listen;

use anyhow::Result;
use clap::Subcommand;

use super::output::Output;

#[derive(Debug, Subcommand)]
pub(super) enum SubscriptionCommand {
    /// Receive webhooks on this machine, verify their signatures, and print the events
    Listen(listen::ListenArgs),
}

pub(super) fn run(command: &SubscriptionCommand, output: Output) -> Result<()> {
    match command {
        SubscriptionCommand::Listen(args) => listen::run(args, output),
    }
}
