//! Verifies the other parts of a tenant: the streams that belong to no instance, streams and decisions whose instance is
//! missing, and the Merkle tree.

use std::collections::VecDeque;

use futures_util::TryStreamExt as _;
use uuid::Uuid;

use super::Finding;
use super::chain::Chain;
use super::directory::Share;
use super::folds::{Fold, Seen};
use super::tree::{LocatedProblem, Tree, of_absent};
use super::{KEYS_MAX, Problem, Verifier};
use crate::record::rows::{CheckpointRow, EntryOf, HeadRow, LeafRow, StreamRow, Which};
use crate::record::{Instances as _, Leaves as _, Record, Streams as _};
use wrkflw_core::audit::{Stream, StreamKind};
use wrkflw_core::checkpoint::Checkpoint;
use wrkflw_core::ids::{InstanceId, TenantId};

/// Rows of leaves that are read in one snapshot. Each has 61 leaves at most.
const ROWS_MAX: i64 = 1000;
/// Entries without a leaf that are reported one by one, and entries with two. A last finding says that there are more.
const LISTED_MAX: usize = 1000;
/// One more, to know whether there are more.
const LISTED_READ: i64 = 1001;

impl<R: Record, F: FnMut(Finding)> Verifier<'_, R, F> {
    /// Verifies the streams that have a row for their head.
    pub(super) async fn heads(&mut self, tenant: TenantId, name: &str) -> Result<Seen, R::Error> {
        let (mut after, mut seen) = ((String::new(), Uuid::nil()), Seen::default());
        loop {
            let mut snapshot = self.record.snapshot(tenant).await?;
            let page = snapshot.heads((&after.0, after.1), KEYS_MAX).await?;
            let Some((last, _)) = page.last() else {
                return Ok(seen);
            };
            after = (last.kind.clone(), last.id);
            for (row, head) in &page {
                seen |= self
                    .chain(&mut snapshot, (tenant, name), row, Some(head))
                    .await?;
            }
        }
    }

    async fn chain(
        &mut self,
        snapshot: &mut R::Snapshot,
        (tenant, name): (TenantId, &str),
        row: &StreamRow,
        head: Option<&HeadRow>,
    ) -> Result<Seen, R::Error> {
        let Some(kind) = StreamKind::named(&row.kind) else {
            let detail = format!("{} is not a kind of stream", row.kind);
            self.finding(
                name,
                &row.kind,
                row.id,
                Problem::new(None, "stream_kind", detail),
            );
            return Ok(Seen::default());
        };
        let (id, mut problems) = (row.id, Vec::new());
        let stream = Stream { tenant, kind, id };
        let mut shares = match kind {
            StreamKind::Directory => Share::all(snapshot.length(kind, id).await?),
            _ => Share::all(0),
        };
        let first = shares.next().unwrap_or(Share::WHOLE);
        let (mut chain, mut fold) = (Chain::new(stream), Fold::new(stream, first));
        let ids = [id];
        let mut entries = snapshot.entries(kind, &ids);
        while let Some(entry) = entries.try_next().await? {
            chain.follow(&entry, &mut problems);
            fold.take(&entry, &mut problems);
            self.tally.entries += 1;
            self.report(name, stream, &mut problems);
        }
        drop(entries);
        chain.end(head, &mut problems);
        self.tally.streams += 1;
        fold.compare(snapshot, &mut problems).await?;
        self.report(name, stream, &mut problems);
        for share in shares {
            let mut fold = Fold::new(stream, share);
            let mut entries = snapshot.entries(kind, &ids);
            while let Some(entry) = entries.try_next().await? {
                fold.take(&entry, &mut problems);
            }
            drop(entries);
            fold.compare(snapshot, &mut problems).await?;
            self.report(name, stream, &mut problems);
        }
        let own = |of| kind == of && id.is_nil();
        Ok(Seen {
            directory: own(StreamKind::Directory),
            operation: own(StreamKind::Operation),
        })
    }

    /// Verifies the entries of an instance whose row is missing.
    pub(super) async fn missing(
        &mut self,
        tenant: TenantId,
        name: &str,
        instance: InstanceId,
    ) -> Result<(), R::Error> {
        let mut snapshot = self.record.snapshot(tenant).await?;
        if !snapshot
            .instances(&Which::One(instance), None, 1)
            .await?
            .is_empty()
        {
            return Ok(());
        }
        let ids = [instance.0];
        let first = snapshot
            .entries(StreamKind::Instance, &ids)
            .try_next()
            .await?;
        if first.is_none() {
            return Ok(());
        }
        let row = StreamRow {
            kind: StreamKind::Instance.name().to_owned(),
            id: instance.0,
            has_head: false,
        };
        let stray = (tenant, name);
        self.chain(&mut snapshot, stray, &row, None).await?;
        Ok(())
    }

    /// Verifies the streams without a head: somebody deleted a row, or inserted entries by hand.
    pub(super) async fn strays(&mut self, tenant: TenantId, name: &str) -> Result<Seen, R::Error> {
        let (mut after, mut seen) = ((String::new(), Uuid::nil()), Seen::default());
        loop {
            let mut snapshot = self.record.snapshot(tenant).await?;
            let page = snapshot.streams((&after.0, after.1), KEYS_MAX).await?;
            let Some(last) = page.last() else {
                return Ok(seen);
            };
            after = (last.kind.clone(), last.id);
            for row in page.iter().filter(|row| !row.has_head) {
                seen |= self.chain(&mut snapshot, (tenant, name), row, None).await?;
            }
        }
    }

    /// Reports the decisions of tasks that no instance has.
    pub(super) async fn lost_decisions(
        &mut self,
        tenant: TenantId,
        name: &str,
    ) -> Result<(), R::Error> {
        let mut after = None;
        loop {
            let mut snapshot = self.record.snapshot(tenant).await?;
            let page = snapshot.decisions(after, KEYS_MAX).await?;
            let Some((last, ..)) = page.last() else {
                return Ok(());
            };
            after = Some(*last);
            for (task, instance, _) in page.iter().filter(|(.., known)| !known) {
                self.tally.decisions += 1;
                let detail = format!(
                    "there is a decision of task {task}, but this instance has no such task"
                );
                let problem = Problem::new(None, "decision_unrecorded", detail);
                self.finding(name, StreamKind::Instance.name(), instance.0, problem);
            }
        }
    }

    /// Verifies the tree with the leaves and checkpoints that exist now.
    pub(super) async fn tree(&mut self, tenant: TenantId, name: &str) -> Result<(), R::Error> {
        let mut snapshot = self.record.snapshot(tenant).await?;
        let last = snapshot.last_checkpoint(name).await?;
        let last = last.map_or(0, |row| row.checkpoint.number);
        let (logged, mut highest) = (snapshot.leaves_logged().await?, 0);
        let unlogged = snapshot.unlogged(None, LISTED_READ).await?;
        let doubled = snapshot.doubled(LISTED_READ).await?;
        let cursor = snapshot.taken_in().await?;
        drop(snapshot);
        let kept = self.kept.iter().filter(|kept| kept.tenant == name);
        let mut tree = Tree::new(self.keys, kept);
        let mut checkpoints = Checkpoints::new(tenant, last);
        let mut found = Vec::new();
        let mut after = -1;
        loop {
            let mut snapshot = self.record.snapshot(tenant).await?;
            let mut page = snapshot.leaves(after, ROWS_MAX).await?;
            // Others were added since.
            page.retain(|leaf| leaf.run.leaf.cast_unsigned() < logged);
            let Some(last) = page.last() else { break };
            after = last.run.leaf;
            for leaf in &page {
                checkpoints
                    .due(self.record, name, &mut tree, &mut found)
                    .await?;
                tree.leaf(leaf.leaf, &leaf.digest, &mut found);
                highest = highest.max(leaf.pos.unwrap_or(0));
                found.extend(of_leaf(leaf));
                self.tally.leaves += 1;
            }
            self.found(name, &mut found);
        }
        checkpoints
            .due(self.record, name, &mut tree, &mut found)
            .await?;
        checkpoints
            .rest(self.record, name, &mut tree, &mut found)
            .await?;
        tree.end(&mut found);
        self.tally.checkpoints += checkpoints.seen;
        self.tally.signatures += tree.signatures;
        found.extend(listed(unlogged, of_unlogged));
        found.extend(listed(doubled, of_doubled));
        if cursor.is_none_or(|cursor| cursor < highest) {
            let detail = format!(
                "entries up to position {highest} are leaves, but the cursor is at {cursor:?}"
            );
            let problem = Problem::new(None, "cursor", detail);
            found.push((super::tree::LEAF.to_owned(), Uuid::nil(), problem));
        }
        self.found(name, &mut found);
        Ok(())
    }

    /// Compares the leaves of one instance with its entries, and reports the entries that should have one.
    pub(super) async fn leaves_of(
        &mut self,
        tenant: TenantId,
        name: &str,
        instance: InstanceId,
    ) -> Result<(), R::Error> {
        let kind = StreamKind::Instance.name();
        // Numbers that no host would give may be anything.
        let (mut after, mut last_seq) = (i64::MIN, i64::MIN);
        loop {
            let mut snapshot = self.record.snapshot(tenant).await?;
            let page = snapshot
                .leaves_of(kind, instance.0, after, ROWS_MAX)
                .await?;
            let Some(last) = page.last() else {
                let of = Some((kind, instance.0));
                let unlogged = snapshot.unlogged(of, LISTED_READ).await?;
                let mut found = listed(unlogged, of_unlogged);
                self.found(name, &mut found);
                return Ok(());
            };
            after = last.run.seq;
            self.tally.leaves += page.len() as u64;
            let mut found: Vec<_> = page.iter().filter_map(of_leaf).collect();
            for leaf in page {
                if leaf.seq.cast_signed() <= last_seq {
                    found.push(of_doubled(EntryOf {
                        kind: leaf.kind,
                        id: leaf.id,
                        seq: leaf.seq,
                    }));
                }
                last_seq = last_seq.max(leaf.seq.cast_signed());
            }
            self.found(name, &mut found);
        }
    }

    /// Reports the kept checkpoints of missing tenants.
    pub(super) fn absent(&mut self, kept: &[&Checkpoint]) {
        for kept in kept {
            let mut found = of_absent(self.keys, kept);
            self.found(&kept.tenant, &mut found);
        }
    }

    fn found(&mut self, tenant: &str, found: &mut Vec<LocatedProblem>) {
        for (stream, id, problem) in found.drain(..) {
            self.finding(tenant, &stream, id, problem);
        }
    }
}

