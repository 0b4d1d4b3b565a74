//! The names of states and triggers, as enums of the author.
//!
//! The name of a state is that of its variant (`FinalReview`). The name of a trigger is in capitals (`NeedsWork` is
//! `NEEDS_WORK`). Either may have another name: `FinalReview = "final-review"`. The names are computed at compile time: a
//! misspelt, malformed or repeated name does not compile.

use std::fmt::Debug;

use serde::{Deserialize, Deserializer, de};

/// An enum with names for the host. Only [`states!`](crate::states) and [`triggers!`](crate::triggers) implement it.
pub trait Names: Copy + Eq + Debug + 'static {
    /// Every variant, as declared.
    const ALL: &'static [Self];

    /// The name for the host.
    fn name(self) -> &'static str;

    /// The doc comment as one text: the description of the state, or of the transitions by the trigger. Empty without one.
    fn description(self) -> &'static str;

    /// The variant of this name.
    fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.name() == name)
    }
}

/// The states of a flow.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name the states of a flow",
    label = "not an enum made by `states!`",
    note = "declare it as `wrkflw_guest::states! {{ pub enum State {{ Draft, Done }} }}`"
)]
pub trait States: Names {}

/// The triggers of a flow.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name the triggers of a flow",
    label = "not an enum made by `triggers!`",
    note = "declare it as `wrkflw_guest::triggers! {{ pub enum Trigger {{ Approve, Reject }} }}`"
)]
pub trait Triggers: Names {}

