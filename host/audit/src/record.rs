//! What is audited, as it is read: rows in, and nothing of a database. The host's store is a [`Record`]; whoever keeps the
//! rows elsewhere can make another.
//!
//! [`Record`] is all of it, a [`Snapshot`] one tenant at one moment. The methods of a snapshot stand in one trait for each
//! kind of rows. Lists are read page by page, after a key and up to a limit.

pub mod rows;

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use futures_util::stream::BoxStream;
use uuid::Uuid;

use self::rows::{
    CheckpointRow, Columns, DirectoryTable, EntryRow, HeadRow, InstanceRow, LeafRow, PartRows,
    RecordedVersion, Refused, ReplyRow, StreamRow, TableRows, TaskRow, Unlogged, Which,
};
use wrkflw_core::audit::StreamKind;
use wrkflw_core::ids::{Digest, InstanceId, TaskId, TenantId, VersionRef};

/// How long items of an operation on many are kept after its end. Later, an operation without items is no finding.
pub const ITEMS_KEPT: Duration = Duration::from_hours(90 * 24);

/// Why nothing could be read.
pub trait Reading {
    type Error: Error + Send + Sync + 'static;
}

/// All that hosts have recorded.
pub trait Record: Reading + Send + Sync {
    type Snapshot: Snapshot<Error = Self::Error>;

    /// Tenants after `after` by their number, with their names.
    fn tenants(
        &self,
        after: Option<TenantId>,
        limit: i64,
    ) -> impl Future<Output = Result<Vec<(TenantId, String)>, Self::Error>> + Send;

    /// Public events of all tenants that are neither in the outbox, nor parked, nor counted among those that left it; less
    /// than none where more are there than were committed.
    fn missing_events(&self) -> impl Future<Output = Result<i64, Self::Error>> + Send;

    /// What the tenant's tables hold at this moment, for as long as the snapshot is kept. Its statements may take as long as
    /// it takes to look at all of them.
    fn snapshot(
        &self,
        tenant: TenantId,
    ) -> impl Future<Output = Result<Self::Snapshot, Self::Error>> + Send;

    /// The version of this name, if there is one that can be read.
    fn recorded_version(
        &self,
        tenant: TenantId,
        reference: &VersionRef,
    ) -> impl Future<Output = Result<Option<RecordedVersion>, Self::Error>> + Send;

    /// The bytes that are kept under this digest.
    fn recorded_component(
        &self,
        digest: Digest,
    ) -> impl Future<Output = Result<Option<Vec<u8>>, Self::Error>> + Send;
}

/// One tenant at one moment: each instance with all that the same commits wrote.
pub trait Snapshot: Instances + Streams + Leaves + Tables + Replies + Versions {}

impl<T: Instances + Streams + Leaves + Tables + Replies + Versions> Snapshot for T {}

/// Instances with their tasks and decisions.
pub trait Instances: Reading + Send {
    /// Instances after `after` by their id.
    fn instances(
        &mut self,
        which: &Which,
        after: Option<InstanceId>,
        limit: i64,
    ) -> impl Future<Output = Result<Vec<InstanceRow>, Self::Error>> + Send;

    /// All tasks of these instances.
    fn tasks(
        &mut self,
        instances: &[Uuid],
    ) -> impl Future<Output = Result<Vec<TaskRow>, Self::Error>> + Send;

    /// Decisions after `after` by their task, each with its instance, and whether that instance has the task.
    fn decisions(
        &mut self,
        after: Option<TaskId>,
        limit: i64,
    ) -> impl Future<Output = Result<Vec<(TaskId, InstanceId, bool)>, Self::Error>> + Send;
}

