//! `wrkflw audit export`: writes a file that can be verified without a database.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{ArgGroup, Args};

use super::which::WhichArgs;
use crate::cli::connection::DevChoiceArgs;
use crate::cli::failure::{Exit, Failure};
use crate::cli::output::{Output, counted};
use crate::cli::serve::not_migrated;
use crate::cli::{Environment, block_on, dev_settings};
use crate::config::DatabaseArgs;
use wrkflw_audit::export::Exporter;
use wrkflw_audit::export::line::ExportLine;
use wrkflw_audit::record::rows::Which;
use wrkflw_runtime::clock::{self, Clock};
use wrkflw_store::pools::Readiness;
use wrkflw_store::{PoolSizes, Store};

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
    dev_settings::database(&args.choice, &mut args.database, None, with)?;
    let which = args.which.selection();
    let part = part_of(&args.out);
    let exported = export(&args, &which, part.as_deref());
    if let (Err(_), Some(part)) = (&exported, &part) {
        // The failure is told.
        drop(fs::remove_file(part));
    }
    let lines = counted(exported?, "line");
    output.hint(&format!("{lines} in {}", args.out.display()));
    Ok(())
}

/// The temporary file of an export until it is complete. Until then, an older export does not change. Its name is unique, so another
/// export to the same file neither writes to it nor moves it before it is complete. None if the lines go to a pipe or a device.
fn part_of(out: &Path) -> Option<PathBuf> {
    if fs::metadata(out).is_ok_and(|there| !there.is_file()) {
        return None;
    }
    let mut part = out.as_os_str().to_owned();
    part.push(format!(".{}.part", clock::new_id()));
    Some(part.into())
}

/// A file that only this account reads: an export has confidential data.
fn begin(part: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create_new(true).mode(0o600);
    options.open(part)
}

/// Writes the export. Returns the number of its lines. Fails if there are no entries.
fn export(args: &ExportArgs, which: &Which, part: Option<&Path>) -> Result<u64> {
    let message = || format!("cannot write {}", args.out.display());
    let (lines, entries) = block_on(async {
        let store = Store::connect(args.database.url()?, PoolSizes::default())?;
        if store.ready_to_read().await? == Readiness::NotMigrated {
            return Err(not_migrated().into());
        }
        let file = match part {
            Some(part) => begin(part),
            None => File::options().write(true).open(&args.out),
        };
        let (mut file, mut entries) = (BufWriter::new(file.with_context(message)?), 0_u64);
        let write = |line: &ExportLine| {
            entries += u64::from(matches!(
                line,
                ExportLine::Entry(_) | ExportLine::Refused(_)
            ));
            serde_json::to_writer(&mut file, line)?;
            file.write_all(b"\n")
        };
        let exporter = Exporter::new(&*store, args.with_components, write);
        let now = Clock::System.now();
        let lines = exporter
            .run(args.which.tenant.as_deref(), which, now)
            .await?;
        file.flush().with_context(message)?;
        store.close().await;
        Ok((lines, entries))
    })?;
    if entries == 0 {
        let reason = "there is no such tenant, instance or entity, or it has no entries";
        return Err(Failure::new(Exit::NotFound, reason).into());
    }
    if let Some(part) = part {
        fs::rename(part, &args.out).with_context(message)?;
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_exports_to_one_file_write_two_parts() {
        let out = Path::new("none/audit.jsonl");
        let (one, other) = (part_of(out), part_of(out));
        assert!(one.is_some() && one != other, "{one:?}");
        assert_eq!(part_of(Path::new("/dev/null")), None);
    }
}
