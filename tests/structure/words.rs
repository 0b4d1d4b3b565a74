//! One word for one thing: replaced words are not used again. `docs/glossary.md` has the words in use.

use super::tree::{File, Finding, Tree, places};
use super::{assert_tidy, fake, rules};

/// Folders and pages that use the glossary's words.
const SPOKEN: [&str; 14] = [
    "host/",
    "guest-sdk/",
    "plugins/",
    "tests/",
    "migrations/",
    "wit/",
    "bench/",
    "docs/",
    "clients/",
    "fuzz/",
    "scripts/",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
];
/// This file contains the words.
const LIST: &str = "tests/structure/words.rs";

/// A replaced word and what is said instead. Whole words and parts of names between `_`, in any case, in code, comments and pages.
const REPLACED: [(&str, &str); 50] = [
    ("a stay", "a state instance"),
    ("the stay", "the state instance"),
    ("this stay", "this state instance"),
    ("one stay", "one state instance"),
    ("each stay", "each state instance"),
    ("aftermath", "post-commit"),
    ("scribe", "fan-out"),
    ("recheck", "reassessment"),
    ("rechecks", "reassessments"),
    ("keep_early", "buffered"),
    ("buffer_signals", "buffered"),
    ("early_signals", "buffered_signals"),
    ("lost_standing", "lost_eligibility"),
    ("standing_mark", "access_mark"),
    ("outbox_lane", "outbox_partition"),
    ("rung", "fallback"),
    ("ladder", "fallback"),
    ("barred", "excluded"),
    ("unbarred", "not excluded"),
    ("untold", "unsent"),
    ("turn_making", "execute_new"),
    ("line_up", "queue_up"),
    ("carry_out", "run"),
    ("joints", "group commit"),
    ("hazards", "group commit"),
    ("whims", "choices"),
    ("asides", "outside"),
    ("errands", "sub-flows"),
    ("dice", "random"),
    ("chaos", "crashes"),
    ("restayed", "changed states"),
    ("inhand", "in flight"),
    ("rechecks_max", "reassessments_max"),
    ("rival", "competitor"),
    ("rivals", "competitors"),
    ("courier", "dispatcher"),
    ("couriers", "dispatchers"),
    ("patience", "timeout"),
    ("heldup", "fixture"),
    ("ask_told", "ask_prepared"),
    ("hands_max", "assignments_max"),
    ("companions", "batch"),
    ("nap", "poll_min"),
    ("hear", "is notified"),
    ("hears", "is notified"),
    ("fate", "commit result"),
    ("joint", "group commit"),
    ("lane", "partition"),
    ("lanes", "partitions"),
    ("wchaos", "wcrash"),
];

fn replaced(tree: &Tree) -> Vec<Finding> {
    let spoken = |file: &&File| file.path != LIST && !file.path.contains("openapi.json");
    let mut findings = Vec::new();
    for file in SPOKEN
        .iter()
        .flat_map(|folder| tree.files(folder, ""))
        .filter(spoken)
    {
        for (number, line) in file.text.lines().enumerate() {
            let line = line.to_lowercase();
            let parts = line.replace('_', " ");
            for (word, instead) in REPLACED {
                let mut found = places(&line, word).chain(places(&parts, word));
                if found.next().is_some() {
                    let what = format!("line {}: {word:?} is called {instead:?} here", number + 1);
                    findings.push(file.finding("word", what));
                }
            }
        }
    }
    findings
}

#[test]
fn replaced_words_do_not_come_back() {
    let tree = Tree::read();
    for folder in SPOKEN {
        assert!(tree.files(folder, "").count() > 0, "{folder} is empty");
    }
    assert_tidy(&replaced(&tree));
    let broken = fake(&[
        ("host/core/src/a.rs", "//! The Stay in a state.\n"),
        ("docs/a.md", "who gets work, and the ladder\n"),
        ("tests/a.rs", "fn own_work_has_no_ladder() {}\n"),
        (
            "host/core/src/b.rs",
            "//! Data stays as it is; a scribed note.\n",
        ),
    ]);
    assert_eq!(
        rules(&replaced(&broken)),
        [
            "host/core/src/a.rs: word",
            "tests/a.rs: word",
            "docs/a.md: word"
        ]
    );
}
