//! `wrkflw plugin check`: checks a component as publishing does, without a server.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow};
use serde_json::json;

use super::super::failure::{Exit, Failure};
use super::super::flow_config::FlowConfig;
use super::super::output::{Column, Output};
use super::super::{Environment, block_on};
use super::project::Project;
use super::scenarios::settings;
use wrkflw_core::ids::TenantId;
use wrkflw_engine::offload::Offload;
use wrkflw_engine::{Error, check_component};
use wrkflw_sandbox::Sandbox;

/// Stands for the tenant: without a server there is none.
pub(super) const NOBODY: TenantId = TenantId(0);
const ADMITTED: &[Column] = &[
    ("file", "/path"),
    ("digest", "/digest"),
    ("sdk", "/sdk"),
    ("wit", "/wit"),
    ("states", "/states"),
    ("own work", "/ownWork"),
    ("separate", "/separate"),
    ("reads", "/reads"),
    ("seen by", "/seenBy"),
];

pub(super) fn run(
    file: Option<PathBuf>,
    config: Option<PathBuf>,
    output: Output,
    environment: &Environment,
) -> Result<()> {
    let project = if file.is_some() && config.is_some() {
        None
    } else {
        Project::of_file(file.as_deref())?
    };
    let path = match file {
        Some(file) => file,
        None => built(Project::require(project.as_ref())?)?,
    };
    let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let file = FlowConfig::read(config.or_else(|| project?.config()))?;
    let config = file.parse()?;
    let settings = settings(environment, environment.compiler())?;
    let admission = block_on(async {
        let sandbox = Sandbox::new(settings).map_err(|error| anyhow!(error))?;
        check_component(&sandbox, (&Offload::default(), NOBODY), &bytes, &config)
            .await
            .map_err(|error| refusal(error, &file.name))
    })?;
    let states = &admission.graph.states;
    let names = |own_work: bool| {
        states
            .iter()
            .filter(|state| state.own_work || !own_work)
            .map(|state| &state.name)
            .collect::<Vec<_>>()
    };
    // Left out where everybody of the tenant sees the instances.
    let seen_by = admission.graph.observers.as_ref().map(|groups| {
        let groups = groups.iter().map(String::as_str);
        std::iter::once("participants")
            .chain(groups)
            .collect::<Vec<_>>()
    });
    let admitted = json!({
        "path": path,
        "digest": admission.digest.to_string(),
        "sdk": admission.sdk,
        "wit": admission.wit,
        "states": names(false),
        "ownWork": names(true),
        "separate": admission.graph.separate,
        "reads": admission.graph.reads,
        "seenBy": seen_by,
    });
    output.record(&admitted, ADMITTED)?;
    output.hint(&format!("checked with {}", file.name));
    output.hint("next: wrkflw definition publish");
    Ok(())
}

/// The component of a project. A warning says if it is older than a source.
fn built(project: &Project) -> Result<PathBuf> {
    let built = project.built()?;
    if let Some(outdated) = project.outdated(&built)? {
        Output::warn(&format!("{outdated}: `wrkflw plugin build` makes it anew"));
    }
    Ok(built)
}

/// `config` is what messages call the config.
pub(super) fn refusal(error: Error, config: &str) -> anyhow::Error {
    let Error::Unpublishable(problems) = error else {
        return error.into();
    };
    let problems = problems.iter();
    Failure::new(Exit::Invalid, "the component cannot be published")
        .details(problems.map(|problem| problem.with_file(config)))
        .next("fix these, then run `wrkflw plugin build` and `wrkflw plugin check` again")
        .into()
}
