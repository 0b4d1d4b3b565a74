//! `wrkflw config`: the settings of a host, explained.

use std::path::PathBuf;

use anyhow::Result;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Subcommand};
use serde_json::{Map, Value, json};

use super::output::Output;
use crate::config::layers::ResolvedSettings;
use crate::config::template::template;
use crate::config::{SECRETS, Settings};
use wrkflw_core::checkpoint::topic_beside;

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Print a settings file with every setting explained and commented out
    Template,
    /// Print the settings of a host and where each value comes from: flag, variable, file or default. Secrets are not printed, only whether they are set
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

pub(super) fn run(
    command: &ConfigCommand,
    resolved: &ResolvedSettings,
    output: Output,
) -> Result<()> {
    match command {
        ConfigCommand::Template => output.text("template", &template()),
        ConfigCommand::Show(_) => show(resolved, output),
    }
}

fn chosen(matches: &ArgMatches) -> &ArgMatches {
    matches
        .subcommand()
        .map_or(matches, |(_, inner)| chosen(inner))
}

/// Prints the settings, each with its source, one per line, by name.
fn show(resolved: &ResolvedSettings, output: Output) -> Result<()> {
    let matches = chosen(&resolved.matches);
    let mut settings = Map::new();
    for arg in Settings::augment_args(clap::Command::new("settings")).get_arguments() {
        let setting =
            json!({ "value": value(arg, matches), "source": source(arg, resolved, matches) });
        settings.insert(arg.get_id().to_string(), setting);
    }
    // The only default that depends on another setting.
    let checkpoints = &settings["kafka_checkpoint_topic"]["value"];
    if let (Value::Null, Some(events)) = (checkpoints, settings["kafka_topic"]["value"].as_str()) {
        let derived = json!({ "value": topic_beside(events), "source": "default, by kafka_topic" });
        settings.insert("kafka_checkpoint_topic".to_owned(), derived);
    }
    if output.format == super::output::Format::Json {
        return output.record(&Value::Object(settings), &[]);
    }
    let lines = settings.iter().map(|(name, setting)| {
        let source = setting["source"].as_str().unwrap_or_default();
        match &setting["value"] {
            Value::String(text) if SECRETS.contains(&name.as_str()) => {
                format!("# {name}: {text}  # {source}\n")
            }
            Value::Null => format!("# {name}: (not set)  # {source}\n"),
            value => format!("{name} = {value}  # {source}\n"),
        }
    });
    output.text("settings", &lines.collect::<String>())
}

/// The value of a setting. For a secret: whether it is set.
fn value(arg: &Arg, matches: &ArgMatches) -> Value {
    let name = arg.get_id().as_str();
    let values: Vec<_> = matches
        .get_raw(name)
        .into_iter()
        .flatten()
        .map(|value| value.to_string_lossy().into_owned())
        .collect();
    if SECRETS.contains(&name) {
        let is_set = values.iter().any(|value| !value.is_empty());
        json!(if is_set { "(set)" } else { "(not set)" })
    } else if arg.get_value_delimiter().is_some() {
        json!(values)
    } else {
        values.first().map_or(Value::Null, |value| json!(value))
    }
}

/// The source of a value: its flag, variable or file, or `default`.
fn source(arg: &Arg, resolved: &ResolvedSettings, matches: &ArgMatches) -> String {
    let name = arg.get_id().as_str();
    match matches.value_source(name) {
        Some(ValueSource::CommandLine) => format!("--{}", arg.get_long().unwrap_or(name)),
        Some(ValueSource::EnvVariable) => {
            let variable = arg.get_env().unwrap_or_default();
            variable.to_string_lossy().into_owned()
        }
        _ => match resolved.origins.get(name) {
            Some(origin) => origin.clone(),
            None => "default".to_owned(),
        },
    }
}
