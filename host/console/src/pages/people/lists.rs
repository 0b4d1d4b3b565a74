//! The lists of people, groups and roles.

use serde::Deserialize;

use super::{Page, PeoplePageQuery, Section, Subject, link};
use crate::api::with_query;
use crate::list::{Cell, Link, Paged, Table};
use crate::session::{Halt, Visitor};

pub(super) const PAGE_ROWS: &str = "50";
/// Permissions of a role that its row names; its page has all.
const PERMISSIONS_SHOWN: usize = 8;

/// A person or a group.
#[derive(Deserialize)]
pub(super) struct Entry {
    pub(super) id: String,
    pub(super) name: String,
}

#[derive(Deserialize)]
struct Role {
    id: String,
    permissions: Vec<String>,
}

/// The lists of this section. That of roles needs a permission.
fn tabs(page: &Page, visitor: &Visitor, current: &Subject) -> Vec<Link> {
    let all = [
        (Subject::People, "people"),
        (Subject::Groups, "groups"),
        (Subject::Roles, "roles"),
    ];
    let seen = |subject: &Subject| !matches!(subject, Subject::Roles) || page.may("role:read");
    let all = all.into_iter().filter(|(subject, _)| seen(subject));
    all.map(|(subject, name)| Link {
        is_current: subject.address() == current.address(),
        ..Link::to(subject.address(), visitor.w.t(name))
    })
    .collect()
}

pub(super) async fn people(visitor: &Visitor, query: &PeoplePageQuery) -> Result<Page, Halt> {
    directory(visitor, query, &Subject::People, "people", "add-person").await
}

pub(super) async fn groups(visitor: &Visitor, query: &PeoplePageQuery) -> Result<Page, Halt> {
    directory(visitor, query, &Subject::Groups, "groups", "add-group").await
}

async fn directory(
    visitor: &Visitor,
    query: &PeoplePageQuery,
    subject: &Subject,
    name: &str,
    add: &str,
) -> Result<Page, Halt> {
    let w = visitor.w;
    let parameters = [
        ("q", query.q.trim()),
        ("limit", PAGE_ROWS),
        ("after", &query.after),
    ];
    let path = with_query(&format!("/v1/{name}"), &parameters);
    let found: Paged<Entry> = visitor.get(&path).await?;
    let row = |one: &Entry| {
        let of = match subject {
            Subject::Groups => Subject::Group(one.id.clone()),
            _ => Subject::Person(one.id.clone()),
        };
        vec![
            Cell::link(one.name.as_str(), of.address()),
            Cell::text(one.id.as_str()),
        ]
    };
    let heading = w.t(name).into_owned();
    let rows = found.data.iter().map(row).collect();
    let table = Table::new(w, &heading, &["column-name", "column-id"], rows);
    let page = Page::new(visitor, heading).await;
    let address = subject.address();
    let at = |after: &str| with_query(&address, &[("q", query.q.trim()), ("after", after)]);
    let buttons = if page.may("directory:write") {
        vec![link(subject, add, "", w.t(&format!("people-do-{add}")))]
    } else {
        Vec::new()
    };
    Ok(Page {
        tabs: tabs(&page, visitor, subject),
        search: Some((query.q.clone(), address.clone())),
        buttons,
        sections: vec![Section {
            heading: String::new(),
            table,
            empty: w.t("people-nothing").into_owned(),
        }],
        first: (!query.after.is_empty()).then(|| at("")),
        next: found.page.next.map(|next| at(&next)),
        ..page
    })
}

pub(super) async fn roles(visitor: &Visitor) -> Result<Page, Halt> {
    let w = visitor.w;
    let found: Paged<Role> = visitor.get("/v1/roles").await?;
    let row = |one: &Role| {
        let shown = one.permissions.iter().take(PERMISSIONS_SHOWN);
        let mut shown = shown.map(String::as_str).collect::<Vec<_>>().join(", ");
        if one.permissions.len() > PERMISSIONS_SHOWN {
            shown.push_str(", …");
        }
        vec![
            Cell::link(one.id.as_str(), Subject::Role(one.id.clone()).address()),
            Cell::text(w.n("people-permissions", one.permissions.len())).below(shown),
        ]
    };
    let heading = w.t("roles").into_owned();
    let rows = found.data.iter().map(row).collect();
    let table = Table::new(w, &heading, &["column-role", "column-permits"], rows);
    let page = Page::new(visitor, heading).await;
    let buttons = if page.may("role:write") {
        let name = w.t("people-do-add-role");
        vec![link(&Subject::Roles, "add-role", "", name)]
    } else {
        Vec::new()
    };
    Ok(Page {
        about: w.t("people-roles-about").into_owned(),
        tabs: tabs(&page, visitor, &Subject::Roles),
        buttons,
        sections: vec![Section {
            heading: String::new(),
            table,
            empty: w.t("people-nothing").into_owned(),
        }],
        ..page
    })
}
