//! `wrkflw definition`: publish, list, show, activate, retire, reinstate, stop, resume, diagram.

mod publish;

use std::fs;
use std::path::{Path, PathBuf};

pub(super) use publish::publish_and_activate;

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::Environment;
use super::client::{Client, segment};
use super::connection::ConnectionArgs;
use super::output::{Column, Format, Output};

#[derive(Debug, Subcommand)]
pub(super) enum DefinitionCommand {
    /// Publish a component as a new version
    Publish(publish::PublishArgs),
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
        /// Activate it also if groups, people, calendars, permissions or services that it uses do not exist
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
        DefinitionCommand::Publish(args) => publish::run(&args, output, environment),
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
                    let version = client.get(&path, &[])?;
                    output.record(&described(version, output), VERSION)
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
                return version.send("activate?dryRun=true", &body, EFFECTS, output, environment);
            }
            version.send("activate", &body, ACTIVATION, output, environment)
        }
        DefinitionCommand::Retire(args) => {
            args.send("retire", &json!({}), RETIREMENT, output, environment)
        }
        DefinitionCommand::Reinstate(args) => {
            args.send("reinstate", &json!({}), RETIREMENT, output, environment)
        }
        DefinitionCommand::Stop { version, reason } => {
            let body = json!({ "reason": reason });
            version.send("stop", &body, STOPPING, output, environment)
        }
        DefinitionCommand::Resume(args) => {
            args.send("resume", &json!({}), STOPPING, output, environment)
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
    fn send(
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

/// The version with the SDK in words.
fn described(mut version: Value, output: Output) -> Value {
    let sdk: Option<Value> = version["sdk"]
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok());
    let text = |name: &str| sdk.as_ref()?[name].as_str();
    if let (Format::Table, Some(name), Some(number)) = (output.format, text("sdk"), text("version"))
    {
        version["sdk"] = json!(format!("{name} {number}"));
    }
    version
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
    output.record(&described(shown.clone(), output), VERSION)?;
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
