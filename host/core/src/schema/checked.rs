//! Schemas that documents are held against.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::Value;

use super::cost::Cost;
use super::{
    DOCUMENT_BYTES_MAX, JUDGING_MAX, LISTING_MAX, MESSAGE_CHARS_MAX, PATTERN_BYTES_MAX, QUICK_MAX,
    SchemaError, VIOLATIONS_MAX, bounds, pattern,
};
use crate::answer::Violation;
use crate::json::Json;

/// A compiled schema. Cheap to clone.
#[derive(Clone)]
pub struct Schema {
    validator: Arc<Validator>,
    cost: Cost,
    /// It was held against the bounds for new ones.
    admitted: bool,
}

impl Schema {
    /// Compiles what was taken before, under the bounds of its time.
    pub fn compile(document: &Json) -> Result<Schema, SchemaError> {
        let cost = bounds::check(document, false)?;
        Schema::built(document, cost, false)
    }

    /// Checks and compiles what is to be published or offered. Refuses also what could take longer than
    /// [`JUDGING_MAX`], and says what it would take.
    pub fn admit(document: &Json) -> Result<Schema, SchemaError> {
        let cost = bounds::check(document, true)?;
        let worst = cost.judging(DOCUMENT_BYTES_MAX);
        if worst > JUDGING_MAX {
            return Err(SchemaError {
                pointer: String::new(),
                detail: format!(
                    "checking the worst document of {DOCUMENT_BYTES_MAX} bytes could take {}, and at most {} \
                     ms are allowed; use plainer patterns, shorter enumerations, and fewer alternatives for \
                     what may come often",
                    shown(worst),
                    JUDGING_MAX.as_millis()
                ),
            });
        }
        Schema::built(document, cost, true)
    }

    fn built(document: &Json, cost: Cost, admitted: bool) -> Result<Schema, SchemaError> {
        let mut value = document.value();
        if let Value::Object(members) = &mut value {
            // All references are local, so an id would only shift what they are read against.
            members.remove("$id");
        }
        let patterns = PatternOptions::regex()
            .size_limit(PATTERN_BYTES_MAX)
            .dfa_size_limit(pattern::TABLE_BYTES_MAX);
        jsonschema::options()
            .with_draft(Draft::Draft202012)
            .with_pattern_options(patterns)
            .should_validate_formats(true)
            .offline()
            .build(&value)
            .map(|validator| Schema {
                validator: Arc::new(validator),
                cost,
                admitted,
            })
            .map_err(|error| SchemaError {
                pointer: error.instance_path().as_str().to_owned(),
                detail: shortened(&error.to_string()),
            })
    }

    /// Whether it came through [`Schema::admit`].
    pub fn is_admitted(&self) -> bool {
        self.admitted
    }

    /// How long it takes at the most to tell whether a document of so many bytes satisfies the schema.
    pub fn judging(&self, bytes: usize) -> Duration {
        let judging = self.cost.judging(bytes);
        if judging > JUDGING_MAX {
            // It is not begun.
            return Duration::ZERO;
        }
        judging
    }

    /// How long [`Schema::violations`] takes at the most. Where only a list of what is wrong would take long, this looks
    /// whether something is.
    pub fn effort(&self, data: &Json) -> Duration {
        let bytes = data.as_str().len();
        let (judging, listing) = (self.judging(bytes), self.cost.listing(bytes));
        if listing > LISTING_MAX {
            return judging;
        }
        let is_quick = judging <= QUICK_MAX && judging > Duration::ZERO;
        if is_quick && listing > QUICK_MAX && self.validator.is_valid(&data.value()) {
            return judging;
        }
        judging + listing
    }

    /// What in `data` is against the schema, in the schema's order; at most [`VIOLATIONS_MAX`]. What would take too long
    /// is not begun, and is a violation itself.
    pub fn violations(&self, data: &Json) -> Vec<Violation> {
        self.told(data, |value| {
            let errors = self.validator.iter_errors(value);
            errors
                .flat_map(|error| violations_of(&error))
                .take(VIOLATIONS_MAX)
                .collect()
        })
    }

    /// The first of them, for those who tell no others: the rest is not looked for.
    pub fn first_violation(&self, data: &Json) -> Option<Violation> {
        let first = |value: &Value| {
            let error = self.validator.validate(value).err();
            error.iter().flat_map(violations_of).take(1).collect()
        };
        self.told(data, first).into_iter().next()
    }

    /// Nothing for a document that satisfies the schema; else what `tell` says.
    fn told(&self, data: &Json, tell: impl FnOnce(&Value) -> Vec<Violation>) -> Vec<Violation> {
        let bytes = data.as_str().len();
        if self.cost.judging(bytes) > JUDGING_MAX {
            let message = format!(
                "with {bytes} bytes this takes too long to check against its schema; shorten it"
            );
            return vec![violation(String::new(), "too_costly", &message)];
        }
        let value = data.value();
        if self.validator.is_valid(&value) {
            Vec::new()
        } else if self.cost.listing(bytes) > LISTING_MAX {
            let message = "this does not satisfy its schema, and is too long to tell in what";
            vec![violation(String::new(), "schema", message)]
        } else {
            tell(&value)
        }
    }
}

/// A time as people say it.
fn shown(time: Duration) -> String {
    const LONG: Duration = Duration::from_mins(1);
    if time > LONG {
        "more than a minute".to_owned()
    } else {
        format!("{} ms", time.as_millis())
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

pub(super) fn member(place: &str, name: &str) -> String {
    format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"))
}

fn shortened(message: &str) -> String {
    match message.char_indices().nth(MESSAGE_CHARS_MAX) {
        None => message.to_owned(),
        Some((end, _)) => format!("{}…", &message[..end]),
    }
}
