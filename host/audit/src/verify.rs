//! Verifies the audit from the rows alone: chains, gaps, heads, and the seals of decisions and delegations. It also verifies that the
//! stored rows are the fold of their entries. It needs no server and changes nothing.
//!
//! It reads streams page by page, each page in one snapshot, so that concurrent writes cause no findings. Memory holds one
//! page of instances, regardless of their number and of the length of their streams. Findings are reported at once. `chain`
//! verifies one stream. `instance` and `parts` compare the entries of an instance with its rows; `walk` does this and replays
//! its commands. `streams` verifies the other streams. `folds` folds these with `directory`, `definitions` and `operation`.
//! `rows` compares folds with tables, and `tree` verifies leaves and checkpoints.

mod chain;
mod definitions;
mod directory;
pub mod file;
mod folds;
mod instance;
mod operation;
mod parts;
mod profiles;
mod replies;
mod rows;
mod streams;
mod tree;
mod walk;

use futures_util::TryStreamExt as _;
use serde::Serialize;
use uuid::Uuid;

use self::profiles::Profiles;
use self::walk::Walk;
use crate::keys::CheckpointKeys;
use crate::record::rows::{InstanceRow, TaskRow, Which};
use crate::record::{Instances as _, Record, Streams as _, Tables as _};
use crate::replay::Replayer;
use crate::seal::SealKeys;
use wrkflw_core::audit::{Stream, StreamKind};
use wrkflw_core::checkpoint::Checkpoint;
use wrkflw_core::ids::{InstanceId, TenantId};

/// Instances that are verified in one snapshot.
const INSTANCES_MAX: i64 = 50;
/// Keys that are read in one snapshot.
const KEYS_MAX: i64 = 1000;
/// Tenants that are read at once.
const TENANTS_MAX: i64 = 100;
/// The tenant of a finding about all tenants. It is not a valid name.
const ALL_TENANTS: &str = "*";

/// Something that no host would have written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    pub tenant: String,
    /// The kind of the stream - `instance`, `definition`, `directory` or `operation` - or `checkpoint`, `leaf`, `refused`,
    /// `reply` or `outbox`.
    pub stream: String,
    pub id: Uuid,
    /// The number of the entry, leaf or checkpoint, if it is about one.
    pub seq: Option<u64>,
    /// A stable name for what differs.
    pub code: &'static str,
    pub detail: String,
}

/// Counts of the verified parts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VerifiedCounts {
    pub streams: u64,
    pub instances: u64,
    pub entries: u64,
    pub decisions: u64,
    /// Delegations and their returns.
    pub delegations: u64,
    /// Decisions and delegations with a valid seal.
    pub seals: u64,
    /// Commands whose replay gave the recorded result.
    pub commands: u64,
    /// Evaluations of flow logic in them.
    pub evaluations: u64,
    /// Those commands that were recorded under another engine profile.
    pub other_profiles: u64,
    pub leaves: u64,
    /// Entries of a file that no checkpoint covers yet.
    pub uncovered: u64,
    pub checkpoints: u64,
    /// Tenants of which a file has only a part.
    pub parts: u64,
    /// Kept checkpoints that nothing in a file of parts can be compared with.
    pub uncompared: u64,
    /// Checkpoints with a valid signature.
    pub signatures: u64,
    pub findings: u64,
}

/// A finding about one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Problem {
    seq: Option<u64>,
    code: &'static str,
    detail: String,
}

/// The problem if number `got` comes where `next` is expected. None if they are the same.
fn out_of_step((one, many): (&str, &str), next: u64, got: u64) -> Option<String> {
    match got.checked_sub(next) {
        Some(0) => None,
        Some(1) => Some(format!("{one} {next} is missing")),
        Some(_) => Some(format!("{many} {next} to {} are missing", got - 1)),
        None => Some(format!("{one} {got} comes again or out of order")),
    }
}

impl Problem {
    fn new(seq: Option<u64>, code: &'static str, detail: impl Into<String>) -> Problem {
        Problem {
            seq,
            code,
            detail: detail.into(),
        }
    }

    fn of(self, tenant: &str, stream: &str, id: Uuid) -> Finding {
        Finding {
            tenant: tenant.to_owned(),
            stream: stream.to_owned(),
            id,
            seq: self.seq,
            code: self.code,
            detail: self.detail,
        }
    }
}

/// What to verify besides chains and rows.
#[derive(Clone, Copy)]
pub struct How<'a> {
    /// If none, seals are not checked.
    pub seals: Option<&'a SealKeys>,
    /// If none, commands are not replayed.
    pub replayer: Option<&'a Replayer>,
    /// If empty, signatures of checkpoints are not checked.
    pub keys: &'a CheckpointKeys,
    /// Checkpoints that were kept outside the database.
    pub kept: &'a [Checkpoint],
}

/// A verification of the audit.
pub struct Verifier<'a, R, F> {
    record: &'a R,
    seals: Option<&'a SealKeys>,
    replayer: Option<&'a Replayer>,
    keys: &'a CheckpointKeys,
    kept: &'a [Checkpoint],
    on_finding: F,
    tally: VerifiedCounts,
    profiles: Profiles,
}

