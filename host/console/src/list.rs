//! Lists of the API as tables. `templates/listing.html` is the template of a page with one table, `templates/table.html` that of a table.

use std::collections::BTreeMap;
use std::time::Duration;

use askama::Template;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::api::{Trouble, with_query};
use crate::language::Words;
use crate::moment::Moment;
use crate::session::Visitor;
use crate::shell::Shell;

/// Limit of the empty pages of the API that are read for one page with rows.
const EMPTY_PAGES_MAX: usize = 10;
/// After this time an empty page is shown, with a link to the next one. The API may take two seconds for each.
const EMPTY_TIME_MAX: Duration = Duration::from_secs(4);

/// A page of a list of the API.
#[derive(Deserialize)]
pub(crate) struct Paged<T> {
    pub(crate) data: Vec<T>,
    pub(crate) page: PageInfo,
    /// The names of people and groups in the rows, if the request asked for them.
    #[serde(default)]
    pub(crate) people: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) groups: BTreeMap<String, String>,
}

/// What the API says of a page: where the next page begins, and how many rows the whole list has.
#[derive(Default, Deserialize)]
pub(crate) struct PageInfo {
    pub(crate) next: Option<String>,
    #[serde(default)]
    pub(crate) count: Option<i64>,
    #[serde(default)]
    pub(crate) capped: Option<bool>,
}

/// The first page with rows, from the place `after` on. A page may have no rows although others follow: the API bounds the rows that
/// it reads for a page, and the visitor may not see them.
pub(crate) async fn page_with_rows<T: DeserializeOwned>(
    visitor: &Visitor,
    after: &str,
    path: impl Fn(&str) -> String,
) -> Result<Paged<T>, Trouble> {
    let begun = Instant::now();
    let mut found: Paged<T> = visitor.api.get(&path(after)).await?;
    for _ in 0..EMPTY_PAGES_MAX {
        let goes_on = found.data.is_empty() && begun.elapsed() < EMPTY_TIME_MAX;
        let Some(next) = found.page.next.as_deref().filter(|_| goes_on) else {
            break;
        };
        found = visitor.api.get(&path(next)).await?;
    }
    Ok(found)
}

impl<T> Default for Paged<T> {
    fn default() -> Paged<T> {
        Paged {
            data: Vec::new(),
            page: PageInfo::default(),
            people: BTreeMap::new(),
            groups: BTreeMap::new(),
        }
    }
}

/// The parameters in the address of a page with a list.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ListQuery {
    pub(crate) after: String,
}

/// A table. On a narrow screen each row is a block, and each cell says its column.
#[derive(Default)]
pub(crate) struct Table {
    /// A description for people who do not see it.
    pub(crate) name: String,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

/// A cell: a text, a link or a badge, with an optional small text below it.
#[derive(Default)]
pub(crate) struct Cell {
    pub(crate) text: String,
    /// Empty if it is no link.
    pub(crate) address: String,
    /// The class of a badge, or of a link that does not look like a title; else empty.
    pub(crate) badge: &'static str,
    pub(crate) below: String,
    pub(crate) when: Option<Moment>,
}

impl Cell {
    pub(crate) fn text(text: impl Into<String>) -> Cell {
        Cell {
            text: text.into(),
            ..Cell::default()
        }
    }

    pub(crate) fn link(text: impl Into<String>, address: impl Into<String>) -> Cell {
        Cell {
            address: address.into(),
            ..Cell::text(text)
        }
    }

    pub(crate) fn badge(text: impl Into<String>, badge: &'static str) -> Cell {
        Cell {
            badge,
            ..Cell::text(text)
        }
    }

    pub(crate) fn when(at: jiff::Timestamp, w: Words) -> Cell {
        Cell {
            when: Some(Moment::of(at, w)),
            ..Cell::default()
        }
    }

    pub(crate) fn below(self, below: impl Into<String>) -> Cell {
        Cell {
            below: below.into(),
            ..self
        }
    }
}

impl Table {
    /// A table whose columns have these texts.
    pub(crate) fn new(w: Words, name: &str, columns: &[&str], rows: Vec<Vec<Cell>>) -> Table {
        let columns = columns.iter();
        Table {
            name: name.to_owned(),
            columns: columns.map(|id| w.t(id).into_owned()).collect(),
            rows,
        }
    }

    /// Each cell of a row with its column.
    pub(crate) fn cells<'a>(
        &'a self,
        row: &'a [Cell],
    ) -> impl Iterator<Item = (&'a String, &'a Cell)> {
        self.columns.iter().zip(row)
    }
}

/// A link of a trail or of tabs.
pub(crate) struct Link {
    pub(crate) address: String,
    pub(crate) name: String,
    pub(crate) is_current: bool,
}

impl Link {
    pub(crate) fn to(address: impl Into<String>, name: impl Into<String>) -> Link {
        Link {
            address: address.into(),
            name: name.into(),
            is_current: false,
        }
    }
}

/// A page with one table.
#[derive(Template)]
#[template(path = "listing.html")]
pub(crate) struct Listing {
    pub(crate) shell: Shell,
    /// The pages above this one.
    pub(crate) trail: Vec<Link>,
    pub(crate) heading: String,
    pub(crate) about: String,
    pub(crate) done: Option<String>,
    /// Links to actions.
    pub(crate) buttons: Vec<Link>,
    pub(crate) tabs: Vec<Link>,
    /// The words that were searched, and the page that searches.
    pub(crate) search: Option<(String, String)>,
    pub(crate) table: Table,
    /// The text in place of a table without rows.
    pub(crate) empty: String,
    pub(crate) first: Option<String>,
    pub(crate) next: Option<String>,
}

impl Listing {
    /// Whether the visitor's roles have this permission.
    pub(crate) fn may(&self, permission: &str) -> bool {
        let mut readers = self.shell.reader.iter();
        readers.any(|reader| reader.may(permission))
    }

    /// A page of this section with a heading and a table only.
    pub(crate) async fn new(
        visitor: &Visitor,
        section: &'static str,
        heading: String,
        table: Table,
    ) -> Listing {
        Listing {
            shell: Shell::of(visitor, section, heading.clone()).await,
            trail: Vec::new(),
            heading,
            about: String::new(),
            done: None,
            buttons: Vec::new(),
            tabs: Vec::new(),
            search: None,
            table,
            empty: String::new(),
            first: None,
            next: None,
        }
    }

    /// Adds the links to the first and the next page. `parameters` are the other parameters of the address. A page without rows that has a
    /// next page says that only a part was searched, not that the list is empty.
    pub(crate) fn paged(
        self,
        path: &str,
        parameters: &[(&str, &str)],
        query: &ListQuery,
        next: Option<&String>,
    ) -> Listing {
        let address = |after: &str| {
            let parameters = parameters.iter().copied().chain([("after", after)]);
            with_query(path, &parameters.collect::<Vec<_>>())
        };
        let empty = match next {
            Some(_) => self.shell.w.t("searched-in-part").into_owned(),
            None => self.empty.clone(),
        };
        Listing {
            first: (!query.after.is_empty()).then(|| address("")),
            next: next.map(|next| address(next)),
            empty,
            ..self
        }
    }
}
