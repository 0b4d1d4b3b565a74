//! `wrkflw plugin new`: the files of a new flow, with the SDK's source beside it until the SDK is published.
//!
//! The tests of a flow run the host's core, so its source is copied, too.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use include_dir::{Dir, DirEntry, include_dir};
use serde_json::json;

use super::super::failure::{Exit, Failure};
use super::super::output::Output;
use super::scenarios::FOLDER;
use super::{lock, manifest};

static TEMPLATE: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../guest-sdk/template");
static SDK_SOURCE: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../guest-sdk/src");
static TRANSLATION: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../wit/translation@0.1.0");
static CORE_SOURCE: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../core/src");
static FAULT_SOURCE: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../fault/src");

/// The suffix of files with placeholders.
const ENDING: &str = ".tmpl";
/// The folder of the SDK in the new flow.
const SDK_FOLDER: &str = "sdk";
/// The copied crates: their folder within that of the SDK, and their manifests.
const CRATES: [(&str, &str); 3] = [
    ("", include_str!("../../../../../guest-sdk/Cargo.toml")),
    ("core", include_str!("../../../../core/Cargo.toml")),
    ("fault", include_str!("../../../../fault/Cargo.toml")),
];
const CRATE_NAME_CHARS_MAX: usize = 64;
/// Names that cargo or the flow itself uses.
const TAKEN: [&str; 9] = [
    "alloc",
    "core",
    "proc-macro",
    "serde",
    "std",
    "test",
    "wrkflw-core",
    "wrkflw-fault",
    "wrkflw-guest",
];

/// Whether it may be the name of a flow's crate: lower-case letters, digits and hyphens, a letter first.
fn is_crate_name(name: &str) -> bool {
    let follows = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.len() <= CRATE_NAME_CHARS_MAX
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(follows)
}

pub(super) fn new(name: &str, init: bool, output: Output) -> Result<()> {
    if !is_crate_name(name) || TAKEN.contains(&name) {
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
    // No file is overwritten, and nothing is written unless everything can be.
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
    let mut packages = Vec::new();
    for (path, content) in contents(&TEMPLATE) {
        let Some(target) = path.to_str().and_then(|path| path.strip_suffix(ENDING)) else {
            continue;
        };
        let target = if target == "gitignore" {
            ".gitignore"
        } else {
            target
        };
        let text = String::from_utf8(content.to_vec())
            .with_context(|| format!("the template {target} is text"))?;
        let text = text
            .replace("{{name}}", name)
            .replace("{{sdk}}", SDK_FOLDER);
        if target == "Cargo.toml" {
            packages.push(lock::package(&text));
        }
        files.push((PathBuf::from(target), text.into_bytes()));
    }
    let sdk = Path::new(SDK_FOLDER);
    for (folder, here) in CRATES {
        let text = manifest::carried(here);
        packages.push(lock::package(&text));
        files.push((sdk.join(folder).join("Cargo.toml"), text.into_bytes()));
    }
    let folders = [
        ("src", &SDK_SOURCE),
        ("translation", &TRANSLATION),
        ("core/src", &CORE_SOURCE),
        ("fault/src", &FAULT_SOURCE),
    ];
    for (folder, carried) in folders {
        let sources = contents(carried).into_iter();
        let sources = sources.filter(|(path, _)| !is_test(path));
        files
            .extend(sources.map(|(path, content)| (sdk.join(folder).join(path), content.to_vec())));
    }
    let schema = Path::new(FOLDER).join("scenario.schema.json");
    files.push((schema, wrkflw_scenario::SCHEMA.as_bytes().to_vec()));
    let lock = lock::lock(packages);
    files.push((PathBuf::from("Cargo.lock"), lock.into_bytes()));
    Ok(files)
}

/// Tests of the copied crates stay in this repository.
fn is_test(path: &Path) -> bool {
    let mut parts = path.iter();
    parts.any(|part| part == "tests" || part == "tests.rs")
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
