//! Looks up the names of the directory and of services that a version uses.

use serde_json::Value;

use super::error::Error;
use super::services::Services;
use wrkflw_core::graph::{Graph, NameUse};
use wrkflw_core::ids::TenantId;
use wrkflw_core::json::{Json, escaped};
use wrkflw_store::{Store, names};

/// A name that a version uses and that does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownName {
    pub used: NameUse,
    /// The first place of this name in the config, as a JSON Pointer. None if the name is in the flow itself.
    pub pointer: Option<String>,
}

impl UnknownName {
    /// Finds the names in the config.
    pub(super) fn in_config(unknown: Vec<NameUse>, config: &Json) -> Vec<UnknownName> {
        if unknown.is_empty() {
            return Vec::new();
        }
        let config = config.value();
        let found = unknown.into_iter().map(|used| UnknownName {
            pointer: pointer(&config, used.name()),
            used,
        });
        found.collect()
    }
}

/// The JSON Pointer to the first text that is this name.
fn pointer(value: &Value, name: &str) -> Option<String> {
    let below = |key: &str, value: &Value| {
        let found = pointer(value, name)?;
        let key = escaped(key);
        Some(format!("/{key}{found}"))
    };
    match value {
        Value::String(text) => (text == name).then(String::new),
        Value::Array(items) => {
            let mut items = items.iter().enumerate();
            items.find_map(|(index, item)| below(&index.to_string(), item))
        }
        Value::Object(members) => members.iter().find_map(|(key, value)| below(key, value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// The names that the graph uses and that neither the tenant nor this host has. They may be added later, so a version with unknown
/// names can be published.
pub(super) async fn unknown_names(
    store: &Store,
    services: &Services,
    tenant: TenantId,
    graph: &Graph,
) -> Result<Vec<NameUse>, Error> {
    let used = Vec::from_iter(graph.names_used());
    if used.is_empty() {
        return Ok(Vec::new());
    }
    // Services are the operator's, not the tenant's.
    let (service_names, used): (Vec<_>, Vec<_>) = used
        .into_iter()
        .partition(|used| matches!(used, NameUse::Service(_)));
    let names: Vec<_> = used.iter().map(|used| (used.kind(), used.name())).collect();
    let unknown = names::unknown(store, tenant, &names).await?;
    let unknown = unknown.into_iter().map(|place| used[place].clone());
    let unserved = service_names
        .into_iter()
        .filter(|used| !services.knows(used.name()));
    Ok(unknown.chain(unserved).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_where_the_config_has_it_first() {
        let config = Json::of(&serde_json::json!({
            "limit": 5, "sla": { "a/b": ["x", "office"] }, "then": "office", "office": "other",
        }));
        let office = NameUse::Calendar("office".to_owned());
        let nowhere = NameUse::Group("nowhere".to_owned());
        let found = UnknownName::in_config(vec![office, nowhere], &config);
        let pointers: Vec<_> = found.into_iter().map(|one| one.pointer).collect();
        assert_eq!(pointers, [Some("/sla/a~1b/1".to_owned()), None]);
    }
}
