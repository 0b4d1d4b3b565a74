//! `wrkflw config`: the settings of a host, explained.

use anyhow::Result;
use clap::Subcommand;

use super::output::Output;
use crate::config::template::template;

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Print a settings file with every setting explained and commented out
    Template,
}

pub(super) fn run(command: ConfigCommand, output: Output) -> Result<()> {
    match command {
        ConfigCommand::Template => output.text("template", &template()),
    }
}
