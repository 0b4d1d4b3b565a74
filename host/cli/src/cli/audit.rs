//! `wrkflw audit`: verifies the stored audit, or an export of it, to show that nobody has changed it.
//!
//! `verify`, `export` and `keys` need no server, so they also work on a restored copy. They read with a read-only database
//! role. `list`, `checkpoints` and `self-approvals` ask a server.

mod export;
mod keys;
mod list;
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
    /// List the audit entries of the tenant, as the server shows them
    List(list::ListArgs),
    /// List the checkpoints of the audit, newest first, and whether their signatures are valid
    Checkpoints(list::CheckpointsArgs),
    /// Report decisions of requesters on their own requests, and refused attempts
    SelfApprovals(list::SelfApprovalsArgs),
    /// Print the public keys of checkpoints, for those who verify them
    Keys(Box<keys::KeysArgs>),
}

pub(super) fn run(command: AuditCommand, output: Output, environment: &Environment) -> Result<()> {
    match command {
        AuditCommand::Verify(args) => verify::run(*args, output, environment),
        AuditCommand::Export(args) => export::run(*args, output, environment),
        AuditCommand::List(args) => args.run(output, environment),
        AuditCommand::Checkpoints(args) => args.run(output, environment),
        AuditCommand::SelfApprovals(args) => args.run(output, environment),
        AuditCommand::Keys(args) => keys::run(*args, output, environment),
    }
}
