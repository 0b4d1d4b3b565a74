//! Reads YAML into the JSON tree that keeps the text of numbers, with the line of each value.
//!
//! It accepts only YAML that all readers read alike: no anchors, no tags, and no numbers that JSON cannot have. Other values
//! that look like numbers must be quoted.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use wrkflw_core::json::{DEPTH_MAX, Node, escaped};

/// A document, and where its values are.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) node: Node,
    lines: BTreeMap<String, usize>,
}

/// Why a text is not a document.
#[derive(Debug)]
pub(crate) struct YamlError {
    pub(crate) line: usize,
    pub(crate) detail: String,
}

impl Document {
    /// The only document of the text.
    pub(crate) fn read(text: &str) -> Result<Document, YamlError> {
        let mut reader = Reader {
            events: Parser::new_from_str(text),
            lines: BTreeMap::new(),
            line: 1,
        };
        let mut node = None;
        loop {
            match reader.next()? {
                Event::StreamEnd => break,
                Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd => {}
                _ if node.is_some() => {
                    return Err(reader.error("a file has one scenario: begin another file"));
                }
                event => node = Some(reader.value(event, "", 0)?),
            }
        }
        let node = node.ok_or_else(|| reader.error("the file is empty"))?;
        Ok(Document {
            node,
            lines: reader.lines,
        })
    }

    /// The line of the value at this JSON Pointer, or of the nearest value around it.
    pub(crate) fn line(&self, pointer: &str) -> usize {
        let mut pointer = pointer;
        loop {
            if let Some(line) = self.lines.get(pointer) {
                return *line;
            }
            match pointer.rsplit_once('/') {
                Some((outer, _)) => pointer = outer,
                None => return 1,
            }
        }
    }
}

struct Reader<'a> {
    events: Parser<'a, saphyr_parser::StrInput<'a>>,
    lines: BTreeMap<String, usize>,
    /// The line of the last event, from 1.
    line: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<Event<'a>, YamlError> {
        match self.events.next() {
            None => Ok(Event::StreamEnd),
            Some(Ok((event, Span { start, .. }))) => {
                self.line = start.line().max(1);
                Ok(event)
            }
            Some(Err(error)) => Err(YamlError {
                line: error.marker().line().max(1),
                detail: format!("this is not YAML: {}", error.info()),
            }),
        }
    }

    fn error(&self, detail: impl Into<String>) -> YamlError {
        YamlError {
            line: self.line,
            detail: detail.into(),
        }
    }

    fn value(&mut self, event: Event<'a>, at: &str, depth: usize) -> Result<Node, YamlError> {
        if depth > DEPTH_MAX {
            return Err(self.error(format!("this nests deeper than {DEPTH_MAX}")));
        }
        self.lines.entry(at.to_owned()).or_insert(self.line);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.plain(anchor, tag.is_some())?;
                if style == ScalarStyle::Plain {
                    self.scalar(&text)
                } else {
                    Ok(Node::String(text.into_owned()))
                }
            }
            Event::SequenceStart(anchor, tag) => {
                self.plain(anchor, tag.is_some())?;
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        Event::SequenceEnd => return Ok(Node::Array(items)),
                        event => {
                            let at = format!("{at}/{}", items.len());
                            items.push(self.value(event, &at, depth + 1)?);
                        }
                    }
                }
            }
            Event::MappingStart(anchor, tag) => {
                self.plain(anchor, tag.is_some())?;
                self.members(at, depth)
            }
            Event::Alias(_) => Err(self.error("`*` is not supported: write the value again")),
            _ => Err(self.error("a value is missing here")),
        }
    }

    fn members(&mut self, at: &str, depth: usize) -> Result<Node, YamlError> {
        let mut members = BTreeMap::new();
        loop {
            let name = match self.next()? {
                Event::MappingEnd => return Ok(Node::Object(members)),
                Event::Scalar(name, style, anchor, tag) => {
                    self.plain(anchor, tag.is_some())?;
                    let is_text = matches!(self.scalar(&name), Ok(Node::String(_)));
                    if style == ScalarStyle::Plain && !is_text {
                        return Err(self.error(format!("put the name `{name}` in quotes")));
                    }
                    name.into_owned()
                }
                _ => return Err(self.error("the name of a member must be a text")),
            };
            let at = format!("{at}/{}", escaped(&name));
            self.lines.insert(at.clone(), self.line);
            if members.contains_key(&name) {
                return Err(self.error(format!("there are two members `{name}` here")));
            }
            let event = self.next()?;
            let value = self.value(event, &at, depth + 1)?;
            members.insert(name, value);
        }
    }

    /// Refuses anchors and tags.
    fn plain(&self, anchor: usize, tagged: bool) -> Result<(), YamlError> {
        if anchor > 0 {
            return Err(self.error("`&` is not supported: write the value where it is needed"));
        }
        if tagged {
            return Err(self.error("`!` is not supported: put a text in quotes"));
        }
        Ok(())
    }

    /// A value without quotes.
    fn scalar(&self, text: &str) -> Result<Node, YamlError> {
        Ok(match text {
            "" | "~" | "null" | "Null" | "NULL" => Node::Null,
            "true" | "True" | "TRUE" => Node::Bool(true),
            "false" | "False" | "FALSE" => Node::Bool(false),
            number if is_number(number) => Node::Number(number.to_owned()),
            unclear if is_unclear(unclear) => {
                let detail = format!(
                    "put `{unclear}` in quotes if it is a text; otherwise write true, false or a number as in JSON"
                );
                return Err(self.error(detail));
            }
            text => Node::String(text.to_owned()),
        })
    }
}

