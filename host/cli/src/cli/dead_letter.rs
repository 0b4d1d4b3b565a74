//! `wrkflw dead-letter`: events that Kafka refused permanently, and the events that wait behind them.

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::Client;
use super::connection::ConnectionArgs;
use super::definition::PageArgs;
use super::failure::{Exit, Failure};
use super::output::{Column, Format, Output, counted};
use super::{Environment, pick};

/// Limit of the calls for one instance. Each moves up to a thousand events.
const CALLS_MAX: usize = 10_000;

const FIRST: &[Column] = &[
    ("INSTANCE", "/instanceId"),
    ("ENTRY", "/entry"),
    ("SEQUENCE", "/sequence"),
    ("TYPE", "/type"),
    ("BEHIND", "/followers"),
    ("PARKED", "/parkedAt"),
    ("ERROR", "/error"),
];
const EVENTS: &[Column] = &[
    ("ENTRY", "/entry"),
    ("SEQUENCE", "/sequence"),
    ("TYPE", "/type"),
    ("EVENT", "/eventId"),
    ("PARKED", "/parkedAt"),
    ("ERROR", "/error"),
];
const RELEASED: &[Column] = &[
    ("instance", "/instanceId"),
    ("discarded entry", "/discarded/entry"),
    ("discarded sequence", "/discarded/sequence"),
    ("discarded event", "/discarded/eventId"),
    ("released", "/released"),
];

const ALL: &[Column] = &[("instances", "/instances"), ("released", "/released")];
const REFUSED: &[Column] = &[("INSTANCE", "/instanceId"), ("REFUSED", "/reason")];

