//! The structure of the source tree: who may know whom, and what no file may contain or become.
//!
//! Every rule is a function from files to findings, so that each is also shown to fail: on files of its own.

mod edges;
mod releases;
mod texts;
mod tree;

use tree::{Finding, Tree};

#[track_caller]
fn assert_tidy(findings: &[Finding]) {
    assert!(
        findings.is_empty(),
        "\n{}",
        findings
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n")
    );
}

/// The rules that findings name, in their order.
fn rules(findings: &[Finding]) -> Vec<String> {
    findings
        .iter()
        .map(|finding| format!("{}: {}", finding.path, finding.rule))
        .collect()
}

fn fake(files: &[(&str, &str)]) -> Tree {
    Tree::of(
        files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned())),
    )
}
