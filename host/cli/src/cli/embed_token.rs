//! `wrkflw embed-token PERSON`: requests a token with which a page shows one instance to this person.

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::connection::ConnectionArgs;
use super::instance::entity;
use super::output::{Column, Output};
use super::{Environment, pick};

const TOKEN: &[Column] = &[
    ("token", "/token"),
    ("instance", "/instanceId"),
    ("scope", "/scope"),
    ("expires", "/expiresAt"),
];

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("about").required(true).args(["instance", "entity"]))]
pub(super) struct EmbedTokenArgs {
    /// The person that the page is for
    person: String,
    /// A role of the person; may be repeated
    #[arg(long, default_value = "user")]
    role: Vec<String>,
    /// The id of the instance, or its first digits
    #[arg(long, value_name = "ID")]
    instance: Option<String>,
    /// The entity: the last instance about it that the person sees
    #[arg(long, value_name = "TYPE/ID", value_parser = entity)]
    entity: Option<(String, String)>,
    /// The origin of the page, such as `https://documents.example`
    #[arg(long, value_name = "ORIGIN")]
    origin: String,
    /// Lets the person decide in the page, too
    #[arg(long)]
    decide: bool,
    /// How many minutes it is valid
    #[arg(long, default_value_t = 10)]
    minutes: u32,
    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(super) fn run(args: &EmbedTokenArgs, output: Output, environment: &Environment) -> Result<()> {
    let mut body = json!({
        "subject": args.person,
        "roles": args.role,
        "origin": args.origin,
        "scope": if args.decide { "decide" } else { "read" },
        "minutes": args.minutes,
    });
    if let Some((kind, id)) = &args.entity {
        body["entityType"] = json!(kind);
        body["entityId"] = json!(id);
    }
    let client = args.connection.open(environment)?;
    if let Some(text) = &args.instance {
        body["instanceId"] = json!(pick::instance_id(&client, text)?);
    }
    output.record(&client.post("/v1/embed-tokens", &body)?, TOKEN)
}
