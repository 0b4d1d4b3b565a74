//! The members of an object, each with the canonical text of its value, to remove and add members without a tree.

use std::borrow::Cow;

use super::canonical::{self, write_string};
use super::reader::{PathSegment, Reader};
use super::{COMPOSED_DEPTH_MAX, Json, JsonError};

/// One member: its name, and the canonical text of its value.
pub type Member<'a> = (Cow<'a, str>, Cow<'a, str>);

/// The members of an object, sorted by name; empty for any other value. Accepts the same as [`Json::stored`].
pub fn members(text: &str) -> Result<Vec<Member<'_>>, JsonError> {
    let mut reader = Reader::new(text, COMPOSED_DEPTH_MAX);
    if reader.next() != Some(b'{') {
        Json::stored(text)?;
        return Ok(Vec::new());
    }
    reader.open()?;
    let mut members: Vec<Member<'_>> = Vec::new();
    let mut written = String::new();
    while !reader.closes(b'}', members.is_empty())? {
        let name = reader.name()?;
        reader.enter(PathSegment::Name(name.clone()));
        reader.colon()?;
        reader.next();
        let start = reader.at();
        written.clear();
        canonical::value(&mut reader, &mut written)?;
        reader.leave();
        let stored = reader.since(start);
        let is_canonical = stored == written;
        members.push((
            name,
            if is_canonical {
                Cow::Borrowed(stored)
            } else {
                Cow::Owned(written.clone())
            },
        ));
    }
    reader.end()?;
    // Usually they are sorted already.
    members.sort_by(|(one, _), (other, _)| one.cmp(other));
    if let Some(twice) = members.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        reader.enter(PathSegment::Name(twice[0].0.clone()));
        return Err(reader.error_before("a member named twice"));
    }
    Ok(members)
}

impl Json {
    /// The object of these members. Their values must be canonical text, and their names sorted and unique.
    pub(crate) fn of_members<'a>(members: impl IntoIterator<Item = (&'a str, &'a str)>) -> Json {
        let mut text = String::with_capacity(1024);
        text.push('{');
        let mut last = None;
        for (name, value) in members {
            assert!(last < Some(name), "sorted by name");
            text.push_str(if last.is_some() { "," } else { "" });
            write_string(&mut text, name).expect("writing to a string");
            text.push(':');
            text.push_str(value);
            last = Some(name);
        }
        text.push('}');
        Json(text.into())
    }

    /// The canonical text of a string.
    pub fn string(text: &str) -> String {
        let mut written = String::with_capacity(text.len() + 2);
        write_string(&mut written, text).expect("writing to a string");
        written
    }
}