/// Whether the text is a JSON number.
fn is_number(text: &str) -> bool {
    let is_number_like = text.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    is_number_like && serde_json::from_str::<serde_json::Number>(text).is_ok()
}

/// Whether some readers of YAML take the text for a number or a boolean.
pub(crate) fn is_unclear(text: &str) -> bool {
    let digits = text.trim_start_matches(['-', '+']);
    let is_number = digits.starts_with(|c: char| c == '.' || c.is_ascii_digit())
        && (digits.parse::<f64>().is_ok()
            || ["0x", "0o", "0b"]
                .iter()
                .any(|base| digits.starts_with(base))
            || is_grouped(digits));
    let is_special = matches!(digits.to_ascii_lowercase().as_str(), ".inf" | ".nan");
    let is_boolean = matches!(
        text.to_ascii_lowercase().as_str(),
        "yes" | "no" | "on" | "off" | "y" | "n"
    );
    is_number || is_special || is_boolean
}

/// Whether YAML 1.1 has it as a number: with `_` between digits, or to the base 60 with `:`.
fn is_grouped(digits: &str) -> bool {
    digits.contains(['_', ':'])
        && digits
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '_' | ':' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> String {
        Document::read(text).expect(text).node.to_string()
    }

    #[test]
    fn values_are_those_of_json_and_numbers_keep_their_digits() {
        for (text, expected) in [
            (
                "a: 1\nb: [x, 'y z', \"1\"]",
                r#"{"a":1,"b":["x","y z","1"]}"#,
            ),
            ("50000.000000000000000001", "50000.000000000000000001"),
            ("- 1999.90\n- -0.5e3", "[1999.90,-0.5e3]"),
            ("- ~\n- null\n- true\n-", "[null,null,true,null]"),
            (
                "at: 2026-01-05T09:00:00Z",
                r#"{"at":"2026-01-05T09:00:00Z"}"#,
            ),
            ("text: |\n  one\n  two\n", r#"{"text":"one\ntwo\n"}"#),
            ("# only\n{a: {b: []}} # flow", r#"{"a":{"b":[]}}"#),
        ] {
            assert_eq!(json(text), expected, "{text}");
        }
    }

    #[test]
    fn what_readers_take_differently_is_refused_with_its_line() {
        for (text, line, word) in [
            ("a: 1\nb: 007", 2, "quotes"),
            ("a: yes", 1, "quotes"),
            ("a: +5", 1, "quotes"),
            ("a: 0x1F", 1, "quotes"),
            ("a: .5", 1, "quotes"),
            ("a: .inf", 1, "quotes"),
            ("a: 1_000", 1, "quotes"),
            ("a: 0b101", 1, "quotes"),
            ("a: 1:30", 1, "quotes"),
            ("on: 1", 1, "quotes"),
            ("a: {7: 1}", 1, "quotes"),
            ("null: 1", 1, "quotes"),
            ("a: &x 1\nb: *x", 1, "`&`"),
            ("a:\n - !!str 1", 2, "`!`"),
            ("a: 1\nb: 2\na: 3", 3, "two members"),
            ("a: 1\n---\nb: 2", 3, "one scenario"),
            ("? [a]\n: 1", 1, "name of a member"),
            ("", 1, "empty"),
            ("a: [1", 2, "not YAML"),
        ] {
            let error = Document::read(text).expect_err(text);
            assert!(error.detail.contains(word), "{text}: {error:?}");
            assert_eq!(error.line, line, "{text}: {error:?}");
        }
        let deep = "[".repeat(200) + &"]".repeat(200);
        let error = Document::read(&deep).expect_err("too deep");
        assert!(error.detail.contains("deeper"), "{error:?}");
    }

    #[test]
    fn each_value_has_its_line() {
        let document =
            Document::read("steps:\n  - start: {}\n    by: ann\n  - decide: OK\n").expect("YAML");
        for (pointer, line) in [
            ("/steps", 1),
            ("/steps/0", 2),
            ("/steps/0/by", 3),
            ("/steps/1/decide", 4),
            ("/steps/1/nothing", 4),
            ("/none", 1),
        ] {
            assert_eq!(document.line(pointer), line, "{pointer}");
        }
    }
}
