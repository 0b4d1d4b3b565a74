//! Leaves and checkpoints. Each leaf comes with the current digest of its entry, to be compared.

use uuid::Uuid;

use super::{Snapshot, first_id};
use crate::StoreError;
use crate::checkpoints::refused::{refused_columns, refused_from};
use crate::time::Time;
use wrkflw_audit::record::Leaves;
use wrkflw_audit::record::rows::{
    CheckpointRow, EntryOf, LeafRow, RefusedAttemptColumns, RunStart, UnhashedColumns,
};
use wrkflw_core::checkpoint::{Checkpoint, REFUSED};

struct Row {
    run_leaf: i64,
    run_seq: i64,
    leaf: i64,
    stream_kind: String,
    stream_id: Uuid,
    seq: i64,
    digest: Vec<u8>,
    hash: Option<Vec<u8>>,
    xid: Option<i64>,
    pos: Option<i64>,
    traceparent: Option<String>,
}

impl From<Row> for LeafRow {
    fn from(row: Row) -> LeafRow {
        let place = row.xid.zip(row.pos).map(|(xid, pos)| UnhashedColumns {
            xid,
            pos,
            traceparent: row.traceparent,
        });
        LeafRow {
            run: RunStart {
                leaf: row.run_leaf,
                seq: row.run_seq,
            },
            leaf: row.leaf.cast_unsigned(),
            kind: row.stream_kind,
            id: row.stream_id,
            seq: row.seq.cast_unsigned(),
            digest: row.digest,
            now: place.zip(row.hash).map(|(place, hash)| place.digest(&hash)),
            pos: row.pos,
        }
    }
}

/// Fills in the current digests of refused attempts.
async fn refused(snapshot: &mut Snapshot, leaves: &mut [LeafRow]) -> Result<(), StoreError> {
    let of_them = |leaf: &&mut LeafRow| leaf.kind == REFUSED;
    let ids: Vec<Uuid> = leaves
        .iter_mut()
        .filter(of_them)
        .map(|leaf| leaf.id)
        .collect();
    if ids.is_empty() {
        return Ok(());
    }
    let found = refused_columns(&mut snapshot.transaction, snapshot.tenant, &ids).await?;
    for leaf in leaves.iter_mut().filter(of_them) {
        if let Some(attempt) = found.iter().find(|attempt| attempt.id == leaf.id) {
            leaf.now = Some(attempt.digest());
            leaf.pos = Some(attempt.pos);
        }
    }
    Ok(())
}

impl Leaves for Snapshot {
    async fn taken_in(&mut self) -> Result<Option<i64>, StoreError> {
        let pos = sqlx::query_scalar!(
            r#"select coalesce(t.checkpoint_pos, c.pos) as "pos!" from checkpoint_cursor c left join tenant t on t.id = $1"#,
            self.tenant.0
        );
        Ok(pos.fetch_optional(&mut *self.transaction).await?)
    }

