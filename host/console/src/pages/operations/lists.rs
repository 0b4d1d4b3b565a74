//! Lists of jobs that fail, of instances that need an operator, of refused commands, and of the receivers of webhooks.

use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use uuid::Uuid;

use wrkflw_runtime::clock::Clock;

use super::{ROOT, trail};
use crate::api::with_query;
use crate::language::Words;
use crate::list::{Cell, ListQuery, Listing, Paged, Table};
use crate::session::{Answer, Visitor};
use crate::shell::page;

const PAGE_ROWS: &str = "50";
/// An instance is stale if nothing has changed in it for so long.
const STALE: SignedDuration = SignedDuration::from_hours(14 * 24);
/// The lists of instances, by their names in the address.
pub(super) const WHICH: [&str; 3] = ["unassignable", "overdue", "stale"];

/// An instance as a list shows it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Instance {
    id: Uuid,
    definition_key: String,
    definition_version: u32,
    entity_type: String,
    entity_id: String,
    title: Option<String>,
    next_due_at: Option<Timestamp>,
    updated_at: Timestamp,
    pub(super) states: Vec<String>,
}

impl Instance {
    pub(super) fn address(&self) -> String {
        format!("/console/instances/{}", self.id)
    }

    fn entity(&self) -> String {
        format!("{} {}", self.entity_type, self.entity_id)
    }

    pub(super) fn title(&self) -> String {
        self.title.clone().unwrap_or_else(|| self.entity())
    }
}

/// The path of a list of instances in the API.
pub(super) fn path(which: &str, after: &str, limit: &str) -> String {
    let now = Clock::System.now();
    let filter = match which {
        "unassignable" => ("unassignable", "true".to_owned()),
        "overdue" => ("dueBefore", now.to_string()),
        _ => ("updatedBefore", (now - STALE).to_string()),
    };
    let parameters = [
        ("status", "RUNNING"),
        (filter.0, filter.1.as_str()),
        ("count", "true"),
        ("sort", "startedAt"),
        ("limit", limit),
        ("after", after),
    ];
    with_query("/v1/instances", &parameters)
}

pub(super) async fn instances(
    Path(which): Path<String>,
    Query(query): Query<ListQuery>,
    visitor: Visitor,
) -> Answer {
    let w = visitor.w;
    let Some(which) = WHICH.into_iter().find(|one| *one == which) else {
        return Ok(missing(&visitor));
    };
    let path = |after: &str| path(which, after, PAGE_ROWS);
    let found: Paged<Instance> = visitor.page_with_rows(&query.after, path).await?;
    let row = |one: &Instance| {
        vec![
            Cell::link(one.title(), one.address()).below(one.entity()),
            Cell::text(one.states.join(", ")),
            Cell::text(format!("{} {}", one.definition_key, one.definition_version)),
            one.next_due_at
                .map_or_else(Cell::default, |at| Cell::when(at, w)),
            Cell::when(one.updated_at, w),
            Cell::link(w.t("who-could-act"), format!("{}/who", one.address())),
        ]
    };
    let rows = found.data.iter().map(row).collect();
    let heading = w.t(&format!("panel-{which}")).into_owned();
    let columns = [
        "column-instance",
        "column-state",
        "column-definition",
        "column-next-deadline",
        "column-changed",
        "column-people",
    ];
    let table = Table::new(w, &heading, &columns, rows);
    let path = format!("{ROOT}/instances/{which}");
    let listing = Listing {
        trail: trail(&visitor),
        about: w.t(&format!("panel-{which}-about")).into_owned(),
        empty: w.t("operations-nothing").into_owned(),
        ..Listing::new(&visitor, "operations", heading, table).await
    };
    let listing = listing.paged(&path, &[], &query, found.page.next.as_ref());
    Ok(page(StatusCode::OK, &listing))
}

fn missing(visitor: &Visitor) -> Response {
    let trouble = crate::api::Trouble {
        status: StatusCode::NOT_FOUND.as_u16(),
        detail: visitor.w.t("trouble-missing-detail").into_owned(),
        ..crate::api::Trouble::default()
    };
    visitor.halt(&trouble).into_response()
}

/// Deferred work on an instance.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Job {
    kind: String,
    pub(super) instance_id: Uuid,
    definition_key: Option<String>,
    attempts: u32,
    pub(super) error: Option<String>,
    next_at: Option<Timestamp>,
}

impl Job {
    pub(super) fn name(&self, w: Words) -> String {
        let known = w.known(&format!("job-{}", self.kind));
        known.map_or_else(|| self.kind.clone(), std::borrow::Cow::into_owned)
    }
}

pub(super) async fn jobs(Query(query): Query<ListQuery>, visitor: Visitor) -> Answer {
    let w = visitor.w;
    let path = |after: &str| with_query("/v1/jobs", &[("limit", PAGE_ROWS), ("after", after)]);
    let found: Paged<Job> = visitor.page_with_rows(&query.after, path).await?;
    let row = |job: &Job| {
        let address = format!("/console/instances/{}", job.instance_id);
        let flow = job.definition_key.clone().unwrap_or_default();
        vec![
            Cell::link(job.name(w), address).below(flow),
            Cell::text(job.error.clone().unwrap_or_default()),
            Cell::text(w.number(job.attempts)),
            job.next_at
                .map_or_else(Cell::default, |at| Cell::when(at, w)),
        ]
    };
    let rows = found.data.iter().map(row).collect();
    let heading = w.t("panel-jobs").into_owned();
    let columns = [
        "column-job",
        "column-error",
        "column-attempts",
        "column-next",
    ];
    let table = Table::new(w, &heading, &columns, rows);
    let listing = Listing {
        trail: trail(&visitor),
        about: w.t("panel-jobs-about").into_owned(),
        empty: w.t("operations-nothing").into_owned(),
        ..Listing::new(&visitor, "operations", heading, table).await
    };
    let listing = listing.paged(
        &format!("{ROOT}/jobs"),
        &[],
        &query,
        found.page.next.as_ref(),
    );
    Ok(page(StatusCode::OK, &listing))
}

