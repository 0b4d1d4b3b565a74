//! Looks up the names of the directory that a version uses.

use super::Engine;
use super::error::Error;
use wrkflw_core::graph::{Graph, NameUse};
use wrkflw_core::ids::TenantId;

impl Engine {
    /// The names that the graph uses and the tenant does not have. They may be added later, so they do not keep a version from
    /// being published.
    pub(super) async fn unknown_names(
        &self,
        tenant: TenantId,
        graph: &Graph,
    ) -> Result<Vec<NameUse>, Error> {
        let used = Vec::from_iter(graph.names_used());
        if used.is_empty() {
            return Ok(Vec::new());
        }
        let names: Vec<_> = used.iter().map(|used| (used.kind(), used.name())).collect();
        let unknown = self.0.store.unknown_names(tenant, &names).await?;
        Ok(unknown
            .into_iter()
            .map(|place| used[place].clone())
            .collect())
    }
}