impl<'a, R: Record, F: FnMut(Finding)> Verifier<'a, R, F> {
    pub fn new(record: &'a R, how: How<'a>, on_finding: F) -> Verifier<'a, R, F> {
        let How {
            seals,
            replayer,
            keys,
            kept,
        } = how;
        Verifier {
            record,
            seals,
            replayer,
            keys,
            kept,
            on_finding,
            tally: VerifiedCounts::default(),
            profiles: Profiles::default(),
        }
    }

    /// Verifies every tenant, or the one with this name. [`Which::All`] includes the other streams, replies, the tree, rows
    /// that belong to no instance or stream, and kept checkpoints of missing tenants.
    pub async fn run(
        mut self,
        tenant: Option<&str>,
        which: &Which,
    ) -> Result<VerifiedCounts, R::Error> {
        let mut after = None;
        let mut absent: Vec<&Checkpoint> = self.kept.iter().collect();
        absent.retain(|kept| tenant.is_none_or(|wanted| wanted == kept.tenant));
        loop {
            let page = self.record.tenants(after, TENANTS_MAX).await?;
            for (id, name) in &page {
                absent.retain(|kept| kept.tenant != *name);
                if tenant.is_none_or(|wanted| wanted == name) {
                    self.tenant(*id, name, which).await?;
                }
            }
            match page.last() {
                Some((id, _)) => after = Some(*id),
                None => break,
            }
        }
        if matches!(which, Which::All) {
            self.absent(&absent);
            if tenant.is_none() {
                self.outbox().await?;
            }
        }
        Ok(self.tally)
    }

    /// Verifies one instance of a tenant.
    pub async fn instance(
        mut self,
        (tenant, name): (TenantId, &str),
        instance: InstanceId,
    ) -> Result<VerifiedCounts, R::Error> {
        self.tenant(tenant, name, &Which::One(instance)).await?;
        Ok(self.tally)
    }

    /// Reports public events that are missing or surplus, counted over all tenants.
    async fn outbox(&mut self) -> Result<(), R::Error> {
        let missing = self.record.missing_events().await?;
        if missing == 0 {
            return Ok(());
        }
        let difference = if missing > 0 {
            "public events that are neither in the outbox, nor parked, nor settled"
        } else {
            "events in the outbox, parked or settled that have no entry"
        };
        let detail = format!(
            "outbox_partition (all partitions): {difference}: {}",
            missing.abs()
        );
        let problem = Problem::new(None, "outbox", detail);
        self.finding(ALL_TENANTS, "outbox", Uuid::nil(), problem);
        Ok(())
    }

    async fn tenant(&mut self, id: TenantId, name: &str, which: &Which) -> Result<(), R::Error> {
        self.instances(id, name, which).await?;
        folds::engine_profiles(self, id, name).await?;
        if let Which::One(instance) = which {
            self.leaves_of(id, name, *instance).await?;
            return self.missing(id, name, *instance).await;
        }
        if matches!(which, Which::All) {
            let mut seen = self.heads(id, name).await?;
            seen |= self.strays(id, name).await?;
            folds::unfounded(self, id, name, seen).await?;
            self.lost_decisions(id, name).await?;
            replies::verify(self, id, name).await?;
            self.tree(id, name).await?;
        }
        Ok(())
    }

    async fn instances(
        &mut self,
        tenant: TenantId,
        name: &str,
        which: &Which,
    ) -> Result<(), R::Error> {
        let mut after = None;
        loop {
            let mut snapshot = self.record.snapshot(tenant).await?;
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

    /// Verifies instances whose rows, tasks and entries come from one snapshot.
    async fn page(
        &mut self,
        snapshot: &mut R::Snapshot,
        (tenant, name): (TenantId, &str),
        page: &[InstanceRow],
    ) -> Result<(), R::Error> {
        let ids: Vec<Uuid> = page.iter().map(|row| row.id.0).collect();
        let tasks = snapshot.tasks(&ids).await?;
        let mut parts = snapshot.parts(&ids).await?;
        let mut entries = snapshot.entries(StreamKind::Instance, &ids);
        let mut next = entries.try_next().await?;
        for row in page {
            let stream = Stream {
                tenant,
                kind: StreamKind::Instance,
                id: row.id.0,
            };
            let mut problems = Vec::new();
            let mut walk = Walk::new(stream, name, self.replayer);
            while let Some(entry) = next.take_if(|entry| entry.stream == row.id.0) {
                if let Ok(Some(evidence)) =
                    (entry.entry.as_ref()).map(|entry| &entry.draft.evidence)
                {
                    self.profiles.see(evidence, (row.id.0, entry.seq));
                }
                walk.follow(entry, &mut self.tally, &mut problems).await;
                self.report(name, stream, &mut problems);
                next = entries.try_next().await?;
            }
            let of_it = |task: &&TaskRow| task.instance == row.id;
            let tasks: Vec<&TaskRow> = tasks.iter().filter(of_it).collect();
            let parts = parts.remove(&row.id.0).unwrap_or_default();
            let rows = ((row, &tasks[..]), Some(&parts));
            walk.end(rows, self.seals, &mut self.tally, &mut problems)
                .await;
            self.report(name, stream, &mut problems);
        }
        Ok(())
    }

    fn report(&mut self, tenant: &str, stream: Stream, problems: &mut Vec<Problem>) {
        for problem in problems.drain(..) {
            self.finding(tenant, stream.kind.name(), stream.id, problem);
        }
    }

    fn finding(&mut self, tenant: &str, stream: &str, id: Uuid, problem: Problem) {
        self.tally.findings += 1;
        (self.on_finding)(problem.of(tenant, stream, id));
    }
}
