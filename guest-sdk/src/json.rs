//! JSON in and out of the author's own types.
//!
//! Text that does not fit a type becomes violations that name the place, never a panic: a flow
//! that meets data from before its time must be able to say so.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::Violation;

/// Reads a JSON text as a `T`. Numbers reach it as they are written.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Vec<Violation>> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(unreadable)?;
    reader.end().map_err(|error| vec![syntax(&error)])?;
    Ok(value)
}

/// Reads a JSON value as a `T`.
pub(crate) fn read<T: DeserializeOwned>(value: Value) -> Result<T, Vec<Violation>> {
    serde_path_to_error::deserialize(value).map_err(unreadable)
}

/// Reads the data of an instance. Pointers are into the body of the request that starts it.
pub(crate) fn data<T: DeserializeOwned>(text: &str) -> Result<T, Vec<Violation>> {
    parse(text).map_err(|found| below("/data", found))
}

/// The violations with pointers into something of which the value is this part.
pub(crate) fn below(part: &str, mut violations: Vec<Violation>) -> Vec<Violation> {
    for violation in &mut violations {
        violation.field.insert_str(0, part);
    }
    violations
}

fn unreadable(error: serde_path_to_error::Error<serde_json::Error>) -> Vec<Violation> {
    let inner = error.inner();
    if inner.is_syntax() || inner.is_eof() {
        return vec![syntax(inner)];
    }
    let place = format!(" at line {} column {}", inner.line(), inner.column());
    let message = inner.to_string().replace(&place, "");
    let mut field = pointer(error.path());
    let code = match message.split('`').collect::<Vec<_>>()[..] {
        ["missing field ", name, ..] => {
            field = format!("{field}/{}", escape(name));
            "required"
        }
        ["unknown field ", name, ..] => {
            if !field.ends_with(&format!("/{}", escape(name))) {
                field = format!("{field}/{}", escape(name));
            }
            "unknown"
        }
        _ => "type",
    };
    vec![Violation::new(&field, code, message)]
}

fn syntax(error: &serde_json::Error) -> Violation {
    Violation::new("", "syntax", format!("This is no JSON: {error}."))
}

fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    path.iter()
        .fold(String::new(), |pointer, segment| match segment {
            Segment::Seq { index } => format!("{pointer}/{index}"),
            Segment::Map { key } => format!("{pointer}/{}", escape(key)),
            Segment::Enum { .. } | Segment::Unknown => pointer,
        })
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// The merge patch (RFC 7396) that makes `new` of `old`; none if nothing differs.
pub(crate) fn difference(old: &Value, new: &Value) -> Option<Value> {
    let (Value::Object(before), Value::Object(after)) = (old, new) else {
        return (old != new).then(|| new.clone());
    };
    let gone = before
        .keys()
        .filter(|key| !after.contains_key(*key))
        .map(|key| (key.clone(), Value::Null));
    let changed = after
        .iter()
        .filter_map(|(key, value)| match before.get(key) {
            Some(earlier) => Some((key.clone(), difference(earlier, value)?)),
            None => (!value.is_null()).then(|| (key.clone(), value.clone())),
        });
    let patch: Map<_, _> = gone.chain(changed).collect();
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// Applies a merge patch (RFC 7396).
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        target.clone_from(patch);
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(fields) = target else {
        return;
    };
    for (key, change) in changes {
        if change.is_null() {
            fields.remove(key);
        } else {
            merge(fields.entry(key).or_insert(Value::Null), change);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read from JSON")]
    struct Order {
        lines: Vec<Line>,
    }

    #[derive(Debug, serde::Deserialize)]
    #[expect(dead_code, reason = "only read from JSON")]
    struct Line {
        amount: u32,
    }

    #[test]
    fn a_violation_names_the_place() {
        for (text, field, code) in [
            (
                r#"{"lines": [{"amount": 1}, {"amount": "two"}]}"#,
                "/lines/1/amount",
                "type",
            ),
            (r#"{"lines": [{}]}"#, "/lines/0/amount", "required"),
            (r#"{"lines": [], "a/b": 1}"#, "/a~1b", "unknown"),
            ("{", "", "syntax"),
            (r#"{"lines": []} more"#, "", "syntax"),
        ] {
            let violations = parse::<Order>(text).expect_err(text);
            assert_eq!(
                (violations[0].field.as_str(), violations[0].code.as_str()),
                (field, code),
                "{violations:?}"
            );
        }
    }

    #[test]
    fn applying_the_difference_gives_the_new_value() {
        let values = [
            json!({"a": 1, "b": {"c": [1], "d": "x"}}),
            json!({"b": {"c": [2], "e": {}}}),
            json!({}),
        ];
        for (old, new) in values
            .iter()
            .flat_map(|old| values.iter().map(move |new| (old, new)))
        {
            let mut patched = old.clone();
            if let Some(patch) = difference(old, new) {
                merge(&mut patched, &patch);
            }
            assert_eq!(&patched, new);
        }
    }
}
