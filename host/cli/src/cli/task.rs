//! `wrkflw task`: find tasks, claim, release, delegate and decide them.

mod bulk;

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::answer;
use super::client::ChangeArgs;
use super::connection::ConnectionArgs;
use super::definition::PageArgs;
use super::instance::entity;
use super::output::{Column, Format, Output, in_words};
use super::{Environment, argument, pick};
use wrkflw_core::json::Json;

#[derive(Debug, Subcommand)]
pub(super) enum TaskCommand {
    /// List open tasks, oldest first
    List(ListArgs),
    /// Show a task, its outcomes, and what each of them requires
    Show {
        /// Its id, or the first digits of its id
        id: String,
        #[command(flatten)]
        connection: ConnectionArgs,
    },
    /// Claim a task: from now on only you decide it
    Claim(TaskRefArgs),
    /// Show your draft of a comment on the decision of a task, or keep another one; nobody else sees it
    Draft {
        /// Id of the task, or its first digits
        id: String,
        /// The draft to keep; blank deletes it
        #[arg(long)]
        comment: Option<String>,
        #[command(flatten)]
        connection: ConnectionArgs,
    },
    /// Release a task: its candidates may claim it again
    Release(TaskRefArgs),
    /// Decide a task that you own, or that you may claim
    Decide {
        #[command(flatten)]
        target: TaskRefArgs,
        /// One of the outcomes that its state takes, such as APPROVE
        outcome: String,
        /// Why
        #[arg(long)]
        comment: Option<String>,
        /// The input that the outcome asks for, JSON or @FILE
        #[arg(long, value_name = "JSON", default_value = "{}")]
        input: String,
    },
    /// Delegate a task: the other person decides it on your behalf
    Delegate(AssignArgs),
    /// Resolve a delegated task: it goes back to the person who delegated it
    Resolve(TaskRefArgs),
    /// Give an open task to another owner, as an operator
    Reassign(AssignArgs),
    /// Open a task for its candidates again, as an operator
    Reset {
        #[command(flatten)]
        target: TaskRefArgs,
        /// Why
        #[arg(long)]
        reason: String,
    },
    /// Suspend a task that you own: nobody may decide it, and its deadlines do not count
    Suspend {
        #[command(flatten)]
        target: TaskRefArgs,
        /// Why
        #[arg(long)]
        reason: Option<String>,
        /// When the host resumes it, such as 2026-12-01T09:00:00Z
        #[arg(long, value_name = "TIME")]
        until: Option<String>,
    },
    /// Resume a suspended task
    Resume(TaskRefArgs),
    /// Do the same with many tasks: none of them fails because of another. Fails at the end if one is refused
    Bulk(bulk::BulkArgs),
}

/// Whose tasks.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum View {
    /// Those that you own, and those of the people whom you substitute
    Mine,
    /// Those that you may claim
    Available,
    /// Those of them that are offered to one of your groups
    Groups,
    /// Everybody's
    All,
}

