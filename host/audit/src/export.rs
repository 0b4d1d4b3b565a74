//! Exports the audit line by line. A verifier needs nothing else, and no database.
//!
//! It reads page by page, each page in one snapshot, while hosts run. Leaves and checkpoints come first, so entries that hosts add
//! meanwhile are at worst not in a checkpoint yet. Memory holds a page and, for a part of a tenant, the hashes that its proofs need.

pub mod line;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::TryStreamExt as _;
use jiff::Timestamp;
use uuid::Uuid;

use self::line::{
    EntryLine, ExportLine, FORMAT, LeafLine, ProofLine, RefusedLine, TenantLine, VERSION,
};
use crate::record::rows::{InstanceRow, StreamRow, TaskRow, Which};
use crate::record::{Instances as _, Leaves as _, Record, Streams as _, Versions as _};
use wrkflw_core::audit::StreamKind;
use wrkflw_core::ids::{Digest, TenantId, hex, unhex};
use wrkflw_core::merkle::{self, proof};

const TENANTS_MAX: i64 = 100;
const INSTANCES_MAX: i64 = 50;
const ROWS_MAX: i64 = 1000;
/// Limit of the entries with proofs, for an instance or an entity. A tenant needs none.
const PROOFS_MAX: usize = 100_000;

/// Why an export is not complete.
#[derive(Debug, thiserror::Error)]
pub enum ExportError<E: Error> {
    #[error(transparent)]
    Read(#[from] E),
    #[error("the export cannot be written: {0}")]
    Write(std::io::Error),
    #[error("{0}")]
    Unfit(String),
}

/// Exports to `write`, which receives one line after the other.
pub struct Exporter<'a, R, W> {
    record: &'a R,
    with_components: bool,
    write: W,
    lines: u64,
    components: BTreeSet<String>,
}

/// The leaves of the exported entries, with their proofs.
#[derive(Default)]
struct Leaves {
    by_entry: BTreeMap<(Uuid, u64), u64>,
    proofs: Option<proof::Proofs>,
}

