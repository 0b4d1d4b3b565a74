//! `wrkflw config`: the settings of a host, explained.

use std::path::PathBuf;

use anyhow::Result;
use clap::{ArgMatches, Args, Subcommand};
use serde_json::{Map, Value, json};

use super::output::Output;
use crate::config::template::template;
use crate::config::{SECRETS, Settings};

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Print a settings file with every setting explained and commented out
    Template,
    /// Print what a host would run with, by flags, variables and file. Of secrets only whether they are set
    Show(Box<ShowArgs>),
}

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// File with settings. Default: wrkflw.toml, if there is one
    #[arg(
        long = "config",
        id = "settings_file",
        env = "WRKFLW_CONFIG",
        value_name = "FILE"
    )]
    _file: Option<PathBuf>,
    #[command(flatten)]
    _settings: Settings,
}

/// `matches` are those of the whole command line.
pub(super) fn run(command: &ConfigCommand, matches: &ArgMatches, output: Output) -> Result<()> {
    match command {
        ConfigCommand::Template => output.text("template", &template()),
        ConfigCommand::Show(_) => show(chosen(matches), output),
    }
}

fn chosen(matches: &ArgMatches) -> &ArgMatches {
    matches
        .subcommand()
        .map_or(matches, |(_, inner)| chosen(inner))
}

/// The settings as they were read, a line each, in the order of the template.
fn show(matches: &ArgMatches, output: Output) -> Result<()> {
    let mut settings = Map::new();
    for arg in Settings::augment_args(clap::Command::new("settings")).get_arguments() {
        let name = arg.get_id().as_str();
        let values: Vec<_> = matches
            .get_raw(name)
            .into_iter()
            .flatten()
            .map(|value| value.to_string_lossy().into_owned())
            .collect();
        let value = if SECRETS.contains(&name) {
            let is_set = values.iter().any(|value| !value.is_empty());
            json!(if is_set { "(set)" } else { "(not set)" })
        } else if arg.get_value_delimiter().is_some() {
            json!(values)
        } else {
            values.first().map_or(Value::Null, |value| json!(value))
        };
        settings.insert(name.to_owned(), value);
    }
    if output.format == super::output::Format::Json {
        return output.record(&Value::Object(settings), &[]);
    }
    let lines = settings.iter().map(|(name, value)| match value {
        Value::String(text) if SECRETS.contains(&name.as_str()) => format!("# {name}: {text}\n"),
        Value::Null => format!("# {name}: (not set)\n"),
        value => format!("{name} = {value}\n"),
    });
    output.text("settings", &lines.collect::<String>())
}
