//! The actor of a command.

use serde::{Deserialize, Serialize};

/// A person or system, with its current groups and permissions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Actor {
    pub id: String,
    /// Read from the directory when the actor acts.
    pub groups: Vec<String>,
    /// `subject:action`, from the roles of the token.
    pub permissions: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub on_behalf_of: Option<String>,
    /// The absent people for whom the actor may act now.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub stands_in_for: Vec<StandIn>,
}

/// An absent person, and the chain of substitutes by which the actor may act for them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StandIn {
    pub person: String,
    /// The groups of the absent person.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Limits it to work of this definition; none for all work.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub definition: Option<String>,
    /// The substitutes between that person and the actor. They are absent, too.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub via: Vec<String>,
}

/// The actor id of the host itself; no person has it.
pub const HOST: &str = "wrkflw:host";

/// Whether the id is reserved for the host: no token may have it, and no work may be assigned to it.
pub fn is_reserved(id: &str) -> bool {
    id.starts_with("wrkflw:")
}

impl StandIn {
    /// Whether it is for work of this definition.
    pub fn is_for(&self, definition: &str) -> bool {
        self.definition
            .as_deref()
            .is_none_or(|only| only == definition)
    }
}

impl Actor {
    /// The host itself.
    pub fn host() -> Actor {
        Actor {
            id: HOST.to_owned(),
            groups: Vec::new(),
            permissions: Vec::new(),
            on_behalf_of: None,
            stands_in_for: Vec::new(),
        }
    }

    /// Whether the host itself acts.
    pub fn is_host(&self) -> bool {
        self.id == HOST
    }

    /// Whether a role of this actor grants `permission`.
    pub fn may(&self, permission: &str) -> bool {
        self.permissions.iter().any(|held| held == permission)
    }

    /// Whether the actor is a member of `group`.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|held| held == group)
    }

    /// The absent people for whom the actor may do work of this definition, the nearest first.
    pub fn absent<'a>(&'a self, definition: &'a str) -> impl Iterator<Item = &'a StandIn> {
        let others = self.stands_in_for.iter();
        let others = others.filter(|absent| absent.person != self.id);
        others.filter(move |absent| absent.is_for(definition))
    }
}
