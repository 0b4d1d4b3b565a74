//! Extends the Merkle trees. One host at a time adds entries as leaves in the order of their positions, and stores leaves and
//! checkpoint in one transaction.
//!
//! Transactions draw positions before they commit. A position is safe when all transactions that drew it or a smaller one
//! have ended. To find that out, a host reads the last position, then takes a transaction number, and waits until no
//! unfinished transaction has a smaller number. The position and the number are stored in the row whose lock makes a host
//! the signer, so any host can continue. After a restore, transaction numbers begin anew, and an older mark is discarded.
//!
//! A tenant is held back if its last checkpoint is not the one that was signed. Its own position stays, and the other tenants go on.

mod listed;
pub mod refused;

use sqlx::{Acquire as _, PgConnection, Postgres, Transaction};
use uuid::Uuid;

pub use self::listed::list;
use self::refused::refused_between;
use super::pool::transacted;
use super::purge::BEGIN;
use super::time::Time;
use super::{Store, StoreError};
use wrkflw_core::checkpoint::{Checkpoint, EntryColumns, REFUSED};
use wrkflw_core::ids::TenantId;
use wrkflw_core::merkle::Hash;

/// Positions that one commit adds.
pub const POSITIONS_MAX: i64 = 10_000;

/// Limit of the leaves of one row. PostgreSQL stores the digests of a row with more than 2000 bytes apart (TOAST).
const RUN_LEAVES_MAX: u64 = 60;

/// The instance id of events about a tenant as a whole.
pub const NOBODY: Uuid = Uuid::nil();
/// The outbox partition of this id.
const PARTITION: i16 = 0;

/// An entry that becomes a leaf.
#[derive(Debug, Clone)]
pub struct NewLeaf {
    pub tenant: TenantId,
    pub kind: String,
    pub id: Uuid,
    pub seq: u64,
    pub pos: i64,
    pub digest: Hash,
}

/// Consecutive leaves whose entries follow each other in one stream. They share a row.
struct Run<'a> {
    /// The place of its first leaf among the new ones.
    offset: u64,
    first: &'a NewLeaf,
    digests: Vec<u8>,
}

impl Run<'_> {
    /// The number of its leaves.
    fn len(&self) -> u64 {
        (self.digests.len() / size_of::<Hash>()) as u64
    }

    fn takes(&self, leaf: &NewLeaf) -> bool {
        // Numbers that no host would give may be anything.
        let next = self
            .first
            .seq
            .cast_signed()
            .checked_add_unsigned(self.len());
        self.len() < RUN_LEAVES_MAX
            && (&leaf.kind, leaf.id) == (&self.first.kind, self.first.id)
            && next == Some(leaf.seq.cast_signed())
    }
}

fn runs(leaves: &[NewLeaf]) -> Vec<Run<'_>> {
    let mut runs: Vec<Run<'_>> = Vec::new();
    for (offset, leaf) in (0..).zip(leaves) {
        match runs.last_mut() {
            Some(run) if run.takes(leaf) => run.digests.extend(leaf.digest),
            _ => runs.push(Run {
                offset,
                first: leaf,
                digests: leaf.digest.to_vec(),
            }),
        }
    }
    runs
}

/// A tenant's name, and its last checkpoint with the frontier of the tree.
#[derive(Debug, Clone)]
pub struct Last {
    pub name: String,
    pub checkpoint: Option<(Checkpoint, Vec<u8>)>,
    /// Whether leaves are stored behind it. A checkpoint is stored with its last leaf, so the checkpoint of these leaves is missing.
    pub has_leaves_behind: bool,
}

/// The exclusive right to sign, until it is dropped.
pub struct Signer {
    transaction: Transaction<'static, Postgres>,
    /// Entries up to this position are leaves.
    pub from: i64,
    /// Entries up to this position may become leaves now.
    pub to: i64,
    /// Whether more entries may become leaves right after these.
    pub is_cut: bool,
    mark: CursorMark,
}

