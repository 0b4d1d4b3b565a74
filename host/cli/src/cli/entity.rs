//! `wrkflw entity`: the whole history of one entity, across definitions and restarts.

use anyhow::Result;
use clap::{Args, Subcommand};

use super::Environment;
use super::client::segment;
use super::connection::ConnectionArgs;
use super::definition::PageArgs;
use super::instance::{CUSTODY, entity};
use super::output::{Column, Output};

#[derive(Debug, Subcommand)]
pub(super) enum EntityCommand {
    /// List the instances about an entity, oldest first
    History(EntityArgs),
    /// List the decisions and delegations about an entity with their seals: its chain of custody
    Custody(EntityArgs),
}

#[derive(Debug, Args)]
pub(super) struct EntityArgs {
    /// The entity, as TYPE/ID
    #[arg(value_name = "TYPE/ID", value_parser = entity)]
    entity: (String, String),
    /// Only of instances of this definition
    #[arg(long, value_name = "KEY")]
    definition: Option<String>,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

const INSTANCES: &[Column] = &[
    ("ID", "/id"),
    ("DEFINITION", "/definitionKey"),
    ("VERSION", "/definitionVersion"),
    ("STATUS", "/status"),
    ("OUTCOME", "/outcome"),
    ("INITIATOR", "/initiator"),
    ("STARTED", "/startedAt"),
    ("ENDED", "/endedAt"),
    ("RESTARTS", "/predecessorId"),
    ("PARENT", "/parentId"),
    ("TITLE", "/title"),
];

pub(super) fn run(command: EntityCommand, output: Output, environment: &Environment) -> Result<()> {
    match command {
        EntityCommand::History(args) => args.list("history", INSTANCES, output, environment),
        EntityCommand::Custody(args) => args.list("custody", CUSTODY, output, environment),
    }
}

impl EntityArgs {
    fn list(
        &self,
        what: &str,
        columns: &[Column],
        output: Output,
        environment: &Environment,
    ) -> Result<()> {
        let (kind, id) = &self.entity;
        let path = format!("/v1/entities/{}/{}/{what}", segment(kind), segment(id));
        let query: Vec<_> = [("definitionKey", self.definition.clone())]
            .into_iter()
            .chain(self.page.query())
            .collect();
        let client = self.connection.open(environment)?;
        output.list(&client.get(&path, &query)?, columns)
    }
}
