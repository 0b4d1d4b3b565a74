//! Who could act on an instance, now or at a moment in its past, and who could not and why.

use askama::Template;
use axum::Router;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::routing::get;
use jiff::Timestamp;
use serde::Deserialize;
use uuid::Uuid;

use crate::api::{Trouble, with_query};
use crate::list::Link;
use crate::moment::Moment;
use crate::names::Names;
use crate::session::{Answer, Visitor};
use crate::shell::{Shell, page};
use crate::{Console, zone};

pub(crate) fn routes() -> Router<Console> {
    Router::new().route("/console/instances/{id}/who", get(show))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct EligibilityPageQuery {
    /// A moment in the zone of the reader, as a field of a form gives it. Empty: the present.
    at: String,
}

#[derive(Deserialize)]
struct Eligibility {
    at: Timestamp,
    revision: u32,
    tasks: Vec<Task>,
    more: bool,
}

#[derive(Deserialize)]
struct Task {
    state: String,
    label: String,
    owner: Option<String>,
    eligible: Vec<EligiblePerson>,
    excluded: Vec<Excluded>,
    more: bool,
}

#[derive(Deserialize)]
struct EligiblePerson {
    person: String,
    ways: Vec<Way>,
}

#[derive(Deserialize)]
struct Way {
    how: String,
    group: Option<String>,
    of: Option<String>,
}

#[derive(Deserialize)]
struct Excluded {
    person: String,
    exclusions: Vec<Exclusion>,
}

#[derive(Deserialize)]
struct Exclusion {
    why: String,
    by: Option<String>,
    of: Option<String>,
}

#[derive(Template)]
#[template(path = "who.html")]
struct Page {
    shell: Shell,
    trail: Vec<Link>,
    here: String,
    /// The value of the field.
    at: String,
    refusal: Option<Trouble>,
    moment: Option<(Moment, String)>,
    tasks: Vec<Shown>,
    is_more: bool,
}

/// An open task as it was then.
struct Shown {
    name: String,
    owner: Option<String>,
    /// Names and reasons.
    able: Vec<(String, String)>,
    excluded: Vec<(String, String)>,
    is_more: bool,
}

async fn show(
    Path(id): Path<Uuid>,
    Query(query): Query<EligibilityPageQuery>,
    visitor: Visitor,
) -> Answer {
    let w = visitor.w;
    let at = zone::moment(&query.at, w.zone());
    let path = with_query(&format!("/v1/instances/{id}/eligibility"), &[("at", &at)]);
    let eligibility = match visitor.api.get::<Eligibility>(&path).await {
        Ok(eligibility) => Ok(eligibility),
        // An invalid moment can be corrected in its field.
        Err(trouble) if matches!(trouble.status, 400 | 422) => Err(trouble),
        Err(trouble) => return Err(visitor.halt(&trouble)),
    };
    let (eligibility, refusal, status) = match eligibility {
        Ok(eligibility) => (Some(eligibility), None, StatusCode::OK),
        Err(trouble) => {
            let status = trouble.status();
            (None, Some(trouble), status)
        }
    };
    let names = match &eligibility {
        Some(eligibility) => names(&visitor, eligibility).await,
        None => Names::default(),
    };
    let template = Page {
        shell: Shell::of(&visitor, "", w.t("who-could-act").into_owned()).await,
        trail: vec![Link::to(
            format!("/console/instances/{id}"),
            w.t("who-instance"),
        )],
        here: format!("/console/instances/{id}/who"),
        at: query.at,
        refusal,
        is_more: eligibility.as_ref().is_some_and(|moment| moment.more),
        moment: eligibility.as_ref().map(|moment| {
            let revision = moment.revision.to_string();
            (
                Moment::of(moment.at, w),
                w.with("who-revision", "revision", &revision),
            )
        }),
        tasks: eligibility.map_or_else(Vec::new, |eligibility| {
            let tasks = eligibility.tasks.into_iter();
            tasks
                .map(|task| Shown::of(task, &names, &visitor))
                .collect()
        }),
    };
    Ok(page(status, &template))
}

/// The names of the people of an answer, as far as the visitor may read them.
async fn names(visitor: &Visitor, eligibility: &Eligibility) -> Names {
    let people = eligibility.tasks.iter().flat_map(|task| {
        let able = task.eligible.iter().map(|one| &one.person);
        let excluded = task.excluded.iter().map(|one| &one.person);
        able.chain(excluded).chain(&task.owner)
    });
    let ids: Vec<_> = people.map(String::as_str).collect();
    Names::of_people(visitor, &ids).await
}

impl Shown {
    fn of(task: Task, names: &Names, visitor: &Visitor) -> Shown {
        let w = visitor.w;
        let sentence = |id: &str, other: Option<String>| {
            let other = other.map(|other| names.person(&other)).unwrap_or_default();
            let known = w.known(id).map(|_| w.with(id, "who", &other));
            known.unwrap_or_else(|| id.to_owned())
        };
        let way = |way: Way| sentence(&format!("way-{}", way.how), way.group.or(way.of));
        let exclusion = |one: Exclusion| {
            let why = one.why.replace('_', "-");
            sentence(&format!("exclusion-{why}"), one.by.or(one.of))
        };
        let able = task.eligible.into_iter().map(|one| {
            let ways: Vec<_> = one.ways.into_iter().map(way).collect();
            (names.person(&one.person), ways.join(", "))
        });
        let excluded = task.excluded.into_iter().map(|one| {
            let reasons: Vec<_> = one.exclusions.into_iter().map(exclusion).collect();
            (names.person(&one.person), reasons.join(", "))
        });
        Shown {
            able: able.collect(),
            excluded: excluded.collect(),
            name: if task.label == task.state {
                task.label
            } else {
                format!("{} · {}", task.state, task.label)
            },
            owner: task
                .owner
                .map(|owner| w.with("who-holds", "who", &names.person(&owner))),
            is_more: task.more,
        }
    }
}
