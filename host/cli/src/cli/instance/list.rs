//! `wrkflw instance list`: the instances for which all filters hold.

use anyhow::Result;
use clap::Args;

use super::super::Environment;
use super::super::connection::ConnectionArgs;
use super::super::definition::PageArgs;
use super::super::failure::{Exit, Failure};
use super::super::output::{Column, Output};
use super::entity;

#[derive(Debug, Args)]
pub(in crate::cli) struct ListArgs {
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
    /// Value of an attribute, or with an operator, as total=gt:1000; may be repeated, and all must hold
    #[arg(long = "attribute", value_name = "NAME=VALUE", value_parser = attribute)]
    attributes: Vec<(String, String)>,
    /// Words in the title, summary, entity or a text attribute
    #[arg(long, value_name = "WORDS")]
    q: Option<String>,
    /// Who owns an open task of it
    #[arg(long, value_name = "PERSON")]
    owner: Option<String>,
    /// Who owns or owned a task of it
    #[arg(long, value_name = "PERSON")]
    ever_owner: Option<String>,
    /// Not changed since, as 2030-01-31T08:00:00Z
    #[arg(long, value_name = "TIME")]
    updated_before: Option<String>,
    /// Something of it is due before
    #[arg(long, value_name = "TIME")]
    due_before: Option<String>,
    /// Only those with an unassignable state: too few people are eligible for its work
    #[arg(long)]
    unassignable: bool,
    /// Started at or after, as 2030-01-31T08:00:00Z
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Started before
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    #[command(flatten)]
    page: PageArgs,
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
pub(super) fn run(args: &ListArgs, output: Output, environment: &Environment) -> Result<()> {
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
        ("until", args.until.clone()),
        ("q", args.q.clone()),
        ("owner", args.owner.clone()),
        ("everOwner", args.ever_owner.clone()),
        ("updatedBefore", args.updated_before.clone()),
        ("dueBefore", args.due_before.clone()),
    ];
    let attributes = args.attributes.iter();
    let attributes: Vec<(&str, Option<String>)> = attributes
        .map(|(parameter, value)| (parameter.as_str(), Some(value.clone())))
        .collect();
    let query: Vec<_> = filters
        .into_iter()
        .chain(attributes)
        .chain(args.page.query())
        .collect();
    let client = args.connection.open(environment)?;
    output.list(&client.get("/v1/instances", &query)?, SUMMARIES)
}

/// The parameter of the API for an attribute, and its condition.
fn attribute(text: &str) -> Result<(String, String), Failure> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => {
            Ok((format!("attribute.{name}"), value.to_owned()))
        }
        _ => Err(Failure::new(
            Exit::Usage,
            "write the attribute and its value as NAME=VALUE, such as customer=ACME or total=gt:1000",
        )),
    }
}