/// A position, and a transaction number that was taken after it was drawn.
#[derive(Debug, Clone, Copy)]
struct CursorMark {
    pos: i64,
    xid: i64,
}

/// The result of [`turn_to_sign`].
pub enum Turn {
    /// There is nothing new to sign.
    Idle,
    /// Another host signs.
    Theirs,
    Ours(Signer),
}

/// Takes the right to sign, if there are new positions and no other host has this right.
pub async fn turn_to_sign(store: &Store) -> Result<Turn, StoreError> {
    transacted(Box::pin(async move {
        let new = sqlx::query_scalar!(
            r#"select (case when s.is_called then s.last_value else 0 end) > c.pos
            or exists (select from tenant where checkpoint_pos is not null) as "new!"
        from event_pos s, checkpoint_cursor c"#
        );
        if new.fetch_optional(&store.writer).await? != Some(true) {
            return Ok(Turn::Idle);
        }
        let mut transaction = store.writer.begin_with(BEGIN).await?;
        // The position is read before this transaction gets its number.
        let drawn = sqlx::query!(
            r#"with drawn as materialized (select case when is_called then last_value else 0 end as pos from event_pos)
        select pos as "pos!", pg_current_xact_id()::text::bigint as "xid!",
            pg_snapshot_xmin(pg_current_snapshot())::text::bigint as "oldest!"
        from drawn"#
        )
        .fetch_one(&mut *transaction)
        .await?;
        let cursor = sqlx::query!(
            "select pos, mark_pos, mark_xid from checkpoint_cursor for update skip locked"
        )
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(cursor) = cursor else {
            return Ok(Turn::Theirs);
        };
        let fresh = CursorMark {
            pos: drawn.pos,
            xid: drawn.xid,
        };
        let is_past = cursor.mark_xid <= drawn.oldest;
        let settled = if is_past { cursor.mark_pos } else { cursor.pos };
        let to = settled.min(cursor.pos + POSITIONS_MAX).max(cursor.pos);
        let is_cut = to < settled;
        let is_foreign = cursor.mark_xid > drawn.xid;
        let mark = if is_foreign || (is_past && !is_cut) {
            fresh
        } else {
            CursorMark {
                pos: cursor.mark_pos,
                xid: cursor.mark_xid,
            }
        };
        Ok(Turn::Ours(Signer {
            transaction,
            from: cursor.pos,
            to,
            is_cut,
            mark,
        }))
    }))
    .await
}

impl Signer {
    /// The held-back tenants, each with the position up to which its entries are leaves.
    pub async fn held(&mut self) -> Result<Vec<(TenantId, i64)>, StoreError> {
        transacted(Box::pin(async move {
            let rows = sqlx::query!(
                r#"select id, checkpoint_pos as "pos!" from tenant where checkpoint_pos is not null order by id"#
            );
            let rows = rows.fetch_all(&mut *self.transaction).await?;
            Ok(rows.into_iter().map(|row| (TenantId(row.id), row.pos)).collect())
        }))
        .await
    }

    /// Holds a tenant back at a position, or lets it go on with the others.
    pub async fn hold(&mut self, tenant: TenantId, pos: Option<i64>) -> Result<(), StoreError> {
        transacted(Box::pin(async move {
            sqlx::query!(
                "update tenant set checkpoint_pos = $2 where id = $1",
                tenant.0,
                pos
            )
            .execute(&mut *self.transaction)
            .await?;
            Ok(())
        }))
        .await
    }

