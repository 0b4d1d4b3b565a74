//! The diagram of an instance. An entered state links to its step, any other state to its description on the page of the version.

use super::{InstancePageQuery, queue};
use crate::data::{History, Instance};
use crate::drawing::Drawing;
use crate::pages::definitions;
use crate::session::{Halt, Visitor};

/// The permission for the page of a version.
const VERSION: &str = "definition:read";

pub(super) async fn of(
    visitor: &Visitor,
    instance: &Instance,
    query: &InstancePageQuery,
) -> Result<Drawing, Halt> {
    let id = instance.id;
    let history: History = visitor.get(&format!("/v1/instances/{id}/history")).await?;
    let reads_versions = visitor.may(VERSION).await?;
    let way = |name: &str| {
        let mut entered = history.data.iter().rev();
        if let Some(last) = entered.find(|state| state.name == name) {
            let step = queue::address(id, &query.queue, &[("tab", "timeline")]);
            return Some(format!("{step}#step-{}", last.id));
        }
        let (key, version) = (&instance.definition_key, instance.definition_version);
        reads_versions.then(|| definitions::state(key, version, name))
    };
    let page = |size: &str| {
        let parameters = [("tab", "diagram"), ("zoom", size)];
        queue::address(id, &query.queue, &parameters)
    };
    let path = format!("/v1/instances/{id}/diagram.svg");
    let file = format!("/console/instances/{id}/diagram.svg");
    Ok(Drawing::of(visitor, &path, file, &query.zoom, page, way).await)
}
