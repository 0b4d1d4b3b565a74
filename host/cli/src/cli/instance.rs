//! `wrkflw instance`: starts, shows and changes instances.

mod export;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::{ChangeArgs, segment};
use super::connection::ConnectionArgs;
use super::definition::{PageArgs, draw};
use super::failure::{Exit, Failure};
use super::output::{Column, Output};
use super::{Environment, json_argument};

#[derive(Debug, Subcommand)]
pub(super) enum InstanceCommand {
    /// Start an instance of a definition's active version
    Start(StartArgs),
    /// List instances, newest first
    List(ListArgs),
    /// Show an instance with its active states and tasks
    Show(OneArgs),
    /// Show the history of an instance
    History(OneArgs),
    /// Make a scenario of an instance: a test for the next version of its flow
    Export(export::ExportArgs),
    /// Show what the caller may do now, and why not the rest
    Actions(OneArgs),
    /// Draw the path of an instance as SVG
    Diagram {
        #[command(flatten)]
        one: OneArgs,
        /// Write to this file
        #[arg(long, short = 'o', value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Cancel an instance
    Cancel {
        #[command(flatten)]
        one: OneArgs,
        /// Why
        #[arg(long)]
        reason: String,
        #[command(flatten)]
        change: ChangeArgs,
    },
    /// Suspend an instance: nothing happens to it until it is resumed
    Suspend {
        #[command(flatten)]
        one: OneArgs,
        /// Why
        #[arg(long)]
        reason: String,
        #[command(flatten)]
        change: ChangeArgs,
    },
    /// Migrate an instance to another version of its definition
    Migrate {
        #[command(flatten)]
        one: OneArgs,
        /// A published version
        #[arg(long = "to", value_name = "VERSION")]
        version: u32,
        /// A state, and the state of the new version that replaces it; may be repeated
        #[arg(long = "state", value_name = "OLD=NEW", value_parser = renamed)]
        states: Vec<(String, String)>,
        #[command(flatten)]
        change: ChangeArgs,
    },
    /// Resume a suspended instance
    Resume {
        #[command(flatten)]
        one: OneArgs,
        #[command(flatten)]
        change: ChangeArgs,
    },
    /// Start a new instance about the entity of an ended one
    Restart {
        #[command(flatten)]
        one: OneArgs,
        /// Data of the new instance, JSON or @FILE, instead of the old one's
        #[arg(long, value_name = "JSON")]
        data: Option<String>,
        #[command(flatten)]
        change: ChangeArgs,
    },
}

#[derive(Debug, Args)]
pub(super) struct StartArgs {
    /// Key of the definition
    definition: String,
    /// The entity that it is about, as TYPE/ID
    #[arg(long, value_name = "TYPE/ID", value_parser = entity)]
    entity: (String, String),
    /// Data of the instance, JSON or @FILE
    #[arg(long, value_name = "JSON", default_value = "{}")]
    data: String,
    #[command(flatten)]
    change: ChangeArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Key of a definition
    #[arg(long)]
    definition: Option<String>,
    /// RUNNING, SUSPENDED, COMPLETED or CANCELLED
    #[arg(long)]
    status: Option<String>,
    /// Name of an active state
    #[arg(long)]
    state: Option<String>,
    /// The entity that they are about, as TYPE/ID
    #[arg(long, value_name = "TYPE/ID", value_parser = entity)]
    entity: Option<(String, String)>,
    /// Who started it
    #[arg(long)]
    initiator: Option<String>,
    /// Only those with an unassignable state: too few people are eligible for its work
    #[arg(long)]
    unassignable: bool,
    /// Started at or after, as 2030-01-31T08:00:00Z
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Started before
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

#[derive(Debug, Args)]
pub(super) struct OneArgs {
    id: String,
    #[command(flatten)]
    connection: ConnectionArgs,
}

const SUMMARIES: &[Column] = &[
    ("ID", "/id"),
    ("DEFINITION", "/definitionKey"),
    ("VERSION", "/definitionVersion"),
    ("TYPE", "/entityType"),
    ("ENTITY", "/entityId"),
    ("STATUS", "/status"),
    ("OUTCOME", "/outcome"),
    ("STATES", "/states"),
    ("INITIATOR", "/initiator"),
    ("STARTED", "/startedAt"),
    ("TITLE", "/title"),
];
const INSTANCE: &[Column] = &[
    ("id", "/id"),
    ("definition", "/definitionKey"),
    ("version", "/definitionVersion"),
    ("title", "/title"),
    ("summary", "/summary"),
    ("entity type", "/entityType"),
    ("entity", "/entityId"),
    ("status", "/status"),
    ("outcome", "/outcome"),
    ("revision", "/revision"),
    ("initiator", "/initiator"),
    ("started", "/startedAt"),
    ("ended", "/endedAt"),
    ("suspended by", "/suspended/by"),
    ("suspended at", "/suspended/at"),
    ("reason", "/suspended/reason"),
    ("restarts", "/predecessorId"),
    ("states", "/states"),
    ("data", "/data"),
    ("dry run", "/dryRun"),
];
const STATE_INSTANCES: &[Column] = &[
    ("STATE", "/name"),
    ("ENTERED", "/enteredAt"),
    ("BY", "/enteredBy"),
    ("LEFT", "/left/at"),
    ("THROUGH", "/left/by"),
    ("ACTOR", "/left/actor"),
];
const ACTIONS: &[Column] = &[
    ("ACTION", "/action"),
    ("OUTCOME", "/outcome"),
    ("STATE", "/state"),
    ("TASK", "/taskId"),
    ("ALLOWED", "/allowed"),
    ("WHY NOT", "/refusal/message"),
];

pub(super) fn run(
    command: InstanceCommand,
    output: Output,
    environment: &Environment,
) -> Result<()> {
    match command {
        InstanceCommand::Start(args) => start(&args, output, environment),
        InstanceCommand::List(args) => list(&args, output, environment),
        InstanceCommand::Show(one) => show_changed(&one.get("", environment)?, output),
        InstanceCommand::History(one) => {
            output.list(&one.get("/history", environment)?, STATE_INSTANCES)
        }
        InstanceCommand::Export(args) => export::run(&args, output, environment),
        InstanceCommand::Actions(one) => actions(&one, output, environment),
        InstanceCommand::Diagram { one, out } => {
            let svg = one
                .connection
                .open(environment)?
                .get_text(&format!("{}/diagram.svg", path(&one.id)))?;
            draw(&svg, out.as_deref(), output)
        }
        InstanceCommand::Cancel {
            one,
            reason,
            change,
        } => {
            let body = json!({ "reason": reason });
            one.change("cancel", &body, &change, output, environment)
        }
        InstanceCommand::Suspend {
            one,
            reason,
            change,
        } => {
            let body = json!({ "reason": reason });
            one.change("suspend", &body, &change, output, environment)
        }
        InstanceCommand::Migrate {
            one,
            version,
            states,
            change,
        } => {
            let states: BTreeMap<_, _> = states.into_iter().collect();
            let body = json!({ "version": version, "states": states });
            let client = one.connection.open(environment)?;
            let path = format!("{}/migrate", path(&one.id));
            let answer = client.change(&path, &body, &change)?;
            // A dry run returns the instance before and after the change; the table shows it after.
            let shown = answer.get("after").unwrap_or(&answer);
            match output.format {
                super::output::Format::Json => output.record(&answer, &[]),
                super::output::Format::Table => show_changed(&shown["instance"], output),
            }
        }
        InstanceCommand::Resume { one, change } => {
            one.change("resume", &json!({}), &change, output, environment)
        }
        InstanceCommand::Restart { one, data, change } => {
            let body = match data {
                Some(data) => json!({ "data": json_argument(&data)? }),
                None => json!({}),
            };
            let client = one.connection.open(environment)?;
            let path = format!("{}/restart", path(&one.id));
            started(client.change(&path, &body, &change)?, output)
        }
    }
}

fn actions(one: &OneArgs, output: Output, environment: &Environment) -> Result<()> {
    let answer = one.get("/actions", environment)?;
    match output.format {
        super::output::Format::Json => output.record(&answer, &[]),
        super::output::Format::Table => output.list(&json!({ "data": answer["actions"] }), ACTIONS),
    }
}

impl OneArgs {
    fn get(&self, below: &str, environment: &Environment) -> Result<Value> {
        self.connection
            .open(environment)?
            .get(&format!("{}{below}", path(&self.id)), &[])
    }

