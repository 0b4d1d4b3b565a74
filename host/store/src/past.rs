//! The past of an instance: its audit entries in order, page by page.

use jiff::Timestamp;

use super::time::Time;
use super::{Reader, StoreError};
use wrkflw_core::ids::{InstanceId, TenantId};

/// The size of a page in entries, and approximately in bytes.
const PAGE: i64 = 500;
const PAGE_BYTES: i64 = 1 << 20;

/// The columns of an audit entry from which an instance is folded.
#[derive(Debug)]
pub struct PastEntry {
    pub seq: u64,
    pub revision: u32,
    pub actor: Option<String>,
    pub payload: String,
    pub at: Timestamp,
}

impl Reader {
    /// The next entries of the instance after `seq`; none if there are no more.
    pub async fn past_entries(
        &self,
        tenant: TenantId,
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
                    order by seq
                    limit $4
                ) e
            ) e
            where before < $5
            order by seq"#,
            tenant.0,
            id.0,
            seq.cast_signed(),
            PAGE,
            PAGE_BYTES
        )
        .fetch_all(&mut *self.reading(tenant).await?)
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
}
