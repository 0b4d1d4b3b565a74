//! Who acts.

use serde::{Deserialize, Serialize};

/// A person or system, with the standing it has at this moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Actor {
    pub id: String,
    /// Read from the directory at the moment of acting.
    pub groups: Vec<String>,
    /// `subject:action`, from the roles of the token.
    pub permissions: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub on_behalf_of: Option<String>,
}

impl Actor {
    /// Whether a role of this actor grants `permission`.
    pub fn may(&self, permission: &str) -> bool {
        self.permissions.iter().any(|held| held == permission)
    }

    /// Whether the actor is a member of `group`.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|held| held == group)
    }
}
