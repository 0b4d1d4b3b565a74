//! What others rely on: released versions of the contract never change, and migrations follow each other.

use sha2::{Digest as _, Sha256};

use super::tree::{Finding, Tree};
use super::{assert_tidy, fake, rules};

/// Released folders of `wit/` with the checksum of their files. A version enters when its release is tagged; from then on a
/// change is a new folder.
const RELEASED: [(&str, &str); 0] = [];

/// The SHA-256 over a folder's files: each with its name, its length and its text.
fn checksum(tree: &Tree, folder: &str) -> String {
    let mut hasher = Sha256::new();
    for file in tree.files(&format!("{folder}/"), "") {
        hasher.update(format!("{}\n{}\n", file.path, file.text.len()));
        hasher.update(&file.text);
    }
    hasher
        .finalize()
        .iter()
        .fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

fn frozen(tree: &Tree, released: &[(&str, &str)]) -> Vec<Finding> {
    let changed = released
        .iter()
        .filter(|(folder, sum)| checksum(tree, folder) != *sum);
    let finding = |(folder, _): &(&str, &str)| Finding {
        path: (*folder).to_owned(),
        rule: "released",
        detail: format!(
            "was released and has changed ({}): make a new folder",
            checksum(tree, folder)
        ),
    };
    changed.map(finding).collect()
}

fn numbers(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, number) in tree.files("migrations/", ".sql").zip(1..) {
        let name = file.path.trim_start_matches("migrations/");
        let well_formed = name.strip_suffix(".sql").is_some_and(|name| {
            name.split_once('_')
                .is_some_and(|(_, words)| words.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
        });
        if !well_formed || !name.starts_with(&format!("{number:04}_")) {
            findings.push(file.finding(
                "migration",
                format!("is to be called {number:04}_verb_noun.sql"),
            ));
        }
    }
    findings
}

#[test]
fn released_contracts_do_not_change() {
    assert_tidy(&frozen(&Tree::read(), &RELEASED));
}

#[test]
fn migrations_have_no_gaps() {
    let tree = Tree::read();
    assert!(tree.files("migrations/", ".sql").count() > 0);
    assert_tidy(&numbers(&tree));
}

#[test]
fn the_rules_can_be_broken() {
    let files = [
        ("wit/flow@0.1.0/types.wit", "interface types {}"),
        ("wit/flow@0.1.0/world.wit", "world flow {}"),
    ];
    let folder = "wit/flow@0.1.0";
    let sum = checksum(&fake(&files), folder);
    assert_eq!(sum.len(), 64);
    let released = [(folder, sum.as_str())];
    assert_tidy(&frozen(&fake(&files), &released));
    let edited = [files[0], ("wit/flow@0.1.0/world.wit", "world flow { }")];
    let moved = [
        ("wit/flow@0.1.0/types.wit", "interface types {}world"),
        ("wit/flow@0.1.0/world.wit", " flow {}"),
    ];
    let added = [files[0], files[1], ("wit/flow@0.1.0/more.wit", "")];
    for changed in [&edited[..], &moved, &added, &files[..1], &[]] {
        assert_eq!(
            rules(&frozen(&fake(changed), &released)),
            ["wit/flow@0.1.0: released"]
        );
    }
    let tree = fake(&[
        ("migrations/0001_a.sql", ""),
        ("migrations/0003_b.sql", ""),
        ("migrations/0003_c-d.sql", ""),
    ]);
    let expected = [
        "migrations/0003_b.sql: migration",
        "migrations/0003_c-d.sql: migration",
    ];
    assert_eq!(rules(&numbers(&tree)), expected);
}
