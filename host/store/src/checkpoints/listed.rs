//! The checkpoints of a tenant, for auditors.

use crate::time::Time;
use crate::viewer::Viewer;
use crate::{Reader, StoreError};
use wrkflw_core::checkpoint::Checkpoint;
use wrkflw_core::ids::TenantId;

/// The checkpoints of a tenant before the number `before`, newest first.
pub async fn list(
    reader: &Reader,
    tenant: TenantId,
    before: Option<u32>,
    limit: i64,
) -> Result<Vec<Checkpoint>, StoreError> {
    let rows = sqlx::query!(
        r#"select n.name as tenant, c.number, c.size, c.root, c.previous_root, c.signed_at as "at: Time", c.key_id, c.signature
        from checkpoint c join tenant n on n.id = c.tenant_id
        where c.tenant_id = $1 and ($2::bigint is null or c.number < $2)
        order by c.number desc limit $3"#,
        tenant.0,
        before.map(i64::from),
        limit
    );
    let mut connection = reader.reading(Viewer::all(tenant)).await?;
    let rows = rows.fetch_all(&mut connection).await?;
    let checkpoints = rows.into_iter().map(|row| Checkpoint {
        tenant: row.tenant,
        number: row.number.cast_unsigned(),
        size: row.size.cast_unsigned(),
        root: row.root,
        previous_root: row.previous_root,
        signed_at: row.at.0,
        key_id: row.key_id,
        signature: row.signature,
    });
    Ok(checkpoints.collect())
}
