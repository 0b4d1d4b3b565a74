//! Verification of the audit chain on one core: entries like those of a decision, hashed onto each other again, and the Merkle
//! tree above them. Without a database, so that only the hashing is measured.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use clap::Args;
use jiff::Timestamp;
use uuid::Uuid;
use wrkflw_core::audit::{Draft, Entry, Head, Stream, StreamKind};
use wrkflw_core::ids::{CommandId, TaskId, TenantId};
use wrkflw_core::json::Json;
use wrkflw_core::merkle::{self, Range};

/// Entries of one command, of which the first has the evidence.
const PER_COMMAND: u64 = 4;
/// Bytes of a payload and of evidence, about those of a decision in document approval.
const PAYLOAD_BYTES: usize = 400;
const EVIDENCE_BYTES: usize = 6000;

/// How much to verify.
#[derive(Args)]
pub(crate) struct Verify {
    /// Entries of one stream.
    #[arg(long, default_value_t = 100_000)]
    entries: u64,
    /// Passes; the best counts.
    #[arg(long, default_value_t = 5)]
    rounds: u32,
}

impl Verify {
    pub(crate) fn run(&self) -> String {
        let stream = Stream {
            tenant: TenantId(1),
            kind: StreamKind::Instance,
            id: Uuid::from_u128(7),
        };
        let mut head = Head::genesis(stream);
        let entries: Vec<Entry> = (0..self.entries)
            .map(|number| head.append(stream, draft(number)))
            .collect();
        let (mut chain, mut tree) = (Duration::MAX, Duration::MAX);
        for _ in 0..self.rounds {
            let begun = Instant::now();
            assert_eq!(follow(stream, &entries), head.hash, "the chain holds");
            chain = chain.min(begun.elapsed());
            let begun = Instant::now();
            let mut range = Range::default();
            for entry in &entries {
                range.push(merkle::leaf(&entry.hash));
            }
            assert_eq!(range.size(), self.entries);
            std::hint::black_box(range.root());
            tree = tree.min(begun.elapsed());
        }
        let mut text = String::new();
        for (name, elapsed) in [("chain", chain), ("tree", tree)] {
            let rate =
                self.entries * 1_000_000 / u64::try_from(elapsed.as_micros().max(1)).unwrap_or(1);
            writeln!(text, "verify {name:<6} {rate:>9} entries/s on one core")
                .expect("a string takes everything");
        }
        text.trim_end().to_owned()
    }
}

/// Hashes all entries onto each other, as verification does. Ends at an entry with a wrong hash.
fn follow(stream: Stream, entries: &[Entry]) -> [u8; 32] {
    let mut previous = Head::genesis(stream).hash;
    for entry in entries {
        let hash = entry.digest(&previous);
        if hash != entry.hash {
            return previous;
        }
        previous = hash;
    }
    previous
}

fn draft(number: u64) -> Draft {
    let filler = |bytes| Json::from_canonical(format!("{{\"text\":\"{}\"}}", "x".repeat(bytes)));
    Draft {
        id: Uuid::from_u128(number.into()),
        kind: "DECISION_RECORDED".into(),
        revision: 3,
        command: CommandId(Uuid::from_u128((number / PER_COMMAND).into())),
        actor: Some("reviewer".into()),
        task: Some(TaskId(Uuid::from_u128(2))),
        payload: filler(PAYLOAD_BYTES),
        evidence: number
            .is_multiple_of(PER_COMMAND)
            .then(|| filler(EVIDENCE_BYTES)),
        salt: [3; 16],
        at: Timestamp::UNIX_EPOCH,
        public: true,
        traceparent: None,
    }
}