/// The problem of a leaf whose entry is missing or changed.
fn of_leaf(row: &LeafRow) -> Option<LocatedProblem> {
    let leaf = row.leaf;
    let (code, detail) = match &row.now {
        None => (
            "entry_missing",
            format!("it is missing, but leaf {leaf} covers it"),
        ),
        Some(now) if row.digest != now => (
            "leaf",
            format!("it has changed since it became leaf {leaf}"),
        ),
        Some(_) => return None,
    };
    Some((
        row.kind.clone(),
        row.id,
        Problem::new(Some(row.seq), code, detail),
    ))
}

/// The problems of these entries. If there are more than are listed, the last problem says so, for the last entry that is listed.
fn listed(mut entries: Vec<EntryOf>, of: fn(EntryOf) -> LocatedProblem) -> Vec<LocatedProblem> {
    let are_more = entries.len() > LISTED_MAX;
    entries.truncate(LISTED_MAX);
    let mut found: Vec<_> = entries.into_iter().map(of).collect();
    if are_more && let Some((kind, id, problem)) = found.last().cloned() {
        let detail = format!("there are more such entries than the {LISTED_MAX} that are listed");
        found.push((kind, id, Problem { detail, ..problem }));
    }
    found
}

/// The problem of an entry that has no leaf.
fn of_unlogged(entry: EntryOf) -> LocatedProblem {
    let detail = "it should be in the tree, but has no leaf";
    let problem = Problem::new(Some(entry.seq), "unlogged", detail);
    (entry.kind, entry.id, problem)
}

