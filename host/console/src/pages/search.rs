//! Finding pages, flows, instances and people by words.

use std::borrow::Cow;
use std::collections::BTreeMap;

use askama::Template;
use axum::Router;
use axum::extract::Query;
use axum::http::StatusCode;
use axum::routing::get;
use serde::Deserialize;
use uuid::Uuid;

use crate::Console;
use crate::api::{segment, with_query};
use crate::form::Person;
use crate::language::Words;
use crate::list::{Link, Paged};
use crate::places;
use crate::session::{Answer, Visitor};
use crate::shell::{Reader, Shell, page};

/// Results of each kind.
const FOUND_MAX: usize = 20;
/// Versions on a page of the list of definitions, and how many of these pages are looked through.
const VERSIONS: &str = "100";
const PAGES_MAX: usize = 10;
/// What starting needs.
const START: &str = "instance:start";

pub(crate) fn routes() -> Router<Console> {
    Router::new().route("/console/search", get(show))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Asked {
    q: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Instance {
    id: Uuid,
    status: String,
    outcome: Option<String>,
    entity_type: String,
    entity_id: String,
    definition_key: String,
    title: Option<String>,
}

/// A version of a flow, as the list of definitions has it.
#[derive(Deserialize)]
struct Version {
    key: String,
    #[serde(default)]
    title: String,
    active: bool,
}

/// A flow that is found: by the version that new instances take, else by the newest one.
struct Flow {
    key: String,
    title: String,
    is_active: bool,
}

struct Found {
    id: Uuid,
    title: String,
    entity: String,
    flow: String,
    status: String,
}

#[derive(Template)]
#[template(path = "search.html")]
struct Page {
    shell: Shell,
    q: String,
    /// Pages and actions, each with the page that it belongs to.
    places: Vec<(Link, String)>,
    flows: Vec<Link>,
    instances: Vec<Found>,
    people: Vec<Person>,
}

impl Page {
    fn is_empty(&self) -> bool {
        let nothing = self.places.is_empty() && self.flows.is_empty();
        nothing && self.instances.is_empty() && self.people.is_empty()
    }
}

async fn show(Query(asked): Query<Asked>, visitor: Visitor) -> Answer {
    let w = visitor.w;
    let mut template = Page {
        shell: Shell::of(&visitor, "search", w.t("search").into_owned()).await,
        q: asked.q.trim().to_owned(),
        places: Vec::new(),
        flows: Vec::new(),
        instances: Vec::new(),
        people: Vec::new(),
    };
    if template.q.is_empty() {
        return Ok(page(StatusCode::OK, &template));
    }
    let found_max = FOUND_MAX.to_string();
    let parameters = [("q", template.q.as_str()), ("limit", &found_max)];
    let (instances, people) = (
        with_query("/v1/instances", &parameters),
        with_query("/v1/people", &parameters),
    );
    let (instances, people, flows) = tokio::join!(
        visitor.get::<Paged<Instance>>(&instances),
        visitor.api.get::<Paged<Person>>(&people),
        flows(&visitor),
    );
    let instances = instances?.data.into_iter();
    template.instances = instances.map(|one| Found::of(one, w)).collect();
    // Who may not read the directory finds instances all the same.
    template.people = people.map_or_else(|_| Vec::new(), |found| found.data);
    if let Some(reader) = &template.shell.reader {
        template.places = places(&template.q, reader, &flows, w);
    }
    let flows = flows.iter();
    let flows = flows.filter(|flow| places::has(&flow.name(), &template.q));
    template.flows = flows.take(FOUND_MAX).map(Flow::link).collect();
    Ok(page(StatusCode::OK, &template))
}

/// The flows of the tenant. Who may not read them finds the rest all the same.
async fn flows(visitor: &Visitor) -> Vec<Flow> {
    let mut flows: BTreeMap<String, Flow> = BTreeMap::new();
    let mut after = String::new();
    for _ in 0..PAGES_MAX {
        let path = with_query("/v1/definitions", &[("limit", VERSIONS), ("after", &after)]);
        let Ok(found) = visitor.api.get::<Paged<Version>>(&path).await else {
            break;
        };
        for version in found.data {
            let is_known = flows.contains_key(&version.key);
            // The newest version comes first.
            if version.active || !is_known {
                flows.insert(version.key.clone(), Flow::of(version));
            }
        }
        match found.page.next {
            Some(next) => after = next,
            None => break,
        }
    }
    flows.into_values().collect()
}

/// The pages with such names that the reader may open, and the forms that start such flows.
fn places(q: &str, reader: &Reader, flows: &[Flow], w: Words) -> Vec<(Link, String)> {
    let named = places::named(q, reader, w).into_iter();
    let named = named.map(|place| (Link::to(place.address, w.t(place.text)), place.within(w)));
    let active = flows
        .iter()
        .filter(|flow| flow.is_active && reader.may(START));
    let starts = active.filter_map(|flow| {
        let name = w.with("search-start", "flow", &flow.title);
        let has = places::has(&format!("{name} {}", flow.key), q);
        has.then(|| {
            let address = with_query("/console/start", &[("definition", &flow.key)]);
            (Link::to(address, name), flow.key.clone())
        })
    });
    named.chain(starts).take(FOUND_MAX).collect()
}

impl Flow {
    fn of(version: Version) -> Flow {
        Flow {
            title: if version.title.is_empty() {
                version.key.clone()
            } else {
                version.title
            },
            key: version.key,
            is_active: version.active,
        }
    }

    fn name(&self) -> String {
        format!("{} {}", self.title, self.key)
    }

    fn link(&self) -> Link {
        let address = format!("/console/definitions/{}", segment(&self.key));
        Link::to(address, self.title.as_str())
    }
}

impl Found {
    fn of(one: Instance, w: Words) -> Found {
        let entity = format!("{} {}", one.entity_type, one.entity_id);
        let status = w.known(&format!("status-{}", one.status.to_lowercase()));
        let status = status.map_or(one.status, Cow::into_owned);
        Found {
            id: one.id,
            title: one.title.unwrap_or_else(|| entity.clone()),
            entity,
            flow: one.definition_key,
            status: one.outcome.unwrap_or(status),
        }
    }
}
