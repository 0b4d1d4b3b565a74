//! Who may know whom: the host's modules, the crates that each is confined to, and the border between host and SDK.

use super::tree::{File, Finding, Tree, places};
use super::{assert_tidy, fake, rules};

/// What a module may name besides itself.
const EDGES: [(&str, &[&str]); 16] = [
    ("asyncapi", &["domain"]),
    ("clock", &[]),
    // It makes each module's settings out of flags, variables and the file.
    (
        "config",
        &[
            "domain", "engine", "http", "outbox", "store", "wasm", "webhook",
        ],
    ),
    ("diagram", &["domain"]),
    ("domain", &["fault"]),
    ("engine", &["clock", "domain", "fault", "store", "wasm"]),
    // Lines that are nothing but in a process that tests run.
    ("fault", &[]),
    (
        "http",
        &[
            "asyncapi",
            "clock",
            "diagram",
            "domain",
            "engine",
            "fault",
            "store",
            "telemetry",
        ],
    ),
    ("outbox", &["clock", "domain", "fault", "store"]),
    ("roles", &[]),
    ("sample", &[]),
    ("store", &["domain", "fault"]),
    ("telemetry", &["clock"]),
    ("wasm", &["domain", "fault"]),
    ("webhook", &["clock", "domain", "fault", "store"]),
    // All of them: it puts the host together.
    (
        "cli",
        &[
            "asyncapi",
            "clock",
            "config",
            "diagram",
            "domain",
            "engine",
            "fault",
            "http",
            "outbox",
            "roles",
            "sample",
            "store",
            "telemetry",
            "wasm",
            "webhook",
        ],
    ),
];

/// Crates that one module alone may name.
const CONFINED: [(&str, &str); 4] = [
    ("sqlx", "store"),
    ("wasmtime", "wasm"),
    ("rdkafka", "outbox"),
    ("axum", "http"),
];

/// Crates that the domain may name: pure ones.
const OF_THE_DOMAIN: [&str; 13] = [
    "base64",
    "jiff",
    "jsonschema",
    "jsonschema_regex",
    "regex_automata",
    "regex_syntax",
    "serde",
    "serde_json",
    "sha2",
    "thiserror",
    "url",
    "unicode_normalization",
    "uuid",
];

/// The module of a file in the host, from `domain/turn/plan.rs`: `["domain", "turn", "plan"]`.
fn module(file: &File) -> Vec<&str> {
    let inner = file
        .path
        .strip_prefix("host/src/")
        .and_then(|path| path.strip_suffix(".rs"))
        .unwrap_or_default();
    inner.split('/').filter(|part| *part != "mod").collect()
}

/// The modules that a line names, from the root of the crate.
fn named<'a>(line: &'a str, from: &[&str]) -> Vec<&'a str> {
    let after = |place: usize| {
        line[place..]
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .next()
    };
    let mut names: Vec<_> = places(line, "crate")
        .filter_map(|place| after(line[place..].find("::")? + place + 2))
        .collect();
    for place in places(line, "super").filter(|place| !line[..*place].ends_with("super::")) {
        let supers = line[place..]
            .split("::")
            .take_while(|part| *part == "super")
            .count();
        if supers == from.len() {
            names.extend(after(place + supers * "super::".len()));
        }
    }
    names
}

fn edges(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree
        .files("host/src/", ".rs")
        .filter(|file| !file.is_test())
    {
        let path = module(file);
        if matches!(path[..], ["lib" | "main"]) {
            continue;
        }
        let Some((_, may)) = EDGES.iter().find(|(module, _)| *module == path[0]) else {
            findings.push(file.finding(
                "module",
                format!("say in tests/tidy/edges.rs whom {} may know", path[0]),
            ));
            continue;
        };
        for (number, line) in file.code() {
            for name in named(line, &path) {
                let known = EDGES.iter().any(|(module, _)| *module == name);
                if known && name != path[0] && !may.contains(&name) {
                    findings.push(file.finding(
                        "edge",
                        format!("line {number}: {} may not know {name}", path[0]),
                    ));
                }
            }
        }
    }
    findings
}

fn confined(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files("host/src/", ".rs") {
        for (name, home) in CONFINED {
            let mut lines = file.code().filter(|(_, line)| names_crate(line, name));
            if let Some((number, _)) = lines.next().filter(|_| module(file)[0] != home) {
                findings.push(file.finding(
                    "confined",
                    format!("line {number}: {name} is named in {home} alone"),
                ));
            }
        }
    }
    findings
}

fn names_crate(line: &str, name: &str) -> bool {
    places(line, name)
        .any(|place| line[place + name.len()..].starts_with("::") && !line[..place].ends_with("::"))
}