    fn change(
        &self,
        verb: &str,
        body: &Value,
        change: &ChangeArgs,
        output: Output,
        environment: &Environment,
    ) -> Result<()> {
        let client = self.connection.open(environment)?;
        let answer = client.change(&format!("{}/{verb}", path(&self.id)), body, change)?;
        match output.format {
            super::output::Format::Json => output.record(&answer, &[]),
            super::output::Format::Table => output.record(&answer["instance"], INSTANCE),
        }
    }
}

fn path(id: &str) -> String {
    format!("/v1/instances/{}", segment(id))
}

fn start(args: &StartArgs, output: Output, environment: &Environment) -> Result<()> {
    let (kind, id) = &args.entity;
    let body = json!({
        "definitionKey": args.definition,
        "entityType": kind,
        "entityId": id,
        "data": json_argument(&args.data)?,
    });
    let client = args.connection.open(environment)?;
    started(client.change("/v1/instances", &body, &args.change)?, output)
}

/// Shows the answer to a start: whole as JSON, or else the instance.
fn started(mut answer: Value, output: Output) -> Result<()> {
    if matches!(output.format, super::output::Format::Json) {
        return output.record(&answer, &[]);
    }
    answer["instance"]["dryRun"] = answer["dryRun"].clone();
    show_changed(&answer["instance"], output)
}

/// Shows an instance and its open tasks.
fn show_changed(instance: &Value, output: Output) -> Result<()> {
    output.record(instance, INSTANCE)?;
    let open = instance["states"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|state| state["tasks"].as_array().into_iter().flatten());
    for task in open.filter(|task| task["status"] == "PENDING" || task["status"] == "CLAIMED") {
        let (id, label) = (
            task["id"].as_str().unwrap_or_default(),
            task["label"].as_str().unwrap_or_default(),
        );
        output.hint(&format!("open task: {id} ({label})"));
    }
    Ok(())
}

fn list(args: &ListArgs, output: Output, environment: &Environment) -> Result<()> {
    let (kind, id) = args.entity.clone().unzip();
    let filters = [
        ("definitionKey", args.definition.clone()),
        ("status", args.status.clone()),
        ("state", args.state.clone()),
        ("entityType", kind),
        ("entityId", id),
        ("initiator", args.initiator.clone()),
        ("unassignable", args.unassignable.then(|| true.to_string())),
        ("from", args.from.clone()),
        ("until", args.to.clone()),
    ];
    let query: Vec<_> = filters.into_iter().chain(args.page.query()).collect();
    output.list(
        &args
            .connection
            .open(environment)?
            .get("/v1/instances", &query)?,
        SUMMARIES,
    )
}

pub(super) fn renamed(text: &str) -> Result<(String, String), Failure> {
    match text.split_once('=') {
        Some((old, new)) if !old.is_empty() && !new.is_empty() => Ok((old.into(), new.into())),
        _ => Err(Failure::new(
            Exit::Usage,
            "write a state and the one that replaces it as OLD=NEW",
        )),
    }
}

pub(super) fn entity(text: &str) -> Result<(String, String), Failure> {
    match text.split_once('/') {
        Some((kind, id)) if !kind.is_empty() && !id.is_empty() => {
            Ok((kind.to_owned(), id.to_owned()))
        }
        _ => Err(Failure::new(
            Exit::Usage,
            "write the entity as TYPE/ID, such as document/4711",
        )),
    }
}
