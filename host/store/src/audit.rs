//! Audit entries for auditors: of an instance or of a whole tenant, by actor, type and time.
//!
//! No index serves these filters, because it would cost every command. A query reads a bounded number of entries,
//! forwards or backwards, and returns where it stopped: a page may be short or empty although more entries follow. The entries of a tenant
//! are read in the order of the leaves of its tree, which commands do not write.

use std::ops::Range;

use jiff::Timestamp;
use uuid::Uuid;

use super::pool::Limited;
use super::time::Time;
use super::viewer::Viewer;
use super::{Reader, StoreError};
use wrkflw_core::ids::{InstanceId, TenantId, hex};
use wrkflw_core::json::Json;

/// Entries that are read for one page.
pub const SCANNED_MAX: i64 = 20_000;
/// The approximate size of a page in bytes, payloads and evidence together.
const PAGE_BYTES_MAX: i64 = 8 << 20;
/// How far the clock of a host may be behind that of another one. A day covers a clock that was set to another time zone. Readers of a
/// long audit pay for it with a few more pages.
const CLOCKS_APART_MAX: jiff::SignedDuration = jiff::SignedDuration::from_hours(24);

/// One entry, with everything that its hash covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRow {
    pub seq: u64,
    pub id: Uuid,
    pub r#type: String,
    pub revision: u32,
    pub command_id: Uuid,
    pub actor: Option<String>,
    pub task_id: Option<Uuid>,
    pub payload: Json,
    pub evidence: Option<Json>,
    pub salt: String,
    pub occurred_at: Timestamp,
    pub hash: String,
    pub event_seq: Option<u64>,
}

impl AuditRow {
    /// Its approximate size in bytes.
    pub fn bytes(&self) -> usize {
        const ENTRY_BYTES: usize = 500;
        let evidence = self.evidence.as_ref();
        let evidence = evidence.map_or(0, |evidence| evidence.as_str().len());
        ENTRY_BYTES + self.payload.as_str().len() + evidence
    }
}

/// An entry with its stream and its leaf in the tenant's tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedRow {
    pub stream: String,
    pub stream_id: Uuid,
    pub leaf: u64,
    pub entry: AuditRow,
}

/// A filter of entries, and their order. A member that is `None` does not filter.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    pub actor: Option<String>,
    pub kind: Option<String>,
    /// Entries at or after this moment.
    pub from: Option<Timestamp>,
    /// Entries before this moment.
    pub until: Option<Timestamp>,
    /// The newest entries first, instead of the oldest.
    pub newest_first: bool,
}

impl AuditFilter {
    /// The positions to read for the page that follows `after`, within `first` to `last`. Also returns the cursor of the next page, if
    /// positions remain.
    fn span(&self, after: Option<u64>, first: i64, last: i64) -> (Range<i64>, Option<i64>) {
        let after = after.map(|after| i64::try_from(after).unwrap_or(i64::MAX));
        if self.newest_first {
            let end = after.unwrap_or(i64::MAX).min(last.saturating_add(1));
            let begin = end.saturating_sub(SCANNED_MAX).max(first);
            (begin..end, (begin > first).then_some(begin))
        } else {
            let begin = after.map_or(first, |after| after.saturating_add(1));
            let begin = begin.min(last.saturating_add(1));
            let end = begin.saturating_add(SCANNED_MAX);
            (begin..end, (end <= last).then_some(end - 1))
        }
    }
}

/// A page of entries, and where the next page begins if there may be more.
#[derive(Debug)]
pub struct AuditPage<T> {
    pub rows: Vec<T>,
    pub next: Option<u64>,
}

impl<T> AuditPage<T> {
    /// A page of the entries `found`: fewer than `all` matches if a limit of entries or bytes ended it. `stopped` is the last entry
    /// that was read, if more follow.
    fn of(
        mut found: Vec<T>,
        all: i64,
        limit: u32,
        stopped: Option<i64>,
        at: impl Fn(&T) -> u64,
    ) -> Self {
        found.truncate(limit as usize);
        let next = if usize::try_from(all).is_ok_and(|all| all > found.len()) {
            found.last().map(at)
        } else {
            stopped.map(i64::cast_unsigned)
        };
        AuditPage { rows: found, next }
    }
}

