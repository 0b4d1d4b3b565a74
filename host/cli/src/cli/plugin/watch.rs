//! `wrkflw plugin watch`: builds, checks, tests and publishes a flow whenever a file of it changes.
//!
//! It builds the component quickly, with little optimisation: `wrkflw plugin build` makes the component for other people. It
//! checks the times and lengths of the files several times a second. A plugin has few files, and this method works on every
//! file system.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result};
use clap::Args;

use super::super::Environment;
use super::super::connection::ConnectionArgs;
use super::super::definition::publish_and_activate;
use super::super::failure::{Exit, Failure};
use super::super::flow_config::FlowConfig;
use super::super::output::{Output, counted};
use super::build::{self, For};
use super::project::Project;
use super::scenarios::{self, Subject};
use super::test::scenario_folder;
use wrkflw_sandbox::Compiler;

/// How often the files are looked at.
const LOOKS_EVERY: Duration = Duration::from_millis(150);
/// Limit of the files of a plugin that are watched.
const FILES_MAX: usize = 20_000;
/// Folders with what tools make, besides hidden ones.
const MADE: [&str; 5] = ["target", "build", "node_modules", "__pycache__", "venv"];

#[derive(Debug, Args)]
pub(in crate::cli) struct WatchArgs {
    /// Do not publish
    #[arg(long)]
    no_publish: bool,
    /// End after the first round; fails if that does
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// The times and lengths of files.
pub(super) type Files = BTreeMap<PathBuf, (Option<SystemTime>, u64)>;

pub(super) fn run(args: &WatchArgs, output: Output, environment: &Environment) -> Result<()> {
    let found = Project::find()?;
    let project = Project::require(found.as_ref())?;
    // The flow is the author's own. In the component of an interpreter, a change affects few functions.
    let mut subject = Subject::new(environment, Compiler::Incremental)?;
    let mut seen = files(&project.folder)?;
    loop {
        let began = Instant::now();
        let round = round(args, project, &mut subject, (output, environment));
        if args.once {
            return round;
        }
        if let Err(error) = round {
            output.failure(&error);
        }
        let took = began.elapsed();
        output.hint(&format!("waiting for changes ({} ms)", took.as_millis()));
        seen = changed(&project.folder, seen)?;
    }
}

/// Waits for a change, and then until no further change follows. Returns the files at that time.
fn changed(folder: &Path, seen: Files) -> Result<Files> {
    let mut last = seen.clone();
    loop {
        sleep(LOOKS_EVERY);
        let now = files(folder)?;
        if now != seen && now == last {
            return Ok(now);
        }
        last = now;
    }
}

/// Builds, checks, tests and publishes once. The first step that fails ends it.
fn round(
    args: &WatchArgs,
    project: &Project,
    subject: &mut Subject,
    (output, environment): (Output, &Environment),
) -> Result<()> {
    let mut steps = Steps {
        output,
        began: Instant::now(),
    };
    let built = build::build(project, For::Watching, (output, environment))?;
    steps.print(&format!("built {} bytes", built["sizeBytes"]));
    let config = FlowConfig::read(project.config())?;
    let component = PathBuf::from(built["path"].as_str().unwrap_or_default());
    subject.load(&component, &project.name, &config)?;
    subject.check()?;
    steps.print("checked");
    let paths = scenarios::files(&scenario_folder(project))?;
    let tested = subject.run(&paths, output);
    steps.print(&format!("{} passed", counted(tested.check()?, "scenario")));
    if args.no_publish {
        return Ok(());
    }
    let client = args.connection.open(environment)?;
    let bytes = fs::read(&component);
    let bytes = bytes.with_context(|| format!("cannot read {}", component.display()))?;
    let published = publish_and_activate(&client, &project.name, &bytes, config.parse()?.as_str())?;
    let what = if published["created"] == true {
        "published and activated"
    } else {
        "active already:"
    };
    steps.print(&format!("{what} {} {}", project.name, published["version"]));
    Ok(())
}

/// Prints a line for each step, with its time.
struct Steps {
    output: Output,
    began: Instant,
}

impl Steps {
    fn print(&mut self, what: &str) {
        let millis = self.began.elapsed().as_millis();
        self.output.hint(&format!("{what} ({millis} ms)"));
        self.began = Instant::now();
    }
}

/// The files of a plugin, without what tools make of them.
pub(super) fn files(folder: &Path) -> Result<Files> {
    let (mut found, mut folders) = (Files::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        // A folder or file may be removed meanwhile.
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            if name.starts_with('.') || (metadata.is_dir() && MADE.contains(&&*name)) {
                continue;
            }
            if metadata.is_dir() {
                folders.push(entry.path());
            } else {
                found.insert(entry.path(), (metadata.modified().ok(), metadata.len()));
            }
        }
        if found.len() > FILES_MAX {
            let message = format!("{} has more than {FILES_MAX} files", folder.display());
            return Err(Failure::new(Exit::Usage, message).into());
        }
    }
    Ok(found)
}
