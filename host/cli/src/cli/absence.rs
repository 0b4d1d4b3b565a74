//! `wrkflw absence`: absent people, and their substitutes.

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::json;

use super::client::{AttemptArgs, DryRunArgs, segment};
use super::connection::ConnectionArgs;
use super::directory::show_changed;
use super::output::{Column, Output};
use super::{Environment, pick};

#[derive(Debug, Subcommand)]
pub(super) enum AbsenceCommand {
    /// List a person's absences, present and future, and those in which they are the substitute
    List(PersonArgs),
    /// Name a substitute for a period
    Add(AddArgs),
    /// End an absence early
    End {
        #[command(flatten)]
        person: PersonArgs,
        /// Id of the absence, or its first digits
        absence: String,
        #[command(flatten)]
        dry: DryRunArgs,
    },
}

#[derive(Debug, Args)]
pub(super) struct PersonArgs {
    /// Id of the person who is away
    person: String,
    #[command(flatten)]
    connection: ConnectionArgs,
}

#[derive(Debug, Args)]
pub(super) struct AddArgs {
    #[command(flatten)]
    person: PersonArgs,
    /// Id of the person who may act meanwhile
    #[arg(long, value_name = "PERSON")]
    substitute: String,
    /// When it begins, as 2030-01-31T08:00:00Z
    #[arg(long, value_name = "TIME")]
    from: String,
    /// When it ends, at most 366 days later
    #[arg(long, value_name = "TIME")]
    until: String,
    /// Only for work of this definition. Default: for all work
    #[arg(long, value_name = "KEY")]
    definition: Option<String>,
    #[command(flatten)]
    attempt: AttemptArgs,
}

const ABSENCES: &[Column] = &[
    ("ID", "/id"),
    ("PERSON", "/person"),
    ("SUBSTITUTE", "/substitute"),
    ("FROM", "/from"),
    ("UNTIL", "/until"),
    ("DEFINITION", "/definitionKey"),
    ("BY", "/createdBy"),
];
const ABSENCE: &[Column] = &[
    ("id", "/id"),
    ("person", "/person"),
    ("substitute", "/substitute"),
    ("from", "/from"),
    ("until", "/until"),
    ("definition", "/definitionKey"),
    ("ended", "/endedAt"),
];

pub(super) fn run(
    command: AbsenceCommand,
    output: Output,
    environment: &Environment,
) -> Result<()> {
    match command {
        AbsenceCommand::List(person) => {
            let client = person.connection.open(environment)?;
            output.list(&client.get(&person.path(), &[])?, ABSENCES)
        }
        AbsenceCommand::Add(args) => {
            let mut body = json!({
                "substitute": args.substitute, "from": args.from, "until": args.until,
            });
            if let Some(definition) = &args.definition {
                body["definitionKey"] = json!(definition);
            }
            let client = args.person.connection.open(environment)?;
            let answer = client.attempt(&args.person.path(), &body, &args.attempt)?;
            show_changed(&answer, ABSENCE, output)
        }
        AbsenceCommand::End {
            person,
            absence,
            dry,
        } => {
            let client = person.connection.open(environment)?;
            let list = person.path();
            let id = pick::listed(&client, &absence, "absence", &list)?;
            let path = format!("{list}/{id}");
            show_changed(&client.delete(&path, &dry.query())?, ABSENCE, output)
        }
    }
}

impl PersonArgs {
    fn path(&self) -> String {
        format!("/v1/people/{}/absences", segment(&self.person))
    }
}
