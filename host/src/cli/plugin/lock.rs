//! The lock file of a new flow: those versions of crates that this program itself was built with. Cargo has
//! them on the machine that built it, so a new flow resolves and builds there without a network.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

const OURS: &str = include_str!("../../../../Cargo.lock");
/// The SDK's package.
const SDK: &str = "wrkflw-guest";

/// The lock file of a flow of this name, whose crate uses `direct` beside the SDK; the SDK uses `of_sdk`.
pub(super) fn lock(name: &str, direct: &[String], of_sdk: &[String]) -> String {
    let ours: Table = toml::from_str(OURS).expect("cargo writes TOML");
    let packages = by_name(&ours);
    let mut wanted: Vec<String> = direct
        .iter()
        .chain(of_sdk)
        .filter(|name| *name != SDK)
        .cloned()
        .collect();
    let mut taken = BTreeMap::new();
    while let Some(reference) = wanted.pop() {
        // A name alone means the only version; otherwise the version follows.
        let mut words = reference.split(' ');
        let (wanted_name, version) = (words.next().unwrap_or_default(), words.next());
        let mut of_name = packages.get(wanted_name).into_iter().flatten();
        let newest_fit =
            of_name.rfind(|package| version.is_none() || package["version"].as_str() == version);
        let Some(package) = newest_fit else { continue };
        let key = (wanted_name.to_owned(), package["version"].to_string());
        if taken.insert(key, (*package).clone()).is_none() {
            wanted.extend(texts(package.get("dependencies")));
        }
    }
    let own = [package(name, direct), package(SDK, of_sdk)];
    let all: Vec<Value> = own
        .into_iter()
        .chain(taken.into_values())
        .map(Value::Table)
        .collect();
    let file = Table::from_iter([
        ("version".to_owned(), ours["version"].clone()),
        ("package".to_owned(), Value::Array(all)),
    ]);
    toml::to_string(&file).expect("a table of texts")
}

/// The names of the crates that a manifest depends on.
pub(super) fn dependencies(manifest: &str) -> Vec<String> {
    let manifest: Table = toml::from_str(manifest).expect("the scaffold's manifests are TOML");
    let names = manifest["dependencies"]
        .as_table()
        .into_iter()
        .flat_map(Table::keys);
    names
        .cloned()
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

fn by_name(lock: &Table) -> BTreeMap<&str, Vec<&Table>> {
    let mut packages = BTreeMap::<&str, Vec<&Table>>::new();
    for package in lock["package"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_table)
    {
        packages
            .entry(package["name"].as_str().unwrap_or_default())
            .or_default()
            .push(package);
    }
    packages
}

fn package(name: &str, dependencies: &[String]) -> Table {
    let dependencies = dependencies.iter().cloned().map(Value::String).collect();
    Table::from_iter([
        ("name".to_owned(), Value::String(name.to_owned())),
        ("version".to_owned(), Value::String("0.1.0".to_owned())),
        ("dependencies".to_owned(), Value::Array(dependencies)),
    ])
}

fn texts(list: Option<&Value>) -> impl Iterator<Item = String> {
    list.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|item| Some(item.as_str()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_holds_what_the_flow_needs_and_nothing_of_the_host() {
        let text = lock(
            "my-flow",
            &["serde".into(), SDK.into()],
            &["serde".into(), "wit-bindgen".into()],
        );
        let table: Table = toml::from_str(&text).expect("TOML");
        let names: BTreeSet<_> = by_name(&table).into_keys().map(str::to_owned).collect();
        for needed in [
            "my-flow",
            SDK,
            "serde",
            "serde_derive",
            "wit-bindgen",
            "syn",
        ] {
            assert!(names.contains(needed), "{needed} is missing");
        }
        for other in ["wasmtime", "sqlx", "rdkafka", "axum", "trybuild"] {
            assert!(!names.contains(other), "{other} is needless");
        }
    }
}
