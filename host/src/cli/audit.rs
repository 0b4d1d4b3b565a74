//! `wrkflw audit`: proves, from the database alone, that nobody changed what was recorded.
//!
//! It asks no server, so it also works on a restored copy. It reads as the role that may change nothing.

use std::path::PathBuf;

use anyhow::Result;
use clap::{ArgGroup, Args, Subcommand};
use serde_json::json;
use uuid::Uuid;

use super::block_on;
use super::failure::{Exit, Failure};
use super::output::{Column, Format, Output};
use super::serve::not_migrated;
use crate::config::{DatabaseArgs, SealArgs};
use crate::domain::ids::InstanceId;
use crate::domain::instance::Entity;
use crate::engine::SealKeys;
use crate::engine::verify::{Finding, Tally, Verifier};
use crate::store::Store;
use crate::store::pools::Readiness;
use crate::store::verify::Which;

#[derive(Debug, Subcommand)]
pub(super) enum AuditCommand {
    /// Verify chains, decisions, their seals, and that entries give what is stored
    Verify(Box<VerifyArgs>),
}

#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("what").required(true).multiple(true).args(["instance", "entity", "tenant", "all"])),
    after_help = "Exit codes: 0 all is as it was recorded, 1 there are findings, 2 it could not be verified"
)]
pub(super) struct VerifyArgs {
    /// Only this instance
    #[arg(long, value_name = "ID", conflicts_with_all = ["entity", "all"])]
    instance: Option<Uuid>,
    /// Only the instances about this entity
    #[arg(long, value_name = "TYPE/ID", conflicts_with = "all")]
    entity: Option<String>,
    /// Only in this tenant. Alone: everything of it
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    tenant: Option<String>,
    /// Everything
    #[arg(long)]
    all: bool,
    /// Leave the seals of decisions unverified, for those who are not to have the keys
    #[arg(long, conflicts_with = "seal_keys")]
    without_seals: bool,
    /// The same as `--output json`: a line for each finding, and one for what was verified
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
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    seal: SealArgs,
}

const FINDING: &[Column] = &[
    ("", "/tenant"),
    ("", "/stream"),
    ("", "/id"),
    ("", "/seq"),
    ("", "/code"),
    ("", "/detail"),
];
pub(super) fn run(command: AuditCommand, output: Output) -> Result<()> {
    let AuditCommand::Verify(args) = command;
    let format = if args.json {
        Format::Json
    } else {
        output.format
    };
    let output = Output { format, ..output };
    let (tally, untold) = verify(&args, output).map_err(unverifiable)?;
    close(output, tally, args.without_seals)?;
    untold?;
    if !args.all && tally.streams + tally.findings == 0 {
        return Err(unverifiable(
            Failure::new(Exit::Usage, "there is nothing of that name to verify").into(),
        ));
    }
    match tally.findings {
        0 => Ok(()),
        1 => Err(Failure::new(Exit::Failed, "there is 1 finding").into()),
        many => Err(Failure::new(Exit::Failed, format!("there are {many} findings")).into()),
    }
}

/// What was verified, and whether all findings could be told.
fn verify(args: &VerifyArgs, output: Output) -> Result<(Tally, Result<()>)> {
    let which = which(args)?;
    let seals: Option<SealKeys> = if args.without_seals {
        None
    } else {
        Some(args.seal.keys().map_err(|error| {
            Failure::new(Exit::Usage, error.0)
                .next("or pass --without-seals, to verify everything else")
        })?)
    };
    block_on(async {
        let store = Store::connect(args.database.url()?, args.database.pools())?;
        if store.ready().await? == Readiness::NotMigrated {
            return Err(not_migrated().into());
        }
        let mut told = Ok(());
        let tell = |finding: Finding| {
            if told.is_ok() {
                told = output.line(&json!(finding), FINDING);
            }
        };
        let verifier = Verifier::new(&store, seals.as_ref(), tell);
        let tally = verifier.run(args.tenant.as_deref(), &which).await?;
        store.close().await;
        Ok((tally, told))
    })
}

fn which(args: &VerifyArgs) -> Result<Which> {
    if let Some(id) = args.instance {
        return Ok(Which::One(InstanceId(id)));
    }
    let Some(entity) = &args.entity else {
        return Ok(Which::All);
    };
    let (kind, id) = entity.split_once('/').ok_or_else(|| {
        let message = "an entity is named by its type and its id, with a slash between";
        Failure::new(Exit::Usage, message).next("write it as document/doc-1")
    })?;
    let (kind, id) = (kind.to_owned(), id.to_owned());
    Ok(Which::About(Entity { kind, id }))
}

/// The closing line.
fn close(output: Output, tally: Tally, without_seals: bool) -> Result<()> {
    let seals = if without_seals {
        "their seals not verified".to_owned()
    } else {
        format!("{} of them with a valid seal", tally.seals)
    };
    if output.format == Format::Json {
        let sealed = !without_seals;
        return output.line(&json!({ "verified": tally, "sealsVerified": sealed }), &[]);
    }
    let Tally {
        streams,
        entries,
        decisions,
        findings,
        ..
    } = tally;
    let closing = format!(
        "verified {streams} streams with {entries} entries and {decisions} decisions, {seals}; findings: {findings}"
    );
    output.line(&json!({ "closing": closing }), &[("", "/closing")])
}

/// Whatever kept it from being verified is another matter than a finding.
fn unverifiable(error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<Failure>() {
        Ok(mut failure) => {
            failure.exit = Exit::Usage;
            failure.into()
        }
        Err(error) => {
            let next = "check database_url; nothing was found out about the audit";
            Failure::new(Exit::Usage, format!("{error:#}"))
                .next(next)
                .into()
        }
    }
}
