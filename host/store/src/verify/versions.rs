//! The definition versions that recorded evaluations ran on.

use super::Snapshot;
use crate::StoreError;
use wrkflw_audit::record::Versions;
use wrkflw_audit::record::rows::RecordedVersion;
use wrkflw_core::graph::Graph;
use wrkflw_core::ids::VersionRef;
use wrkflw_core::json::Json;

impl Versions for Snapshot {
    async fn versions(
        &mut self,
        after: (&str, u32),
        limit: i64,
    ) -> Result<Vec<RecordedVersion>, StoreError> {
        let rows = sqlx::query!(
            r#"select key, version, encode(digest, 'hex') as "component!", config, graph, wit from definition_version
            where tenant_id = $1 and (key, version) > ($2, $3) order by key, version limit $4"#,
            self.tenant.0,
            after.0,
            after.1.cast_signed(),
            limit
        )
        .fetch_all(&mut *self.transaction)
        .await?;
        rows.into_iter()
            .map(|row| {
                let reference = VersionRef {
                    key: row.key,
                    version: row.version.cast_unsigned(),
                };
                Ok(RecordedVersion {
                    graph: graph(&reference, &row.graph)?,
                    reference,
                    component: row.component,
                    config: Json::from_canonical(row.config),
                    wit: row.wit,
                })
            })
            .collect()
    }
}

pub(super) fn graph(reference: &VersionRef, text: &str) -> Result<Graph, StoreError> {
    serde_json::from_str(text).map_err(|error| {
        StoreError::inconsistent("definition_version", reference, error.to_string())
    })
}
