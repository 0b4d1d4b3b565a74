//! What a file looks like: not too long, introduced by its first lines, and without words that put work off.

use super::tree::{Finding, Tree, places};
use super::{assert_tidy, fake, rules};

/// Lines of a file, its tests not counted.
const LENGTH_MAX: usize = 500;
/// Files that are longer, and how long they may be. Entries go; none is added.
const LONGER: [(&str, usize); 0] = [];
/// The folders with sources of our own.
const SOURCES: [&str; 6] = [
    "host/",
    "guest-sdk/",
    "plugins/",
    "tests/",
    "migrations/",
    "wit/",
];
/// A file that needs no introduction has fewer lines.
const INTRODUCED_FROM: usize = 20;
/// Files that show what does not compile: their text is what is tested.
const SPECIMENS: &str = "guest-sdk/tests/wrong/";

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

/// Code that a release leaves out would be code that tests alone run.
fn builds(tree: &Tree) -> Vec<Finding> {
    let word = format!("debug_{}", "assert");
    let mut findings = Vec::new();
    for file in ["host/src/", "guest-sdk/src/"]
        .iter()
        .flat_map(|folder| tree.files(folder, ".rs"))
    {
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
        if length > max && !file.path.ends_with("/tests.rs") {
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
fn files_are_short() {
    assert_tidy(&lengths(&Tree::read()));
}

#[test]
fn files_introduce_themselves() {
    assert_tidy(&introductions(&Tree::read()));
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
        ("host/src/long.rs", &long),
        ("host/src/tested.rs", &tests),
        ("host/src/lines/tests.rs", &format!("//! Tests.\n{long}")),
        ("plugins/a/src/lib.rs", &unfinished),
        ("host/src/calm.rs", "//! A photodo!k is no banned word.\n"),
        (
            "migrations/0001_a.sql",
            &format!("-- {}{}: an index", "TO", "DO"),
        ),
    ]);
    let differing = format!("//! Good.\nfn f() {{ debug_{}!(true) }}\n", "assert");
    let builds = builds(&fake(&[("host/src/differs.rs", &differing)]));
    assert_eq!(rules(&builds), ["host/src/differs.rs: build"]);
    assert_eq!(rules(&lengths(&tree)), ["host/src/long.rs: length"]);
    assert_eq!(
        rules(&introductions(&tree)),
        ["host/src/long.rs: introduction"]
    );
    let expected = [
        "plugins/a/src/lib.rs: word",
        "plugins/a/src/lib.rs: word",
        "migrations/0001_a.sql: word",
    ];
    assert_eq!(rules(&words(&tree)), expected);
}