/// The problem of an entry that has two leaves.
fn of_doubled(entry: EntryOf) -> LocatedProblem {
    let detail = "it has more than one leaf";
    let problem = Problem::new(Some(entry.seq), "leaf_twice", detail);
    (entry.kind, entry.id, problem)
}

/// The checkpoints of a tenant, read page by page while the tree is built.
struct Checkpoints {
    tenant: TenantId,
    last: u64,
    after: i64,
    read: VecDeque<CheckpointRow>,
    seen: u64,
}

impl Checkpoints {
    fn new(tenant: TenantId, last: u64) -> Checkpoints {
        Checkpoints {
            tenant,
            last,
            after: 0,
            read: VecDeque::new(),
            seen: 0,
        }
    }

    async fn fill<R: Record>(&mut self, record: &R, name: &str) -> Result<(), R::Error> {
        if self.read.is_empty() && self.after < self.last.cast_signed() {
            let mut snapshot = record.snapshot(self.tenant).await?;
            let page = snapshot.checkpoints(name, self.after, KEYS_MAX).await?;
            self.read = page.into();
            self.after = self.read.back().map_or(self.last.cast_signed(), |row| {
                row.checkpoint.number.cast_signed()
            });
            let last = self.last;
            self.read.retain(|row| row.checkpoint.number <= last);
        }
        Ok(())
    }

