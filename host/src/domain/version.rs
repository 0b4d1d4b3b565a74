//! A published definition version, as commands need it: parsed once, then shared.

use super::graph::Graph;
use super::ids::{Digest, VersionRef};
use super::json::Json;
use super::schema::Schema;

/// Immutable once published.
#[derive(Debug)]
pub struct Version {
    pub reference: VersionRef,
    pub component: Digest,
    pub config: Json,
    pub graph: Graph,
    /// What the instance's data satisfies at all times.
    pub schema: Option<Schema>,
}
