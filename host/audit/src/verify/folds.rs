//! Folds the streams of directories, definitions and operations, compares them with their tables, and reports rows without a
//! stream.

use futures_util::TryStreamExt as _;
use uuid::Uuid;

use super::definitions::Definition;
use super::directory::{self, Directory, Share};
use super::operation::Operation;
use super::{Finding, Problem, Verifier};
use crate::record::rows::EntryRow;
use crate::record::{Record, Snapshot, Streams as _, Tables as _};
use wrkflw_core::audit::{Stream, StreamKind};
use wrkflw_core::ids::TenantId;

/// Rows without a stream that are reported one by one.
const UNFOUNDED_MAX: i64 = 1000;

/// Which of a tenant's own streams were folded.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    pub(super) directory: bool,
    pub(super) operation: bool,
}

impl std::ops::BitOrAssign for Seen {
    fn bitor_assign(&mut self, other: Seen) {
        self.directory |= other.directory;
        self.operation |= other.operation;
    }
}

/// The fold of a stream.
pub(super) enum Fold {
    Directory(Directory),
    Definition(Definition),
    Operation(Operation),
    /// Of an instance whose row is missing: its entries are not folded.
    None,
}

impl Fold {
    pub(super) fn new(stream: Stream, share: Share) -> Fold {
        match stream.kind {
            StreamKind::Instance => Fold::None,
            StreamKind::Directory => Fold::Directory(Directory::new(stream.tenant, share)),
            StreamKind::Definition => Fold::Definition(Definition::new(stream.tenant, stream.id)),
            StreamKind::Operation => Fold::Operation(Operation::new(stream.tenant, stream.id)),
        }
    }

    pub(super) fn take(&mut self, row: &EntryRow, problems: &mut Vec<Problem>) {
        let Ok(entry) = &row.entry else { return };
        match self {
            Fold::Directory(directory) => directory.take(entry, problems),
            Fold::Definition(definition) => definition.take(entry, problems),
            Fold::Operation(operation) => operation.take(entry, problems),
            Fold::None => {}
        }
    }

    pub(super) async fn compare<S: Snapshot>(
        self,
        snapshot: &mut S,
        problems: &mut Vec<Problem>,
    ) -> Result<(), S::Error> {
        match self {
            Fold::Directory(directory) => compare_directory(directory, snapshot, problems).await,
            Fold::Definition(definition) => definition.compare(snapshot, problems).await,
            Fold::Operation(operation) => operation.compare(snapshot, problems).await,
            Fold::None => Ok(()),
        }
    }
}

async fn compare_directory<S: Snapshot>(
    mut directory: Directory,
    snapshot: &mut S,
    problems: &mut Vec<Problem>,
) -> Result<(), S::Error> {
    for (which, table, owner) in directory::TABLES {
        let mut expected = directory.expected(which, table);
        let mut stored = snapshot.directory(which);
        while let Some(row) = stored.try_next().await? {
            if directory.owns(which, owner, &row) {
                expected.compare(&row, problems);
            }
        }
        drop(stored);
        expected.report_missing(problems);
    }
    Ok(())
}

/// Reports the rows whose stream is missing.
pub(super) async fn unfounded<R: Record, F: FnMut(Finding)>(
    verifier: &mut Verifier<'_, R, F>,
    tenant: TenantId,
    name: &str,
    seen: Seen,
) -> Result<(), R::Error> {
    let mut snapshot = verifier.record.snapshot(tenant).await?;
    let own = [
        (StreamKind::Directory, seen.directory),
        (StreamKind::Operation, seen.operation),
    ];
    for (kind, _) in own.into_iter().filter(|(_, seen)| !seen) {
        // The stream may have begun since the streams were listed.
        let (id, mut problems) = (Uuid::nil(), Vec::new());
        let stream = Stream { tenant, kind, id };
        if snapshot.length(kind, id).await? == 0 {
            let fold = Fold::new(stream, Share::WHOLE);
            fold.compare(&mut snapshot, &mut problems).await?;
        }
        verifier.report(name, stream, &mut problems);
    }
    for (table, id, key) in snapshot.without_stream(UNFOUNDED_MAX).await? {
        let (stream, code) = match table.as_str() {
            "bulk_operation" => (StreamKind::Operation, "operation"),
            "definition" => (StreamKind::Definition, "definition"),
            "attribute_declaration" => (StreamKind::Definition, "declaration"),
            _ => (StreamKind::Definition, "version"),
        };
        let detail = format!("{table} ({key}): this row exists, but no entry records it");
        verifier.finding(name, stream.name(), id, Problem::new(None, code, detail));
    }
    Ok(())
}

/// Verifies the profiles that evidence has named since the last call.
pub(super) async fn engine_profiles<R: Record, F: FnMut(Finding)>(
    verifier: &mut Verifier<'_, R, F>,
    tenant: TenantId,
    name: &str,
) -> Result<(), R::Error> {
    let mut snapshot = verifier.record.snapshot(tenant).await?;
    for (instance, problem) in verifier.profiles.compare(&mut snapshot).await? {
        verifier.finding(name, StreamKind::Instance.name(), instance, problem);
    }
    Ok(())
}
