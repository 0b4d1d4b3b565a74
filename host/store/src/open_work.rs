//! The owners and candidates of the open work of instances.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use super::viewer::Viewer;
use super::{Reader, StoreError};
use wrkflw_core::instance::Candidate;

/// Limit of the open tasks that one query reads. Beyond it, the lists of people are incomplete.
const TASKS_MAX: i64 = 2_000;

/// The people of the open tasks of one instance, each once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenWork {
    pub owners: BTreeSet<String>,
    /// Those of tasks without an owner.
    pub candidates: BTreeSet<Candidate>,
}

/// The open work of these instances. Those without any are missing.
pub async fn find(
    reader: &Reader,
    viewer: &Viewer,
    instances: &[Uuid],
) -> Result<BTreeMap<Uuid, OpenWork>, StoreError> {
    let rows = sqlx::query!(
        "select t.instance_id, t.owner, t.candidates from unnest($2::uuid[]) as i (id)
        join task t on t.tenant_id = $1 and t.instance_id = i.id
        where t.status in ('PENDING', 'CLAIMED') limit $3",
        viewer.tenant.0,
        instances,
        TASKS_MAX
    )
    .fetch_all(&mut reader.reading(viewer).await?)
    .await?;
    let mut works: BTreeMap<Uuid, OpenWork> = BTreeMap::new();
    for row in rows {
        let work = works.entry(row.instance_id).or_default();
        if let Some(owner) = row.owner {
            work.owners.insert(owner);
        } else {
            let candidates = serde_json::from_str::<Vec<Candidate>>(&row.candidates);
            let damaged = |error| StoreError::inconsistent("task", row.instance_id, error);
            work.candidates.extend(candidates.map_err(damaged)?);
        }
    }
    Ok(works)
}
