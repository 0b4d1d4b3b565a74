//! Conditions of a search: query parameters `attribute.NAME=[TYPE:][OPERATOR:]VALUE` beside those with fixed names, or
//! `attributes` of a body.
//!
//! [`wrkflw_core::search`] parses the values. This module reads them from a request and determines their types. The
//! caller gives a type, or definitions declare it.

use std::iter::repeat_n;

use axum::extract::FromRequestParts;
use axum::extract::Query as AxumQuery;
use axum::http::Uri;
use axum::http::request::Parts;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use utoipa::ToSchema;

use super::App;
use super::extract::{Query, malformed, refuse_nul};
use super::problem::Problem;
use super::value_error;
use wrkflw_core::graph::AttributeType;
use wrkflw_core::json::{Json, Node};
use wrkflw_core::search::{CONDITIONS_MAX, Condition, Given, Operator, UntypedCondition};
use wrkflw_engine::Identity;
use wrkflw_store::attributes::{self, Declared};

/// The limit is above the number of parameter names. The head of a request has room for thousands of parameters.
const PARAMETERS_MAX: usize = 50;
/// The prefix of the names of conditions.
const PREFIX: &str = "attribute.";

/// The conditions on attributes, and the other parameters. Unknown ones are refused.
pub(super) struct Search<T> {
    pub untyped: Vec<UntypedCondition>,
    pub query: T,
}

impl<T: DeserializeOwned> FromRequestParts<App> for Search<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Search<T>, Problem> {
        let whole = parts.uri.query().unwrap_or_default();
        refuse_nul(whole)?;
        let (mut untyped, mut others) = (Vec::new(), Vec::new());
        let pairs = || whole.split('&').filter(|pair| !pair.is_empty());
        if pairs().count() > PARAMETERS_MAX {
            let detail = format!("a search has at most {PARAMETERS_MAX} parameters");
            return Err(Problem::new("malformed_request", detail));
        }
        for pair in pairs() {
            match self::untyped(pair)? {
                Some(condition) => untyped.push(condition),
                None => others.push(pair),
            }
        }
        if untyped.len() > CONDITIONS_MAX {
            let detail = format!("a search has at most {CONDITIONS_MAX} conditions on attributes");
            return Err(Problem::new("malformed_request", detail));
        }
        parts.uri = uri(&others.join("&"))?;
        let Query(query) = Query::from_request_parts(parts, app).await?;
        Ok(Search { untyped, query })
    }
}

fn uri(query: &str) -> Result<Uri, Problem> {
    format!("/?{query}")
        .parse()
        .map_err(|_| Problem::new("malformed_request", "the query cannot be read"))
}

/// Parses a pair of name and value, if it is a condition.
fn untyped(pair: &str) -> Result<Option<UntypedCondition>, Problem> {
    let decoded = AxumQuery::<Vec<(String, String)>>::try_from_uri(&uri(pair)?);
    let AxumQuery(decoded) = decoded.map_err(|error| value_error::of_query(&error))?;
    let named = decoded.first().and_then(|(name, value)| {
        let attribute = name.strip_prefix(PREFIX)?;
        Some(UntypedCondition::parse(attribute, value))
    });
    Ok(named)
}

