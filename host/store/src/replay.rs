//! Replays: a range of published events goes to Kafka again, marked as replayed.
//!
//! A replayed event is a second row of the outbox, with a position of its own, that points to the same entry. So its id and its
//! content do not change. The check of the outbox for missing events does not count such rows. If Kafka refuses such an event,
//! it is dropped, because it was published before.

use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::commit::partition;
use super::feed::{EntryRow, FeedCursor, FeedQuery, Read, read};
use super::pool::transacted;
use super::streams::{Note, append};
use super::{Store, StoreError};
use wrkflw_core::audit::{Stream, StreamKind};
use wrkflw_core::ids::TenantId;

/// Events that one call sends again.
pub const REPLAYED_MAX: u32 = 1_000;

/// Which events to send again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replay {
    /// The position before them.
    pub after: FeedCursor,
    /// The position of the last one. None: all up to the end of the feed.
    pub until: Option<FeedCursor>,
    /// Only those of this instance.
    pub instance: Option<Uuid>,
    /// At most [`REPLAYED_MAX`].
    pub limit: u32,
}

/// The events that are sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replayed {
    pub replayed: u32,
    /// The position of the last one, or that before the first if there was none.
    pub end: FeedCursor,
    /// Whether the range goes on behind it.
    pub more: bool,
}

/// Puts the events of a range into the outbox once more. Leaves out events that were not published yet: they are in the outbox, or
/// their instance has dead letters from this or an earlier event on. The tenant's operation stream records who did it and why.
pub async fn replay(
    store: &Store,
    tenant: TenantId,
    replay: Replay,
    reason: &str,
    note: &Note<'_>,
) -> Result<Replayed, StoreError> {
    transacted(Box::pin(replayed(store, tenant, replay, reason, note))).await
}

async fn replayed(
    store: &Store,
    tenant: TenantId,
    replay: Replay,
    reason: &str,
    note: &Note<'_>,
) -> Result<Replayed, StoreError> {
    let mut transaction = store.writer.begin().await?;
    let horizon = sqlx::query_scalar!(
        r#"select pg_snapshot_xmin(pg_current_snapshot())::text::bigint as "xmin!""#
    )
    .fetch_one(&mut *transaction)
    .await?;
    let limit = replay.limit.min(REPLAYED_MAX);
    let query = FeedQuery {
        start: replay.after,
        horizon,
        types: None,
        instance: replay.instance,
        limit: i64::from(limit) + 1,
    };
    let Read { mut rows, more } = read(&mut *transaction, tenant, query).await?;
    let count = rows.len();
    if let Some(until) = replay.until {
        rows.retain(|row| row.cursor() <= until);
    }
    let more = more && rows.len() == count;
    rows.truncate(limit as usize);
    let end = rows.last().map_or(replay.after, EntryRow::cursor);
    let replayed = insert_again(&mut transaction, tenant, &rows).await?;
    let until = replay.until.map(|until| until.to_string());
    let payload = json!({
        "after": replay.after.to_string(), "until": until, "end": end.to_string(), "instance": replay.instance,
        "replayed": replayed, "reason": reason,
    });
    let stream = Stream {
        tenant,
        kind: StreamKind::Operation,
        id: Uuid::nil(),
    };
    append(
        &mut transaction,
        stream,
        note.draft("EVENTS_REPLAYED", 0, &payload),
    )
    .await?;
    transaction.commit().await?;
    Ok(Replayed {
        replayed,
        end,
        more,
    })
}

/// Puts these events into the outbox behind all others, and returns their number.
async fn insert_again(
    connection: &mut PgConnection,
    tenant: TenantId,
    rows: &[EntryRow],
) -> Result<u32, StoreError> {
    let partitions: Vec<i16> = rows.iter().map(|row| partition(row.stream_id)).collect();
    let instances: Vec<Uuid> = rows.iter().map(|row| row.stream_id).collect();
    let seqs: Vec<i64> = rows.iter().map(|row| row.seq).collect();
    let positions: Vec<i64> = rows.iter().map(|row| row.pos).collect();
    let inserted = sqlx::query!(
        "insert into outbox_event (partition, pos, tenant_id, instance_id, seq, replayed)
         select r.partition, nextval('event_pos'), $1, r.instance_id, r.seq, true
         from (
             select * from unnest($2::smallint[], $3::uuid[], $4::bigint[], $5::bigint[])
                 with ordinality a (partition, instance_id, seq, pos, place)
             where not exists (
                 select from dead_letter d where d.tenant_id = $1 and d.instance_id = a.instance_id and d.seq <= a.seq
             ) and not exists (
                 -- Until it is sent, an event is in the outbox at the position of its entry.
                 select from outbox_event w where w.tenant_id = $1 and w.partition = a.partition and w.pos = a.pos
             )
             order by a.place
             offset 0
         ) r",
        tenant.0,
        &partitions,
        &instances,
        &seqs,
        &positions
    )
    .execute(connection)
    .await?;
    Ok(u32::try_from(inserted.rows_affected()).unwrap_or(u32::MAX))
}
