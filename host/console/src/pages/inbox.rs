//! The inbox: the open tasks of a view, with filters, order and search in the address.

use std::collections::BTreeMap;

use askama::Template;
use axum::Router;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect};
use axum::routing::{get, post};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::api::with_query;
use crate::moment::Moment;
use crate::names::{Badge, Candidate, Names};
use crate::posted::Posted;
use crate::session::{Answer, Visitor, next_page};
use crate::shell::{Shell, page};
use crate::{Console, ROOT};

/// The views, by their names in the API and in the address.
const VIEWS: [&str; 4] = ["mine", "available", "groups", "all"];
const PAGE_ROWS: &str = "25";

pub(crate) fn routes() -> Router<Console> {
    Router::new()
        .route("/console", get(show))
        .route("/console/news", get(news))
        .route("/console/tasks/{id}/claim", post(claim))
}

/// What the address of an inbox says. Empty values count as missing: forms send them.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Asked {
    view: String,
    q: String,
    definition_key: String,
    state: String,
    min_priority: String,
    due_before: String,
    sort: String,
    after: String,
}

impl Asked {
    /// The parameters but the view and the page.
    fn filter(&self) -> [(&'static str, &str); 6] {
        [
            ("q", &self.q),
            ("definitionKey", &self.definition_key),
            ("state", &self.state),
            ("minPriority", &self.min_priority),
            ("dueBefore", &self.due_before),
            ("sort", &self.sort),
        ]
    }

    /// Whether it has more than words.
    fn has_more(&self) -> bool {
        let mut filter = self.filter().into_iter();
        filter.any(|(name, value)| name != "q" && !value.is_empty())
    }

    fn is_filtered(&self) -> bool {
        self.filter()
            .iter()
            .any(|(name, value)| *name != "sort" && !value.is_empty())
    }

    /// The parameters of a page of this inbox.
    fn parameters(&self, view: &str, after: &str) -> Vec<(&'static str, String)> {
        let filter = self.filter().into_iter();
        let parameters = [("view", view)].into_iter().chain(filter);
        let parameters = parameters.chain([("after", after)]);
        parameters
            .map(|(name, value)| (name, value.to_owned()))
            .collect()
    }

    /// The address of a page of this inbox.
    fn address(&self, view: &str, after: &str) -> String {
        let parameters = self.parameters(view, after);
        let parameters: Vec<_> = parameters
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        with_query(ROOT, &parameters)
    }

    /// The path of the list in the API.
    fn list(&self, view: &str) -> String {
        // A date field gives a day; the API takes moments.
        let due = match self.due_before.as_str() {
            "" => String::new(),
            day => format!("{day}T00:00:00Z"),
        };
        let filter = self.filter().into_iter().map(|(name, value)| match name {
            "dueBefore" => (name, due.as_str()),
            _ => (name, value),
        });
        let fixed = [
            ("view", view),
            ("include", "actions,people"),
            ("limit", PAGE_ROWS),
            ("after", &self.after),
        ];
        let parameters: Vec<_> = fixed.into_iter().chain(filter).collect();
        with_query("/v1/tasks", &parameters)
    }
}

#[derive(Deserialize)]
struct TaskPage {
    data: Vec<Task>,
    page: Next,
    #[serde(default)]
    people: BTreeMap<String, String>,
    #[serde(default)]
    groups: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Next {
    next: Option<String>,
}

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
    title: String,
    summary: String,
    entity: String,
    label: String,
    state: String,
    initiator: String,
    holder: String,
    is_mine: bool,
    badge: Option<Badge>,
    due: Option<Moment>,
    created: Moment,
    may_claim: bool,
    is_suspended: bool,
}

impl Row {
    fn of(task: Task, names: &Names, visitor: &Visitor) -> Row {
        let w = visitor.w;
        let (owner, other) = (task.owner.as_deref(), task.on_behalf_of.as_deref());
        let holder = names.holder(owner, other, &task.candidates, w);
        let entity = format!("{} {}", task.entity_type, task.entity_id);
        Row {
            title: task.instance_title.unwrap_or_else(|| entity.clone()),
            summary: task.instance_summary.unwrap_or_default(),
            entity,
            initiator: names.person(&task.initiator),
            is_mine: task.owner.as_deref() == Some(visitor.id()),
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

    fn has_owner(&self) -> bool {
        self.is_mine || !self.may_claim
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
    asked: Asked,
    view: &'static str,
    tabs: Vec<Tab>,
    rows: Vec<Row>,
    count: String,
    first: Option<String>,
    next: Option<String>,
    /// Why there is no row.
    why_empty: String,
    /// Where a script asks how many tasks have come since.
    news: String,
}

/// How many tasks have come since a page was shown, with the way to them.
#[derive(Template)]
#[template(path = "news.html")]
struct NewsPart {
    text: String,
    address: String,
}

async fn show(Query(asked): Query<Asked>, visitor: Visitor) -> Answer {
    let chosen = VIEWS.into_iter().find(|view| *view == asked.view);
    let mut view = chosen.unwrap_or(VIEWS[0]);
    let mut found: TaskPage = visitor.get(&asked.list(view)).await?;
    // Somebody who holds nothing sees at once what they may take.
    if chosen.is_none() && found.data.is_empty() && !asked.is_filtered() {
        view = "available";
        found = visitor.get(&asked.list(view)).await?;
    }
    let w = visitor.w;
    let names = Names {
        people: found.people,
        groups: found.groups,
    };
    let rows = found.data.into_iter();
    let rows: Vec<_> = rows.map(|task| Row::of(task, &names, &visitor)).collect();
    // The page itself tells how many there are; counting beyond it would cost more than the page.
    let count = match (asked.after.is_empty(), found.page.next.is_some()) {
        (true, false) => w.n("inbox-count", rows.len()),
        (true, true) => w.n("inbox-count-more", rows.len()),
        (false, _) => String::new(),
    };
    let tab = |one: &'static str| Tab {
        address: asked.address(one, ""),
        name: w.t(&format!("inbox-view-{one}")).into_owned(),
        is_current: one == view,
    };
    let why_empty = if asked.is_filtered() {
        w.t("inbox-empty-filtered")
    } else {
        w.t(&format!("inbox-empty-{view}"))
    };
    let known: Vec<_> = rows.iter().map(|row| row.id.to_string()).collect();
    let news = asked.parameters(view, &asked.after);
    let news = news.into_iter().chain([("known", known.join(","))]);
    let news: Vec<_> = news.collect();
    let news: Vec<_> = news
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let template = Inbox {
        news: with_query("/console/news", &news),
        shell: Shell::of(&visitor, "inbox", w.t("inbox").into_owned()).await,
        tabs: VIEWS.into_iter().map(tab).collect(),
        first: (!asked.after.is_empty()).then(|| asked.address(view, "")),
        next: found
            .page
            .next
            .filter(|_| !rows.is_empty())
            .map(|next| asked.address(view, &next)),
        why_empty: why_empty.into_owned(),
        asked,
        view,
        rows,
        count,
    };
    Ok(page(StatusCode::OK, &template))
}

/// What a page of the inbox shows already.
#[derive(Deserialize)]
struct Known {
    #[serde(default)]
    known: String,
}

/// The number of tasks that the same page would show now and did not show before.
async fn news(
    Query(asked): Query<Asked>,
    Query(Known { known }): Query<Known>,
    visitor: Visitor,
) -> Answer {
    let view = VIEWS.into_iter().find(|view| *view == asked.view);
    let view = view.unwrap_or(VIEWS[0]);
    let found: TaskPage = visitor.get(&asked.list(view)).await?;
    let is_known = |task: &&Task| known.split(',').any(|id| id == task.id.to_string());
    let new = found.data.iter().filter(|task| !is_known(task)).count();
    if new == 0 {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let template = NewsPart {
        text: visitor
            .w
            .n("inbox-news", i64::try_from(new).unwrap_or(i64::MAX)),
        address: asked.address(view, &asked.after),
    };
    Ok(page(StatusCode::OK, &template))
}

/// Claims a task, and leads to its instance.
async fn claim(Path(id): Path<Uuid>, Posted { visitor, fields }: Posted) -> Answer {
    let path = format!("/v1/tasks/{id}/claim");
    let _: Value = visitor.post(&path, &json!({}), None).await?;
    Ok(Redirect::to(next_page(fields.get("next"))).into_response())
}
