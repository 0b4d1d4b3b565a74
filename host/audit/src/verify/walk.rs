//! Verifies one instance entry by entry: its chain, the fold of its entries, and the replay of its commands.
//!
//! The rows may come from a database snapshot or from a file.

use super::chain::Chain;
use super::instance::Recorded;
use super::{Problem, VerifiedCounts, parts};
use crate::record::rows::{EntryRow, InstanceRow, PartRows, TaskRow};
use crate::replay::{ReplayError, Replayer};
use crate::seal::SealKeys;
use wrkflw_core::audit::{Entry, Stream};
use wrkflw_core::instance::Instance;

/// Maximum entries of one command. A host writes far fewer.
const COMMAND_ENTRIES_MAX: usize = 20_000;

/// The verification of one instance.
pub(super) struct Walk<'a> {
    stream: Stream,
    tenant: String,
    chain: Chain,
    recorded: Recorded,
    again: Option<Again<'a>>,
}

/// The command whose entries are being collected for its replay.
struct Again<'a> {
    replayer: &'a Replayer,
    before: Option<Instance>,
    entries: Vec<Entry>,
    /// Whether all entries before it could be folded, so that it can be replayed.
    is_founded: bool,
}

impl<'a> Walk<'a> {
    pub(super) fn new(stream: Stream, tenant: &str, replayer: Option<&'a Replayer>) -> Walk<'a> {
        let again = replayer.map(|replayer| Again {
            replayer,
            before: None,
            entries: Vec::new(),
            is_founded: true,
        });
        Walk {
            stream,
            tenant: tenant.to_owned(),
            chain: Chain::new(stream),
            recorded: Recorded::default(),
            again,
        }
    }

    /// The stream of the instance.
    pub(super) fn stream(&self) -> Stream {
        self.stream
    }

    /// Verifies the next entry.
    pub(super) async fn follow(
        &mut self,
        row: EntryRow,
        tally: &mut VerifiedCounts,
        problems: &mut Vec<Problem>,
    ) {
        tally.entries += 1;
        self.chain.follow(&row, problems);
        let begins = match (&self.again, &row.entry) {
            (Some(again), Ok(entry)) => again
                .entries
                .first()
                .is_none_or(|first| first.draft.command != entry.draft.command),
            _ => false,
        };
        if begins {
            self.run_again(tally, problems).await;
            if let Some(again) = &mut self.again {
                again.before = self.recorded.instance().cloned();
                again.is_founded = !self.recorded.is_stopped();
            }
        }
        self.recorded.take(&row, problems);
        if let (Some(again), Ok(entry)) = (&mut self.again, row.entry)
            && again.entries.len() < COMMAND_ENTRIES_MAX
        {
            again.entries.push(entry);
        }
    }

    /// Replays the collected command, if the instance before it is known.
    async fn run_again(&mut self, tally: &mut VerifiedCounts, problems: &mut Vec<Problem>) {
        let Some(again) = &mut self.again else { return };
        let entries = std::mem::take(&mut again.entries);
        let Some(first) = entries.first().filter(|_| again.is_founded) else {
            return;
        };
        let (seq, tenant) = (Some(first.seq), (self.stream.tenant, self.tenant.as_str()));
        let before = again.before.take();
        match again.replayer.replay(tenant, before, &entries).await {
            Ok(replayed) => {
                tally.commands += 1;
                tally.evaluations += replayed.evaluations;
                tally.other_profiles += u64::from(replayed.other_profile);
            }
            Err(ReplayError::Differs(detail)) => problems.push(Problem::new(seq, "replay", detail)),
            Err(ReplayError::Unable(detail)) => {
                problems.push(Problem::new(seq, "replay_unable", detail));
            }
        }
    }

    /// Compares the fold with the rows. An export has no `parts`.
    pub(super) async fn end(
        mut self,
        ((row, tasks), parts): ((&InstanceRow, &[&TaskRow]), Option<&PartRows>),
        seals: Option<&SealKeys>,
        tally: &mut VerifiedCounts,
        problems: &mut Vec<Problem>,
    ) {
        self.run_again(tally, problems).await;
        self.chain.end(Some(&row.head), problems);
        self.recorded.end();
        self.recorded.compare(row, tasks, problems);
        if let Some(parts) = parts {
            parts::compare(self.stream.tenant, &self.recorded, parts, problems);
        }
        let sealed = self
            .recorded
            .decisions(tasks, (seals, &self.tenant), problems);
        let delegated = self
            .recorded
            .delegations(row, (seals, &self.tenant), problems);
        tally.decisions += sealed.count;
        tally.delegations += delegated.count;
        tally.seals += sealed.valid + delegated.valid;
        tally.streams += 1;
        tally.instances += 1;
    }
}
