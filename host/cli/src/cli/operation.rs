//! `wrkflw operation`: cancels or migrates many instances in the background, and shows the progress.

use std::collections::BTreeMap;

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::{AttemptArgs, Client};
use super::connection::ConnectionArgs;
use super::definition::PageArgs;
use super::instance::{entity, renamed};
use super::output::{Column, Format, Output};
use super::{Environment, pick};

const OPERATION: &[Column] = &[
    ("id", "/id"),
    ("action", "/action"),
    ("status", "/status"),
    ("definition", "/settings/definitionKey"),
    ("from", "/settings/fromVersion"),
    ("version", "/settings/version"),
    ("reason", "/settings/reason"),
    ("total", "/total"),
    ("more", "/more"),
    ("last", "/lastInstanceId"),
    ("done", "/done"),
    ("refused", "/refused"),
    ("failed", "/failed"),
    ("requested by", "/requestedBy"),
    ("created", "/createdAt"),
    ("ended", "/endedAt"),
    ("stopped by", "/stoppedBy"),
];
const OPERATIONS: &[Column] = &[
    ("ID", "/id"),
    ("ACTION", "/action"),
    ("STATUS", "/status"),
    ("DEFINITION", "/settings/definitionKey"),
    ("TOTAL", "/total"),
    ("DONE", "/done"),
    ("REFUSED", "/refused"),
    ("FAILED", "/failed"),
    ("BY", "/requestedBy"),
    ("CREATED", "/createdAt"),
    ("ENDED", "/endedAt"),
];
const TRIAL: &[Column] = &[
    ("total", "/total"),
    ("more", "/more"),
    ("tried", "/tried"),
    ("done", "/done"),
    ("refused", "/refused"),
    ("failed", "/failed"),
];
const ITEMS: &[Column] = &[
    ("INSTANCE", "/instanceId"),
    ("RESULT", "/result"),
    ("REVISION", "/revision"),
    ("ENDED", "/endedAt"),
    ("CODE", "/code"),
    ("DETAIL", "/detail"),
];

#[derive(Debug, Subcommand)]
pub(super) enum OperationCommand {
    /// Cancel the instances of a version, also of a stopped one
    Cancel {
        #[command(flatten)]
        which: WhichArgs,
        /// Why; each instance keeps it
        #[arg(long)]
        reason: String,
    },
    /// Migrate the instances of a version to another one
    Migrate {
        #[command(flatten)]
        which: WhichArgs,
        /// A published version
        #[arg(long = "to", value_name = "VERSION")]
        target: u32,
        /// A state, and the state of the new version that replaces it; may be repeated
        #[arg(long = "state", value_name = "OLD=NEW", value_parser = renamed)]
        states: Vec<(String, String)>,
    },
    /// List operations with their progress, newest first
    List {
        #[command(flatten)]
        page: PageArgs,
        #[command(flatten)]
        connection: ConnectionArgs,
    },
    /// Show the progress of an operation
    Show(OperationRefArgs),
    /// List the result of each instance of an operation
    Items {
        #[command(flatten)]
        operation: OperationRefArgs,
        /// Only this result: done, refused, failed, or waiting (not tried yet)
        #[arg(long)]
        result: Option<String>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// End an operation early. Items in flight are completed
    Stop(OperationRefArgs),
}

/// The instances of an operation.
#[derive(Debug, Args)]
pub(super) struct WhichArgs {
    /// Key of a definition
    definition: String,
    /// The version that the instances have
    version: u32,
    /// Only this status: RUNNING or SUSPENDED
    #[arg(long)]
    status: Option<String>,
    /// Only those with an active state of this name
    #[arg(long = "in", value_name = "STATE")]
    state: Option<String>,
    /// Only those about this entity, as TYPE/ID
    #[arg(long, value_name = "TYPE/ID", value_parser = entity)]
    entity: Option<(String, String)>,
    /// Only those that this person started
    #[arg(long)]
    initiator: Option<String>,
    /// Only those behind this instance: `lastInstanceId` of an operation that left more
    #[arg(long, value_name = "ID")]
    after: Option<String>,
    #[command(flatten)]
    attempt: AttemptArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

#[derive(Debug, Args)]
pub(super) struct OperationRefArgs {
    /// Id of the operation, or its first digits
    id: String,
    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(super) fn run(
    command: OperationCommand,
    output: Output,
    environment: &Environment,
) -> Result<()> {
    match command {
        OperationCommand::Cancel { which, reason } => {
            let body = json!({ "version": which.version, "reason": reason });
            which.begin("/v1/cancellations", body, output, environment)
        }
        OperationCommand::Migrate {
            which,
            target,
            states,
        } => {
            let states: BTreeMap<_, _> = states.into_iter().collect();
            let body = json!({ "fromVersion": which.version, "version": target, "states": states });
            which.begin("/v1/migrations", body, output, environment)
        }
        OperationCommand::List { page, connection } => {
            let client = connection.open(environment)?;
            output.list(&client.get(PATH, &page.query())?, OPERATIONS)
        }
        OperationCommand::Show(operation) => {
            let client = operation.connection.open(environment)?;
            output.record(&client.get(&operation.path(&client, "")?, &[])?, OPERATION)
        }
        OperationCommand::Items {
            operation,
            result,
            page,
        } => {
            let query: Vec<_> = [("result", result)]
                .into_iter()
                .chain(page.query())
                .collect();
            let client = operation.connection.open(environment)?;
            let path = operation.path(&client, "/items")?;
            output.list(&client.get(&path, &query)?, ITEMS)
        }
        OperationCommand::Stop(operation) => {
            let client = operation.connection.open(environment)?;
            let path = operation.path(&client, "/stop")?;
            output.record(&client.post(&path, &json!({}))?, OPERATION)
        }
    }
}

const PATH: &str = "/v1/operations";

impl OperationRefArgs {
    fn path(&self, client: &Client, below: &str) -> Result<String> {
        let id = pick::listed(client, &self.id, "operation", PATH)?;
        Ok(format!("{PATH}/{id}{below}"))
    }
}

impl WhichArgs {
    /// Begins an operation, or shows its effects for a dry run.
    fn begin(
        self,
        path: &str,
        mut body: Value,
        output: Output,
        environment: &Environment,
    ) -> Result<()> {
        body["definitionKey"] = json!(self.definition);
        let (kind, id) = self.entity.unzip();
        for (name, value) in [
            ("status", self.status),
            ("state", self.state),
            ("entityType", kind),
            ("entityId", id),
            ("initiator", self.initiator),
            ("afterInstanceId", self.after),
        ] {
            if let Some(value) = value {
                body["filter"][name] = json!(value);
            }
        }
        let client = self.connection.open(environment)?;
        let answer = client.attempt(path, &body, &self.attempt)?;
        if answer["dryRun"] != true {
            output.record(&answer, OPERATION)?;
            if let Some(id) = answer["id"].as_str() {
                output.hint(&format!("next: wrkflw operation show {id}"));
            }
            return Ok(());
        }
        if output.format == Format::Json {
            return output.record(&answer, &[]);
        }
        output.record(&answer, TRIAL)?;
        match answer["sample"].as_array() {
            Some(sample) if !sample.is_empty() => output.list(&json!({ "data": sample }), ITEMS),
            _ => Ok(()),
        }
    }
}
