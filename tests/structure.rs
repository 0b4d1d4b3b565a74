//! The structure of the source tree: permitted dependencies, and rules for every file.
//!
//! Every rule is a function from files to findings. Each has a test with files that break it.

mod builds;
mod edges;
mod methods;
pub(crate) mod queries;
mod releases;
mod texts;
mod tree;
mod words;
mod writes;

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

/// Each finding as `path: rule`, in order.
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
