//! Compiled schemas, and the violations of documents.

use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::Value;

use super::cost::Cost;
use super::{
    DOCUMENT_BYTES_MAX, EXPECTED_BYTES_MAX, JUDGING_MAX, LISTING_MAX, MESSAGE_CHARS_MAX,
    OPTIONS_BYTES_MAX, OPTIONS_MAX, PATTERN_BYTES_MAX, QUICK_MAX, SchemaError, TABLES_BYTES_MAX,
    VIOLATIONS_MAX, bounds, table,
};
use crate::answer::Violation;
use crate::json::{Json, escaped};

/// Estimated bytes in memory for a byte of a schema's text: each keyword becomes a node with its path.
const BYTES_PER_BYTE: usize = 32;

/// A compiled schema. Cheap to clone.
#[derive(Clone)]
pub struct Schema {
    validator: Arc<Validator>,
    cost: Cost,
    /// Bytes of the tables of its patterns, for each thread that matched all of them.
    tables: usize,
    /// Bytes of its text.
    text: usize,
}

impl Schema {
    /// Compiles a schema that was admitted earlier. Bounds that were introduced since do not apply.
    pub fn compile(document: &Json) -> Result<Schema, SchemaError> {
        let (cost, tables) = bounds::check(document, false)?;
        Schema::built(document, cost, tables)
    }

    /// Checks and compiles a schema that is to be published. Also refuses a schema whose check of a document
    /// could take longer than [`JUDGING_MAX`], or more memory than [`TABLES_BYTES_MAX`].
    pub fn admit(document: &Json) -> Result<Schema, SchemaError> {
        let (cost, tables) = bounds::check(document, true)?;
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
        if tables > TABLES_BYTES_MAX {
            return Err(SchemaError {
                pointer: String::new(),
                detail: format!(
                    "matching its patterns could take tables of more than {TABLES_BYTES_MAX} bytes; repeat \
                     less, use fewer different patterns, or use `maxLength`"
                ),
            });
        }
        Schema::built(document, cost, tables)
    }

    fn built(document: &Json, cost: Cost, tables: usize) -> Result<Schema, SchemaError> {
        let mut value = document.value();
        if let Value::Object(members) = &mut value {
            // All references are local. An id would only change the base URI against which they are resolved.
            members.remove("$id");
        }
        let patterns = PatternOptions::regex()
            .size_limit(PATTERN_BYTES_MAX)
            .dfa_size_limit(table::TABLE_BYTES_MAX);
        jsonschema::options()
            .with_draft(Draft::Draft202012)
            .with_pattern_options(patterns)
            .should_validate_formats(true)
            .offline()
            .build(&value)
            .map(|validator| Schema {
                validator: Arc::new(validator),
                cost,
                tables,
                text: document.as_str().len(),
            })
            .map_err(|error| SchemaError {
                pointer: error.instance_path().as_str().to_owned(),
                detail: shortened(&error.to_string()),
            })
    }

    /// Bytes that it may take in memory: its nodes and the tables of its patterns. Each thread that uses the schema may take
    /// the tables again.
    pub fn weight(&self) -> usize {
        self.tables + self.text * BYTES_PER_BYTE
    }

    #[cfg(test)]
    pub(super) fn tables(&self) -> usize {
        self.tables
    }

    /// The upper bound on the time to check whether a document of this size satisfies the schema.
    pub fn judging(&self, bytes: usize) -> Duration {
        let judging = self.cost.judging(bytes);
        if judging > JUDGING_MAX {
            // Such a check is not begun.
            return Duration::ZERO;
        }
        judging
    }

    /// The upper bound on the time of [`Schema::violations`]. If only listing violations would take long, this checks
    /// whether there are any.
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

    /// The violations of the schema in `data`, in the schema's order, at most [`VIOLATIONS_MAX`]. If the check or the
    /// list would take too long, there is one general violation instead.
    pub fn violations(&self, data: &Json) -> Vec<Violation> {
        self.violations_by(data, |value| {
            let errors = self.validator.iter_errors(value);
            errors
                .flat_map(|error| violations_of(&error))
                .take(VIOLATIONS_MAX)
                .collect()
        })
    }

    /// The first violation, for callers that report no others.
    pub(crate) fn first_violation(&self, data: &Json) -> Option<Violation> {
        let first = |value: &Value| {
            let error = self.validator.validate(value).err();
            error.iter().flat_map(violations_of).take(1).collect()
        };
        self.violations_by(data, first).into_iter().next()
    }

    /// The violations that `list` finds. It is not called for a document that satisfies the schema or takes too long.
    fn violations_by(
        &self,
        data: &Json,
        list: impl FnOnce(&Value) -> Vec<Violation>,
    ) -> Vec<Violation> {
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
            let message =
                "this does not satisfy its schema, and it is too long to list the violations";
            vec![violation(String::new(), "schema", message)]
        } else {
            list(&value)
        }
    }
}

/// A time for people to read.
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

