//! The page of an instance: a banner with the visitor's actions, the form of the chosen action, and the chosen tab.
//!
//! `banner` shows the actions, `act` has the forms and their effects, `timeline` the steps, `changes` the changes of the data, `record` the
//! events and audit entries, `deliveries` the deliveries of events, `diagram` the drawing, `related` the parent, children and restarts.
//! `queue` leads from one task of an inbox to the next, `draft` keeps an unfinished comment, `undo` links to the way back from a decision.

pub(super) mod act;
pub(super) mod banner;
mod changes;
pub(super) mod deliveries;
mod diagram;
mod draft;
mod queue;
mod record;
mod related;
pub(super) mod timeline;
mod undo;

use askama::Template;
use axum::Router;
use axum::extract::{Path, Query};
use axum::http::{StatusCode, header};
use axum::response::Response;
use axum::routing::{get, post};
use serde::Deserialize;
use uuid::Uuid;

use banner::Banner;
use queue::Queue;
use record::Record;
use related::{Related, related};
use timeline::Timeline;

use crate::Console;
use crate::api::Trouble;
use crate::data::{Actions, History, Instance, pretty};
use crate::drawing::Drawing;
use crate::form::Form;
use crate::language::Words;
use crate::list::Link;
use crate::session::{Answer, Halt, Visitor};
use crate::shell::{Shell, page};

/// The tabs, by their names in the address.
const TABS: [&str; 6] = ["timeline", "diagram", "data", "events", "audit", "related"];

pub(crate) fn routes() -> Router<Console> {
    Router::new()
        .route("/console/instances/{id}", get(show))
        .route("/console/instances/{id}/diagram.svg", get(drawing))
        .route("/console/instances/{id}/act", post(act::act))
        .route("/console/tasks/{id}/draft", post(draft::save))
}

/// The parameters in the address of an instance.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct InstancePageQuery {
    tab: String,
    /// The size of the diagram.
    zoom: String,
    /// The chosen action, with its task, outcome or trigger.
    pub(super) action: String,
    pub(super) task: String,
    pub(super) outcome: String,
    trigger: String,
    /// The action that was just done.
    done: String,
    /// The cursor after which a list goes on.
    after: String,
    /// `true` if the record of the instance shall be verified.
    verify: String,
    /// The query of the inbox whose tasks the visitor takes one after the other; empty if there is none.
    pub(super) queue: String,
}

struct Tab {
    address: String,
    name: String,
    is_current: bool,
}

#[derive(Template)]
#[template(path = "instance.html")]
struct Page {
    shell: Shell,
    banner: Banner,
    form: Option<Form>,
    done: Option<String>,
    /// Links to actions that undo the decision that was just made.
    undo: Vec<Link>,
    tabs: Vec<Tab>,
    tab: &'static str,
    timeline: Option<Timeline>,
    data: String,
    record: Option<Record>,
    verification: Option<record::VerificationResult>,
    /// The address of this page with the result of a verification.
    verify: String,
    related: Related,
    drawing: Option<Drawing>,
    /// The changes of the data, by step.
    changes: Option<changes::Changes>,
    queue: Option<Queue>,
    /// The address from which a script refreshes the page.
    again: String,
}

/// The instance as it is now, with the visitor's actions.
pub(super) struct LoadedInstance {
    pub(super) instance: Instance,
    pub(super) actions: Actions,
    /// The query of the inbox whose tasks the visitor takes one after the other; empty if there is none.
    queue: String,
}

pub(super) async fn load(visitor: &Visitor, id: Uuid, queue: &str) -> Result<LoadedInstance, Halt> {
    let instance = format!("/v1/instances/{id}");
    let actions = format!("/v1/instances/{id}/actions");
    let (instance, actions) = tokio::join!(
        visitor.api.get::<Instance>(&instance),
        visitor.api.get::<Actions>(&actions)
    );
    let halt = |trouble: Trouble| visitor.halt(&trouble);
    Ok(LoadedInstance {
        instance: instance.map_err(halt)?,
        actions: actions.map_err(halt)?,
        queue: queue.to_owned(),
    })
}

async fn show(
    Path(id): Path<Uuid>,
    Query(query): Query<InstancePageQuery>,
    visitor: Visitor,
) -> Answer {
    let loaded = load(&visitor, id, &query.queue).await?;
    let form = act::chosen_form(&visitor, &loaded, &query).await?;
    render(&visitor, loaded, &query, form, StatusCode::OK).await
}

/// The page, with a form if an action is chosen.
async fn render(
    visitor: &Visitor,
    loaded: LoadedInstance,
    query: &InstancePageQuery,
    form: Option<Form>,
    status: StatusCode,
) -> Answer {
    let (w, id) = (visitor.w, loaded.instance.id);
    let tab = TABS.into_iter().find(|tab| *tab == query.tab);
    let tab = tab.unwrap_or(TABS[0]);
    let mut undo = Vec::new();
    let timeline = if tab == "timeline" {
        let history = format!("/v1/instances/{id}/history");
        let history: History = visitor.get(&history).await?;
        if query.done == "task-decide" {
            undo = undo::of(visitor, &loaded, &history).await;
        }
        Some(Timeline::of(history, &loaded.instance, visitor).await)
    } else {
        None
    };
    let data = if tab == "data" {
        pretty(&loaded.instance.data)
    } else {
        String::new()
    };
    let drawing = match tab {
        "diagram" => Some(diagram::of(visitor, &loaded.instance, query).await?),
        _ => None,
    };
    let changes = match tab {
        "data" => Some(changes::of(visitor, &loaded.instance, query).await),
        _ => None,
    };
    let record = match tab {
        "events" => Some(Record::events(visitor, &loaded.instance, query).await),
        "audit" => Some(Record::audit(visitor, &loaded.instance, query).await),
        _ => None,
    };
    let verification = match (tab, query.verify.as_str()) {
        ("audit", "true") => Some(record::verify(visitor, id).await),
        _ => None,
    };
    let related = match tab {
        "related" => related(visitor, &loaded.instance).await,
        _ => Related::default(),
    };
    let tabs = TABS.into_iter().map(|name| Tab {
        address: queue::address(id, &query.queue, &[("tab", name)]),
        name: w.t(&format!("tab-{name}")).into_owned(),
        is_current: name == tab,
    });
    let banner = Banner::of(&loaded, visitor);
    let template = Page {
        queue: Queue::of(visitor, &query.queue, id).await,
        again: queue::address(id, &query.queue, &[("tab", tab)]),
        verify: queue::address(id, &query.queue, &[("tab", "audit"), ("verify", "true")]),
        shell: Shell::of(visitor, "inbox", banner.title.clone()).await,
        form,
        done: done_message(query, w),
        undo,
        tabs: tabs.collect(),
        tab,
        timeline,
        data,
        record,
        verification,
        related,
        drawing,
        changes,
        banner,
    };
    Ok(page(status, &template))
}

/// The message about the action that was just done.
fn done_message(query: &InstancePageQuery, w: Words) -> Option<String> {
    let message = match query.done.as_str() {
        "" => None,
        "queue" => Some(w.t("queue-done")),
        done => w.known(&format!("done-{done}")),
    };
    message.map(std::borrow::Cow::into_owned)
}

/// The drawing of the API, as a file.
async fn drawing(Path(id): Path<Uuid>, visitor: Visitor) -> Response {
    let path = format!("/v1/instances/{id}/diagram.svg");
    let mut response = visitor.api.raw(&path).await;
    response.headers_mut().remove(header::CONTENT_ENCODING);
    response
}
