//! The past of an instance: its audit entries in order, page by page, and the moves of its flow.

use jiff::Timestamp;

use super::time::Time;
use super::viewer::Viewer;
use super::{Reader, StoreError};
use wrkflw_core::ids::InstanceId;

/// The size of a page in entries, and approximately in bytes.
const PAGE: i64 = 500;
const PAGE_BYTES: i64 = 1 << 20;

/// Limits of the moves of an instance: the examined entries, the comments beside them, the moves that are read, and their bytes.
const MOVES_ENTRIES_MAX: u64 = 5_000;
const MOVES_COMMENTS_MAX: i64 = 100_000;
const MOVES_MAX: i64 = 500;
const MOVES_BYTES_MAX: i64 = 1 << 20;

/// A plan of the flow or an escalation, as the audit has it.
#[derive(Debug)]
pub struct PastMove {
    pub payload: String,
    pub at: Timestamp,
}

/// The newest plans and escalations of an instance.
#[derive(Debug)]
pub struct Moves {
    /// Oldest first.
    pub newest: Vec<PastMove>,
    /// Whether there may be older ones.
    pub omitted: bool,
}

/// The columns of an audit entry from which an instance is folded.
#[derive(Debug)]
pub struct PastEntry {
    pub seq: u64,
    pub revision: u32,
    pub actor: Option<String>,
    pub payload: String,
    pub at: Timestamp,
}

/// The next entries of the instance after `seq`; none if there are no more. Comments are left out: they change only the
/// revision, and everybody who sees the instance may add any number of them.
pub async fn past_entries(
    reader: &Reader,
    viewer: &Viewer,
    id: InstanceId,
    seq: u64,
) -> Result<Vec<PastEntry>, StoreError> {
    let rows = sqlx::query!(
        r#"select seq, revision, actor, payload, occurred_at as "at: Time" from (
            select *, coalesce(sum(octet_length(payload)) over (
                order by seq rows between unbounded preceding and 1 preceding
            ), 0) as before
            from (
                select seq, revision, actor, payload, occurred_at from audit_entry
                where tenant_id = $1 and stream_kind = 'instance' and stream_id = $2 and seq > $3
                  and type <> 'FLOW_COMMENTED'
                order by seq
                limit $4
            ) e
        ) e
        where before < $5
        order by seq"#,
        viewer.tenant.0,
        id.0,
        seq.cast_signed(),
        PAGE,
        PAGE_BYTES
    )
    .fetch_all(&mut reader.reading(viewer).await?)
    .await?;
    let entries = rows.into_iter().map(|row| PastEntry {
        seq: row.seq.cast_unsigned(),
        revision: row.revision.cast_unsigned(),
        actor: row.actor,
        payload: row.payload,
        at: row.at.0,
    });
    Ok(entries.collect())
}

/// The revision after the last comment on the instance up to the moment. 0 if there was none.
pub async fn commented_revision(
    reader: &Reader,
    viewer: &Viewer,
    id: InstanceId,
    at: Timestamp,
) -> Result<u32, StoreError> {
    let revision = sqlx::query_scalar!(
        "select revision from audit_entry
        where tenant_id = $1 and stream_kind = 'instance' and stream_id = $2 and type = 'FLOW_COMMENTED' and occurred_at <= $3
        order by seq desc limit 1",
        viewer.tenant.0,
        id.0,
        Time(at) as _
    )
    .fetch_optional(&mut reader.reading(viewer).await?)
    .await?;
    Ok(revision.map_or(0, i32::cast_unsigned))
}

/// The newest plans and escalations of an instance whose last entry is `last`. Reads a bounded number of its entries, newest first.
pub async fn moves(
    reader: &Reader,
    viewer: &Viewer,
    id: InstanceId,
    last: u64,
) -> Result<Moves, StoreError> {
    let mut from = last.saturating_sub(MOVES_ENTRIES_MAX);
    if from > 0 {
        from = from.saturating_sub(comments_counted(reader, viewer, id).await?);
    }
    let rows = sqlx::query!(
        r#"select case when bytes <= $5 then payload end as payload, occurred_at as "at: Time" from (
            select payload, occurred_at, seq, sum(octet_length(payload)) over (order by seq desc) as bytes from (
                select payload, occurred_at, seq from audit_entry
                where tenant_id = $1 and stream_kind = 'instance' and stream_id = $2 and seq > $3
                  and type in ('STATE_TRANSITIONED', 'STATE_CONTINUED', 'TASK_ESCALATED')
                order by seq desc limit $4
            ) e
        ) e
        order by seq"#,
        viewer.tenant.0,
        id.0,
        from.cast_signed(),
        MOVES_MAX,
        MOVES_BYTES_MAX
    )
    .fetch_all(&mut reader.reading(viewer).await?)
    .await?;
    let is_full = i64::try_from(rows.len()) == Ok(MOVES_MAX);
    let omitted = from > 0 || is_full || rows.iter().any(|row| row.payload.is_none());
    let newest = rows.into_iter().filter_map(|row| {
        let (payload, at) = (row.payload?, row.at.0);
        Some(PastMove { payload, at })
    });
    Ok(Moves {
        newest: newest.collect(),
        omitted,
    })
}

/// The number of comments on the instance, up to [`MOVES_COMMENTS_MAX`].
async fn comments_counted(
    reader: &Reader,
    viewer: &Viewer,
    id: InstanceId,
) -> Result<u64, StoreError> {
    let count = sqlx::query_scalar!(
        r#"select count(*) as "count!" from (
            select from audit_entry
            where tenant_id = $1 and stream_kind = 'instance' and stream_id = $2 and type = 'FLOW_COMMENTED'
            limit $3
        ) c"#,
        viewer.tenant.0,
        id.0,
        MOVES_COMMENTS_MAX
    )
    .fetch_one(&mut reader.reading(viewer).await?)
    .await?;
    Ok(count.cast_unsigned())
}
