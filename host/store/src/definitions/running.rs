//! The running instances of each version of a definition.

use std::collections::BTreeMap;

use crate::{Reader, StoreError};
use wrkflw_core::ids::TenantId;

/// How many running instances of a definition are counted.
pub const COUNTED_MAX: i64 = 10_000;

/// Running and suspended instances by version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Running {
    pub by_version: BTreeMap<u32, i64>,
    /// There are more than [`COUNTED_MAX`]: the counts are too low.
    pub more: bool,
}

impl Reader {
    /// Counts the running and suspended instances of a definition.
    pub async fn running(&self, tenant: TenantId, key: &str) -> Result<Running, StoreError> {
        let rows = sqlx::query!(
            r#"select definition_version as version, count(*) as "count!" from (
                select definition_version from instance
                where tenant_id = $1 and definition_key = $2 and status in ('RUNNING', 'SUSPENDED') limit $3::bigint + 1
            ) as running group by definition_version"#,
            tenant.0,
            key,
            COUNTED_MAX
        )
        .fetch_all(&mut *self.reading(tenant).await?)
        .await?;
        let by_version: BTreeMap<_, _> = rows
            .into_iter()
            .map(|row| (row.version.cast_unsigned(), row.count))
            .collect();
        let more = by_version.values().sum::<i64>() > COUNTED_MAX;
        Ok(Running { by_version, more })
    }

    /// The active version of a definition; none if the definition does not exist, or has no active version.
    pub async fn active_version(
        &self,
        tenant: TenantId,
        key: &str,
    ) -> Result<Option<u32>, StoreError> {
        let version = sqlx::query_scalar!(
            "select active_version from definition where tenant_id = $1 and key = $2",
            tenant.0,
            key
        )
        .fetch_optional(&mut *self.reading(tenant).await?)
        .await?;
        Ok(version.flatten().map(i32::cast_unsigned))
    }
}
