//! The parts of several instances by which the host's rules judge commands on open tasks, in one query.

use sqlx::types::Uuid;

use super::Written;
use crate::viewer::Viewer;
use crate::{Reader, StoreError};
use wrkflw_core::ids::TenantId;
use wrkflw_core::instance::Instance;

/// Instances with the state instances of some open tasks, and those of separate states. They lack the parts that the host's
/// rules about tasks do not need: data, attributes, comments and inputs of decisions, buffered signals, other state instances.
#[derive(Debug)]
pub struct WrittenParts(Vec<Written>);

impl WrittenParts {
    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        self.0.iter().map(Written::bytes).sum()
    }

    /// Parses the instances.
    pub fn read(self) -> Result<Vec<Instance>, StoreError> {
        let read = |written: Written| written.read().map(|stored| stored.instance);
        self.0.into_iter().map(read).collect()
    }
}

/// The parts of these instances, without a check of visibility, with these state instances and with those of the `separate` states.
pub async fn parts(
    reader: &Reader,
    tenant: TenantId,
    instances: &[Uuid],
    state_instances: &[Uuid],
    separate: &[String],
) -> Result<WrittenParts, StoreError> {
    let rows = sqlx::query_file!(
        "src/load/parts.sql",
        tenant.0,
        state_instances,
        instances,
        separate
    )
    .fetch_all(&mut reader.reading(Viewer::all(tenant)).await?)
    .await?;
    let written = rows.into_iter().map(|row| Written {
        instance: row.instance,
        state_instances: row.state_instances,
        tasks: row.tasks,
        attributes: "[]".to_owned(),
    });
    Ok(WrittenParts(written.collect()))
}
