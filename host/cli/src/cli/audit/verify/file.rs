//! `wrkflw audit verify --file`: verifies an export. A first pass reads versions and components, because commands need them from
//! the first instance on.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::{Evidence, FINDING, Verified, VerifyArgs, sandbox};
use crate::cli::Environment;
use crate::cli::output::Output;
use wrkflw_audit::export::line::ExportLine;
use wrkflw_audit::replay::{Carried, Replayer};
use wrkflw_audit::verify::file::FileVerifier;
use wrkflw_audit::verify::{Finding, How};
use wrkflw_core::ids::TenantId;
use wrkflw_engine::replay::Sandboxed;

/// Limit of a line in bytes. The largest component that is admitted fits, in base64.
const LINE_BYTES_MAX: u64 = 256 * 1024 * 1024;

pub(super) async fn verify(
    path: &Path,
    args: &VerifyArgs,
    evidence: Evidence,
    output: Output,
    environment: &Environment,
) -> Result<(Verified, Result<()>)> {
    let replayer = if args.no_replay {
        None
    } else {
        let carried = carried(path, args.components.as_deref())?;
        if carried.has_no_components() {
            None
        } else {
            let sandbox = sandbox(&args.sandbox, environment)?;
            Some(Replayer::new(carried, Sandboxed(sandbox)))
        }
    };
    let mut written = Ok(());
    let write = |finding: Finding| {
        if written.is_ok() {
            written = output.line(&json!(finding), FINDING);
        }
    };
    let how = How {
        seals: evidence.seals.as_ref(),
        replayer: replayer.as_ref(),
        keys: &evidence.keys,
        kept: &evidence.kept,
    };
    let mut verifier = FileVerifier::new(how, write);
    if let Some(tenant) = &args.which.tenant {
        verifier = verifier.of(tenant);
    }
    let mut lines = Lines::open(path)?;
    while let Some(line) = lines.next()? {
        verifier.line(line).await?;
    }
    let tally = verifier.end()?;
    let result = Verified {
        tally,
        replayed: replayer.is_some(),
        sealed: evidence.seals.is_some(),
    };
    Ok((result, written))
}

/// The versions and components in the export, and the components of a folder.
fn carried(path: &Path, folder: Option<&Path>) -> Result<Carried> {
    let mut carried = Carried::default();
    let mut tenant = TenantId(0);
    let mut lines = Lines::open(path)?;
    while let Some(text) = lines.next()? {
        // Most lines are entries, which this pass skips.
        if !["{\"tenant\"", "{\"version\"", "{\"component\""]
            .iter()
            .any(|begin| text.starts_with(begin))
        {
            continue;
        }
        match serde_json::from_str(text) {
            Ok(ExportLine::Tenant(line)) => tenant = line.id,
            Ok(ExportLine::Version(version)) => carried.version(tenant, *version),
            Ok(ExportLine::Component { bytes }) => {
                let bytes = STANDARD.decode(bytes).context("a component is no base64")?;
                carried.component(bytes);
            }
            // The verifier reports a line that cannot be read.
            _ => {}
        }
    }
    let Some(folder) = folder else {
        return Ok(carried);
    };
    let message = || format!("cannot read the components in {}", folder.display());
    for file in std::fs::read_dir(folder).with_context(message)? {
        let path = file.with_context(message)?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "wasm")
        {
            carried.component(std::fs::read(&path).with_context(message)?);
        }
    }
    Ok(carried)
}

/// Reads a file line by line.
struct Lines {
    reader: BufReader<File>,
    line: String,
}

impl Lines {
    fn open(path: &Path) -> Result<Lines> {
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        let reader = BufReader::new(file);
        Ok(Lines {
            reader,
            line: String::new(),
        })
    }

    fn next(&mut self) -> Result<Option<&str>> {
        use std::io::Read as _;
        self.line.clear();
        let read = self
            .reader
            .by_ref()
            .take(LINE_BYTES_MAX)
            .read_line(&mut self.line)?;
        Ok((read > 0).then(|| self.line.trim_end()))
    }
}
