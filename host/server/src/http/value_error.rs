//! Messages about invalid values of a request, in the terms of this API. The libraries that read bodies, queries and paths report
//! them in terms of Rust.

use std::error::Error;

use axum::extract::path::ErrorKind;
use axum::extract::rejection::{PathRejection, QueryRejection};
use serde_path_to_error::{Error as At, Segment};

use super::problem::Problem;
use wrkflw_core::json::escaped;

/// The form of every id.
const ID: &str = "an id has 32 hexadecimal digits, such as 01a20416-5f62-7350-986a-13b0f0477285";
/// How many characters of an invalid value a message repeats.
const SHOWN_CHARS_MAX: usize = 40;

/// The error in a value.
struct ValueError {
    code: &'static str,
    /// The member or parameter that is unknown, missing or given twice.
    named: Option<String>,
    detail: String,
}

/// The problem for a body that is JSON of another shape.
pub(super) fn of_body(error: &At<serde_json::Error>) -> Problem {
    let message = error.inner().to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    problem("invalid_request", pointer(error), translated(message))
}

/// The problem for a query that cannot be read.
pub(super) fn of_query(rejection: &QueryRejection) -> Problem {
    let mut causes = std::iter::successors(rejection.source(), |&cause| cause.source());
    let read = causes.find_map(|cause| cause.downcast_ref::<At<serde::de::value::Error>>());
    match read {
        Some(error) => {
            let translated = translated(&error.inner().to_string());
            problem("malformed_request", pointer(error), translated)
        }
        None => Problem::new("malformed_request", "the query cannot be read"),
    }
}

/// The problem for a path with a parameter that cannot be read. `names` has the names of the path's parameters, in order.
pub(super) fn of_path(rejection: &PathRejection, names: &[String]) -> Problem {
    let unread = || Problem::new("not_found", "the path cannot be read");
    let PathRejection::FailedToDeserializePathParams(failed) = rejection else {
        return unread();
    };
    let (name, detail) = match failed.kind() {
        ErrorKind::DeserializeError { key, message, .. } => (Some(key), translated(message).detail),
        ErrorKind::ParseErrorAtKey {
            key, expected_type, ..
        } => (Some(key), must_be(expected_type)),
        ErrorKind::ParseErrorAtIndex {
            index,
            expected_type,
            ..
        } => (names.get(*index), must_be(expected_type)),
        ErrorKind::ParseError { expected_type, .. } => (names.first(), must_be(expected_type)),
        ErrorKind::InvalidUtf8InPathParam { key } => (Some(key), "it is not UTF-8".to_owned()),
        _ => return unread(),
    };
    match name {
        Some(name) => wrong(
            "not_found",
            &format!("/{}", escaped(name)),
            "malformed",
            detail,
        ),
        None => unread(),
    }
}

/// The problem for a query parameter or a header that violates the rule in `detail`.
pub(super) fn of_parameter(name: &str, detail: impl Into<String>) -> Problem {
    of_named("malformed_request", name, detail)
}

/// A problem with the code `problem` for the parameter `name`. Unlike in [`wrong`], the detail itself names the parameter.
pub(super) fn of_named(problem: &str, name: &str, detail: impl Into<String>) -> Problem {
    let detail = detail.into();
    let pointer = format!("/{}", escaped(name));
    Problem::new(problem, detail.clone()).at(&pointer, "malformed", detail)
}

/// A problem with the code `problem` and one field error: `code` at `pointer`. Both have the detail.
pub(super) fn wrong(problem: &str, pointer: &str, code: &str, detail: String) -> Problem {
    let whole = match pointer {
        "" => detail.clone(),
        pointer => format!("{pointer}: {detail}"),
    };
    Problem::new(problem, whole).at(pointer, code, detail)
}

fn problem(code: &str, mut pointer: String, error: ValueError) -> Problem {
    let named = error.named.map(|named| format!("/{}", escaped(&named)));
    if let Some(named) = named.filter(|named| !pointer.ends_with(named.as_str())) {
        pointer += &named;
    }
    wrong(code, &pointer, error.code, error.detail)
}

