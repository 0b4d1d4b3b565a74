//! Texts that the host issues and gets back unchanged, such as embed tokens. They are sealed with the keys of decisions, under a
//! name of their own, so that no other seal is valid for them. They are not secret: everybody who has a token can read its text.
//!
//! The form is `TEXT.KEY.MAC`, each part in base64url without padding.

use base64::prelude::{BASE64_URL_SAFE_NO_PAD as BASE64, Engine as _};
use hmac::Mac as _;

use super::SealKeys;

/// Separates these seals from all others.
const KIND: &str = "wrkflw token 1";
/// Text, key and MAC.
const PARTS: usize = 3;

/// The text with the seal of the current key.
pub fn seal(keys: &SealKeys, text: &str) -> String {
    let mac = keys.mac_of(&keys.current, [Some(KIND), Some(text)]);
    let mac = mac.expect("the current key is one of the keys");
    let parts = [text.as_bytes(), keys.current.as_bytes(), &mac];
    parts.map(|part| BASE64.encode(part)).join(".")
}

/// The text of a token. None if it was not sealed with one of these keys.
pub fn open(keys: &SealKeys, token: &str) -> Option<String> {
    let parts = token.splitn(PARTS + 1, '.').map(|part| BASE64.decode(part));
    let parts: Vec<_> = parts.collect::<Result<_, _>>().ok()?;
    let [text, key, mac] = <[Vec<u8>; PARTS]>::try_from(parts).ok()?;
    let key = String::from_utf8(key).ok()?;
    let text = String::from_utf8(text).ok()?;
    let expected = keys.keyed(&key, [Some(KIND), Some(&text)])?;
    // The comparison takes constant time.
    expected.verify_slice(&mac).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn keys(current: &str, named: &[(&str, u8)]) -> SealKeys {
        let keys = named
            .iter()
            .map(|(name, byte)| ((*name).to_owned(), vec![*byte; 16]));
        SealKeys::new(current, keys.collect::<BTreeMap<_, _>>()).expect("keys")
    }

    #[test]
    fn a_token_is_opened_by_the_key_that_sealed_it_also_after_a_change_of_keys() {
        let old = keys("old", &[("old", 1)]);
        let token = seal(&old, "{\"a\": \"ü.\"}");
        assert_eq!(open(&old, &token).as_deref(), Some("{\"a\": \"ü.\"}"));
        let both = keys("new", &[("old", 1), ("new", 2)]);
        assert!(open(&both, &token).is_some());
        assert!(open(&old, &seal(&both, "x")).is_none());
        assert!(open(&keys("old", &[("old", 3)]), &token).is_none());
    }

    #[test]
    fn what_was_changed_is_refused() {
        let keys = keys("k", &[("k", 1)]);
        let token = seal(&keys, "text");
        let parts: Vec<_> = token.split('.').collect();
        let other = BASE64.encode("texts");
        for changed in [
            String::new(),
            "..".to_owned(),
            parts[..2].join("."),
            format!("{token}."),
            format!("{token}.{}", parts[2]),
            format!("{other}.{}.{}", parts[1], parts[2]),
            format!("{}.{}.", parts[0], parts[1]),
            format!("{}.{}.{}", parts[1], parts[0], parts[2]),
            token.replace('.', "!"),
        ] {
            assert_eq!(open(&keys, &changed), None, "{changed}");
        }
    }
}
