//! `wrkflw audit`: verifies the stored audit, or an export of it, and shows that nobody has changed it.
//!
//! It needs no server, so it also works on a restored copy. It reads with a read-only database role.

mod export;
mod keys;
mod verify;
mod which;

use anyhow::Result;
use clap::Subcommand;

use super::Environment;
use super::output::Output;

#[derive(Debug, Subcommand)]
pub(super) enum AuditCommand {
    /// Verify chains, decisions, their seals, recorded evaluations and checkpoints
    Verify(Box<verify::VerifyArgs>),
    /// Write a file that can be verified without a database
    Export(Box<export::ExportArgs>),
    /// Print the public keys of checkpoints, for those who verify them
    Keys(Box<keys::KeysArgs>),
}

pub(super) fn run(command: AuditCommand, output: Output, environment: &Environment) -> Result<()> {
    match command {
        AuditCommand::Verify(args) => verify::run(&args, output, environment),
        AuditCommand::Export(args) => export::run(&args, output),
        AuditCommand::Keys(args) => keys::run(&args, output),
    }
}
