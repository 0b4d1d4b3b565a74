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
        let event = match &claimed.notification {
            Some(notification) => CloudEvent::notification(notification, &claimed.entry, naming)?,
            None => CloudEvent::of(&claimed.entry, naming)?,
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

fn sign(secret: &[u8], id: &str, timestamp: &str, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes a key of any length");
    mac.update(format!("{id}.{timestamp}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_those_that_receivers_compute() {
        // Computed by openssl: printf 'msg_1.1700000000.{"a":1}' | openssl dgst -sha256 -hmac key -binary | base64
        let signature = sign(b"key", "msg_1", "1700000000", r#"{"a":1}"#);
        assert_eq!(signature, "v1,KSgv0SSgWzG5LPnm9tfWJRfBlWqAqHz+OlObgspQi/g=");
    }
}
