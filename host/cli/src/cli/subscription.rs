//! `wrkflw subscription`: webhooks, a test event for them, and their deliveries with every attempt.

mod listen;

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::client::Client;
use super::connection::ConnectionArgs;
use super::definition::PageArgs;
use super::output::{Column, Output};
use super::{Environment, pick};

#[derive(Debug, Subcommand)]
pub(super) enum SubscriptionCommand {
    /// List all subscriptions, newest first
    List {
        #[command(flatten)]
        connection: ConnectionArgs,
    },
    /// Show a subscription, without its secret
    Show(SubscriptionRefArgs),
    /// Send events to a URL from now on, and print the secret that signs them
    Create(CreateArgs),
    /// Delete a subscription and its open deliveries
    Delete(SubscriptionRefArgs),
    /// Send a test event, whatever the types of the subscription are
    Test(SubscriptionRefArgs),
    /// List the deliveries of the last 30 days, newest first
    Deliveries {
        #[command(flatten)]
        target: SubscriptionRefArgs,
        /// Only these
        #[arg(long, value_enum)]
        state: Option<DeliveryState>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// List the newest attempts of a delivery, each with its status and time
    Attempts(DeliveryArgs),
    /// Send one delivery again, whatever became of it, or all dead ones, and enable the subscription
    Retry {
        #[command(flatten)]
        target: SubscriptionRefArgs,
        /// Id of the delivery, or its first digits. Default: all that are dead
        delivery: Option<String>,
    },
    /// Give up a delivery that the receiver has not accepted
    Discard {
        #[command(flatten)]
        args: DeliveryArgs,
        /// Why; the audit keeps it
        #[arg(long)]
        reason: String,
    },
    /// Receive webhooks on this machine, verify their signatures, and print the events
    Listen(listen::ListenArgs),
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum DeliveryState {
    /// The host tries it again
    Pending,
    /// The receiver accepted it
    Delivered,
    /// The host gave up
    Dead,
    /// An operator gave it up
    Discarded,
}

#[derive(Debug, Args)]
pub(super) struct DeliveryArgs {
    #[command(flatten)]
    target: SubscriptionRefArgs,
    /// Id of the delivery, or its first digits
    delivery: String,
}

#[derive(Debug, Args)]
pub(super) struct SubscriptionRefArgs {
    /// Id of the subscription, or its first digits
    id: String,
    #[command(flatten)]
    connection: ConnectionArgs,
}

#[derive(Debug, Args)]
pub(super) struct CreateArgs {
    /// An https URL. Hosts may also allow http to private networks
    url: String,
    /// Name of an event type, or a family such as `task.*`; may be repeated. Default: all
    #[arg(long = "type", value_name = "TYPE", default_value = "*")]
    types: Vec<String>,
    /// Only for instances of this definition
    #[arg(long, value_name = "KEY")]
    definition: Option<String>,
    #[command(flatten)]
    connection: ConnectionArgs,
}

const PATH: &str = "/v1/subscriptions";
const SUBSCRIPTIONS: &[Column] = &[
    ("ID", "/id"),
    ("URL", "/url"),
    ("TYPES", "/types"),
    ("DEFINITION", "/definitionKey"),
    ("ACTIVE", "/active"),
    ("FAILURES", "/failures"),
    ("CREATED", "/createdAt"),
    ("BY", "/createdBy"),
];
const SUBSCRIPTION: &[Column] = &[
    ("id", "/id"),
    ("url", "/url"),
    ("types", "/types"),
    ("definition", "/definitionKey"),
    ("active", "/active"),
    ("disabled because", "/disabledReason"),
    ("failures", "/failures"),
    ("created", "/createdAt"),
    ("by", "/createdBy"),
    ("secret", "/secret"),
];
const DELIVERIES: &[Column] = &[
    ("ID", "/id"),
    ("STATE", "/state"),
    ("INSTANCE", "/instanceId"),
    ("ATTEMPTS", "/attempts"),
    ("STATUS", "/lastStatus"),
    ("ERROR", "/lastError"),
    ("CREATED", "/createdAt"),
    ("DUE", "/dueAt"),
];

const ATTEMPTS: &[Column] = &[
    ("WHEN", "/at"),
    ("STATUS", "/status"),
    ("MS", "/durationMs"),
    ("ERROR", "/error"),
];

pub(super) fn run(
    command: SubscriptionCommand,
    output: Output,
    environment: &Environment,
) -> Result<()> {
    match command {
        SubscriptionCommand::List { connection } => {
            let client = connection.open(environment)?;
            output.list(&client.get(PATH, &[])?, SUBSCRIPTIONS)
        }
        SubscriptionCommand::Show(target) => {
            let client = target.connection.open(environment)?;
            output.record(&client.get(&target.path(&client)?, &[])?, SUBSCRIPTION)
        }
        SubscriptionCommand::Create(args) => {
            let mut body = json!({ "url": args.url, "types": args.types });
            if let Some(definition) = &args.definition {
                body["definitionKey"] = json!(definition);
            }
            let client = args.connection.open(environment)?;
            output.record(&client.post(PATH, &body)?, SUBSCRIPTION)?;
            output.hint("the secret is not shown again");
            Ok(())
        }
        SubscriptionCommand::Delete(target) => {
            let client = target.connection.open(environment)?;
            let id = target.resolve_id(&client)?;
            client.delete(&format!("{PATH}/{id}"), &[])?;
            output.record(&json!({ "deleted": id }), &[("deleted", "/deleted")])
        }
        SubscriptionCommand::Listen(args) => listen::run(&args, output),
        SubscriptionCommand::Test(target) => {
            let client = target.connection.open(environment)?;
            let sent = client.post(&format!("{}/test", target.path(&client)?), &json!({}))?;
            output.record(&sent, &[("delivery", "/id")])
        }
        SubscriptionCommand::Deliveries {
            target,
            state,
            page,
        } => {
            let state =
                state.and_then(|state| Some(state.to_possible_value()?.get_name().to_owned()));
            let query: Vec<_> = [("state", state)].into_iter().chain(page.query()).collect();
            let client = target.connection.open(environment)?;
            let path = format!("{}/deliveries", target.path(&client)?);
            output.list(&client.get(&path, &query)?, DELIVERIES)
        }
        SubscriptionCommand::Attempts(args) => {
            let client = args.target.connection.open(environment)?;
            let (list, id) = args.resolve(&client)?;
            let path = format!("{list}/{id}/attempts");
            output.list(&client.get(&path, &[])?, ATTEMPTS)
        }
        SubscriptionCommand::Retry { target, delivery } => {
            retry(target, delivery, output, environment)
        }
        SubscriptionCommand::Discard { args, reason } => {
            let body = json!({ "reason": reason });
            args.change(("discard", &body), "discarded", output, environment)
        }
    }
}

/// Sends one delivery again, or all that are dead.
fn retry(
    target: SubscriptionRefArgs,
    delivery: Option<String>,
    output: Output,
    environment: &Environment,
) -> Result<()> {
    if let Some(delivery) = delivery {
        let args = DeliveryArgs { target, delivery };
        return args.change(("retry", &json!({})), "retried", output, environment);
    }
    let client = target.connection.open(environment)?;
    let path = format!("{}/deliveries/retry", target.path(&client)?);
    output.record(&client.post(&path, &json!({}))?, &[("retried", "/retried")])
}

impl SubscriptionRefArgs {
    /// The id, also if only its first digits were given.
    fn resolve_id(&self, client: &Client) -> Result<String> {
        pick::listed(client, &self.id, "subscription", PATH)
    }

    fn path(&self, client: &Client) -> Result<String> {
        Ok(format!("{PATH}/{}", self.resolve_id(client)?))
    }
}

impl DeliveryArgs {
    /// The path of the deliveries, and the id of this one.
    fn resolve(&self, client: &Client) -> Result<(String, String)> {
        let list = format!("{}/deliveries", self.target.path(client)?);
        let id = pick::listed(client, &self.delivery, "delivery", &list)?;
        Ok((list, id))
    }

    /// Runs the action on the delivery. The answer has no content, so the id and the text `done` are printed.
    fn change(
        &self,
        (what, body): (&str, &Value),
        done: &'static str,
        output: Output,
        environment: &Environment,
    ) -> Result<()> {
        let client = self.target.connection.open(environment)?;
        let (list, id) = self.resolve(&client)?;
        client.post(&format!("{list}/{id}/{what}"), body)?;
        output.record(&json!({ "delivery": id }), &[(done, "/delivery")])
    }
}
