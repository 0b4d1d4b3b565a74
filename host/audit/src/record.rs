//! The traits through which recorded rows are read, independent of the database. The host's store is a [`Record`]; other
//! sources of rows can implement it, too.
//!
//! A [`Record`] has all tenants, a [`Snapshot`] one tenant at one moment. A snapshot has one trait for each kind of rows.
//! Lists are read page by page, after a key and up to a limit.

pub mod rows;

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use futures_util::stream::BoxStream;
use uuid::Uuid;

use self::rows::{
    CheckpointRow, Columns, DirectoryTable, EntryOf, EntryRow, HeadRow, InstanceRow, LeafRow,
    PartRows, RecordedVersion, RefusedAttemptColumns, ReplyRow, StreamRow, TableRows, TaskRow,
    Which,
};
use wrkflw_core::audit::StreamKind;
use wrkflw_core::ids::{Digest, InstanceId, TaskId, TenantId, VersionRef};

/// How long the items of a bulk operation are kept after its end. Later, missing items are no finding.
pub const ITEMS_KEPT: Duration = Duration::from_hours(90 * 24);

/// The error of a read.
pub trait Reading {
    type Error: Error + Send + Sync + 'static;
}

/// All that hosts have recorded.
pub trait Record: Reading + Send + Sync {
    type Snapshot: Snapshot<Error = Self::Error>;

    /// Tenants after the id `after`, with their names.
    fn tenants(
        &self,
        after: Option<TenantId>,
        limit: i64,
    ) -> impl Future<Output = Result<Vec<(TenantId, String)>, Self::Error>> + Send;

    /// The number of public events of all tenants that are neither in the outbox, nor parked, nor settled. It is negative if
    /// there are more than were committed.
    fn missing_events(&self) -> impl Future<Output = Result<i64, Self::Error>> + Send;

    /// A snapshot of the tenant's tables at this moment. Its statements may read whole tables.
    fn snapshot(
        &self,
        tenant: TenantId,
    ) -> impl Future<Output = Result<Self::Snapshot, Self::Error>> + Send;

    /// The version with this reference, if it exists.
    fn recorded_version(
        &self,
        tenant: TenantId,
        reference: &VersionRef,
    ) -> impl Future<Output = Result<Option<RecordedVersion>, Self::Error>> + Send;

    /// The component that is stored under this digest.
    fn recorded_component(
        &self,
        digest: Digest,
    ) -> impl Future<Output = Result<Option<Vec<u8>>, Self::Error>> + Send;
}

/// One tenant at one moment, so that instances fit their entries.
pub trait Snapshot: Instances + Streams + Leaves + Tables + Replies + Versions {}

impl<T: Instances + Streams + Leaves + Tables + Replies + Versions> Snapshot for T {}

/// Instances with their tasks and decisions.
pub trait Instances: Reading + Send {
    /// Instances after the id `after`.
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

    /// Decisions after the task `after`, each with its instance, and whether that instance has the task.
    fn decisions(
        &mut self,
        after: Option<TaskId>,
        limit: i64,
    ) -> impl Future<Output = Result<Vec<(TaskId, InstanceId, bool)>, Self::Error>> + Send;
}

/// Streams: their entries and their stored heads.
pub trait Streams: Reading + Send {
    /// The entries of these streams, one stream after the other and each in its order. They are returned as they arrive, so a
    /// stream may be larger than the memory.
    fn entries<'a>(
        &'a mut self,
        kind: StreamKind,
        streams: &'a [Uuid],
    ) -> BoxStream<'a, Result<EntryRow, Self::Error>>;

    /// The number of a stream's last entry; 0 if it has none.
    fn length(
        &mut self,
        kind: StreamKind,
        id: Uuid,
    ) -> impl Future<Output = Result<u64, Self::Error>> + Send;

    /// Heads after (`kind`, `id`), of the streams that have a row for their head.
    fn heads(
        &mut self,
        after: (&str, Uuid),
        limit: i64,
    ) -> impl Future<Output = Result<Vec<(StreamRow, HeadRow)>, Self::Error>> + Send;

    /// The streams after (`kind`, `id`) that have entries.
    fn streams(
        &mut self,
        after: (&str, Uuid),
        limit: i64,
    ) -> impl Future<Output = Result<Vec<StreamRow>, Self::Error>> + Send;
}