/// A condition on an attribute, in the body of a search.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AttributeCondition {
    /// The name of the attribute.
    #[schema(format = "name")]
    pub name: String,
    /// Needed where definitions declare different types.
    #[serde(rename = "type")]
    #[schema(inline)]
    pub kind: Option<ConditionType>,
    /// Default: `eq`.
    #[serde(default)]
    #[schema(inline)]
    pub op: ConditionOperator,
    /// A text (of a decimal or a timestamp, too; of bytes base64), a number or a boolean; a list of them for `in`; a boolean
    /// for `exists`.
    #[schema(value_type = Value)]
    pub value: Json,
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ConditionType {
    Text,
    Boolean,
    Decimal,
    Float,
    Timestamp,
    Bytes,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ConditionOperator {
    #[default]
    Eq,
    Ne,
    Gt,
    Gte,
    Lt,
    Lte,
    In,
    Prefix,
    Exists,
}

impl ConditionType {
    fn kind(self) -> AttributeType {
        match self {
            ConditionType::Text => AttributeType::Text,
            ConditionType::Boolean => AttributeType::Boolean,
            ConditionType::Decimal => AttributeType::Decimal,
            ConditionType::Float => AttributeType::Float,
            ConditionType::Timestamp => AttributeType::Timestamp,
            ConditionType::Bytes => AttributeType::Bytes,
        }
    }
}

impl ConditionOperator {
    fn operator(self) -> Operator {
        match self {
            ConditionOperator::Eq => Operator::Eq,
            ConditionOperator::Ne => Operator::Ne,
            ConditionOperator::Gt => Operator::Gt,
            ConditionOperator::Gte => Operator::Gte,
            ConditionOperator::Lt => Operator::Lt,
            ConditionOperator::Lte => Operator::Lte,
            ConditionOperator::In => Operator::In,
            ConditionOperator::Prefix => Operator::Prefix,
            ConditionOperator::Exists => Operator::Exists,
        }
    }
}

/// The conditions in the body of a search.
pub(super) fn of_body(
    conditions: Vec<AttributeCondition>,
) -> Result<Vec<UntypedCondition>, Problem> {
    if conditions.len() > CONDITIONS_MAX {
        let rule = format!("a search has at most {CONDITIONS_MAX} conditions on attributes");
        return Err(malformed("/attributes", &rule));
    }
    // A number counts by the digits that were sent.
    let text = |value: Node| match value {
        Node::String(text) | Node::Number(text) => Some(text),
        Node::Bool(is_so) => Some(is_so.to_string()),
        Node::Null | Node::Array(_) | Node::Object(_) => None,
    };
    let mut read = Vec::with_capacity(conditions.len());
    for (index, condition) in conditions.into_iter().enumerate() {
        let given = match condition.value.node() {
            Node::Array(items) => items
                .into_iter()
                .map(text)
                .collect::<Option<_>>()
                .map(Given::List),
            one => text(one).map(Given::Text),
        };
        let operator = condition.op.operator();
        let is_list = matches!(given, Some(Given::List(_)));
        let given = given.filter(|_| is_list == (operator == Operator::In));
        let Some(given) = given else {
            let pointer = format!("/attributes/{index}/value");
            let rule = match operator {
                Operator::In => "a list of texts, numbers or booleans",
                _ => "a text, a number or a boolean",
            };
            return Err(malformed(&pointer, rule));
        };
        let kind = condition.kind.map(ConditionType::kind);
        read.push(UntypedCondition::new(condition.name, kind, operator, given));
    }
    Ok(read)
}

/// Where the conditions of a search were given.
#[derive(Debug, Clone, Copy)]
pub(super) enum Origin {
    Query,
    Body,
}

impl Origin {
    /// The name of an attribute in the request.
    fn named(self, attribute: &str) -> String {
        match self {
            Origin::Query => format!("{PREFIX}{attribute}"),
            Origin::Body => attribute.to_owned(),
        }
    }

    /// The problem with a condition: it names the parameter, or this member of the condition in the body.
    fn problem(self, code: &str, name: &str, place: (usize, &str), detail: String) -> Problem {
        match self {
            Origin::Query => value_error::of_named(code, name, detail),
            Origin::Body => {
                let (index, member) = place;
                let pointer = format!("/attributes/{index}/{member}");
                value_error::wrong(code, &pointer, "malformed", detail)
            }
        }
    }
}

/// The conditions with the types of their attributes.
pub(super) async fn conditions(
    app: &App,
    who: &Identity,
    definition: Option<&str>,
    (untyped, origin): (Vec<UntypedCondition>, Origin),
) -> Result<Vec<Condition>, Problem> {
    if untyped.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<_> = untyped
        .iter()
        .map(|condition| condition.attribute.clone())
        .collect();
    let reader = app.engine.reader();
    let declared = attributes::declared(reader, who.tenant, definition, Some(&names)).await?;
    let mut conditions = Vec::with_capacity(untyped.len());
    for (index, condition) in untyped.into_iter().enumerate() {
        let name = origin.named(&condition.attribute);
        let types: Vec<_> = declared
            .iter()
            .filter(|one| one.name == condition.attribute)
            .map(|one| one.kind)
            .collect();
        if types.is_empty() {
            let all = attributes::declared(reader, who.tenant, definition, None).await?;
            let detail = undeclared(&name, definition, &all);
            return Err(origin.problem("invalid_request", &name, (index, "name"), detail));
        }
        let kind = kind(&condition, &types, &name, origin)
            .map_err(|detail| origin.problem("invalid_request", &name, (index, "type"), detail))?;
        let checked = condition.of(kind, base64).map_err(|detail| {
            let member = if condition.compares(kind) {
                "value"
            } else {
                "op"
            };
            let detail = format!("{name}: {detail}");
            origin.problem("malformed_request", &name, (index, member), detail)
        })?;
        conditions.push(checked);
    }
    Ok(conditions)
}

/// Decodes base64 with or without padding, in either alphabet.
fn base64(text: &str) -> Option<Vec<u8>> {
    // The width of a format has 16 bits, and a text may be longer.
    let missing = text.len().next_multiple_of(4) - text.len();
    let padded: String = text.chars().chain(repeat_n('=', missing)).collect();
    let bytes = STANDARD
        .decode(&padded)
        .or_else(|_| URL_SAFE.decode(&padded));
    bytes.ok()
}

/// The type of the attribute. The error says how to give it.
fn kind(
    condition: &UntypedCondition,
    types: &[AttributeType],
    name: &str,
    origin: Origin,
) -> Result<AttributeType, String> {
    let named = || {
        let names: Vec<_> = types.iter().map(|kind| kind.name()).collect();
        names.join(" and ")
    };
    match (condition.kind, types) {
        (Some(kind), types) if types.contains(&kind) => Ok(kind),
        (None, [kind]) => Ok(*kind),
        (Some(kind), _) => Err(format!(
            "{name} is declared as {}, not as {}",
            named(),
            kind.name()
        )),
        (None, _) => {
            let one = types[0].name();
            let given = match origin {
                Origin::Query => {
                    format!("the type before the operator, such as {name}={one}:eq:...")
                }
                Origin::Body => format!("the type, such as {one}"),
            };
            let declared = named();
            Err(format!(
                "{name} is declared as {declared}: give the definition, or {given}"
            ))
        }
    }
}

fn undeclared(name: &str, definition: Option<&str>, all: &[Declared]) -> String {
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
    format!("{name} is no attribute of {whose}; declared: {declared}")
}
