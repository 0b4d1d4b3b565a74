//! `wrkflw calendar`: the working hours that deadlines may count.

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::json;

use super::client::segment;
use super::connection::ConnectionArgs;
use super::output::{Column, Output};
use super::{Environment, argument};

#[derive(Debug, Subcommand)]
pub(super) enum CalendarCommand {
    /// List all calendars by name
    List {
        #[command(flatten)]
        connection: ConnectionArgs,
    },
    /// Show a calendar
    Show(CalendarRefArgs),
    /// Add a calendar, or replace it. Deadlines that were computed stay as they are
    Set {
        #[command(flatten)]
        target: CalendarRefArgs,
        /// Time zone, hours, holidays and exceptions, JSON or @FILE
        #[arg(value_name = "SETTINGS")]
        settings: String,
    },
    /// Delete a calendar. Deadlines that were computed by it stay as they are
    Delete {
        #[command(flatten)]
        target: CalendarRefArgs,
        /// Delete it also if versions use it that are active or have running instances
        #[arg(long)]
        force: bool,
    },
}

#[derive(Debug, Args)]
pub(super) struct CalendarRefArgs {
    /// Its name
    name: String,
    #[command(flatten)]
    connection: ConnectionArgs,
}

const CALENDARS: &[Column] = &[
    ("NAME", "/name"),
    ("TIME ZONE", "/timeZone"),
    ("UPDATED", "/updatedAt"),
];
const CALENDAR: &[Column] = &[
    ("name", "/name"),
    ("time zone", "/timeZone"),
    ("hours", "/hours"),
    ("holidays", "/holidays"),
    ("exceptions", "/exceptions"),
    ("updated", "/updatedAt"),
];

pub(super) fn run(
    command: CalendarCommand,
    output: Output,
    environment: &Environment,
) -> Result<()> {
    match command {
        CalendarCommand::List { connection } => {
            let client = connection.open(environment)?;
            output.list(&client.get("/v1/calendars", &[])?, CALENDARS)
        }
        CalendarCommand::Show(target) => {
            let client = target.connection.open(environment)?;
            output.record(&client.get(&target.path(), &[])?, CALENDAR)
        }
        CalendarCommand::Set { target, settings } => {
            let settings = argument::json("SETTINGS", &settings)?;
            let client = target.connection.open(environment)?;
            output.record(&client.put(&target.path(), &[], &settings)?, CALENDAR)
        }
        CalendarCommand::Delete { target, force } => {
            let client = target.connection.open(environment)?;
            let force = force.then(|| "true".to_owned());
            client.delete(&target.path(), &[("force", force)])?;
            output.record(
                &json!({ "deleted": target.name }),
                &[("deleted", "/deleted")],
            )
        }
    }
}

impl CalendarRefArgs {
    fn path(&self) -> String {
        format!("/v1/calendars/{}", segment(&self.name))
    }
}
