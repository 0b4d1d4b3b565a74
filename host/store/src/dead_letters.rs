//! Dead letters: events that the broker refused permanently, and the later events of the same instance, which wait behind them.
//! This module reads them, sends them again, and discards them.
//!
//! An instance's events are released in order, from the first one, while their outbox partition is locked. The relay parks an
//! event if an earlier event of its instance is parked, so a release of only a part of them is safe. Released events keep
//! their positions and entries, so ids, sequence and order do not change.
//!
//! Checkpoints are parked under [`NOBODY`]. They are about the tenant, so everybody who may read dead letters sees them.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;
use sqlx::{PgConnection, PgExecutor};
use uuid::Uuid;

use super::checkpoints::NOBODY;
use super::pool::transacted;
use super::streams::{Note, append};
use super::time::Time;
use super::viewer::Viewer;
use super::{Reader, Store, StoreError};
use wrkflw_core::audit::{Stream, StreamKind};
use wrkflw_core::ids::{InstanceId, TenantId};

/// Events that one call puts back into the outbox.
pub const RELEASED_MAX: i64 = 1000;
/// Followers beyond this number are not counted.
pub(crate) const FOLLOWERS_COUNTED_MAX: i64 = 10_000;

/// A parked event. The audit entry of a release has the first one in this form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ParkedEvent {
    pub instance: Uuid,
    pub entry: u64,
    pub event: Option<Uuid>,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub sequence: Option<u64>,
    pub error: String,
    pub attempts: u32,
    pub parked_at: Timestamp,
}

/// The first parked event of an instance, and the number of those behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    pub event: ParkedEvent,
    pub followers: u32,
}

/// How to release the parked events of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// All are sent again.
    Retry,
    /// The first is discarded, if it has this entry. Those behind it are sent.
    Discard { entry: u64 },
}

/// The result of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Released {
    Done(Moved),
    /// The first event does not have the given entry.
    NotFirst(ParkedEvent),
    /// No event of the instance is parked.
    Nothing,
}

/// The events that a release has moved and discarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    pub discarded: Option<ParkedEvent>,
    pub released: u32,
    pub last: Option<u64>,
    pub more: bool,
}

struct Row {
    instance_id: Uuid,
    seq: i64,
    partition: i16,
    id: Option<Uuid>,
    kind: Option<String>,
    event_seq: Option<i64>,
    error: String,
    attempts: i32,
    parked_at: Time,
    followers: i64,
}

impl From<Row> for ParkedEvent {
    fn from(row: Row) -> ParkedEvent {
        ParkedEvent {
            instance: row.instance_id,
            entry: row.seq.cast_unsigned(),
            event: row.id,
            kind: row.kind,
            sequence: row.event_seq.map(i64::cast_unsigned),
            error: row.error,
            attempts: row.attempts.cast_unsigned(),
            parked_at: row.parked_at.0,
        }
    }
}

/// A page of the first parked events.
#[derive(Debug)]
pub struct DeadLetters {
    /// At most `limit`: callers ask for one more than they return.
    pub found: Vec<DeadLetter>,
    /// The last instance that was read, if the viewer does not see all instances that were read. More may follow.
    pub reached: Option<Uuid>,
}

/// The first parked event of each instance that the viewer sees, in the order of the instances.
pub async fn list(
    reader: &Reader,
    viewer: &Viewer,
    after: Option<Uuid>,
    limit: i64,
) -> Result<DeadLetters, StoreError> {
    let mut looking = reader.looking(viewer).await?;
    let rows = sqlx::query_as!(
        Row,
        r#"
        with recursive head as (
            (select instance_id, seq from dead_letter
             where tenant_id = $1 and ($2::uuid is null or instance_id > $2)
             order by instance_id, seq limit 1)
            union all
            select next.instance_id, next.seq from head cross join lateral (
                select d.instance_id, d.seq from dead_letter d
                where d.tenant_id = $1 and d.instance_id > head.instance_id
                order by d.instance_id, d.seq limit 1) next
        )
        select d.instance_id as "instance_id!", d.seq as "seq!", d.partition as "partition!", a.id as "id?", a.type as "kind?",
            a.event_seq as "event_seq?", d.error as "error!", d.attempts as "attempts!", d.parked_at as "parked_at!: Time",
            (select count(*) from (
                select from dead_letter f where f.tenant_id = $1 and f.instance_id = d.instance_id and f.seq > d.seq limit $4
            ) behind) as "followers!"
        from (select instance_id, seq from head limit $3) h
        join dead_letter d on d.tenant_id = $1 and d.instance_id = h.instance_id and d.seq = h.seq
        left join audit_entry a on a.tenant_id = $1 and a.stream_kind = 'instance' and a.stream_id = d.instance_id and a.seq = d.seq
        order by d.instance_id
        "#,
        viewer.tenant.0,
        after,
        limit,
        FOLLOWERS_COUNTED_MAX,
    )
    .fetch_all(looking.places().await?)
    .await?;
    let letters = rows.into_iter().map(|row| DeadLetter {
        followers: u32::try_from(row.followers).unwrap_or(u32::MAX),
        event: row.into(),
    });
    let mut found: Vec<_> = letters.collect();
    let instance = |letter: &DeadLetter| letter.event.instance;
    let of = |letter: &DeadLetter| Some(instance(letter)).filter(|id| *id != NOBODY);
    let last = looking.keep_seen(&mut found, limit, of).await?;
    let reached = last.as_ref().map(instance);
    Ok(DeadLetters { found, reached })
}

