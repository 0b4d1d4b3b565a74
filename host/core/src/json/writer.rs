//! Serialises values directly to canonical text, without a tree and without parsing the text again.
//!
//! It writes members in the order in which they come, and rewrites an object with unsorted members at its end. A value that
//! [`super::Json::parse`] would refuse is an error here, too.

mod serializer;

use std::cell::Cell;
use std::cmp::Ordering;
use std::fmt::{self, Display};
use std::ops::Range;

use serde::ser::{self, Serialize};

use super::COMPOSED_DEPTH_MAX;
use super::canonical::{is_plain, write_string};
use super::reader::Reader;
use wrkflw_fault as fault;

/// The initial capacity of the output. Most documents of a command fit into it.
const CAPACITY: usize = 2048;
/// The initial capacity for members of open objects.
const MEMBERS: usize = 64;
/// Longer buffers are not kept for the next document.
const KEPT_BYTES_MAX: usize = 64 * 1024;

thread_local! {
    /// The buffers of the last document that this thread wrote. A command writes a dozen documents.
    static KEPT: Cell<Option<Writer>> = const { Cell::new(None) };
}

/// The canonical form of `value`.
pub(super) fn write(value: &(impl Serialize + ?Sized)) -> Result<Box<str>, Unfit> {
    // A value that is written while another one is being written finds no buffers here, and makes its own.
    let mut writer = KEPT.take().unwrap_or_else(Writer::new);
    value.serialize(&mut writer)?;
    let text = Box::from(writer.out.as_str());
    writer.keep();
    Ok(text)
}

/// Why a value has no canonical form.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Unfit(String);

impl ser::Error for Unfit {
    fn custom<T: Display>(message: T) -> Unfit {
        Unfit(message.to_string())
    }
}

impl From<fmt::Error> for Unfit {
    fn from(_: fmt::Error) -> Unfit {
        Unfit("a value that cannot be shown".into())
    }
}

/// One member of an object that is being written, and its position in the output.
struct Member {
    /// Its escaped name, without the quotes.
    name: Range<usize>,
    /// Its name without escapes, if the escaped name differs.
    unescaped: Option<Box<str>>,
    /// The first bytes of its name, which are enough to compare most names.
    prefix: u64,
    end: usize,
}

impl Member {
    fn order(&self, other: &Member, out: &str) -> Ordering {
        let by_prefix = self.prefix.cmp(&other.prefix);
        by_prefix.then_with(|| self.name(out).cmp(other.name(out)))
    }

    fn name<'a>(&'a self, out: &'a str) -> &'a str {
        match &self.unescaped {
            Some(name) => name,
            None => &out[self.name.clone()],
        }
    }

    /// The whole member, from the quote before its name.
    fn written(&self) -> Range<usize> {
        self.name.start - 1..self.end
    }
}

struct Writer {
    out: String,
    /// The members of all open objects; those of the innermost object are the last.
    members: Vec<Member>,
    /// A buffer for the members of an object while they are sorted.
    unsorted: String,
    depth: usize,
    /// The next string is canonical JSON text.
    is_raw: bool,
}

impl Writer {
    fn new() -> Writer {
        Writer {
            out: String::with_capacity(CAPACITY),
            members: Vec::with_capacity(MEMBERS),
            unsorted: String::new(),
            depth: 0,
            is_raw: false,
        }
    }

    /// Keeps the buffers of a complete document, unless they are long. A failed document leaves none.
    fn keep(mut self) {
        let bytes = self.out.capacity() + self.unsorted.capacity();
        let of_members = self.members.capacity() * size_of::<Member>();
        if bytes + of_members <= KEPT_BYTES_MAX {
            self.out.clear();
            self.members.clear();
            self.unsorted.clear();
            (self.depth, self.is_raw) = (0, false);
            KEPT.set(Some(self));
        }
    }

    fn string(&mut self, text: &str) -> Result<(), Unfit> {
        if self.is_raw {
            fault::invariant!(
                || super::Json::stored(text).is_ok_and(|json| json.as_str() == text),
                format_args!("raw text is canonical: {text}"),
            );
            self.out.push_str(text);
            return Ok(());
        }
        if text.contains('\0') {
            return Err(Unfit("the character NUL".into()));
        }
        Ok(write_string(&mut self.out, text)?)
    }

    fn open(&mut self, bracket: char) -> Result<Items<'_>, Unfit> {
        self.depth += 1;
        if self.depth > COMPOSED_DEPTH_MAX {
            return Err(Unfit(format!("nesting deeper than {COMPOSED_DEPTH_MAX}")));
        }
        self.out.push(bracket);
        Ok(Items {
            begin: self.out.len(),
            first: self.members.len(),
            is_sorted: true,
            is_variant: false,
            writer: self,
        })
    }

    /// Begins an object with one member that is named after the variant. The next value is the member's value.
    fn variant(&mut self, name: &'static str) -> Result<(), Unfit> {
        self.depth += 1;
        self.out.push('{');
        self.string(name)?;
        self.out.push(':');
        Ok(())
    }

    fn variant_ends(&mut self) {
        self.depth -= 1;
        self.out.push('}');
    }
}

