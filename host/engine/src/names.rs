//! Looks up the names of the directory and of services that a version uses.

use super::Engine;
use super::error::Error;
use wrkflw_core::graph::{Graph, NameUse};
use wrkflw_core::ids::TenantId;

impl Engine {
    /// The names that the graph uses and that neither the tenant nor this host has. They may be added later, so they do not keep a version from
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
        // Services are the operator's, not the tenant's.
        let (services, used): (Vec<_>, Vec<_>) = used
            .into_iter()
            .partition(|used| matches!(used, NameUse::Service(_)));
        let names: Vec<_> = used.iter().map(|used| (used.kind(), used.name())).collect();
        let unknown = self.0.store.unknown_names(tenant, &names).await?;
        let unknown = unknown.into_iter().map(|place| used[place].clone());
        let services = services.into_iter();
        let unserved = services.filter(|used| !self.0.services.knows(used.name()));
        Ok(unknown.chain(unserved).collect())
    }
}
