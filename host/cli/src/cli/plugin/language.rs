//! The languages in which a flow may be written, and the manifest of a flow that is not a Rust crate.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use serde::Deserialize;

use super::super::failure::{Exit, Failure};

/// The manifest's file. A Rust flow has its `Cargo.toml` instead.
pub(super) const MANIFEST: &str = "flow.toml";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::cli) enum Language {
    /// Rust
    #[default]
    Rust,
    /// TypeScript, which `QuickJS` runs
    Ts,
    /// JavaScript, which `QuickJS` runs
    Js,
    /// Python, which `CPython` runs
    Python,
    /// C, which clang compiles
    C,
}

impl Language {
    /// The file with the logic of a flow.
    pub(super) fn main(self) -> &'static str {
        match self {
            Language::Rust => "src/lib.rs",
            Language::Ts => "src/flow.ts",
            Language::Js => "src/flow.js",
            Language::Python => "src/flow.py",
            Language::C => "src/flow.c",
        }
    }

    /// The file that names a flow.
    pub(super) fn manifest(self) -> &'static str {
        match self {
            Language::Rust => "Cargo.toml",
            Language::Ts | Language::Js | Language::Python | Language::C => MANIFEST,
        }
    }

    /// The files that name the packages of a flow, if its manifest does not.
    pub(super) fn packages(self) -> &'static [&'static str] {
        match self {
            Language::Rust | Language::C => &[],
            Language::Ts | Language::Js => &["package.json", "package-lock.json"],
            Language::Python => &["requirements.txt"],
        }
    }
}

/// The content of `flow.toml`.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    /// The name of the flow, and the key of its definition.
    pub(super) name: String,
    pub(super) language: Language,
}

impl Manifest {
    /// The manifest of this folder. None if it has none.
    pub(super) fn of(folder: &Path) -> Result<Option<Manifest>> {
        let path = folder.join(MANIFEST);
        if !path.is_file() {
            return Ok(None);
        }
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let manifest = Manifest::read(&text).map_err(|error| {
            let message = format!("{} cannot be read: {error}", path.display());
            Failure::new(Exit::Invalid, message).next(
                "it has two lines: name = \"my-flow\", and language = \"ts\", \"js\", \"python\" or \"c\"",
            )
        })?;
        Ok(Some(manifest))
    }

    fn read(text: &str) -> Result<Manifest, String> {
        let manifest: Manifest =
            toml::from_str(text).map_err(|error| error.message().to_owned())?;
        if manifest.language == Language::Rust {
            return Err("a flow in Rust has a Cargo.toml instead".into());
        }
        if !super::scaffold::is_flow_name(&manifest.name) {
            return Err(format!("{:?} cannot be the name of a flow", manifest.name));
        }
        Ok(manifest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_names_the_flow_and_its_language_and_nothing_else() {
        let read = |text: &str| Manifest::read(text);
        let manifest = Manifest {
            name: "my-flow".into(),
            language: Language::Ts,
        };
        assert_eq!(
            read("name = \"my-flow\"\nlanguage = \"ts\"\n"),
            Ok(manifest)
        );
        for (text, words) in [
            ("name = \"my-flow\"", "language"),
            ("name = \"my-flow\"\nlanguage = \"cobol\"", "cobol"),
            ("name = \"my-flow\"\nlanguage = \"rust\"", "Cargo.toml"),
            ("name = \"../flow\"\nlanguage = \"ts\"", "../flow"),
            (
                "name = \"my-flow\"\nlanguage = \"ts\"\ntool = \"x\"",
                "tool",
            ),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    /// The TypeScript SDK has hand-written records of the contract, because authors see them.
    #[test]
    fn the_records_of_typescript_are_those_of_the_contract() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut resolve = wit_bindgen_core::wit_parser::Resolve::default();
        let contract = resolve.push_dir(root.join("wit/flow@0.1.0"));
        contract.expect("the contract can be read");
        let ours = fs::read_to_string(root.join("guest-sdk/typescript/sdk/contract.ts"));
        let ours = ours
            .expect("the SDK is there")
            .replace("interface EventRecord", "interface Event");
        let mut compared = 0;
        for (_, definition) in &resolve.types {
            let (Some(name), wit_bindgen_core::wit_parser::TypeDefKind::Record(record)) =
                (&definition.name, &definition.kind)
            else {
                continue;
            };
            let Some((_, body)) = ours.split_once(&format!("interface {} {{", pascal(name))) else {
                continue;
            };
            let (body, _) = body.split_once("\n}").expect("an end");
            let members = body
                .lines()
                .filter_map(|line| line.strip_prefix("  ")?.split_once(": "));
            let members: Vec<_> = members
                .map(|(member, _)| member)
                .filter(|name| !name.starts_with('/'))
                .collect();
            let fields: Vec<_> = record
                .fields
                .iter()
                .map(|field| camel(&field.name))
                .collect();
            assert_eq!(members, fields, "{name}");
            compared += 1;
        }
        assert!(compared > 20, "only {compared} records were compared");
    }

    fn pascal(name: &str) -> String {
        let words = name
            .split('-')
            .map(|word| word[..1].to_uppercase() + &word[1..]);
        words.collect()
    }

    fn camel(name: &str) -> String {
        let (first, rest) = name.split_once('-').unwrap_or((name, ""));
        if rest.is_empty() {
            first.into()
        } else {
            first.to_owned() + &pascal(rest)
        }
    }
}
