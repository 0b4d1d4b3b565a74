//! The formats of secrets. This module parses them instead of clap, because clap's messages quote the value.

use std::fmt;

use wrkflw_core::ids::{check_id, unhex};
use wrkflw_core::text::counted;

/// A secret. `Debug` does not show it, so no log line, error or panic does.
#[derive(Clone, PartialEq, Eq)]
pub struct Hidden(String);

impl Hidden {
    /// The secret itself. Call it only where the secret is used.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Hidden {
    fn from(text: String) -> Hidden {
        Hidden(text)
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Hidden")
    }
}

/// How to write a value with a comma. Shown if a value has no name, because a split at a comma leaves such a value.
const COMMAS: &str = "commas separate them, except in a list or table of the settings file and in a file with several lines";
/// Minimum length of a key that seals decisions or signs requests.
const KEY_BYTES_MIN: usize = 16;
/// The longest name of a key.
const KEY_NAME_CHARS_MAX: usize = 64;

/// Parses a key that seals decisions, and its name.
pub(super) fn seal_key(text: &str) -> Result<(String, Vec<u8>), String> {
    key("seal_keys", text)
}

/// Parses a key that signs requests to a service, and the name of the service.
pub(super) fn service_key(text: &str) -> Result<(String, Vec<u8>), String> {
    key("service_keys", text)
}

/// Parses the bearer token of a service, and the name of the service.
pub(super) fn token(text: &str) -> Result<(String, String), String> {
    let parts = text.trim().split_once(':');
    let (name, token) =
        parts.ok_or_else(|| format!("service_tokens: write each token as name:token; {COMMAS}"))?;
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!(
            "service_tokens: the token of {name} is empty or has characters that no header takes"
        ));
    }
    Ok((name.to_owned(), token.to_owned()))
}

fn key(setting: &str, text: &str) -> Result<(String, Vec<u8>), String> {
    let (name, hex) = split_key(setting, text)?;
    let bytes = unhex(hex)
        .ok_or_else(|| format!("{setting}: the key {name} is not written in hex digits"))?;
    match bytes.len() {
        length if length < KEY_BYTES_MIN => Err(format!(
            "{setting}: the key {name} has {}; take {KEY_BYTES_MIN} at least",
            counted(length, "byte")
        )),
        _ => Ok((name.to_owned(), bytes)),
    }
}

/// Splits a key into its name and its digits. The name is stored with each seal, so it must be in normal form.
fn split_key<'a>(setting: &str, text: &'a str) -> Result<(&'a str, &'a str), String> {
    let parts = text.trim().split_once(':');
    let (name, hex) = parts.ok_or_else(|| format!("{setting}: write each key as name:hex"))?;
    check_id(name, KEY_NAME_CHARS_MAX)
        .map_err(|rule| format!("{setting}: the name of a key must be {rule}"))?;
    Ok((name, hex))
}

/// Parses the key that authenticates machine code on disk.
pub(super) fn artifact_key(text: &str) -> Result<[u8; 32], String> {
    let bytes = unhex(text.trim()).and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| "artifact_key is not 64 hex digits".to_owned())
}

/// A named key of checkpoints.
pub(super) enum CheckpointKey {
    Secret(String, [u8; 32]),
    Public(String, [u8; 32]),
}

/// Precedes the digits of a public key.
pub(crate) const PUBLIC_PREFIX: &str = "public:";

/// Parses a key of checkpoints and its name.
pub(super) fn checkpoint_key(text: &str) -> Result<CheckpointKey, String> {
    let (name, rest) = split_key("checkpoint_keys", text)?;
    let public = rest.strip_prefix(PUBLIC_PREFIX);
    let bytes = unhex(public.unwrap_or(rest)).and_then(|bytes| bytes.try_into().ok());
    let key =
        bytes.ok_or_else(|| format!("checkpoint_keys: the key {name} is not 64 hex digits"))?;
    let variant = match public {
        Some(_) => CheckpointKey::Public,
        None => CheckpointKey::Secret,
    };
    Ok(variant(name.to_owned(), key))
}

/// Parses a property of librdkafka.
pub(super) fn property(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| format!("kafka_properties: write each property as name=value; {COMMAS}"))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seal_keys_are_named_and_long_enough() {
        let (name, bytes) = seal_key("k1:000102030405060708090a0b0c0d0eFF").expect("a key");
        assert_eq!((name.as_str(), bytes[15]), ("k1", 255));
        for (text, words) in [
            ("k1", "name:hex"),
            ("k1:xyz0", "hex digits"),
            ("k1:00ff", "has 2 bytes;"),
            ("k1:00", "has 1 byte;"),
            ("k1:00f", "hex digits"),
            (":00ff", "1 to 64 characters"),
            ("e\u{301}:00ff", "normal form C"),
        ] {
            assert!(seal_key(text).expect_err(text).contains(words), "{text}");
        }
    }

    #[test]
    fn messages_do_not_quote_the_secret() {
        for message in [
            seal_key("k1:s3cret").expect_err("no hex"),
            artifact_key("s3cret").expect_err("no hex"),
        ] {
            assert!(!message.contains("s3cret"), "{message}");
        }
    }
}
