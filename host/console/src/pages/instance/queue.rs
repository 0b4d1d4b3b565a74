//! Work through a view of the inbox: the previous task, the next task, and the task after a decision.

use serde::Deserialize;
use uuid::Uuid;

use crate::api::with_query;
use crate::list::page_with_rows;
use crate::pages::inbox::query::InboxQuery;
use crate::session::Visitor;

/// How many tasks of the view are read. The visitor reaches the tasks behind them once earlier ones are done.
const ROWS: &str = "100";
/// How many pages are read. A page may have few rows although others follow.
const PAGES_MAX: usize = 3;

/// The place of an instance in the view.
pub(super) struct Queue {
    /// Its place among the instances of the view, from 1, with their number; empty if it is not among them.
    pub(super) place: String,
    pub(super) previous: Option<String>,
    pub(super) next: Option<String>,
    /// The inbox.
    pub(super) leave: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Task {
    instance_id: Uuid,
}

/// The address of an instance in a queue; of the instance alone if the query is empty.
pub(super) fn address(id: Uuid, query: &str, further: &[(&str, &str)]) -> String {
    let parameters = [("queue", query)].into_iter();
    let parameters: Vec<_> = parameters.chain(further.iter().copied()).collect();
    with_query(&format!("/console/instances/{id}"), &parameters)
}

/// The address of the inbox with this query. The query is parsed and written anew, because it may have any content.
pub(super) fn inbox(query: &str, further: &[(&str, &str)]) -> String {
    let parsed = InboxQuery::parse(query);
    parsed.address_with(parsed.view(), further)
}

/// The instances of a view in their order, each once, and whether there are more. It reads on until there is one besides `id`.
async fn instances(visitor: &Visitor, query: &str, id: Uuid) -> (Vec<Uuid>, bool) {
    let parsed = InboxQuery::parse(query);
    let path = |after: &str| {
        let further = [("fields", "instanceId"), ("limit", ROWS), ("after", after)];
        parsed.list(parsed.view(), &further, visitor.w.zone())
    };
    let mut ids: Vec<Uuid> = Vec::new();
    let mut after = Some(String::new());
    for _ in 0..PAGES_MAX {
        let Some(place) = after.take_if(|_| ids.iter().all(|one| *one == id)) else {
            break;
        };
        let Ok(tasks) = page_with_rows::<Task>(visitor, &place, &path).await else {
            break;
        };
        for task in tasks.data {
            if !ids.contains(&task.instance_id) {
                ids.push(task.instance_id);
            }
        }
        after = tasks.page.next;
    }
    (ids, after.is_some())
}

impl Queue {
    /// None if the visitor does not work through a view.
    pub(super) async fn of(visitor: &Visitor, query: &str, id: Uuid) -> Option<Queue> {
        if query.is_empty() {
            return None;
        }
        let (ids, is_more) = instances(visitor, query, id).await;
        let at = ids.iter().position(|one| *one == id);
        let to = |place: Option<usize>| {
            let id = *ids.get(place?)?;
            Some(address(id, query, &[]))
        };
        let more = if is_more { "+" } else { "" };
        Some(Queue {
            place: at.map_or_else(String::new, |at| {
                let (at, all) = (visitor.w.number(at + 1), visitor.w.number(ids.len()));
                format!("{at} / {all}{more}")
            }),
            previous: to(at.and_then(|at| at.checked_sub(1))),
            // From an instance that is not in the view, the next one is the view's first.
            next: to(at.map_or(Some(0), |at| Some(at + 1))),
            leave: inbox(query, &[]),
        })
    }
}

/// The instance that comes after this one. Read before the decision, because afterwards this instance has no place in the view.
pub(super) async fn following(visitor: &Visitor, query: &str, id: Uuid) -> Option<Uuid> {
    let (ids, _) = instances(visitor, query, id).await;
    let at = ids.iter().position(|one| *one == id);
    let next = at.and_then(|at| ids.get(at + 1));
    // After the last instance, the skipped ones come again.
    next.or_else(|| ids.iter().find(|one| **one != id)).copied()
}

#[cfg(test)]
mod tests {
    use axum::extract::RawQuery;
    use axum::routing::get;
    use axum::{Json, Router};
    use serde_json::{Value, json};

    use super::*;

    /// A view whose first page is short and whose second page is empty.
    async fn tasks(RawQuery(query): RawQuery) -> Json<Value> {
        let query = query.unwrap_or_default();
        let task = |id: u128| json!([{ "instanceId": Uuid::from_u128(id) }]);
        let (data, next) = if query.contains("after=p3") {
            (task(2), None)
        } else if query.contains("after=p2") {
            (json!([]), Some("p3"))
        } else {
            (task(1), Some("p2"))
        };
        Json(json!({ "data": data, "page": { "next": next } }))
    }

    #[tokio::test]
    async fn a_view_goes_on_behind_a_short_page() {
        let visitor = Visitor::of_routes(Router::new().route("/v1/tasks", get(tasks)));
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        assert_eq!(following(&visitor, "view=all", one).await, Some(other));
        assert_eq!(following(&visitor, "view=all", other).await, Some(one));
    }
}
