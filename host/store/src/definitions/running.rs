//! The running instances of each version of a definition.

use std::collections::BTreeMap;

use crate::viewer::Viewer;
use crate::viewer::visible::{self, Order};
use crate::{Reader, StoreError};
use wrkflw_core::actor::Actor;
use wrkflw_core::ids::TenantId;

/// How many running instances of a definition are counted.
pub const COUNTED_MAX: i64 = 10_000;

/// Running and suspended instances by version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Running {
    pub by_version: BTreeMap<u32, i64>,
    /// There are more than were counted: the counts may be too low.
    pub more: bool,
}

/// Counts the running and suspended instances of a definition that the viewer sees.
pub async fn running(reader: &Reader, viewer: &Viewer, key: &str) -> Result<Running, StoreError> {
    if let Some(actor) = viewer.restricted() {
        return running_seen(reader, viewer, actor, key).await;
    }
    let rows = sqlx::query!(
        r#"select definition_version as version, count(*) as "count!" from (
            select definition_version from instance
            where tenant_id = $1 and definition_key = $2 and status in ('RUNNING', 'SUSPENDED') limit $3::bigint + 1
        ) as running group by definition_version"#,
        viewer.tenant.0,
        key,
        COUNTED_MAX
    )
    .fetch_all(&mut reader.reading(viewer).await?)
    .await?;
    let by_version: BTreeMap<_, _> = rows
        .into_iter()
        .map(|row| (row.version.cast_unsigned(), row.count))
        .collect();
    let more = by_version.values().sum::<i64>() > COUNTED_MAX;
    Ok(Running { by_version, more })
}

/// Examines at most [`COUNTED_MAX`] instances that the actor may see.
async fn running_seen(
    reader: &Reader,
    viewer: &Viewer,
    actor: &Actor,
    key: &str,
) -> Result<Running, StoreError> {
    let mut looking = reader.looking(viewer).await?;
    let order = Order {
        oldest_first: false,
        after: None,
        most: COUNTED_MAX + 1,
    };
    let (places, of) = (looking.places().await?, (viewer.tenant, actor));
    let seen = visible::instances(places, of, Some(key), order).await?;
    let rows = sqlx::query!(
        r#"select definition_version as version, count(*) as "count!" from instance
        where tenant_id = $1 and id = any($2) and definition_key = $3 and status in ('RUNNING', 'SUSPENDED')
        group by definition_version"#,
        viewer.tenant.0,
        &seen,
        key
    );
    let rows = rows.fetch_all(looking.seen().await?).await?;
    let by_version = rows
        .into_iter()
        .map(|row| (row.version.cast_unsigned(), row.count));
    Ok(Running {
        by_version: by_version.collect(),
        more: i64::try_from(seen.len()).is_ok_and(|seen| seen > COUNTED_MAX),
    })
}

/// The active version of a definition; none if the definition does not exist, or has no active version.
pub async fn active(
    reader: &Reader,
    tenant: TenantId,
    key: &str,
) -> Result<Option<u32>, StoreError> {
    let version = sqlx::query_scalar!(
        "select active_version from definition where tenant_id = $1 and key = $2",
        tenant.0,
        key
    )
    .fetch_optional(&mut reader.reading(tenant).await?)
    .await?;
    Ok(version.flatten().map(i32::cast_unsigned))
}
