//! The page of an instance: a banner with what one may do, the form of the chosen action, and a tab.
//!
//! `banner` says what may be done, `act` has the forms and their effects, `timeline` the steps, `record` what was
//! recorded, `diagram` the states of the drawing.

mod act;
mod banner;
mod diagram;
mod record;
mod timeline;

use askama::Template;
use axum::Router;
use axum::extract::{Path, Query};
use axum::http::{StatusCode, header};
use axum::response::Response;
use axum::routing::{get, post};
use serde::Deserialize;
use uuid::Uuid;

use banner::Banner;
use record::{Record, Relative};
use timeline::Timeline;

use crate::Console;
use crate::api::Trouble;
use crate::data::{Actions, History, Instance};
use crate::form::Form;
use crate::list::Table;
use crate::session::{Answer, Halt, Visitor};
use crate::shell::{Shell, page};

/// The tabs, by their names in the address.
const TABS: [&str; 6] = ["timeline", "diagram", "data", "events", "audit", "related"];

pub(crate) fn routes() -> Router<Console> {
    Router::new()
        .route("/console/instances/{id}", get(show))
        .route("/console/instances/{id}/diagram.svg", get(drawing))
        .route("/console/instances/{id}/act", post(act::act))
}

/// What the address of an instance says.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Asked {
    tab: String,
    /// The chosen action, with its task, outcome or trigger.
    action: String,
    task: String,
    outcome: String,
    trigger: String,
    /// What was just done.
    done: String,
    /// The position after which a list goes on.
    after: String,
    /// Whether the instance is verified.
    verify: String,
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
    tabs: Vec<Tab>,
    tab: &'static str,
    timeline: Option<Timeline>,
    data: String,
    record: Option<Record>,
    verdict: Option<record::Verdict>,
    relatives: Vec<Relative>,
    /// The states of the diagram that lead to their steps.
    areas: Vec<diagram::Area>,
    /// What changed of the data, by step.
    changes: Option<Table>,
}

/// An instance as it is now, with what the visitor may do.
struct Read {
    instance: Instance,
    actions: Actions,
}

async fn read(visitor: &Visitor, id: Uuid) -> Result<Read, Halt> {
    let instance = format!("/v1/instances/{id}");
    let actions = format!("/v1/instances/{id}/actions");
    let (instance, actions) = tokio::join!(
        visitor.api.get::<Instance>(&instance),
        visitor.api.get::<Actions>(&actions)
    );
    let halt = |trouble: Trouble| visitor.halt(&trouble);
    Ok(Read {
        instance: instance.map_err(halt)?,
        actions: actions.map_err(halt)?,
    })
}

async fn show(Path(id): Path<Uuid>, Query(asked): Query<Asked>, visitor: Visitor) -> Answer {
    let read = read(&visitor, id).await?;
    let form = act::asked(&visitor, &read, &asked).await?;
    render(&visitor, read, &asked, form, StatusCode::OK).await
}

/// The page, with a form if an action is chosen.
async fn render(
    visitor: &Visitor,
    read: Read,
    asked: &Asked,
    form: Option<Form>,
    status: StatusCode,
) -> Answer {
    let (w, id) = (visitor.w, read.instance.id);
    let tab = TABS.into_iter().find(|tab| *tab == asked.tab);
    let tab = tab.unwrap_or(TABS[0]);
    let timeline = if tab == "timeline" {
        let history = format!("/v1/instances/{id}/history");
        let history: History = visitor.get(&history).await?;
        Some(Timeline::of(history, &read.instance, w))
    } else {
        None
    };
    let data = if tab == "data" {
        serde_json::to_string_pretty(&read.instance.data).unwrap_or_default()
    } else {
        String::new()
    };
    let areas = match tab {
        "diagram" => diagram::areas(visitor, &read.instance).await,
        _ => Vec::new(),
    };
    let changes = match tab {
        "data" => record::changes(visitor, &read.instance, &asked.after).await,
        _ => None,
    };
    let record = match tab {
        "events" => Some(Record::events(visitor, &read.instance, &asked.after).await),
        "audit" => Some(Record::audit(visitor, &read.instance, &asked.after).await),
        _ => None,
    };
    let verdict = match (tab, asked.verify.as_str()) {
        ("audit", "true") => Some(record::verdict(visitor, id).await),
        _ => None,
    };
    let relatives = match tab {
        "related" => record::relatives(visitor, &read.instance).await,
        _ => Vec::new(),
    };
    let tabs = TABS.into_iter().map(|one| Tab {
        address: format!("/console/instances/{id}?tab={one}"),
        name: w.t(&format!("tab-{one}")).into_owned(),
        is_current: one == tab,
    });
    let done = match asked.done.as_str() {
        "" => None,
        done => w.known(&format!("done-{done}")),
    };
    let banner = Banner::of(&read, visitor);
    let template = Page {
        shell: Shell::of(visitor, "inbox", banner.title.clone()).await,
        form,
        done: done.map(std::borrow::Cow::into_owned),
        tabs: tabs.collect(),
        tab,
        timeline,
        data,
        record,
        verdict,
        relatives,
        areas,
        changes,
        banner,
    };
    Ok(page(status, &template))
}

/// The drawing of the API, as an image of the page.
async fn drawing(Path(id): Path<Uuid>, visitor: Visitor) -> Response {
    let path = format!("/v1/instances/{id}/diagram.svg");
    let mut response = visitor.api.raw(&path).await;
    response.headers_mut().remove(header::CONTENT_ENCODING);
    response
}
