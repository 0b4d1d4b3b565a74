//! `wrkflw saved-view`: the queries of the list of tasks to which you gave a name.

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::json;

use super::connection::ConnectionArgs;
use super::output::{Column, Output};
use super::{Environment, pick};
use wrkflw_runtime::clock;

const PATH: &str = "/v1/me/views";
const KIND: &str = "saved view of yours";
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
        /// Id of the view, or its first digits
        id: String,
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
    /// The view that it replaces, by its id or its first digits. Default: a new one
    #[arg(long, value_name = "ID")]
    replace: Option<String>,
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
            output.list(&client.get(PATH, &[])?, VIEWS)
        }
        SavedViewCommand::Save(args) => {
            let client = args.connection.open(environment)?;
            let id = match &args.replace {
                Some(text) => pick::listed(&client, text, KIND, PATH)?,
                None => clock::new_id().to_string(),
            };
            let body = json!({ "name": args.name, "query": args.query, "default": args.default });
            let saved = client.put(&format!("{PATH}/{id}"), &[], &body)?;
            output.record(&saved, VIEW)
        }
        SavedViewCommand::Delete { id, connection } => {
            let client = connection.open(environment)?;
            let id = pick::listed(&client, &id, KIND, PATH)?;
            client.delete(&format!("{PATH}/{id}"), &[])?;
            output.record(&json!({ "deleted": id }), &[("deleted", "/deleted")])
        }
    }
}
