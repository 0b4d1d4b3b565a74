//! Proves the audit from the rows alone: chains, gaps, heads, decisions with their seals, and that entries folded give
//! what is stored. Whoever runs it needs no server and changes nothing.
//!
//! It goes through streams page by page, each page in one snapshot, so that what hosts write meanwhile is never taken
//! for a fault. Memory holds what a page of instances holds, however many there are and however long their streams.
//! Findings are told as they are found. `chain` checks one stream; `instance` what its entries say.

mod chain;
mod instance;

use futures_util::TryStreamExt as _;
use serde::Serialize;
use uuid::Uuid;

use self::chain::Chain;
use self::instance::Recorded;
use super::SealKeys;
use crate::domain::audit::{Stream, StreamKind};
use crate::domain::ids::{InstanceId, TenantId};
use crate::store::verify::{HeadRow, InstanceRow, Snapshot, StreamRow, TaskRow, Which};
use crate::store::{Store, StoreError};

/// Instances that are verified in one snapshot.
const INSTANCES_MAX: i64 = 50;
/// Keys that are looked through in one snapshot.
const KEYS_MAX: i64 = 1000;
/// Tenants that are read at once.
const TENANTS_MAX: i64 = 100;

/// Something that is not as a host leaves it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    pub tenant: String,
    /// The kind of the stream: `instance`, `definition`, `directory` or `operation`.
    pub stream: String,
    pub id: Uuid,
    /// The entry concerned, where it is one.
    pub seq: Option<u64>,
    /// A stable name for what differs.
    pub code: &'static str,
    pub detail: String,
}

/// What was looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tally {
    pub streams: u64,
    pub instances: u64,
    pub entries: u64,
    pub decisions: u64,
    /// Decisions whose seal is that of their key.
    pub seals: u64,
    pub findings: u64,
}

/// A finding about one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Problem {
    seq: Option<u64>,
    code: &'static str,
    detail: String,
}

impl Problem {
    fn new(seq: Option<u64>, code: &'static str, detail: impl Into<String>) -> Problem {
        Problem {
            seq,
            code,
            detail: detail.into(),
        }
    }
}

/// A pass over the audit.
pub struct Verifier<'a, F> {
    store: &'a Store,
    /// None leaves the seals of decisions unchecked.
    seals: Option<&'a SealKeys>,
    tell: F,
    tally: Tally,
}

