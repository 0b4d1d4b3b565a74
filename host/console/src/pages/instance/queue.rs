//! Working through a view of the inbox: the task before, the one after, and the one that comes after a decision.

use serde::Deserialize;
use uuid::Uuid;

use crate::api::with_query;
use crate::list::Paged;
use crate::pages::inbox::asked::Asked;
use crate::session::Visitor;

/// How many tasks of the view are read. Those behind them are reached when earlier ones are done.
const ROWS: &str = "100";

/// Where an instance stands in the view that is worked through.
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

/// The address of the inbox with this query. It is read and written anew: whoever wrote it may have written anything.
pub(super) fn inbox(query: &str, further: &[(&str, &str)]) -> String {
    let asked = Asked::parse(query);
    asked.address_with(asked.view(), further)
}

/// The instances of a view in their order, each once, and whether there are more.
async fn instances(visitor: &Visitor, query: &str) -> (Vec<Uuid>, bool) {
    let asked = Asked::parse(query);
    let further = [("fields", "instanceId"), ("limit", ROWS)];
    let path = asked.list(asked.view(), &further, visitor.w.zone());
    let Ok(tasks) = visitor.api.get::<Paged<Task>>(&path).await else {
        return (Vec::new(), false);
    };
    let mut ids: Vec<Uuid> = Vec::new();
    for task in tasks.data {
        if !ids.contains(&task.instance_id) {
            ids.push(task.instance_id);
        }
    }
    (ids, tasks.page.next.is_some())
}

impl Queue {
    /// None if no view is worked through.
    pub(super) async fn of(visitor: &Visitor, query: &str, id: Uuid) -> Option<Queue> {
        if query.is_empty() {
            return None;
        }
        let (ids, is_more) = instances(visitor, query).await;
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

/// The instance that comes after this one. Asked before the decision, for afterwards it has no place any more.
pub(super) async fn following(visitor: &Visitor, query: &str, id: Uuid) -> Option<Uuid> {
    let (ids, _) = instances(visitor, query).await;
    let at = ids.iter().position(|one| *one == id);
    let next = at.and_then(|at| ids.get(at + 1));
    // After the last one, those that were passed over come again.
    next.or_else(|| ids.iter().find(|one| **one != id)).copied()
}
