//! `wrkflw audit`: proves, from what is stored or from a file of it, that nobody changed what was recorded.
//!
//! It asks no server, so it also works on a restored copy. It reads as the role that may change nothing.

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
    /// Write a file that can be verified where there is no database
    Export(Box<export::ExportArgs>),
    /// Print the public keys of checkpoints, for those who are to verify them
    Keys(Box<keys::KeysArgs>),
}

pub(super) fn run(command: AuditCommand, output: Output, environment: &Environment) -> Result<()> {
    match command {
        AuditCommand::Verify(args) => verify::run(&args, output, environment),
        AuditCommand::Export(args) => export::run(&args, output),
        AuditCommand::Keys(args) => keys::run(&args, output),
    }
}
