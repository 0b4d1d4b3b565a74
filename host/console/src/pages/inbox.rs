//! The inbox: the open tasks of a view, with filters, order, columns and search in the address.
//!
//! `query` parses the address, `saved` has the views that a person saved, `bulk` acts on many tasks.

mod bulk;
pub(crate) mod query;
mod saved;

use askama::Template;
use axum::Router;
use axum::extract::{Path, Query, RawQuery};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect};
use axum::routing::{get, post};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use query::{COLUMNS, InboxQuery, VIEWS};
use saved::{Keep, SavedView};

use crate::Console;
use crate::api::{Trouble, with_query};
use crate::language::Words;
use crate::list::Paged;
use crate::moment::Moment;
use crate::names::{Badge, Candidate, Names};
use crate::posted::Posted;
use crate::session::{Answer, Halt, Visitor, next_page};
use crate::shell::{Shell, page};

pub(crate) fn routes() -> Router<Console> {
    Router::new()
        .route("/console", get(show))
        .route("/console/news", get(news))
        .route("/console/views", post(saved::keep))
        .route("/console/bulk", post(bulk::bulk))
        .route("/console/tasks/{id}/claim", post(claim))
}

type TaskPage = Paged<Task>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Task {
    id: Uuid,
    label: String,
    owner: Option<String>,
    on_behalf_of: Option<String>,
    candidates: Vec<Candidate>,
    suspended: Option<Value>,
    created_at: Timestamp,
    priority: i16,
    priority_name: Option<String>,
    due_at: Option<Timestamp>,
    instance_id: Uuid,
    definition_key: String,
    definition_version: u32,
    entity_type: String,
    entity_id: String,
    initiator: String,
    instance_title: Option<String>,
    instance_summary: Option<String>,
    state_title: String,
    #[serde(default)]
    actions: Vec<Action>,
}

#[derive(Deserialize)]
struct Action {
    action: String,
    allowed: bool,
}

/// A task as a row shows it.
struct Row {
    id: Uuid,
    instance_id: Uuid,
    /// The address in which the tasks of this view are worked through.
    queue: String,
    flow: String,
    title: String,
    summary: String,
    entity: String,
    label: String,
    state: String,
    initiator: String,
    holder: String,
    /// Whether its owner is the reader. None without an owner.
    is_own: Option<bool>,
    badge: Option<Badge>,
    due: Option<Moment>,
    created: Moment,
    may_claim: bool,
    is_suspended: bool,
}

impl Inbox {
    /// Whether the rows have this column.
    fn has(&self, column: &str) -> bool {
        self.columns.contains(&column)
    }

    /// Every column with its name, and whether the rows have it.
    fn choices(&self) -> Vec<(&'static str, String, bool)> {
        let choice = |one| {
            let name = self.shell.w.t(&format!("inbox-column-{one}"));
            (one, name.into_owned(), self.has(one))
        };
        COLUMNS.into_iter().map(choice).collect()
    }
}

impl Row {
    /// `inbox` is the query of the inbox.
    fn of(task: Task, inbox: &str, names: &Names, visitor: &Visitor) -> Row {
        let w = visitor.w;
        let (owner, other) = (task.owner.as_deref(), task.on_behalf_of.as_deref());
        let holder = names.holder(owner, other, &task.candidates, w);
        let entity = format!("{} {}", task.entity_type, task.entity_id);
        Row {
            title: task.instance_title.unwrap_or_else(|| entity.clone()),
            summary: task.instance_summary.unwrap_or_default(),
            entity,
            queue: with_query(
                &format!("/console/instances/{}", task.instance_id),
                &[("queue", inbox)],
            ),
            flow: format!("{} {}", task.definition_key, task.definition_version),
            initiator: names.person(&task.initiator),
            is_own: task.owner.as_deref().map(|owner| owner == visitor.id()),
            badge: Badge::of(task.priority, task.priority_name.as_deref(), w),
            due: task.due_at.map(|at| Moment::of(at, w)),
            created: Moment::of(task.created_at, w),
            may_claim: task
                .actions
                .iter()
                .any(|one| one.action == "claim" && one.allowed),
            is_suspended: task.suspended.is_some(),
            label: if task.label == task.state_title {
                String::new()
            } else {
                task.label
            },
            state: task.state_title,
            id: task.id,
            instance_id: task.instance_id,
            holder,
        }
    }
}

