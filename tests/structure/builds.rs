//! A build of the workspace compiles each crate once. See `tests/one-build`.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

/// The build plan of cargo for the tests.
fn unit_graph() -> Value {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["test", "--workspace", "--no-run", "--locked", "--offline"])
        .args(["--unit-graph", "-Z", "unstable-options"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        // Cargo prints the graph only with nightly features.
        .env("RUSTC_BOOTSTRAP", "1");
    let done = cargo.output().expect("cargo");
    let printed = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{printed}");
    serde_json::from_slice(&done.stdout).expect("a graph")
}

/// The libraries that are compiled more than once, each with the features that not all of its builds have.
fn compiled_again(graph: &Value) -> Vec<String> {
    let mut builds: BTreeMap<&str, Vec<Vec<&str>>> = BTreeMap::new();
    for unit in graph["units"].as_array().expect("units") {
        let kinds = unit["target"]["kind"].as_array().expect("kinds");
        let is_library = kinds.iter().any(|kind| kind == "lib" || kind == "rlib");
        if unit["mode"] == "build" && is_library {
            let features = unit["features"].as_array().expect("features").iter();
            let features = features.filter_map(Value::as_str).collect();
            let package = unit["pkg_id"].as_str().expect("a package");
            builds.entry(package).or_default().push(features);
        }
    }
    builds.retain(|_, features| features.len() > 1);
    let again = builds.into_iter().map(|(package, builds)| {
        let is_in_all = |name: &&str| builds.iter().all(|features| features.contains(name));
        let mut differ: Vec<_> = builds.concat();
        differ.retain(|name| !is_in_all(name));
        format!("{package}: {differ:?}")
    });
    again.collect()
}

#[test]
fn no_crate_is_compiled_twice() {
    let again = compiled_again(&unit_graph());
    assert!(
        again.is_empty(),
        "give these the same features in tests/one-build/Cargo.toml:\n{}",
        again.join("\n")
    );
}

#[test]
fn a_crate_with_two_sets_of_features_is_found() {
    let unit = |package: &str, mode: &str, features: &[&str]| {
        serde_json::json!({
            "pkg_id": package, "mode": mode, "features": features, "target": { "kind": ["lib"] },
        })
    };
    let graph = serde_json::json!({ "units": [
        unit("a", "build", &["std"]), unit("b", "build", &[]), unit("a", "build", &["std", "alloc"]), unit("b", "test", &["x"]),
    ]});
    assert_eq!(compiled_again(&graph), [r#"a: ["alloc"]"#]);
}
