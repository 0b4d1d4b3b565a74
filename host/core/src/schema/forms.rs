//! The allowed values of each keyword of a schema. Without the feature `schema`, only this module checks a schema, so that the tests of a
//! flow refuse the same schemas as publication. With the feature, the validator checks the same and more: references, patterns and cost.

use std::collections::BTreeSet;

use serde_json::Value;

use super::SchemaError;
use crate::json::{Json, escaped};

/// The form of a keyword's value.
#[derive(Debug, Clone, Copy)]
enum Form {
    Boolean,
    /// A whole number, not below 0.
    Count,
    /// A list of any values.
    List,
    /// A map of lists of different texts.
    MapOfTexts,
    Number,
    /// A number above 0.
    Positive,
    Schema,
    /// A list of at least one schema.
    Schemas,
    /// A map of schemas.
    SchemasByName,
    Text,
    /// A list of different texts.
    Texts,
    /// The name of a type, or a list of them.
    Types,
}

use Form::{
    Boolean, Count, List, MapOfTexts, Number, Positive, Schemas, SchemasByName, Text, Texts, Types,
};

/// The keywords of the dialect whose values have a form.
const KEYWORDS: &[(&str, Form)] = &[
    ("$anchor", Text),
    ("$comment", Text),
    ("$defs", SchemasByName),
    ("$dynamicAnchor", Text),
    ("$id", Text),
    ("$recursiveAnchor", Text),
    ("$ref", Text),
    ("$schema", Text),
    ("additionalProperties", Form::Schema),
    ("allOf", Schemas),
    ("anyOf", Schemas),
    ("contains", Form::Schema),
    ("contentEncoding", Text),
    ("contentMediaType", Text),
    ("contentSchema", Form::Schema),
    ("definitions", SchemasByName),
    ("dependentRequired", MapOfTexts),
    ("dependentSchemas", SchemasByName),
    ("deprecated", Boolean),
    ("description", Text),
    ("else", Form::Schema),
    ("enum", List),
    ("examples", List),
    ("exclusiveMaximum", Number),
    ("exclusiveMinimum", Number),
    ("format", Text),
    ("if", Form::Schema),
    ("items", Form::Schema),
    ("maxContains", Count),
    ("maxItems", Count),
    ("maxLength", Count),
    ("maxProperties", Count),
    ("maximum", Number),
    ("minContains", Count),
    ("minItems", Count),
    ("minLength", Count),
    ("minProperties", Count),
    ("minimum", Number),
    ("multipleOf", Positive),
    ("not", Form::Schema),
    ("oneOf", Schemas),
    ("pattern", Text),
    ("patternProperties", SchemasByName),
    ("prefixItems", Schemas),
    ("properties", SchemasByName),
    ("propertyNames", Form::Schema),
    ("readOnly", Boolean),
    ("required", Texts),
    ("then", Form::Schema),
    ("title", Text),
    ("type", Types),
    ("unevaluatedItems", Form::Schema),
    ("unevaluatedProperties", Form::Schema),
    ("uniqueItems", Boolean),
    ("writeOnly", Boolean),
];
const TYPES: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];

/// Checks the values of all keywords, from the outside to the inside. The nesting of a JSON text is bounded, and so is the recursion.
pub(super) fn check(document: &Json) -> Result<(), SchemaError> {
    schema(String::new(), &document.value())
}

fn schema(pointer: String, value: &Value) -> Result<(), SchemaError> {
    let members = match value {
        Value::Object(members) => members,
        Value::Bool(_) => return Ok(()),
        _ => return Err(refused(pointer, name_of(Form::Schema))),
    };
    for (keyword, form) in KEYWORDS {
        if let Some(value) = members.get(*keyword) {
            keyword_of(format!("{pointer}/{keyword}"), *form, value)?;
        }
    }
    Ok(())
}

fn keyword_of(pointer: String, form: Form, value: &Value) -> Result<(), SchemaError> {
    let fits = match form {
        Boolean => value.is_boolean(),
        Count => is_count(value),
        List => value.is_array(),
        MapOfTexts => value
            .as_object()
            .is_some_and(|of| of.values().all(are_texts)),
        Number => value.is_number(),
        Positive => value.as_f64().is_some_and(|number| number > 0.0),
        Text => value.is_string(),
        Texts => are_texts(value),
        Types => are_types(value),
        Form::Schema => return schema(pointer, value),
        Schemas => {
            let items = value.as_array().filter(|items| !items.is_empty());
            let Some(items) = items else {
                return Err(refused(pointer, name_of(form)));
            };
            let mut places = items.iter().enumerate();
            return places.try_for_each(|(place, item)| schema(format!("{pointer}/{place}"), item));
        }
        SchemasByName => {
            let Some(members) = value.as_object() else {
                return Err(refused(pointer, name_of(form)));
            };
            let mut members = members.iter();
            return members.try_for_each(|(name, item)| schema(member(&pointer, name), item));
        }
    };
    if fits {
        Ok(())
    } else {
        Err(refused(pointer, name_of(form)))
    }
}

fn is_count(value: &Value) -> bool {
    value
        .as_f64()
        .is_some_and(|number| number >= 0.0 && number.fract() == 0.0)
}

fn are_texts(value: &Value) -> bool {
    value.as_array().is_some_and(|items| {
        let mut seen = BTreeSet::new();
        items
            .iter()
            .all(|item| item.as_str().is_some_and(|text| seen.insert(text)))
    })
}

fn are_types(value: &Value) -> bool {
    let is_type = |item: &Value| item.as_str().is_some_and(|name| TYPES.contains(&name));
    match value.as_array() {
        Some(items) => !items.is_empty() && items.iter().all(is_type) && are_texts(value),
        None => is_type(value),
    }
}

/// The name of a form.
fn name_of(form: Form) -> &'static str {
    match form {
        Boolean => "true or false",
        Count => "a whole number that is not below 0",
        List => "a list",
        MapOfTexts => "an object whose members are lists of different texts",
        Number => "a number",
        Positive => "a number above 0",
        Form::Schema => "a schema: an object, true or false",
        Schemas => "a list of at least one schema",
        SchemasByName => "an object whose members are schemas",
        Text => "a text",
        Texts => "a list of different texts",
        Types => {
            "a type or a list of different types, each array, boolean, integer, null, number, object or string"
        }
    }
}

fn member(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", escaped(name))
}

fn refused(pointer: String, form: &str) -> SchemaError {
    SchemaError {
        pointer,
        detail: format!("this must be {form}"),
    }
}
