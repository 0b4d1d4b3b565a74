//! JSON Schema 2020-12 for an instance's data and a task's form.
//!
//! Schemas come from components, so they are not trusted: nothing is fetched, patterns run in linear
//! time, and a schema whose references would multiply its work is refused before it is compiled.
//! A violation names the field by its JSON Pointer, never the value: data may be confidential.

mod bounds;

use std::fmt;
use std::sync::Arc;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::Value;

use super::answer::Violation;
use super::json::Json;

pub use bounds::{NESTING_MAX, PATTERNS_MAX, SCHEMA_BYTES_MAX, SUBSCHEMAS_MAX};

/// Violations reported at once.
pub const VIOLATIONS_MAX: usize = 50;
/// Characters of a violation's message.
pub const MESSAGE_CHARS_MAX: usize = 300;
/// Bytes that one compiled pattern may take, and again the cache it matches with.
pub const PATTERN_BYTES_MAX: usize = 256 * 1024;

/// A compiled schema. Cheap to clone.
#[derive(Clone)]
pub struct Schema(Arc<Validator>);

/// Why a document is no schema that the host will use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail} at {}", if pointer.is_empty() { "the top of the schema" } else { pointer })]
pub struct SchemaError {
    /// JSON Pointer into the schema.
    pub pointer: String,
    pub detail: String,
}

impl Schema {
    /// Checks and compiles `document`.
    pub fn compile(document: &Json) -> Result<Schema, SchemaError> {
        bounds::check(document)?;
        let mut value = document.value();
        if let Value::Object(members) = &mut value {
            // All references are local, so an id would only shift what they are read against.
            members.remove("$id");
        }
        let patterns = PatternOptions::regex()
            .size_limit(PATTERN_BYTES_MAX)
            .dfa_size_limit(PATTERN_BYTES_MAX);
        jsonschema::options()
            .with_draft(Draft::Draft202012)
            .with_pattern_options(patterns)
            .should_validate_formats(true)
            .offline()
            .build(&value)
            .map(|validator| Schema(Arc::new(validator)))
            .map_err(|error| SchemaError {
                pointer: error.instance_path().as_str().to_owned(),
                detail: shortened(&error.to_string()),
            })
    }

    /// What in `data` is against the schema, in the schema's order; at most [`VIOLATIONS_MAX`].
    pub fn violations(&self, data: &Json) -> Vec<Violation> {
        let value = data.value();
        if self.0.is_valid(&value) {
            return Vec::new();
        }
        self.0
            .iter_errors(&value)
            .flat_map(|error| violations_of(&error))
            .take(VIOLATIONS_MAX)
            .collect()
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Schema")
    }
}

/// One error of the library, as the fields that a form would mark: a missing member is marked itself,
/// not the object around it.
fn violations_of(error: &ValidationError<'_>) -> Vec<Violation> {
    let place = error.instance_path().as_str();
    let code = error.kind().keyword();
    if let ValidationErrorKind::Required { property } = error.kind() {
        let name = property.as_str().unwrap_or_default();
        return vec![violation(member(place, name), code, "this is required")];
    }
    if let ValidationErrorKind::AdditionalProperties { unexpected }
    | ValidationErrorKind::UnevaluatedProperties { unexpected } = error.kind()
    {
        return unexpected
            .iter()
            .take(VIOLATIONS_MAX)
            .map(|name| violation(member(place, name), code, "this is not expected here"))
            .collect();
    }
    let message = error.masked_with("this").to_string();
    vec![violation(place.to_owned(), code, &message)]
}

fn violation(field: String, code: &str, message: &str) -> Violation {
    Violation {
        field,
        code: code.to_owned(),
        message: shortened(message),
    }
}

fn member(place: &str, name: &str) -> String {
    format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"))
}

fn shortened(message: &str) -> String {
    match message.char_indices().nth(MESSAGE_CHARS_MAX) {
        None => message.to_owned(),
        Some((end, _)) => format!("{}…", &message[..end]),
    }
}

#[cfg(test)]
mod tests;