#[derive(Debug, Subcommand)]
pub(super) enum DeadLetterCommand {
    /// List the instances whose events wait behind a refused one, or the events of one instance
    List(ListArgs),
    /// Send events again, in order
    Retry(RetryArgs),
    /// Discard the first event of an instance, and send those behind it
    Discard(DiscardArgs),
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Only the events of this instance: its id or the beginning of it, or TYPE/ID of its entity
    #[arg(long, value_name = "INSTANCE")]
    instance: Option<String>,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

#[derive(Debug, Args)]
pub(super) struct RetryArgs {
    /// The instance: its id or the beginning of it, or TYPE/ID of its entity
    #[arg(required_unless_present = "all")]
    instance: Option<String>,
    /// The events of every instance
    #[arg(long, conflicts_with = "instance")]
    all: bool,
    /// Why; the audit keeps it
    #[arg(long)]
    reason: String,
    #[command(flatten)]
    connection: ConnectionArgs,
}

#[derive(Debug, Args)]
pub(super) struct DiscardArgs {
    /// The instance: its id or the beginning of it, or TYPE/ID of its entity
    instance: String,
    /// The audit entry of the event, as `list` shows it; the event must be the first of the instance
    #[arg(long)]
    entry: u64,
    /// Why; the audit keeps it
    #[arg(long)]
    reason: String,
    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(super) fn run(
    command: DeadLetterCommand,
    output: Output,
    environment: &Environment,
) -> Result<()> {
    match command {
        DeadLetterCommand::List(args) => {
            let client = args.connection.open(environment)?;
            let query = args.page.query();
            match args.instance {
                None => output.list(&client.get(PATH, &query)?, FIRST),
                Some(text) => {
                    let id = pick::instance_id(&client, &text)?;
                    output.list(&client.get(&path(&id, ""), &query)?, EVENTS)
                }
            }
        }
        DeadLetterCommand::Retry(args) => {
            let client = args.connection.open(environment)?;
            let body = json!({ "reason": args.reason });
            match args.instance {
                Some(text) => {
                    let id = pick::instance_id(&client, &text)?;
                    output.record(&drain(&client, &id, &body, 0)?, RELEASED)
                }
                None => retry_all(&client, &body, output),
            }
        }
        DeadLetterCommand::Discard(args) => {
            let client = args.connection.open(environment)?;
            let id = pick::instance_id(&client, &args.instance)?;
            let body = json!({ "entry": args.entry, "reason": args.reason });
            let mut answer = client.post(&path(&id, "/discard"), &body)?;
            if answer["more"] == true {
                let released = answer["released"].as_u64().unwrap_or(0);
                let body = json!({ "reason": args.reason });
                let rest = drain(&client, &id, &body, released)?;
                answer["released"] = rest["released"].clone();
            }
            answer["instanceId"] = json!(id);
            output.record(&answer, RELEASED)
        }
    }
}

const PATH: &str = "/v1/dead-letters";

fn path(instance: &str, verb: &str) -> String {
    format!("{PATH}/{instance}{verb}")
}

/// Sends all events of an instance again, call by call. `released` counts those of earlier calls. Fails if an event is refused
/// again.
fn drain(client: &Client, instance: &str, body: &Value, mut released: u64) -> Result<Value> {
    let mut last = 0;
    for _ in 0..CALLS_MAX {
        let answer = client.post(&path(instance, "/retry"), body)?;
        let reached = answer["last"].as_u64().unwrap_or(0);
        if reached <= last {
            bail!(
                "an event of {instance} was refused again: {}",
                first_refusal(client, instance)?
            );
        }
        last = reached;
        released += answer["released"].as_u64().unwrap_or(0);
        if answer["more"] != true {
            return Ok(json!({ "instanceId": instance, "released": released }));
        }
    }
    let were = if released == 1 { "was" } else { "were" };
    let released = counted(released, "event");
    bail!("{released} {were} released and more wait: run the command again")
}

/// Why the first event of an instance was refused.
fn first_refusal(client: &Client, instance: &str) -> Result<String> {
    let page = client.get(&path(instance, ""), &[("limit", Some("1".into()))])?;
    let first = &page["data"][0];
    let why = first["error"]
        .as_str()
        .unwrap_or("the broker did not say why");
    Ok(format!("entry {}: {why}", first["entry"]))
}

/// The results for all instances.
#[derive(Default)]
struct Report {
    instances: u64,
    released: u64,
    /// Each with the instance and the reason.
    refused: Vec<Value>,
}

impl Report {
    /// Processes each instance once. If an event is refused again, its instance is not tried again, and the others go on.
    fn retry_each(&mut self, client: &Client, body: &Value) -> Result<()> {
        let mut after = None;
        loop {
            let page = client.get(PATH, &[("limit", Some("100".into())), ("after", after)])?;
            for item in page["data"].as_array().into_iter().flatten() {
                if let Some(instance) = item["instanceId"].as_str() {
                    self.add(instance, drain(client, instance, body, 0))?;
                }
            }
            after = page["page"]["next"].as_str().map(str::to_owned);
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// Records a result. Fails if the next instance would fail in the same way.
    fn add(&mut self, instance: &str, drained: Result<Value>) -> Result<()> {
        let error = match drained {
            Ok(sent) => {
                self.instances += 1;
                self.released += sent["released"].as_u64().unwrap_or(0);
                return Ok(());
            }
            Err(error) => error,
        };
        match error.downcast_ref::<Failure>().map(|failure| failure.exit) {
            // Another operator has sent or discarded the events meanwhile.
            Some(Exit::NotFound) => Ok(()),
            Some(Exit::Unreachable | Exit::Refused) => Err(error),
            _ => {
                let reason = format!("{error:#}");
                self.refused
                    .push(json!({ "instanceId": instance, "reason": reason }));
                Ok(())
            }
        }
    }

    fn show(&self, output: Output) -> Result<()> {
        let all = json!({
            "instances": self.instances, "released": self.released, "refused": self.refused,
        });
        output.record(&all, ALL)?;
        if output.format == Format::Table && !self.refused.is_empty() {
            output.list(&json!({ "data": self.refused }), REFUSED)?;
        }
        Ok(())
    }
}

/// Shows the results even if it fails before the end.
fn retry_all(client: &Client, body: &Value, output: Output) -> Result<()> {
    let mut report = Report::default();
    let result = report.retry_each(client, body);
    report.show(output)?;
    result?;
    if report.refused.is_empty() {
        return Ok(());
    }
    let instances = counted(report.refused.len(), "instance");
    let message = format!("the events of {instances} were refused again, or could not be sent");
    Err(Failure::new(Exit::Failed, message)
        .next(
            "fix the causes and run it again, or discard the first event with `wrkflw dead-letter discard`",
        )
        .into())
}
