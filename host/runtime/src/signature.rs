//! Signatures of the requests that a host sends, as by Standard Webhooks.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// The value of the header `webhook-signature`. `timestamp` is the time of the attempt, in seconds of the Unix epoch.
pub fn sign(secret: &[u8], id: &str, timestamp: &str, body: &str) -> String {
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
