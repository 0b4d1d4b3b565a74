//! Rules for files: a maximum length, a module doc at the beginning, and no words that postpone work.

use super::tree::{File, Finding, Tree, places};
use super::{assert_tidy, fake, rules};

/// The maximum number of lines of a file, without its tests.
const LENGTH_MAX: usize = 500;
/// Longer files, with their maximum. Entries are removed, never added.
const LONGER: [(&str, usize); 0] = [];
/// Generated files, which nobody reads from top to bottom.
const MADE: [&str; 1] = ["guest-sdk/src/bindings/generated.rs"];
/// The folders with our own sources.
const SOURCES: [&str; 6] = [
    "host/",
    "guest-sdk/",
    "plugins/",
    "tests/",
    "migrations/",
    "wit/",
];
/// Files with fewer lines need no module doc.
const INTRODUCED_FROM: usize = 20;
/// Files that must not compile, because they are test data.
const SPECIMENS: &str = "guest-sdk/wrong-use/tests/wrong/";

/// The prefixes of checked paths.
const NAMED: [&str; 9] = [
    "bench/",
    "docs/",
    "fuzz/",
    "guest-sdk/",
    "host/",
    "migrations/",
    "plugins/",
    "scripts/",
    "wit/",
];
/// Words in two parts, so that this file does not contain them.
const BANNED: [(&str, &str); 11] = [
    ("to", "do!"),
    ("unimple", "mented!"),
    ("db", "g!"),
    ("TO", "DO"),
    ("FIX", "ME"),
    ("XX", "X"),
    ("HA", "CK"),
    ("for ", "now"),
    ("tempo", "rarily"),
    ("temporary ", "solution"),
    ("temporary ", "fix"),
];

/// All builds contain the same code. Otherwise tests would run code that a release leaves out.
fn builds(tree: &Tree) -> Vec<Finding> {
    let word = format!("debug_{}", "assert");
    let mut findings = Vec::new();
    let files = ["host/", "guest-sdk/"].map(|folder| tree.files(folder, ".rs"));
    let is_made = |file: &File| MADE.contains(&file.path.as_str());
    let sources = |file: &&File| file.path.contains("/src/") && !is_made(file);
    for file in files.into_iter().flatten().filter(sources) {
        for (number, line) in file.text.lines().enumerate() {
            if line.contains(&word) {
                let what = format!(
                    "line {}: every build does the same; see `fault::invariant`",
                    number + 1
                );
                findings.push(file.finding("build", what));
            }
        }
    }
    findings
}

fn lengths(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in SOURCES.iter().flat_map(|folder| tree.files(folder, ".rs")) {
        let exception = LONGER.iter().find(|(path, _)| *path == file.path);
        let max = exception.map_or(LENGTH_MAX, |(_, max)| *max);
        let length = file.length();
        let is_read = !file.path.ends_with("/tests.rs") && !MADE.contains(&file.path.as_str());
        if length > max && is_read {
            findings.push(file.finding(
                "length",
                format!("{length} lines, more than {max}: split it by its nouns"),
            ));
        }
        if exception.is_some() && length < max {
            findings.push(file.finding(
                "length",
                format!("{length} lines: lower its exception to that, or take it away"),
            ));
        }
    }
    findings
}

fn introductions(tree: &Tree) -> Vec<Finding> {
    let files = SOURCES.iter().flat_map(|folder| tree.files(folder, ".rs"));
    let missing = files.filter(|file| {
        let long = file.text.lines().count() >= INTRODUCED_FROM;
        long && !file.text.starts_with("//! ") && !file.path.starts_with(SPECIMENS)
    });
    missing
        .map(|file| file.finding("introduction", "begins without a module doc (`//!`)"))
        .collect()
}

