//! JSON Schema 2020-12 for an instance's data and the input of transitions.
//!
//! Schemas come from components, so they are untrusted. Nothing is fetched, and patterns run in linear time. A schema whose
//! references would expand too far is refused before its compilation. [`cost`] computes an upper bound on the time to check
//! the worst document. A schema with too high a bound is refused when it is published. A violation has the field's JSON
//! Pointer and never the value, since data may be confidential.
//!
//! Hosts are built with the feature `schema`. Without it, [`Schema`] checks no documents, and checks only the values of a schema's
//! keywords: the validator takes longer to compile than the rest of this crate, and the tests of a flow do not need it.

#[cfg(feature = "schema")]
mod bounds;
mod cache;
#[cfg(feature = "schema")]
mod checked;
#[cfg(feature = "schema")]
mod cost;
#[cfg(any(test, not(feature = "schema")))]
mod forms;
#[cfg(feature = "schema")]
mod pattern;
#[cfg(feature = "schema")]
mod table;
#[cfg(not(feature = "schema"))]
mod unchecked;

use std::time::Duration;

#[cfg(feature = "schema")]
pub use bounds::NESTING_MAX;
pub use cache::JsonCache;
#[cfg(feature = "schema")]
pub use checked::Schema;
#[cfg(feature = "schema")]
pub(crate) use pattern::{PATTERN_BYTES_MAX, TABLES_BYTES_MAX};
#[cfg(not(feature = "schema"))]
pub use unchecked::Schema;

/// Violations reported at once.
pub const VIOLATIONS_MAX: usize = 50;
/// Characters of a violation's message.
pub const MESSAGE_CHARS_MAX: usize = 300;
/// Maximum number of values of an enumeration that a violation lists.
pub(crate) const OPTIONS_MAX: usize = 100;
/// Maximum size of these values together.
pub(crate) const OPTIONS_BYTES_MAX: usize = 4 * 1024;
/// Maximum size of the expected value in a violation, as JSON.
pub(crate) const EXPECTED_BYTES_MAX: usize = OPTIONS_BYTES_MAX;
/// The codes of violations: keywords of JSON Schema, and two of documents whose check or list would take too long.
pub const CODES: [&str; 29] = [
    "additionalProperties",
    "anyOf",
    "const",
    "contains",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "falseSchema",
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "propertyNames",
    "required",
    "schema",
    "too_costly",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];
/// Bytes of the largest document that is checked against a schema.
pub(crate) const DOCUMENT_BYTES_MAX: usize = 64 * 1024;
/// The upper limit on the time to check whether a document satisfies a schema.
pub(crate) const JUDGING_MAX: Duration = Duration::from_millis(100);
/// The upper limit on the time to list a document's violations. If it could take longer, there is one general violation.
pub(crate) const LISTING_MAX: Duration = Duration::from_millis(20);

/// Work that takes at most this long runs on the calling thread.
pub const QUICK_MAX: Duration = Duration::from_millis(1);
/// The upper bound on the time to compile a schema.
pub(crate) const COMPILE_MAX: Duration = Duration::from_millis(50);
/// The time to compile a schema of at most this size without patterns is negligible.
const PLAIN_BYTES_MAX: usize = 2 * 1024;

/// The upper bound on the time to compile this schema.
pub fn compile_max(document: &str) -> Duration {
    if document.len() <= PLAIN_BYTES_MAX && !document.contains("pattern") {
        Duration::ZERO
    } else {
        COMPILE_MAX
    }
}

/// Why a document is not a valid schema for the host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail} at {}", if pointer.is_empty() { "the top of the schema" } else { pointer })]
pub struct SchemaError {
    /// JSON Pointer into the schema.
    pub pointer: String,
    pub detail: String,
}

#[cfg(all(test, feature = "schema"))]
mod tests;
