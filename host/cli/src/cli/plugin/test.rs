//! `wrkflw plugin test`: the native tests of a flow, and its scenarios with the component.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Args;
use serde_json::json;

use super::super::Environment;
use super::super::failure::{Exit, Failure};
use super::super::flow_config::FlowConfig;
use super::super::output::Output;
use super::build::{self, For};
use super::language::Language;
use super::project::{Project, cargo};
use super::scenarios::{self, FOLDER, Subject};
use super::tools::progress;

#[derive(Debug, Args)]
pub(in crate::cli) struct TestArgs {
    /// Scenarios: files, or folders of them. Default: the native tests, and all in the plugin's folder `scenarios`; with
    /// --component, at least one must be named
    files: Vec<PathBuf>,
    /// The component. Default: what `wrkflw plugin build` makes of this folder
    #[arg(long, value_name = "FILE")]
    component: Option<PathBuf>,
    /// Settings of the flow, a JSON file. Default: config.json of the plugin's folder; with --component, none
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Passed to `cargo test`, which runs the native tests of a crate if neither scenarios nor a component are named
    #[arg(last = true)]
    arguments: Vec<String>,
}

pub(super) fn run(args: &TestArgs, output: Output, environment: &Environment) -> Result<()> {
    let found = Project::find_unless(args.component.is_some())?;
    let project = match args.component {
        Some(_) => None,
        None => Some(Project::require(found.as_ref())?),
    };
    let crate_ = project.filter(|project| project.language == Language::Rust);
    let crate_ = crate_.filter(|_| args.files.is_empty());
    all_is_used(args, crate_.is_some())?;
    if let Some(project) = crate_ {
        native(project, &args.arguments, output, environment)?;
    }
    let files = match project {
        Some(project) if args.files.is_empty() => scenarios::files(&scenario_folder(project))?,
        _ => scenarios::files(&args.files)?,
    };
    let passed = if files.is_empty() {
        0
    } else {
        let component = match (&args.component, project) {
            (Some(component), _) => component.clone(),
            (None, project) => {
                let project = Project::require(project)?;
                build::build(project, For::Publishing, (output, environment))?;
                project.component()
            }
        };
        let config = args.config.clone().or_else(|| project?.config());
        let name = project.map_or("flow", |project| &project.name);
        let mut subject = Subject::new(environment, environment.compiler())?;
        subject.load(&component, name, &FlowConfig::read(config)?)?;
        subject.run(&files, output).check()?
    };
    let name = project.map(|project| project.name.as_str());
    output.record(
        &json!({ "name": name, "passed": true, "scenarios": passed }),
        &[
            ("name", "/name"),
            ("passed", "/passed"),
            ("scenarios", "/scenarios"),
        ],
    )?;
    if files.is_empty() {
        output.hint(&format!(
            "there are no scenarios: write one, {FOLDER}/NAME.yaml"
        ));
    }
    Ok(())
}

/// Refuses arguments that would be ignored silently: a component or a folder without scenarios, and arguments of tests that do not run.
fn all_is_used(args: &TestArgs, runs_native_tests: bool) -> Result<()> {
    if args.component.is_some() && args.files.is_empty() {
        let message = "--component needs scenarios: name files, or folders of them";
        return Err(Failure::new(Exit::Usage, message)
            .next(format!(
                "such as `wrkflw plugin test --component FILE {FOLDER}`"
            ))
            .into());
    }
    if !runs_native_tests && !args.arguments.is_empty() {
        let message = "arguments after `--` are for `cargo test`, which does not run here: it runs for a crate, if neither scenarios nor a component are named";
        return Err(Failure::new(Exit::Usage, message)
            .next("leave them out")
            .into());
    }
    for path in args.files.iter().filter(|path| path.is_dir()) {
        if scenarios::files(std::slice::from_ref(path))?.is_empty() {
            let message = format!("{} has no scenario: no .yaml, and no .yml", path.display());
            return Err(Failure::new(Exit::NotFound, message).into());
        }
    }
    Ok(())
}

/// The folder of the project's scenarios, if it has one.
pub(super) fn scenario_folder(project: &Project) -> Vec<PathBuf> {
    let folder = project.folder.join(FOLDER);
    let here = std::env::current_dir().ok();
    // Shown as short as a person in this folder writes it.
    let short = here.and_then(|here| folder.strip_prefix(here).map(Path::to_owned).ok());
    let folder = Some(short.unwrap_or(folder)).filter(|folder| folder.is_dir());
    folder.into_iter().collect()
}

/// Runs `cargo test` for the crate.
fn native(
    project: &Project,
    arguments: &[String],
    output: Output,
    environment: &Environment,
) -> Result<()> {
    let mut command = cargo(None, environment);
    command
        .current_dir(&project.folder)
        .arg("test")
        .args(arguments);
    if output.quiet {
        command.arg("--quiet");
    }
    let (succeeded, lines) = progress(&mut command, output).context("cargo cannot be run")?;
    if succeeded {
        return Ok(());
    }
    let failure = Failure::new(Exit::Failed, format!("tests of {} fail", project.name));
    Err(failure.details(lines).into())
}