/// Checks paths from the root of the repository, in pages and comments.
fn names(tree: &Tree) -> Vec<Finding> {
    let stands = |name: &str| {
        let mut below = tree.files(name, "");
        let is_below =
            |path: &str| name.ends_with('/') || path[name.len()..].starts_with(['/', '#']);
        below.any(|file| file.path == name || is_below(&file.path))
    };
    let mut findings = Vec::new();
    let pages = tree.files("", ".md").map(|file| (file, true));
    let code = [".rs", ".toml", ".sh"].map(|ending| tree.files("", ending));
    let code = code.into_iter().flatten().map(|file| (file, false));
    for (file, is_page) in pages.chain(code) {
        for (number, line) in file.text.lines().enumerate() {
            let is_prose = is_page || line.trim_start().starts_with(['/', '#']);
            let named = line.split('`').skip(1).step_by(2).filter(|_| is_prose);
            for name in named.filter(|name| NAMED.iter().any(|root| name.starts_with(root))) {
                let is_path = |c: char| c.is_ascii_alphanumeric() || "/._-@".contains(c);
                if name.chars().all(is_path) && !stands(name) {
                    let what = format!("line {}: there is no {name}", number + 1);
                    findings.push(file.finding("name", what));
                }
            }
        }
    }
    findings
}

fn words(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in SOURCES.iter().flat_map(|folder| tree.files(folder, "")) {
        for (number, line) in file.text.lines().enumerate() {
            for (first, second) in BANNED {
                let word = format!("{first}{second}");
                if places(line, &word).next().is_some() {
                    findings.push(file.finding(
                        "word",
                        format!(
                            "line {}: {word:?} puts work off: do it, or leave it out",
                            number + 1
                        ),
                    ));
                }
            }
        }
    }
    findings
}

#[test]
fn every_build_runs_the_same_code() {
    assert_tidy(&builds(&Tree::read()));
}

#[test]
fn every_folder_of_sources_is_looked_at() {
    let tree = Tree::read();
    for folder in SOURCES {
        assert!(tree.files(folder, "").count() > 1, "{folder} is empty");
    }
    assert!(tree.files("host/", ".rs").count() > 300);
}

#[test]
fn files_are_short() {
    assert_tidy(&lengths(&Tree::read()));
}

#[test]
fn files_introduce_themselves() {
    assert_tidy(&introductions(&Tree::read()));
}

#[test]
fn named_paths_exist() {
    assert_tidy(&names(&Tree::read()));
}

#[test]
fn no_word_puts_work_off() {
    assert_tidy(&words(&Tree::read()));
}

#[test]
fn the_rules_can_be_broken() {
    let line = "let x = 1;\n";
    let (long, tests) = (
        line.repeat(LENGTH_MAX + 1),
        format!(
            "//! Short.\n#[cfg(test)]\nmod tests {{\n{}}}",
            line.repeat(LENGTH_MAX)
        ),
    );
    let unfinished = format!(
        "//! Good.\nfn f() {{ {}{}() }}\n// This is {}now.",
        "to", "do!", "for "
    );
    let tree = fake(&[
        ("host/core/src/long.rs", &long),
        ("host/core/src/tested.rs", &tests),
        (
            "host/core/src/lines/tests.rs",
            &format!("//! Tests.\n{long}"),
        ),
        ("plugins/a/src/lib.rs", &unfinished),
        (
            "host/core/src/calm.rs",
            "//! A photodo!k is no banned word.\n",
        ),
        (
            "migrations/0001_a.sql",
            &format!("-- {}{}: an index", "TO", "DO"),
        ),
    ]);
    let differing = format!("//! Good.\nfn f() {{ debug_{}!(true) }}\n", "assert");
    let builds = builds(&fake(&[("host/core/src/differs.rs", &differing)]));
    assert_eq!(rules(&builds), ["host/core/src/differs.rs: build"]);
    assert_eq!(rules(&lengths(&tree)), ["host/core/src/long.rs: length"]);
    assert_eq!(
        rules(&introductions(&tree)),
        ["host/core/src/long.rs: introduction"]
    );
    let expected = [
        "plugins/a/src/lib.rs: word",
        "plugins/a/src/lib.rs: word",
        "migrations/0001_a.sql: word",
    ];
    assert_eq!(rules(&words(&tree)), expected);
    let named = fake(&[
        (
            "docs/a.md",
            "see `host/core/src/a.rs`, `host/core/`, `host/cor`",
        ),
        (
            "host/core/src/a.rs",
            "/// `docs/a.md`, `docs/b.md`\nlet x = \"`docs/c.md`\";",
        ),
    ]);
    assert_eq!(
        rules(&names(&named)),
        ["docs/a.md: name", "host/core/src/a.rs: name"]
    );
}
