//! A published definition version, parsed once and shared by all commands.

use super::audit::sha256;
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
    pub config: Config,
    pub graph: Graph,
    /// The schema of an instance's data, enforced at every change.
    pub schema: Option<Schema>,
    /// The templates of titles and summaries.
    pub templates: Templates,
}

/// The settings of a version, with the digest of their text. The evidence of every command has this digest.
#[derive(Debug, Clone)]
pub struct Config {
    json: Json,
    digest: [u8; 32],
}

impl Config {
    pub fn json(&self) -> &Json {
        &self.json
    }

    /// SHA-256 of the text.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }
}

impl From<Json> for Config {
    fn from(json: Json) -> Config {
        Config {
            digest: sha256(json.as_str().as_bytes()),
            json,
        }
    }
}
