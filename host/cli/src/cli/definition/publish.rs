//! `wrkflw definition publish`: publishes a component, and activates it on request.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;
use serde_json::{Value, json};

use super::super::Environment;
use super::super::client::Client;
use super::super::connection::ConnectionArgs;
use super::super::failure::{Exit, Failure};
use super::super::flow_config::FlowConfig;
use super::super::output::{Column, Output};
use super::super::plugin::project::Project;
use super::versions_path;

#[derive(Debug, Args)]
pub(in crate::cli) struct PublishArgs {
    /// The component. Default: the one that `wrkflw plugin build` made in this folder, unless a source is newer
    file: Option<PathBuf>,
    /// Key of the definition. Default: name of the package in this folder, if the component was built there, else of the file
    #[arg(long)]
    key: Option<String>,
    /// Settings of the flow, a JSON file. Default: config.json of the plugin's folder, if the component was built there
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Why it is published, in at most 500 characters
    #[arg(long)]
    note: Option<String>,
    /// Use it for new instances at once
    #[arg(long)]
    activate: bool,
    /// Activate it also if groups, people, calendars, permissions or services that it uses do not exist
    #[arg(long, requires = "activate")]
    force: bool,
    #[command(flatten)]
    connection: ConnectionArgs,
}

const PUBLISHED: &[Column] = &[
    ("key", "/key"),
    ("version", "/version"),
    ("new", "/created"),
    ("digest", "/digest"),
    ("own work", "/ownWork"),
    ("separate", "/separate"),
    ("reads", "/reads"),
    ("active", "/active"),
];

pub(super) fn run(args: &PublishArgs, output: Output, environment: &Environment) -> Result<()> {
    let project = match &args.file {
        Some(_) if args.key.is_some() && args.config.is_some() => None,
        file => Project::of_file(file.as_deref())?,
    };
    let (file, config, key) = resolve(args, project.as_ref())?;
    let component = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let config = FlowConfig::read(config)?;
    config.parse()?;
    let client = args.connection.open(environment)?;
    output.hint(&format!(
        "publishing {} ({} KiB) as {key} with {}",
        file.display(),
        component.len() / 1024,
        config.name
    ));
    let note = args.note.as_deref();
    let published = client.publish(&versions_path(&key), &component, &config.text, note);
    let published = published.map_err(|error| config.named_in(error))?;
    for warning in published["warnings"].as_array().into_iter().flatten() {
        let message = warning["message"].as_str().unwrap_or_default();
        match warning["pointer"].as_str() {
            Some(pointer) => Output::warn(&format!("{}: {pointer}: {message}", config.name)),
            None => Output::warn(message),
        }
    }
    let version = published["version"].clone();
    let published = if args.activate {
        match activated(&client, &key, &published, args.force) {
            Ok(active) => active,
            Err(error) => {
                output.record(&published, PUBLISHED)?;
                return Err(not_activated(error, &key, &version));
            }
        }
    } else {
        published
    };
    output.record(&published, PUBLISHED)?;
    if args.activate {
        output.hint(&format!(
            "next: wrkflw instance start {key} --entity TYPE/ID --data '{{...}}'"
        ));
    } else {
        output.hint(&format!("next: wrkflw definition activate {key} {version}"));
    }
    Ok(())
}

/// Publishes the component and uses it for new instances at once, even if groups, people or calendars that it names do not exist.
pub(in crate::cli) fn publish_and_activate(
    client: &Client,
    key: &str,
    component: &[u8],
    config: &str,
) -> Result<Value> {
    let published = client.publish(&versions_path(key), component, config, None)?;
    activated(client, key, &published, true)
}

/// The failure to activate a version that is published all the same.
fn not_activated(error: anyhow::Error, key: &str, version: &Value) -> anyhow::Error {
    let done = format!("version {version} of {key} is published, but it was not activated");
    match error.downcast::<Failure>() {
        Ok(failure) => {
            let then = format!("`wrkflw definition activate {key} {version}`");
            failure.after(&done, &then).into()
        }
        Err(other) => other.context(done),
    }
}

/// Activates a version that was published, and adds the activation to its output.
fn activated(client: &Client, key: &str, published: &Value, force: bool) -> Result<Value> {
    let mut published = published.clone();
    let path = format!("{}/{}/activate", versions_path(key), published["version"]);
    let activation = client.post(&path, &json!({ "force": force }))?;
    published["active"] = activation["active"].clone();
    Ok(published)
}

/// The files of the component and its config, and the key to publish them under.
fn resolve(
    args: &PublishArgs,
    project: Option<&Project>,
) -> Result<(PathBuf, Option<PathBuf>, String)> {
    let built = match &args.file {
        Some(file) => file.clone(),
        None => current(Project::require(project)?)?,
    };
    let config = args.config.clone().or_else(|| project?.config());
    let stem = || {
        built
            .file_stem()
            .map(|stem| stem.to_string_lossy().replace('_', "-"))
    };
    let key = args
        .key
        .clone()
        .or_else(|| Some(project?.name.clone()))
        .or_else(stem);
    Ok((
        built,
        config,
        key.context("name the definition with --key")?,
    ))
}

/// The component of a project. Fails if it is older than a source.
fn current(project: &Project) -> Result<PathBuf> {
    let built = project.built()?;
    let Some(outdated) = project.outdated(&built)? else {
        return Ok(built);
    };
    let next = "wrkflw plugin build; or name the file, which is then published as it is";
    Err(Failure::new(Exit::Conflict, outdated).next(next).into())
}
