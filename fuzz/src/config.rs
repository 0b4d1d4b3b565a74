//! Settings of a host, from a file, variables and flags: refused with words that tell no secret, or read as they stand.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use clap::builder::Resettable;
use clap::{Arg, Args as _, Command, FromArgMatches as _};
use wrkflw::config::Settings;
use wrkflw::config::layers::{
    DEFAULT_FILE, FILE_ARGUMENT, LayerError, PREFIX, Sources, resolve_reading,
};

/// What every other file holds that a setting names.
const SECRET: &str = "the-content-of-a-secret-file";
/// Lines of a part that are looked at.
const LINES_MAX: usize = 20;

/// Between NULs: the file, then variables as lines of `NAME=value`, then flags, one a line.
pub(crate) fn run(data: &[u8]) {
    let Some(parts) = super::parts(data) else {
        return;
    };
    // libFuzzer learns the secret from what it is compared with; whoever writes it themselves may be told it.
    if parts.iter().any(|part| part.contains(SECRET)) {
        return;
    }
    let [file, variables, flags] = [0, 1, 2].map(|at| parts.get(at).copied().unwrap_or_default());
    let variables = variables.lines().take(LINES_MAX).filter_map(|line| {
        let (name, value) = line.split_once('=')?;
        Some((format!("{PREFIX}{name}"), value.to_owned()))
    });
    let flags = flags
        .lines()
        .take(LINES_MAX)
        .filter(|flag| !is_question(flag));
    let sources = Sources {
        arguments: ["serve"]
            .into_iter()
            .chain(flags)
            .map(OsString::from)
            .collect(),
        variables: variables.collect::<BTreeMap<_, _>>(),
    };
    let (first, again) = (read(&sources, file), read(&sources, file));
    assert_eq!(first, again, "the same sources, and other settings");
}

/// Help is no setting.
fn is_question(flag: &str) -> bool {
    flag.starts_with("-h") || flag.starts_with("--help")
}

fn command() -> Command {
    let command = Command::new("serve").arg(
        Arg::new(FILE_ARGUMENT)
            .long("config")
            .value_parser(clap::value_parser!(PathBuf)),
    );
    // The variables of this process are none of an input's.
    Settings::augment_args(command).mut_args(|arg| match arg.get_env() {
        Some(_) => arg.env(Resettable::Reset),
        None => arg,
    })
}

/// The settings as they would be shown, or why there are none.
fn read(sources: &Sources, file: &str) -> Result<String, String> {
    let reader = |path: &Path| -> io::Result<String> {
        Ok(if path == Path::new(DEFAULT_FILE) {
            file.to_owned()
        } else {
            format!("{SECRET}\n")
        })
    };
    let refusal = match resolve_reading(command(), sources, &reader) {
        Ok(resolved) => match Settings::from_arg_matches(&resolved.matches) {
            Ok(settings) => return Ok(typed(&settings)),
            Err(error) => error.to_string(),
        },
        Err(LayerError::Clap(error)) => error.to_string(),
        Err(LayerError::Settings(error)) => error.to_string(),
    };
    Err(checked(refusal))
}

/// Every setting becomes what the host's modules take, or is refused.
fn typed(settings: &Settings) -> String {
    let refusals = [
        settings.seals().err(),
        settings.checkpoints().err(),
        settings.kafka().err(),
        settings.sandbox(PathBuf::from("wrkflw")).err(),
        settings.database.url().err(),
    ];
    for refusal in refusals.into_iter().flatten() {
        checked(refusal.to_string());
    }
    let shown = format!("{settings:?}");
    assert!(!shown.contains(SECRET), "settings show a secret: {shown}");
    shown
}

fn checked(refusal: String) -> String {
    assert!(!refusal.is_empty());
    assert!(
        !refusal.contains(SECRET),
        "a refusal tells a secret: {refusal}"
    );
    refusal
}
