//! The seal of a stored reply. It is the first of the stored headers.

use super::{SealKeys, SealVerdict};
use wrkflw_core::ids::{hex, unhex};

const SEAL: &str = "wrkflw-seal: ";

/// The owner of a reply: the tenant's name, the principal, the idempotency key.
pub type Owner<'a> = (&'a str, &'a str, &'a str);

/// The parts of a reply that a seal covers.
#[derive(Debug, Clone, Copy)]
pub struct Sealed<'a> {
    pub fingerprint: &'a [u8],
    pub status: u16,
    /// SHA-256 of the body, so that a verifier need not see the body.
    pub body: &'a [u8],
    /// The headers, with the seal if there is one.
    pub headers: &'a str,
}

/// The headers of the reply with its seal.
pub fn seal(keys: &SealKeys, owner: Owner<'_>, reply: Sealed<'_>) -> String {
    let (key, headers) = (&keys.current, reply.headers);
    match mac(keys, key, owner, reply, headers) {
        Some(mac) => format!("{SEAL}{key} {}\n{headers}", hex(&mac)),
        None => headers.to_owned(),
    }
}

/// Checks the seal of a reply. None if it has no seal, or a malformed one.
pub fn verdict(keys: &SealKeys, owner: Owner<'_>, reply: Sealed<'_>) -> Option<SealVerdict> {
    let (seal, headers) = parts(reply.headers);
    let (key, claimed) = seal?.rsplit_once(' ')?;
    Some(match mac(keys, key, owner, reply, headers) {
        None => SealVerdict::UnknownKey,
        Some(expected) if unhex(claimed).is_some_and(|claimed| claimed == expected) => {
            SealVerdict::Valid
        }
        Some(_) => SealVerdict::Invalid,
    })
}

fn mac(
    keys: &SealKeys,
    key: &str,
    (tenant, principal, name): Owner<'_>,
    reply: Sealed<'_>,
    headers: &str,
) -> Option<[u8; 32]> {
    let (fingerprint, status) = (hex(reply.fingerprint), reply.status.to_string());
    let fields = [
        "wrkflw reply 1",
        tenant,
        principal,
        name,
        &fingerprint,
        &status,
        &hex(reply.body),
        headers,
    ];
    keys.mac_of(key, fields.map(Some))
}

/// The headers of a stored reply without its seal.
pub fn unsealed(headers: &str) -> &str {
    parts(headers).1
}

fn parts(headers: &str) -> (Option<&str>, &str) {
    match headers
        .strip_prefix(SEAL)
        .and_then(|rest| rest.split_once('\n'))
    {
        Some((seal, headers)) => (Some(seal), headers),
        None => (None, headers),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_sealed_reply_is_itself_and_no_other() {
        let keys = BTreeMap::from([("k 1".to_owned(), vec![7; 32])]);
        let keys = SealKeys::new("k 1", keys).expect("keys");
        let plain = "etag: \"1\"\nlocation: /v1";
        let reply = Sealed {
            fingerprint: &[1, 2],
            status: 200,
            body: &[5; 32],
            headers: plain,
        };
        let owner = ("default", "author", "key-1");
        let headers = seal(&keys, owner, reply);
        let sealed = Sealed {
            headers: &headers,
            ..reply
        };
        assert_eq!(unsealed(&headers), plain);
        assert_eq!(unsealed(plain), plain);
        assert_eq!(verdict(&keys, owner, sealed), Some(SealVerdict::Valid));
        assert_eq!(verdict(&keys, owner, reply), None);
        let (longer, renamed) = (format!("{headers}x"), headers.replace("k 1", "k 2"));
        for other in [
            Sealed {
                body: &[6; 32],
                ..sealed
            },
            Sealed {
                headers: &longer,
                ..sealed
            },
            Sealed {
                status: 201,
                ..sealed
            },
            Sealed {
                fingerprint: &[1, 2, 3],
                ..sealed
            },
        ] {
            assert_eq!(verdict(&keys, owner, other), Some(SealVerdict::Invalid));
        }
        for owner in [
            ("other", "author", "key-1"),
            ("default", "admin", "key-1"),
            ("default", "author", "key-2"),
        ] {
            assert_eq!(verdict(&keys, owner, sealed), Some(SealVerdict::Invalid));
        }
        let renamed = Sealed {
            headers: &renamed,
            ..sealed
        };
        assert_eq!(
            verdict(&keys, owner, renamed),
            Some(SealVerdict::UnknownKey)
        );
    }
}
