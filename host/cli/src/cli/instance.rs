//! `wrkflw instance`: starts, shows and changes instances.

mod actions;
mod export;
mod list;
mod report;

use std::collections::BTreeMap;
use std::path::PathBuf;

pub(super) use report::{AuditFilterArgs, CUSTODY, ENTRIES};

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::answer;
use super::client::{AttemptArgs, ChangeArgs, Client, segment};
use super::connection::ConnectionArgs;
use super::definition::{PageArgs, draw};
use super::failure::{Exit, Failure};
use super::output::{Column, Output};
use super::{Environment, argument, pick};
use wrkflw_core::json::Json;

#[derive(Debug, Subcommand)]
pub(super) enum InstanceCommand {
    /// Start an instance of a definition's active version
    Start(StartArgs),
    /// List instances, newest first
    List(Box<list::ListArgs>),
    /// Show an instance with its active states and tasks
    Show(InstanceRefArgs),
    /// Show the history of an instance
    History(InstanceRefArgs),
    /// Make a scenario of an instance: a test for the next version of its flow
    Export(export::ExportArgs),
    /// Show how the caller may move it on now, or why not, and name what else they may do
    Actions {
        #[command(flatten)]
        target: InstanceRefArgs,
        /// Each action in full, also those that the caller may not do
        #[arg(long)]
        all: bool,
    },
    /// Show who may work on the open tasks of an instance, and why not the others
    Eligibility(report::EligibilityArgs),
    /// Verify the record of an instance: the chain of its entries, what they give, and its seals. Fails if something was changed
    Verify(InstanceRefArgs),
    /// List what each step changed in the data of an instance, with the values before and after
    Changes(report::ChangesArgs),
    /// List the audit entries of an instance
    Audit(report::AuditArgs),
    /// List the decisions and delegations in an instance with their seals: its chain of custody
    Custody(report::CustodyArgs),
    /// Send a signal to an instance
    Signal {
        #[command(flatten)]
        target: InstanceRefArgs,
        /// The trigger that it fires
        trigger: String,
        /// Your id of the signal: a repeated signal with the same id has no further effect
        #[arg(long = "signal-id", value_name = "ID")]
        id: Option<String>,
        /// Its input, JSON or @FILE
        #[arg(long, value_name = "JSON", default_value = "{}")]
        input: String,
        #[command(flatten)]
        change: ChangeArgs,
    },
    /// Comment on an instance, also after its end
    Comment {
        #[command(flatten)]
        target: InstanceRefArgs,
        /// What you have to say
        comment: String,
        /// A person to mention, who is notified; may be repeated
        #[arg(long = "mention", value_name = "PERSON")]
        mentions: Vec<String>,
        #[command(flatten)]
        change: ChangeArgs,
    },
    /// List the comments on an instance, newest first
    Comments {
        #[command(flatten)]
        target: InstanceRefArgs,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Draw the path of an instance as SVG
    Diagram {
        #[command(flatten)]
        target: InstanceRefArgs,
        /// Write to this file
        #[arg(long, short = 'o', value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Cancel an instance
    Cancel {
        #[command(flatten)]
        target: InstanceRefArgs,
        /// Why
        #[arg(long)]
        reason: String,
        #[command(flatten)]
        change: ChangeArgs,
    },
    /// Suspend an instance: nothing happens to it until it is resumed
    Suspend {
        #[command(flatten)]
        target: InstanceRefArgs,
        /// Why
        #[arg(long)]
        reason: String,
        #[command(flatten)]
        change: ChangeArgs,
    },
    /// Migrate an instance to another version of its definition
    Migrate {
        #[command(flatten)]
        target: InstanceRefArgs,
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
        target: InstanceRefArgs,
        #[command(flatten)]
        change: ChangeArgs,
    },
    /// Start a new instance about the entity of an ended one
    Restart {
        #[command(flatten)]
        target: InstanceRefArgs,
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
    attempt: AttemptArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

#[derive(Debug, Args)]
pub(super) struct InstanceRefArgs {
    /// Its id, the first digits of its id, or the entity that it is about, as TYPE/ID
    id: String,
    #[command(flatten)]
    connection: ConnectionArgs,
}

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
];
const STATE_INSTANCES: &[Column] = &[
    ("STATE", "/name"),
    ("ENTERED", "/enteredAt"),
    ("TRIGGER", "/enteredTrigger"),
    ("LEFT", "/left/at"),
    ("TRIGGER", "/left/trigger"),
    ("ACTOR", "/left/actor"),
];
const COMMENTS: &[Column] = &[
    ("WHEN", "/createdAt"),
    ("WHO", "/actor"),
    ("MENTIONS", "/mentions"),
    ("COMMENT", "/comment"),
];
pub(super) fn run(
    command: InstanceCommand,
    output: Output,
    environment: &Environment,
) -> Result<()> {
    match command {
        InstanceCommand::Start(args) => start(&args, output, environment),
        InstanceCommand::List(args) => list::run(&args, output, environment),
        InstanceCommand::Show(target) => {
            let (client, path) = target.open(environment)?;
            let shown = client.get(&path, &[])?;
            show_changed(&client, &shown, None, output)
        }
        InstanceCommand::History(target) => {
            output.list(&target.get("/history", environment)?, STATE_INSTANCES)
        }
        InstanceCommand::Export(args) => export::run(&args, output, environment),
        InstanceCommand::Actions { target, all } => actions::run(&target, all, output, environment),
        InstanceCommand::Eligibility(args) => args.run(output, environment),
        InstanceCommand::Verify(target) => report::verify(&target, output, environment),
        InstanceCommand::Changes(args) => args.run(output, environment),
        InstanceCommand::Audit(args) => args.run(output, environment),
        InstanceCommand::Custody(args) => args.run(output, environment),
        InstanceCommand::Diagram { target, out } => {
            let (client, path) = target.open(environment)?;
            let svg = client.get_text(&format!("{path}/diagram.svg"))?;
            draw(&svg, out.as_deref(), output)
        }
        InstanceCommand::Comments { target, page } => {
            let (client, path) = target.open(environment)?;
            let query: Vec<_> = page.query().into_iter().collect();
            output.list(&client.get(&format!("{path}/comments"), &query)?, COMMENTS)
        }
        changing => change(changing, output, environment),
    }
}

/// The commands that change an instance.
fn change(command: InstanceCommand, output: Output, environment: &Environment) -> Result<()> {
    let (target, verb, body, change) = match command {
        InstanceCommand::Signal {
            target,
            trigger,
            id,
            input,
            change,
        } => {
            let input = argument::json("--input", &input)?;
            let body = Json::object([("id", Json::of(&id)), ("input", input)]);
            (
                target,
                format!("signals/{}", segment(&trigger)),
                body,
                change,
            )
        }
        InstanceCommand::Comment {
            target,
            comment,
            mentions,
            change,
        } => {
            let body = Json::of(&json!({ "comment": comment, "mentions": mentions }));
            (target, "comment".to_owned(), body, change)
        }
        InstanceCommand::Cancel {
            target,
            reason,
            change,
        } => (target, "cancel".to_owned(), reason_body(&reason), change),
        InstanceCommand::Suspend {
            target,
            reason,
            change,
        } => (target, "suspend".to_owned(), reason_body(&reason), change),
        InstanceCommand::Migrate {
            target,
            version,
            states,
            change,
        } => {
            let states: BTreeMap<_, _> = states.into_iter().collect();
            let body = Json::of(&json!({ "version": version, "states": states }));
            (target, "migrate".to_owned(), body, change)
        }
        InstanceCommand::Resume { target, change } => {
            (target, "resume".to_owned(), Json::empty(), change)
        }
        InstanceCommand::Restart {
            target,
            data,
            change,
        } => {
            let body = match data {
                Some(data) => Json::object([("data", argument::json("--data", &data)?)]),
                None => Json::empty(),
            };
            (target, "restart".to_owned(), body, change)
        }
        reading => unreachable!("{reading:?} changes nothing"),
    };
    let (client, path) = target.open_to_change(&change, environment)?;
    // A restart makes another instance, so nothing is compared. A caller who may not read the instance gets no comparison.
    let before = if change.is_dry_run() && verb != "restart" {
        client.get_if_permitted(&path)?
    } else {
        None
    };
    let answer = client.change(&format!("{path}/{verb}"), &body, &change)?;
    show_changed(&client, &answer, before.as_ref(), output)
}

fn reason_body(reason: &str) -> Json {
    Json::object([("reason", Json::of(&reason))])
}

impl InstanceRefArgs {
    /// The connection, and the path of the instance.
    pub(super) fn open(&self, environment: &Environment) -> Result<(Client, String)> {
        let client = self.connection.open(environment)?;
        let path = pick::instance(&client, &self.id)?;
        Ok((client, path))
    }

    /// [`open`](Self::open) for a change. A change with an idempotency key must name its instance by id: when the change is repeated,
    /// another instance may be about the entity.
    fn open_to_change(
        &self,
        change: &ChangeArgs,
        environment: &Environment,
    ) -> Result<(Client, String)> {
        if change.is_keyed() && self.id.contains('/') {
            let message = format!(
                "{} may be another instance when the command is repeated: with --idempotency-key, name the instance by its id",
                self.id
            );
            let next = format!("`wrkflw instance show {}` shows its id", self.id);
            return Err(Failure::new(Exit::Usage, message).next(next).into());
        }
        self.open(environment)
    }

    fn get(&self, below: &str, environment: &Environment) -> Result<Value> {
        let (client, path) = self.open(environment)?;
        client.get(&format!("{path}{below}"), &[])
    }
}

fn start(args: &StartArgs, output: Output, environment: &Environment) -> Result<()> {
    let (kind, id) = &args.entity;
    let body = Json::object([
        ("definitionKey", Json::of(&args.definition)),
        ("entityType", Json::of(kind)),
        ("entityId", Json::of(id)),
        ("data", argument::json("--data", &args.data)?),
    ]);
    let client = args.connection.open(environment)?;
    let started = client.attempt("/v1/instances", &body, &args.attempt)?;
    show_changed(&client, &started, None, output)
}

/// Shows an instance and its open tasks, or what a dry run would change.
fn show_changed(
    client: &Client,
    answer: &Value,
    before: Option<&Value>,
    output: Output,
) -> Result<()> {
    answer::show(answer, before, answer::instance, INSTANCE, output)?;
    answer::hint_at_open_tasks(client, answer, output);
    Ok(())
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
