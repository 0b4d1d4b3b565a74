//! Verifies an export without its database: the same walk as over a database's rows, with lines as its input.
//!
//! Leaves come before their entries. For each leaf that waits for its entry, memory holds the digest and the number, and for each run
//! of leaves their stream. Entries that the last checkpoint does not cover yet are counted, not proven. Messages do not repeat the
//! text of unreadable lines.

mod open;
mod owners;
mod versions;

use std::collections::HashMap;

use uuid::Uuid;

use self::open::Open;
use self::owners::Owners;
use self::versions::Versions;
use super::chain::Chain;
use super::tree::{LEAF, LocatedProblem, Tree, of_absent, signature};
use super::walk::Walk;
use super::{Finding, How, Problem, VerifiedCounts};
use crate::export::line::{
    EntryLine, ExportLine, FORMAT, LeafLine, RefusedLine, TenantLine, VERSION,
};
use crate::record::rows::{HeadRow, InstanceRow};
use wrkflw_core::audit::{Stream, StreamKind};
use wrkflw_core::checkpoint::{Checkpoint, REFUSED, refused_digest};
use wrkflw_core::ids::unhex;
use wrkflw_core::merkle::{self, Hash, proof};

/// Leaves without an entry that are named one by one.
const MISSING_MAX: usize = 1000;

/// Why a line ends the verification.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {detail}")]
pub struct LineError {
    pub line: u64,
    pub detail: String,
}

/// A file under way.
pub struct FileVerifier<'a, F> {
    how: How<'a>,
    on_finding: F,
    tally: VerifiedCounts,
    lines: u64,
    ended: bool,
    tenant: Option<Tenant<'a>>,
    /// The tenant that the file must be of, if there is one.
    only: Option<&'a str>,
    /// The kept checkpoints of tenants that have not come yet.
    absent: Vec<&'a Checkpoint>,
    /// Whether a tenant came as a whole.
    has_whole: bool,
}

/// The tenant whose lines are being read.
struct Tenant<'a> {
    line: TenantLine,
    tree: Tree<'a>,
    /// Leaves whose entry has not come yet: their place in the tree, by the digest that they cover.
    waiting: HashMap<Hash, u64>,
    /// The streams of the leaves, to report leaves without an entry.
    owners: Owners,
    /// The checkpoint that proofs of entries lead to.
    checkpoint: Option<Checkpoint>,
    /// The highest position of an entry with a proof. Leaves are in the order of their positions.
    proven: i64,
    /// The entry without a proof that has the lowest position.
    unproven: Option<(i64, Stream, u64)>,
    open: Open<'a>,
    versions: Versions,
}

