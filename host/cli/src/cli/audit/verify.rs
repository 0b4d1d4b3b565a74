//! `wrkflw audit verify`, for auditors: the parts to verify, and the report of the result.

mod file;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{ArgGroup, Args};
use serde_json::{Value, json};

use super::which::WhichArgs;
use crate::cli::connection::DevChoiceArgs;
use crate::cli::failure::{Exit, Failure};
use crate::cli::output::{Column, Format, Output, counted};
use crate::cli::serve::not_migrated;
use crate::cli::{Environment, block_on, dev_settings};
use crate::config::{CheckpointArgs, DatabaseArgs, SandboxArgs, SealArgs};
use wrkflw_audit::keys::CheckpointKeys;
use wrkflw_audit::record::rows::Which;
use wrkflw_audit::replay::Replayer;
use wrkflw_audit::seal::SealKeys;
use wrkflw_audit::verify::{Finding, How, VerifiedCounts, Verifier};
use wrkflw_core::checkpoint::Checkpoint;
use wrkflw_engine::replay::Sandboxed;
use wrkflw_sandbox::Sandbox;
use wrkflw_store::pools::Readiness;
use wrkflw_store::{PoolSizes, Reader, Store};

#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("what").required(true).multiple(true).args(["instance", "entity", "tenant", "all", "file"])),
    after_help = "Exit codes: 0 all is as it was recorded, 1 there are findings, 2 it could not be verified"
)]
pub(in crate::cli) struct VerifyArgs {
    #[command(flatten)]
    which: WhichArgs,
    /// Verify this export. No database is used, even if one is set
    #[arg(long, value_name = "FILE", conflicts_with_all = ["instance", "entity", "all"])]
    file: Option<PathBuf>,
    /// Folder with components (`*.wasm`) that the export does not hold, to run its commands again
    #[arg(long, value_name = "FOLDER", requires = "file")]
    components: Option<PathBuf>,
    /// Do not verify the seals of decisions and delegations, for those who do not have the keys
    #[arg(long, conflicts_with = "seal_keys")]
    without_seals: bool,
    /// The same as `--output json`: a line for each finding, and one with the totals
    #[arg(long)]
    json: bool,
    /// File with settings. Default: wrkflw.toml, if there is one
    #[arg(
        long = "config",
        id = "settings_file",
        env = "WRKFLW_CONFIG",
        value_name = "FILE"
    )]
    _file: Option<PathBuf>,
    /// Do not run recorded commands again
    #[arg(long)]
    no_replay: bool,
    /// File with one or more checkpoints that were stored elsewhere, as events or as their data; may be repeated
    #[arg(long, value_name = "FILE")]
    checkpoint: Vec<PathBuf>,
    #[command(flatten)]
    choice: DevChoiceArgs,
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    seal: SealArgs,
    #[command(flatten)]
    checkpoints: CheckpointArgs,
    #[command(flatten)]
    sandbox: SandboxArgs,
}

const FINDING: &[Column] = &[
    ("", "/tenant"),
    ("", "/stream"),
    ("", "/id"),
    ("", "/seq"),
    ("", "/code"),
    ("", "/detail"),
];

pub(super) fn run(mut args: VerifyArgs, output: Output, environment: &Environment) -> Result<()> {
    if !args.checkpoint.is_empty() && args.which.selection() != Which::All {
        let message =
            "a checkpoint covers a whole tenant: use --checkpoint with --tenant, --all or --file";
        return Err(Failure::new(Exit::Usage, message).into());
    }
    if args.file.is_none() {
        let keys = (&mut args.seal, &mut args.checkpoints);
        let with = (output, environment);
        let filled = dev_settings::database(&args.choice, &mut args.database, Some(keys), with);
        filled.map_err(unverifiable)?;
    }
    let args = &args;
    let format = if args.json {
        Format::Json
    } else {
        output.format
    };
    let output = Output { format, ..output };
    let (verified, unsent) = verify(args, output, environment).map_err(unverifiable)?;
    close(output, verified, args)?;
    let tally = verified.tally;
    unsent?;
    if !args.which.all && args.file.is_none() && tally.streams + tally.findings == 0 {
        return Err(unverifiable(
            Failure::new(Exit::Usage, "nothing with this name was found to verify").into(),
        ));
    }
    // Refused attempts are leaves without an entry.
    if args.file.is_some() && tally.entries + tally.leaves + tally.findings == 0 {
        let message = "the file has no entries: there is nothing to verify";
        return Err(unverifiable(Failure::new(Exit::Usage, message).into()));
    }
    let there = match tally.findings {
        0 => return of_whole(args, tally),
        1 => "there is",
        _ => "there are",
    };
    let found = counted(tally.findings, "finding");
    Err(Failure::new(Exit::Failed, format!("{there} {found}")).into())
}