/// The parked events of one instance, in their order.
pub async fn parked_events(
    reader: &Reader,
    viewer: &Viewer,
    instance: InstanceId,
    after: u64,
    limit: i64,
) -> Result<Vec<ParkedEvent>, StoreError> {
    let tenant = viewer.tenant;
    let viewer = if instance.0 == NOBODY {
        Viewer::all(tenant)
    } else {
        viewer.clone()
    };
    let mut connection = reader.reading(viewer).await?;
    let rows = parked(
        &mut connection,
        tenant,
        instance,
        after.cast_signed(),
        limit,
    )
    .await?;
    Ok(rows.into_iter().map(ParkedEvent::from).collect())
}

/// Moves up to [`RELEASED_MAX`] parked events of an instance back into the outbox, without the first if that is
/// discarded. The tenant's operation stream records who did it and why.
pub async fn release(
    store: &Store,
    tenant: TenantId,
    instance: InstanceId,
    release: Release,
    reason: &str,
    note: &Note<'_>,
) -> Result<Released, StoreError> {
    transacted(Box::pin(async move {
        let mut transaction = store.writer.begin().await?;
        let Some(seen) = first(&mut transaction, tenant, instance).await? else {
            return Ok(Released::Nothing);
        };
        let partition = seen.partition;
        sqlx::query!(
            "select partition from outbox_partition where partition = $1 for update",
            partition
        )
        .fetch_one(&mut *transaction)
        .await?;
        // Another release may have run while this one waited for the partition.
        let Some(first) = first(&mut transaction, tenant, instance).await? else {
            return Ok(Released::Nothing);
        };
        let first = ParkedEvent::from(first);
        let discarded = match release {
            Release::Retry => None,
            Release::Discard { entry } if entry != first.entry => {
                return Ok(Released::NotFirst(first));
            }
            Release::Discard { entry } => {
                sqlx::query!(
                    "with given_up as (
                     delete from dead_letter where tenant_id = $1 and instance_id = $2 and seq = $3 returning partition
                 )
                 update outbox_partition l set settled = l.settled + 1 from given_up where l.partition = given_up.partition",
                    tenant.0,
                    instance.0,
                    entry.cast_signed()
                )
                .execute(&mut *transaction)
                .await?;
                Some(first.clone())
            }
        };
        let sent = put_back(&mut transaction, tenant, instance, partition).await?;
        let released = u32::try_from(sent.len()).unwrap_or(u32::MAX);
        let more = self::first(&mut transaction, tenant, instance)
            .await?
            .is_some();
        let kind = match release {
            Release::Retry => "DEAD_LETTERS_RETRIED",
            Release::Discard { .. } => "DEAD_LETTER_DISCARDED",
        };
        let payload =
            json!({ "instance": instance, "first": first, "released": released, "reason": reason });
        let stream = Stream {
            tenant,
            kind: StreamKind::Operation,
            id: Uuid::nil(),
        };
        append(&mut transaction, stream, note.draft(kind, 0, &payload)).await?;
        transaction.commit().await?;
        let moved = Moved {
            discarded,
            released,
            last: sent.into_iter().max().map(i64::cast_unsigned),
            more,
        };
        Ok(Released::Done(moved))
    }))
    .await
}

async fn first(
    connection: &mut PgConnection,
    tenant: TenantId,
    instance: InstanceId,
) -> Result<Option<Row>, StoreError> {
    Ok(parked(connection, tenant, instance, 0, 1).await?.pop())
}

async fn parked(
    connection: impl PgExecutor<'_>,
    tenant: TenantId,
    instance: InstanceId,
    after: i64,
    limit: i64,
) -> Result<Vec<Row>, StoreError> {
    let rows = sqlx::query_as!(
        Row,
        r#"
        select d.instance_id as "instance_id!", d.seq as "seq!", d.partition as "partition!", a.id as "id?", a.type as "kind?",
            a.event_seq as "event_seq?", d.error as "error!", d.attempts as "attempts!", d.parked_at as "parked_at!: Time",
            0::bigint as "followers!"
        from dead_letter d
        left join audit_entry a on a.tenant_id = $1 and a.stream_kind = 'instance' and a.stream_id = $2 and a.seq = d.seq
        where d.tenant_id = $1 and d.instance_id = $2 and d.seq > $3
        order by d.seq limit $4
        "#,
        tenant.0,
        instance.0,
        after,
        limit,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows)
}

/// Moves the first events of the instance to the outbox, and returns their entries. The caller has locked the partition.
async fn put_back(
    connection: &mut PgConnection,
    tenant: TenantId,
    instance: InstanceId,
    partition: i16,
) -> Result<Vec<i64>, StoreError> {
    let moved = sqlx::query_scalar!(
        "with front as (
             select seq from dead_letter where tenant_id = $1 and instance_id = $2 order by seq limit $3),
         moved as (
             delete from dead_letter d using front
             where d.tenant_id = $1 and d.instance_id = $2 and d.seq = front.seq
             returning d.pos, d.seq),
         lowered as (
             update outbox_partition set floor = least(floor, (select min(pos) from moved) - 1)
             where partition = $4 and exists (select from moved))
         insert into outbox_event (partition, pos, tenant_id, instance_id, seq)
         select $4, pos, $1, $2, seq from moved
         returning seq",
        tenant.0,
        instance.0,
        RELEASED_MAX,
        partition,
    )
    .fetch_all(connection)
    .await?;
    Ok(moved)
}
