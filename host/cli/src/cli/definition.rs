//! `wrkflw definition`: publish, list, show, activate, retire, reinstate, stop, resume, diagram.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::Environment;
use super::client::{Client, segment};
use super::connection::ConnectionArgs;
use super::failure::{Exit, Failure};
use super::flow_config::FlowConfig;
use super::output::{Column, Format, Output};
use super::plugin::project::Project;

#[derive(Debug, Subcommand)]
pub(super) enum DefinitionCommand {
    /// Publish a component as a new version
    Publish(PublishArgs),
    /// List definitions and their versions
    List(ListArgs),
    /// Show a version; without one, the active version, the newest versions and how many instances run
    Show {
        /// Key of the definition
        key: String,
        /// A published version
        version: Option<u32>,
        #[command(flatten)]
        connection: ConnectionArgs,
    },
    /// Use this version for new instances
    Activate {
        #[command(flatten)]
        version: VersionArgs,
        /// Although groups, people or calendars that it uses do not exist
        #[arg(long)]
        force: bool,
        /// Show what it affects, and change nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Do not use this version for new instances
    Retire(VersionArgs),
    /// Allow a retired version to be activated again
    Reinstate(VersionArgs),
    /// Stop every instance of this version until it is resumed
    Stop {
        #[command(flatten)]
        version: VersionArgs,
        /// Why; the audit keeps it
        #[arg(long)]
        reason: String,
    },
    /// Let a stopped version run again
    Resume(VersionArgs),
    /// Draw a version as SVG: by default the active one, else the newest
    Diagram {
        /// Key of the definition
        key: String,
        /// A published version
        version: Option<u32>,
        /// Write to this file
        #[arg(long, short = 'o', value_name = "FILE")]
        out: Option<PathBuf>,
        #[command(flatten)]
        connection: ConnectionArgs,
    },
}

#[derive(Debug, Args)]
pub(super) struct PublishArgs {
    /// The component. Default: the one that `wrkflw plugin build` made in this folder, unless a source is newer
    file: Option<PathBuf>,
    /// Key of the definition. Default: name of the package in this folder, else of the file
    #[arg(long)]
    key: Option<String>,
    /// Settings of the flow, a JSON file. Default: config.json of the plugin's folder
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Why it is published, in at most 500 characters
    #[arg(long)]
    note: Option<String>,
    /// Use it for new instances at once
    #[arg(long)]
    activate: bool,
    /// Activate it although groups, people or calendars that it uses do not exist
    #[arg(long, requires = "activate")]
    force: bool,
    #[command(flatten)]
    connection: ConnectionArgs,
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Only the versions of this definition
    key: Option<String>,
    /// Words in the key, title or description
    #[arg(long, value_name = "WORDS", conflicts_with = "key")]
    q: Option<String>,
    /// Which versions of each definition
    #[arg(long, value_enum, conflicts_with = "key")]
    versions: Option<WhichVersions>,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

#[derive(Debug, Args)]
pub(super) struct VersionArgs {
    /// Key of the definition
    key: String,
    /// A published version
    version: u32,
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Which versions of each definition.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum WhichVersions {
    /// Each of them
    All,
    /// The active one or, without one, the newest
    Current,
    /// The one that new instances take
    Active,
}

impl WhichVersions {
    fn name(self) -> &'static str {
        match self {
            WhichVersions::All => "all",
            WhichVersions::Current => "current",
            WhichVersions::Active => "active",
        }
    }
}

/// Which page of a list.
#[derive(Debug, Args)]
pub(super) struct PageArgs {
    /// How many, at most 100
    #[arg(long)]
    limit: Option<u32>,
    /// The cursor at the end of the previous page
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
}

impl PageArgs {
    pub(super) fn query(&self) -> [(&'static str, Option<String>); 2] {
        [
            ("limit", self.limit.map(|limit| limit.to_string())),
            ("after", self.after.clone()),
        ]
    }
}

const VERSIONS: &[Column] = &[
    ("KEY", "/key"),
    ("VERSION", "/version"),
    ("ACTIVE", "/active"),
    ("PUBLISHED", "/publishedAt"),
    ("BY", "/publishedBy"),
    ("NOTE", "/note"),
    ("RETIRED", "/retiredAt"),
    ("STOPPED", "/stoppedAt"),
    ("DIGEST", "/digest"),
];
const VERSION: &[Column] = &[
    ("key", "/key"),
    ("version", "/version"),
    ("active", "/active"),
    ("digest", "/digest"),
    ("sdk", "/sdk"),
    ("wit", "/wit"),
    ("published", "/publishedAt"),
    ("by", "/publishedBy"),
    ("note", "/note"),
    ("retired", "/retiredAt"),
    ("stopped", "/stoppedAt"),
    ("states", "/graph/states"),
    ("observers", "/graph/observers"),
    ("config", "/config"),
];
const COUNTED: &[Column] = &[
    ("VERSION", "/version"),
    ("ACTIVE", "/active"),
    ("RUNNING", "/running"),
    ("PUBLISHED", "/publishedAt"),
    ("BY", "/publishedBy"),
    ("NOTE", "/note"),
    ("RETIRED", "/retiredAt"),
    ("STOPPED", "/stoppedAt"),
];
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
const RETIREMENT: &[Column] = &[
    ("key", "/key"),
    ("version", "/version"),
    ("retired", "/retired"),
    ("changed", "/changed"),
];
const STOPPING: &[Column] = &[
    ("key", "/key"),
    ("version", "/version"),
    ("stopped", "/stopped"),
    ("changed", "/changed"),
];
const EFFECTS: &[Column] = &[
    ("key", "/key"),
    ("version", "/version"),
    ("changed", "/changed"),
    ("active now", "/effects/before"),
    ("running", "/effects/running/versions"),
    ("unknown", "/effects/unknown"),
];
const ACTIVATION: &[Column] = &[
    ("key", "/key"),
    ("version", "/version"),
    ("active", "/active"),
    ("changed", "/changed"),
];

pub(super) fn run(
    command: DefinitionCommand,
    output: Output,
    environment: &Environment,
) -> Result<()> {
    match command {
        DefinitionCommand::Publish(args) => publish(&args, output, environment),
        DefinitionCommand::List(args) => list(args, output, environment),
        DefinitionCommand::Show {
            key,
            version,
            connection,
        } => {
            let client = connection.open(environment)?;
            match version {
                Some(version) => {
                    let path = format!("{}/{version}", versions_path(&key));
                    output.record(&client.get(&path, &[])?, VERSION)
                }
                None => overview(&client, &key, output),
            }
        }
        DefinitionCommand::Activate {
            version,
            force,
            dry_run,
        } => {
            let body = json!({ "force": force });
            if dry_run {
                return version.tell("activate?dryRun=true", &body, EFFECTS, output, environment);
            }
            version.tell("activate", &body, ACTIVATION, output, environment)
        }
        DefinitionCommand::Retire(args) => {
            args.tell("retire", &json!({}), RETIREMENT, output, environment)
        }
        DefinitionCommand::Reinstate(args) => {
            args.tell("reinstate", &json!({}), RETIREMENT, output, environment)
        }
        DefinitionCommand::Stop { version, reason } => {
            let body = json!({ "reason": reason });
            version.tell("stop", &body, STOPPING, output, environment)
        }
        DefinitionCommand::Resume(args) => {
            args.tell("resume", &json!({}), STOPPING, output, environment)
        }
        DefinitionCommand::Diagram {
            key,
            version,
            out,
            connection,
        } => {
            let client = connection.open(environment)?;
            let version = match version {
                Some(version) => version.into(),
                None => usual_version(&client, &key)?,
            };
            let path = format!("{}/{version}/diagram.svg", versions_path(&key));
            let svg = client.get_text(&path)?;
            draw(&svg, out.as_deref(), output)
        }
    }
}

/// Writes a diagram to the file `out`, or to standard output.
pub(super) fn draw(svg: &str, out: Option<&Path>, output: Output) -> Result<()> {
    let Some(path) = out else {
        return output.text("svg", svg);
    };
    fs::write(path, svg).with_context(|| format!("cannot write {}", path.display()))?;
    output.record(&json!({ "path": path }), &[("path", "/path")])
}

impl VersionArgs {
    fn tell(
        &self,
        verb: &str,
        body: &Value,
        columns: &[Column],
        output: Output,
        environment: &Environment,
    ) -> Result<()> {
        let path = format!("{}/{}/{verb}", versions_path(&self.key), self.version);
        output.record(
            &self.connection.open(environment)?.post(&path, body)?,
            columns,
        )
    }
}

fn publish(args: &PublishArgs, output: Output, environment: &Environment) -> Result<()> {
    let project = Project::find_unless(args.file.is_some() && args.key.is_some())?;
    let (file, config, key) = resolve(args, project.as_ref())?;
    let component = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let config = FlowConfig::read(config)?;
    config.parse()?;
    let client = args.connection.open(environment)?;
    output.hint(&format!(
        "publishing {} ({} KiB) as {key}",
        file.display(),
        component.len() / 1024
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
    let published = if args.activate {
        activated(&client, &key, published, args.force)?
    } else {
        published
    };
    let version = published["version"].clone();
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

/// Publishes the component and uses it for new instances at once, whatever it names exists or not.
pub(super) fn publish_and_activate(
    client: &Client,
    key: &str,
    component: &[u8],
    config: &str,
) -> Result<Value> {
    let published = client.publish(&versions_path(key), component, config, None)?;
    activated(client, key, published, true)
}

/// Activates a version that was published, and adds that to what is shown of it.
fn activated(client: &Client, key: &str, mut published: Value, force: bool) -> Result<Value> {
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
    // A named file need not belong to the current folder.
    let project =
        project.filter(|project| args.file.is_none() || built.starts_with(&project.target));
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

/// The active version, else the newest.
fn usual_version(client: &Client, key: &str) -> Result<Value> {
    let definition = client.get(&path(key), &[])?;
    let active = definition.pointer("/active/version");
    // The newest comes first.
    let version = active.or_else(|| definition.pointer("/versions/0/version"));
    version.cloned().context("the definition has no versions")
}

/// Lists versions: those of one definition or of all.
fn list(args: ListArgs, output: Output, environment: &Environment) -> Result<()> {
    let path = match &args.key {
        Some(key) => versions_path(key),
        None => "/v1/definitions".to_owned(),
    };
    let versions = args.versions.map(|one| one.name().to_owned());
    let query: Vec<_> = [("q", args.q), ("versions", versions)]
        .into_iter()
        .chain(args.page.query())
        .collect();
    let found = args.connection.open(environment)?.get(&path, &query)?;
    output.list(&found, VERSIONS)
}

/// Shows a definition: its active version, and how many instances run under each of the newest ones.
fn overview(client: &Client, key: &str, output: Output) -> Result<()> {
    let definition = client.get(&path(key), &[])?;
    if output.format == Format::Json {
        return output.record(&definition, &[]);
    }
    let shown = match &definition["active"] {
        Value::Null => &definition,
        active => active,
    };
    output.record(shown, VERSION)?;
    output.list(&json!({ "data": definition["versions"] }), COUNTED)?;
    if definition["more"] == true {
        output.hint("more instances run than are counted");
    }
    Ok(())
}

fn path(key: &str) -> String {
    format!("/v1/definitions/{}", segment(key))
}

fn versions_path(key: &str) -> String {
    format!("{}/versions", path(key))
}