/// A receiver of webhooks.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Subscription {
    pub(super) id: Uuid,
    pub(super) url: String,
    types: Vec<String>,
    pub(super) active: bool,
    pub(super) disabled_reason: Option<String>,
    pub(super) failures: i32,
}

pub(super) async fn webhooks(visitor: Visitor) -> Answer {
    let w = visitor.w;
    let found: Paged<Subscription> = visitor.get("/v1/subscriptions").await?;
    let row = |one: &Subscription| {
        let status = if one.active {
            Cell::badge(w.t("webhook-active"), "good")
        } else {
            Cell::badge(w.t("webhook-disabled"), "bad")
        };
        vec![
            Cell::link(one.url.as_str(), format!("{ROOT}/webhooks/{}", one.id)),
            Cell::text(one.types.join(", ")),
            status.below(one.disabled_reason.clone().unwrap_or_default()),
            Cell::text(w.number(one.failures)),
        ]
    };
    let rows = found.data.iter().map(row).collect();
    let heading = w.t("panel-webhooks").into_owned();
    let columns = [
        "column-receiver",
        "column-events",
        "column-status",
        "column-failures",
    ];
    let table = Table::new(w, &heading, &columns, rows);
    let listing = Listing {
        trail: trail(&visitor),
        about: w.t("webhooks-about").into_owned(),
        empty: w.t("webhooks-empty").into_owned(),
        ..Listing::new(&visitor, "operations", heading, table).await
    };
    Ok(page(StatusCode::OK, &listing))
}

/// The parameters in the address of the list of refusals.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Refused {
    reason: String,
    from: String,
    after: String,
}

/// A command that was refused.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Refusal {
    occurred_at: Timestamp,
    actor: String,
    action: String,
    instance_id: Option<Uuid>,
    reason: String,
    detail: String,
}

pub(super) async fn refusals(Query(refused): Query<Refused>, visitor: Visitor) -> Answer {
    let w = visitor.w;
    let Refused {
        reason,
        from,
        after,
    } = refused;
    let query = ListQuery { after };
    let path = |after: &str| {
        let parameters = [
            ("reason", reason.as_str()),
            ("from", from.as_str()),
            ("limit", PAGE_ROWS),
            ("after", after),
        ];
        with_query("/v1/refusals", &parameters)
    };
    let found: Paged<Refusal> = visitor.page_with_rows(&query.after, path).await?;
    let row = |one: &Refusal| {
        let about = one.instance_id.map_or_else(Cell::default, |id| {
            Cell::link(w.t("column-instance"), format!("/console/instances/{id}"))
        });
        vec![
            Cell::when(one.occurred_at, w),
            Cell::text(one.actor.as_str()),
            Cell::text(one.action.as_str()),
            Cell::text(one.reason.as_str()).below(one.detail.as_str()),
            about,
        ]
    };
    let rows = found.data.iter().map(row).collect();
    let heading = w.t("refusals").into_owned();
    let columns = [
        "column-when",
        "column-actor",
        "column-action",
        "column-reason",
        "column-about",
    ];
    let table = Table::new(w, &heading, &columns, rows);
    let about = if reason.is_empty() {
        w.t("refusals-about").into_owned()
    } else {
        w.with("refusals-of", "reason", &reason)
    };
    let listing = Listing {
        trail: trail(&visitor),
        about,
        empty: w.t("refusals-empty").into_owned(),
        ..Listing::new(&visitor, "operations", heading, table).await
    };
    let kept = [("reason", reason.as_str()), ("from", from.as_str())];
    let next = found.page.next.as_ref();
    let listing = listing.paged(&format!("{ROOT}/refusals"), &kept, &query, next);
    Ok(page(StatusCode::OK, &listing))
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use axum::{Json, Router};
    use serde_json::json;

    use super::*;
    use crate::session::Halt;

    #[tokio::test]
    async fn a_list_says_that_all_is_well_only_if_all_was_searched() {
        let [well, in_part] = ["All is well here", "not everything was searched"];
        for (next, expected, unexpected) in [(None, well, in_part), (Some("p2"), in_part, well)] {
            let empty =
                move || async move { Json(json!({ "data": [], "page": { "next": next } })) };
            let api = Router::new()
                .route("/v1/jobs", get(empty))
                .route("/v1/instances", get(empty))
                .route("/v1/dead-letters", get(empty));
            let visitor = || Visitor::of_routes(api.clone());
            let query = || Query(ListQuery::default());
            let answers = [
                jobs(query(), visitor()).await,
                instances(Path("overdue".to_owned()), query(), visitor()).await,
                super::super::dead_letters::many::list(Query::default(), visitor()).await,
            ];
            for answer in answers {
                let answer = answer.unwrap_or_else(Halt::into_response);
                assert_eq!(answer.status(), StatusCode::OK);
                let bytes = axum::body::to_bytes(answer.into_body(), usize::MAX).await;
                let page = String::from_utf8(bytes.expect("a page").into()).expect("a text");
                assert!(page.contains(expected), "{page}");
                assert!(!page.contains(unexpected), "{page}");
                assert_eq!(page.contains("after=p2"), next.is_some(), "{page}");
            }
        }
    }
}