    async fn checkpoints(
        &mut self,
        tenant: &str,
        after: i64,
        limit: i64,
    ) -> Result<Vec<CheckpointRow>, StoreError> {
        let rows = sqlx::query!(
            r#"select number, size, root, previous_root, signed_at as "at: Time", key_id, signature, frontier
            from checkpoint where tenant_id = $1 and number > $2 order by number limit $3"#,
            self.tenant.0,
            after,
            limit
        )
        .fetch_all(&mut *self.transaction)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| CheckpointRow {
                checkpoint: Checkpoint {
                    tenant: tenant.to_owned(),
                    number: row.number.cast_unsigned(),
                    size: row.size.cast_unsigned(),
                    root: row.root,
                    previous_root: row.previous_root,
                    signed_at: row.at.0,
                    key_id: row.key_id,
                    signature: row.signature,
                },
                frontier: row.frontier,
            })
            .collect())
    }

    async fn last_checkpoint(&mut self, tenant: &str) -> Result<Option<CheckpointRow>, StoreError> {
        let last = sqlx::query_scalar!(
            "select number from checkpoint where tenant_id = $1 order by number desc limit 1",
            self.tenant.0
        )
        .fetch_optional(&mut *self.transaction)
        .await?;
        let Some(number) = last else { return Ok(None) };
        Ok(self.checkpoints(tenant, number - 1, 1).await?.pop())
    }

    async fn leaves_logged(&mut self) -> Result<u64, StoreError> {
        let last = sqlx::query!(
            r#"select leaf, leaves_in(digests) as "leaves!" from audit_leaf where tenant_id = $1 order by leaf desc limit 1"#,
            self.tenant.0
        )
        .fetch_optional(&mut *self.transaction)
        .await?;
        let end = last.map_or(0, |last| i128::from(last.leaf) + i128::from(last.leaves));
        Ok(u64::try_from(end).unwrap_or(0))
    }

    async fn leaves(&mut self, after: i64, limit: i64) -> Result<Vec<LeafRow>, StoreError> {
        let rows = sqlx::query_as!(
            Row,
            r#"select r.leaf as run_leaf, r.seq as run_seq, l.leaf as "leaf!", r.stream_kind, r.stream_id, l.seq as "seq!", l.digest as "digest!",
                e.hash as "hash?", e.xid::text::bigint as "xid?", e.pos as "pos?", e.traceparent
            from (select * from audit_leaf where tenant_id = $1 and leaf > $2 order by leaf limit $3) r
            cross join lateral leaves_of_run(r.leaf, r.seq, r.digests) l
            -- `offset 0`: by the index, however many leaves the planner expects.
            left join lateral (
                select e.hash, e.xid, e.pos, e.traceparent from audit_entry e
                where e.tenant_id = r.tenant_id and e.stream_kind = r.stream_kind and e.stream_id = r.stream_id
                    and e.seq = l.seq
                offset 0
            ) e on true
            order by r.leaf, l.leaf"#,
            self.tenant.0,
            after,
            limit
        )
        .fetch_all(&mut *self.transaction)
        .await?;
        let mut leaves: Vec<LeafRow> = rows.into_iter().map(LeafRow::from).collect();
        refused(self, &mut leaves).await?;
        Ok(leaves)
    }

    async fn leaves_of(
        &mut self,
        kind: &str,
        id: Uuid,
        after: i64,
        limit: i64,
    ) -> Result<Vec<LeafRow>, StoreError> {
        let rows = sqlx::query_as!(
            Row,
            r#"select r.leaf as run_leaf, r.seq as run_seq, l.leaf as "leaf!", r.stream_kind, r.stream_id, l.seq as "seq!", l.digest as "digest!",
                e.hash as "hash?", e.xid::text::bigint as "xid?", e.pos as "pos?", e.traceparent
            from (
                select * from audit_leaf where tenant_id = $1 and stream_kind = $2 and stream_id = $3 and seq > $4
                order by seq limit $5
            ) r
            cross join lateral leaves_of_run(r.leaf, r.seq, r.digests) l
            -- `offset 0`: by the index, however many leaves the planner expects.
            left join lateral (
                select e.hash, e.xid, e.pos, e.traceparent from audit_entry e
                where e.tenant_id = r.tenant_id and e.stream_kind = r.stream_kind and e.stream_id = r.stream_id
                    and e.seq = l.seq
                offset 0
            ) e on true
            order by r.seq, l.seq"#,
            self.tenant.0,
            kind,
            id,
            after,
            limit
        );
        let rows = rows.fetch_all(&mut *self.transaction).await?;
        Ok(rows.into_iter().map(LeafRow::from).collect())
    }

    async fn refused_after(
        &mut self,
        after: Option<Uuid>,
        limit: i64,
    ) -> Result<Vec<RefusedAttemptColumns>, StoreError> {
        let Some(first) = first_id(after) else {
            return Ok(Vec::new());
        };
        refused_from(&mut self.transaction, self.tenant, first, limit).await
    }

    async fn doubled(&mut self, limit: i64) -> Result<Vec<EntryOf>, StoreError> {
        let rows = sqlx::query!(
            r#"select r.stream_kind, r.stream_id, r.next as "next!" from (
                select stream_kind, stream_id, seq, digests, lead(seq) over (
                    partition by tenant_id, stream_kind, stream_id order by seq
                ) as next
                from audit_leaf where tenant_id = $1
            ) r
            where r.next < run_end(r.seq, r.digests) limit $2"#,
            self.tenant.0,
            limit
        )
        .fetch_all(&mut *self.transaction)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| EntryOf {
                kind: row.stream_kind,
                id: row.stream_id,
                seq: row.next.cast_unsigned(),
            })
            .collect())
    }

    async fn unlogged(
        &mut self,
        stream: Option<(&str, Uuid)>,
        limit: i64,
    ) -> Result<Vec<EntryOf>, StoreError> {
        let rows = sqlx::query!(
            r#"with taken as (
                select coalesce(t.checkpoint_pos, c.pos) as pos from checkpoint_cursor c left join tenant t on t.id = $1
            )
            select e.stream_kind as "kind!", e.stream_id as "id!", e.seq as "seq!" from audit_entry e
            where e.tenant_id = $1 and ($4::text is null or (e.stream_kind = $4 and e.stream_id = $5))
                and e.pos <= (select pos from taken) and not exists (
                select from (
                    select l.seq, l.digests from audit_leaf l
                    where l.tenant_id = e.tenant_id and l.stream_kind = e.stream_kind and l.stream_id = e.stream_id
                        and l.seq <= e.seq and l.seq >= 0 and l.leaf >= 0
                    order by l.seq desc limit 1
                ) r where e.seq < run_end(r.seq, r.digests) or e.seq = r.seq)
            union all
            select $2, r.id, 0 from refused_attempt r
            where r.tenant_id = $1 and $4::text is null and r.pos <= (select pos from taken) and not exists (
                select from audit_leaf l where l.tenant_id = r.tenant_id and l.stream_kind = $2
                    and l.stream_id = r.id and l.seq = 0 and l.leaf >= 0)
            limit $3"#,
            self.tenant.0,
            REFUSED,
            limit,
            stream.map(|(kind, _)| kind),
            stream.map(|(_, id)| id)
        )
        .fetch_all(&mut *self.transaction)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| EntryOf {
                kind: row.kind,
                id: row.id,
                seq: row.seq.cast_unsigned(),
            })
            .collect())
    }
}