/// Entries of an instance after `seq`, or before it if the newest come first.
pub async fn of_instance(
    reader: &Reader,
    tenant: TenantId,
    instance: InstanceId,
    filter: &AuditFilter,
    (seq, limit): (Option<u64>, u32),
) -> Result<AuditPage<AuditRow>, StoreError> {
    const FIRST: i64 = 1;
    let mut connection = reader.reading(Viewer::all(tenant)).await?;
    // Read before the rows, so that all rows up to it are among these.
    let last = sqlx::query_scalar!(
        "select seq from audit_entry where tenant_id = $1 and stream_kind = 'instance' and stream_id = $2
        order by seq desc limit 1",
        tenant.0,
        instance.0
    )
    .fetch_optional(&mut connection)
    .await?
    .unwrap_or(0);
    let (span, stopped) = filter.span(seq, FIRST, last);
    // One of the two parts returns nothing. An index gives either order, but the planner uses none if a parameter chooses the order.
    let rows = sqlx::query_as!(
        Row,
        r#"select seq as "seq!", id as "id!", type as "kind!", revision as "revision!", command_id as "command_id!",
            actor, task_id, payload as "payload!", evidence, salt as "salt!", occurred_at as "at!: Time",
            hash as "hash!", event_seq, of_all as "all!"
        from (
            select *, count(*) over () as of_all, coalesce(
                sum(octet_length(payload) + coalesce(octet_length(evidence), 0)) over (
                    order by place rows between unbounded preceding and 1 preceding
                ), 0) as before
            from (
                (select seq as place, * from audit_entry
                where not $5 and tenant_id = $1 and stream_kind = 'instance' and stream_id = $2 and seq >= $3 and seq < $4
                  and ($6::text is null or actor = $6) and ($7::text is null or type = $7)
                  and ($8::timestamptz is null or occurred_at >= $8) and ($9::timestamptz is null or occurred_at < $9)
                order by seq limit $10)
                union all
                (select -seq as place, * from audit_entry
                where $5 and tenant_id = $1 and stream_kind = 'instance' and stream_id = $2 and seq >= $3 and seq < $4
                  and ($6::text is null or actor = $6) and ($7::text is null or type = $7)
                  and ($8::timestamptz is null or occurred_at >= $8) and ($9::timestamptz is null or occurred_at < $9)
                order by seq desc limit $10)
            ) e
        ) e
        where before < $11
        order by place"#,
        tenant.0,
        instance.0,
        span.start,
        span.end,
        filter.newest_first,
        filter.actor,
        filter.kind,
        filter.from.map(Time) as _,
        filter.until.map(Time) as _,
        i64::from(limit) + 1,
        PAGE_BYTES_MAX
    )
    .fetch_all(&mut connection)
    .await?;
    let all = rows.first().map_or(0, |row| row.all);
    let rows: Vec<AuditRow> = rows.into_iter().map(AuditRow::from).collect();
    Ok(AuditPage::of(rows, all, limit, stopped, |row| row.seq))
}

/// Entries of a tenant after `leaf`, or before it if the newest come first, in the order of the tree, and when the last checkpoint
/// was signed. An entry that no checkpoint covers has no leaf yet.
pub async fn of_tenant(
    reader: &Reader,
    tenant: TenantId,
    filter: &AuditFilter,
    (leaf, limit): (Option<u64>, u32),
) -> Result<(AuditPage<PlacedRow>, Option<Timestamp>), StoreError> {
    let mut connection = reader.reading(Viewer::all(tenant)).await?;
    // A forward cursor is not before the first leaf.
    let bound = filter
        .from
        .filter(|_| filter.newest_first || leaf.is_none());
    let first = first_leaf(&mut connection, tenant, bound).await?;
    // Read before the rows, so that all rows up to the last leaf, and all that the checkpoint covers, are among these.
    let last = sqlx::query!(
        r#"select (select run_end(leaf, digests) from audit_leaf where tenant_id = $1 order by leaf desc limit 1) as "end?",
            (select signed_at from checkpoint where tenant_id = $1 order by number desc limit 1) as "signed_at?: Time""#,
        tenant.0
    )
    .fetch_one(&mut connection)
    .await?;
    let (span, stopped) = filter.span(leaf, first, last.end.unwrap_or(0) - 1);
    let rows = placed(&mut connection, tenant, filter, span, limit).await?;
    let all = rows.first().map_or(0, |row| row.all);
    let rows: Vec<PlacedRow> = rows.into_iter().map(PlacedRow::from).collect();
    let page = AuditPage::of(rows, all, limit, stopped, |row| row.leaf);
    Ok((page, last.signed_at.map(|at| at.0)))
}

