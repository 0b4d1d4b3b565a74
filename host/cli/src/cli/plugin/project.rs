//! The plugin in the current folder: a crate that cargo reports, or a flow in another language with a manifest.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::super::Environment;
use super::super::failure::{Exit, Failure};
use super::language::{Language, MANIFEST, Manifest};
use super::toolchain::choose;
use super::watch;

/// The folders with the sources of a flow and of its SDK, in every language.
const SOURCES: [&str; 2] = ["src", "sdk"];
/// Variables that cargo sets for a program that it runs. They describe that program's build, not the plugin's.
const OF_OUTER_BUILD: [&str; 7] = [
    "CARGO",
    "RUSTC",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTDOC",
    "RUSTUP_TOOLCHAIN",
    "LD_LIBRARY_PATH",
    "RUST_RECURSION_COUNT",
];

pub(in crate::cli) struct Project {
    pub(in crate::cli) name: String,
    pub(in crate::cli) language: Language,
    pub(in crate::cli) folder: PathBuf,
    /// The folder for build results: cargo's target folder, or `build`.
    pub(in crate::cli) target: PathBuf,
}

impl Project {
    /// The flow of the current folder or of the nearest one above it.
    pub(in crate::cli) fn find() -> Result<Option<Project>> {
        let here = std::env::current_dir().context("cannot determine the current folder")?;
        for folder in here.ancestors() {
            if let Some(Manifest { name, language }) = Manifest::of(folder)? {
                return Ok(Some(Project {
                    name,
                    language,
                    folder: folder.to_owned(),
                    target: folder.join("build"),
                }));
            }
            if folder.join("Cargo.toml").is_file() {
                return Project::of_cargo(&here);
            }
        }
        Ok(None)
    }

    fn of_cargo(here: &Path) -> Result<Option<Project>> {
        let mut cargo = Command::new("cargo");
        choose(&mut cargo);
        let output = cargo
            .args([
                "metadata",
                "--no-deps",
                "--offline",
                "--format-version",
                "1",
            ])
            .stderr(Stdio::piped())
            .output()
            .map_err(|_| no_cargo())?;
        if !output.status.success() {
            let printed = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(Failure::new(
                Exit::Failed,
                format!("cargo does not understand this folder: {printed}"),
            )
            .into());
        }
        let metadata = serde_json::from_slice(&output.stdout)
            .context("the answer of `cargo metadata` is no JSON")?;
        Ok(nearest(&metadata, here))
    }

    /// Like [`Self::find`], but does not search if the project is `needless`.
    pub(super) fn find_unless(needless: bool) -> Result<Option<Project>> {
        if needless { Ok(None) } else { Project::find() }
    }

    /// The flow of the current folder, if this file was built from it. Without a file, like [`Self::find`].
    pub(in crate::cli) fn of_file(file: Option<&Path>) -> Result<Option<Project>> {
        let Some(file) = file else {
            return Project::find();
        };
        let found = Project::find().map_err(|error| match error.downcast::<Failure>() {
            Ok(failure) => failure
                .next("pass --config, and to `definition publish` --key: the folder is then not searched")
                .into(),
            Err(error) => error,
        })?;
        Ok(found.filter(|project| project.has_built(file)))
    }

    /// Whether a file is in the folder for build results, however its path is written.
    fn has_built(&self, file: &Path) -> bool {
        let (file, target) = (fs::canonicalize(file), fs::canonicalize(&self.target));
        matches!((file, target), (Ok(file), Ok(target)) if file.starts_with(&target))
    }

    pub(in crate::cli) fn require(found: Option<&Project>) -> Result<&Project> {
        let missing = || {
            let message = format!(
                "this folder is no plugin: it has no {MANIFEST}, and no Cargo.toml with a package"
            );
            Failure::new(Exit::Usage, message)
                .next("go into the plugin's folder, begin one with `wrkflw plugin new NAME`, or name a file")
        };
        found.ok_or_else(|| missing().into())
    }

    /// The path of this flow's component.
    pub(super) fn component(&self) -> PathBuf {
        let folder = match self.language {
            Language::Rust => self.target.join("components"),
            Language::Ts | Language::Js | Language::Python | Language::C => self.target.clone(),
        };
        folder.join(&self.name).with_extension("wasm")
    }

    /// The path of the component. Fails if it is not built.
    pub(in crate::cli) fn built(&self) -> Result<PathBuf> {
        let path = self.component();
        if path.is_file() {
            return Ok(path);
        }
        let failure = Failure::new(
            Exit::NotFound,
            format!("{} is not built: there is no {}", self.name, path.display()),
        );
        Err(failure.next("wrkflw plugin build").into())
    }

    /// Says that the component is out of date, because one of the sources is newer.
    pub(in crate::cli) fn outdated(&self, component: &Path) -> Result<Option<String>> {
        let changed = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified());
        let built =
            changed(component).with_context(|| format!("cannot read {}", component.display()))?;
        let named = [self.language.manifest()];
        let named = named.iter().chain(self.language.packages());
        let mut sources: Vec<_> = named
            .map(|name| self.folder.join(name))
            .map(|path| (changed(&path).ok(), path))
            .collect();
        for folder in SOURCES {
            let files = watch::files(&self.folder.join(folder))?;
            sources.extend(files.into_iter().map(|(path, (time, _))| (time, path)));
        }
        let newest = sources.into_iter().max();
        let newer = newest.filter(|(time, _)| time.is_some_and(|time| time > built));
        Ok(newer.map(|(_, source)| {
            let source = source.strip_prefix(&self.folder).unwrap_or(&source);
            let (component, source) = (component.display(), source.display());
            format!("{component} is older than {source}")
        }))
    }

    /// The settings of the flow, if it has some.
    pub(in crate::cli) fn config(&self) -> Option<PathBuf> {
        Some(self.folder.join("config.json")).filter(|path| path.is_file())
    }
}

fn nearest(metadata: &Value, here: &Path) -> Option<Project> {
    let target = PathBuf::from(metadata["target_directory"].as_str()?);
    let packages = metadata["packages"]
        .as_array()?
        .iter()
        .filter_map(|package| {
            let folder = Path::new(package["manifest_path"].as_str()?)
                .parent()?
                .to_owned();
            let name = package["name"].as_str()?.to_owned();
            here.starts_with(&folder).then(|| Project {
                name,
                language: Language::Rust,
                folder,
                target: target.clone(),
            })
        });
    packages.max_by_key(|project| project.folder.components().count())
}

/// A command that runs cargo, of this toolchain if one is named.
pub(super) fn cargo(toolchain: Option<&str>, environment: &Environment) -> Command {
    let mut command = Command::new("cargo");
    forget_outer_build(&mut command, environment);
    match toolchain {
        Some(toolchain) => {
            command.arg(format!("+{toolchain}"));
        }
        None => choose(&mut command),
    }
    command
}

/// Removes the variables of the cargo that runs this program.
pub(super) fn forget_outer_build(command: &mut Command, environment: &Environment) {
    if environment.under_cargo {
        for name in OF_OUTER_BUILD {
            command.env_remove(name);
        }
    }
}

pub(super) fn no_cargo() -> Failure {
    Failure::new(Exit::Failed, "cargo cannot be run").next("install Rust from https://rustup.rs")
}