fn pointer<E>(error: &At<E>) -> String {
    let mut pointer = String::new();
    for segment in error.path() {
        match segment {
            Segment::Map { key } => pointer = format!("{pointer}/{}", escaped(key)),
            Segment::Seq { index } => pointer = format!("{pointer}/{index}"),
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    pointer
}

/// Translates a message of a library into the terms of this API. Messages that the API's own types wrote do not change.
fn translated(message: &str) -> ValueError {
    let error = |code, named: Option<&str>, detail: String| ValueError {
        code,
        named: named.map(ToOwned::to_owned),
        detail,
    };
    let plain = |detail: &str| error("malformed", None, detail.to_owned());
    if let Some((name, known)) = named(message, "unknown field `") {
        let detail = match &known[..] {
            [] => format!("{} is unknown here", shown(name)),
            known => format!(
                "{} is unknown here; known: {}",
                shown(name),
                known.join(", ")
            ),
        };
        return error("unknown_field", Some(name), detail);
    }
    if let Some((value, known)) = named(message, "unknown variant `") {
        return plain(&format!("{} is none of {}", shown(value), known.join(", ")));
    }
    if let Some((name, _)) = named(message, "missing field `") {
        return error("required", Some(name), format!("{name} is missing"));
    }
    if let Some((name, _)) = named(message, "duplicate field `") {
        return error("malformed", Some(name), format!("{name} is given twice"));
    }
    if let Some(found) = message.strip_prefix("invalid type: ") {
        return plain(&mistyped(found, message));
    }
    if let Some(found) = message.strip_prefix("invalid value: ") {
        return plain(&mistyped(found, message));
    }
    match message {
        _ if message.starts_with("UUID parsing failed") => plain(ID),
        "invalid digit found in string" | "cannot parse integer from empty string" => {
            plain("must be a whole number")
        }
        "number too large to fit in target type" => plain("is too large a number"),
        "number too small to fit in target type" => plain("is too small a number"),
        "provided string was not `true` or `false`" => plain("must be true or false"),
        own => plain(own),
    }
}

/// The name that follows `beginning` in a message, and the names that were expected instead.
fn named<'a>(message: &'a str, beginning: &str) -> Option<(&'a str, Vec<&'a str>)> {
    let rest = message.strip_prefix(beginning)?;
    let (name, expected) = match rest.rsplit_once("`, expected ") {
        Some(parts) => parts,
        None => (rest.split('`').next()?, ""),
    };
    Some((name, expected.split('`').skip(1).step_by(2).collect()))
}

/// The message for `A, expected B`: the required form, and the form that was found.
fn mistyped(found: &str, message: &str) -> String {
    let Some((found, expected)) = found.rsplit_once(", expected ") else {
        return message.to_owned();
    };
    let (kind, value) = found.split_once(' ').unwrap_or((found, ""));
    let kind = match kind {
        "integer" | "floating" => value.split('`').nth(1).unwrap_or("a number"),
        "string" => "a text",
        "boolean" => "a boolean",
        "sequence" => "a list",
        "map" => "an object",
        _ => found,
    };
    format!("{}, not {kind}", must_be(expected))
}

/// The required form of a value, by its name in serde.
fn must_be(expected: &str) -> String {
    let range = |min: i128, max: i128| format!("must be a whole number from {min} to {max}");
    match expected {
        "u8" => range(0, u8::MAX.into()),
        "u16" => range(0, u16::MAX.into()),
        "u32" => range(0, u32::MAX.into()),
        "u64" => range(0, u64::MAX.into()),
        "i8" => range(i8::MIN.into(), i8::MAX.into()),
        "i16" => range(i16::MIN.into(), i16::MAX.into()),
        "i32" => range(i32::MIN.into(), i32::MAX.into()),
        "i64" => range(i64::MIN.into(), i64::MAX.into()),
        "f32" | "f64" => "must be a number".to_owned(),
        "a boolean" | "bool" => "must be true or false".to_owned(),
        "a string" | "string" => "must be a text".to_owned(),
        "a sequence" => "must be a list".to_owned(),
        "a map" => "must be an object".to_owned(),
        "a UUID string" | "a formatted UUID string" => ID.to_owned(),
        expected if expected.starts_with("struct ") => "must be an object".to_owned(),
        expected if expected.contains("enum") || expected.starts_with("variant") => {
            "must be one of the documented values".to_owned()
        }
        expected => format!("must be {expected}"),
    }
}

/// A value from outside, cut to [`SHOWN_CHARS_MAX`].
fn shown(value: &str) -> String {
    if value.chars().count() <= SHOWN_CHARS_MAX {
        return value.to_owned();
    }
    let shown: String = value.chars().take(SHOWN_CHARS_MAX).collect();
    format!("{shown}…")
}

#[cfg(test)]
mod tests {
    use super::{of_body, translated};
    use serde::Deserialize;
    use serde::de::DeserializeOwned;
    use uuid::Uuid;

    fn details<T: DeserializeOwned + std::fmt::Debug>(text: &str) -> (String, String, String) {
        let read = &mut serde_json::Deserializer::from_str(text);
        let error = serde_path_to_error::deserialize::<_, T>(read).expect_err(text);
        let mut problem = of_body(&error);
        let error = problem.errors.remove(0);
        (error.pointer, error.code, error.detail)
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    #[expect(dead_code, reason = "only read")]
    struct Body {
        count: u32,
        small: Option<i16>,
        is_so: Option<bool>,
        ids: Option<Vec<Uuid>>,
        one: Option<Ordinal>,
        inner: Option<Inner>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "SCREAMING_SNAKE_CASE")]
    enum Ordinal {
        First,
        Second,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Inner {
        text: String,
    }

    #[test]
    fn what_is_wrong_is_said_in_words_of_the_api() {
        for (text, pointer, code, detail) in [
            ("{}", "/count", "required", "count is missing"),
            (
                r#"{"count":-1}"#,
                "/count",
                "malformed",
                "must be a whole number from 0 to 4294967295, not -1",
            ),
            (
                r#"{"count":1.5}"#,
                "/count",
                "malformed",
                "must be a whole number from 0 to 4294967295, not 1.5",
            ),
            (
                r#"{"count":"1"}"#,
                "/count",
                "malformed",
                "must be a whole number from 0 to 4294967295, not a text",
            ),
            (
                r#"{"count":1,"small":40000}"#,
                "/small",
                "malformed",
                "must be a whole number from -32768 to 32767, not 40000",
            ),
            (
                r#"{"count":1,"isSo":[]}"#,
                "/isSo",
                "malformed",
                "must be true or false, not a list",
            ),
            (
                r#"{"count":1,"ids":["zz"]}"#,
                "/ids/0",
                "malformed",
                "an id has 32 hexadecimal digits, such as 01a20416-5f62-7350-986a-13b0f0477285",
            ),
            (
                r#"{"count":1,"one":"THIRD`, expected a` row"}"#,
                "/one",
                "malformed",
                "THIRD`, expected a` row is none of FIRST, SECOND",
            ),
            (
                r#"{"count":1,"inner":{"text":null}}"#,
                "/inner/text",
                "malformed",
                "must be a text, not null",
            ),
            (
                r#"{"count":1,"inner":3}"#,
                "/inner",
                "malformed",
                "must be an object, not 3",
            ),
            (
                r#"{"count":1,"a/b":3}"#,
                "/a~1b",
                "unknown_field",
                "a/b is unknown here; known: count, small, isSo, ids, one, inner",
            ),
        ] {
            let expected = (pointer.to_owned(), code.to_owned(), detail.to_owned());
            assert_eq!(details::<Body>(text), expected, "{text}");
        }
    }

    #[test]
    fn a_long_value_is_not_repeated_as_a_whole() {
        let long = "x".repeat(9_000);
        let message = format!("unknown variant `{long}`, expected `a` or `b`");
        let detail = translated(&message).detail;
        assert!(
            detail.ends_with("x… is none of a, b") && detail.len() < 100,
            "{detail}"
        );
    }

    #[test]
    fn own_words_stay() {
        let own = "\"noon\" is not a time";
        assert_eq!(translated(own).detail, own);
    }
}
