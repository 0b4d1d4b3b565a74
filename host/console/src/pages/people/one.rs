//! The pages of one person, one group, and one role.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use uuid::Uuid;

use super::lists::{Entry, PAGE_ROWS};
use super::{Page, PeoplePageQuery, Section, Subject, link};
use crate::api::{segment, with_query};
use crate::language::Words;
use crate::list::{Cell, Link, Paged, Table};
use crate::names::Names;
use crate::session::{Halt, Visitor};

#[derive(Deserialize)]
struct Person {
    id: String,
    name: String,
    groups: Vec<String>,
    manager: Option<String>,
}

#[derive(Deserialize)]
struct Absences {
    data: Vec<Absence>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Absence {
    id: Uuid,
    person: String,
    substitute: String,
    definition_key: Option<String>,
    from: Timestamp,
    until: Timestamp,
    ended_at: Option<Timestamp>,
}

#[derive(Deserialize)]
struct Role {
    id: String,
    permissions: Vec<String>,
}

fn trail(visitor: &Visitor, subject: &Subject, name: &str) -> Vec<Link> {
    vec![Link::to(subject.address(), visitor.w.t(name))]
}

pub(super) async fn person(visitor: &Visitor, subject: &Subject, id: &str) -> Result<Page, Halt> {
    let w = visitor.w;
    let path = format!("/v1/people/{}", segment(id));
    let absences = format!("{path}/absences");
    let (found, absences) = tokio::join!(
        visitor.get::<Person>(&path),
        visitor.api.get::<Absences>(&absences)
    );
    let found = found?;
    let absences = absences.map_or_else(|_| Vec::new(), |absences| absences.data);
    let ids = absences.iter();
    let ids = ids.flat_map(|one| [one.person.as_str(), one.substitute.as_str()]);
    let ids: Vec<_> = ids.chain(found.manager.as_deref()).collect();
    let mut names = Names::default();
    let groups: Vec<_> = found.groups.iter().map(String::as_str).collect();
    names.look_up(visitor, &ids, &groups).await;
    let page = Page::new(visitor, found.name.clone()).await;
    let may = page.may("directory:write");
    let manager = match &found.manager {
        Some(id) => Link::to(Subject::Person(id.clone()).address(), names.person(id)),
        None => Link::to(String::new(), w.t("none")),
    };
    let facts = vec![
        (
            w.t("column-id").into_owned(),
            Link::to(String::new(), found.id.as_str()),
        ),
        (w.t("me-manager").into_owned(), manager),
    ];
    let mut actions = vec!["rename", "manager", "join", "absent"];
    if found.manager.is_some() {
        actions.insert(2, "no-manager");
    }
    Ok(Page {
        trail: trail(visitor, &Subject::People, "people"),
        facts,
        buttons: buttons(visitor, subject, &actions, may),
        sections: vec![
            groups_of(visitor, subject, &found, &names.groups, may),
            absences_of(visitor, subject, &absences, &names, may),
        ],
        ..page
    })
}

fn buttons(visitor: &Visitor, subject: &Subject, actions: &[&str], may: bool) -> Vec<Link> {
    let actions = actions.iter().filter(|_| may);
    let name = |action: &str| visitor.w.t(&format!("people-do-{action}"));
    actions
        .map(|action| link(subject, action, "", name(action)))
        .collect()
}

/// A cell with the form of an action, or an empty one.
fn action(subject: &Subject, action: &str, of: &str, name: String, may: bool) -> Cell {
    if !may {
        return Cell::default();
    }
    let link = link(subject, action, of, name);
    Cell {
        badge: "button quiet",
        ..Cell::link(link.name, link.address)
    }
}

/// A table whose last column has the actions on each line. That column is left out if the visitor may not change anything.
fn with_actions(
    w: Words,
    heading: &str,
    columns: &[&str],
    mut rows: Vec<Vec<Cell>>,
    may: bool,
) -> Table {
    let shown = if may {
        columns
    } else {
        for row in &mut rows {
            row.pop();
        }
        &columns[..columns.len() - 1]
    };
    Table::new(w, heading, shown, rows)
}

fn groups_of(
    visitor: &Visitor,
    subject: &Subject,
    person: &Person,
    names: &BTreeMap<String, String>,
    may: bool,
) -> Section {
    let w = visitor.w;
    let row = |id: &String| {
        let name = names.get(id).unwrap_or(id);
        let leave = w.with("people-leave", "name", name);
        vec![
            Cell::link(name.as_str(), Subject::Group(id.clone()).address()).below(id.as_str()),
            action(subject, "leave", id, leave, may),
        ]
    };
    let heading = w.t("groups").into_owned();
    let rows = person.groups.iter().map(row).collect();
    Section {
        table: with_actions(w, &heading, &["column-group", "column-do"], rows, may),
        empty: w.t("people-no-groups").into_owned(),
        heading,
    }
}

fn absences_of(
    visitor: &Visitor,
    subject: &Subject,
    absences: &[Absence],
    names: &Names,
    may: bool,
) -> Section {
    let w = visitor.w;
    let row = |one: &Absence| {
        let is_own = matches!(subject, Subject::Person(id) if *id == one.person);
        let scope = one.definition_key.clone();
        let end = w.with("people-return", "name", &names.person(&one.person));
        let may = may && is_own && one.ended_at.is_none();
        vec![
            Cell::text(names.person(&one.person)).below(scope.unwrap_or_default()),
            Cell::text(names.person(&one.substitute)),
            Cell::when(one.from, w),
            Cell::when(one.ended_at.unwrap_or(one.until), w),
            action(subject, "return", &one.id.to_string(), end, may),
        ]
    };
    let heading = w.t("me-absences").into_owned();
    let rows = absences.iter().map(row).collect();
    let columns = [
        "column-absent",
        "column-substitute",
        "column-from",
        "column-until",
        "column-do",
    ];
    Section {
        table: with_actions(w, &heading, &columns, rows, may),
        empty: w.t("people-no-absences").into_owned(),
        heading,
    }
}

pub(super) async fn group(
    visitor: &Visitor,
    query: &PeoplePageQuery,
    subject: &Subject,
    id: &str,
) -> Result<Page, Halt> {
    let w = visitor.w;
    let parameters = [("group", id), ("limit", PAGE_ROWS), ("after", &query.after)];
    let path = format!("/v1/groups/{}", segment(id));
    let members = with_query("/v1/people", &parameters);
    let (found, members) = tokio::join!(
        visitor.get::<Entry>(&path),
        visitor.get::<Paged<Entry>>(&members)
    );
    let (found, members) = (found?, members?);
    let page = Page::new(visitor, found.name.clone()).await;
    let may = page.may("directory:write");
    let row = |one: &Entry| {
        let remove = w.with("people-remove", "name", &one.name);
        let person = Subject::Person(one.id.clone()).address();
        vec![
            Cell::link(one.name.as_str(), person).below(one.id.as_str()),
            action(subject, "remove-member", &one.id, remove, may),
        ]
    };
    let heading = w.t("people-members").into_owned();
    let rows = members.data.iter().map(row).collect();
    let id = Link::to(String::new(), found.id.as_str());
    let address = subject.address();
    let at = |after: &str| with_query(&address, &[("after", after)]);
    Ok(Page {
        trail: trail(visitor, &Subject::Groups, "groups"),
        first: (!query.after.is_empty()).then(|| address.clone()),
        next: members.page.next.map(|next| at(&next)),
        facts: vec![(w.t("column-id").into_owned(), id)],
        buttons: buttons(visitor, subject, &["rename", "add-member"], may),
        sections: vec![Section {
            table: with_actions(w, &heading, &["column-person", "column-do"], rows, may),
            empty: w.t("people-no-members").into_owned(),
            heading,
        }],
        ..page
    })
}

pub(super) async fn role(visitor: &Visitor, subject: &Subject, id: &str) -> Result<Page, Halt> {
    let w = visitor.w;
    let found: Role = visitor.get(&format!("/v1/roles/{}", segment(id))).await?;
    let page = Page::new(visitor, found.id.clone()).await;
    let may = page.may("role:write");
    let rows = found.permissions.iter();
    let rows = rows.map(|one| vec![Cell::text(one.as_str())]).collect();
    let heading = w.n("people-permissions", found.permissions.len());
    Ok(Page {
        trail: trail(visitor, &Subject::Roles, "roles"),
        about: w.t("people-roles-about").into_owned(),
        buttons: buttons(visitor, subject, &["permit", "remove-role"], may),
        sections: vec![Section {
            table: Table::new(w, &heading, &["column-permits"], rows),
            empty: w.t("people-nothing").into_owned(),
            heading,
        }],
        ..page
    })
}
