//! `wrkflw audit list`, `checkpoints` and `self-approvals`: the server's answers for auditors. Unlike `verify`, these commands trust
//! the server.

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};

use crate::cli::Environment;
use crate::cli::connection::ConnectionArgs;
use crate::cli::definition::PageArgs;
use crate::cli::instance::{AuditFilterArgs, ENTRIES};
use crate::cli::output::{Column, Format, Output};

#[derive(Debug, Args)]
pub(in crate::cli) struct ListArgs {
    #[command(flatten)]
    filter: AuditFilterArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct CheckpointsArgs {
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    connection: ConnectionArgs,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct SelfApprovalsArgs {
    /// Only what was decided at or after this, as 2030-01-31T08:00:00Z
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Only what was decided before this
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Only instances of this definition
    #[arg(long, value_name = "KEY")]
    definition: Option<String>,
    #[command(flatten)]
    connection: ConnectionArgs,
}

const CHECKPOINTS: &[Column] = &[
    ("NUMBER", "/number"),
    ("SIGNED", "/signedAt"),
    ("FROM", "/firstLeaf"),
    ("LEAVES", "/size"),
    ("STATUS", "/status"),
    ("KEY", "/keyId"),
    ("ROOT", "/root"),
];
const REPORT: &[Column] = &[
    ("decisions examined", "/decisionsExamined"),
    ("own work", "/ownWork"),
    ("self-approvals", "/selfApprovals"),
    ("refused attempts", "/refusedAttempts"),
];
const FINDINGS: &[Column] = &[
    ("DECIDED", "/decidedAt"),
    ("ACTOR", "/actor"),
    ("FOR", "/onBehalfOf"),
    ("OUTCOME", "/outcome"),
    ("STATE", "/state"),
    ("INSTANCE", "/instanceId"),
    ("TASK", "/taskId"),
];

/// The hint at a list that is empty because nothing is signed yet.
const UNSIGNED: &str = "no entry is signed yet: a host with the setting `checkpoint_keys` and the role `timers` signs new entries";

/// The hint about entries that a page lacks because no checkpoint covers them yet.
fn lacking(page: &Value) -> Option<String> {
    let is_empty = page["data"].as_array().is_some_and(Vec::is_empty);
    match page.get("lastCheckpointAt")? {
        Value::Null => Some(format!("{UNSIGNED}, and only those are listed")),
        Value::String(at) if is_empty => Some(format!(
            "the last checkpoint was signed at {at}; entries that it does not cover are not listed yet"
        )),
        _ => None,
    }
}

impl ListArgs {
    pub(super) fn run(&self, output: Output, environment: &Environment) -> Result<()> {
        let client = self.connection.open(environment)?;
        let page = client.get("/v1/audit", &self.filter.query())?;
        let place: &[Column] = &[("STREAM", "/stream"), ("ID", "/streamId")];
        output.list(&page, &[place, ENTRIES].concat())?;
        if let Some(words) = lacking(&page).filter(|_| output.format == Format::Table) {
            output.hint(&words);
        }
        Ok(())
    }
}

impl CheckpointsArgs {
    pub(super) fn run(&self, output: Output, environment: &Environment) -> Result<()> {
        let client = self.connection.open(environment)?;
        let page = client.get("/v1/checkpoints", &self.page.query())?;
        output.list(&page, CHECKPOINTS)?;
        if output.format == Format::Table && page["data"].as_array().is_some_and(Vec::is_empty) {
            output.hint(UNSIGNED);
        }
        Ok(())
    }
}

impl SelfApprovalsArgs {
    pub(super) fn run(&self, output: Output, environment: &Environment) -> Result<()> {
        let client = self.connection.open(environment)?;
        let query = [
            ("from", self.from.clone()),
            ("until", self.until.clone()),
            ("definitionKey", self.definition.clone()),
        ];
        let report = client.get("/v1/compliance/self-approvals", &query)?;
        output.record(&report, REPORT)?;
        let findings = &report["findings"];
        if output.format == Format::Json || findings.as_array().is_none_or(Vec::is_empty) {
            return Ok(());
        }
        output.list(&json!({ "data": findings }), FINDINGS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_says_whether_checkpoints_are_signed() {
        let lacking = |data: Value, at: Value| {
            lacking(&json!({ "data": data, "lastCheckpointAt": at })).unwrap_or_default()
        };
        let at = || json!("2030-01-31T08:00:00Z");
        assert!(lacking(json!([]), Value::Null).contains("`checkpoint_keys`"));
        assert!(lacking(json!([]), at()).contains("signed at 2030-01-31T08:00:00Z"));
        assert_eq!(lacking(json!([{}]), at()), "");
    }
}
