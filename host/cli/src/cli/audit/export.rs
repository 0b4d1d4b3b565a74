//! `wrkflw audit export`: writes a file that can be verified without a database.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::{ArgGroup, Args};

use super::which::WhichArgs;
use crate::cli::connection::DevChoiceArgs;
use crate::cli::failure::{Exit, Failure};
use crate::cli::output::{Output, counted};
use crate::cli::serve::not_migrated;
use crate::cli::{Environment, beside, block_on};
use crate::config::DatabaseArgs;
use wrkflw_audit::export::Exporter;
use wrkflw_audit::export::line::Line;
use wrkflw_runtime::clock::Clock;
use wrkflw_store::pools::Readiness;
use wrkflw_store::{PoolSizes, Store};

/// Lines of an export without entries: its header and its end.
const EMPTY: u64 = 2;

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).multiple(true).args(["instance", "entity", "tenant", "all"])))]
pub(in crate::cli) struct ExportArgs {
    #[command(flatten)]
    which: WhichArgs,
    /// The file to write. It holds all that was recorded, including confidential data
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Include the components, so that commands can be run again from the file alone
    #[arg(long)]
    with_components: bool,
    /// File with settings. Default: wrkflw.toml, if there is one
    #[arg(
        long = "config",
        id = "settings_file",
        env = "WRKFLW_CONFIG",
        value_name = "FILE"
    )]
    _file: Option<PathBuf>,
    #[command(flatten)]
    choice: DevChoiceArgs,
    #[command(flatten)]
    database: DatabaseArgs,
}

pub(super) fn run(mut args: ExportArgs, output: Output, environment: &Environment) -> Result<()> {
    let with = (output, environment);
    beside::database(&args.choice, &mut args.database, None, with)?;
    let which = args.which.asked()?;
    let named = || format!("cannot write {}", args.out.display());
    let lines = block_on(async {
        let store = Store::connect(args.database.url()?, PoolSizes::default())?;
        if store.ready().await? == Readiness::NotMigrated {
            return Err(not_migrated().into());
        }
        let mut file = BufWriter::new(File::create(&args.out).with_context(named)?);
        let write = |line: &Line| {
            serde_json::to_writer(&mut file, line)?;
            file.write_all(b"\n")
        };
        let exporter = Exporter::new(&*store, args.with_components, write);
        let now = Clock::System.now();
        let lines = exporter
            .run(args.which.tenant.as_deref(), &which, now)
            .await?;
        file.flush().with_context(named)?;
        store.close().await;
        Ok(lines)
    })?;
    if lines <= EMPTY {
        let message = "nothing of that name can be exported";
        return Err(Failure::new(Exit::Usage, message).into());
    }
    let lines = counted(lines, "line");
    output.hint(&format!("{lines} in {}", args.out.display()));
    Ok(())
}
