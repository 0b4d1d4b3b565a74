//! Canonical JSON text.
//!
//! A replay must show flow logic the same bytes as the original command, and the audit chain covers bytes. So JSON is
//! converted to canonical form at the boundary - members sorted by name, no white space, the text of numbers kept - and
//! that text is stored, hashed and passed on. Text that PostgreSQL or another reader would refuse or read differently is
//! refused here, with its JSON Pointer: NUL, lone surrogates, a member named twice, a name that a reader reserves.

mod canonical;
mod members;
mod node;
mod reader;
mod whole;
mod writer;

use std::collections::BTreeMap;
use std::fmt;

use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use members::{Member, members};
pub use node::Node;
pub use whole::whole;

/// How deep arrays and objects may nest in external documents.
pub const DEPTH_MAX: usize = 64;
/// How deep they may nest in documents of the host that contain external ones, such as payloads and evidence. Other
/// parsers stop at 128.
const COMPOSED_DEPTH_MAX: usize = DEPTH_MAX + 32;
/// The struct name under which `serde_json`'s `RawValue` serialises text that is JSON already. A `RawValue` itself could be
/// created only by parsing the text again.
const RAW: &str = "$serde_json::private::RawValue";

/// A JSON text in canonical form.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Json(Box<str>);

/// Why a text is not JSON that can be stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail} at {}", if pointer.is_empty() { "the top" } else { pointer })]
pub struct JsonError {
    /// JSON Pointer to the value concerned.
    pub pointer: String,
    pub detail: String,
    /// Line and column at which reading stopped, from 1, if that is the place to mend.
    pub place: Option<(usize, usize)>,
}

impl JsonError {
    /// What is wrong, and where in the text.
    pub fn located(&self) -> String {
        match self.place {
            Some((line, column)) => format!("{} (line {line}, column {column})", self.detail),
            None => self.to_string(),
        }
    }
}

impl Json {
    /// Converts an external text to canonical form.
    pub fn parse(text: &str) -> Result<Json, JsonError> {
        canonical::canonical(text, DEPTH_MAX).map(|text| Json(text.into()))
    }

    /// Parses a text that the host wrote. Fails only on a damaged text.
    pub fn stored(text: &str) -> Result<Json, JsonError> {
        canonical::canonical(text, COMPOSED_DEPTH_MAX).map(|text| Json(text.into()))
    }

    /// The empty object.
    pub fn empty() -> Json {
        Json("{}".into())
    }

    /// Takes a text that this type wrote earlier, such as one from the store, without a check.
    pub fn from_canonical(text: impl Into<Box<str>>) -> Json {
        Json(text.into())
    }

    /// Serialises a value. It must satisfy the rules of [`Json::parse`], except that it may nest a few levels deeper; panics
    /// otherwise.
    pub fn of(value: &impl Serialize) -> Json {
        let text = writer::write(value);
        Json(text.expect("our own types have a canonical form"))
    }