fn purity(tree: &Tree, dependencies: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files("host/src/domain", ".rs") {
        for (number, line) in file.code() {
            let named = dependencies
                .iter()
                .filter(|name| !OF_THE_DOMAIN.contains(&name.as_str()) && names_crate(line, name));
            findings.extend(named.map(|name| {
                file.finding(
                    "purity",
                    format!("line {number}: the domain may not name {name}"),
                )
            }));
            if line.contains("async fn") || line.contains(".await") {
                findings.push(
                    file.finding("purity", format!("line {number}: the domain does not wait")),
                );
            }
        }
    }
    findings
}

/// The crates that a manifest names, as code names them.
fn dependencies(manifest: &str) -> Vec<String> {
    let section = manifest
        .split("\n[")
        .find(|section| section.starts_with("dependencies]"))
        .unwrap_or_default();
    let names = section
        .lines()
        .skip(1)
        .filter_map(|line| line.split(['.', ' ', '=']).next());
    names
        .filter(|name| !name.is_empty() && !name.starts_with('#'))
        .map(|name| name.replace('-', "_"))
        .collect()
}

/// Host and SDK meet in the WIT alone.
fn border(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (crate_, other) in [("host/", "guest-sdk"), ("guest-sdk/", "host")] {
        for file in tree.files(crate_, "Cargo.toml") {
            if file.text.lines().any(|line| {
                line.contains(&format!("\"../{other}\"")) || line.starts_with("wrkflw-guest")
            }) {
                findings.push(file.finding("border", format!("depends on {other}")));
            }
        }
        for file in tree.files(crate_, ".rs") {
            let mut code = file.code();
            let shared = |line: &str| {
                (line.contains("#[path") || line.contains("include!(")) && line.contains(other)
            };
            if let Some((number, _)) = code.find(|(_, line)| shared(line)) {
                findings
                    .push(file.finding("border", format!("line {number}: takes code of {other}")));
            }
        }
    }
    findings
}

#[test]
fn modules_know_whom_they_may() {
    assert_tidy(&edges(&Tree::read()));
}

#[test]
fn crates_stay_in_their_folders() {
    assert_tidy(&confined(&Tree::read()));
}

#[test]
fn the_domain_is_pure() {
    let tree = Tree::read();
    let manifest = tree
        .files("host/Cargo.toml", "")
        .next()
        .expect("a manifest");
    let dependencies = dependencies(&manifest.text);
    assert!(
        dependencies.iter().any(|name| name == "tokio"),
        "{dependencies:?}"
    );
    assert_tidy(&purity(&tree, &dependencies));
}

#[test]
fn host_and_sdk_share_no_code() {
    assert_tidy(&border(&Tree::read()));
}

#[test]
fn the_rules_can_be_broken() {
    let tree = fake(&[
        (
            "host/src/domain/turn/plan.rs",
            "use crate::store::Store;\nuse super::rules;\nasync fn wait() {}",
        ),
        (
            "host/src/domain/event.rs",
            "// crate::store is not named here\nuse super::super::clock;\nuse tokio::time;",
        ),
        (
            "host/src/domain/apply.rs",
            "fn f() {}\n#[cfg(test)]\nmod tests {\n use crate::store::Store;\n}",
        ),
        (
            "host/src/engine/mod.rs",
            "use crate::http::App;\nuse crate::store::Store;\nfn f() -> sqlx::Error { todo() }",
        ),
        ("host/src/helpers.rs", ""),
        (
            "host/src/store/tasks.rs",
            "use sqlx::PgPool;\nuse super::super::wasm::Sandbox;\nlet x = crate::wasm::Sandbox;",
        ),
        (
            "host/Cargo.toml",
            "[package]\n[dependencies]\nserde.workspace = true\ntokio-util = \"1\"\nwrkflw-guest.path = \"../guest-sdk\"",
        ),
        (
            "guest-sdk/src/lib.rs",
            "#[path = \"../../host/src/domain/graph.rs\"]\nmod graph;",
        ),
    ]);
    let expected = [
        "host/src/domain/event.rs: edge",
        "host/src/domain/turn/plan.rs: edge",
        "host/src/engine/mod.rs: edge",
        "host/src/helpers.rs: module",
        "host/src/store/tasks.rs: edge",
        "host/src/store/tasks.rs: edge",
    ];
    assert_eq!(rules(&edges(&tree)), expected);
    assert_eq!(
        rules(&confined(&tree)),
        ["host/src/engine/mod.rs: confined"]
    );
    let manifest = &tree
        .files("host/Cargo.toml", "")
        .next()
        .expect("a manifest")
        .text;
    assert_eq!(
        dependencies(manifest),
        ["serde", "tokio_util", "wrkflw_guest"]
    );
    let purity = purity(&tree, &["tokio".to_owned(), "serde".to_owned()]);
    assert_eq!(
        rules(&purity),
        [
            "host/src/domain/event.rs: purity",
            "host/src/domain/turn/plan.rs: purity"
        ]
    );
    assert_eq!(
        rules(&border(&tree)),
        ["host/Cargo.toml: border", "guest-sdk/src/lib.rs: border"]
    );
}