impl<'a, F: FnMut(Finding)> Verifier<'a, F> {
    pub fn new(store: &'a Store, seals: Option<&'a SealKeys>, tell: F) -> Verifier<'a, F> {
        let tally = Tally::default();
        Verifier {
            store,
            seals,
            tell,
            tally,
        }
    }

    /// Verifies in every tenant, or in the one of this name. With [`Which::All`] the streams of definitions and of the
    /// directory are verified, too, and what belongs to no instance is looked for.
    pub async fn run(mut self, tenant: Option<&str>, which: &Which) -> Result<Tally, StoreError> {
        let mut after = None;
        loop {
            let page = self.store.tenants(after, TENANTS_MAX).await?;
            for (id, name) in &page {
                if tenant.is_none_or(|wanted| wanted == name) {
                    self.tenant(*id, name, which).await?;
                }
            }
            match page.last() {
                Some((id, _)) => after = Some(*id),
                None => return Ok(self.tally),
            }
        }
    }

    async fn tenant(&mut self, id: TenantId, name: &str, which: &Which) -> Result<(), StoreError> {
        self.instances(id, name, which).await?;
        if let Which::One(instance) = which {
            return self.missing(id, name, *instance).await;
        }
        if matches!(which, Which::All) {
            self.heads(id, name).await?;
            self.strays(id, name).await?;
            self.lost_decisions(id, name).await?;
        }
        Ok(())
    }

    async fn instances(
        &mut self,
        tenant: TenantId,
        name: &str,
        which: &Which,
    ) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let mut snapshot = self.store.snapshot(tenant).await?;
            let page = snapshot.instances(which, after, INSTANCES_MAX).await?;
            let Some(last) = page.last() else {
                return Ok(());
            };
            after = Some(last.id);
            self.page(&mut snapshot, (tenant, name), &page).await?;
            if matches!(which, Which::One(_)) {
                return Ok(());
            }
        }
    }

    /// Verifies instances whose rows, tasks and entries are of one moment.
    async fn page(
        &mut self,
        snapshot: &mut Snapshot,
        (tenant, name): (TenantId, &str),
        page: &[InstanceRow],
    ) -> Result<(), StoreError> {
        let ids: Vec<Uuid> = page.iter().map(|row| row.id.0).collect();
        let tasks = snapshot.tasks(&ids).await?;
        let mut entries = snapshot.entries(StreamKind::Instance, &ids);
        let mut next = entries.try_next().await?;
        for row in page {
            let stream = Stream {
                tenant,
                kind: StreamKind::Instance,
                id: row.id.0,
            };
            let mut problems = Vec::new();
            let mut chain = Chain::new(stream);
            let mut recorded = Recorded::default();
            while let Some(entry) = next.take_if(|entry| entry.stream == row.id.0) {
                chain.follow(&entry, &mut problems);
                recorded.take(&entry, &mut problems);
                self.tally.entries += 1;
                self.told(name, stream, &mut problems);
                next = entries.try_next().await?;
            }
            chain.end(Some(&row.head), &mut problems);
            let of_it = |task: &&TaskRow| task.instance == row.id;
            let tasks: Vec<&TaskRow> = tasks.iter().filter(of_it).collect();
            recorded.compare(row, &tasks, &mut problems);
            let sealed = recorded.decisions(&tasks, (self.seals, name), &mut problems);
            self.tally.decisions += sealed.decisions;
            self.tally.seals += sealed.valid;
            self.tally.streams += 1;
            self.tally.instances += 1;
            self.told(name, stream, &mut problems);
        }
        Ok(())
    }

    /// Verifies the streams that keep their heads beside them.
    async fn heads(&mut self, tenant: TenantId, name: &str) -> Result<(), StoreError> {
        let mut after = (String::new(), Uuid::nil());
        loop {
            let mut snapshot = self.store.snapshot(tenant).await?;
            let page = snapshot.heads((&after.0, after.1), KEYS_MAX).await?;
            let Some((last, _)) = page.last() else {
                return Ok(());
            };
            after = (last.kind.clone(), last.id);
            for (row, head) in &page {
                self.chain(&mut snapshot, (tenant, name), row, Some(head))
                    .await?;
            }
        }
    }

    async fn chain(
        &mut self,
        snapshot: &mut Snapshot,
        (tenant, name): (TenantId, &str),
        row: &StreamRow,
        head: Option<&HeadRow>,
    ) -> Result<(), StoreError> {
        let Some(kind) = StreamKind::named(&row.kind) else {
            let detail = format!("{} is no kind of stream", row.kind);
            self.finding(
                name,
                &row.kind,
                row.id,
                Problem::new(None, "stream_kind", detail),
            );
            return Ok(());
        };
        let (id, mut problems) = (row.id, Vec::new());
        let stream = Stream { tenant, kind, id };
        let mut chain = Chain::new(stream);
        let ids = [id];
        let mut entries = snapshot.entries(kind, &ids);
        while let Some(entry) = entries.try_next().await? {
            chain.follow(&entry, &mut problems);
            self.tally.entries += 1;
            self.told(name, stream, &mut problems);
        }
        chain.end(head, &mut problems);
        self.tally.streams += 1;
        self.told(name, stream, &mut problems);
        Ok(())
    }

    /// Entries of an instance whose row is gone.
    async fn missing(
        &mut self,
        tenant: TenantId,
        name: &str,
        instance: InstanceId,
    ) -> Result<(), StoreError> {
        let mut snapshot = self.store.snapshot(tenant).await?;
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
        self.chain(&mut snapshot, (tenant, name), &row, None).await
    }

    /// Streams that nothing says the end of: a row was taken away, or entries were written by hand.
    async fn strays(&mut self, tenant: TenantId, name: &str) -> Result<(), StoreError> {
        let mut after = (String::new(), Uuid::nil());
        loop {
            let mut snapshot = self.store.snapshot(tenant).await?;
            let page = snapshot.streams((&after.0, after.1), KEYS_MAX).await?;
            let Some(last) = page.last() else {
                return Ok(());
            };
            after = (last.kind.clone(), last.id);
            for row in page.iter().filter(|row| !row.has_head) {
                self.chain(&mut snapshot, (tenant, name), row, None).await?;
            }
        }
    }

    /// Decisions that no instance would show.
    async fn lost_decisions(&mut self, tenant: TenantId, name: &str) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let mut snapshot = self.store.snapshot(tenant).await?;
            let page = snapshot.decisions(after, KEYS_MAX).await?;
            let Some((last, ..)) = page.last() else {
                return Ok(());
            };
            after = Some(*last);
            for (task, instance, _) in page.iter().filter(|(.., known)| !known) {
                self.tally.decisions += 1;
                let detail = format!(
                    "there is a decision of task {task}, which this instance does not have"
                );
                let problem = Problem::new(None, "decision_unrecorded", detail);
                self.finding(name, StreamKind::Instance.name(), instance.0, problem);
            }
        }
    }

    fn told(&mut self, tenant: &str, stream: Stream, problems: &mut Vec<Problem>) {
        for problem in problems.drain(..) {
            self.finding(tenant, stream.kind.name(), stream.id, problem);
        }
    }

    fn finding(&mut self, tenant: &str, stream: &str, id: Uuid, problem: Problem) {
        self.tally.findings += 1;
        (self.tell)(Finding {
            tenant: tenant.to_owned(),
            stream: stream.to_owned(),
            id,
            seq: problem.seq,
            code: problem.code,
            detail: problem.detail,
        });
    }
}
