//! Answers of the API whose numbers keep their digits.
//!
//! `serde_json` holds a number that is not a 64-bit integer as a float. So it would print `50000.000000000000000001` as `50000.0`,
//! and entries of the audit would differ from the content that their hashes cover. This module holds such a number as a text with a
//! mark before it, and prints it without the mark. A text of the API that begins with the mark gets a second one.

use serde::ser::{Error as _, SerializeMap as _, SerializeSeq as _};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Number, Value};

use wrkflw_core::json::Node;

/// A character that JSON writes as an escape only.
const MARK: char = '\u{1}';

/// Parses the JSON of the API.
pub(super) fn parse(text: &[u8]) -> serde_json::Result<Value> {
    let node = std::str::from_utf8(text).ok().map(Node::parse);
    match node {
        Some(Ok(node)) => Ok(marked(node)),
        // With the message that the command line has for other JSON.
        Some(Err(_)) | None => serde_json::from_slice(text),
    }
}

fn marked(node: Node) -> Value {
    match node {
        Node::Null => Value::Null,
        Node::Bool(flag) => Value::Bool(flag),
        Node::Number(digits) => match serde_json::from_str::<Number>(&digits) {
            Ok(number) if number.to_string() == digits => Value::Number(number),
            _ => Value::String(format!("{MARK}{digits}")),
        },
        Node::String(text) if text.starts_with(MARK) => Value::String(format!("{MARK}{text}")),
        Node::String(text) => Value::String(text),
        Node::Array(items) => items.into_iter().map(marked).collect(),
        Node::Object(members) => {
            let members = members.into_iter();
            Value::Object(members.map(|(name, one)| (name, marked(one))).collect())
        }
    }
}

/// A text without its mark: the digits of a number, or the text itself.
pub(super) fn plain(text: &str) -> &str {
    text.strip_prefix(MARK).unwrap_or(text)
}

/// Writes a parsed value as the API wrote it.
pub(super) struct Exact<'a>(pub(super) &'a Value);

impl Serialize for Exact<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::String(text) => match text.strip_prefix(MARK) {
                Some(digits) if !digits.starts_with(MARK) => {
                    let digits = RawValue::from_string(digits.to_owned());
                    digits.map_err(S::Error::custom)?.serialize(serializer)
                }
                _ => serializer.serialize_str(plain(text)),
            },
            Value::Array(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(&Exact(item))?;
                }
                list.end()
            }
            Value::Object(members) => {
                let mut object = serializer.serialize_map(Some(members.len()))?;
                for (name, member) in members {
                    object.serialize_entry(name, &Exact(member))?;
                }
                object.end()
            }
            other => other.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_digits() {
        let text = r#"{"a":50000.000000000000000001,"b":[1.50,1e3,18446744073709551617,-0.0],"c":{"d":12,"e":0.5},"f":"1.50"}"#;
        let value = parse(text.as_bytes()).expect("JSON");
        let written = serde_json::to_string(&Exact(&value)).expect("JSON");
        assert_eq!(written, text);
        assert_eq!(value["c"]["d"], 12);
        assert_eq!(value["f"], "1.50");
        let digits = value["b"][0].as_str().expect("a text");
        assert_eq!(plain(digits), "1.50");
    }

    #[test]
    fn a_text_with_the_mark_is_a_text() {
        let text = r#"["\u00011.50","\u0001","\u0001\u0001"]"#;
        let value = parse(text.as_bytes()).expect("JSON");
        let written = serde_json::to_string(&Exact(&value)).expect("JSON");
        assert_eq!(written, text);
    }
}