    /// The entries and refused attempts behind the first position and up to the second, in order.
    pub async fn entries(&mut self, from: i64, to: i64) -> Result<Vec<NewLeaf>, StoreError> {
        transacted(Box::pin(async move {
            let rows = sqlx::query!(
                r#"select tenant_id, stream_kind, stream_id, seq, hash, xid::text::bigint as "xid!", pos, traceparent
            from audit_entry where pos + 0 > $1 and pos + 0 <= $2"#,
                from,
                to
            )
            .fetch_all(&mut *self.transaction)
            .await?;
            let mut leaves: Vec<NewLeaf> = rows
                .into_iter()
                .map(|row| NewLeaf {
                    tenant: TenantId(row.tenant_id),
                    kind: row.stream_kind,
                    id: row.stream_id,
                    seq: row.seq.cast_unsigned(),
                    pos: row.pos,
                    digest: EntryColumns {
                        hash: &row.hash,
                        xid: row.xid,
                        pos: row.pos,
                        traceparent: row.traceparent.as_deref(),
                    }
                    .digest(),
                })
                .collect();
            let refused = refused_between(&mut self.transaction, from, to).await?;
            leaves.extend(refused.into_iter().map(|attempt| NewLeaf {
                tenant: attempt.tenant,
                kind: REFUSED.to_owned(),
                id: attempt.id,
                seq: 0,
                pos: attempt.pos,
                digest: attempt.digest(),
            }));
            leaves.sort_unstable_by_key(|leaf| leaf.pos);
            Ok(leaves)
        }))
        .await
    }

    /// The end of a tenant's tree.
    pub async fn last(&mut self, tenant: TenantId) -> Result<Last, StoreError> {
        transacted(Box::pin(async move {
            let name = sqlx::query_scalar!("select name from tenant where id = $1", tenant.0)
                .fetch_one(&mut *self.transaction)
                .await?;
            let row = sqlx::query!(
                r#"select number, size, root, previous_root, signed_at as "at: Time", key_id, signature, frontier
            from checkpoint where tenant_id = $1 order by number desc limit 1"#,
                tenant.0
            )
            .fetch_optional(&mut *self.transaction)
            .await?;
            let size = row.as_ref().map_or(0, |row| row.size);
            let behind = sqlx::query_scalar!(
                r#"select exists (
                select from audit_leaf where tenant_id = $1 and leaf > $3 and (leaf >= $2 or run_end(leaf, digests) > $2)
            ) as "behind!""#,
                tenant.0,
                size,
                size.saturating_sub(RUN_LEAVES_MAX.cast_signed() + 1)
            );
            let has_leaves_behind = behind.fetch_one(&mut *self.transaction).await?;
            let checkpoint = row.map(|row| {
                let checkpoint = Checkpoint {
                    tenant: name.clone(),
                    number: row.number.cast_unsigned(),
                    size: row.size.cast_unsigned(),
                    root: row.root,
                    previous_root: row.previous_root,
                    signed_at: row.at.0,
                    key_id: row.key_id,
                    signature: row.signature,
                };
                (checkpoint, row.frontier)
            });
            Ok(Last {
                name,
                checkpoint,
                has_leaves_behind,
            })
        }))
        .await
    }

    /// Inserts a tenant's new leaves, from the number `first` on, with their checkpoint and its event. False, and nothing is inserted, if
    /// a leaf is there already.
    pub async fn keep(
        &mut self,
        tenant: TenantId,
        (first, leaves): (u64, &[NewLeaf]),
        (checkpoint, frontier): (&Checkpoint, &[u8]),
    ) -> Result<bool, StoreError> {
        transacted(Box::pin(async move {
            let mut savepoint = self.transaction.begin().await?;
            if !add_leaves(&mut savepoint, tenant, (first, leaves)).await? {
                savepoint.rollback().await?;
                return Ok(false);
            }
            sqlx::query!(
                "insert into checkpoint (
                tenant_id, number, size, root, previous_root, signed_at, key_id, signature, frontier
            ) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
                tenant.0,
                checkpoint.number.cast_signed(),
                checkpoint.size.cast_signed(),
                checkpoint.root,
                checkpoint.previous_root,
                Time(checkpoint.signed_at) as _,
                checkpoint.key_id,
                checkpoint.signature,
                frontier
            )
            .execute(&mut *savepoint)
            .await?;
            sqlx::query!(
                "insert into outbox_event (partition, pos, tenant_id, instance_id, seq) values ($1, nextval('event_pos'), $2, $3, $4)",
                PARTITION,
                tenant.0,
                NOBODY,
                checkpoint.number.cast_signed()
            )
            .execute(&mut *savepoint)
            .await?;
            savepoint.commit().await?;
            Ok(true)
        }))
        .await
    }

    /// Moves the cursor and commits everything.
    pub async fn commit(mut self) -> Result<(), StoreError> {
        transacted(Box::pin(async move {
            sqlx::query!(
                "update checkpoint_cursor set pos = $1, mark_pos = $2, mark_xid = $3 where one",
                self.to,
                self.mark.pos,
                self.mark.xid
            )
            .execute(&mut *self.transaction)
            .await?;
            self.transaction.commit().await?;
            Ok(())
        }))
        .await
    }
}

