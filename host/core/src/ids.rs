//! Identifiers. Each is a separate type, so that a task's id cannot be used as an instance's.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::declare::record;

macro_rules! uuid_ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )+};
}

uuid_ids! {
    /// One run of a definition version (`UUIDv7`).
    InstanceId,
    /// One visit of an instance to a state (`UUIDv7`).
    StateId,
    /// A work item of a state instance (`UUIDv7`).
    TaskId,
    /// A fork: the branches that one plan opened (`UUIDv7`).
    ForkId,
    /// A deadline of a state instance or a task (`UUIDv7`).
    DeadlineId,
    /// One execution of a command. Every row that it wrote has this id.
    CommandId,
}

/// A tenant, by the number that is the first column of every key in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TenantId(pub i32);

impl fmt::Display for TenantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Encodes bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

/// Decodes hexadecimal digits.
pub fn unhex(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let pair = |[high, low]: &[u8; 2]| u8::try_from(digit(*high)? * 16 + digit(*low)?).ok();
    rest.is_empty().then(|| pairs.iter().map(pair).collect())?
}

/// The SHA-256 of a component, which identifies it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

record! {
    /// A definition version by key and number, such as `document-approval` version 3.
    #[derive(Eq, Hash)]
    pub struct VersionRef {
        /// The definition's key.
        pub key: String,
        /// The version that the instance runs.
        pub version: u32,
    }
}

impl fmt::Display for VersionRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} version {}", self.key, self.version)
    }
}

/// The rule that [`is_normal`] checks, for error messages.
pub const NOT_NORMAL: &str = "in Unicode's normal form C";

/// Whether a text is in Unicode's normal form C. Other spellings look the same but would be different ids, so they are refused.
pub fn is_normal(text: &str) -> bool {
    text.is_ascii() || unicode_normalization::is_nfc(text)
}

/// Checks a name: one line, and not too long. The error states the rule.
pub fn check_name(text: &str, chars_max: usize) -> Result<(), String> {
    let fits = !text.is_empty()
        && text.chars().count() <= chars_max
        && !text.chars().any(char::is_control);
    if fits {
        return Ok(());
    }
    Err(format!(
        "1 to {chars_max} characters, none of them a control character"
    ))
}

/// Checks an id from outside the host: of a person, group, entity, tenant or key. Every such id is checked by this, or by a
/// rule that allows only ASCII. The error states the rule.
pub fn check_id(text: &str, chars_max: usize) -> Result<(), String> {
    check_name(text, chars_max)?;
    is_normal(text)
        .then_some(())
        .ok_or_else(|| NOT_NORMAL.to_owned())
}
