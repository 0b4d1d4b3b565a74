//! The lock file of a new flow. It has the crate versions that this program was built with. On the machine that built the
//! program, cargo has these versions already, so a new flow builds there without a network.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

const OURS: &str = include_str!("../../../../../Cargo.lock");

/// The lock file of a flow with these crates of its own.
pub(super) fn lock(mut own: Vec<Table>) -> String {
    let ours: Table = toml::from_str(OURS).expect("cargo writes TOML");
    let packages = by_name(&ours);
    for one in &mut own {
        let here = packages.get(one["name"].as_str().unwrap_or_default());
        let here = here.and_then(|here| here.first()).copied();
        one["dependencies"] = Value::Array(references(one, here));
    }
    let is_own = |name: &String| own.iter().any(|one| one["name"].as_str() == Some(name));
    let direct = own.iter().flat_map(|one| texts(one.get("dependencies")));
    let mut wanted: Vec<String> = direct.filter(|name| !is_own(name)).collect();
    let mut taken = BTreeMap::new();
    while let Some(reference) = wanted.pop() {
        // A name without a version refers to the only version.
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

/// The entry of a crate with this manifest.
pub(super) fn package(manifest: &str) -> Table {
    let manifest: Table = toml::from_str(manifest).expect("the scaffold's manifests are TOML");
    let names = manifest.get("dependencies").and_then(Value::as_table);
    let names: BTreeSet<_> = names.into_iter().flat_map(Table::keys).collect();
    let names = names.into_iter().cloned().map(Value::String).collect();
    let of_package = |member: &str| manifest["package"][member].clone();
    Table::from_iter([
        ("name".to_owned(), of_package("name")),
        ("version".to_owned(), of_package("version")),
        ("dependencies".to_owned(), Value::Array(names)),
    ])
}

/// The dependencies of `entry`, with their versions in `here`, the entry of the same crate in the lock file of this program.
fn references(entry: &Table, here: Option<&Table>) -> Vec<Value> {
    let known: Vec<_> = texts(here.and_then(|here| here.get("dependencies"))).collect();
    let exact = |name: String| {
        let mut known = known.iter();
        let exact = known.find(|known| known.split(' ').next() == Some(&name));
        Value::String(exact.cloned().unwrap_or(name))
    };
    texts(entry.get("dependencies")).map(exact).collect()
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

fn texts(list: Option<&Value>) -> impl Iterator<Item = String> {
    list.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|item| Some(item.as_str()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, dependencies: &[&str]) -> Table {
        let dependencies = dependencies.iter().map(|name| format!("{name} = \"1\"\n"));
        let dependencies = dependencies.collect::<String>();
        package(&format!(
            "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\n[dependencies]\n{dependencies}"
        ))
    }

    fn locked(own: Vec<Table>) -> Table {
        toml::from_str(&lock(own)).expect("TOML")
    }

    #[test]
    fn the_lock_holds_what_the_flow_needs_and_nothing_of_the_host() {
        let table = locked(vec![
            entry("my-flow", &["serde", "wrkflw-guest"]),
            entry("wrkflw-guest", &["serde", "wit-bindgen"]),
        ]);
        let names: BTreeSet<_> = by_name(&table).into_keys().map(str::to_owned).collect();
        for needed in [
            "my-flow",
            "wrkflw-guest",
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

    #[test]
    fn of_several_versions_it_holds_the_one_that_the_crate_uses_here() {
        let ours: Table = toml::from_str(OURS).expect("TOML");
        let of_core = by_name(&ours)["wrkflw-core"][0];
        let used = texts(of_core.get("dependencies")).find(|name| name.starts_with("base64"));
        let used = used.expect("the core encodes bytes");
        let version = used.split(' ').nth(1).expect("one of several versions");
        let table = locked(vec![entry("wrkflw-core", &["base64"])]);
        let held = &by_name(&table)["base64"];
        assert_eq!(held.len(), 1);
        assert_eq!(held[0]["version"].as_str(), Some(version));
    }
}
