//! `wrkflw audit verify --file`: an export, with what it takes besides. Versions and components are read in a pass of their own,
//! since commands run on them from the first instance on.

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
use crate::domain::ids::TenantId;
use crate::engine::export::line::Line;
use crate::engine::replay::{Carried, Replayer, Source};
use crate::engine::verify::file::FileVerifier;
use crate::engine::verify::{Finding, How};

/// Bytes of a line at the most: a component of the largest size that is admitted, in base64, fits.
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
            Some(Replayer::new(Source::Carried(carried), sandbox))
        }
    };
    let mut told = Ok(());
    let tell = |finding: Finding| {
        if told.is_ok() {
            told = output.line(&json!(finding), FINDING);
        }
    };
    let how = How {
        seals: evidence.seals.as_ref(),
        replayer: replayer.as_ref(),
        keys: &evidence.keys,
        kept: &evidence.kept,
    };
    let mut verifier = FileVerifier::new(how, tell);
    let mut lines = Lines::open(path)?;
    while let Some(line) = lines.next()? {
        verifier.line(line).await?;
    }
    let tally = verifier.end()?;
    let what = Verified {
        tally,
        replayed: replayer.is_some(),
        sealed: evidence.seals.is_some(),
    };
    Ok((what, told))
}

/// The versions and components that the export holds, and the components of a folder.
fn carried(path: &Path, folder: Option<&Path>) -> Result<Carried> {
    let mut carried = Carried::default();
    let mut tenant = TenantId(0);
    let mut lines = Lines::open(path)?;
    while let Some(text) = lines.next()? {
        // Most lines are entries, which need not be read twice.
        if !["{\"tenant\"", "{\"version\"", "{\"component\""]
            .iter()
            .any(|begin| text.starts_with(begin))
        {
            continue;
        }
        match serde_json::from_str(text) {
            Ok(Line::Tenant(line)) => tenant = line.id,
            Ok(Line::Version(version)) => carried.version(tenant, *version),
            Ok(Line::Component { bytes }) => {
                let bytes = STANDARD.decode(bytes).context("a component is no base64")?;
                carried.component(bytes);
            }
            // What cannot be read is told by the verifier, with its line.
            _ => {}
        }
    }
    let Some(folder) = folder else {
        return Ok(carried);
    };
    let named = || format!("cannot read the components in {}", folder.display());
    for file in std::fs::read_dir(folder).with_context(named)? {
        let path = file.with_context(named)?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "wasm")
        {
            carried.component(std::fs::read(&path).with_context(named)?);
        }
    }
    Ok(carried)
}

/// The lines of a file, one at a time.
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
