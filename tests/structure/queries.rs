//! The query metadata in `.sqlx`, with which the checked queries are compiled: each file belongs to a query of the host.

use std::path::Path;

use serde_json::Value;

use super::tree::Tree;

/// The contents of `.sqlx`, in the order of the texts of the queries.
pub(crate) fn all() -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.sqlx");
    let files = std::fs::read_dir(folder).expect("the repository has the queries");
    let queries = files.map(|file| {
        let content = std::fs::read_to_string(file.expect("a file").path()).expect("text");
        serde_json::from_str::<Value>(&content).expect("JSON")
    });
    let mut queries: Vec<_> = queries.collect();
    queries.sort_by(|one, other| text(one).cmp(text(other)));
    queries
}

pub(crate) fn text(query: &Value) -> &str {
    query["query"].as_str().expect("a query")
}

/// The text without differences that Rust literals permit.
fn bare(text: &str) -> String {
    let is_kept = |letter: &char| !letter.is_whitespace() && *letter != '\\';
    text.chars().filter(is_kept).collect()
}

/// The text that a macro of the store adds around a query.
const AROUND: [&str; 2] = ["select to_jsonb(r) as \"row!\" from (", ") r"];

/// The files whose query is in no source.
fn unused<'a>(queries: &'a [Value], sources: &Tree) -> Vec<&'a str> {
    let files = [".rs", ".sql"].map(|ending| sources.files("host/", ending));
    let files = files.into_iter().flatten();
    let sources: String = files.map(|file| bare(&file.text)).collect();
    let is_used = |text: &str| {
        let [before, after] = AROUND;
        let within = text.strip_prefix(before);
        let within = within.and_then(|text| text.strip_suffix(after));
        sources.contains(&bare(within.unwrap_or(text)))
    };
    let texts = queries.iter().map(text);
    texts.filter(|text| !is_used(text)).collect()
}

#[test]
fn each_file_belongs_to_a_query_of_the_host() {
    let queries = all();
    let unused = unused(&queries, &Tree::read());
    assert!(
        unused.is_empty(),
        "run 'make sqlx' and commit .sqlx: {unused:#?}"
    );
}

#[test]
fn a_query_that_no_source_has_is_found() {
    let queries =
        ["select 1", "select\n    \"two\""].map(|text| serde_json::json!({ "query": text }));
    let source = r#"query!("select \"two\" ")"#;
    assert_eq!(
        unused(&queries, &super::fake(&[("host/a.rs", source)])),
        ["select 1"]
    );
}
