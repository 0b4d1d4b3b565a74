//! What a receiver gets: a structured `CloudEvent`, signed as by Standard Webhooks.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use sha2::Sha256;

use wrkflw_core::cloudevent::{CloudEvent, Naming};
use wrkflw_core::json::JsonError;
use wrkflw_store::deliveries::Claimed;

/// A body with the headers that authenticate it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) id: String,
    /// The time of this attempt, in seconds of the Unix epoch. Receivers refuse old ones, so that none is replayed.
    pub(super) timestamp: String,
    pub(super) signature: String,
    pub(super) body: String,
}

impl Message {
    /// Fails only for a damaged entry.
    pub(super) fn of(
        claimed: &Claimed,
        naming: &Naming,
        now: Timestamp,
    ) -> Result<Message, JsonError> {
        let event = match (&claimed.entry, &claimed.notification) {
            (Some(entry), Some(notification)) => {
                CloudEvent::notification(notification, entry, naming)?
            }
            (Some(entry), None) => CloudEvent::of(entry, naming)?,
            (None, _) => {
                let (tenant, subscription) = (&claimed.tenant, claimed.queue.subscription);
                let at = claimed.created_at;
                CloudEvent::test(tenant, subscription, claimed.message, at, naming)
            }
        };
        let (id, timestamp) = (claimed.message.to_string(), now.as_second().to_string());
        let body = event.structured().as_str().to_owned();
        Ok(Message {
            signature: sign(&claimed.secret, &id, &timestamp, &body),
            id,
            timestamp,
            body,
        })
    }
}

/// The version of the signatures, before each of them.
const VERSION: &str = "v1,";

fn sign(secret: &[u8], id: &str, timestamp: &str, body: &str) -> String {
    let mac = mac(secret, id, timestamp, body.as_bytes());
    format!("{VERSION}{}", STANDARD.encode(mac.finalize().into_bytes()))
}

fn mac(secret: &[u8], id: &str, timestamp: &str, body: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes a key of any length");
    mac.update(format!("{id}.{timestamp}.").as_bytes());
    mac.update(body);
    mac
}

/// Whether one of the signatures of a header, with blanks between, is that of the message.
pub fn is_signed(secret: &[u8], id: &str, timestamp: &str, body: &[u8], signatures: &str) -> bool {
    let given = signatures
        .split(' ')
        .filter_map(|one| one.strip_prefix(VERSION));
    given
        .filter_map(|one| STANDARD.decode(one).ok())
        .any(|given| {
            let mac = mac(secret, id, timestamp, body);
            mac.verify_slice(&given).is_ok()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_those_that_receivers_compute() {
        // Computed by openssl: printf 'msg_1.1700000000.{"a":1}' | openssl dgst -sha256 -hmac key -binary | base64
        let signature = sign(b"key", "msg_1", "1700000000", r#"{"a":1}"#);
        assert_eq!(signature, "v1,KSgv0SSgWzG5LPnm9tfWJRfBlWqAqHz+OlObgspQi/g=");
        let body = br#"{"a":1}"#;
        let several = format!("v1,AAAA {signature}");
        assert!(is_signed(b"key", "msg_1", "1700000000", body, &several));
        assert!(!is_signed(
            b"other",
            "msg_1",
            "1700000000",
            body,
            &signature
        ));
        assert!(!is_signed(b"key", "msg_2", "1700000000", body, &signature));
        assert!(!is_signed(b"key", "msg_1", "1700000001", body, &signature));
        assert!(!is_signed(b"key", "msg_1", "1700000000", b"{}", &signature));
    }
}
