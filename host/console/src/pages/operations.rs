//! The pages for operators: a panel for each kind of trouble, and its list.
//!
//! `figures` shows figures over time, and `hosts` the running hosts. `lists` has the lists of jobs, instances, refusals and webhooks.
//! `dead_letters` has the events that Kafka refused, `deliveries` the deliveries of webhooks, and `choices` the form to select some of
//! them. `bulk` has operations on many instances.

mod bulk;
mod choices;
mod dead_letters;
mod deliveries;
mod figures;
mod hosts;
mod lists;

use askama::Template;
use axum::Router;
use axum::extract::Query;
use axum::http::StatusCode;
use axum::routing::{get, post};

use crate::Console;
use crate::api::{Trouble, with_query};
use crate::language::Words;
use crate::list::{Link, Paged, page_with_rows};
use crate::session::{Answer, Visitor};
use crate::shell::{Shell, page};

/// The page of all panels.
const ROOT: &str = "/console/operations";
/// Items that a panel counts; more are shown as `100+`.
const COUNTED_MAX: usize = 100;
/// Items that a panel names.
const NAMED_MAX: usize = 3;

pub(crate) fn routes() -> Router<Console> {
    Router::new()
        .route(ROOT, get(show))
        .route("/console/operations/bulk", get(bulk::list))
        .route("/console/operations/bulk/{id}", get(bulk::show))
        .route("/console/operations/bulk/{id}/stop", post(bulk::stop))
        .route("/console/operations/jobs", get(lists::jobs))
        .route("/console/operations/hosts", get(hosts::list))
        .route("/console/operations/refusals", get(lists::refusals))
        .route(
            "/console/operations/instances/{which}",
            get(lists::instances),
        )
        .route("/console/operations/webhooks", get(lists::webhooks))
        .route(
            "/console/operations/dead-letters",
            get(dead_letters::many::list).post(dead_letters::many::act),
        )
        .route(
            "/console/operations/dead-letters/{id}",
            get(dead_letters::show).post(dead_letters::act),
        )
        .route(
            "/console/operations/webhooks/{id}",
            get(deliveries::many::list).post(deliveries::many::act),
        )
        .route(
            "/console/operations/webhooks/{id}/{delivery}",
            get(deliveries::show).post(deliveries::act),
        )
}

/// One kind of trouble.
struct Panel {
    name: String,
    about: String,
    address: String,
    /// Empty if it could not be read.
    count: String,
    is_bad: bool,
    /// The first ones.
    named: Vec<PanelItem>,
    /// Why it could not be read.
    refusal: String,
    /// Warnings.
    warnings: Vec<String>,
}

/// One item of a panel.
struct PanelItem {
    /// Empty if it leads nowhere.
    address: String,
    name: String,
    detail: String,
}

#[derive(Template)]
#[template(path = "operations.html")]
struct Page {
    shell: Shell,
    panels: Vec<Panel>,
    figures: Vec<figures::Card>,
    /// The time of the figures.
    span: String,
    ranges: Vec<Link>,
    /// Why there are no figures.
    refusal: String,
}

impl Panel {
    fn empty(visitor: &Visitor, name: &str, address: String) -> Panel {
        let w = visitor.w;
        Panel {
            name: w.t(&format!("panel-{name}")).into_owned(),
            about: w.t(&format!("panel-{name}-about")).into_owned(),
            address,
            count: String::new(),
            is_bad: false,
            named: Vec::new(),
            refusal: String::new(),
            warnings: Vec::new(),
        }
    }

    /// The panel of a list. Its texts are `panel-NAME` and `panel-NAME-about`.
    fn of<T>(
        visitor: &Visitor,
        name: &str,
        address: String,
        found: Result<Paged<T>, Trouble>,
        line: impl Fn(T) -> PanelItem,
    ) -> Panel {
        let mut panel = Panel::empty(visitor, name, address);
        match found {
            Ok(found) => {
                if found.data.is_empty() && found.page.next.is_some() {
                    panel.refusal = visitor.w.t("panel-unread").into_owned();
                    return panel;
                }
                let known = found.page.count.unwrap_or_default();
                let is_more = found.page.next.is_some() && found.page.count.is_none();
                let is_more = is_more || found.page.capped == Some(true);
                let count = usize::try_from(known)
                    .unwrap_or_default()
                    .max(found.data.len());
                panel.count = if is_more {
                    format!("{}+", visitor.w.number(count))
                } else {
                    visitor.w.number(count)
                };
                panel.is_bad = count > 0;
                panel.named = found.data.into_iter().take(NAMED_MAX).map(line).collect();
            }
            Err(trouble) => panel.refusal = trouble.detail,
        }
        panel
    }
}

