//! `wrkflw plugin new`: the files of a new flow, with the SDK's source beside it until the SDK is published.
//!
//! The tests of a flow in Rust run the host's core, so its source is copied, too.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::ValueEnum as _;
use include_dir::{Dir, DirEntry, include_dir};
use serde_json::json;

use super::super::failure::{Exit, Failure};
use super::super::output::Output;
use super::language::{Language, MANIFEST};
use super::scenarios::FOLDER;
use super::{lock, manifest};

static TEMPLATE: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../guest-sdk/template");
static NODE_TEMPLATES: Dir<'static> =
    include_dir!("$CARGO_MANIFEST_DIR/../../guest-sdk/typescript/template");
static NODE_SDK: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../guest-sdk/typescript/sdk");
static PYTHON_TEMPLATE: Dir<'static> =
    include_dir!("$CARGO_MANIFEST_DIR/../../guest-sdk/python/template");
static PYTHON_SDK: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../guest-sdk/python/sdk");
static C_TEMPLATE: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../guest-sdk/c/template");
static C_SDK: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../guest-sdk/c/sdk");
static SDK_SOURCE: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../guest-sdk/src");
static SDK_WIT: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../wit/flow@0.1.0");
static TRANSLATION: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../wit/translation@0.1.0");
static CORE_SOURCE: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../core/src");
static FAULT_SOURCE: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../fault/src");

/// The suffix of files with placeholders.
const ENDING: &str = ".tmpl";
/// The parts of the Rust template that every language uses.
const SHARED: [&str; 3] = ["README.md", "config.json", FOLDER];
/// The folder of the SDK in the new flow.
const SDK_FOLDER: &str = "sdk";
/// The copied crates: the folder of each within [`SDK_FOLDER`], and its manifest.
const CRATES: [(&str, &str); 3] = [
    ("", include_str!("../../../../../guest-sdk/Cargo.toml")),
    ("core", include_str!("../../../../core/Cargo.toml")),
    ("fault", include_str!("../../../../fault/Cargo.toml")),
];
const NAME_CHARS_MAX: usize = 64;
/// Names that a flow cannot have, because tools or crates of the flow have them.
const TAKEN: [&str; 10] = [
    "alloc",
    "core",
    "proc-macro",
    "serde",
    "std",
    "test",
    "wrkflw",
    "wrkflw-core",
    "wrkflw-fault",
    "wrkflw-guest",
];

/// Whether a flow may have this name, in any language: lower-case letters, digits and hyphens, a letter first.
pub(super) fn is_flow_name(name: &str) -> bool {
    let follows = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.len() <= NAME_CHARS_MAX
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(follows)
        && !TAKEN.contains(&name)
}

pub(super) fn new(name: &str, language: Language, init: bool, output: Output) -> Result<()> {
    if !is_flow_name(name) {
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
    let files = match language {
        Language::Rust => crate_files(name)?,
        Language::Ts => node_files(name, language, "ts")?,
        Language::Js => node_files(name, language, "js")?,
        Language::Python => other_files(name, language, &[&PYTHON_TEMPLATE], &PYTHON_SDK)?,
        Language::C => other_files(name, language, &[&C_TEMPLATE], &C_SDK)?,
    };
    // No file is overwritten: if one of them exists, nothing is written.
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
    let path = folder
        .canonicalize()
        .with_context(|| format!("cannot determine the path of {}", folder.display()))?;
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

/// Files by their paths in the folder of a flow.
type Files = Vec<(PathBuf, Vec<u8>)>;

/// All files of a new flow in Rust.
fn crate_files(name: &str) -> Result<Files> {
    let mut files = filled_in(&TEMPLATE, name, Language::Rust)?;
    let mut packages = Vec::new();
    for (path, content) in &files {
        if path == Path::new("Cargo.toml") {
            packages.push(lock::package(&String::from_utf8_lossy(content)));
        }
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
    files.push(scenario_schema());
    let lock = lock::lock(packages);
    files.push((PathBuf::from("Cargo.lock"), lock.into_bytes()));
    Ok(files)
}

/// All files of a new flow in JavaScript or TypeScript.
fn node_files(name: &str, language: Language, own: &str) -> Result<Files> {
    let template = |folder| {
        let found = NODE_TEMPLATES.get_dir(folder);
        found.with_context(|| format!("there is no template {folder}"))
    };
    let templates = [template("common")?, template(own)?];
    other_files(name, language, &templates, &NODE_SDK)
}

/// All files of a new flow in a language other than Rust: the templates, the SDK with the contract, and the manifest.
fn other_files(
    name: &str,
    language: Language,
    templates: &[&Dir<'static>],
    sdk: &Dir<'static>,
) -> Result<Files> {
    let mut files = filled_in(&TEMPLATE, name, language)?;
    files.retain(|(path, _)| SHARED.iter().any(|shared| path.starts_with(shared)));
    for template in templates {
        files.extend(filled_in(template, name, language)?);
    }
    for (folder, carried) in [("", sdk), ("wit", &SDK_WIT)] {
        let folder = Path::new(SDK_FOLDER).join(folder);
        let sources = contents(carried).into_iter();
        files.extend(sources.map(|(path, content)| (folder.join(path), content.to_vec())));
    }
    files.push(scenario_schema());
    let language = language
        .to_possible_value()
        .context("the language has no name")?;
    let manifest = format!(
        "name = \"{name}\"\nlanguage = \"{}\"\n",
        language.get_name()
    );
    files.push((PathBuf::from(MANIFEST), manifest.into_bytes()));
    Ok(files)
}

/// The schema of scenarios, for editors.
fn scenario_schema() -> (PathBuf, Vec<u8>) {
    let path = Path::new(FOLDER).join("scenario.schema.json");
    (path, wrkflw_scenario::SCHEMA.as_bytes().to_vec())
}

/// The files of a template, their placeholders filled in.
fn filled_in(template: &Dir<'static>, name: &str, language: Language) -> Result<Files> {
    let mut files = Vec::new();
    for (path, content) in contents(template) {
        // Paths begin at the embedded folder, and the template may be a subfolder of it.
        let path = path.strip_prefix(template.path()).unwrap_or(&path);
        let Some(target) = path.to_str().and_then(|path| path.strip_suffix(ENDING)) else {
            continue;
        };
        let target = match target {
            "gitignore" => ".gitignore",
            "npmrc" => ".npmrc",
            target => target,
        };
        let text = String::from_utf8(content.to_vec())
            .with_context(|| format!("the template {target} is not UTF-8"))?;
        let text = text
            .replace("{{name}}", name)
            .replace("{{main}}", language.main())
            .replace("{{sdk}}", SDK_FOLDER);
        files.push((PathBuf::from(target), text.into_bytes()));
    }
    Ok(files)
}

/// Whether a path is that of a test. Tests of the copied crates are not copied.
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