impl<'a, R: Record, W: FnMut(&ExportLine) -> std::io::Result<()>> Exporter<'a, R, W> {
    pub fn new(record: &'a R, with_components: bool, write: W) -> Exporter<'a, R, W> {
        Exporter {
            record,
            with_components,
            write,
            lines: 0,
            components: BTreeSet::new(),
        }
    }

    /// Exports every tenant, or the one with this name. Returns the number of lines.
    pub async fn run(
        mut self,
        tenant: Option<&str>,
        which: &Which,
        now: Timestamp,
    ) -> Result<u64, ExportError<R::Error>> {
        self.line(&ExportLine::Header {
            format: FORMAT.to_owned(),
            version: VERSION,
            exported_at: now,
        })?;
        let mut after = None;
        loop {
            let page = self.record.tenants(after, TENANTS_MAX).await?;
            for (id, name) in &page {
                if tenant.is_none_or(|wanted| wanted == name) {
                    self.tenant(*id, name, which).await?;
                }
            }
            match page.last() {
                Some((id, _)) => after = Some(*id),
                None => break,
            }
        }
        let lines = self.lines;
        self.line(&ExportLine::End { lines })?;
        Ok(self.lines)
    }

    fn line(&mut self, line: &ExportLine) -> Result<(), ExportError<R::Error>> {
        (self.write)(line).map_err(ExportError::Write)?;
        self.lines += 1;
        Ok(())
    }

    async fn tenant(
        &mut self,
        id: TenantId,
        name: &str,
        which: &Which,
    ) -> Result<(), ExportError<R::Error>> {
        let whole = matches!(which, Which::All);
        let mut snapshot = self.record.snapshot(id).await?;
        if !whole && snapshot.instances(which, None, 1).await?.is_empty() {
            return Ok(());
        }
        let taken_in = snapshot.taken_in().await?.unwrap_or(0);
        let size = snapshot.leaves_logged().await?;
        self.line(&ExportLine::Tenant(TenantLine {
            id,
            name: name.to_owned(),
            whole,
            taken_in,
        }))?;
        self.versions(&mut snapshot).await?;
        let leaves = if whole {
            self.leaves(&mut snapshot, (id, name), size).await?;
            Leaves::default()
        } else {
            self.proofs(&mut snapshot, (id, name), which).await?
        };
        drop(snapshot);
        self.instances(id, which, &leaves).await?;
        if whole {
            self.streams(id).await?;
            self.refused(id).await?;
        }
        Ok(())
    }

    async fn versions(&mut self, snapshot: &mut R::Snapshot) -> Result<(), ExportError<R::Error>> {
        let mut after = (String::new(), 0);
        loop {
            let page = snapshot.versions((&after.0, after.1), ROWS_MAX).await?;
            let Some(last) = page.last() else {
                return Ok(());
            };
            after = (last.reference.key.clone(), last.reference.version);
            for version in page {
                let digest = version.component.clone();
                self.line(&ExportLine::Version(Box::new(version)))?;
                if self.with_components && self.components.insert(digest.clone()) {
                    self.component(&digest).await?;
                }
            }
        }
    }

    async fn component(&mut self, digest: &str) -> Result<(), ExportError<R::Error>> {
        let Some(bytes) = unhex(digest).and_then(|bytes| bytes.try_into().ok()) else {
            return Ok(());
        };
        // A missing component is found when its commands are replayed.
        if let Some(bytes) = self.record.recorded_component(Digest(bytes)).await? {
            let bytes = STANDARD.encode(bytes);
            self.line(&ExportLine::Component { bytes })?;
        }
        Ok(())
    }

    /// Exports all leaves, each checkpoint behind those that it covers.
    async fn leaves(
        &mut self,
        snapshot: &mut R::Snapshot,
        (tenant, name): (TenantId, &str),
        size: u64,
    ) -> Result<(), ExportError<R::Error>> {
        let mut beside = self.record.snapshot(tenant).await?;
        let (mut after, mut number) = (-1, 0);
        loop {
            let page = snapshot.leaves(after, ROWS_MAX).await?;
            let upto = page.last().map_or(size, |last| last.leaf.saturating_add(1));
            after = page.last().map_or(after, |last| last.run.leaf);
            let is_end = page.is_empty();
            let mut leaves = page.into_iter().peekable();
            let mut more = true;
            while more {
                let checkpoints = beside.checkpoints(name, number, ROWS_MAX).await?;
                more = !checkpoints.is_empty();
                for row in checkpoints {
                    if row.checkpoint.size > upto {
                        more = false;
                        break;
                    }
                    while let Some(leaf) = leaves.next_if(|leaf| leaf.leaf < row.checkpoint.size) {
                        self.leaf(leaf)?;
                    }
                    number = row.checkpoint.number.cast_signed();
                    self.line(&ExportLine::Checkpoint(row.checkpoint))?;
                }
            }
            for leaf in leaves {
                self.leaf(leaf)?;
            }
            if is_end {
                return Ok(());
            }
        }
    }

    fn leaf(&mut self, row: crate::record::rows::LeafRow) -> Result<(), ExportError<R::Error>> {
        self.line(&ExportLine::Leaf(LeafLine {
            leaf: row.leaf,
            kind: row.kind,
            id: row.id,
            seq: row.seq,
            digest: row.digest,
        }))
    }

    /// Exports the last checkpoint, and computes the proofs that the entries of these instances are in its tree.
    async fn proofs(
        &mut self,
        snapshot: &mut R::Snapshot,
        (_, name): (TenantId, &str),
        which: &Which,
    ) -> Result<Leaves, ExportError<R::Error>> {
        let Some(last) = snapshot.last_checkpoint(name).await? else {
            return Ok(Leaves::default());
        };
        let size = last.checkpoint.size;
        let mut by_entry = BTreeMap::new();
        let mut after = None;
        loop {
            let page = snapshot.instances(which, after, INSTANCES_MAX).await?;
            for row in &page {
                self.leaves_of(snapshot, row, &mut by_entry).await?;
            }
            match page.last() {
                Some(row) if !matches!(which, Which::One(_)) => after = Some(row.id),
                _ => break,
            }
        }
        by_entry.retain(|_, leaf| *leaf < size);
        let mut prover = proof::Prover::new(size, by_entry.values().copied());
        let (mut after, mut next) = (-1, 0);
        while next < size {
            let page = snapshot.leaves(after, ROWS_MAX).await?;
            let Some(last) = page.last() else { break };
            after = last.run.leaf;
            for leaf in &page {
                if leaf.leaf == next && next < size {
                    prover.push(merkle::leaf(&leaf.digest));
                    next += 1;
                }
            }
            if last.leaf >= next {
                break;
            }
        }
        let Some((_, proofs)) = prover.end() else {
            let detail = format!(
                "leaves are missing that the last checkpoint of tenant {name} covers, so its entries have no proofs: see `wrkflw audit verify --tenant {name}`"
            );
            return Err(ExportError::Unfit(detail));
        };
        self.line(&ExportLine::Checkpoint(last.checkpoint))?;
        Ok(Leaves {
            by_entry,
            proofs: Some(proofs),
        })
    }

    async fn leaves_of(
        &self,
        snapshot: &mut R::Snapshot,
        row: &InstanceRow,
        by_entry: &mut BTreeMap<(Uuid, u64), u64>,
    ) -> Result<(), ExportError<R::Error>> {
        let kind = StreamKind::Instance.name();
        let mut after = i64::MIN;
        loop {
            let page = snapshot.leaves_of(kind, row.id.0, after, ROWS_MAX).await?;
            let Some(last) = page.last() else {
                return Ok(());
            };
            after = last.run.seq;
            by_entry.extend(page.iter().map(|leaf| ((leaf.id, leaf.seq), leaf.leaf)));
            if by_entry.len() > PROOFS_MAX {
                let detail = format!(
                    "there are more than {PROOFS_MAX} entries: export the whole tenant, which needs no proof for each of them"
                );
                return Err(ExportError::Unfit(detail));
            }
        }
    }

    async fn instances(
        &mut self,
        tenant: TenantId,
        which: &Which,
        leaves: &Leaves,
    ) -> Result<(), ExportError<R::Error>> {
        let mut after = None;
        loop {
            let mut snapshot = self.record.snapshot(tenant).await?;
            let page = snapshot.instances(which, after, INSTANCES_MAX).await?;
            let Some(last) = page.last() else {
                return Ok(());
            };
            after = Some(last.id);
            let ids: Vec<Uuid> = page.iter().map(|row| row.id.0).collect();
            let mut tasks: BTreeMap<_, Vec<TaskRow>> = BTreeMap::new();
            for task in snapshot.tasks(&ids).await? {
                tasks.entry(task.instance).or_default().push(task);
            }
            for row in page {
                let id = row.id;
                self.line(&ExportLine::Instance(Box::new(row)))?;
                for task in tasks.remove(&id).unwrap_or_default() {
                    self.line(&ExportLine::Task(Box::new(task)))?;
                }
                self.entries(&mut snapshot, StreamKind::Instance, id.0, leaves)
                    .await?;
            }
            if matches!(which, Which::One(_)) {
                return Ok(());
            }
        }
    }

    async fn entries(
        &mut self,
        snapshot: &mut R::Snapshot,
        kind: StreamKind,
        id: Uuid,
        leaves: &Leaves,
    ) -> Result<(), ExportError<R::Error>> {
        let ids = [id];
        let mut entries = snapshot.entries(kind, &ids);
        while let Some(row) = entries.try_next().await? {
            let seq = row.seq;
            let leaf = leaves.by_entry.get(&(id, seq)).copied();
            let proof = leaf.zip(leaves.proofs.as_ref()).and_then(|(leaf, proofs)| {
                let path = proofs.of(leaf)?.iter().map(|hash| hex(hash)).collect();
                Some(ProofLine { leaf, path })
            });
            let line = EntryLine::of(row, proof).map_err(|why| {
                ExportError::Unfit(format!(
                    "entry {seq} of {} {id}: {why}; verify the database itself",
                    kind.name()
                ))
            })?;
            self.line(&ExportLine::Entry(Box::new(line)))?;
        }
        Ok(())
    }

    /// Exports the streams of definitions, directories and operations, and streams without a head.
    async fn streams(&mut self, tenant: TenantId) -> Result<(), ExportError<R::Error>> {
        let mut after = (String::new(), Uuid::nil());
        loop {
            let mut snapshot = self.record.snapshot(tenant).await?;
            let page = snapshot.heads((&after.0, after.1), ROWS_MAX).await?;
            let Some((last, _)) = page.last() else { break };
            after = (last.kind.clone(), last.id);
            for (row, head) in page {
                self.stream(&mut snapshot, &row, Some(head)).await?;
            }
        }
        let mut after = (String::new(), Uuid::nil());
        loop {
            let mut snapshot = self.record.snapshot(tenant).await?;
            let page = snapshot.streams((&after.0, after.1), ROWS_MAX).await?;
            let Some(last) = page.last() else {
                return Ok(());
            };
            after = (last.kind.clone(), last.id);
            for row in page.iter().filter(|row| !row.has_head) {
                self.stream(&mut snapshot, row, None).await?;
            }
        }
    }

    async fn stream(
        &mut self,
        snapshot: &mut R::Snapshot,
        row: &StreamRow,
        head: Option<crate::record::rows::HeadRow>,
    ) -> Result<(), ExportError<R::Error>> {
        let (kind, id) = (row.kind.clone(), row.id);
        self.line(&ExportLine::Stream { kind, id, head })?;
        match StreamKind::named(&row.kind) {
            Some(kind) => self.entries(snapshot, kind, id, &Leaves::default()).await,
            None => Ok(()),
        }
    }

    async fn refused(&mut self, tenant: TenantId) -> Result<(), ExportError<R::Error>> {
        let mut after = None;
        loop {
            let mut snapshot = self.record.snapshot(tenant).await?;
            let page = snapshot.refused_after(after, ROWS_MAX).await?;
            let Some(last) = page.last() else {
                return Ok(());
            };
            after = Some(last.id);
            for row in page {
                let (id, pos, columns) = (row.id, row.pos, row.hashed().to_vec());
                self.line(&ExportLine::Refused(RefusedLine { id, pos, columns }))?;
            }
        }
    }
}
