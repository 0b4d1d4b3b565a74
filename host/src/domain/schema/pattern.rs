//! What the patterns of a schema come to, found out before any text is matched.
//!
//! Matching takes linear time whatever a pattern says: there are no look-arounds and no back-references. But the
//! time for a byte differs a thousandfold. A pattern whose deterministic automaton is small costs a few
//! nanoseconds; one whose automaton explodes, such as `a[ab]{1500}c`, costs a step for each state of the other,
//! for every byte. So both are built here, within limits.

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
/// Bytes of the tables that a pattern may make while it matches. When they are full they are thrown away.
pub(super) const TABLE_BYTES_MAX: usize = 4 * DETERMINISTIC_BYTES_MAX;
/// Bytes of a deterministic automaton that is surely kept in those tables.
const DETERMINISTIC_BYTES_MAX: usize = 512 * 1024;

/// Bytes of compiled patterns with larger ones, after which no other is looked at any more.
const EXPLODING_BYTES_MAX: usize = 64 * 1024;

/// A step in tables, in picoseconds.
const TABLE_STEP: u64 = 4_000;
/// A step for each byte of the other automaton: 6 ns for a state of 24 bytes.
const STEP_PER_BYTE: u64 = 250;
/// The beginning and end of a match.
const MATCH_EACH: u64 = 60_000;

/// The patterns of one schema, as they are found.
#[derive(Default)]
pub(super) struct Patterns {
    count: usize,
    text: usize,
    compiled: usize,
    /// Of those whose deterministic automata are large.
    exploding: usize,
}

impl Patterns {
    /// Takes one more; the price of matching it, or what is to be mended.
    pub(super) fn take(&mut self, pattern: &str) -> Result<Price, String> {
        let nfa = compiled(pattern)?;
        self.count += 1;
        self.text += pattern.len();
        self.compiled += nfa.memory_usage();
        // It is tried only for as long as the schema may still be one that is taken.
        let byte = if self.exploding <= EXPLODING_BYTES_MAX && is_small(&nfa) {
            TABLE_STEP
        } else {
            self.exploding += nfa.memory_usage();
            STEP_PER_BYTE.saturating_mul(nfa.memory_usage() as u64)
        };
        Ok(Price::of(MATCH_EACH, byte))
    }

    /// What is too much by now.
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

    /// Whether there are more than a schema may have.
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

/// Whether its deterministic automaton is small enough to be kept whole.
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
