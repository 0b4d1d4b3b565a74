//! The optional parts of a list: query parameters with several values, a selection of the fields of its items, and the display
//! names of people and groups.

use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::StrDeserializer;
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

use serde::Serialize;
use utoipa::openapi::{RefOr, Schema};

use super::App;
use super::fields::rewritten;
use super::problem::Problem;
use super::value_error::of_parameter;
use wrkflw_core::ids::TenantId;
use wrkflw_core::instance::Candidate;
use wrkflw_store::names::{self, DisplayNames};

/// Reads several values: separated by commas in a query, a list in a body.
pub(super) fn commas<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    values: D,
) -> Result<Vec<T>, D::Error> {
    values.deserialize_any(Several(PhantomData))
}

struct Several<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Several<T> {
    type Value = Vec<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of names")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Vec<T>, E> {
        let value = |text| T::deserialize(StrDeserializer::<E>::new(text));
        text.split(',').map(value).collect()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Vec<T>, A::Error> {
        let mut all = Vec::new();
        while let Some(value) = values.next_element()? {
            all.push(value);
        }
        Ok(all)
    }
}

/// The longest text of a search for words, in characters.
const WORDS_CHARS_MAX: usize = 200;

/// Checks a search for words.
pub(super) fn words(text: Option<String>) -> Result<Option<String>, Problem> {
    let has_word = |text: &String| {
        text.chars()
            .any(|char| !char.is_ascii() || char.is_ascii_alphanumeric())
    };
    match text {
        Some(text) if text.chars().count() > WORDS_CHARS_MAX || !has_word(&text) => {
            let detail =
                format!("q has at least one word, and at most {WORDS_CHARS_MAX} characters");
            Err(of_parameter("q", detail))
        }
        text => Ok(text),
    }
}

/// The members of the items of a list that a request names; none for all.
#[derive(Debug, Clone)]
pub(super) struct Fields(Option<BTreeSet<String>>);

impl Fields {
    /// Refuses names that no item has, by the schemas of the items.
    pub(super) fn of(names: Vec<String>, schemas: &[RefOr<Schema>]) -> Result<Fields, Problem> {
        if names.is_empty() {
            return Ok(Fields(None));
        }
        let known = members(schemas);
        if let Some(unknown) = names.iter().find(|name| !known.contains(*name)) {
            return Err(unknown_field(unknown, &known));
        }
        Ok(Fields(Some(names.into_iter().collect())))
    }

    /// The text of a page whose items have these members only.
    pub(super) fn text(&self, page: &impl Serialize) -> String {
        let text = serde_json::to_string(page).expect("views serialise");
        match &self.0 {
            Some(names) => rewritten(text.as_bytes(), names),
            None => text,
        }
    }
}

/// The problem of a request for a member that no item of a list has.
pub(super) fn unknown_field(unknown: &str, known: &BTreeSet<String>) -> Problem {
    let names: Vec<_> = known.iter().map(String::as_str).collect();
    let detail = format!("fields: {unknown} is none of {}", names.join(", "));
    of_parameter("fields", detail)
}

/// The names of the members that these schemas declare themselves.
fn members(schemas: &[RefOr<Schema>]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for schema in schemas {
        let schema = serde_json::to_value(schema).expect("schemas serialise");
        let parts = schema["allOf"].as_array().into_iter().flatten();
        for part in parts.chain([&schema]) {
            let declared = part["properties"].as_object().into_iter().flatten();
            names.extend(declared.map(|(name, _)| name.clone()));
        }
    }
    names
}

/// The people and groups whose names an answer has.
#[derive(Debug, Default)]
pub(super) struct NamedIds {
    people: BTreeSet<String>,
    groups: BTreeSet<String>,
}

impl NamedIds {
    pub(super) fn person(&mut self, id: &str) {
        if !self.people.contains(id) {
            self.people.insert(id.to_owned());
        }
    }

    pub(super) fn candidate(&mut self, candidate: &Candidate) {
        match candidate {
            Candidate::User(id) => self.person(id),
            Candidate::Group(group) => self.group(group),
            Candidate::Member { person, group } => {
                self.person(person);
                self.group(group);
            }
        }
    }

    fn group(&mut self, id: &str) {
        if !self.groups.contains(id) {
            self.groups.insert(id.to_owned());
        }
    }

    /// Reads the names.
    pub(super) async fn names(self, app: &App, tenant: TenantId) -> Result<DisplayNames, Problem> {
        let list = |ids: BTreeSet<String>| ids.into_iter().collect::<Vec<_>>();
        let (people, groups) = (list(self.people), list(self.groups));
        let names = names::display(app.engine.reader(), tenant, &people, &groups);
        Ok(names.await?)
    }
}
