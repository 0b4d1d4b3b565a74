//! Secrets have forms of their own. They are read here and not by clap, whose messages quote the value.

use std::fmt;

use crate::domain::ids::unhex;

/// A setting that no log line, error or panic may show, even where somebody prints all settings.
#[derive(Clone, PartialEq, Eq)]
pub struct Hidden(String);

impl Hidden {
    /// The secret itself, for the one place that needs it.
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

/// The fewest bytes of a key.
const KEY_BYTES_MIN: usize = 16;

/// A key that seals decisions, under its name.
pub(super) fn seal_key(text: &str) -> Result<(String, Vec<u8>), String> {
    let (name, hex) = text
        .trim()
        .split_once(':')
        .ok_or("seal_keys: write each key as name:hex")?;
    let bytes = unhex(hex)
        .ok_or_else(|| format!("seal_keys: the key {name} is not written in hex digits"))?;
    match bytes.len() {
        length if length < KEY_BYTES_MIN => Err(format!(
            "seal_keys: the key {name} has {length} bytes; take {KEY_BYTES_MIN} at least"
        )),
        _ => Ok((name.to_owned(), bytes)),
    }
}

/// The key that authenticates machine code on disk.
pub(super) fn artifact_key(text: &str) -> Result<[u8; 32], String> {
    let bytes = unhex(text.trim()).and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| "artifact_key is not 64 hex digits".to_owned())
}

/// A key of 32 bytes under its name. `setting` is where it stands.
pub(super) fn named_key(setting: &str, text: &str) -> Result<(String, [u8; 32]), String> {
    let (name, hex) = text
        .trim()
        .split_once(':')
        .ok_or_else(|| format!("{setting}: write each key as name:hex"))?;
    let bytes = unhex(hex).and_then(|bytes| bytes.try_into().ok());
    let key = bytes.ok_or_else(|| format!("{setting}: the key {name} is not 64 hex digits"))?;
    Ok((name.to_owned(), key))
}

/// A property of librdkafka.
pub(super) fn property(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or("kafka_properties: write each property as name=value")?;
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
            ("k1:00ff", "2 bytes"),
            ("k1:00f", "hex digits"),
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