/// The violations in one error of the library. A missing member is reported at its own place, where a form shows it,
/// not at the object around it.
fn violations_of(error: &ValidationError<'_>) -> Vec<Violation> {
    let place = error.instance_path().as_str();
    let code = error.kind().keyword();
    let expected = expected(error.kind());
    let at = |place: String, message: &str| Violation {
        expected: expected.clone(),
        ..violation(place, code, message)
    };
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            vec![at(member(place, name), "this is required")]
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => unexpected
            .iter()
            .take(VIOLATIONS_MAX)
            .map(|name| at(member(place, name), "this is not expected here"))
            .collect(),
        ValidationErrorKind::Enum { options } => vec![Violation {
            message: listed(options),
            ..at(place.to_owned(), "")
        }],
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            vec![at(place.to_owned(), &unfitting(place, context))]
        }
        ValidationErrorKind::OneOfMultipleValid { .. } => {
            let message = "this fits more than one of its forms, and it must fit exactly one";
            vec![at(place.to_owned(), message)]
        }
        _ => vec![at(place.to_owned(), &error.masked_with("this").to_string())],
    }
}

/// The first violation of each of the forms, if none of them fits.
fn unfitting(place: &str, forms: &[Vec<ValidationError<'static>>]) -> String {
    let mut message = format!("this fits none of its {} forms", forms.len());
    for (index, errors) in forms.iter().enumerate() {
        if message.len() > MESSAGE_CHARS_MAX {
            // The rest would be cut off.
            break;
        }
        let Some(first) = errors.first().and_then(|error| violations_of(error).pop()) else {
            continue;
        };
        let below = first.field.strip_prefix(place).unwrap_or(&first.field);
        let colon = if below.is_empty() { "" } else { ": " };
        let (number, why) = (index + 1, first.message);
        write!(message, "; form {number}: {below}{colon}{why}")
            .expect("a String takes every write");
    }
    message
}

/// The value of the keyword in the schema: a limit, a name, a value. True for a keyword with other schemas, and for a missing
/// member; false for members that are not allowed. None if it is longer than [`EXPECTED_BYTES_MAX`].
fn expected(kind: &ValidationErrorKind) -> Option<Json> {
    use ValidationErrorKind as Kind;
    let value = match kind {
        Kind::ExclusiveMaximum { limit }
        | Kind::ExclusiveMinimum { limit }
        | Kind::Maximum { limit }
        | Kind::Minimum { limit } => limit.clone(),
        Kind::MaxItems { limit }
        | Kind::MaxLength { limit }
        | Kind::MaxProperties { limit }
        | Kind::MinItems { limit }
        | Kind::MinLength { limit }
        | Kind::MinProperties { limit } => Value::from(*limit),
        Kind::AdditionalItems { limit } => Value::from(*limit),
        // A whole number has no decimal point in its text.
        Kind::MultipleOf { multiple_of } => {
            let number = multiple_of.to_string().parse();
            number.map_or(Value::Null, Value::Number)
        }
        Kind::Constant { expected_value } => (**expected_value).clone(),
        Kind::Enum { options } => (**options).clone(),
        Kind::Format { format } => Value::from(format.as_str()),
        Kind::Pattern { pattern } => Value::from(pattern.as_str()),
        Kind::ContentEncoding { content_encoding } => Value::from(content_encoding.as_str()),
        Kind::ContentMediaType { content_media_type } => Value::from(content_media_type.as_str()),
        Kind::Type { kind } => types(kind),
        Kind::AdditionalProperties { .. }
        | Kind::UnevaluatedItems { .. }
        | Kind::UnevaluatedProperties { .. }
        | Kind::FalseSchema => Value::Bool(false),
        Kind::AnyOf { .. }
        | Kind::BacktrackLimitExceeded { .. }
        | Kind::RegexEngineFailure { .. }
        | Kind::Contains
        | Kind::Custom { .. }
        | Kind::FromUtf8 { .. }
        | Kind::Not { .. }
        | Kind::OneOfMultipleValid { .. }
        | Kind::OneOfNotValid { .. }
        | Kind::PropertyNames { .. }
        | Kind::Required { .. }
        | Kind::UniqueItems
        | Kind::Referencing(_) => Value::Bool(true),
    };
    let expected = Json::of(&value);
    (expected.as_str().len() <= EXPECTED_BYTES_MAX).then_some(expected)
}

fn types(kind: &TypeKind) -> Value {
    match kind {
        TypeKind::Single(one) => Value::from(one.to_string()),
        TypeKind::Multiple(several) => {
            let names = several.iter().map(|one| one.to_string());
            Value::from(names.collect::<Vec<_>>())
        }
    }
}

/// The first values of an enumeration, up to [`OPTIONS_MAX`] and [`OPTIONS_BYTES_MAX`].
fn listed(options: &Value) -> String {
    let options = options.as_array().map_or(&[][..], Vec::as_slice);
    let mut left = OPTIONS_BYTES_MAX;
    let texts = options.iter().map(|value| shortened(&value.to_string()));
    let fits = |text: &String| {
        let fits = left.checked_sub(text.len());
        left = fits.unwrap_or(0);
        fits.is_some()
    };
    let shown: Vec<_> = texts.take(OPTIONS_MAX).take_while(fits).collect();
    let more = match options.len() - shown.len() {
        0 => String::new(),
        more => format!(" or {more} more"),
    };
    format!("this is not one of {}{more}", shown.join(", "))
}

fn violation(field: String, code: &str, message: &str) -> Violation {
    Violation {
        field,
        code: code.to_owned(),
        message: shortened(message),
        expected: Some(Json::of(&true)),
    }
}

pub(super) fn member(place: &str, name: &str) -> String {
    format!("{place}/{}", escaped(name))
}

fn shortened(message: &str) -> String {
    match message.char_indices().nth(MESSAGE_CHARS_MAX) {
        None => message.to_owned(),
        Some((end, _)) => format!("{}…", &message[..end]),
    }
}