/// Leaves and checkpoints. Each leaf has the digest that its entry has now.
pub trait Leaves: Reading + Send {
    /// The position up to which entries are leaves.
    fn taken_in(&mut self) -> impl Future<Output = Result<Option<i64>, Self::Error>> + Send;

    /// Checkpoints after the number `after`. `tenant` is the public name that they were signed for.
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

    /// The number of leaves: the end of the last row.
    fn leaves_logged(&mut self) -> impl Future<Output = Result<u64, Self::Error>> + Send;

    /// The leaves of at most `limit` rows whose first leaf has a number after `after`.
    fn leaves(
        &mut self,
        after: i64,
        limit: i64,
    ) -> impl Future<Output = Result<Vec<LeafRow>, Self::Error>> + Send;

    /// The leaves of at most `limit` rows of one stream whose first entry comes after `after`.
    fn leaves_of(
        &mut self,
        kind: &str,
        id: Uuid,
        after: i64,
        limit: i64,
    ) -> impl Future<Output = Result<Vec<LeafRow>, Self::Error>> + Send;

    /// Refused attempts after the id `after`; from the first one on without it.
    fn refused_after(
        &mut self,
        after: Option<Uuid>,
        limit: i64,
    ) -> impl Future<Output = Result<Vec<RefusedAttemptColumns>, Self::Error>> + Send;

    /// Entries that have a leaf in two rows.
    fn doubled(
        &mut self,
        limit: i64,
    ) -> impl Future<Output = Result<Vec<EntryOf>, Self::Error>> + Send;

    /// Entries and refused attempts that should be leaves by their position, but are not. A leaf with a negative number is none. With
    /// the kind and id of a stream, only its entries.
    fn unlogged(
        &mut self,
        stream: Option<(&str, Uuid)>,
        limit: i64,
    ) -> impl Future<Output = Result<Vec<EntryOf>, Self::Error>> + Send;
}

/// Rows as columns and values, for the comparison with entries.
pub trait Tables: Reading + Send {
    /// The rows of these instances.
    fn parts(
        &mut self,
        instances: &[Uuid],
    ) -> impl Future<Output = Result<BTreeMap<Uuid, PartRows>, Self::Error>> + Send;

    /// The rows of one table of the directory, returned as they arrive.
    fn directory(&mut self, table: DirectoryTable) -> BoxStream<'_, Result<Columns, Self::Error>>;

    /// Rows of the other tables.
    fn table(
        &mut self,
        which: TableRows<'_>,
    ) -> impl Future<Output = Result<Vec<Columns>, Self::Error>> + Send;

    /// At most `limit` rows whose stream is missing: the name of the table, the stream's id or nil, and the row's key.
    fn without_stream(
        &mut self,
        limit: i64,
    ) -> impl Future<Output = Result<Vec<(String, Uuid, String)>, Self::Error>> + Send;
}

/// Stored replies for repeated requests.
pub trait Replies: Reading + Send {
    /// Replies after (`principal`, `key`).
    fn replies(
        &mut self,
        after: (&str, &str),
        limit: i64,
    ) -> impl Future<Output = Result<Vec<ReplyRow>, Self::Error>> + Send;
}

/// The definition versions that evaluations ran on.
pub trait Versions: Reading + Send {
    /// Versions after (`key`, `version`).
    fn versions(
        &mut self,
        after: (&str, u32),
        limit: i64,
    ) -> impl Future<Output = Result<Vec<RecordedVersion>, Self::Error>> + Send;
}
