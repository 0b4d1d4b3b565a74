//! Reports on one instance besides its state: who may act, its audit entries, and the chain of custody of its decisions.

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};

use super::super::Environment;
use super::super::definition::PageArgs;
use super::super::failure::{Exit, Failure};
use super::super::output::{Column, Format, Output, counted};
use super::InstanceRefArgs;

const VERIFIED: &[Column] = &[
    ("instance", "/instanceId"),
    ("entries", "/entries"),
    ("decisions", "/decisions"),
    ("delegations", "/delegations"),
    ("valid seals", "/seals"),
    ("leaves", "/leaves"),
    ("findings", "/count"),
];
const ELIGIBILITY: &[Column] = &[
    ("TASK", "/taskId"),
    ("STATE", "/state"),
    ("LABEL", "/label"),
    ("OWNER", "/owner"),
    ("PERSON", "/person"),
    ("ELIGIBLE", "/eligible"),
    ("WHY", "/why"),
];
/// Also of entries of the whole tenant.
pub(in crate::cli) const ENTRIES: &[Column] = &[
    ("SEQ", "/seq"),
    ("AT", "/occurredAt"),
    ("TYPE", "/type"),
    ("ACTOR", "/actor"),
    ("REVISION", "/revision"),
    ("TASK", "/taskId"),
    ("PAYLOAD", "/payload"),
];
/// Also of decisions and delegations about an entity.
pub(in crate::cli) const CUSTODY: &[Column] = &[
    ("WHEN", "/occurredAt"),
    ("INSTANCE", "/instanceId"),
    ("ACTION", "/action"),
    ("STATE", "/state"),
    ("OUTCOME", "/outcome"),
    ("ACTOR", "/actor"),
    ("FOR", "/onBehalfOf"),
    ("TO", "/owner"),
    ("COMMENT", "/comment"),
    ("SEAL", "/signature/status"),
    ("KEY", "/signature/keyId"),
];

const CHANGES: &[Column] = &[
    ("AT", "/at"),
    ("ENTRY", "/entry"),
    ("STATE", "/state"),
    ("TRIGGER", "/trigger"),
    ("ACTOR", "/actor"),
    ("POINTER", "/pointer"),
    ("BEFORE", "/before"),
    ("AFTER", "/after"),
];

