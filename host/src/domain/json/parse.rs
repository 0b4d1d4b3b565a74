//! Reads JSON text (RFC 8259) into a [`Tree`]. An error learns its place on the way out.

use std::borrow::Cow;

use super::tree::Tree;
use super::{DEPTH_MAX, JsonError};

pub(super) fn parse(text: &str) -> Result<Tree<'_>, JsonError> {
    let mut parser = Parser {
        text,
        at: 0,
        depth: 0,
    };
    let tree = parser.value()?;
    parser.skip_space();
    if parser.at < text.len() {
        return Err(error("text after the value"));
    }
    Ok(tree)
}

/// An error here; those around it add where that is.
fn error(detail: impl Into<String>) -> JsonError {
    JsonError {
        pointer: String::new(),
        detail: detail.into(),
    }
}

/// The same error, seen from outside the member or item.
fn within(step: &str, mut error: JsonError) -> JsonError {
    let step = step.replace('~', "~0").replace('/', "~1");
    error.pointer = format!("/{step}{}", error.pointer);
    error
}

struct Parser<'a> {
    text: &'a str,
    /// Byte position, always on a character boundary.
    at: usize,
    /// Arrays and objects around it.
    depth: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn unexpected(&self) -> JsonError {
        error(if self.peek().is_some() {
            "an unexpected character"
        } else {
            "the text ends too early"
        })
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), JsonError> {
        self.skip_space();
        if self.take(byte) {
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    fn value(&mut self) -> Result<Tree<'a>, JsonError> {
        self.skip_space();
        match self.peek() {
            Some(b'{') => self.nested(Parser::object),
            Some(b'[') => self.nested(Parser::array),
            Some(b'"') => self.string().map(Tree::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            _ => Err(self.unexpected()),
        }
    }

    fn word(&mut self, word: &'static str) -> Result<Tree<'a>, JsonError> {
        if self.text[self.at..].starts_with(word) {
            self.at += word.len();
            Ok(Tree::Plain(word))
        } else {
            Err(self.unexpected())
        }
    }

    fn nested(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<Tree<'a>, JsonError>,
    ) -> Result<Tree<'a>, JsonError> {
        if self.depth >= DEPTH_MAX {
            return Err(error(format!("nesting deeper than {DEPTH_MAX}")));
        }
        self.depth += 1;
        self.at += 1;
        self.skip_space();
        let tree = read(self)?;
        self.depth -= 1;
        Ok(tree)
    }

    /// What follows its opening bracket.
    fn array(&mut self) -> Result<Tree<'a>, JsonError> {
        let mut items = Vec::new();
        if self.take(b']') {
            return Ok(Tree::Array(items));
        }
        loop {
            let item = self.value();
            items.push(item.map_err(|error| within(&items.len().to_string(), error))?);
            self.skip_space();
            if self.take(b']') {
                return Ok(Tree::Array(items));
            }
            self.expect(b',')?;
        }
    }

    /// What follows its opening brace.
    fn object(&mut self) -> Result<Tree<'a>, JsonError> {
        let mut members = Vec::new();
        if self.take(b'}') {
            return Ok(Tree::Object(members));
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.unexpected());
            }
            let name = self.string()?;
            let value = self.expect(b':').and_then(|()| self.value());
            let value = value.map_err(|error| within(&name, error))?;
            members.push((name, value));
            self.skip_space();
            if self.take(b'}') {
                return sorted(members);
            }
            self.expect(b',')?;
        }
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    fn number(&mut self) -> Result<Tree<'a>, JsonError> {
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
        if well_formed {
            Ok(Tree::Plain(&self.text[start..self.at]))
        } else {
            Err(error("a malformed number"))
        }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, JsonError> {
        self.at += 1;
        let mut string = Cow::Borrowed("");
        loop {
            let rest = &self.text[self.at..];
            let plain = rest
                .find(|c: char| c == '"' || c == '\\' || c < ' ')
                .unwrap_or(rest.len());
            string += &rest[..plain];
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(string);
                }
                Some(b'\\') => string.to_mut().push(self.escape()?),
                _ => return Err(self.unexpected()),
            }
        }
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
            0 => return Err(error("the character NUL")),
            0xD800..=0xDBFF if self.text[self.at..].starts_with("\\u") => {
                self.at += 1;
                let low = self.code_unit()?;
                if !(0xDC00..=0xDFFF).contains(&low) {
                    return Err(error("a lone surrogate"));
                }
                0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)
            }
            other => other,
        };
        char::from_u32(code).ok_or_else(|| error("a lone surrogate"))
    }

    /// Four hexadecimal digits after the `u` that is read next.
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

/// An object of these members, unless a name stands twice.
fn sorted<'a>(mut members: Vec<(Cow<'a, str>, Tree<'a>)>) -> Result<Tree<'a>, JsonError> {
    members.sort_by(|(one, _), (other, _)| one.cmp(other));
    match members.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(twice) => Err(within(&twice[0].0, error("a member named twice"))),
        None => Ok(Tree::Object(members)),
    }
}
