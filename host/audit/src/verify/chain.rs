//! Verifies one stream: its entries have no gap, the hash of each entry covers the hash of the one before, and the last entry is the head.

use super::{Problem, out_of_step};
use crate::record::rows::{EntryRow, HeadRow};
use wrkflw_core::audit::{Head, Stream};
use wrkflw_core::ids::hex;

/// The entries of a stream that are verified so far.
pub(super) struct Chain {
    head: Head,
    /// The entry before the next one is missing or malformed, so the next hash cannot be computed.
    torn: bool,
}

impl Chain {
    pub(super) fn new(stream: Stream) -> Chain {
        let head = Head::genesis(stream);
        Chain { head, torn: false }
    }

    /// Verifies the next stored entry. It continues from the stored hash, even a wrong one, so that one change is one finding.
    pub(super) fn follow(&mut self, row: &EntryRow, problems: &mut Vec<Problem>) {
        let (last, seq) = (self.head.seq, row.seq);
        if let Some(detail) = out_of_step(("entry", "entries"), last.saturating_add(1), seq) {
            problems.push(Problem::new(Some(seq), "gap", detail));
            self.torn = true;
        }
        self.head.seq = last.max(seq);
        let entry = match &row.entry {
            Ok(entry) => entry,
            Err(why) => {
                problems.push(Problem::new(Some(seq), "malformed", *why));
                self.torn = true;
                return;
            }
        };
        if entry.draft.at.as_microsecond() % 1000 != 0 {
            let detail = "its time has parts of a millisecond, which the hash does not cover";
            problems.push(Problem::new(Some(seq), "malformed", detail));
        }
        if let Some(number) = entry.event_seq {
            if !self.torn && number != self.head.event_seq.saturating_add(1) {
                let detail = format!("it is public event {number}, after {}", self.head.event_seq);
                problems.push(Problem::new(Some(seq), "event_seq", detail));
            }
            self.head.event_seq = number;
        }
        let hash = entry.digest(&self.head.hash);
        if !self.torn && hash != entry.hash {
            let detail = format!(
                "{}: its hash is {}, but its content after entry {last} gives {}",
                entry.draft.kind,
                hex(&entry.hash),
                hex(&hash)
            );
            problems.push(Problem::new(Some(seq), "hash", detail));
        }
        self.torn = false;
        self.head.hash = entry.hash;
    }

    /// Compares the last entry with the stored head.
    pub(super) fn end(self, kept: Option<&HeadRow>, problems: &mut Vec<Problem>) {
        let last = self.head.seq;
        let Some(kept) = kept else {
            let detail = format!("there are {last} entries without a stored head");
            problems.push(Problem::new(None, "head_missing", detail));
            return;
        };
        let mut differs = |detail| problems.push(Problem::new(Some(last), "head", detail));
        if kept.seq != last {
            let seq = kept.seq;
            differs(format!(
                "the head names entry {seq} as the last one, but that is {last}"
            ));
        } else if !self.torn && kept.hash != self.head.hash {
            differs(format!(
                "the head has the hash {}, but the last entry has {}",
                hex(&kept.hash),
                hex(&self.head.hash)
            ));
        }
        if let Some(number) = kept
            .event_seq
            .filter(|number| *number != self.head.event_seq)
        {
            let events = self.head.event_seq;
            differs(format!(
                "the head counts {number} public events, but there are {events}"
            ));
        }
    }
}
