//! `wrkflw demo`: an approval by the demo people. Each step shows its command.

use anyhow::{Context as _, Result, ensure};
use clap::{Args, Parser as _};
use serde_json::Value;

use super::connection::{ConnectionArgs, DevChoiceArgs};
use super::demo::FLOW;
use super::failure::{Exit, Failure, quoted};
use super::output::Output;
use super::{Cli, Environment};
use crate::config::layers::ResolvedSettings;
use wrkflw_runtime::clock;

#[derive(Debug, Args)]
pub(super) struct DemoArgs {
    #[command(flatten)]
    choice: DevChoiceArgs,
}

/// The commands that are shown and run.
struct Demo<'a> {
    choice: DevChoiceArgs,
    resolved: &'a ResolvedSettings,
    output: Output,
    environment: &'a Environment,
}

pub(super) fn run(
    args: DemoArgs,
    resolved: &ResolvedSettings,
    output: Output,
    environment: &Environment,
) -> Result<()> {
    // Which server it is need not be said again with each step.
    args.choice.find(environment)?;
    let environment = &environment.without_hints();
    let demo = Demo {
        choice: args.choice,
        resolved,
        output,
        environment,
    };
    // Each run is about a document of its own.
    let entity = format!(
        "document/demo-{}",
        &clock::new_id().simple().to_string()[20..]
    );
    let start = ["instance", "start", FLOW, "--entity", &entity];
    demo.explain("Ada, an author, asks for an approval.");
    demo.run_step(
        &[&start[..], &["--data", r#"{"title": "Budget"}"#]].concat(),
        "author",
    )?;
    let first = demo.task(&entity, "reviewer")?;
    demo.explain("Nobody reviews their own request.");
    demo.expect_refusal(&["task", "decide", &first, "APPROVE"], "author")?;
    demo.explain("Rob, a reviewer, approves. The approvers get the next task.");
    demo.run_step(&["task", "decide", &first, "APPROVE"], "reviewer")?;
    let last = demo.task(&entity, "approver")?;
    demo.explain("Amy, an approver, approves.");
    demo.run_step(
        &["task", "decide", &last, "APPROVE", "--comment", "Fine."],
        "approver",
    )?;
    demo.explain("Who did what, and when:");
    demo.run_step(&["instance", "history", &entity], "author")
}

impl Demo<'_> {
    fn explain(&self, text: &str) {
        self.output.hint(&format!("\n# {text}"));
    }

    /// Shows a command and runs it as this person.
    fn run_step(&self, words: &[&str], person: &str) -> Result<()> {
        let mut words = [words, &["--as", person]].concat();
        if let Some(name) = &self.choice.dev {
            words.extend(["--dev", name]);
        }
        let line: Vec<_> = words.iter().map(|word| quoted(word)).collect();
        self.output.hint(&format!("$ wrkflw {}", line.join(" ")));
        let cli = Cli::try_parse_from(std::iter::once("wrkflw").chain(words))
            .context("a command of the demo is wrong")?;
        super::run(cli.command, self.resolved, self.output, self.environment)
    }

    /// The same for a command that is refused.
    fn expect_refusal(&self, words: &[&str], person: &str) -> Result<()> {
        let Err(error) = self.run_step(words, person) else {
            ensure!(false, "the host did not refuse this");
            return Ok(());
        };
        match error.downcast_ref::<Failure>() {
            Some(failure) if failure.exit == Exit::Refused => {
                self.output.failure(&error);
                Ok(())
            }
            _ => Err(error),
        }
    }

    /// The id of the open task about this entity that the person may claim.
    fn task(&self, entity: &str, person: &str) -> Result<String> {
        let client = ConnectionArgs::for_person(person, &self.choice).open(self.environment)?;
        let (kind, id) = entity.split_once('/').context("TYPE/ID")?;
        let query = [
            ("view", Some("available".to_owned())),
            ("entityType", Some(kind.to_owned())),
            ("entityId", Some(id.to_owned())),
        ];
        let tasks = client.get("/v1/tasks", &query)?;
        let task = tasks.pointer("/data/0/id").and_then(Value::as_str);
        Ok(task
            .with_context(|| format!("there is no task for {person}"))?
            .to_owned())
    }
}
