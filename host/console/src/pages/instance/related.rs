//! The instances that an instance is related to: the one that it restarts, those that restarted it, its parent, and its children.

use serde::Deserialize;
use uuid::Uuid;

use super::record::List;
use crate::api::{segment, with_query};
use crate::data::Instance;
use crate::session::Visitor;

/// Children that are listed, and instances about an entity of one page.
const LINES: &str = "100";
/// Pages of instances about an entity that are searched for restarts.
const PAGES_MAX: usize = 5;

/// Another instance, and how it is related.
pub(super) struct Relative {
    pub(super) how: String,
    pub(super) id: Uuid,
    pub(super) title: String,
}

/// The related instances.
#[derive(Default)]
pub(super) struct Related {
    pub(super) instances: Vec<Relative>,
    /// Whether the search stopped before its end.
    pub(super) is_more: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Child {
    id: Uuid,
    title: Option<String>,
    entity_type: String,
    entity_id: String,
}

/// An instance about the same entity.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EntityInstance {
    id: Uuid,
    title: Option<String>,
    successor_ids: Vec<Uuid>,
}

/// The instances about the same entity, the oldest first, and whether there are more.
async fn of_entity(visitor: &Visitor, instance: &Instance) -> (Vec<EntityInstance>, bool) {
    let (kind, id) = (segment(&instance.entity_type), segment(&instance.entity_id));
    let path = format!("/v1/entities/{kind}/{id}/history");
    let (mut all, mut after) = (Vec::new(), Some(String::new()));
    for _ in 0..PAGES_MAX {
        let Some(from) = after.take() else { break };
        let path = with_query(&path, &[("limit", LINES), ("after", &from)]);
        let list = visitor.api.get::<List<EntityInstance>>(&path).await;
        let Ok(list) = list else { break };
        all.extend(list.data);
        after = list.page.next;
    }
    (all, after.is_some())
}

pub(super) async fn related(visitor: &Visitor, instance: &Instance) -> Related {
    let w = visitor.w;
    let untitled = |how: &str, id: Uuid| Relative {
        how: w.t(how).into_owned(),
        id,
        title: id.to_string(),
    };
    let (of_entity, is_more) = of_entity(visitor, instance).await;
    let titled = |how: &str, id: Uuid| {
        let listed = of_entity.iter().find(|one| one.id == id);
        let title = listed.and_then(|one| one.title.clone());
        Relative {
            title: title.unwrap_or_else(|| id.to_string()),
            ..untitled(how, id)
        }
    };
    let predecessor = instance.predecessor_id;
    let predecessor = predecessor.map(|id| titled("related-before", id));
    let listed = of_entity.iter().filter(|one| one.id == instance.id);
    let successors = listed.flat_map(|one| &one.successor_ids);
    let successors = successors.map(|id| titled("related-after", *id));
    let parent = instance.parent_id.map(|id| untitled("related-parent", id));
    let id = instance.id.to_string();
    let path = with_query("/v1/instances", &[("parentId", &id), ("limit", LINES)]);
    let (children, next) = match visitor.api.get::<List<Child>>(&path).await {
        Ok(children) => (children.data, children.page.next),
        Err(_) => Default::default(),
    };
    let children = children.into_iter().map(|child| Relative {
        how: w.t("related-child").into_owned(),
        id: child.id,
        title: child
            .title
            .unwrap_or_else(|| format!("{} {}", child.entity_type, child.entity_id)),
    });
    let restarts = predecessor.into_iter().chain(successors);
    Related {
        instances: restarts.chain(parent).chain(children).collect(),
        is_more: is_more || next.is_some(),
    }
}