/// False if a leaf is there already. Some may have been inserted then.
async fn add_leaves(
    connection: &mut PgConnection,
    tenant: TenantId,
    (first, leaves): (u64, &[NewLeaf]),
) -> Result<bool, StoreError> {
    let runs = runs(leaves);
    let places: Vec<i64> = runs
        .iter()
        .map(|run| (first + run.offset).cast_signed())
        .collect();
    let kinds: Vec<&str> = runs.iter().map(|run| run.first.kind.as_str()).collect();
    let ids: Vec<Uuid> = runs.iter().map(|run| run.first.id).collect();
    let numbers: Vec<i64> = runs.iter().map(|run| run.first.seq.cast_signed()).collect();
    let digests: Vec<&[u8]> = runs.iter().map(|run| run.digests.as_slice()).collect();
    let inserted = sqlx::query!(
            "insert into audit_leaf (tenant_id, leaf, stream_kind, stream_id, seq, digests)
            select $1, n.* from unnest($2::bigint[], $3::text[], $4::uuid[], $5::bigint[], $6::bytea[]) n
            on conflict do nothing",
            tenant.0,
            &places,
            &kinds as _,
            &ids,
            &numbers,
            &digests as _
        )
        .execute(connection)
        .await?;
    Ok(inserted.rows_affected() == runs.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_entries_of_a_stream_share_a_row_up_to_a_limit() {
        let leaf = |kind: &str, id: u128, seq| NewLeaf {
            tenant: TenantId(1),
            kind: kind.to_owned(),
            id: Uuid::from_u128(id),
            seq,
            pos: 0,
            digest: [seq.to_le_bytes()[0]; 32],
        };
        let (one, two, other) = ("instance", "instance", "directory");
        let mut leaves = vec![
            leaf(one, 1, 4),
            leaf(one, 1, 5),
            leaf(two, 2, 6),
            leaf(other, 2, 7),
            leaf(other, 2, 9),
            leaf(other, 2, 9),
            leaf(other, 2, i64::MAX.cast_unsigned()),
            leaf(other, 2, i64::MIN.cast_unsigned()),
            leaf(other, 2, u64::MAX),
            leaf(other, 2, 0),
        ];
        leaves.extend(
            (10..)
                .take(usize::try_from(RUN_LEAVES_MAX).expect("small") + 1)
                .map(|seq| leaf(one, 3, seq)),
        );
        let found: Vec<_> = runs(&leaves)
            .iter()
            .map(|run| (run.offset, run.first.seq, run.len()))
            .collect();
        let expected = [
            (0, 4, 2),
            (2, 6, 1),
            (3, 7, 1),
            (4, 9, 1),
            (5, 9, 1),
            (6, i64::MAX.cast_unsigned(), 1),
            (7, i64::MIN.cast_unsigned(), 1),
            (8, u64::MAX, 2),
            (10, 10, RUN_LEAVES_MAX),
            (10 + RUN_LEAVES_MAX, 10 + RUN_LEAVES_MAX, 1),
        ];
        assert_eq!(found, expected);
        let digests = runs(&leaves)
            .iter()
            .flat_map(|run| run.digests.clone())
            .collect::<Vec<_>>();
        assert_eq!(
            digests,
            leaves
                .iter()
                .flat_map(|leaf| leaf.digest)
                .collect::<Vec<_>>()
        );
    }
}
