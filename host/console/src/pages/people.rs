//! People, groups and roles: lists, one of them, and changes. `actions` has the changes, each with the tasks that it would leave
//! to nobody, shown before the confirmation. `change` has the operation of the API behind each. `one` has the pages of one
//! person, group or role, `lists` the lists.

mod actions;
mod change;
mod lists;
mod one;

use askama::Template;
use axum::Router;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect};
use axum::routing::get;
use serde::Deserialize;

use actions::Action;

use crate::Console;
use crate::api::{segment, with_query};
use crate::form::{self, Form};
use crate::list::{Link, Table};
use crate::posted::Posted;
use crate::session::{Answer, Visitor};
use crate::shell::{Shell, page};

pub(crate) fn routes() -> Router<Console> {
    let one = |kind: fn(String) -> Subject| {
        get(
            move |Path(id): Path<String>,
                  Query(query): Query<PeoplePageQuery>,
                  visitor: Visitor| async move { show(kind(id), query, visitor).await },
        )
        .post(move |Path(id): Path<String>, posted: Posted| async move {
            act(kind(id), posted).await
        })
    };
    let all = |subject: fn() -> Subject| {
        get(
            move |Query(query): Query<PeoplePageQuery>, visitor: Visitor| async move {
                show(subject(), query, visitor).await
            },
        )
        .post(move |posted: Posted| async move { act(subject(), posted).await })
    };
    Router::new()
        .route("/console/people", all(|| Subject::People))
        .route("/console/people/{id}", one(Subject::Person))
        .route("/console/groups", all(|| Subject::Groups))
        .route("/console/groups/{id}", one(Subject::Group))
        .route("/console/roles", all(|| Subject::Roles))
        .route("/console/roles/{id}", one(Subject::Role))
}

/// The subject of a page.
enum Subject {
    People,
    Person(String),
    Groups,
    Group(String),
    Roles,
    Role(String),
}

impl Subject {
    fn address(&self) -> String {
        let of = |list: &str, id: &str| format!("/console/{list}/{}", segment(id));
        match self {
            Subject::People => "/console/people".to_owned(),
            Subject::Person(id) => of("people", id),
            Subject::Groups => "/console/groups".to_owned(),
            Subject::Group(id) => of("groups", id),
            Subject::Roles => "/console/roles".to_owned(),
            Subject::Role(id) => of("roles", id),
        }
    }
}

/// The parameters of the address.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct PeoplePageQuery {
    /// The beginning of an id or a name.
    q: String,
    after: String,
    /// The chosen action, and what it is done to besides the subject.
    #[serde(rename = "do")]
    action: String,
    of: String,
    /// The action that was just done.
    done: String,
}

/// A table with its heading.
struct Section {
    heading: String,
    table: Table,
    /// The text if there is no row.
    empty: String,
}

#[derive(Template)]
#[template(path = "people.html")]
struct Page {
    shell: Shell,
    trail: Vec<Link>,
    heading: String,
    about: String,
    tabs: Vec<Link>,
    /// The searched beginning, and the address of the search. None if the page has no search.
    search: Option<(String, String)>,
    facts: Vec<(String, Link)>,
    buttons: Vec<Link>,
    done: Option<String>,
    form: Option<Form>,
    sections: Vec<Section>,
    first: Option<String>,
    next: Option<String>,
}

impl Page {
    async fn new(visitor: &Visitor, heading: String) -> Page {
        Page {
            shell: Shell::of(visitor, "people", heading.clone()).await,
            trail: Vec::new(),
            heading,
            about: String::new(),
            tabs: Vec::new(),
            search: None,
            facts: Vec::new(),
            buttons: Vec::new(),
            done: None,
            form: None,
            sections: Vec::new(),
            first: None,
            next: None,
        }
    }

    /// Whether the visitor's roles permit the changes of this page.
    fn may(&self, permission: &str) -> bool {
        let mut readers = self.shell.reader.iter();
        readers.any(|reader| reader.may(permission))
    }
}

/// The link to the form of an action.
fn link(subject: &Subject, action: &str, of: &str, name: impl Into<String>) -> Link {
    let to = with_query(&subject.address(), &[("do", action), ("of", of)]);
    Link::to(format!("{to}#act"), name)
}

async fn show(subject: Subject, query: PeoplePageQuery, visitor: Visitor) -> Answer {
    let form = match Action::find(&subject, &query.action, &query.of) {
        Some(action) => action.chosen_form(&visitor, &subject).await?,
        None => None,
    };
    render(&visitor, &subject, &query, form, StatusCode::OK).await
}

async fn render(
    visitor: &Visitor,
    subject: &Subject,
    query: &PeoplePageQuery,
    form: Option<Form>,
    status: StatusCode,
) -> Answer {
    let mut template = match subject {
        Subject::People => lists::people(visitor, query).await?,
        Subject::Groups => lists::groups(visitor, query).await?,
        Subject::Roles => lists::roles(visitor).await?,
        Subject::Person(id) => one::person(visitor, subject, id).await?,
        Subject::Group(id) => one::group(visitor, query, subject, id).await?,
        Subject::Role(id) => one::role(visitor, subject, id).await?,
    };
    template.form = form;
    if !query.done.is_empty() {
        let message = visitor.w.known(&format!("people-done-{}", query.done));
        template.done = message.map(std::borrow::Cow::into_owned);
    }
    Ok(page(status, &template))
}

/// Handles a sent form: shows the effects, or makes the change if they were shown.
async fn act(subject: Subject, Posted { visitor, fields }: Posted) -> Answer {
    let (name, of) = (fields.get("do").to_owned(), fields.get("of").to_owned());
    let Some(action) = Action::find(&subject, &name, &of) else {
        return Ok(StatusCode::NOT_FOUND.into_response());
    };
    let change = action.change(&subject, &fields);
    let mut form = action.form(&visitor, &subject, &fields).await;
    let query = PeoplePageQuery::default();
    let answer = if form::is_confirmed(&fields, &change.content()) {
        let done = change.make(&visitor, form::key(&fields)).await;
        if done.is_ok() {
            let to = action.after(&subject, &fields).address();
            let to = with_query(&to, &[("done", action.name)]);
            return Ok(Redirect::to(&to).into_response());
        }
        done
    } else {
        let effects = action.effects(&visitor, &subject, &change, &fields).await;
        effects.map(|effects| form.show(effects, &change.content()))
    };
    let status = match answer {
        Ok(()) => StatusCode::OK,
        Err(trouble) => {
            form.refuse(&trouble, crate::names::Names::default(), &visitor)
                .await;
            trouble.status()
        }
    };
    render(&visitor, &subject, &query, Some(form), status).await
}
