//! Query parameters of a search: `attribute.NAME=[TYPE:][OPERATOR:]VALUE` beside those that are known by name.
//!
//! What a value means is settled in [`crate::domain::search`]; here are its place in a request and its type, which is the
//! caller's word or what definitions declare.

use axum::extract::FromRequestParts;
use axum::extract::Query as AxumQuery;
use axum::http::Uri;
use axum::http::request::Parts;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde::de::DeserializeOwned;

use super::App;
use super::extract::{Query, refuse_nul};
use super::problem::Problem;
use crate::domain::graph::AttributeType;
use crate::domain::search::{CONDITIONS_MAX, Condition, Wish};
use crate::engine::Identity;
use crate::store::attributes::Declared;

/// What the names of conditions begin with.
const PREFIX: &str = "attribute.";

/// The conditions on attributes, and all other parameters, of which unknown ones are refused.
pub(super) struct Search<T> {
    pub wishes: Vec<Wish>,
    pub query: T,
}

impl<T: DeserializeOwned> FromRequestParts<App> for Search<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Search<T>, Problem> {
        let whole = parts.uri.query().unwrap_or_default();
        refuse_nul(whole)?;
        let (mut wishes, mut others) = (Vec::new(), Vec::new());
        for pair in whole.split('&').filter(|pair| !pair.is_empty()) {
            match wish(pair)? {
                Some(wish) => wishes.push(wish),
                None => others.push(pair),
            }
        }
        if wishes.len() > CONDITIONS_MAX {
            let detail = format!("a search has at most {CONDITIONS_MAX} conditions on attributes");
            return Err(Problem::new("malformed_request", detail));
        }
        parts.uri = uri(&others.join("&"))?;
        let Query(query) = Query::from_request_parts(parts, app).await?;
        Ok(Search { wishes, query })
    }
}

fn uri(query: &str) -> Result<Uri, Problem> {
    format!("/?{query}")
        .parse()
        .map_err(|_| Problem::new("malformed_request", "the query cannot be read"))
}

/// The condition that a pair of name and value is, if it is one.
fn wish(pair: &str) -> Result<Option<Wish>, Problem> {
    let decoded = AxumQuery::<Vec<(String, String)>>::try_from_uri(&uri(pair)?);
    let AxumQuery(decoded) =
        decoded.map_err(|error| Problem::new("malformed_request", error.body_text()))?;
    let named = decoded.first().and_then(|(name, value)| {
        let attribute = name.strip_prefix(PREFIX)?;
        Some(Wish::parse(attribute, value))
    });
    Ok(named)
}

/// The conditions that the wishes are, once each has a type.
pub(super) async fn conditions(
    app: &App,
    who: &Identity,
    definition: Option<&str>,
    wishes: Vec<Wish>,
) -> Result<Vec<Condition>, Problem> {
    if wishes.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<_> = wishes.iter().map(|wish| wish.attribute.clone()).collect();
    let store = app.engine.store();
    let declared = store
        .declared_attributes(who.tenant, definition, Some(&names))
        .await?;
    let mut conditions = Vec::with_capacity(wishes.len());
    for wish in wishes {
        let types: Vec<_> = declared
            .iter()
            .filter(|one| one.name == wish.attribute)
            .map(|one| one.kind)
            .collect();
        if types.is_empty() {
            let all = store
                .declared_attributes(who.tenant, definition, None)
                .await?;
            return Err(undeclared(&wish, definition, &all));
        }
        let kind = kind(&wish, &types)?;
        let condition = wish.of(kind, base64).map_err(|detail| {
            let detail = format!("{PREFIX}{}: {detail}", wish.attribute);
            Problem::new("malformed_request", detail)
        })?;
        conditions.push(condition);
    }
    Ok(conditions)
}

/// With or without padding, in either alphabet.
fn base64(text: &str) -> Option<Vec<u8>> {
    let padded = format!("{text:=<width$}", width = text.len().next_multiple_of(4));
    let bytes = STANDARD
        .decode(&padded)
        .or_else(|_| URL_SAFE.decode(&padded));
    bytes.ok()
}

fn kind(wish: &Wish, types: &[AttributeType]) -> Result<AttributeType, Problem> {
    let named = || {
        let names: Vec<_> = types.iter().map(|kind| kind.name()).collect();
        names.join(" and ")
    };
    match (wish.kind, types) {
        (Some(kind), types) if types.contains(&kind) => Ok(kind),
        (Some(kind), _) => Err(Problem::new(
            "invalid_request",
            format!(
                "{PREFIX}{} is declared as {}, not as {}",
                wish.attribute,
                named(),
                kind.name()
            ),
        )),
        (None, [kind]) => Ok(*kind),
        (None, _) => Err(Problem::new(
            "invalid_request",
            format!(
                "{PREFIX}{0} is declared as {1}: give the definition, or the type before the operator, \
                 such as {PREFIX}{0}={2}:eq:...",
                wish.attribute,
                named(),
                types[0].name()
            ),
        )),
    }
}

fn undeclared(wish: &Wish, definition: Option<&str>, all: &[Declared]) -> Problem {
    let mut names: Vec<_> = all.iter().map(|one| one.name.as_str()).collect();
    names.dedup();
    let declared = if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    };
    let whose = definition.map_or("any definition".to_owned(), |key| {
        format!("the definition {key}")
    });
    let detail = format!(
        "{PREFIX}{} is no attribute of {whose}; declared: {declared}",
        wish.attribute
    );
    Problem::new("invalid_request", detail)
}