/// Fails if the file should be an export of a whole tenant, but has only a part of it. A part without findings does not
/// prove anything about the missing rest.
fn of_whole(args: &VerifyArgs, tally: VerifiedCounts) -> Result<()> {
    match &args.which.tenant {
        Some(tenant) if tally.parts > 0 => {
            let message = format!(
                "the file has only a part of tenant {tenant}: its other instances are not shown"
            );
            let failure = Failure::new(Exit::Usage, message);
            Err(failure.next("leave out --tenant to verify the part").into())
        }
        _ => Ok(()),
    }
}

/// The verified parts, and the evidence used.
#[derive(Clone, Copy)]
struct Verified {
    tally: VerifiedCounts,
    replayed: bool,
    sealed: bool,
}

/// Returns the verified parts, and whether all findings could be written.
fn verify(
    args: &VerifyArgs,
    output: Output,
    environment: &Environment,
) -> Result<(Verified, Result<()>)> {
    let which = args.which.selection();
    let seals = seals(args)?;
    let keys = args.checkpoints.keys()?;
    let kept = kept_checkpoints(&args.checkpoint)?;
    if let Some(path) = &args.file {
        let evidence = Evidence { seals, keys, kept };
        return block_on(file::verify(path, args, evidence, output, environment));
    }
    block_on(async {
        let store = Store::connect(args.database.url()?, PoolSizes::default())?;
        if store.ready_to_read().await? == Readiness::NotMigrated {
            return Err(not_migrated().into());
        }
        let replayer = if args.no_replay {
            None
        } else {
            let sandbox = sandbox(&args.sandbox, environment)?;
            let record = Reader::clone(&store);
            Some(Replayer::new(record, Sandboxed(sandbox)))
        };
        let mut written = Ok(());
        let write = |finding: Finding| {
            if written.is_ok() {
                written = output.line(&json!(finding), FINDING);
            }
        };
        let how = How {
            seals: seals.as_ref(),
            replayer: replayer.as_ref(),
            keys: &keys,
            kept: &kept,
        };
        let verifier = Verifier::new(&*store, how, write);
        let tally = verifier.run(args.which.tenant.as_deref(), &which).await?;
        store.close().await;
        let result = Verified {
            tally,
            replayed: !args.no_replay,
            sealed: seals.is_some(),
        };
        Ok((result, written))
    })
}

/// The sandbox that runs recorded commands again. It compiles components in a child process, as a host does.
fn sandbox(args: &SandboxArgs, environment: &Environment) -> Result<Sandbox> {
    let settings = args.settings(environment.program.clone());
    settings
        .and_then(Sandbox::new)
        .map_err(|error| Failure::new(Exit::Usage, error).into())
}

/// The evidence that the caller supplies.
struct Evidence {
    seals: Option<SealKeys>,
    keys: CheckpointKeys,
    kept: Vec<Checkpoint>,
}

/// Without keys, the seals in a file are not verified, and the closing line says so.
fn seals(args: &VerifyArgs) -> Result<Option<SealKeys>> {
    if args.without_seals || (args.file.is_some() && args.seal.seal_keys.is_empty()) {
        return Ok(None);
    }
    let keys = args.seal.keys().map_err(|error| {
        Failure::new(Exit::Usage, error.0)
            .next("or pass --without-seals, to verify everything else")
    })?;
    Ok(Some(keys))
}

