//! `wrkflw notification`: the notifications of the caller, as a person and as a member of groups.

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::json;

use super::connection::ConnectionArgs;
use super::definition::PageArgs;
use super::output::{Column, Output};
use super::{Environment, pick};

const PATH: &str = "/v1/notifications";

#[derive(Debug, Subcommand)]
pub(super) enum NotificationCommand {
    /// List your notifications, newest first
    List(ListArgs),
    /// Turn kinds of notifications off, and all others on; without a kind, all are on
    Mute {
        /// `ASSIGNMENT_CREATED`, `STATUS_CHANGED`, `MENTION`, `TIMEOUT_WARNING` or `ESCALATION`
        kinds: Vec<String>,
        #[command(flatten)]
        connection: ConnectionArgs,
    },
    /// Show which kinds of notifications are off
    Muted {
        #[command(flatten)]
        connection: ConnectionArgs,
    },
    /// Mark a notification as read
    Read {
        /// Id of the notification, or its first digits
        id: String,
        #[command(flatten)]
        connection: ConnectionArgs,
    },
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Only those that nobody marked as read
    #[arg(long)]
    unread: bool,
    /// Only of this kind, such as MENTION
    #[arg(long)]
    kind: Option<String>,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

const NOTIFICATIONS: &[Column] = &[
    ("ID", "/id"),
    ("KIND", "/kind"),
    ("FOR", "/recipient"),
    ("INSTANCE", "/instanceId"),
    ("TASK", "/taskId"),
    ("TITLE", "/instanceTitle"),
    ("DUE", "/dueAt"),
    ("CREATED", "/createdAt"),
    ("READ", "/readAt"),
];

const MUTED: &[Column] = &[("muted", "/mutedNotifications")];

pub(super) fn run(
    command: NotificationCommand,
    output: Output,
    environment: &Environment,
) -> Result<()> {
    match command {
        NotificationCommand::List(args) => {
            let unread = ("unread", args.unread.then(|| true.to_string()));
            let filters = [unread, ("kind", args.kind)];
            let query: Vec<_> = filters.into_iter().chain(args.page.query()).collect();
            let client = args.connection.open(environment)?;
            output.list(&client.get(PATH, &query)?, NOTIFICATIONS)
        }
        NotificationCommand::Mute { kinds, connection } => {
            let client = connection.open(environment)?;
            // The other preferences are sent again, because a preference that the body lacks is reset.
            let mut body = client.get("/v1/me/preferences", &[])?;
            body["mutedNotifications"] = json!(kinds);
            output.record(&client.put("/v1/me/preferences", &[], &body)?, MUTED)
        }
        NotificationCommand::Muted { connection } => {
            let client = connection.open(environment)?;
            output.record(&client.get("/v1/me/preferences", &[])?, MUTED)
        }
        NotificationCommand::Read { id, connection } => {
            let client = connection.open(environment)?;
            let id = pick::listed(&client, &id, "notification of yours", PATH)?;
            client.post(&format!("{PATH}/{id}/read"), &json!({}))?;
            output.record(&json!({ "read": id }), &[("read", "/read")])
        }
    }
}
