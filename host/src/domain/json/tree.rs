//! A JSON text as it was read: pieces of the text itself wherever they can stay what they are.
//!
//! It lives for as long as bringing a text into canonical form takes, which every command does several times.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::Node;

/// One value of a text.
pub(super) enum Tree<'a> {
    /// A number, or a word such as `true`.
    Plain(&'a str),
    String(Cow<'a, str>),
    Array(Vec<Tree<'a>>),
    /// Sorted by name; no name stands twice.
    Object(Vec<(Cow<'a, str>, Tree<'a>)>),
}

impl Tree<'_> {
    /// Appends the canonical text.
    pub(super) fn write(&self, text: &mut String) {
        match self {
            Tree::Plain(plain) => text.push_str(plain),
            Tree::String(string) => write_string(text, string),
            Tree::Array(items) => {
                text.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        text.push(',');
                    }
                    item.write(text);
                }
                text.push(']');
            }
            Tree::Object(members) => {
                text.push('{');
                for (index, (name, value)) in members.iter().enumerate() {
                    if index > 0 {
                        text.push(',');
                    }
                    write_string(text, name);
                    text.push(':');
                    value.write(text);
                }
                text.push('}');
            }
        }
    }

    pub(super) fn into_node(self) -> Node {
        match self {
            Tree::Plain("null") => Node::Null,
            Tree::Plain("true") => Node::Bool(true),
            Tree::Plain("false") => Node::Bool(false),
            Tree::Plain(number) => Node::Number(number.to_owned()),
            Tree::String(string) => Node::String(string.into_owned()),
            Tree::Array(items) => Node::Array(items.into_iter().map(Tree::into_node).collect()),
            Tree::Object(members) => {
                let owned = |(name, value): (Cow<'_, str>, Tree<'_>)| {
                    (name.into_owned(), value.into_node())
                };
                Node::Object(members.into_iter().map(owned).collect())
            }
        }
    }
}

/// Appends a string in its one spelling.
pub(super) fn write_string(text: &mut String, string: &str) {
    text.push('"');
    let mut rest = string;
    while let Some(at) = rest.find(|c: char| c == '"' || c == '\\' || c < ' ') {
        text.push_str(&rest[..at]);
        // All of these are one byte long.
        match rest.as_bytes()[at] {
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            control => write!(text, "\\u{control:04x}").expect("a string takes all"),
        }
        rest = &rest[at + 1..];
    }
    text.push_str(rest);
    text.push('"');
}