    /// Verifies the checkpoints whose leaves are all in the tree.
    async fn due<R: Record>(
        &mut self,
        record: &R,
        name: &str,
        tree: &mut Tree<'_>,
        found: &mut Vec<LocatedProblem>,
    ) -> Result<(), R::Error> {
        loop {
            self.fill(record, name).await?;
            let size = tree.next();
            let Some(row) = self.read.pop_front_if(|row| row.checkpoint.size <= size) else {
                return Ok(());
            };
            self.seen += 1;
            tree.checkpoint(&row.checkpoint, Some(&row.frontier), found);
        }
    }

    /// Verifies the remaining checkpoints, of which leaves are missing.
    async fn rest<R: Record>(
        &mut self,
        record: &R,
        name: &str,
        tree: &mut Tree<'_>,
        found: &mut Vec<LocatedProblem>,
    ) -> Result<(), R::Error> {
        loop {
            self.fill(record, name).await?;
            let Some(row) = self.read.pop_front() else {
                return Ok(());
            };
            self.seen += 1;
            tree.checkpoint(&row.checkpoint, Some(&row.frontier), found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_is_cut_says_so() {
        let entries = |count: usize| -> Vec<EntryOf> {
            let seqs = 1..=u64::try_from(count).expect("a count");
            let entry = |seq| EntryOf {
                kind: "instance".to_owned(),
                id: Uuid::nil(),
                seq,
            };
            seqs.map(entry).collect()
        };
        let last = |count| {
            let found = listed(entries(count), of_unlogged);
            (
                found.len(),
                found.last().map(|(_, _, problem)| problem.detail.clone()),
            )
        };
        let whole = "it should be in the tree, but has no leaf".to_owned();
        assert_eq!(last(0), (0, None));
        assert_eq!(last(LISTED_MAX), (LISTED_MAX, Some(whole)));
        let (count, detail) = last(LISTED_MAX + 1);
        let detail = detail.expect("a last problem");
        assert_eq!(count, LISTED_MAX + 1);
        assert!(detail.contains("more such entries"), "{detail}");
    }
}
