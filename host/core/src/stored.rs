//! The parser for tagged records (events and commands) in the audit.
//!
//! Serde reads a tagged enum through a buffer that loses the text of numbers. But data and input must stay the same byte for
//! byte. Otherwise a replay would show flow logic different facts. So a record is first split into its members, and each member
//! is parsed from its own text.

use std::borrow::Cow;

use super::event_schema::{MemberType, Presence};
use super::json::{Member, members};

/// The members of one record that have not been taken yet.
pub(crate) struct Members<'a>(Vec<Member<'a>>);

impl<'a> Members<'a> {
    /// The members of a JSON object; empty for any other value.
    pub(crate) fn of(text: &'a str) -> Result<Members<'a>, String> {
        let members = members(text).map_err(|error| error.to_string())?;
        Ok(Members(members))
    }

    /// Takes the member of a field. A member that may be null may also be absent.
    pub(crate) fn take<T: MemberType>(&mut self, field: &str) -> Result<T, String> {
        let name = member_name(field);
        let text = match self.text(&name) {
            None if T::PRESENCE == Presence::OrNull => Cow::Borrowed("null"),
            text => text.ok_or_else(|| format!("the member {name} is missing"))?,
        };
        serde_json::from_str(&text).map_err(|error| format!("the member {name}: {error}"))
    }

    /// Takes the member of a field, or the default if it is absent.
    pub(crate) fn take_or_default<T: MemberType + Default>(
        &mut self,
        field: &str,
    ) -> Result<T, String> {
        let name = member_name(field);
        if self.0.iter().any(|(held, _)| *held == name) {
            self.take(field)
        } else {
            Ok(T::default())
        }
    }

    /// Refuses a record with members that were not taken.
    pub(crate) fn finish(self) -> Result<(), String> {
        match self.0.first() {
            Some((name, _)) => Err(format!("the member {name} is unknown")),
            None => Ok(()),
        }
    }

    fn text(&mut self, name: &str) -> Option<Cow<'a, str>> {
        let place = self.0.iter().position(|(held, _)| held == name)?;
        Some(self.0.swap_remove(place).1)
    }
}

/// The member name of a field: `stateName` for `state_name`.
pub(crate) fn member_name(field: &str) -> String {
    let mut name = String::with_capacity(field.len());
    let mut words = field.split('_');
    name.push_str(words.next().unwrap_or_default());
    for word in words {
        let (first, rest) = word.split_at(word.len().min(1));
        name.push_str(&first.to_ascii_uppercase());
        name.push_str(rest);
    }
    name
}