/// Streams: their entries, and what is kept about where they end.
pub trait Streams: Reading + Send {
    /// The entries of these streams, one stream after the other and each in its order. They are handed on as they
    /// arrive, so a stream may be longer than memory.
    fn entries<'a>(
        &'a mut self,
        kind: StreamKind,
        streams: &'a [Uuid],
    ) -> BoxStream<'a, Result<EntryRow, Self::Error>>;

    /// The number of a stream's last entry; 0 where there is none.
    fn length(
        &mut self,
        kind: StreamKind,
        id: Uuid,
    ) -> impl Future<Output = Result<u64, Self::Error>> + Send;

    /// Heads after (`kind`, `id`) of the streams that have a row for theirs.
    fn heads(
        &mut self,
        after: (&str, Uuid),
        limit: i64,
    ) -> impl Future<Output = Result<Vec<(StreamRow, HeadRow)>, Self::Error>> + Send;

    /// The streams after (`kind`, `id`) that have entries, found by going from one to the next in the entries' key.
    fn streams(
        &mut self,
        after: (&str, Uuid),
        limit: i64,
    ) -> impl Future<Output = Result<Vec<StreamRow>, Self::Error>> + Send;
}

/// Leaves and checkpoints, each leaf with the digest that its entry has now.
pub trait Leaves: Reading + Send {
    /// Up to which position entries have been taken in.
    fn taken_in(&mut self) -> impl Future<Output = Result<Option<i64>, Self::Error>> + Send;

    /// Checkpoints after `after` by their number; `tenant` is the public name that they were signed for.
    fn checkpoints(
        &mut self,
        tenant: &str,
        after: i64,
        limit: i64,
    ) -> impl Future<Output = Result<Vec<CheckpointRow>, Self::Error>> + Send;

    /// The last checkpoint.
    fn last_checkpoint(
        &mut self,
        tenant: &str,
    ) -> impl Future<Output = Result<Option<CheckpointRow>, Self::Error>> + Send;

    /// How many leaves the log has; none where it has no last one.
    fn leaves_logged(&mut self) -> impl Future<Output = Result<u64, Self::Error>> + Send;

    /// Leaves after `after`, each with what its entry gives now.
    fn leaves(
        &mut self,
        after: i64,
        limit: i64,
    ) -> impl Future<Output = Result<Vec<LeafRow>, Self::Error>> + Send;

    /// Leaves of one stream whose entries come after `after`, each with what its entry gives now.
    fn leaves_of(
        &mut self,
        kind: &str,
        id: Uuid,
        after: i64,
        limit: i64,
    ) -> impl Future<Output = Result<Vec<LeafRow>, Self::Error>> + Send;

    /// Refused attempts after `after` by their id.
    fn refused_after(
        &mut self,
        after: Uuid,
        limit: i64,
    ) -> impl Future<Output = Result<Vec<Refused>, Self::Error>> + Send;

    /// Entries and refused attempts that should have been taken in, as their position says, and are no leaf.
    fn unlogged(
        &mut self,
        limit: i64,
    ) -> impl Future<Output = Result<Vec<Unlogged>, Self::Error>> + Send;
}

/// Rows as columns and values, for whatever entries are held against.
pub trait Tables: Reading + Send {
    /// The rows of these instances.
    fn parts(
        &mut self,
        instances: &[Uuid],
    ) -> impl Future<Output = Result<BTreeMap<Uuid, PartRows>, Self::Error>> + Send;

    /// The rows of one table of the directory, handed on as they arrive.
    fn directory(&mut self, table: DirectoryTable) -> BoxStream<'_, Result<Columns, Self::Error>>;

    /// Rows beside those of the directory and of instances.
    fn table(
        &mut self,
        which: TableRows<'_>,
    ) -> impl Future<Output = Result<Vec<Columns>, Self::Error>> + Send;

    /// Rows that belong to streams of which nothing is there: the name of the table and the row's key, `limit` at most.
    fn without_stream(
        &mut self,
        limit: i64,
    ) -> impl Future<Output = Result<Vec<(String, Uuid, String)>, Self::Error>> + Send;
}

/// Replies that are kept for repeated requests.
pub trait Replies: Reading + Send {
    /// Replies after (`principal`, `key`).
    fn replies(
        &mut self,
        after: (&str, &str),
        limit: i64,
    ) -> impl Future<Output = Result<Vec<ReplyRow>, Self::Error>> + Send;
}

/// What evaluations ran on.
pub trait Versions: Reading + Send {
    /// Versions after (`key`, `version`).
    fn versions(
        &mut self,
        after: (&str, u32),
        limit: i64,
    ) -> impl Future<Output = Result<Vec<RecordedVersion>, Self::Error>> + Send;
}