async fn show(Query(query): Query<figures::FiguresQuery>, visitor: Visitor) -> Answer {
    let series = query.path();
    let (panels, hosts, found) = tokio::join!(
        troubles(&visitor),
        visitor.api.get::<hosts::Hosts>("/v1/hosts"),
        visitor.api.get::<figures::Figures>(&series)
    );
    let w = visitor.w;
    let hosts = hosts::panel(&visitor, hosts);
    let (cards, span, refusal) = match found {
        Ok(found) => (found.cards(&visitor), found.span(w), String::new()),
        Err(trouble) => (Vec::new(), String::new(), trouble.detail),
    };
    let template = Page {
        shell: Shell::of(&visitor, "operations", w.t("operations").into_owned()).await,
        panels: panels.into_iter().chain([hosts]).collect(),
        figures: cards,
        span,
        ranges: query.tabs(w),
        refusal,
    };
    Ok(page(StatusCode::OK, &template))
}

/// The panels of what needs somebody.
async fn troubles(visitor: &Visitor) -> Vec<Panel> {
    let w = visitor.w;
    let counted = COUNTED_MAX.to_string();
    let counting = |path: &'static str| {
        let counted = &counted;
        move |after: &str| with_query(path, &[("limit", counted), ("after", after)])
    };
    let instances = |which: &'static str| {
        page_with_rows::<lists::Instance>(visitor, "", move |after| lists::path(which, after, "3"))
    };
    let [unassignable, overdue, stale] = lists::WHICH;
    let (letters, hooks, jobs, lost, overdue, stale) = tokio::join!(
        page_with_rows::<dead_letters::DeadLetter>(visitor, "", counting("/v1/dead-letters")),
        visitor
            .api
            .get::<Paged<lists::Subscription>>("/v1/subscriptions"),
        page_with_rows::<lists::Job>(visitor, "", counting("/v1/jobs")),
        instances(unassignable),
        instances(overdue),
        instances(stale),
    );
    // Only receivers that do not get their deliveries are trouble.
    let hooks = hooks.map(|mut hooks| {
        hooks.data.retain(|hook| hook.failures > 0 || !hook.active);
        hooks
    });
    let work = |which: &str, found| {
        let address = format!("{ROOT}/instances/{which}");
        Panel::of(visitor, which, address, found, |one: lists::Instance| {
            PanelItem {
                address: one.address(),
                detail: one.states.join(", "),
                name: one.title(),
            }
        })
    };
    vec![
        work("unassignable", lost),
        work("overdue", overdue),
        work("stale", stale),
        Panel::of(
            visitor,
            "dead-letters",
            format!("{ROOT}/dead-letters"),
            letters,
            refused,
        ),
        Panel::of(
            visitor,
            "webhooks",
            format!("{ROOT}/webhooks"),
            hooks,
            |one| receiver(one, w),
        ),
        Panel::of(
            visitor,
            "jobs",
            format!("{ROOT}/jobs"),
            jobs,
            |one: lists::Job| PanelItem {
                address: format!("/console/instances/{}", one.instance_id),
                name: one.name(w),
                detail: one.error.unwrap_or_default(),
            },
        ),
    ]
}

/// An instance whose events wait behind a refused one.
fn refused(one: dead_letters::DeadLetter) -> PanelItem {
    PanelItem {
        address: format!("{ROOT}/dead-letters/{}", one.event.instance_id),
        name: one.event.kind(),
        detail: one.event.error,
    }
}

/// A receiver that does not get its deliveries.
fn receiver(one: lists::Subscription, w: Words) -> PanelItem {
    let failures = || w.n("webhook-failures", one.failures);
    PanelItem {
        address: format!("{ROOT}/webhooks/{}?state=dead", one.id),
        detail: one.disabled_reason.unwrap_or_else(failures),
        name: one.url,
    }
}

/// The trail of a page below the panels.
fn trail(visitor: &Visitor) -> Vec<Link> {
    vec![Link::to(ROOT, visitor.w.t("operations"))]
}
