//! Handwritten components, for behaviour that no compiler of a normal language generates.
//!
//! `tests/guests/raw.wat` is a small correct flow. A [`Raw`] adds misbehaving code to it. This module encodes the answers by the
//! canonical ABI, because that is hard in text form.

use std::fmt::Write as _;

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata, metadata};

use super::guests;

const FLOW: &str = include_str!("../guests/raw.wat");
/// The address of the static data in the guest's memory.
const BASE: u32 = 0x8000;
const PAGE_BYTES: u32 = 0x1_0000;

/// A flow in text form. Each member is misbehaving code, which runs before the correct answer is returned.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Raw<'a> {
    /// Limits of the memory in pages. Empty means eight.
    pub(crate) memory: &'a str,
    /// Further definitions of the module.
    pub(crate) also: &'a str,
    pub(crate) realloc: &'a str,
    pub(crate) describe: &'a str,
    pub(crate) start: &'a str,
    pub(crate) transition: &'a str,
    /// Runs after the host has read the answer of `transition`.
    pub(crate) after: &'a str,
}

impl Raw<'_> {
    /// The component, ready to be published.
    pub(crate) fn component(&self) -> Vec<u8> {
        let mut module = self.module();
        let metadata = metadata::decode(guests::hostile_module());
        let (_, contract) = metadata.expect("a guest built with its contract");
        embed_component_metadata(
            &mut module,
            &contract.resolve,
            contract.world,
            StringEncoding::UTF8,
        )
        .expect("a module with its contract");
        ComponentEncoder::default()
            .validate(true)
            .module(&module)
            .and_then(|mut encoder| encoder.encode())
            .expect("a component")
    }

    fn module(&self) -> Vec<u8> {
        let mut data = Data::default();
        let described = data.description();
        let verdict = data.words(&[0; 6]);
        let plan = data.plan();
        let work = data.work();
        assert!(data.0.len() < (PAGE_BYTES - BASE) as usize, "too much data");
        let mut text = FLOW.to_owned();
        for (place, filling) in [
            (
                "memory",
                if self.memory.is_empty() {
                    "8"
                } else {
                    self.memory
                },
            ),
            ("described", &described.to_string()),
            ("verdict", &verdict.to_string()),
            ("plan", &plan.to_string()),
            ("work", &work.to_string()),
            ("data", &data.escaped()),
            ("also", self.also),
            ("realloc", self.realloc),
            ("describe", self.describe),
            ("start", self.start),
            ("transition", self.transition),
            ("after", self.after),
        ] {
            text = text.replace(&format!("{{{{{place}}}}}"), filling);
        }
        wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }
}

/// The static data of a guest, under construction.
#[derive(Default)]
struct Data(Vec<u8>);

impl Data {
    fn here(&self) -> u32 {
        BASE + u32::try_from(self.0.len()).expect("less than a page")
    }

    /// The address of these words, little-endian.
    fn words(&mut self, words: &[u32]) -> u32 {
        let at = self.here();
        for word in words {
            self.0.extend(word.to_le_bytes());
        }
        at
    }

    /// Writes address and length of a text, and aligns what follows.
    fn text(&mut self, text: &str) -> [u32; 2] {
        let at = self.here();
        self.0.extend(text.as_bytes());
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        [at, u32::try_from(text.len()).expect("a short text")]
    }

    /// `result<definition, list<violation>>`.
    fn description(&mut self) -> u32 {
        let [work, done, go, outcome] = ["Work", "Done", "GO", "DONE"].map(|text| self.text(text));
        let state = |name: [u32; 2], kind: [u32; 3]| {
            let [at, length] = name;
            let [case, a, b] = kind;
            // No description, no join, not own work, no extensions.
            [at, length, at, length, 0, 0, case, a, b, 0, 0, 0, 0, 0]
        };
        let task = state(work, [0, 0, 0]);
        let end = state(done, [4, outcome[0], outcome[1]]);
        let states = self.words(&[task, end].concat());
        let targets = self.words(&done);
        let by_decision = 1;
        // No permission, no texts for people, no schema, an optional comment, no extensions.
        let mut way = [&work[..], &go, &[targets, 1, by_decision]].concat();
        way.resize(22, 0);
        let ways = self.words(&way);
        let (nobody, no_schema, no_attributes) = ([0, 0], [0, 0, 0], [0, 0]);
        // The word of `reads` has `sole-per-entity`, too.
        let (none_separate, reads_nothing, uses_nothing) = ([0, 0], [0], [0, 0]);
        let to_tenant = [0, 0, 0];
        let no_extensions = [0, 0, 0, 0];
        let (no_title, no_description) = ([0, 0], [0, 0]);
        // Neither templates nor names of priorities.
        let no_words = [0; 8];
        let ok = [0];
        self.words(
            &[
                &ok[..],
                &no_title,
                &no_description,
                &work,
                &nobody,
                &[states, 2, ways, 1],
                &no_schema,
                &no_attributes,
                &no_words,
                &none_separate,
                &reads_nothing,
                &to_tenant,
                &uses_nothing,
                &no_extensions,
            ]
            .concat(),
        )
    }

    /// `result<plan, refusal>`, with space for a list of notes before the list of extensions at its end.
    fn plan(&mut self) -> u32 {
        // A target without key and data.
        let mut target = self.text("Done").to_vec();
        target.resize(8, 0);
        let enter = self.words(&target);
        let (ok, enter_states) = (0, 2);
        let mut words = vec![ok, enter_states, enter, 1];
        words.resize(17, 0);
        self.words(&words)
    }

    /// `result<list<work>, refusal>`.
    fn work(&mut self) -> u32 {
        let [label, group] = ["work", "reviewers"].map(|text| self.text(text));
        let of_group = 1;
        let candidates = self.words(&[of_group, group[0], group[1]]);
        let mut offer = vec![label[0], label[1], candidates, 1];
        offer.resize(15, 0);
        let offers = self.words(&offer);
        let (task, count, needed) = (0, 0, 1);
        let mut words = vec![task, offers, 1, count, needed];
        words.resize(19, 0);
        let list = self.words(&words);
        let ok = 0;
        self.words(&[ok, list, 1, 0, 0, 0])
    }

    fn escaped(&self) -> String {
        let mut text = String::new();
        for byte in &self.0 {
            write!(text, "\\{byte:02x}").expect("a string takes all");
        }
        text
    }
}