/// A tab of the views.
struct Tab {
    address: String,
    name: String,
    is_current: bool,
}

#[derive(Template)]
#[template(path = "inbox.html")]
struct Inbox {
    shell: Shell,
    query: InboxQuery,
    view: &'static str,
    columns: Vec<&'static str>,
    tabs: Vec<Tab>,
    keep: Keep,
    rows: Vec<Row>,
    count: String,
    first: Option<String>,
    next: Option<String>,
    /// Why there is no row.
    why_empty: String,
    /// The address at which a script asks for the number of new tasks.
    news: String,
}

/// The number of tasks that have come since a page was shown, with a link to them.
#[derive(Template)]
#[template(path = "news.html")]
struct NewsPart {
    text: String,
    address: String,
}

/// The page of the inbox that this address names.
async fn listed(visitor: &Visitor, query: &InboxQuery, view: &str) -> Result<TaskPage, Halt> {
    let path = |after: &str| query.page(view, after, visitor.w.zone());
    visitor.page_with_rows(&query.after, path).await
}

async fn show(RawQuery(text): RawQuery, visitor: Visitor) -> Answer {
    let text = text.unwrap_or_default();
    let saved = saved::all(&visitor).await;
    let default = saved.iter().find(|view| view.default);
    if let (true, Some(default)) = (text.is_empty(), default) {
        let query = default.inbox();
        let found = listed(&visitor, &query, query.view()).await;
        // A default view that the API no longer takes must not block the inbox.
        if let Ok(found) = found {
            return render(&visitor, query, found, saved, None).await;
        }
    }
    let mut query = InboxQuery::parse(&text);
    let mut found = listed(&visitor, &query, query.view()).await?;
    let holds_nothing = found.data.is_empty() && found.page.next.is_none();
    // A visitor without tasks of their own sees at once the tasks that they may claim.
    if query.named_view().is_none() && holds_nothing && !query.is_filtered() {
        "available".clone_into(&mut query.view);
        found = listed(&visitor, &query, "available").await?;
    }
    render(&visitor, query, found, saved, None).await
}

/// The inbox with a view that could not be saved: the typed name, and the reason.
async fn refused(visitor: &Visitor, query: InboxQuery, name: &str, trouble: &Trouble) -> Answer {
    let saved = saved::all(visitor).await;
    let found = listed(visitor, &query, query.view()).await?;
    let refusal = (name, trouble);
    render(visitor, query, found, saved, Some(refusal)).await
}

async fn render(
    visitor: &Visitor,
    query: InboxQuery,
    found: TaskPage,
    saved: Vec<SavedView>,
    refusal: Option<(&str, &Trouble)>,
) -> Answer {
    let (w, view) = (visitor.w, query.view());
    let names = Names {
        people: found.people,
        groups: found.groups,
    };
    let inbox = query.query_string(view);
    let rows = found.data.into_iter();
    let rows = rows.map(|task| Row::of(task, &inbox, &names, visitor));
    let rows: Vec<_> = rows.collect();
    // The page itself shows the number of its tasks. To count the tasks beyond it would cost more than the page.
    let count = match (query.after.is_empty(), found.page.next.is_some()) {
        (true, false) => w.n("inbox-count", rows.len()),
        (true, true) if rows.is_empty() => String::new(),
        (true, true) => w.n("inbox-count-more", rows.len()),
        (false, _) => String::new(),
    };
    let current = saved.iter().find(|one| {
        let own = one.inbox();
        own.query_string(own.view()) == inbox
    });
    let current = current.cloned();
    let why_empty = if found.page.next.is_some() {
        w.t("searched-in-part")
    } else if query.is_filtered() {
        w.t("inbox-empty-filtered")
    } else {
        w.t(&format!("inbox-empty-{view}"))
    };
    let status = refusal.map_or(StatusCode::OK, |(_, trouble)| trouble.status());
    let (name, refusal) = match refusal {
        Some((name, trouble)) => (name.to_owned(), trouble.detail.clone()),
        None => (String::new(), String::new()),
    };
    let template = Inbox {
        news: news_address(&query, &rows),
        shell: Shell::of(visitor, "inbox", w.t("inbox").into_owned()).await,
        tabs: tabs(&query, &saved, current.as_ref(), w),
        first: (!query.after.is_empty()).then(|| query.address(view, "")),
        next: found.page.next.map(|next| query.address(view, &next)),
        why_empty: why_empty.into_owned(),
        keep: Keep {
            name: if refusal.is_empty() {
                current.as_ref().map_or(name, |view| view.name.clone())
            } else {
                name
            },
            refusal,
            current,
        },
        columns: query.columns(),
        query,
        view,
        rows,
        count,
    };
    Ok(page(status, &template))
}