/// The checkpoints in these files. Each is the data of an event, or a whole event.
fn kept_checkpoints(files: &[PathBuf]) -> Result<Vec<Checkpoint>> {
    let mut checkpoints = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        for value in serde_json::Deserializer::from_str(&text).into_iter::<Value>() {
            checkpoints.push(checkpoint(path, value)?);
        }
    }
    Ok(checkpoints)
}

fn checkpoint(path: &Path, value: serde_json::Result<Value>) -> Result<Checkpoint> {
    let message = || format!("{} holds a line that is no checkpoint", path.display());
    let mut value = value.with_context(message)?;
    if let Some(data) = value.get_mut("data") {
        value = data.take();
    }
    serde_json::from_value(value).with_context(message)
}

/// Prints the closing lines: the parts that were verified, and those that were not.
fn close(output: Output, verified: Verified, args: &VerifyArgs) -> Result<()> {
    let Verified {
        tally,
        replayed,
        sealed,
    } = verified;
    let keys = args.checkpoints.keys()?;
    if output.format == Format::Json {
        let closing = json!({
            "verified": tally,
            "sealsVerified": sealed,
            "replayed": replayed,
            "signaturesVerified": !keys.is_empty(),
        });
        return output.line(&closing, &[]);
    }
    for line in closing(verified, args, &keys) {
        output.line(&json!({ "closing": line }), &[("", "/closing")])?;
    }
    Ok(())
}

fn closing(verified: Verified, args: &VerifyArgs, keys: &CheckpointKeys) -> Vec<String> {
    let Verified {
        tally,
        replayed,
        sealed,
    } = verified;
    let seals = if sealed {
        format!("{} of them with a valid seal", tally.seals)
    } else {
        "their seals not verified".to_owned()
    };
    let replay = match (replayed, args.no_replay) {
        (true, _) => format!(
            "{} with {} run again, {} of them recorded under another engine profile",
            counted(tally.commands, "command"),
            counted(tally.evaluations, "evaluation"),
            tally.other_profiles
        ),
        (false, true) => "commands not run again".to_owned(),
        (false, false) => {
            "commands not run again: no component is in the file or in --components".to_owned()
        }
    };
    let signatures = if keys.is_empty() {
        "their signatures not verified, for want of checkpoint_keys".to_owned()
    } else {
        format!("{} of them with a valid signature", tally.signatures)
    };
    let mut lines = vec![
        replay,
        format!(
            "{} under {}, {signatures}",
            match tally.leaves {
                1 => "1 leaf".to_owned(),
                many => format!("{many} leaves"),
            },
            counted(tally.checkpoints, "checkpoint")
        ),
    ];
    if args.file.is_some() {
        lines.extend(closing_of_file(tally));
    }
    let delegations = match tally.delegations {
        0 => String::new(),
        some => format!(" and {}", counted(some, "delegation")),
    };
    lines.push(format!(
        "verified {} with {} and {}{delegations}, {seals}; findings: {}",
        counted(tally.streams, "stream"),
        counted(tally.entries, "entry"),
        counted(tally.decisions, "decision"),
        tally.findings
    ));
    lines
}

/// The parts that the file lacks.
fn closing_of_file(tally: VerifiedCounts) -> Vec<String> {
    let are = |count| if count == 1 { "is" } else { "are" };
    let entries = counted(tally.uncovered, "entry");
    let mut lines = vec![format!(
        "{entries} {} not under a checkpoint yet",
        are(tally.uncovered)
    )];
    if tally.parts > 0 {
        lines.push(format!(
            "{} {} in the file only in part: other instances are not shown, and graphs of versions not proven",
            counted(tally.parts, "tenant"),
            are(tally.parts)
        ));
    }
    if tally.uncompared > 0 {
        lines.push(format!(
            "{} {} older than the file or of other tenants, and could not be compared",
            counted(tally.uncompared, "kept checkpoint"),
            are(tally.uncompared)
        ));
    }
    lines
}

/// Sets the exit code of an error that is not a finding: the audit could not be verified.
fn unverifiable(error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<Failure>() {
        Ok(mut failure) => {
            failure.exit = Exit::Usage;
            failure.into()
        }
        Err(error) => {
            let next = "the audit was not verified: check database_url, or the file";
            Failure::new(Exit::Usage, format!("{error:#}"))
                .next(next)
                .into()
        }
    }
}
