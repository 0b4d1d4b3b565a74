//! `wrkflw instance export --scenario`: makes a scenario of a recorded instance, to test the next version of its flow.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow};
use clap::Args;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::super::Environment;
use super::super::client::segment;
use super::super::failure::{Exit, Failure};
use super::super::output::Output;
use super::InstanceRefArgs;
use wrkflw_core::graph::Graph;
use wrkflw_core::ids::InstanceId;
use wrkflw_core::json::Json;
use wrkflw_scenario::record::{Entry, Rules, record};

/// Limit of the entries of an instance that are read.
const ENTRIES_MAX: usize = 20_000;
/// Limit of their texts together, in MiB. In parsed form they take several times as much memory.
const ENTRIES_MIB_MAX: usize = 128;
/// The entries of one page.
const PAGE: usize = 100;

#[derive(Debug, Args)]
pub(in crate::cli) struct ExportArgs {
    #[command(flatten)]
    target: InstanceRefArgs,
    /// As a scenario, for `wrkflw plugin test`
    #[arg(long, required = true)]
    scenario: bool,
    /// A YAML file that says which names and texts to keep, and which numbers to replace
    #[arg(long, value_name = "FILE")]
    redact: Option<PathBuf>,
    /// Write to this file
    #[arg(long, short = 'o', value_name = "FILE")]
    out: Option<PathBuf>,
}

/// A page of the audit. Its texts are not parsed further, so that numbers keep their digits.
#[derive(Deserialize)]
struct Page {
    data: Vec<Entry>,
    page: PageCursor,
}

#[derive(Deserialize)]
struct PageCursor {
    next: Option<String>,
}

/// The version of the instance, as the API shows it.
#[derive(Deserialize)]
struct Version {
    config: Json,
    graph: Graph,
}

pub(in crate::cli) fn run(
    args: &ExportArgs,
    output: Output,
    environment: &Environment,
) -> Result<()> {
    let rules = match &args.redact {
        None => Rules::default(),
        Some(file) => {
            let text = fs::read_to_string(file);
            let text = text.with_context(|| format!("cannot read {}", file.display()))?;
            Rules::read(&text).map_err(|problem| {
                Failure::new(Exit::Invalid, format!("{}:{problem}", file.display()))
            })?
        }
    };
    let (client, path) = args.target.open(environment)?;
    let instance = client.get(&path, &[])?;
    let id: Uuid = instance["id"].as_str().unwrap_or_default().parse()?;
    let key = instance["definitionKey"].as_str().unwrap_or_default();
    let version = format!(
        "/v1/definitions/{}/versions/{}",
        segment(key),
        instance["definitionVersion"]
    );
    let version: Version = serde_json::from_str(&client.get_text(&version)?)?;
    let entries = entries(&path, |query| client.get_text(query))?;
    let scenario = record(
        InstanceId(id),
        entries,
        (&version.config, &version.graph),
        &rules,
    );
    let scenario =
        scenario.map_err(|why| Failure::new(Exit::Conflict, format!("no scenario: {why}")))?;
    output.hint(
        "names and texts were replaced; if a step fails because the flow depends on one, keep that one by a rule (--redact FILE)",
    );
    for kept in &scenario.kept {
        output.hint(&format!("kept: {kept}"));
    }
    let Some(out) = &args.out else {
        return output.text("scenario", &scenario.yaml);
    };
    fs::write(out, &scenario.yaml).with_context(|| format!("cannot write {}", out.display()))?;
    output.record(
        &json!({ "path": out, "steps": scenario.steps }),
        &[("path", "/path"), ("steps", "/steps")],
    )?;
    output.hint(&format!(
        "next: read it, then wrkflw plugin test {}",
        out.display()
    ));
    Ok(())
}

/// The whole audit of the instance, which `read` reads page by page.
fn entries(path: &str, read: impl Fn(&str) -> Result<String>) -> Result<Vec<Entry>> {
    let (mut entries, mut bytes) = (Vec::new(), 0);
    let mut after = String::new();
    loop {
        let query = format!("{path}/audit?limit={PAGE}{after}");
        let text = read(&query)?;
        bytes += text.len();
        if bytes > ENTRIES_MIB_MAX << 20 {
            return Err(anyhow!(
                "the audit entries of the instance have more than {ENTRIES_MIB_MAX} MiB"
            ));
        }
        let page: Page = serde_json::from_str(&text).context("the audit cannot be read")?;
        entries.extend(page.data);
        if entries.len() > ENTRIES_MAX {
            return Err(anyhow!(
                "the instance has more than {ENTRIES_MAX} audit entries"
            ));
        }
        match page.page.next {
            Some(next) => after = format!("&after={}", segment(&next)),
            None => return Ok(entries),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_audit_is_read_up_to_a_number_of_bytes() {
        let pages = |count: usize| {
            entries("/v1/instances/1", |query| {
                let number: usize = query.split("after=").nth(1).unwrap_or("1").parse()?;
                let next = (number < count).then(|| (number + 1).to_string());
                let page = json!({ "data": [], "page": { "next": next } });
                Ok(page.to_string() + &" ".repeat(1 << 20))
            })
        };
        assert!(pages(ENTRIES_MIB_MAX - 1).expect("entries").is_empty());
        let refused = pages(ENTRIES_MIB_MAX + 1).expect_err("too many");
        assert!(refused.to_string().contains("128 MiB"), "{refused}");
    }
}