#[derive(Debug, Args)]
pub(in crate::cli) struct ChangesArgs {
    #[command(flatten)]
    target: InstanceRefArgs,
    #[command(flatten)]
    page: PageArgs,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct EligibilityArgs {
    #[command(flatten)]
    target: InstanceRefArgs,
    /// At this moment of the past, as 2030-01-31T08:00:00Z. Default: now
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct AuditArgs {
    #[command(flatten)]
    target: InstanceRefArgs,
    #[command(flatten)]
    filter: AuditFilterArgs,
}

/// Which entries of the audit.
#[derive(Debug, Args)]
pub(in crate::cli) struct AuditFilterArgs {
    /// Only what this person did
    #[arg(long, value_name = "PERSON")]
    actor: Option<String>,
    /// Only entries of this type, such as `DECISION_RECORDED`
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Only what happened at or after this, as 2030-01-31T08:00:00Z
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Only what happened before this
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// The order: occurredAt, which is the default, or -occurredAt for the newest first
    #[arg(long, value_name = "FIELD", allow_hyphen_values = true)]
    sort: Option<String>,
    #[command(flatten)]
    page: PageArgs,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct CustodyArgs {
    #[command(flatten)]
    target: InstanceRefArgs,
    #[command(flatten)]
    page: PageArgs,
}

impl AuditFilterArgs {
    pub(in crate::cli) fn query(&self) -> Vec<(&'static str, Option<String>)> {
        let filters = [
            ("actor", self.actor.clone()),
            ("type", self.kind.clone()),
            ("from", self.from.clone()),
            ("until", self.until.clone()),
            ("sort", self.sort.clone()),
        ];
        filters.into_iter().chain(self.page.query()).collect()
    }
}

impl EligibilityArgs {
    pub(super) fn run(&self, output: Output, environment: &Environment) -> Result<()> {
        let (client, path) = self.target.open(environment)?;
        let query = [("at", self.at.clone())];
        let answer = client.get(&format!("{path}/eligibility"), &query)?;
        if output.format == Format::Json {
            return output.record(&answer, &[]);
        }
        let tasks = answer["tasks"].as_array().into_iter().flatten();
        let data: Vec<Value> = tasks.flat_map(people).collect();
        output.list(&json!({ "data": data }), ELIGIBILITY)
    }
}

impl ChangesArgs {
    pub(super) fn run(&self, output: Output, environment: &Environment) -> Result<()> {
        let (client, path) = self.target.open(environment)?;
        let mut page = client.get(&format!("{path}/changes"), &self.page.query())?;
        if output.format == Format::Json {
            return output.list(&page, CHANGES);
        }
        // A line for each value.
        let steps = page["data"].as_array().into_iter().flatten();
        let lines = steps.flat_map(|step| {
            let changes = step["changes"].as_array().into_iter().flatten();
            changes.map(|change| {
                let mut line = step.clone();
                for member in ["pointer", "before", "after"] {
                    line[member] = change[member].clone();
                }
                line
            })
        });
        page["data"] = lines.collect();
        output.list(&page, CHANGES)
    }
}

/// Verifies the record of an instance. A finding is a failure.
pub(super) fn verify(
    target: &InstanceRefArgs,
    output: Output,
    environment: &Environment,
) -> Result<()> {
    let (client, path) = target.open(environment)?;
    let verified = client.get(&format!("{path}/verification"), &[])?;
    output.record(&verified, VERIFIED)?;
    let count = verified["count"].as_u64().unwrap_or_default();
    if count == 0 {
        return Ok(());
    }
    let findings = verified["findings"].as_array().into_iter().flatten();
    let line = |finding: &Value| {
        let text = |name: &str| finding[name].as_str().unwrap_or_default().to_owned();
        format!("{}  {}", text("code"), text("detail"))
    };
    let failure = Failure::new(Exit::Failed, counted(count, "finding"));
    Err(failure.details(findings.map(line)).into())
}

/// A line for each person of a task, or one that nobody may do it.
fn people(task: &Value) -> Vec<Value> {
    let line = |person: &Value, eligible: bool, why: &Value| {
        let why = why.as_array().into_iter().flatten().map(reason);
        json!({
            "taskId": task["taskId"], "state": task["state"], "label": task["label"], "owner": task["owner"],
            "person": person, "eligible": eligible, "why": why.collect::<Vec<_>>(),
        })
    };
    let all = |list: &str| task[list].as_array().cloned().unwrap_or_default();
    let eligible = all("eligible");
    let mut lines: Vec<Value> = eligible
        .iter()
        .map(|one| line(&one["person"], true, &one["ways"]))
        .collect();
    let unknown = all("unknown");
    for line in &mut lines {
        if unknown.contains(&line["person"])
            && let Some(why) = line["why"].as_array_mut()
        {
            why.push(json!("not in the directory"));
        }
    }
    if lines.is_empty() {
        lines.push(line(&json!("(nobody)"), true, &Value::Null));
    }
    let excluded = all("excluded");
    lines.extend(
        excluded
            .iter()
            .map(|one| line(&one["person"], false, &one["exclusions"])),
    );
    lines
}

/// A way or a reason in a few words: its kind, and whom it is about.
fn reason(one: &Value) -> String {
    match one {
        Value::String(text) => text.clone(),
        Value::Object(members) => {
            let texts = members.values().filter_map(Value::as_str);
            texts.collect::<Vec<_>>().join(" ")
        }
        other => other.to_string(),
    }
}

impl AuditArgs {
    pub(super) fn run(&self, output: Output, environment: &Environment) -> Result<()> {
        let (client, path) = self.target.open(environment)?;
        let page = client.get(&format!("{path}/audit"), &self.filter.query())?;
        output.list(&page, ENTRIES)
    }
}

impl CustodyArgs {
    pub(super) fn run(&self, output: Output, environment: &Environment) -> Result<()> {
        let (client, path) = self.target.open(environment)?;
        let page = client.get(&format!("{path}/custody"), &self.page.query())?;
        output.list(&page, CUSTODY)
    }
}