/// An array or object that is being written.
struct Items<'w> {
    writer: &'w mut Writer,
    /// Its position in the output, after its bracket.
    begin: usize,
    /// How many members the objects around it have so far.
    first: usize,
    is_sorted: bool,
    /// It is the content of a variant.
    is_variant: bool,
}

impl Items<'_> {
    fn item(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), Unfit> {
        if self.writer.out.len() > self.begin {
            self.writer.out.push(',');
        }
        value.serialize(&mut *self.writer)
    }

    /// A member of a struct, whose name needs no escapes.
    fn member(
        &mut self,
        name: &'static str,
        value: &(impl Serialize + ?Sized),
    ) -> Result<(), Unfit> {
        fault::invariant!(|| is_plain(name), format_args!("{name} needs no escapes"));
        let start = self.next();
        let out = &mut self.writer.out;
        out.push('"');
        out.push_str(name);
        out.push_str("\":");
        let written = start + 1..out.len() - 2;
        self.named(written, None);
        self.value(value)
    }

    /// Begins a member. The name of a numeric or boolean key is its JSON text.
    fn name(&mut self, key: &(impl Serialize + ?Sized)) -> Result<(), Unfit> {
        let start = self.next();
        let writer = &mut *self.writer;
        key.serialize(&mut *writer)?;
        match writer.out.as_bytes().get(start) {
            Some(b'"') => {}
            Some(b'-' | b'0'..=b'9' | b't' | b'f') => {
                writer.out.insert(start, '"');
                writer.out.push('"');
            }
            _ => return Err(Unfit("a key that is no name".into())),
        }
        let written = &writer.out[start..];
        let unescaped = if written.bytes().any(|byte| byte == b'\\') {
            let name = Reader::new(written, 0).string();
            let name = name.map_err(|error| Unfit(error.to_string()))?;
            Some(name.into_owned().into_boxed_str())
        } else {
            None
        };
        let written = start + 1..writer.out.len() - 1;
        writer.out.push(':');
        self.named(written, unescaped);
        Ok(())
    }

    /// The position of the next member.
    fn next(&mut self) -> usize {
        if self.writer.members.len() > self.first {
            self.writer.out.push(',');
        }
        self.writer.out.len()
    }

    fn named(&mut self, name: Range<usize>, unescaped: Option<Box<str>>) {
        let Writer { out, members, .. } = &mut *self.writer;
        let mut member = Member {
            name,
            unescaped,
            prefix: 0,
            end: 0,
        };
        member.prefix = prefix(member.name(out));
        if let Some(last) = members[self.first..].last() {
            self.is_sorted &= last.order(&member, out) == Ordering::Less;
        }
        members.push(member);
    }

    /// Writes the value, which ends the member.
    fn value(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), Unfit> {
        value.serialize(&mut *self.writer)?;
        let end = self.writer.out.len();
        let member = self.writer.members.last_mut();
        member.expect("a value follows its name").end = end;
        Ok(())
    }

    fn close(self, bracket: char) {
        self.writer.depth -= 1;
        self.writer.out.push(bracket);
        if self.is_variant {
            self.writer.variant_ends();
        }
    }

    fn close_object(self) -> Result<(), Unfit> {
        let Writer {
            out,
            members,
            unsorted,
            ..
        } = &mut *self.writer;
        if !self.is_sorted {
            let own = &mut members[self.first..];
            own.sort_unstable_by(|one, other| one.order(other, out));
            let mut pairs = own.windows(2);
            if let Some(twice) = pairs.find(|pair| pair[0].order(&pair[1], out).is_eq()) {
                let name = twice[0].name(out);
                return Err(Unfit(format!("a member named twice, {name}")));
            }
            unsorted.clear();
            unsorted.push_str(&out[self.begin..]);
            out.truncate(self.begin);
            for (index, member) in own.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                let Range { start, end } = member.written();
                out.push_str(&unsorted[start - self.begin..end - self.begin]);
            }
        }
        members.truncate(self.first);
        self.close('}');
        Ok(())
    }
}

/// The first bytes of a name as a number that sorts as the name does. This needs names without NUL.
fn prefix(name: &str) -> u64 {
    let mut first = [0; 8];
    let length = name.len().min(first.len());
    first[..length].copy_from_slice(&name.as_bytes()[..length]);
    u64::from_be_bytes(first)
}

#[cfg(test)]
mod tests;