impl<'a, F: FnMut(Finding)> FileVerifier<'a, F> {
    pub fn new(how: How<'a>, on_finding: F) -> FileVerifier<'a, F> {
        FileVerifier {
            how,
            on_finding,
            tally: VerifiedCounts::default(),
            lines: 0,
            ended: false,
            tenant: None,
            only: None,
            absent: how.kept.iter().collect(),
            has_whole: false,
        }
    }

    /// Expects an export of this tenant alone. Kept checkpoints of other tenants do not count.
    pub fn of(mut self, tenant: &'a str) -> Self {
        self.only = Some(tenant);
        self.absent.retain(|kept| kept.tenant == tenant);
        self
    }

    /// Takes the next line.
    pub async fn line(&mut self, text: &str) -> Result<(), LineError> {
        let at = self.lines + 1;
        let unfit = |detail: String| LineError { line: at, detail };
        let line: ExportLine = serde_json::from_str(text).map_err(|error| {
            unfit(format!(
                "it is no line of an export ({:?})",
                error.classify()
            ))
        })?;
        if self.ended {
            return Err(unfit("there is more after the end".into()));
        }
        match line {
            ExportLine::Header {
                format, version, ..
            } => {
                if at != 1 || format != FORMAT || version != VERSION {
                    let detail = format!(
                        "this program reads {FORMAT} of version {VERSION}, and this is {format} of version {version}"
                    );
                    return Err(unfit(detail));
                }
            }
            _ if at == 1 => return Err(unfit(format!("it does not begin as {FORMAT}"))),
            ExportLine::Tenant(line) => {
                if let Some(only) = self.only.filter(|only| *only != line.name) {
                    return Err(unfit(format!("it is of another tenant than {only}")));
                }
                self.close().await;
                self.absent.retain(|kept| kept.tenant != line.name);
                self.tally.parts += u64::from(!line.whole);
                self.has_whole |= line.whole;
                self.tenant = Some(Tenant::new(line, self.how));
            }
            // Replays have read it before.
            ExportLine::Version(version) => {
                if let Some(tenant) = self.tenant.as_mut().filter(|tenant| tenant.line.whole) {
                    tenant.versions.line(&version);
                }
            }
            ExportLine::Component { .. } => {}
            ExportLine::End { lines } => {
                if lines != self.lines {
                    return Err(unfit(format!("the file had {lines} lines before its end")));
                }
                self.close().await;
                self.absent();
                self.ended = true;
            }
            rest => self.of_tenant(rest).await.map_err(unfit)?,
        }
        self.lines += 1;
        Ok(())
    }

    /// The counts of the verification, once the end line has come.
    pub fn end(self) -> Result<VerifiedCounts, LineError> {
        let line = self.lines;
        let detail = "the file was cut off: its end is missing".to_owned();
        if self.ended {
            Ok(self.tally)
        } else {
            Err(LineError { line, detail })
        }
    }

    async fn of_tenant(&mut self, line: ExportLine) -> Result<(), String> {
        let mut found = Vec::new();
        let before = "it comes before the line of a tenant";
        let mut tenant = self.tenant.take().ok_or(before)?;
        match line {
            ExportLine::Leaf(leaf) => tenant.leaf(leaf, &mut self.tally, &mut found),
            ExportLine::Checkpoint(row) => {
                tenant.checkpoint(row, self.how, &mut self.tally, &mut found);
            }
            ExportLine::Instance(row) => {
                tenant.close(self.how, &mut self.tally, &mut found).await;
                tenant.instance(row, self.how);
            }
            ExportLine::Stream { kind, id, head } => {
                tenant.close(self.how, &mut self.tally, &mut found).await;
                tenant.stream(&kind, id, head)?;
            }
            ExportLine::Task(task) => match &mut tenant.open {
                Open::Instance { row, tasks, .. } if row.id == task.instance => tasks.push(*task),
                _ => return Err("a task of another instance".into()),
            },
            ExportLine::Entry(entry) => tenant.entry(*entry, &mut self.tally, &mut found).await?,
            ExportLine::Refused(refused) => tenant.refused(&refused, &mut self.tally, &mut found),
            ExportLine::Header { .. }
            | ExportLine::Tenant(_)
            | ExportLine::Version(_)
            | ExportLine::Component { .. }
            | ExportLine::End { .. } => return Err("it does not belong here".into()),
        }
        self.report(&tenant.line.name, found);
        self.tenant = Some(tenant);
        Ok(())
    }

    async fn close(&mut self) {
        let Some(mut tenant) = self.tenant.take() else {
            return;
        };
        let mut found = Vec::new();
        tenant.close(self.how, &mut self.tally, &mut found).await;
        tenant.end(self.how, &mut self.tally, &mut found);
        self.report(&tenant.line.name, found);
    }

    /// Reports the kept checkpoints of tenants that the file lacks. An export of an instance or entity lacks all tenants but one.
    fn absent(&mut self) {
        if self.tally.parts > 0 && !self.has_whole {
            self.tally.uncompared += self.absent.len() as u64;
            return;
        }
        for kept in std::mem::take(&mut self.absent) {
            let found = of_absent(self.how.keys, kept);
            self.report(&kept.tenant, found);
        }
    }

    fn report(&mut self, tenant: &str, found: Vec<LocatedProblem>) {
        for (stream, id, problem) in found {
            self.tally.findings += 1;
            (self.on_finding)(problem.of(tenant, &stream, id));
        }
    }
}

impl<'a> Tenant<'a> {
    fn new(line: TenantLine, how: How<'a>) -> Tenant<'a> {
        let name = line.name.clone();
        let kept = how.kept.iter().filter(move |kept| kept.tenant == name);
        Tenant {
            tree: Tree::new(how.keys, kept),
            line,
            waiting: HashMap::new(),
            owners: Owners::default(),
            checkpoint: None,
            proven: 0,
            unproven: None,
            open: Open::None,
            versions: Versions::default(),
        }
    }

    fn leaf(
        &mut self,
        line: LeafLine,
        tally: &mut VerifiedCounts,
        found: &mut Vec<LocatedProblem>,
    ) {
        tally.leaves += 1;
        self.tree.leaf(line.leaf, &line.digest, found);
        if let Ok(digest) = Hash::try_from(line.digest.as_slice()) {
            self.waiting.insert(digest, line.leaf);
        } else {
            let detail = format!("leaf {} does not have 32 bytes", line.leaf);
            let problem = Problem::new(Some(line.seq), "leaf", detail);
            found.push((line.kind.clone(), line.id, problem));
        }
        self.owners.push(line);
    }

    fn checkpoint(
        &mut self,
        row: Checkpoint,
        how: How<'_>,
        tally: &mut VerifiedCounts,
        found: &mut Vec<LocatedProblem>,
    ) {
        tally.checkpoints += 1;
        if row.tenant != self.line.name {
            let detail = format!("it is of tenant {}", row.tenant);
            found.push(super::tree::of_checkpoint(&row, "signature", detail));
        }
        if self.line.whole {
            self.tree.checkpoint(&row, None, found);
            return;
        }
        match signature(how.keys, &row) {
            Some((code, detail)) => found.push(super::tree::of_checkpoint(&row, code, detail)),
            None => tally.signatures += u64::from(!how.keys.is_empty()),
        }
        for kept in how.kept.iter().filter(|kept| kept.tenant == row.tenant) {
            let differs = kept.size == row.size && kept.root != row.root;
            if differs || kept.size > row.size {
                let detail = "it is not the checkpoint that was kept, nor a later one".to_owned();
                found.push(super::tree::of_checkpoint(&row, "kept", detail));
            } else if kept.size < row.size {
                tally.uncompared += 1;
            }
        }
        self.checkpoint = Some(row);
    }

    fn instance(&mut self, row: Box<InstanceRow>, how: How<'a>) {
        let stream = Stream {
            tenant: self.line.id,
            kind: StreamKind::Instance,
            id: row.id.0,
        };
        self.open = Open::Instance {
            row,
            tasks: Vec::new(),
            walk: Box::new(Walk::new(stream, &self.line.name, how.replayer)),
        };
    }

    fn stream(&mut self, kind: &str, id: Uuid, head: Option<HeadRow>) -> Result<(), String> {
        let kind = StreamKind::named(kind).ok_or("it is of no kind of stream")?;
        let stream = Stream {
            tenant: self.line.id,
            kind,
            id,
        };
        self.open = Open::Stream {
            stream,
            chain: Chain::new(stream),
            head,
        };
        Ok(())
    }

    async fn entry(
        &mut self,
        line: EntryLine,
        tally: &mut VerifiedCounts,
        found: &mut Vec<LocatedProblem>,
    ) -> Result<(), String> {
        let stream = match &self.open {
            Open::None => return Err("an entry of no stream".into()),
            Open::Instance { walk, .. } => walk.stream(),
            Open::Stream { stream, .. } => *stream,
        };
        let mut problems = Vec::new();
        let defines = self.line.whole && stream.kind == StreamKind::Definition;
        let is_new = defines && !self.waiting.contains_key(&line.leaf().0);
        problems.extend(self.bound(stream, &line, tally));
        let row = line.row(stream);
        match &mut self.open {
            Open::None => {}
            Open::Instance { walk, .. } => walk.follow(row, tally, &mut problems).await,
            Open::Stream { chain, .. } => {
                tally.entries += 1;
                chain.follow(&row, &mut problems);
                if defines && let Ok(entry) = &row.entry {
                    self.versions.entry(entry, is_new, &mut problems);
                }
            }
        }
        located(stream, problems, found);
        Ok(())
    }

    /// The problem of an entry's place in the tree.
    fn bound(
        &mut self,
        stream: Stream,
        line: &EntryLine,
        tally: &mut VerifiedCounts,
    ) -> Option<Problem> {
        let (digest, pos) = line.leaf();
        let problem = |code, detail: &str| Some(Problem::new(Some(line.seq()), code, detail));
        if self.line.whole {
            let known = self.waiting.remove(&digest).is_some();
            if !known && pos <= self.line.taken_in {
                return problem("leaf", "it is not as it was taken into the tree");
            }
            tally.uncovered += u64::from(!known);
            return None;
        }
        let Some(proof) = &line.proof else {
            // The last checkpoint covers all leaves: it is stored with them.
            if pos <= self.line.taken_in.max(self.proven) {
                return problem("leaf", "it was taken into the tree, but has no proof");
            }
            if self.unproven.is_none_or(|(lowest, ..)| pos < lowest) {
                self.unproven = Some((pos, stream, line.seq()));
            }
            tally.uncovered += 1;
            return None;
        };
        let Some(checkpoint) = &self.checkpoint else {
            return problem("leaf", "it has a proof, but the file has no checkpoint");
        };
        let path: Option<Vec<Hash>> = proof
            .path
            .iter()
            .map(|digits| unhex(digits)?.try_into().ok())
            .collect();
        let root = path.and_then(|path| {
            proof::root(proof.leaf, checkpoint.size, merkle::leaf(&digest), &path)
        });
        if root.is_some_and(|root| root.as_slice() == checkpoint.root) {
            tally.leaves += 1;
            self.proven = self.proven.max(pos);
            return None;
        }
        problem("leaf", "its proof does not lead to the checkpoint's root")
    }

    fn refused(
        &mut self,
        line: &RefusedLine,
        tally: &mut VerifiedCounts,
        found: &mut Vec<LocatedProblem>,
    ) {
        let known = self
            .waiting
            .remove(&refused_digest(&line.columns))
            .is_some();
        // The line's own members must match its columns.
        let text = |column: usize| line.columns.get(column)?.as_deref();
        let agrees = text(1) == Some(line.id.to_string().as_str())
            && text(11) == Some(line.pos.to_string().as_str());
        if !agrees || (!known && line.pos <= self.line.taken_in) {
            let detail = "it is not as it was taken into the tree";
            found.push((
                REFUSED.to_owned(),
                line.id,
                Problem::new(Some(0), "leaf", detail),
            ));
        }
        tally.uncovered += u64::from(!known);
    }

    /// Ends the stream that is open.
    async fn close(
        &mut self,
        how: How<'a>,
        tally: &mut VerifiedCounts,
        found: &mut Vec<LocatedProblem>,
    ) {
        let open = std::mem::replace(&mut self.open, Open::None);
        if let Some((stream, problems)) = open.end(how, tally).await {
            located(stream, problems, found);
        }
    }

    /// Reports the problems that only the end of a part shows: a missing proof or checkpoint.
    fn end_of_part(&self, how: How<'_>, found: &mut Vec<LocatedProblem>) {
        if let Some((pos, stream, seq)) = self.unproven
            && pos <= self.proven
        {
            let detail = "it has no proof, but a later entry has one";
            let problem = Problem::new(Some(seq), "leaf", detail);
            located(stream, vec![problem], found);
        }
        if self.checkpoint.is_some() {
            return;
        }
        let of_it = |kept: &&Checkpoint| kept.tenant == self.line.name;
        for kept in how.kept.iter().filter(of_it) {
            let detail = format!(
                "the kept checkpoint covers {} leaves, but the file has no checkpoint",
                kept.size
            );
            found.push(super::tree::of_checkpoint(kept, "rewound", detail));
        }
    }

    /// Compares the tree with the entries that came.
    fn end(&mut self, how: How<'_>, tally: &mut VerifiedCounts, found: &mut Vec<LocatedProblem>) {
        if !self.line.whole {
            self.end_of_part(how, found);
            return;
        }
        self.tree.end(found);
        self.versions.end(found);
        tally.signatures += self.tree.signatures;
        let mut left: Vec<u64> = self.waiting.drain().map(|(_, leaf)| leaf).collect();
        left.sort_unstable();
        let more = left.len().saturating_sub(MISSING_MAX);
        left.truncate(MISSING_MAX);
        for leaf in left {
            let (kind, id, seq) = self.owners.of(leaf);
            let detail = format!("it is missing or changed, but leaf {leaf} covers it");
            found.push((kind, id, Problem::new(Some(seq), "entry_missing", detail)));
        }
        if more > 0 {
            let detail = format!("{more} more leaves have no entry");
            found.push((
                LEAF.to_owned(),
                Uuid::nil(),
                Problem::new(None, "entry_missing", detail),
            ));
        }
    }
}

fn located(stream: Stream, problems: Vec<Problem>, found: &mut Vec<LocatedProblem>) {
    let kind = stream.kind.name();
    found.extend(
        problems
            .into_iter()
            .map(|problem| (kind.to_owned(), stream.id, problem)),
    );
}