impl View {
    fn name(self) -> &'static str {
        match self {
            View::Mine => "mine",
            View::Available => "available",
            View::Groups => "groups",
            View::All => "all",
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Whose tasks
    #[arg(long, value_enum, default_value = "mine")]
    view: View,
    #[command(flatten)]
    filter: FilterArgs,
    /// COMPLETED or CANCELLED: tasks that ended, of their last owner
    #[arg(long)]
    status: Option<String>,
    /// The outcome by which they were decided
    #[arg(long)]
    outcome: Option<String>,
    /// createdAt or dueAt; of tasks that ended -endedAt
    #[arg(long, value_name = "FIELD", allow_hyphen_values = true)]
    sort: Option<String>,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Which tasks of a view.
#[derive(Debug, Args)]
struct FilterArgs {
    /// Key of a definition
    #[arg(long, value_name = "KEY")]
    definition: Option<String>,
    /// Name of a state
    #[arg(long)]
    state: Option<String>,
    /// Only suspended tasks; `--suspended false` for the others
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    suspended: Option<bool>,
    /// The entity that they are about, as TYPE/ID
    #[arg(long, value_name = "TYPE/ID", value_parser = entity)]
    entity: Option<(String, String)>,
    /// Words in the title, summary, entity or a text attribute
    #[arg(long, value_name = "WORDS")]
    q: Option<String>,
    /// Who owns them; of tasks that ended, the last owner
    #[arg(long, value_name = "PERSON")]
    owner: Option<String>,
    /// Label of the task
    #[arg(long)]
    label: Option<String>,
    /// At least this priority
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    min_priority: Option<i16>,
    /// Due before, as 2030-01-31T08:00:00Z
    #[arg(long, value_name = "TIME")]
    due_before: Option<String>,
}

impl FilterArgs {
    /// The given filters, as members of a filter of the API.
    fn members(&self) -> Map<String, Value> {
        let (kind, id) = self.entity.clone().unzip();
        let all = [
            ("definitionKey", json!(self.definition)),
            ("state", json!(self.state)),
            ("suspended", json!(self.suspended)),
            ("entityType", json!(kind)),
            ("entityId", json!(id)),
            ("q", json!(self.q)),
            ("owner", json!(self.owner)),
            ("label", json!(self.label)),
            ("minPriority", json!(self.min_priority)),
            ("dueBefore", json!(self.due_before)),
        ];
        let given = all.into_iter().filter(|(_, value)| !value.is_null());
        given
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }
}

#[derive(Debug, Args)]
pub(super) struct TaskRefArgs {
    /// Its id, or the first digits of its id
    id: String,
    #[command(flatten)]
    change: ChangeArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

#[derive(Debug, Args)]
pub(super) struct AssignArgs {
    #[command(flatten)]
    target: TaskRefArgs,
    /// Id of the new owner
    #[arg(long, value_name = "PERSON")]
    to: String,
    /// Why
    #[arg(long)]
    reason: String,
}

const TASKS: &[Column] = &[
    ("ID", "/id"),
    ("TASK", "/label"),
    ("STATUS", "/status"),
    ("OWNER", "/owner"),
    ("SUSPENDED BY", "/suspended/by"),
    ("FOR", "/onBehalfOf"),
    ("CANDIDATES", "/candidates"),
    ("STATE", "/state"),
    ("DEFINITION", "/definitionKey"),
    ("TYPE", "/entityType"),
    ("ENTITY", "/entityId"),
    ("SINCE", "/createdAt"),
    ("PRIORITY", "/priorityName"),
    ("TITLE", "/instanceTitle"),
    ("OUTCOMES", "/outcomes"),
];
const TASK: &[Column] = &[
    ("task", "/task/id"),
    ("label", "/task/label"),
    ("state", "/state/title"),
    ("description", "/state/description"),
    ("priority", "/state/priorityName"),
    ("status", "/task/status"),
    ("owner", "/task/owner"),
    ("for", "/task/ownership/onBehalfOf"),
    ("suspended by", "/task/suspended/by"),
    ("suspended until", "/task/suspended/until"),
    ("delegations", "/task/ownership/delegations"),
    ("candidates", "/task/candidates"),
    ("decision", "/task/decision/outcome"),
    ("decided by", "/task/decision/actor"),
    ("on behalf of", "/task/decision/onBehalfOf"),
    ("instance", "/instance/id"),
    ("title", "/instance/title"),
    ("instance status", "/instance/status"),
    ("outcome", "/instance/outcome"),
    ("states", "/instance/states"),
    ("revision", "/instance/revision"),
];

const OUTCOMES: &[Column] = &[
    ("OUTCOME", "/outcome"),
    ("TITLE", "/title"),
    ("COMMENT", "/comment"),
    ("REQUIRED", "/required"),
    ("PERMISSION", "/permission"),
    ("CONDITION", "/condition"),
];

const DRAFT: &[Column] = &[("comment", "/comment"), ("updated", "/updatedAt")];

pub(super) fn run(command: TaskCommand, output: Output, environment: &Environment) -> Result<()> {
    match command {
        TaskCommand::List(args) => list(&args, output, environment),
        TaskCommand::Bulk(args) => bulk::run(&args, output, environment),
        TaskCommand::Show { id, connection } => {
            let client = connection.open(environment)?;
            let task = client.get(&pick::task(&client, &id)?, &[])?;
            output.record(&task, TASK)?;
            show_outcomes(&task, output)
        }
        TaskCommand::Claim(target) => {
            target.send("claim", &json!({}), output, environment)?;
            if !target.change.is_dry_run() && !output.quiet {
                let outcomes = target.outcomes(environment).unwrap_or_default();
                output.hint(&format!(
                    "next: wrkflw task decide {} OUTCOME{outcomes}",
                    target.id
                ));
            }
            Ok(())
        }
        TaskCommand::Draft {
            id,
            comment,
            connection,
        } => {
            let client = connection.open(environment)?;
            let path = format!("{}/draft", pick::task(&client, &id)?);
            let draft = match comment {
                Some(comment) => client.put(&path, &[], &json!({ "comment": comment }))?,
                None => client.get(&path, &[])?,
            };
            output.record(&draft, DRAFT)
        }
        TaskCommand::Release(target) => target.send("release", &json!({}), output, environment),
        TaskCommand::Decide {
            target,
            outcome,
            comment,
            input,
        } => {
            let body = Json::object([
                ("outcome", Json::of(&outcome)),
                ("comment", Json::of(&comment)),
                ("input", argument::json("--input", &input)?),
            ]);
            target.send("decide", &body, output, environment)
        }
        TaskCommand::Delegate(args) => args.assign("delegate", output, environment),
        TaskCommand::Resolve(target) => target.send("resolve", &json!({}), output, environment),
        TaskCommand::Reassign(args) => args.assign("reassign", output, environment),
        TaskCommand::Reset { target, reason } => {
            let body = json!({ "reason": reason });
            target.send("reset", &body, output, environment)
        }
        TaskCommand::Suspend {
            target,
            reason,
            until,
        } => {
            let body = json!({ "reason": reason, "until": until });
            target.send("suspend", &body, output, environment)
        }
        TaskCommand::Resume(target) => target.send("resume", &json!({}), output, environment),
    }
}

impl AssignArgs {
    fn assign(&self, verb: &str, output: Output, environment: &Environment) -> Result<()> {
        let body = json!({ "to": self.to, "reason": self.reason });
        self.target.send(verb, &body, output, environment)
    }
}

impl TaskRefArgs {
    /// The outcomes of the task. The command is done, so a failure to read them is not a failure of the command.
    fn outcomes(&self, environment: &Environment) -> Result<String> {
        let client = self.connection.open(&environment.without_hints())?;
        let task = client.get(&pick::task(&client, &self.id)?, &[])?;
        let outcomes = in_words(&task, "/outcomes");
        Ok(format!(", which is one of {outcomes}"))
    }

    /// Sends the command, and shows the answer.
    fn send(
        &self,
        verb: &str,
        body: &impl Serialize,
        output: Output,
        environment: &Environment,
    ) -> Result<()> {
        let client = self.connection.open(environment)?;
        let path = pick::task(&client, &self.id)?;
        // A caller who may not read instances may still make a dry run. It is shown without the state before.
        let before = if self.change.is_dry_run() {
            client.get_if_permitted(&path)?
        } else {
            None
        };
        let answer = client.change(&format!("{path}/{verb}"), body, &self.change)?;
        // The answer of a command does not describe the state.
        let fields = TASK.iter().filter(|(_, at)| !at.starts_with("/state"));
        let fields: Vec<Column> = fields.copied().collect();
        answer::show(&answer, before.as_ref(), answer::whole, &fields, output)
    }
}

/// The outcomes of a task, each with the fields that its input must have.
fn show_outcomes(task: &Value, output: Output) -> Result<()> {
    let outcomes = &task["outcomes"];
    if output.format == Format::Json || outcomes.as_array().is_none_or(Vec::is_empty) {
        return Ok(());
    }
    output.list(&json!({ "data": outcomes }), OUTCOMES)
}

fn list(args: &ListArgs, output: Output, environment: &Environment) -> Result<()> {
    let filter = args.filter.members();
    let text = |value: &Value| value.as_str().map_or(value.to_string(), str::to_owned);
    let filter = filter
        .iter()
        .map(|(name, value)| (name.as_str(), Some(text(value))));
    let others = [
        ("view", Some(args.view.name().to_owned())),
        ("status", args.status.clone()),
        ("outcome", args.outcome.clone()),
        ("sort", args.sort.clone()),
    ];
    let query: Vec<_> = filter.chain(others).chain(args.page.query()).collect();
    let page = args
        .connection
        .open(environment)?
        .get("/v1/tasks", &query)?;
    output.list(&page, TASKS)?;
    if output.format == Format::Table
        && page["data"].as_array().is_some_and(Vec::is_empty)
        && matches!(args.view, View::Mine)
    {
        output.hint("next: `--view available` lists what you may claim");
    }
    Ok(())
}
