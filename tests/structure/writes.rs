//! Only the engine and the other writers may write, not the API. The API gets a `Reader`, and what writes takes a `Store`.
//! These tests check that the API never gets a `Store`, and that no function of a `Reader` writes.

use super::tree::{Finding, Tree, places};
use super::{assert_tidy, fake, rules};

const API: &str = "host/server/src/";
const ENGINE: &str = "host/engine/src/";
const STORE: &str = "host/store/src/";

/// Prefixes of statements that write.
const WRITING: [&str; 3] = ["insert into", "update", "delete from"];

/// The API must not name `Store`. `Error::Store`, a variant of the engine's error, is allowed.
fn named(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files(API, ".rs") {
        for (number, line) in file.code() {
            let mut found = places(line, "Store");
            if found.any(|place| !line[..place].ends_with("Error::")) {
                let what = format!("line {number}: the API reads by a `Reader`");
                findings.push(file.finding("store", what));
            }
        }
    }
    findings
}

/// The engine must not return its `Store`.
fn handed_out(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files(ENGINE, ".rs") {
        // Whether the line belongs to the signature of a public function, which may take several lines.
        let mut public = false;
        for (number, line) in file.code() {
            let result = line.split_once("->").map_or("", |(_, result)| result);
            let line = line.trim_start();
            public |= line.starts_with("pub fn ") || line.starts_with("pub async fn ");
            let hands_out = (public && places(result, "Store").next().is_some())
                || (line.starts_with("pub ") && line.ends_with(": Store,"));
            public &= !line.ends_with(['{', ';']);
            if hands_out {
                let what = format!("line {number}: whoever has the engine could write");
                findings.push(file.finding("handed out", what));
            }
        }
    }
    findings
}

/// A function that takes a `Reader`, and a method of `Reader`, must not write.
fn written(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files(STORE, ".rs") {
        // Whether the line belongs to the signature of a function, which may take several lines.
        let (mut signature, mut reader) = (false, false);
        for (number, line) in file.code() {
            signature |= is_function(line);
            let begins = line.starts_with("impl") && line.ends_with("Reader {");
            reader |= begins || (signature && line.contains("&Reader"));
            reader &= line != "}";
            signature &= !line.ends_with('{');
            let writes = || WRITING.iter().any(|how| places(line, how).next().is_some());
            if reader && (line.contains("writer.begin()") || writes()) {
                let what = format!(
                    "line {number}: a function of a `Reader` writes; let it take a `Store`"
                );
                findings.push(file.finding("written", what));
            }
        }
    }
    findings
}

/// Whether the line begins a function outside of `impl` blocks.
fn is_function(line: &str) -> bool {
    let after = line.strip_prefix("pub ").unwrap_or(line);
    let after = after.strip_prefix("pub(super) ").unwrap_or(after);
    let after = after.strip_prefix("async ").unwrap_or(after);
    after.starts_with("fn ")
}

#[test]
fn the_api_does_not_write() {
    let tree = Tree::read();
    let reads = tree.files(STORE, ".rs");
    let reads = reads.filter(|file| file.text.contains("reader: &Reader"));
    assert!(reads.count() > 10, "few files of the store have reads");
    assert!(
        tree.files(API, ".rs")
            .any(|file| file.text.contains(".reader()"))
    );
    for rule in [named, handed_out, written] {
        assert_tidy(&rule(&tree));
    }
    let broken = fake(&[
        (
            "host/server/src/http/calendars.rs",
            "use wrkflw_store::{Store, StoreError};\n// a Store\nfn f() { Error::Store(error) }\n",
        ),
        (
            "host/engine/src/lib.rs",
            "impl Engine {\n    pub fn store(&self) -> &Store {\n    pub(crate) fn own(&self) -> &Store {\n    pub fn new(store: Store) -> Engine {\n",
        ),
        (
            "host/engine/src/jobs.rs",
            "pub struct Work {\n    pub store: Store,\n    more: Store,\n",
        ),
        (
            "host/engine/src/long.rs",
            "impl Engine {\n    pub fn store(\n        &self,\n    ) -> &Store {\n",
        ),
        (
            "host/store/src/calendars.rs",
            "fn read(reader: &Reader) {\n    \"select updated_at from calendar\"\n}\nfn put(store: &Store) {\n    \"delete from calendar\"\n}\n",
        ),
        (
            "host/store/src/tasks.rs",
            "pub async fn read(\n    reader: &Reader,\n) -> u8 {\n    \"update task set owner = null\"\n}\n",
        ),
        (
            "host/store/src/users.rs",
            "impl Source for Reader {\n    fn read() { \"delete from person\" }\n}\n",
        ),
    ]);
    assert_eq!(
        rules(&named(&broken)),
        ["host/server/src/http/calendars.rs: store"]
    );
    assert_eq!(
        rules(&handed_out(&broken)),
        [
            "host/engine/src/jobs.rs: handed out",
            "host/engine/src/lib.rs: handed out",
            "host/engine/src/long.rs: handed out",
        ]
    );
    assert_eq!(
        rules(&written(&broken)),
        [
            "host/store/src/tasks.rs: written",
            "host/store/src/users.rs: written"
        ]
    );
}
