//! `wrkflw session`: the browsers in which you are signed in to the console.

use anyhow::Result;
use clap::Subcommand;
use serde_json::json;

use super::connection::ConnectionArgs;
use super::output::{Column, Output};
use super::{Environment, pick};

const PATH: &str = "/v1/me/sessions";
const SESSIONS: &[Column] = &[
    ("ID", "/id"),
    ("BROWSER", "/client"),
    ("ROLES", "/roles"),
    ("SIGNED IN", "/createdAt"),
    ("USED", "/usedAt"),
    ("EXPIRES", "/expiresAt"),
];

#[derive(Debug, Subcommand)]
pub(super) enum SessionCommand {
    /// List the browsers in which you are signed in, the newest sign-in first
    List {
        #[command(flatten)]
        connection: ConnectionArgs,
    },
    /// End a session: its browser has to sign in again
    End {
        /// Id of the session, or its first digits
        id: String,
        #[command(flatten)]
        connection: ConnectionArgs,
    },
}

pub(super) fn run(
    command: SessionCommand,
    output: Output,
    environment: &Environment,
) -> Result<()> {
    match command {
        SessionCommand::List { connection } => {
            let client = connection.open(environment)?;
            output.list(&client.get(PATH, &[])?, SESSIONS)
        }
        SessionCommand::End { id, connection } => {
            let client = connection.open(environment)?;
            let id = pick::listed(&client, &id, "session of yours", PATH)?;
            client.delete(&format!("{PATH}/{id}"), &[])?;
            output.record(&json!({ "ended": id }), &[("ended", "/ended")])
        }
    }
}
