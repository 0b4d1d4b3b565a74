//! The seal of a reply that is kept for repetitions. It stands in front of the headers, as one more of them: a host of a release
//! that knows no such seals repeats it to its caller, and nobody minds.

use super::{SealKeys, Verdict};
use crate::domain::audit::sha256;
use crate::domain::ids::{hex, unhex};
use crate::store::load::StoredReply;

const SEAL: &str = "wrkflw-seal: ";

/// Whose reply it is: the tenant's name, the principal, the key of the request.
pub type Owner<'a> = (&'a str, &'a str, &'a str);

/// What a seal covers of a reply.
#[derive(Debug, Clone, Copy)]
pub struct Sealed<'a> {
    pub fingerprint: &'a [u8],
    pub status: u16,
    /// SHA-256 of the body: whoever verifies need not see what was answered.
    pub body: &'a [u8],
    /// With the seal, if there is one.
    pub headers: &'a str,
}

impl SealKeys {
    /// The reply with its seal.
    pub(in crate::engine) fn seal_reply(
        &self,
        owner: Owner<'_>,
        mut reply: StoredReply,
    ) -> StoredReply {
        let (key, body) = (&self.current, sha256(reply.body.as_bytes()));
        let covered = covered(&reply, &body);
        if let Some(mac) = self.reply_mac(key, owner, covered, &reply.headers) {
            reply.headers = format!("{SEAL}{key} {}\n{}", hex(&mac), reply.headers);
        }
        reply
    }

    /// Whether the reply is as it was sealed; none where it has no seal, as those of earlier releases.
    pub(in crate::engine) fn reply_verdict(
        &self,
        owner: Owner<'_>,
        reply: &StoredReply,
    ) -> Option<Verdict> {
        let body = sha256(reply.body.as_bytes());
        self.sealed_verdict(owner, covered(reply, &body))
    }

    /// The same of what a seal covers.
    pub fn sealed_verdict(&self, owner: Owner<'_>, reply: Sealed<'_>) -> Option<Verdict> {
        let (seal, headers) = parts(reply.headers);
        let (key, mac) = seal?.rsplit_once(' ')?;
        Some(match self.reply_mac(key, owner, reply, headers) {
            None => Verdict::UnknownKey,
            Some(made) if unhex(mac).is_some_and(|mac| mac == made) => Verdict::Valid,
            Some(_) => Verdict::Invalid,
        })
    }

    fn reply_mac(
        &self,
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
        self.mac_of(key, fields.map(Some))
    }
}

fn covered<'a>(reply: &'a StoredReply, body: &'a [u8]) -> Sealed<'a> {
    Sealed {
        fingerprint: &reply.fingerprint,
        status: reply.status,
        body,
        headers: &reply.headers,
    }
}

/// The headers of a stored reply without its seal.
pub(in crate::engine) fn unsealed(reply: &StoredReply) -> &str {
    parts(&reply.headers).1
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
        let plain = StoredReply {
            fingerprint: vec![1, 2],
            status: 200,
            body: "{}".into(),
            headers: "etag: \"1\"\nlocation: /v1".into(),
        };
        let owner = ("default", "author", "key-1");
        let sealed = keys.seal_reply(owner, plain.clone());
        assert_eq!(unsealed(&sealed), plain.headers);
        assert_eq!(unsealed(&plain), plain.headers);
        assert_eq!(keys.reply_verdict(owner, &sealed), Some(Verdict::Valid));
        assert_eq!(keys.reply_verdict(owner, &plain), None);
        let other = |change: fn(&mut StoredReply)| {
            let mut other = sealed.clone();
            change(&mut other);
            keys.reply_verdict(owner, &other)
        };
        for change in [
            (|reply| reply.body.push(' ')) as fn(&mut StoredReply),
            |reply| reply.headers.push('x'),
            |reply| reply.status = 201,
            |reply| reply.fingerprint.push(3),
        ] {
            assert_eq!(other(change), Some(Verdict::Invalid));
        }
        for owner in [
            ("other", "author", "key-1"),
            ("default", "admin", "key-1"),
            ("default", "author", "key-2"),
        ] {
            assert_eq!(keys.reply_verdict(owner, &sealed), Some(Verdict::Invalid));
        }
        let renamed = |reply: &mut StoredReply| reply.headers = reply.headers.replace("k 1", "k 2");
        assert_eq!(other(renamed), Some(Verdict::UnknownKey));
    }
}
