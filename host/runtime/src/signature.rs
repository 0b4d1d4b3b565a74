//! Makes and verifies the signatures of requests, by Standard Webhooks.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// The version, which is the prefix of each signature.
const VERSION: &str = "v1,";

/// The value of the header `webhook-signature`. `timestamp` is the time of the attempt, in seconds of the Unix epoch.
pub fn sign(secret: &[u8], id: &str, timestamp: &str, body: &str) -> String {
    let mac = mac(secret, id, timestamp, body.as_bytes());
    format!("{VERSION}{}", STANDARD.encode(mac.finalize().into_bytes()))
}

/// Whether one of the signatures of a header is that of the message. They are separated by blanks.
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

fn mac(secret: &[u8], id: &str, timestamp: &str, body: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes a key of any length");
    mac.update(format!("{id}.{timestamp}.").as_bytes());
    mac.update(body);
    mac
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