    /// An object of these members. If two have the same name, the later one wins.
    pub fn object<'a>(members: impl IntoIterator<Item = (&'a str, Json)>) -> Json {
        let members: BTreeMap<&str, Json> = members.into_iter().collect();
        let mut text = String::from("{");
        for (index, (name, value)) in members.iter().enumerate() {
            text.push_str(if index > 0 { "," } else { "" });
            canonical::write_string(&mut text, name).expect("writing to a string");
            text.push(':');
            text.push_str(value.as_str());
        }
        text.push('}');
        Json(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_object(&self) -> bool {
        self.0.starts_with('{')
    }

    /// The text as a tree.
    pub fn node(&self) -> Node {
        node::parse(&self.0, COMPOSED_DEPTH_MAX).expect("canonical text parses")
    }

    /// The text as a `serde_json` value, for libraries that need one. Numbers may lose digits.
    pub fn value(&self) -> serde_json::Value {
        serde_json::from_str(&self.0).expect("canonical text parses")
    }

    /// This document with `patch` merged into it (JSON Merge Patch, RFC 7396).
    #[must_use]
    pub fn merged(&self, patch: &Json) -> Json {
        Json::from(&self.node().merge(patch.node()))
    }
}

impl From<&Node> for Json {
    fn from(node: &Node) -> Json {
        let mut text = String::new();
        node.write(&mut text).expect("writing to a string");
        Json(text.into())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        raw(&self.0, serializer)
    }
}

/// Serialises a text that is JSON already.
fn raw<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let mut raw = serializer.serialize_struct(RAW, 1)?;
    raw.serialize_field(RAW, text)?;
    raw.end()
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        let raw = <Box<serde_json::value::RawValue>>::deserialize(deserializer)?;
        Json::parse(raw.get()).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    fn canonical(text: &str) -> String {
        Json::parse(text).expect("parses").to_string()
    }

    #[test]
    fn members_are_sorted_and_numbers_keep_their_text() {
        assert_eq!(
            canonical(r#" { "b" : 1e2 , "a" : [ 1.0 , -0 ] } "#),
            r#"{"a":[1.0,-0],"b":1e2}"#
        );
        assert_eq!(
            canonical("123456789012345678901234567890.10"),
            "123456789012345678901234567890.10"
        );
    }

    #[test]
    fn a_tree_is_serialised_with_the_text_of_its_numbers() {
        let text = r#"{"a":50000.000000000000000001,"b":[1.50,1e3,-0],"c":null,"d":[true,"\n"]}"#;
        let tree = Node::parse(text).expect("parses");
        assert_eq!(serde_json::to_string(&tree).expect("serialises"), text);
        assert_eq!(Json::of(&tree).as_str(), text);
        let member = Node::parse(r#"{"a":[1.50]}"#).expect("parses");
        let pretty = serde_json::to_string_pretty(&member).expect("serialises");
        assert_eq!(pretty, "{\n  \"a\": [\n    1.50\n  ]\n}");
    }

    #[test]
    fn strings_have_one_spelling() {
        assert_eq!(
            canonical(r#""\u0041\/\u00e9\n\ud83d\ude00\u001f""#),
            "\"A/é\\n😀\\u001f\""
        );
    }

    #[test]
    fn refusals_name_the_place() {
        for (text, pointer, detail) in [
            (r#"{"a":{"b":"\u0000"}}"#, "/a/b", "the character NUL"),
            (r#"["\ud800"]"#, "/0", "a lone surrogate"),
            (r#"{"a/b":1,"a/b":2}"#, "/a~1b", "a member named twice"),
            (
                r#"{"b":[{"z":1,"c":2,"z":3}]}"#,
                "/b/0/z",
                "a member named twice",
            ),
            (
                r#"{"b":[{"$serde_json::private::RawValue":"[1"}]}"#,
                "/b/0/$serde_json::private::RawValue",
                "a name that other readers take for a type of their own",
            ),
            (
                r#"{"\u0024serde_json::private::Number":"1"}"#,
                "/$serde_json::private::Number",
                "a name that other readers take for a type of their own",
            ),
            (r#"{"a":01}"#, "/a", "a malformed number"),
            ("[1e999]", "/0", "a number too large to be read by others"),
            ("-2e308", "", "a number too large to be read by others"),
            ("[1,]", "/1", "an unexpected character"),
            ("{\"a\":1} x", "", "text after the value"),
            ("", "", "the text ends too early"),
        ] {
            let error = Json::parse(text).expect_err(text);
            assert_eq!(
                (error.pointer.as_str(), error.detail.as_str()),
                (pointer, detail),
                "{text}"
            );
        }
        let deep = "[".repeat(DEPTH_MAX + 1);
        assert_eq!(
            Json::parse(&deep).expect_err("too deep").detail,
            "nesting deeper than 64"
        );
    }

    #[test]
    fn refusals_name_line_and_column() {
        for (text, located) in [
            ("", "the text ends too early (line 1, column 1)"),
            ("{\"a\":1,}", "an unexpected character (line 1, column 8)"),
            (
                "{\n  \"ä\": 1\n  \"b\": 2\n}",
                "an unexpected character (line 3, column 3)",
            ),
            (
                "{\"äö\": tru}",
                "an unexpected character (line 1, column 8)",
            ),
            ("[\n01]", "a malformed number (line 2, column 1)"),
            ("{\"a\":1}\nx", "text after the value (line 2, column 1)"),
            (
                "{\"a\":1,\n\"b\":[",
                "the text ends too early (line 2, column 6)",
            ),
            ("{\"a\":1,\"a\":2}", "a member named twice at /a"),
        ] {
            assert_eq!(
                Json::parse(text).expect_err(text).located(),
                located,
                "{text}"
            );
        }
    }

    #[test]
    fn every_number_taken_can_be_read_by_others() {
        for text in ["1e308", "1e-999", "-0", "0.1e309"] {
            assert!(Json::parse(text).expect(text).value().is_number(), "{text}");
        }
        let long = "9".repeat(308);
        assert!(Json::parse(&long).expect("long").value().is_number());
    }

    #[test]
    fn the_deepest_document_can_be_put_into_the_hosts_own() {
        let deepest = format!("{}{}", "[".repeat(DEPTH_MAX), "]".repeat(DEPTH_MAX));
        let deepest = Json::parse(&deepest).expect("within the limit");
        let around = Json::of(&serde_json::json!({ "facts": [{ "data": deepest }] }));
        assert_eq!(Json::stored(around.as_str()).as_ref(), Ok(&around));
        assert_eq!(Json::from(&around.node()), around);
        assert!(around.value().is_object());
        assert!(Json::parse(around.as_str()).is_err());
    }

    #[test]
    fn merge_patch_replaces_adds_and_removes() {
        let merged = |target: &str, patch: &str| {
            Json::parse(target)
                .expect("target")
                .merged(&Json::parse(patch).expect("patch"))
                .to_string()
        };
        assert_eq!(
            merged(
                r#"{"a":1,"b":{"c":2,"d":3}}"#,
                r#"{"b":{"c":null},"e":[null]}"#
            ),
            r#"{"a":1,"b":{"d":3},"e":[null]}"#
        );
        assert_eq!(merged(r#"{"a":1}"#, "[1]"), "[1]");
        assert_eq!(merged("[1]", r#"{"a":{"b":null}}"#), r#"{"a":{}}"#);
    }

    pub(crate) fn any_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            "[^\u{0}]{0,12}".prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                prop::collection::btree_map("[^\u{0}]{0,8}", inner, 0..6)
                    .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn canonical_text_means_the_same_and_is_stable(value in any_json()) {
            let json = Json::parse(&value.to_string()).expect("parses");
            prop_assert_eq!(json.value(), value);
            prop_assert_eq!(Json::parse(json.as_str()).expect("parses"), json);
        }

        #[test]
        fn text_and_tree_are_read_alike(value in any_json(), cut in 0..200_usize, noise in "[\\[\\]{},:\"0a\\\\ ]{0,3}") {
            let mut text = serde_json::to_string_pretty(&value).expect("serialises");
            let cut = text.char_indices().map(|(at, _)| at).nth(cut).unwrap_or(text.len());
            text.insert_str(cut, &noise);
            let tree = Node::parse(&text).map(|node| Json::from(&node));
            match (Json::parse(&text), tree) {
                (Ok(json), Ok(tree)) => prop_assert_eq!(json, tree),
                // Of several reasons the two may name different ones.
                (Err(_), Err(_)) => {}
                (json, tree) => prop_assert!(false, "{json:?} {tree:?} of {text}"),
            }
        }

        #[test]
        fn members_make_the_object_again(value in any_json(), pretty in any::<bool>()) {
            let text = if pretty {
                serde_json::to_string_pretty(&value).expect("serialises")
            } else {
                Json::of(&value).to_string()
            };
            let members = members(&text).expect("an object or another value");
            let again = Json::of_members(members.iter().map(|(name, value)| (&**name, &**value)));
            let object = if value.is_object() { Json::of(&value) } else { Json::empty() };
            prop_assert_eq!(again, object);
        }

        #[test]
        fn members_are_refused_where_the_text_is(text in "[\\{}\\[\\]a\":,1 ]{0,12}") {
            prop_assert_eq!(members(&text).is_ok(), Json::parse(&text).is_ok());
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "\\PC{0,40}") {
            let _ = Json::parse(&text);
        }
    }
}
