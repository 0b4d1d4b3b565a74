//! The cost of a schema's patterns, computed before any text is matched.
//!
//! Matching takes linear time for every pattern, because there are no look-arounds and no back-references. But the time per
//! byte differs a thousandfold. A pattern with a small deterministic automaton (DFA) costs a few nanoseconds per byte, once its
//! [`table`](super::table) is built. A pattern with a huge DFA, such as `a[ab]{1500}c`, costs a step for each state of its
//! nondeterministic automaton (NFA) per byte. So this module builds both automata, within limits.

use std::collections::HashMap;

use jsonschema_regex::to_rust_regex;
use regex_automata::nfa::thompson::{self, NFA, WhichCaptures};
use regex_syntax::Parser;
use regex_syntax::hir::{Hir, Look};

use super::cost::{Matching, Price};
use super::table::Table;

/// Regular expressions in one schema.
pub(crate) const PATTERNS_MAX: usize = 100;
/// Bytes of the text of all of them.
pub(crate) const PATTERN_TEXT_MAX: usize = 8 * 1024;
/// Bytes that one compiled pattern may take.
pub(crate) const PATTERN_BYTES_MAX: usize = 256 * 1024;
/// Bytes that all compiled patterns of a schema may take.
pub(crate) const PATTERNS_BYTES_MAX: usize = 512 * 1024;
/// Bytes that the tables of all patterns of a schema may take for one thread.
pub(crate) const TABLES_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The same, for a schema that was published before this limit: the tables of further patterns are not computed.
const MEASURED_BYTES_MAX: usize = 4 * TABLES_BYTES_MAX;
/// Bytes that the library takes at most for the one-pass DFA of a pattern with groups, and for each of its transitions.
const ONE_PASS_BYTES_MAX: usize = 1024 * 1024;
const ONE_PASS_BYTES: usize = 8;

/// A step of a DFA, in picoseconds.
const TABLE_STEP: u64 = 4_000;
/// A step of an NFA, in picoseconds per byte of the NFA: 6 ns for a state of 24 bytes.
const STEP_PER_BYTE: u64 = 250;
/// The overhead of a match, in picoseconds.
const MATCH_EACH: u64 = 60_000;

/// The patterns of one schema, added one by one.
pub(super) struct Patterns {
    count: usize,
    text: usize,
    compiled: usize,
    tables: usize,
    building: u64,
    /// If the tables take more than this, no further tables are computed.
    tables_max: usize,
    /// The library compiles equal patterns once.
    known: HashMap<String, Matching>,
}

impl Patterns {
    /// For the patterns of a schema that is `new`, or was admitted earlier.
    pub(super) fn of(new: bool) -> Patterns {
        Patterns {
            count: 0,
            text: 0,
            compiled: 0,
            tables: 0,
            building: 0,
            tables_max: if new {
                TABLES_BYTES_MAX
            } else {
                MEASURED_BYTES_MAX
            },
            known: HashMap::new(),
        }
    }

    /// Adds a pattern, and returns the price of matching it. The error says how to fix the pattern.
    pub(super) fn take(&mut self, pattern: &str) -> Result<Matching, String> {
        self.count += 1;
        self.text += pattern.len();
        if let Some(known) = self.known.get(pattern) {
            return Ok(*known);
        }
        let hir = parsed(pattern)?;
        let nfa = compiled(&hir, false)?;
        self.compiled += nfa.memory_usage();
        let (mut step, mut is_whole) = (0_u64, self.tables <= self.tables_max);
        if is_whole {
            for table in tables(&hir, &nfa)? {
                self.tables += table.bytes;
                self.building = self.building.saturating_add(table.building);
                step = step.saturating_add(table.step);
                is_whole &= table.is_whole;
            }
        }
        self.tables += one_pass(&nfa);
        let byte = if is_whole {
            TABLE_STEP
        } else {
            STEP_PER_BYTE.saturating_mul(nfa.memory_usage() as u64)
        };
        let matching = Matching {
            run: Price::of(MATCH_EACH, byte),
            build: Price::of(0, step),
        };
        self.known.insert(pattern.to_owned(), matching);
        Ok(matching)
    }

    /// Bytes of the tables of all patterns.
    pub(super) fn tables(&self) -> usize {
        self.tables
    }

    /// The time to build these tables, in picoseconds.
    pub(super) fn building(&self) -> u64 {
        self.building
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

fn parsed(pattern: &str) -> Result<Hir, String> {
    let translated =
        to_rust_regex(pattern).map_err(|()| unusable("it is no regular expression of ECMA-262"))?;
    Parser::new().parse(&translated).map_err(|error| {
        unusable(&match &error {
            regex_syntax::Error::Parse(error) => error.kind().to_string(),
            regex_syntax::Error::Translate(error) => error.kind().to_string(),
            _ => error.to_string(),
        })
    })
}

fn compiled(hir: &Hir, reverse: bool) -> Result<NFA, String> {
    let captures = if reverse {
        WhichCaptures::None
    } else {
        WhichCaptures::All
    };
    let config = thompson::Config::new()
        .nfa_size_limit(Some(PATTERN_BYTES_MAX))
        .reverse(reverse)
        .which_captures(captures);
    let built = thompson::Compiler::new()
        .configure(config)
        .build_from_hir(hir);
    built.map_err(|_| {
        unusable(&format!(
            "it takes more than {PATTERN_BYTES_MAX} bytes; repeat less, or use `maxLength`"
        ))
    })
}

fn unusable(why: &str) -> String {
    format!("this pattern cannot be used: {why}")
}

/// The tables that matching it may need. Only a pattern that may begin anywhere is matched backwards.
fn tables(hir: &Hir, nfa: &NFA) -> Result<Vec<Table>, String> {
    let mut tables = vec![Table::forward(nfa.clone())];
    if !hir.properties().look_set_prefix().contains(Look::Start) {
        tables.push(Table::backward(compiled(hir, true)?));
    }
    Ok(tables)
}

/// Bytes of the one-pass DFA, which the library tries to build for a pattern with groups.
fn one_pass(nfa: &NFA) -> usize {
    const SLOTS_OF_THE_MATCH: usize = 2;
    if nfa.group_info().slot_len() <= SLOTS_OF_THE_MATCH {
        return 0;
    }
    let transitions = nfa.states().len() << nfa.byte_classes().stride2();
    ONE_PASS_BYTES_MAX.min(ONE_PASS_BYTES * transitions)
}
