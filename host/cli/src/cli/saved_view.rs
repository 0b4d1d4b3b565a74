//! `wrkflw saved-view`: the queries of the list of tasks to which you gave a name.

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::json;
use uuid::Uuid;

use super::connection::ConnectionArgs;
use super::output::{Column, Output};
use super::{Environment, pick};
use wrkflw_runtime::clock;

const VIEWS: &[Column] = &[
    ("ID", "/id"),
    ("NAME", "/name"),
    ("QUERY", "/query"),
    ("DEFAULT", "/default"),
];
const VIEW: &[Column] = &[
    ("id", "/id"),
    ("name", "/name"),
    ("query", "/query"),
    ("default", "/default"),
];

#[derive(Debug, Subcommand)]
pub(super) enum SavedViewCommand {
    /// List your saved views by name
    List {
        #[command(flatten)]
        connection: ConnectionArgs,
    },
    /// Save a query of the list of tasks under a name
    Save(SaveArgs),
    /// Delete a saved view
    Delete {
        /// Id of the view
        #[arg(value_parser = pick::id)]
        id: Uuid,
        #[command(flatten)]
        connection: ConnectionArgs,
    },
}

#[derive(Debug, Args)]
pub(super) struct SaveArgs {
    /// Its name, which no other view of yours has
    name: String,
    /// Parameters of the list, such as view=available&minPriority=100
    query: String,
    /// Show it first, in place of any other
    #[arg(long)]
    default: bool,
    /// The view that it replaces. Default: a new one
    #[arg(long, value_name = "ID", value_parser = pick::id)]
    replace: Option<Uuid>,
    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(super) fn run(
    command: SavedViewCommand,
    output: Output,
    environment: &Environment,
) -> Result<()> {
    match command {
        SavedViewCommand::List { connection } => {
            let client = connection.open(environment)?;
            output.list(&client.get("/v1/me/views", &[])?, VIEWS)
        }
        SavedViewCommand::Save(args) => {
            let client = args.connection.open(environment)?;
            let id = args.replace.unwrap_or_else(clock::new_id);
            let body = json!({ "name": args.name, "query": args.query, "default": args.default });
            let saved = client.put(&format!("/v1/me/views/{id}"), &[], &body)?;
            output.record(&saved, VIEW)
        }
        SavedViewCommand::Delete { id, connection } => {
            let client = connection.open(environment)?;
            client.delete(&format!("/v1/me/views/{id}"), &[])?;
            output.record(&json!({ "deleted": id }), &[("deleted", "/deleted")])
        }
    }
}
