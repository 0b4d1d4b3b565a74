//! The filter of a reader of the feed.

use uuid::Uuid;

use super::cloudevent::{PublicEntry, suffix_of};
use super::event::is_blind;
use super::subscription::Patterns;

/// The parts of an event that a filter compares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFacts {
    /// The type below the operator's prefix. Empty for a damaged entry.
    suffix: String,
    definition_key: String,
    entity_type: String,
    entity_id: String,
    instance: Uuid,
    /// None where a blind decision is hidden.
    actor: Option<String>,
}

impl EventFacts {
    pub fn of(entry: &PublicEntry) -> EventFacts {
        let is_blind = is_blind(&entry.kind, &entry.payload);
        EventFacts {
            suffix: suffix_of(entry).unwrap_or_default(),
            definition_key: entry.definition.key.clone(),
            entity_type: entry.entity.kind.clone(),
            entity_id: entry.entity.id.clone(),
            instance: entry.instance.0,
            actor: entry.actor.clone().filter(|_| !is_blind),
        }
    }

    pub fn definition_key(&self) -> &str {
        &self.definition_key
    }
}

/// Conditions that all must hold. Without any, every event matches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventFilter {
    /// Types below the operator's prefix, or families such as `task.*`.
    pub types: Option<Patterns>,
    pub definition_key: Option<String>,
    pub entity_type: Option<String>,
    pub entity_id: Option<String>,
    pub instance: Option<Uuid>,
    pub actor: Option<String>,
}

impl EventFilter {
    /// Whether every event matches.
    pub fn is_open(&self) -> bool {
        *self == EventFilter::default()
    }

    /// Whether the event matches.
    pub fn matches(&self, event: &EventFacts) -> bool {
        let is = |wanted: &Option<String>, value: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == value)
        };
        is(&self.definition_key, &event.definition_key)
            && is(&self.entity_type, &event.entity_type)
            && is(&self.entity_id, &event.entity_id)
            && self
                .instance
                .is_none_or(|instance| instance == event.instance)
            && self
                .types
                .as_ref()
                .is_none_or(|types| types.matches(&event.suffix))
            && (self.actor.is_none() || self.actor == event.actor)
    }
}
