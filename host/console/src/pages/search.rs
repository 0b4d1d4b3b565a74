//! Finding pages, flows, instances and people by words.

use std::borrow::Cow;

use askama::Template;
use axum::Router;
use axum::extract::Query;
use axum::http::StatusCode;
use axum::routing::get;
use serde::Deserialize;
use uuid::Uuid;

use crate::api::{Trouble, segment, with_query};
use crate::form::Person;
use crate::language::Words;
use crate::list::{Link, Paged, page_with_rows};
use crate::session::{Answer, Halt, Visitor};
use crate::shell::{Reader, Shell, page};
use crate::{Console, sitemap};

/// Results of each kind.
const FOUND_MAX: usize = 20;
/// The permission to start instances.
const START: &str = "instance:start";

pub(crate) fn routes() -> Router<Console> {
    Router::new().route("/console/search", get(show))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SearchQuery {
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

/// A flow that was found, by its active version, else by its newest one.
#[derive(Deserialize)]
struct Flow {
    key: String,
    title: String,
    active: bool,
}

struct InstanceHit {
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
    /// Pages and actions, each with the name of the page on which it is.
    pages: Vec<(Link, String)>,
    flows: Vec<Link>,
    instances: Vec<InstanceHit>,
    people: Vec<Person>,
    /// Why instances were not searched for these words, or not all of them.
    refusal: Option<Trouble>,
}

impl Page {
    fn is_empty(&self) -> bool {
        let nothing = self.pages.is_empty() && self.flows.is_empty();
        nothing && self.instances.is_empty() && self.people.is_empty()
    }
}

async fn show(Query(query): Query<SearchQuery>, visitor: Visitor) -> Answer {
    let w = visitor.w;
    let mut template = Page {
        shell: Shell::of(&visitor, "search", w.t("search").into_owned()).await,
        q: query.q.trim().to_owned(),
        pages: Vec::new(),
        flows: Vec::new(),
        instances: Vec::new(),
        people: Vec::new(),
        refusal: None,
    };
    if template.q.is_empty() {
        return Ok(page(StatusCode::OK, &template));
    }
    let found_max = FOUND_MAX.to_string();
    let searched = |path: &str, after: &str| {
        let q = template.q.as_str();
        with_query(path, &[("q", q), ("limit", &found_max), ("after", after)])
    };
    let people = searched("/v1/people", "");
    let words = of_flows(&template.q, w);
    let flows = [
        ("q", words.as_str()),
        ("limit", &found_max),
        ("versions", "current"),
    ];
    let flows = with_query("/v1/definitions", &flows);
    let (instances, people, flows) = tokio::join!(
        page_with_rows::<Instance>(&visitor, "", |after| searched("/v1/instances", after)),
        visitor.api.get::<Paged<Person>>(&people),
        visitor.api.get::<Paged<Flow>>(&flows),
    );
    match instances {
        Ok(found) => {
            if found.data.is_empty() && found.page.next.is_some() {
                template.refusal = Some(Trouble {
                    detail: w.t("searched-in-part").into_owned(),
                    ..Trouble::default()
                });
            }
            let found = found.data.into_iter();
            template.instances = found.map(|one| InstanceHit::of(one, w)).collect();
        }
        // A query without a word, such as `--`.
        Err(trouble) if matches!(trouble.status, 400 | 422) => template.refusal = Some(trouble),
        Err(trouble) => return Err(visitor.halt(&trouble)),
    }
    template.people = rows_if_readable(&visitor, people)?;
    let flows = rows_if_readable(&visitor, flows)?;
    if let Some(reader) = &template.shell.reader {
        template.pages = pages(&template.q, reader, &flows, w);
    }
    template.flows = flows.iter().map(Flow::link).collect();
    Ok(page(StatusCode::OK, &template))
}

/// The rows of a list. None if the visitor may not read the list, or if it cannot be searched for these words. Then the search
/// shows the rows of the other lists.
fn rows_if_readable<T>(
    visitor: &Visitor,
    found: Result<Paged<T>, Trouble>,
) -> Result<Vec<T>, Halt> {
    match found {
        Ok(found) => Ok(found.data),
        Err(trouble) if matches!(trouble.status, 400 | 403 | 422) => Ok(Vec::new()),
        Err(trouble) => Err(visitor.halt(&trouble)),
    }
}

/// The words by which flows are searched. A search such as `start invoice` also names the action, and no flow has that word. If there are
/// no other words, flows are searched by this word.
fn of_flows(q: &str, w: Words) -> String {
    let action = w.with("search-start", "flow", "").to_lowercase();
    let bare = |word: &str| word.trim_end_matches(':').to_lowercase();
    let names_action = |word: &str| {
        let mut words = action.split_whitespace();
        words.any(|one| bare(one) == bare(word))
    };
    let words: Vec<_> = q
        .split_whitespace()
        .filter(|word| !names_action(word))
        .collect();
    if words.is_empty() {
        q.to_owned()
    } else {
        words.join(" ")
    }
}

/// The pages with such names that the reader may open, and the forms that start these flows.
fn pages(q: &str, reader: &Reader, flows: &[Flow], w: Words) -> Vec<(Link, String)> {
    let entries = sitemap::matching(q, reader, w).into_iter();
    let entries = entries.map(|entry| (Link::to(entry.address, w.t(entry.text)), entry.within(w)));
    let may_start = reader.may(START);
    let active = flows.iter().filter(|flow| flow.active && may_start);
    let starts = active.map(|flow| {
        let name = w.with("search-start", "flow", flow.title());
        let address = with_query("/console/start", &[("definition", &flow.key)]);
        (Link::to(address, name), flow.key.clone())
    });
    entries.chain(starts).take(FOUND_MAX).collect()
}

impl Flow {
    fn title(&self) -> &str {
        if self.title.is_empty() {
            &self.key
        } else {
            &self.title
        }
    }

    fn link(&self) -> Link {
        let address = format!("/console/definitions/{}", segment(&self.key));
        Link::to(address, self.title())
    }
}

impl InstanceHit {
    fn of(one: Instance, w: Words) -> InstanceHit {
        let entity = format!("{} {}", one.entity_type, one.entity_id);
        let status = w.known(&format!("status-{}", one.status.to_lowercase()));
        let status = status.map_or(one.status, Cow::into_owned);
        InstanceHit {
            id: one.id,
            title: one.title.unwrap_or_else(|| entity.clone()),
            entity,
            flow: one.definition_key,
            status: one.outcome.unwrap_or(status),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_action_are_not_looked_for_in_flows() {
        for (language, q, wanted) in [
            ("en", "start invoice", "invoice"),
            ("en", "Invoice START:", "Invoice"),
            ("en", "start", "start"),
            ("en", "startup of plants", "startup of plants"),
            ("de", "Rechnung beginnen", "Rechnung"),
            ("th", "เริ่ม แผน", "แผน"),
        ] {
            let w = Words::named(language).expect("a language");
            assert_eq!(of_flows(q, w), wanted, "{q}");
        }
    }
}
