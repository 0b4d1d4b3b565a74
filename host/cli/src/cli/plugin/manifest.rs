//! Manifests for the copies of this repository's crates in a new flow. They contain the settings that the originals inherit
//! from the workspace, and omit the dependencies of tests.

use std::collections::BTreeSet;

use toml::{Table, Value};

const WORKSPACE: &str = include_str!("../../../../../Cargo.toml");
const HEADER: &str = "# Made of the crate's own manifest by `wrkflw plugin new`.\n";
/// The path by which the SDK finds crates of the host in this repository. A new flow has them in the SDK's folder.
const HOST: &str = "../host/";
/// Marks a value as inherited from the workspace. The workspace's manifest has the values in the table of this name.
const INHERITED: &str = "workspace";

/// The manifest for the copy of a crate.
pub(super) fn carried(manifest: &str) -> String {
    let workspace: Table = toml::from_str(WORKSPACE).expect("the workspace's manifest is TOML");
    let workspace = &workspace[INHERITED];
    let mut manifest: Table = toml::from_str(manifest).expect("a crate's manifest is TOML");
    manifest.remove("lints");
    let of_tests = manifest.remove("dev-dependencies");
    let of_tests: BTreeSet<String> = table(of_tests.as_ref()).keys().cloned().collect();
    if let Some(Value::Table(package)) = manifest.get_mut("package") {
        for (member, value) in package {
            if value.get(INHERITED).is_some() {
                *value = workspace["package"][member.as_str()].clone();
            }
        }
    }
    let mut left_out = BTreeSet::new();
    if let Some(Value::Table(dependencies)) = manifest.get_mut("dependencies") {
        dependencies.retain(|name, value| {
            // An optional dependency that is also a dev-dependency belongs to a feature for tests.
            let kept = value.get("optional").is_none() || !of_tests.contains(name);
            if !kept {
                left_out.insert(format!("dep:{name}"));
            }
            kept
        });
        for (name, value) in dependencies {
            *value = dependency(value, &workspace["dependencies"], name);
        }
    }
    if let Some(Value::Table(features)) = manifest.get_mut("features") {
        for needs in features
            .iter_mut()
            .filter_map(|(_, needs)| needs.as_array_mut())
        {
            needs.retain(|need| !need.as_str().is_some_and(|need| left_out.contains(need)));
        }
    }
    let text = toml::to_string(&manifest).expect("a table of texts");
    format!("{HEADER}{text}")
}

/// A dependency with the settings that it inherits from the workspace.
fn dependency(value: &Value, workspace: &Value, name: &str) -> Value {
    let mut own = table(Some(value));
    if let Some(Value::String(path)) = own.get_mut("path") {
        *path = path.replace(HOST, "");
        return Value::Table(own);
    }
    if own.remove(INHERITED).is_none() {
        return value.clone();
    }
    let mut whole = match &workspace[name] {
        Value::String(version) => {
            Table::from_iter([("version".to_owned(), Value::String(version.clone()))])
        }
        other => table(Some(other)),
    };
    let shared = whole.get("features").and_then(Value::as_array).cloned();
    whole.extend(own);
    // Cargo adds the features of the crate to those of the workspace. Every other setting of the crate replaces that of the workspace.
    if let (Some(shared), Some(Value::Array(features))) = (shared, whole.get_mut("features")) {
        for feature in shared {
            if !features.contains(&feature) {
                features.push(feature);
            }
        }
    }
    Value::Table(whole)
}

fn table(value: Option<&Value>) -> Table {
    let table = value.and_then(Value::as_table);
    table.cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_carried_manifest_stands_alone() {
        let text = carried(
            "[package]\nname = \"one\"\nversion.workspace = true\nedition.workspace = true\n\
             [features]\ntesting = [\"dep:proptest\"]\nlong = [\"dep:jiff\"]\n\
             [dependencies]\nserde.workspace = true\njiff = { workspace = true, optional = true }\n\
             proptest = { workspace = true, optional = true }\n\
             uuid = { workspace = true, features = [\"serde\", \"v4\"] }\n\
             wrkflw-core = { path = \"../host/core\", optional = true }\n\
             [dev-dependencies]\nproptest.workspace = true\ntrybuild = \"1\"\n[lints]\nworkspace = true\n",
        );
        let manifest: Table = toml::from_str(&text).expect("TOML");
        let workspace: Table = toml::from_str(WORKSPACE).expect("TOML");
        let of_workspace = &workspace[INHERITED];
        assert_eq!(
            manifest["package"]["edition"],
            of_workspace["package"]["edition"]
        );
        let dependencies = manifest["dependencies"].as_table().expect("a table");
        let names: Vec<_> = dependencies.keys().map(String::as_str).collect();
        assert_eq!(names, ["jiff", "serde", "uuid", "wrkflw-core"]);
        // The features of the workspace are also features of the crate, each once.
        let features = |dependency: &Value| {
            let features = dependency["features"].as_array().expect("features");
            let names = features.iter().filter_map(Value::as_str);
            let mut names: Vec<_> = names.map(str::to_owned).collect();
            names.sort();
            names
        };
        let mut expected = features(&of_workspace["dependencies"]["uuid"]);
        expected.push("v4".to_owned());
        expected.sort();
        assert_eq!(features(&dependencies["uuid"]), expected);
        let jiff = &of_workspace["dependencies"]["jiff"];
        assert_eq!(dependencies["jiff"]["version"], jiff["version"]);
        assert_eq!(dependencies["jiff"]["features"], jiff["features"]);
        assert_eq!(dependencies["jiff"]["optional"].as_bool(), Some(true));
        assert_eq!(dependencies["wrkflw-core"]["path"].as_str(), Some("core"));
        assert_eq!(
            manifest["features"]["testing"].as_array().map(Vec::len),
            Some(0)
        );
        assert_eq!(
            manifest["features"]["long"].as_array().map(Vec::len),
            Some(1)
        );
        assert!(
            !text.contains("workspace = true") && !text.contains("trybuild"),
            "{text}"
        );
    }
}
