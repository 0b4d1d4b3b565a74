//! Converts JSON text to canonical form in one pass, without a tree.
//!
//! A command writes and reads a dozen documents, so this is fast: it writes the output while it reads the text, and
//! rewrites only objects with unsorted members. It accepts and refuses the same texts as [`super::node::parse`].

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::ops::Range;

use super::JsonError;
use super::reader::{PathSegment, Reader};

/// The canonical form of `text`.
pub(super) fn canonical(text: &str, depth_max: usize) -> Result<String, JsonError> {
    let mut reader = Reader::new(text, depth_max);
    let mut out = String::with_capacity(text.len());
    value(&mut reader, &mut out)?;
    reader.end()?;
    Ok(out)
}

/// One member of an object, and its position in the output.
struct Member<'a> {
    name: Cow<'a, str>,
    written: Range<usize>,
}

pub(super) fn value(reader: &mut Reader<'_>, out: &mut String) -> Result<(), JsonError> {
    match reader.next() {
        Some(b'{') => object(reader, out),
        Some(b'[') => array(reader, out),
        Some(b'"') => {
            write_string(out, &reader.string()?).expect("writing to a string");
            Ok(())
        }
        Some(b'-' | b'0'..=b'9') => {
            out.push_str(reader.number()?);
            Ok(())
        }
        _ => {
            out.push_str(reader.word()?);
            Ok(())
        }
    }
}

fn array(reader: &mut Reader<'_>, out: &mut String) -> Result<(), JsonError> {
    reader.open()?;
    out.push('[');
    let mut index = 0;
    while !reader.closes(b']', index == 0)? {
        if index > 0 {
            out.push(',');
        }
        reader.enter(PathSegment::Index(index));
        value(reader, out)?;
        reader.leave();
        index += 1;
    }
    out.push(']');
    Ok(())
}

fn object(reader: &mut Reader<'_>, out: &mut String) -> Result<(), JsonError> {
    reader.open()?;
    out.push('{');
    let begin = out.len();
    let mut members: Vec<Member<'_>> = Vec::new();
    let mut is_sorted = true;
    while !reader.closes(b'}', members.is_empty())? {
        let name = reader.name()?;
        if let Some(last) = members.last() {
            is_sorted &= last.name < name;
            out.push(',');
        }
        let start = out.len();
        write_string(out, &name).expect("writing to a string");
        out.push(':');
        reader.enter(PathSegment::Name(name));
        reader.colon()?;
        value(reader, out)?;
        let Some(PathSegment::Name(name)) = reader.leave() else {
            unreachable!("what was entered is left")
        };
        let written = start..out.len();
        members.push(Member { name, written });
    }
    if !is_sorted {
        members.sort_by(|one, other| one.name.cmp(&other.name));
        if let Some(twice) = members.windows(2).find(|pair| pair[0].name == pair[1].name) {
            reader.enter(PathSegment::Name(twice[0].name.clone()));
            return Err(reader.error_before("a member named twice"));
        }
        let unsorted = out.split_off(begin);
        for (index, Member { written, .. }) in members.into_iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            out.push_str(&unsorted[written.start - begin..written.end - begin]);
        }
    }
    out.push('}');
    Ok(())
}

/// Writes `text` as a canonical JSON string.
pub(super) fn write_string(out: &mut impl Write, text: &str) -> fmt::Result {
    out.write_char('"')?;
    if is_plain(text) {
        out.write_str(text)?;
        return out.write_char('"');
    }
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        if !is_special(byte) {
            continue;
        }
        out.write_str(&text[plain..at])?;
        plain = at + 1;
        match byte {
            b'"' => out.write_str("\\\"")?,
            b'\\' => out.write_str("\\\\")?,
            b'\n' => out.write_str("\\n")?,
            b'\r' => out.write_str("\\r")?,
            b'\t' => out.write_str("\\t")?,
            control => write!(out, "\\u{control:04x}")?,
        }
    }
    out.write_str(&text[plain..])?;
    out.write_char('"')
}

/// Whether a JSON string of this text needs no escapes. Written so that the compiler vectorises it.
pub(super) fn is_plain(text: &str) -> bool {
    !text
        .bytes()
        .fold(false, |found, byte| found | is_special(byte))
}

fn is_special(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | 0..b' ')
}
