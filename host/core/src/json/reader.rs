//! A pull parser for JSON text (RFC 8259) that tracks its position. The tree and the canonical form are built on it.

use std::borrow::Cow;

use super::{JsonError, escaped};

/// The prefix of member names that `serde_json` reserves for raw text and numbers of arbitrary precision. `serde_json`
/// would read an object with such a member as another value.
const RESERVED: &str = "$serde_json::private::";

/// One segment of the path from the top to the current value.
pub(super) enum PathSegment<'a> {
    Index(usize),
    Name(Cow<'a, str>),
}

pub(super) struct Reader<'a> {
    text: &'a str,
    /// How deep arrays and objects may nest.
    depth_max: usize,
    /// Byte position, always on a character boundary.
    at: usize,
    path: Vec<PathSegment<'a>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str, depth_max: usize) -> Reader<'a> {
        Reader {
            text,
            depth_max,
            at: 0,
            path: Vec::new(),
        }
    }

    /// The error at the current position.
    pub(super) fn error(&self, detail: impl Into<String>) -> JsonError {
        let read = &self.text[..self.at];
        let line = read.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = read.chars().rev().take_while(|char| *char != '\n').count() + 1;
        JsonError {
            place: Some((line, column)),
            ..self.error_before(detail)
        }
    }

    /// The error of a value that was read already.
    pub(super) fn error_before(&self, detail: impl Into<String>) -> JsonError {
        let mut pointer = String::new();
        for step in &self.path {
            pointer.push('/');
            match step {
                PathSegment::Index(index) => pointer.push_str(&index.to_string()),
                PathSegment::Name(name) => pointer.push_str(&escaped(name)),
            }
        }
        JsonError {
            pointer,
            detail: detail.into(),
            place: None,
        }
    }

    /// Skips white space, and returns the next byte without consuming it.
    pub(super) fn next(&mut self) -> Option<u8> {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        self.peek()
    }

    /// The text from `start` to the current position.
    pub(super) fn since(&self, start: usize) -> &'a str {
        &self.text[start..self.at]
    }

    /// The current position.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Refuses any further text.
    pub(super) fn end(&mut self) -> Result<(), JsonError> {
        match self.next() {
            None => Ok(()),
            Some(_) => Err(self.error("text after the value")),
        }
    }

    /// Consumes the opening bracket of an array or object.
    pub(super) fn open(&mut self) -> Result<(), JsonError> {
        if self.path.len() >= self.depth_max {
            return Err(self.error(format!("nesting deeper than {}", self.depth_max)));
        }
        self.at += 1;
        Ok(())
    }

    /// Consumes `bracket` and returns true at the end of the array or object; otherwise consumes the comma, if one is due.
    pub(super) fn closes(&mut self, bracket: u8, is_first: bool) -> Result<bool, JsonError> {
        self.next();
        if self.take(bracket) {
            return Ok(true);
        }
        if !is_first {
            self.expect(b',')?;
        }
        Ok(false)
    }

    /// The name of a member.
    pub(super) fn name(&mut self) -> Result<Cow<'a, str>, JsonError> {
        let name = self.string()?;
        if name.starts_with(RESERVED) {
            self.enter(PathSegment::Name(name));
            return Err(self.error("a name that other readers take for a type of their own"));
        }
        Ok(name)
    }

    pub(super) fn colon(&mut self) -> Result<(), JsonError> {
        self.expect(b':')
    }

    pub(super) fn enter(&mut self, step: PathSegment<'a>) {
        self.path.push(step);
    }

    pub(super) fn leave(&mut self) -> Option<PathSegment<'a>> {
        self.path.pop()
    }

    /// One of `true`, `false` and `null`.
    pub(super) fn word(&mut self) -> Result<&'static str, JsonError> {
        let rest = &self.text[self.at..];
        let words = ["true", "false", "null"];
        let word = words.into_iter().find(|word| rest.starts_with(word));
        let word = word.ok_or_else(|| self.unexpected())?;
        self.at += word.len();
        Ok(word)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn unexpected(&self) -> JsonError {
        self.error(if self.peek().is_some() {
            "an unexpected character"
        } else {
            "the text ends too early"
        })
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), JsonError> {
        self.next();
        if self.take(byte) {
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    /// A number with its original text.
    pub(super) fn number(&mut self) -> Result<&'a str, JsonError> {
        let start = self.at;
        self.take(b'-');
        let first = self.peek();
        let whole = self.digits();
        let mut well_formed = whole == 1 || (whole > 1 && first != Some(b'0'));
        if self.take(b'.') {
            well_formed &= self.digits() > 0;
        }
        if self.take(b'e') || self.take(b'E') {
            if !self.take(b'+') {
                self.take(b'-');
            }
            well_formed &= self.digits() > 0;
        }
        let text = &self.text[start..self.at];
        if well_formed && is_finite(text) {
            return Ok(text);
        }
        self.at = start;
        Err(self.error(if well_formed {
            "a number too large to be read by others"
        } else {
            "a malformed number"
        }))
    }

    /// A string without its quotes and escapes; borrowed if it has no escapes.
    pub(super) fn string(&mut self) -> Result<Cow<'a, str>, JsonError> {
        if self.next() != Some(b'"') {
            return Err(self.unexpected());
        }
        self.at += 1;
        let plain = self.plain();
        if self.take(b'"') {
            return Ok(Cow::Borrowed(plain));
        }
        let mut text = plain.to_owned();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Cow::Owned(text));
                }
                Some(b'\\') => text.push(self.escape()?),
                _ => return Err(self.unexpected()),
            }
            text.push_str(self.plain());
        }
    }

    /// The characters up to a quote, an escape or a character that must not be in a string.
    fn plain(&mut self) -> &'a str {
        let start = self.at;
        let rest = &self.text.as_bytes()[start..];
        let special = |byte: &u8| *byte == b'"' || *byte == b'\\' || *byte < b' ';
        self.at += rest.iter().position(special).unwrap_or(rest.len());
        &self.text[start..self.at]
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        self.at += 1;
        let letter = self.peek().ok_or_else(|| self.unexpected())?;
        let plain = match letter {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode(),
            _ => return Err(self.unexpected()),
        };
        self.at += 1;
        Ok(plain)
    }

    fn unicode(&mut self) -> Result<char, JsonError> {
        let high = self.code_unit()?;
        let code = match high {
            0 => return Err(self.error("the character NUL")),
            0xD800..=0xDBFF if self.text[self.at..].starts_with("\\u") => {
                self.at += 1;
                let low = self.code_unit()?;
                if !(0xDC00..=0xDFFF).contains(&low) {
                    return Err(self.error("a lone surrogate"));
                }
                0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)
            }
            other => other,
        };
        char::from_u32(code).ok_or_else(|| self.error("a lone surrogate"))
    }

    /// Consumes the `u` and four hexadecimal digits of an escape.
    fn code_unit(&mut self) -> Result<u32, JsonError> {
        let digits = self
            .text
            .get(self.at + 1..self.at + 5)
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let unit = digits
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .ok_or_else(|| self.unexpected())?;
        self.at += 5;
        Ok(unit)
    }
}

/// Whether other parsers can read the number as a finite float. They always can for a few digits without an exponent.
fn is_finite(text: &str) -> bool {
    let is_plain = text.len() <= 300 && !text.bytes().any(|byte| byte == b'e' || byte == b'E');
    is_plain || text.parse().is_ok_and(f64::is_finite)
}