/// The entries with these leaves that pass the filter: at most one more than `limit`.
async fn placed(
    connection: &mut Limited,
    tenant: TenantId,
    filter: &AuditFilter,
    span: Range<i64>,
    limit: u32,
) -> Result<Vec<Placed>, StoreError> {
    // One of the two parts returns nothing, as in the audit of an instance.
    let rows = sqlx::query_as!(
            Placed,
            r#"with begin as materialized (
                -- The run with the first of the leaves.
                select coalesce((
                    select leaf from audit_leaf where tenant_id = $1 and leaf > $2::bigint - 61 and leaf <= $2 order by leaf desc limit 1
                ), $2) as leaf
            )
            select leaf as "leaf!", stream_kind as "stream_kind!", stream_id as "stream_id!", seq as "seq!", id as "id!",
                type as "kind!", revision as "revision!", command_id as "command_id!", actor, task_id,
                payload as "payload!", evidence, salt as "salt!", occurred_at as "at!: Time", hash as "hash!", event_seq,
                of_all as "all!"
            from (
                select *, count(*) over () as of_all, coalesce(
                    sum(octet_length(payload) + coalesce(octet_length(evidence), 0)) over (
                        order by place rows between unbounded preceding and 1 preceding
                    ), 0) as before
                from (
                    (select e.leaf as place, e.*
                    from audit_leaf r
                    cross join lateral (
                        select r.leaf + (e.seq - r.seq) as leaf, e.* from audit_entry e
                        where e.tenant_id = r.tenant_id and e.stream_kind = r.stream_kind and e.stream_id = r.stream_id
                          and e.seq >= r.seq and e.seq < run_end(r.seq, r.digests)
                          and e.seq - r.seq >= $2 - r.leaf and e.seq - r.seq < $3 - r.leaf
                          and ($5::text is null or e.actor = $5) and ($6::text is null or e.type = $6)
                          and ($7::timestamptz is null or e.occurred_at >= $7)
                          and ($8::timestamptz is null or e.occurred_at < $8)
                        offset 0
                    ) e
                    where not $4 and r.tenant_id = $1 and r.leaf >= (select leaf from begin) and r.leaf < $3
                    order by r.leaf, e.leaf limit $9)
                    union all
                    (select -e.leaf as place, e.*
                    from audit_leaf r
                    cross join lateral (
                        select r.leaf + (e.seq - r.seq) as leaf, e.* from audit_entry e
                        where e.tenant_id = r.tenant_id and e.stream_kind = r.stream_kind and e.stream_id = r.stream_id
                          and e.seq >= r.seq and e.seq < run_end(r.seq, r.digests)
                          and e.seq - r.seq >= $2 - r.leaf and e.seq - r.seq < $3 - r.leaf
                          and ($5::text is null or e.actor = $5) and ($6::text is null or e.type = $6)
                          and ($7::timestamptz is null or e.occurred_at >= $7)
                          and ($8::timestamptz is null or e.occurred_at < $8)
                        offset 0
                    ) e
                    where $4 and r.tenant_id = $1 and r.leaf >= (select leaf from begin) and r.leaf < $3
                    order by r.leaf desc, e.leaf desc limit $9)
                ) e
            ) e
            where before < $10
            order by place"#,
            tenant.0,
            span.start,
            span.end,
            filter.newest_first,
            filter.actor,
            filter.kind,
            filter.from.map(Time) as _,
            filter.until.map(Time) as _,
            i64::from(limit) + 1,
            PAGE_BYTES_MAX
        )
        .fetch_all(connection)
        .await?;
    Ok(rows)
}

/// No entry from this moment on has a smaller leaf.
async fn first_leaf(
    connection: &mut Limited,
    tenant: TenantId,
    from: Option<Timestamp>,
) -> Result<i64, StoreError> {
    let Some(from) = from else {
        return Ok(0);
    };
    // A checkpoint signed a day before `from` covers no entry at or after `from`, unless clocks differ by more than that. So reading
    // begins at its size.
    let size = sqlx::query_scalar!(
        "select size from checkpoint where tenant_id = $1 and signed_at < $2 order by signed_at desc limit 1",
        tenant.0,
        Time(from - CLOCKS_APART_MAX) as _
    );
    Ok(size.fetch_optional(connection).await?.unwrap_or(0))
}

struct Row {
    seq: i64,
    id: Uuid,
    kind: String,
    revision: i32,
    command_id: Uuid,
    actor: Option<String>,
    task_id: Option<Uuid>,
    payload: String,
    evidence: Option<String>,
    salt: Vec<u8>,
    at: Time,
    hash: Vec<u8>,
    event_seq: Option<i64>,
    /// The number of matches in the entries that were read, counted up to one more than the limit.
    all: i64,
}

impl From<Row> for AuditRow {
    fn from(row: Row) -> AuditRow {
        AuditRow {
            seq: row.seq.cast_unsigned(),
            id: row.id,
            r#type: row.kind,
            revision: row.revision.cast_unsigned(),
            command_id: row.command_id,
            actor: row.actor,
            task_id: row.task_id,
            payload: Json::from_canonical(row.payload),
            evidence: row.evidence.map(Json::from_canonical),
            salt: hex(&row.salt),
            occurred_at: row.at.0,
            hash: hex(&row.hash),
            event_seq: row.event_seq.map(i64::cast_unsigned),
        }
    }
}

struct Placed {
    leaf: i64,
    stream_kind: String,
    stream_id: Uuid,
    seq: i64,
    id: Uuid,
    kind: String,
    revision: i32,
    command_id: Uuid,
    actor: Option<String>,
    task_id: Option<Uuid>,
    payload: String,
    evidence: Option<String>,
    salt: Vec<u8>,
    at: Time,
    hash: Vec<u8>,
    event_seq: Option<i64>,
    all: i64,
}

impl From<Placed> for PlacedRow {
    fn from(row: Placed) -> PlacedRow {
        let entry = Row {
            seq: row.seq,
            id: row.id,
            kind: row.kind,
            revision: row.revision,
            command_id: row.command_id,
            actor: row.actor,
            task_id: row.task_id,
            payload: row.payload,
            evidence: row.evidence,
            salt: row.salt,
            at: row.at,
            hash: row.hash,
            event_seq: row.event_seq,
            all: row.all,
        };
        PlacedRow {
            stream: row.stream_kind,
            stream_id: row.stream_id,
            leaf: row.leaf.cast_unsigned(),
            entry: entry.into(),
        }
    }
}
