//! Released versions of the contract never change, and migrations are numbered without gaps, because others depend on them.

use sha2::{Digest as _, Sha256};

use super::tree::{Finding, Tree};
use super::{assert_tidy, fake, rules};

/// Released folders of `wit/` with the checksum of their files. A version is added when its release is tagged. From then on a
/// change needs a new folder.
const RELEASED: [(&str, &str); 0] = [];

/// The SHA-256 of a folder's files: for each its name, its length and its text.
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

/// Migrations before this one made the schema of the first release, when no host ran beside them. Until a release, this is the
/// next one.
const BEFORE_RELEASE: &str = "migrations/0014";

/// Finds statements that block the writers of a filled table for a time that depends on its rows.
fn blocking(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let files = tree.files("migrations/", ".sql");
    for file in files.filter(|file| file.path.as_str() >= BEFORE_RELEASE) {
        let lines = file.text.lines().map(str::trim_start);
        let lines: Vec<_> = lines.filter(|line| !line.starts_with("--")).collect();
        let text = lines.join("\n");
        for statement in text.split(';').map(str::trim) {
            let words: Vec<_> = statement.split_whitespace().collect();
            let follows = |word: &str| {
                let place = words.iter().position(|other| *other == word)?;
                words.get(place + 1).copied()
            };
            let is_filled = |table: &str| !text.contains(&format!("create table {table} "));
            let has = |word: &str| words.contains(&word);
            if has("create")
                && has("index")
                && !has("concurrently")
                && follows("on").is_some_and(is_filled)
            {
                findings.push(file.finding(
                    "blocking",
                    "an index of a filled table is made `concurrently`, in a file that begins with `-- no-transaction`",
                ));
            }
            let alters =
                statement.starts_with("alter table") && follows("table").is_some_and(is_filled);
            let by_row = has("stored")
                || has("type")
                || follows("default").is_some_and(|value| value.contains('('));
            if alters && by_row {
                findings.push(file.finding("blocking", "it rewrites each row of a filled table"));
            }
            let reads = has("check") || has("references") || statement.contains("set not null");
            if alters && reads && !statement.contains("not valid") {
                findings.push(file.finding(
                    "blocking",
                    "it reads each row of a filled table: add the constraint `not valid`, and validate it in a later file",
                ));
            }
            if alters && (has("primary") || has("unique")) && !statement.contains("using index") {
                findings.push(file.finding(
                    "blocking",
                    "it builds an index: build that `concurrently`, and make the constraint `using index`",
                ));
            }
        }
    }
    findings
}

#[test]
fn migrations_do_not_block_writers_for_long() {
    let tree = Tree::read();
    assert_tidy(&blocking(&tree));
    let next = format!(
        "migrations/{:04}",
        tree.files("migrations/", ".sql").count() + 1
    );
    assert!(
        BEFORE_RELEASE <= next.as_str(),
        "nobody would look at the next migration: {next}"
    );
    let file =
        |number: usize, text: &str| (format!("migrations/{number:04}_a.sql"), text.to_owned());
    let broken = Tree::of([
        file(12, "create index a on task (id);"),
        file(
            13,
            "-- Why.\ncreate table a (\nid int);\ncreate index b on a (id);",
        ),
        file(14, "create unique index b on task (id);"),
        file(
            15,
            "-- no-transaction\ncreate index concurrently b on task (id);",
        ),
        file(
            16,
            "alter table task add column a uuid default gen_random_uuid();",
        ),
        file(17, "alter table task add column a int default 0;"),
        file(18, "alter table task alter column a type bigint;"),
        file(19, "alter table task add constraint a check (id > 0);"),
        file(
            20,
            "alter table task add constraint a check (id > 0) not valid;\nalter table task validate constraint a;",
        ),
        file(21, "alter table task alter column a set not null;"),
        file(22, "alter table task add constraint a unique (a);"),
        file(
            23,
            "alter table task add constraint a unique using index b;",
        ),
    ]);
    let expected =
        [14, 16, 18, 19, 21, 22].map(|number| format!("migrations/{number:04}_a.sql: blocking"));
    assert_eq!(rules(&blocking(&broken)), expected);
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
