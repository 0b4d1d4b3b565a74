//! A published definition version, parsed once and shared by all commands.

use super::graph::Graph;
use super::ids::{Digest, VersionRef};
use super::json::Json;
use super::schema::Schema;
use super::template::Templates;

/// Immutable once published.
#[derive(Debug)]
pub struct Version {
    pub reference: VersionRef,
    pub component: Digest,
    pub config: Json,
    pub graph: Graph,
    /// The schema of an instance's data, enforced at every change.
    pub schema: Option<Schema>,
    /// The templates of titles and summaries.
    pub templates: Templates,
}
