//! Reads JSON text (RFC 8259) into a [`Node`], keeping track of where it is.

use std::collections::BTreeMap;

use super::{JsonError, Node};

pub(super) fn parse(text: &str, depth_max: usize) -> Result<Node, JsonError> {
    let mut parser = Parser {
        text,
        depth_max,
        at: 0,
        path: Vec::new(),
    };
    let node = parser.value()?;
    parser.skip_space();
    if parser.at < text.len() {
        return Err(parser.error("text after the value"));
    }
    Ok(node)
}

struct Parser<'a> {
    text: &'a str,
    depth_max: usize,
    /// Byte position, always on a character boundary.
    at: usize,
    path: Vec<String>,
}

impl Parser<'_> {
    fn error(&self, detail: impl Into<String>) -> JsonError {
        let pointer = self
            .path
            .iter()
            .flat_map(|step| ["/".to_owned(), step.replace('~', "~0").replace('/', "~1")])
            .collect();
        JsonError {
            pointer,
            detail: detail.into(),
        }
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

    fn value(&mut self) -> Result<Node, JsonError> {
        self.skip_space();
        match self.peek() {
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            Some(b'"') => self.string().map(Node::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Node::Bool(true)),
            Some(b'f') => self.word("false", Node::Bool(false)),
            Some(b'n') => self.word("null", Node::Null),
            _ => Err(self.unexpected()),
        }
    }

    fn word(&mut self, word: &str, node: Node) -> Result<Node, JsonError> {
        if self.text[self.at..].starts_with(word) {
            self.at += word.len();
            Ok(node)
        } else {
            Err(self.unexpected())
        }
    }

    fn nested(&mut self, step: String) -> Result<Node, JsonError> {
        self.path.push(step);
        let node = self.value()?;
        self.path.pop();
        Ok(node)
    }

    fn check_depth(&self) -> Result<(), JsonError> {
        if self.path.len() < self.depth_max {
            Ok(())
        } else {
            Err(self.error(format!("nesting deeper than {}", self.depth_max)))
        }
    }

    fn array(&mut self) -> Result<Node, JsonError> {
        self.check_depth()?;
        self.at += 1;
        let mut items = Vec::new();
        self.skip_space();
        if self.take(b']') {
            return Ok(Node::Array(items));
        }
        loop {
            items.push(self.nested(items.len().to_string())?);
            self.skip_space();
            if self.take(b']') {
                return Ok(Node::Array(items));
            }
            self.expect(b',')?;
        }
    }

    fn object(&mut self) -> Result<Node, JsonError> {
        self.check_depth()?;
        self.at += 1;
        let mut members = BTreeMap::new();
        self.skip_space();
        if self.take(b'}') {
            return Ok(Node::Object(members));
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.unexpected());
            }
            let name = self.string()?;
            self.path.push(name.clone());
            if members.contains_key(&name) {
                return Err(self.error("a member named twice"));
            }
            self.expect(b':')?;
            let value = self.value()?;
            self.path.pop();
            members.insert(name, value);
            self.skip_space();
            if self.take(b'}') {
                return Ok(Node::Object(members));
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

    fn number(&mut self) -> Result<Node, JsonError> {
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
        if !well_formed {
            Err(self.error("a malformed number"))
        } else if text.parse().is_ok_and(f64::is_finite) {
            Ok(Node::Number(text.to_owned()))
        } else {
            Err(self.error("a number too large to be read by others"))
        }
    }

    fn string(&mut self) -> Result<String, JsonError> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let rest = &self.text[self.at..];
            let plain = rest
                .find(|c: char| c == '"' || c == '\\' || c < ' ')
                .unwrap_or(rest.len());
            text.push_str(&rest[..plain]);
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => text.push(self.escape()?),
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
