//! The tools that make a component of a flow in another language than Rust. The flow's own files pin their versions, and its
//! folder has their installation.

mod clang;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use anyhow::{Context as _, Result};

use super::super::Environment;
use super::super::failure::{Exit, Failure};
use super::super::output::Output;
use super::project::{Project, forget_outer_build};

/// The programs that a tool needs on the machine, and how to install them.
const NODE: &str = "install Node.js 18 or later with npm (Debian: apt-get install nodejs npm)";
const PYTHON: &str =
    "install Python 3.10 or later with venv (Debian: apt-get install python3-venv)";

/// Runs the tools of one flow.
pub(super) struct Tools<'a> {
    pub(super) project: &'a Project,
    pub(super) output: Output,
    pub(super) environment: &'a Environment,
}

impl Tools<'_> {
    /// The component of a flow in JavaScript or TypeScript.
    pub(super) fn node(&self) -> Result<Vec<u8>> {
        let folder = &self.project.folder;
        let installed = folder.join("node_modules/.package-lock.json");
        let mut named = self.project.language.packages().iter();
        if !named.all(|named| is_newer(&installed, &folder.join(named))) {
            self.output
                .hint("installing the packages of package.json and package-lock.json");
            let mut npm = self.command("npm");
            // Not `npm ci`: it demands packages for all systems, even packages that were never published.
            npm.args(["install", "--prefer-offline", "--no-audit", "--no-fund"]);
            self.run(npm, NODE, "npm cannot install what package.json names")?;
        }
        let (component, mut node) = (self.project.component(), self.command("node"));
        node.arg("sdk/build.mjs").arg(&component);
        self.run(node, NODE, "the flow cannot be built")?;
        read(&component)
    }

    /// The component of a flow in Python.
    pub(super) fn python(&self) -> Result<Vec<u8>> {
        let folder = &self.project.folder;
        let (wanted, installed) = ("requirements.txt", ".venv/requirements.txt");
        let wanted = fs::read(folder.join(wanted)).context("the flow has no requirements.txt")?;
        if fs::read(folder.join(installed)).ok().as_ref() != Some(&wanted) {
            self.output
                .hint("installing the packages of requirements.txt");
            let mut python = self.command("python3");
            python.args(["-m", "venv", ".venv"]);
            self.run(python, PYTHON, "python3 cannot make a virtual environment")?;
            let mut pip = self.command(".venv/bin/pip");
            pip.args(["install", "--disable-pip-version-check", "--requirement"]);
            pip.arg("requirements.txt");
            self.run(
                pip,
                PYTHON,
                "pip cannot install what requirements.txt names",
            )?;
            // Written last, so that only a complete installation counts.
            fs::write(folder.join(installed), wanted).context("cannot write into .venv")?;
        }
        let (component, mut tool) = (
            self.project.component(),
            self.command(".venv/bin/componentize-py"),
        );
        tool.args(["--wit-path", "sdk/wit", "--world", "flow"]);
        // Without stubs, the component would import clocks and files.
        tool.args(["componentize", "--stub-wasi"]);
        // Only the parts of packages that the flow imports become part of the component.
        let packages = site_packages(&folder.join(".venv/lib"));
        for path in ["src", "sdk"]
            .iter()
            .map(Path::new)
            .chain(packages.as_deref())
        {
            tool.arg("--python-path").arg(path);
        }
        tool.args(["flow", "--output"]);
        tool.arg(&component);
        self.run(tool, PYTHON, "the flow cannot be built")?;
        read(&component)
    }

    /// A program in the folder of the flow. A relative name is one of a program in that folder.
    fn command(&self, program: &str) -> Command {
        let folder = &self.project.folder;
        let mut command = if program.contains('/') {
            Command::new(folder.join(program))
        } else {
            Command::new(program)
        };
        forget_outer_build(&mut command, self.environment);
        command.current_dir(folder);
        command
    }

    /// Runs a tool. Its output is progress. With `--quiet`, the output is shown only if the tool fails.
    fn run(&self, mut command: Command, missing: &str, failed: &str) -> Result<()> {
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::null());
        let cannot = |_| Failure::new(Exit::Failed, format!("{name} cannot be run")).next(missing);
        let (succeeded, lines) = progress(&mut command, self.output).map_err(cannot)?;
        if succeeded {
            return Ok(());
        }
        let failure = Failure::new(Exit::Failed, failed).details(lines);
        Err(failure.next("fix the problems reported above").into())
    }
}

/// Runs a command and shows its output as progress, because standard output is only for data. With `--quiet`, its lines are
/// returned, to be shown if it fails.
pub(super) fn progress(command: &mut Command, output: Output) -> io::Result<(bool, Vec<String>)> {
    if !output.quiet {
        let status = command.stdout(Stdio::from(io::stderr())).status()?;
        return Ok((status.success(), Vec::new()));
    }
    let output = command.output()?;
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed);
    Ok((
        output.status.success(),
        printed.lines().map(str::to_owned).collect(),
    ))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("the tool left no {}", path.display()))
}

/// The packages of a virtual environment. The folder is named after the version of Python.
fn site_packages(lib: &Path) -> Option<PathBuf> {
    let folders = fs::read_dir(lib).ok()?.flatten();
    let mut packages = folders.map(|python| python.path().join("site-packages"));
    packages.find(|path| path.is_dir())
}

/// Whether `built` exists and is not older than its sources.
fn is_newer(built: &Path, of: &Path) -> bool {
    let changed = |path: &Path| fs::metadata(path).and_then(|found| found.modified());
    match (changed(built), changed(of)) {
        (Ok(built), Ok(of)) => built >= of,
        _ => false,
    }
}
