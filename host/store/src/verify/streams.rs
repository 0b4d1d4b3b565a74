//! Streams: their entries and their stored heads.

use futures_util::stream::{BoxStream, StreamExt as _, TryStreamExt as _};
use uuid::Uuid;

use super::Snapshot;
use crate::StoreError;
use crate::time::Time;
use wrkflw_audit::record::Streams;
use wrkflw_audit::record::rows::{EntryRow, HeadRow, StreamRow, UnhashedColumns};
use wrkflw_core::audit::{Draft, Entry, Stream, StreamKind};
use wrkflw_core::ids::{CommandId, TaskId};
use wrkflw_core::json::Json;

impl Streams for Snapshot {
    fn entries<'a>(
        &'a mut self,
        kind: StreamKind,
        streams: &'a [Uuid],
    ) -> BoxStream<'a, Result<EntryRow, StoreError>> {
        let tenant = self.tenant;
        sqlx::query!(
            r#"select stream_id, seq, id, type, revision, command_id, actor, task_id, payload, evidence, salt,
                occurred_at as "at: Time", hash, event_seq,
                xid::text::bigint as "xid!", pos, traceparent
            from audit_entry
            where tenant_id = $1 and stream_kind = $2 and stream_id = any($3)
            order by stream_id, seq"#,
            tenant.0,
            kind.name(),
            streams
        )
        .fetch(&mut *self.transaction)
        .map_ok(move |row| EntryRow {
            stream: row.stream_id,
            seq: row.seq.cast_unsigned(),
            place: UnhashedColumns {
                xid: row.xid,
                pos: row.pos,
                traceparent: row.traceparent,
            },
            entry: entry(
                Stream {
                    tenant,
                    kind,
                    id: row.stream_id,
                },
                (row.seq, row.event_seq),
                (row.salt, row.hash),
                Draft {
                    id: row.id,
                    kind: row.r#type,
                    revision: row.revision.cast_unsigned(),
                    command: CommandId(row.command_id),
                    actor: row.actor,
                    task: row.task_id.map(TaskId),
                    payload: Json::from_canonical(row.payload),
                    evidence: row.evidence.map(Json::from_canonical),
                    salt: [0; 16],
                    at: row.at.0,
                    public: row.event_seq.is_some(),
                    traceparent: None,
                },
            ),
        })
        .map_err(StoreError::from)
        .boxed()
    }

    async fn length(&mut self, kind: StreamKind, id: Uuid) -> Result<u64, StoreError> {
        let last = sqlx::query_scalar!(
            "select seq from audit_entry where tenant_id = $1 and stream_kind = $2 and stream_id = $3
            order by seq desc limit 1",
            self.tenant.0,
            kind.name(),
            id
        );
        let last = last.fetch_optional(&mut *self.transaction).await?;
        Ok(last.unwrap_or_default().cast_unsigned())
    }

    async fn heads(
        &mut self,
        after: (&str, Uuid),
        limit: i64,
    ) -> Result<Vec<(StreamRow, HeadRow)>, StoreError> {
        let rows = sqlx::query!(
            "select stream_kind, stream_id, seq, head from audit_stream
            where tenant_id = $1 and (stream_kind, stream_id) > ($2, $3)
            order by stream_kind, stream_id limit $4",
            self.tenant.0,
            after.0,
            after.1,
            limit
        )
        .fetch_all(&mut *self.transaction)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| {
                let stream = StreamRow {
                    kind: row.stream_kind,
                    id: row.stream_id,
                    has_head: true,
                };
                let head = HeadRow {
                    seq: row.seq.cast_unsigned(),
                    hash: row.head,
                    event_seq: None,
                };
                (stream, head)
            })
            .collect())
    }

    async fn streams(
        &mut self,
        after: (&str, Uuid),
        limit: i64,
    ) -> Result<Vec<StreamRow>, StoreError> {
        let rows = sqlx::query!(
            r#"with recursive found as (
                (select stream_kind, stream_id from audit_entry
                 where tenant_id = $1 and (stream_kind, stream_id) > ($2, $3)
                 order by stream_kind, stream_id limit 1)
                union all
                select n.stream_kind, n.stream_id from found f
                cross join lateral (
                    select a.stream_kind, a.stream_id from audit_entry a
                    where a.tenant_id = $1 and (a.stream_kind, a.stream_id) > (f.stream_kind, f.stream_id)
                    order by a.stream_kind, a.stream_id limit 1
                ) n
            ),
            page as (select stream_kind, stream_id from found limit $4)
            select p.stream_kind as "stream_kind!", p.stream_id as "stream_id!", case p.stream_kind
                when 'instance' then exists (select from instance i where i.tenant_id = $1 and i.id = p.stream_id)
                else exists (
                    select from audit_stream s
                    where s.tenant_id = $1 and s.stream_kind = p.stream_kind and s.stream_id = p.stream_id
                )
            end as "has_head!"
            from page p order by p.stream_kind, p.stream_id"#,
            self.tenant.0,
            after.0,
            after.1,
            limit
        )
        .fetch_all(&mut *self.transaction)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| StreamRow {
                kind: row.stream_kind,
                id: row.stream_id,
                has_head: row.has_head,
            })
            .collect())
    }
}

fn entry(
    stream: Stream,
    (seq, event_seq): (i64, Option<i64>),
    (salt, hash): (Vec<u8>, Vec<u8>),
    draft: Draft,
) -> Result<Entry, &'static str> {
    Ok(Entry {
        stream,
        seq: seq.cast_unsigned(),
        event_seq: event_seq.map(i64::cast_unsigned),
        draft: Draft {
            salt: salt
                .try_into()
                .map_err(|_| "its salt does not have 16 bytes")?,
            ..draft
        },
        hash: hash
            .try_into()
            .map_err(|_| "its hash does not have 32 bytes")?,
    })
}
