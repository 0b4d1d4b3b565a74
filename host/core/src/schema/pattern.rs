//! The cost of a schema's patterns, computed before any text is matched.
//!
//! Matching takes linear time for every pattern, since there are no look-arounds and no back-references. But the time per
//! byte differs a thousandfold. A pattern with a small deterministic automaton (DFA) costs a few nanoseconds per byte. One
//! with a huge DFA, such as `a[ab]{1500}c`, costs a step for each state of its nondeterministic automaton (NFA) per byte. So
//! both automata are built here, within limits.

use jsonschema_regex::to_rust_regex;
use regex_automata::dfa::dense;
use regex_automata::nfa::thompson::{self, NFA};
use regex_syntax::Parser;

use super::cost::Price;

/// Regular expressions in one schema.
pub const PATTERNS_MAX: usize = 100;
/// Bytes of the text of all of them.
pub const PATTERN_TEXT_MAX: usize = 8 * 1024;
/// Bytes that one compiled pattern may take.
pub const PATTERN_BYTES_MAX: usize = 256 * 1024;
/// Bytes that all compiled patterns of a schema may take.
pub const PATTERNS_BYTES_MAX: usize = 512 * 1024;
/// Bytes of the lazy DFA's tables of one pattern. The library discards them when they are full.
pub(super) const TABLE_BYTES_MAX: usize = 4 * DETERMINISTIC_BYTES_MAX;
/// The largest DFA, in bytes, that always fits into those tables.
const DETERMINISTIC_BYTES_MAX: usize = 512 * 1024;

/// Once the NFAs of patterns with larger DFAs have this many bytes, no other DFA is built.
const EXPLODING_BYTES_MAX: usize = 64 * 1024;

/// A step of a DFA, in picoseconds.
const TABLE_STEP: u64 = 4_000;
/// A step of an NFA, in picoseconds per byte of the NFA: 6 ns for a state of 24 bytes.
const STEP_PER_BYTE: u64 = 250;
/// The overhead of a match, in picoseconds.
const MATCH_EACH: u64 = 60_000;

/// The patterns of one schema, added one by one.
#[derive(Default)]
pub(super) struct Patterns {
    count: usize,
    text: usize,
    compiled: usize,
    /// Bytes of the NFAs whose DFAs are large.
    exploding: usize,
}

impl Patterns {
    /// Adds a pattern, and returns the price of matching it. The error says how to fix the pattern.
    pub(super) fn take(&mut self, pattern: &str) -> Result<Price, String> {
        let nfa = compiled(pattern)?;
        self.count += 1;
        self.text += pattern.len();
        self.compiled += nfa.memory_usage();
        // Beyond this limit the schema is too expensive anyway, so building another DFA would be wasted work.
        let byte = if self.exploding <= EXPLODING_BYTES_MAX && is_small(&nfa) {
            TABLE_STEP
        } else {
            self.exploding += nfa.memory_usage();
            STEP_PER_BYTE.saturating_mul(nfa.memory_usage() as u64)
        };
        Ok(Price::of(MATCH_EACH, byte))
    }

    /// Which limit the patterns exceed; none if they are within the limits.
    pub(super) fn excess(&self) -> Option<String> {
        if self.text > PATTERN_TEXT_MAX {
            return Some(format!(
                "the patterns have more than {PATTERN_TEXT_MAX} bytes of text together; shorten them"
            ));
        }
        (self.compiled > PATTERNS_BYTES_MAX).then(|| {
            "the patterns are too large together; repeat less, or use `maxLength`".to_owned()
        })
    }

    /// Whether `more` patterns would be too many.
    pub(super) fn are_too_many(&self, more: usize) -> bool {
        self.count + more > PATTERNS_MAX
    }
}

fn compiled(pattern: &str) -> Result<NFA, String> {
    let unusable = |why: String| format!("this pattern cannot be used: {why}");
    let translated = to_rust_regex(pattern)
        .map_err(|()| unusable("it is no regular expression of ECMA-262".to_owned()))?;
    let parsed = Parser::new().parse(&translated).map_err(|error| {
        unusable(match &error {
            regex_syntax::Error::Parse(error) => error.kind().to_string(),
            regex_syntax::Error::Translate(error) => error.kind().to_string(),
            _ => error.to_string(),
        })
    })?;
    let config = thompson::Config::new().nfa_size_limit(Some(PATTERN_BYTES_MAX));
    let built = thompson::Compiler::new()
        .configure(config)
        .build_from_hir(&parsed);
    built.map_err(|_| {
        unusable(format!(
            "it takes more than {PATTERN_BYTES_MAX} bytes; repeat less, or use `maxLength`"
        ))
    })
}

/// Whether its DFA is small.
fn is_small(nfa: &NFA) -> bool {
    let config = dense::Config::new()
        .accelerate(false)
        .minimize(false)
        .dfa_size_limit(Some(DETERMINISTIC_BYTES_MAX))
        .determinize_size_limit(Some(DETERMINISTIC_BYTES_MAX));
    dense::Builder::new()
        .configure(config)
        .build_from_nfa(nfa)
        .is_ok()
}
