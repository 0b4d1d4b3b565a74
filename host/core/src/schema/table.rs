//! The tables that the library builds while it matches a pattern, computed before any text is matched.
//!
//! The library adds a state to its lazy DFA when a text first reaches it. It keeps these tables as long as the pattern, one for
//! each thread that matched it. So their size and the time to build them are part of the cost of a pattern. This module builds
//! all states, with the code and the counting of the library.

use std::collections::HashSet;

use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{self, Cache, DFA};
use regex_automata::nfa::thompson::NFA;
use regex_automata::util::start;
use regex_automata::{Anchored, MatchKind};

/// Bytes that the library's table of one pattern may take. It discards a table that is full.
pub(super) const TABLE_BYTES_MAX: usize = 1024 * 1024;
/// The largest table that never becomes full. The library's has a few entries more.
const WHOLE_BYTES_MAX: usize = TABLE_BYTES_MAX - 64 * 1024;
/// How often a table is filled until the library matches without it.
const FILLED_MAX: u64 = 4;

/// Bytes of a state besides its transitions and the NFA states that it stands for.
const STATE_BYTES: u64 = 40;
/// To compute a transition, in picoseconds, plus for each byte of the list of NFA states.
const TRANSITION: u64 = 100_000;
const LISTED_BYTE: u64 = 4_000;

/// The bytes that may come before a text, as far as anchors and word boundaries distinguish them.
const BEFORE: [Option<u8>; 5] = [None, Some(b'a'), Some(b' '), Some(b'\n'), Some(b'\r')];

/// The table of all states of a DFA.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Table {
    pub(super) bytes: usize,
    /// The time to build it, in picoseconds.
    pub(super) building: u64,
    /// The part of that time that one byte of a text may cause.
    pub(super) step: u64,
    /// Whether every match ends in the table. Otherwise the library may fall back to the NFA.
    pub(super) is_whole: bool,
}

impl Table {
    /// The table for matches from the start of a text.
    pub(super) fn forward(nfa: NFA) -> Table {
        Table::of(
            nfa,
            MatchKind::LeftmostFirst,
            &[Anchored::No, Anchored::Yes],
        )
    }

    /// The table for matches from the end of a text, by the reverse NFA.
    pub(super) fn backward(nfa: NFA) -> Table {
        Table::of(nfa, MatchKind::All, &[Anchored::Yes])
    }

    fn of(nfa: NFA, kind: MatchKind, modes: &[Anchored]) -> Table {
        let config = dfa::Config::new()
            .match_kind(kind)
            .starts_for_each_pattern(true)
            .unicode_word_boundary(true)
            .cache_capacity(WHOLE_BYTES_MAX)
            .minimum_cache_clear_count(Some(0));
        let Ok(dfa) = DFA::builder().configure(config).build_from_nfa(nfa) else {
            // If not even a few states fit, the library has no table.
            return Table::default();
        };
        let cache = dfa.create_cache();
        let empty = cache.memory_usage();
        let mut walk = Walk {
            dfa: &dfa,
            cache,
            seen: HashSet::new(),
            open: Vec::new(),
            transitions: 0,
            has_exit: false,
        };
        let fits = walk.all(modes);
        let bytes = walk.cache.memory_usage();
        let row = 4_u64 << dfa.byte_classes().stride2();
        let state = (bytes - empty) as u64 / (walk.seen.len() as u64).max(1);
        let step = TRANSITION + LISTED_BYTE * state.saturating_sub(row + STATE_BYTES);
        let building = step.saturating_mul(walk.transitions);
        Table {
            bytes: if fits { bytes } else { TABLE_BYTES_MAX },
            building: if fits {
                building
            } else {
                FILLED_MAX * building
            },
            step,
            is_whole: fits && !walk.has_exit,
        }
    }
}

/// Builds all states.
struct Walk<'a> {
    dfa: &'a DFA,
    cache: Cache,
    seen: HashSet<LazyStateID>,
    open: Vec<LazyStateID>,
    transitions: u64,
    /// Whether some text cannot be matched by the DFA, as with word boundaries beside letters that are not ASCII.
    has_exit: bool,
}

impl Walk<'_> {
    /// Whether all states fit into the table.
    fn all(&mut self, modes: &[Anchored]) -> bool {
        let dfa = self.dfa;
        for mode in modes {
            for before in BEFORE {
                let config = start::Config::new().anchored(*mode).look_behind(before);
                let Ok(state) = dfa.start_state(&mut self.cache, &config) else {
                    return false;
                };
                self.reach(state);
            }
        }
        while let Some(state) = self.open.pop() {
            for unit in dfa.byte_classes().representatives(..) {
                let next = match unit.as_u8() {
                    Some(byte) => dfa.next_state(&mut self.cache, state, byte),
                    None => dfa.next_eoi_state(&mut self.cache, state),
                };
                self.transitions += 1;
                let Ok(next) = next else {
                    return false;
                };
                self.reach(next);
            }
        }
        true
    }

    fn reach(&mut self, state: LazyStateID) {
        if state.is_quit() {
            self.has_exit = true;
        } else if !state.is_dead() && self.seen.insert(state) {
            self.open.push(state);
        }
    }
}