/// The views of everybody, then those that the visitor saved.
fn tabs(
    query: &InboxQuery,
    saved: &[SavedView],
    current: Option<&SavedView>,
    w: Words,
) -> Vec<Tab> {
    let tab = |one: &'static str| Tab {
        address: query.address(one, ""),
        name: w.t(&format!("inbox-view-{one}")).into_owned(),
        is_current: one == query.view() && current.is_none(),
    };
    let own = saved.iter().map(|one| Tab {
        address: one.address(),
        name: one.name.clone(),
        is_current: current.is_some_and(|current| current.id == one.id),
    });
    VIEWS.into_iter().map(tab).chain(own).collect()
}

/// The address at which a script asks for the number of tasks that have come since these rows were shown.
fn news_address(query: &InboxQuery, rows: &[Row]) -> String {
    let known: Vec<_> = rows.iter().map(|row| row.id.to_string()).collect();
    let known = [("known", known.join(","))];
    let parameters = query.parameters(query.view(), &query.after).into_iter();
    let parameters: Vec<_> = parameters.chain(known).collect();
    let parameters: Vec<_> = parameters
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    with_query("/console/news", &parameters)
}

/// The parameter of the address for news besides those of the inbox.
#[derive(Deserialize)]
struct NewsQuery {
    /// The ids of the tasks that the page shows already, with commas between them.
    #[serde(default)]
    known: String,
}

/// The number of tasks that the same page would show now and did not show before.
async fn news(
    RawQuery(text): RawQuery,
    Query(NewsQuery { known }): Query<NewsQuery>,
    visitor: Visitor,
) -> Answer {
    let query = InboxQuery::parse(text.as_deref().unwrap_or_default());
    let view = query.view();
    let found = listed(&visitor, &query, view).await?;
    let is_known = |task: &&Task| known.split(',').any(|id| id == task.id.to_string());
    let new = found.data.iter().filter(|task| !is_known(task)).count();
    if new == 0 {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let template = NewsPart {
        text: visitor
            .w
            .n("inbox-news", i64::try_from(new).unwrap_or(i64::MAX)),
        address: query.address(view, &query.after),
    };
    Ok(page(StatusCode::OK, &template))
}

/// Claims a task, and redirects to its instance.
async fn claim(Path(id): Path<Uuid>, Posted { visitor, fields }: Posted) -> Answer {
    let path = format!("/v1/tasks/{id}/claim");
    let _: Value = visitor.post(&path, &json!({}), None).await?;
    Ok(Redirect::to(next_page(fields.get("next"))).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_page_without_rows_says_that_others_may_follow_and_leads_there() {
        let empty = || async { axum::Json(json!({ "data": [], "page": { "next": "p2" } })) };
        let visitor = Visitor::of_routes(Router::new().route("/v1/tasks", get(empty)));
        let query = "view=all&q=plan".to_owned();
        let answer = show(RawQuery(Some(query)), visitor).await;
        let answer = answer.unwrap_or_else(Halt::into_response);
        assert_eq!(answer.status(), StatusCode::OK);
        let bytes = axum::body::to_bytes(answer.into_body(), usize::MAX).await;
        let page = String::from_utf8(bytes.expect("a page").into()).expect("a text");
        assert!(page.contains("after=p2"), "{page}");
        assert!(page.contains("not everything was searched"), "{page}");
        assert!(!page.contains("More than"), "{page}");
    }
}