/// Declares the states of a flow: `states! { pub enum State { Draft, Done } }`.
///
/// The name for the host is that of the variant, or the text after `=`. The doc comment of a variant is the description of the
/// state for people.
///
/// ```
/// wrkflw_guest::states! {
///     pub enum State {
///         /// Somebody of the department looks at it.
///         Review = "PENDING_REVIEW",
///         Done,
///     }
/// }
/// ```
#[macro_export]
macro_rules! states {
    ($(#[$meta:meta])* $vis:vis enum $name:ident {
        $($(#[$($note:tt)*])* $variant:ident $(= $text:literal)?),+ $(,)?
    }) => {
        $crate::names_enum! { $(#[$meta])* $vis enum $name {
            $($(#[$($note)*])* $variant = $crate::first!($($text,)? stringify!($variant))),+
        } }
        impl $crate::States for $name {}
    };
}

/// Declares the triggers of a flow: `triggers! { pub enum Trigger { Approve, NeedsWork } }`.
///
/// The names for the host are `APPROVE` and `NEEDS_WORK`, or the text after `=`: `NeedsWork = "send-back"`. The doc comment of a
/// variant describes the transitions by this trigger, for people.
#[macro_export]
macro_rules! triggers {
    ($(#[$meta:meta])* $vis:vis enum $name:ident {
        $($(#[$($note:tt)*])* $variant:ident $(= $text:literal)?),+ $(,)?
    }) => {
        $crate::names_enum! { $(#[$meta])* $vis enum $name {
            $($(#[$($note)*])* $variant = $crate::first!($($text,)? {
                const CAPITALS: [u8; $crate::plumbing::capitals_len(stringify!($variant))] =
                    $crate::plumbing::capitals(stringify!($variant));
                const NAME: &str = $crate::plumbing::ascii(&CAPITALS);
                NAME
            })),+
        } }
        impl $crate::Triggers for $name {}
    };
}

/// Expands to the first argument.
#[doc(hidden)]
#[macro_export]
macro_rules! first {
    ($first:expr $(, $other:expr)*) => {
        $first
    };
}

/// The lines of the doc comment, without other attributes.
#[doc(hidden)]
#[macro_export]
macro_rules! doc_comment {
    ([$($line:literal)*]) => { concat!($($line),*) };
    ([$($line:literal)*] #[doc = $next:literal] $($rest:tt)*) => {
        $crate::doc_comment!([$($line)* $next] $($rest)*)
    };
    ([$($line:literal)*] #[$($other:tt)*] $($rest:tt)*) => {
        $crate::doc_comment!([$($line)*] $($rest)*)
    };
}

/// The common part of [`states!`](crate::states) and [`triggers!`](crate::triggers).
#[doc(hidden)]
#[macro_export]
macro_rules! names_enum {
    ($(#[$meta:meta])* $vis:vis enum $name:ident {
        $($(#[$($note:tt)*])* $variant:ident = $text:expr),+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        $vis enum $name { $($(#[$($note)*])* $variant),+ }

        const _: () = {
            $(assert!(
                $crate::plumbing::is_name($text),
                concat!(
                    "`", stringify!($variant), "` is no name: letters, digits, `_`, `.` and `-`, a letter or `_` first, at most \
                     255 characters; give it one, such as `", stringify!($variant), " = \"PENDING_REVIEW\"`"
                )
            );)+
            assert!(
                $crate::plumbing::all_differ(&[$($text),+]),
                concat!("two variants of `", stringify!($name), "` have the same name")
            );
        };

        impl $crate::Names for $name {
            const ALL: &'static [Self] = &[$(Self::$variant),+];

            fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            fn description(self) -> &'static str {
                let text = match self { $(Self::$variant => $crate::doc_comment!([] $(#[$($note)*])*)),+ };
                text.trim()
            }
        }

        impl $crate::plumbing::serde::Serialize for $name {
            fn serialize<S: $crate::plumbing::serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str($crate::Names::name(*self))
            }
        }

        impl<'de> $crate::plumbing::serde::Deserialize<'de> for $name {
            fn deserialize<D: $crate::plumbing::serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                $crate::plumbing::named(from)
            }
        }

        impl PartialEq<$name> for String {
            fn eq(&self, other: &$name) -> bool {
                self == $crate::Names::name(*other)
            }
        }
    };
}

/// Reads a name from JSON, such as that of a state in a form.
pub fn named<'de, N: Names, D: Deserializer<'de>>(from: D) -> Result<N, D::Error> {
    let name = String::deserialize(from)?;
    N::parse(&name)
        .ok_or_else(|| de::Error::custom(format!("this flow knows no {name:?} of this kind")))
}

/// The length of `identifier` in capitals: each capital but the first begins a new word.
#[must_use]
pub const fn capitals_len(identifier: &str) -> usize {
    let (bytes, mut at, mut len) = (identifier.as_bytes(), 0, identifier.len());
    while at < bytes.len() {
        if at > 0 && bytes[at].is_ascii_uppercase() {
            len += 1;
        }
        at += 1;
    }
    len
}

/// `NeedsWork` as `NEEDS_WORK`.
#[must_use]
pub const fn capitals<const LEN: usize>(identifier: &str) -> [u8; LEN] {
    let (bytes, mut capitals) = (identifier.as_bytes(), [b'_'; LEN]);
    let (mut from, mut to) = (0, 0);
    while from < bytes.len() {
        if from > 0 && bytes[from].is_ascii_uppercase() {
            to += 1;
        }
        capitals[to] = bytes[from].to_ascii_uppercase();
        from += 1;
        to += 1;
    }
    capitals
}

/// Whether the contract accepts this as the name of a state or trigger.
#[must_use]
pub const fn is_name(name: &str) -> bool {
    let (bytes, mut at) = (name.as_bytes(), 0);
    while at < bytes.len() {
        let begins = bytes[at].is_ascii_alphabetic() || bytes[at] == b'_';
        let follows = bytes[at].is_ascii_digit() || matches!(bytes[at], b'.' | b'-');
        if !(begins || at > 0 && follows) {
            return false;
        }
        at += 1;
    }
    at > 0 && at <= 255
}

/// Whether all names are different.
#[must_use]
pub const fn all_differ(names: &[&str]) -> bool {
    let mut one = 0;
    while one < names.len() {
        let mut other = 0;
        while other < one {
            if is_same(names[one].as_bytes(), names[other].as_bytes()) {
                return false;
            }
            other += 1;
        }
        one += 1;
    }
    true
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

/// Converts ASCII bytes to a text.
#[must_use]
pub const fn ascii(bytes: &'static [u8]) -> &'static str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => panic!("names of states and triggers are written in ASCII"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::states! {
        enum State {
            /// Its author writes it.
            ///
            /// As long as it takes.
            Draft,
            #[cfg(test)]
            FinalReview,
            Signed = "com.example-SIGNED",
        }
    }
    crate::triggers! { enum Trigger { Approve, NeedsWork, Retry2, /** Again. */ Again = "again" } }

    #[test]
    fn states_have_their_own_names_and_triggers_are_in_capitals() {
        let states: Vec<_> = State::ALL.iter().map(|one| one.name()).collect();
        let triggers: Vec<_> = Trigger::ALL.iter().map(|one| one.name()).collect();
        assert_eq!(states, ["Draft", "FinalReview", "com.example-SIGNED"]);
        assert_eq!(triggers, ["APPROVE", "NEEDS_WORK", "RETRY2", "again"]);
    }

    #[test]
    fn doc_comments_are_descriptions() {
        let states: Vec<_> = State::ALL.iter().map(|one| one.description()).collect();
        assert_eq!(
            states,
            ["Its author writes it. As long as it takes.", "", ""]
        );
        assert_eq!(Trigger::Again.description(), "Again.");
        assert_eq!(Trigger::Approve.description(), "");
    }

    #[test]
    fn repeated_names_are_found() {
        assert!(all_differ(&["a", "ab", "b"]) && !all_differ(&["a", "b", "a"]));
    }

    #[test]
    fn names_are_found_again_and_compare_with_the_wire() {
        assert_eq!(State::parse("Draft"), Some(State::Draft));
        assert_eq!(State::parse("com.example-SIGNED"), Some(State::Signed));
        assert_eq!(State::parse("Signed"), None);
        assert_eq!(State::parse("draft"), None);
        assert!("NEEDS_WORK".to_owned() == Trigger::NeedsWork);
        let read: Vec<State> = serde_json::from_str(r#"["FinalReview"]"#).expect("a state");
        assert_eq!(read, [State::FinalReview]);
        assert!(serde_json::from_str::<Trigger>(r#""APPROVED""#).is_err());
        assert_eq!(serde_json::json!(Trigger::NeedsWork), "NEEDS_WORK");
    }
}
