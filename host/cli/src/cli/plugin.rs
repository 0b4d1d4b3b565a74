//! `wrkflw plugin`: from an empty folder to a component that can be published. It needs no server and, once cargo has the crates,
//! no network.

mod build;
mod check;
mod language;
mod lock;
mod manifest;
pub(super) mod project;
mod scaffold;
mod scenarios;
mod test;
pub(super) mod toolchain;
mod tools;
mod watch;

use std::path::PathBuf;

use anyhow::Result;
use clap::Subcommand;

use super::Environment;
use super::output::Output;
use language::Language;

#[derive(Debug, Subcommand)]
pub(super) enum PluginCommand {
    /// Create a flow that can be built, and the SDK beside it
    New {
        /// Its name, and the key of its definition
        name: String,
        /// What it is written in
        #[arg(long, value_enum, default_value_t, value_name = "LANGUAGE")]
        language: Language,
        /// Write into this folder instead of a new one
        #[arg(long)]
        init: bool,
    },
    /// Make a component of the flow in this folder, with the tool of its language
    Build,
    /// Check a component as the server does when it is published
    Check {
        /// The component. Default: what `wrkflw plugin build` made in this folder
        file: Option<PathBuf>,
        /// Settings of the flow, a JSON file. Default: config.json of the plugin's folder, if the component was built there
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Run the tests of the flow in this folder: its native tests, if it is a crate, and its scenarios with the component
    Test(test::TestArgs),
    /// Build, check, test and publish the flow in this folder whenever a file of it changes
    Watch(watch::WatchArgs),
    /// Print the JSON Schema of scenario files
    Schema,
}

pub(super) fn run(command: PluginCommand, output: Output, environment: &Environment) -> Result<()> {
    match command {
        PluginCommand::New {
            name,
            language,
            init,
        } => scaffold::new(&name, language, init, output),
        PluginCommand::Build => build::run(output, environment),
        PluginCommand::Check { file, config } => check::run(file, config, output, environment),
        PluginCommand::Test(args) => test::run(&args, output, environment),
        PluginCommand::Watch(args) => watch::run(&args, output, environment),
        PluginCommand::Schema => output.text("schema", wrkflw_scenario::SCHEMA),
    }
}
