//! `wrkflw plugin new`: the files of a new flow, with the SDK's source beside it until the SDK is published.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use include_dir::{Dir, DirEntry, include_dir};
use serde_json::json;

use super::super::failure::{Exit, Failure};
use super::super::output::Output;
use super::lock;
use crate::domain::check::is_key;

static TEMPLATE: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../guest-sdk/template");
static SDK_SOURCE: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../guest-sdk/src");
static SDK_WIT: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../wit/flow@0.1.0");

/// The ending of files that are filled in.
const ENDING: &str = ".tmpl";
/// The template of the SDK's own manifest.
const SDK_MANIFEST: &str = "sdk.toml.tmpl";
/// Where the SDK goes, seen from the new flow.
const SDK_FOLDER: &str = "sdk";
/// Names that cargo or the flow itself has given away.
const TAKEN: [&str; 7] = [
    "alloc",
    "core",
    "proc-macro",
    "serde",
    "std",
    "test",
    "wrkflw-guest",
];

pub(super) fn new(name: &str, init: bool, output: Output) -> Result<()> {
    if !is_key(name) || TAKEN.contains(&name) {
        let failure = Failure::new(
            Exit::Invalid,
            format!("{name} cannot be the name of a flow"),
        );
        return Err(failure
            .next(
                "take 1 to 64 of a-z, 0-9 and '-', beginning with a letter, such as travel-request",
            )
            .into());
    }
    let folder = if init {
        PathBuf::from(".")
    } else {
        PathBuf::from(name)
    };
    if !init && folder.exists() {
        let failure = Failure::new(Exit::Conflict, format!("{name} exists already"));
        return Err(failure
            .next("take another name, or go into it and run `wrkflw plugin new NAME --init`")
            .into());
    }
    let files = files(name)?;
    // Nobody's work is written over, and nothing is written unless everything can be.
    if let Some((path, _)) = files.iter().find(|(path, _)| folder.join(path).exists()) {
        let failure = Failure::new(
            Exit::Conflict,
            format!("{} exists already", folder.join(path).display()),
        );
        return Err(failure
            .next("move it away, or begin in an empty folder")
            .into());
    }
    for (path, content) in &files {
        write(&folder.join(path), content)?;
    }
    let path = folder.canonicalize().context("the new folder is there")?;
    output.record(
        &json!({ "name": name, "path": path, "files": files.len() }),
        &[("name", "/name"), ("path", "/path")],
    )?;
    let into = if init {
        String::new()
    } else {
        format!("cd {name} && ")
    };
    output.hint(&format!(
        "next: {into}wrkflw plugin test && wrkflw plugin build && wrkflw definition publish"
    ));
    Ok(())
}

/// All files of a new flow, by their paths in its folder.
fn files(name: &str) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut files = Vec::new();
    for (path, content) in contents(&TEMPLATE) {
        let Some(target) = path
            .to_str()
            .and_then(|path| path.strip_suffix(ENDING))
            .filter(|_| path != Path::new(SDK_MANIFEST))
        else {
            continue;
        };
        let target = if target == "gitignore" {
            ".gitignore"
        } else {
            target
        };
        let text = String::from_utf8(content.to_vec())
            .with_context(|| format!("the template {target} is text"))?;
        files.push((
            PathBuf::from(target),
            text.replace("{{name}}", name)
                .replace("{{sdk}}", SDK_FOLDER)
                .into_bytes(),
        ));
    }
    let sdk = Path::new(SDK_FOLDER);
    let manifest = TEMPLATE
        .get_file(SDK_MANIFEST)
        .context("the template has the SDK's manifest")?
        .contents();
    let (sources, wit) = (contents(&SDK_SOURCE), contents(&SDK_WIT));
    files.push((sdk.join("Cargo.toml"), manifest.to_vec()));
    files.extend(
        sources
            .into_iter()
            .map(|(path, content)| (sdk.join("src").join(path), content.to_vec())),
    );
    files.extend(
        wit.into_iter()
            .map(|(path, content)| (sdk.join("wit").join(path), content.to_vec())),
    );
    let dependencies = |wanted: &Path| {
        let manifest = files
            .iter()
            .find(|(path, _)| path == wanted)
            .map(|(_, content)| String::from_utf8_lossy(content));
        manifest
            .map(|manifest| lock::dependencies(&manifest))
            .unwrap_or_default()
    };
    let lock = lock::lock(
        name,
        &dependencies(Path::new("Cargo.toml")),
        &dependencies(&sdk.join("Cargo.toml")),
    );
    files.push((PathBuf::from("Cargo.lock"), lock.into_bytes()));
    Ok(files)
}

fn contents(folder: &Dir<'static>) -> Vec<(PathBuf, &'static [u8])> {
    let mut found = Vec::new();
    for entry in folder.entries() {
        match entry {
            DirEntry::File(file) => found.push((file.path().to_owned(), file.contents())),
            DirEntry::Dir(folder) => found.extend(contents(folder)),
        }
    }
    found
}

fn write(path: &Path, content: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
    }
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}
