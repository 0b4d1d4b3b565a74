//! `wrkflw audit keys`: prints the public keys of checkpoints, in the format of `checkpoint_keys`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use crate::cli::connection::DevChoiceArgs;
use crate::cli::output::Output;
use crate::cli::{Environment, dev_settings};
use crate::config::CheckpointArgs;
use crate::config::secrets::PUBLIC_PREFIX;

#[derive(Debug, Args)]
pub(in crate::cli) struct KeysArgs {
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
    checkpoints: CheckpointArgs,
}

pub(super) fn run(mut args: KeysArgs, output: Output, environment: &Environment) -> Result<()> {
    let with = (output, environment);
    dev_settings::checkpoints(&args.choice, &mut args.checkpoints, with)?;
    let keys = args.checkpoints.keys()?;
    let mut keys = keys.public().peekable();
    if keys.peek().is_none() {
        output.hint("there are no keys: set `checkpoint_keys`, or run `wrkflw dev`");
    }
    for (name, digits) in keys {
        let key = json!({ "name": name, "key": format!("{name}:{PUBLIC_PREFIX}{digits}") });
        output.line(&key, &[("", "/key")])?;
    }
    Ok(())
}
