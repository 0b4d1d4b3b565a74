//! Tokens with members that are there twice: some programs would read the first, and some the last.

use super::*;

/// A token of these texts, signed as it should be.
fn spelt(header: &str, content: &str) -> String {
    let text = [header, content].map(|part| BASE64_URL_SAFE_NO_PAD.encode(part));
    let text = text.join(".");
    let key = EncodingKey::from_secret(&SECRET);
    let signature = jsonwebtoken::crypto::sign(text.as_bytes(), &key, Algorithm::HS256);
    format!("Bearer {text}.{}", signature.unwrap())
}

#[tokio::test]
async fn claims_that_are_there_twice_are_refused() {
    const HEADER: &str = r#"{"alg":"HS256"}"#;
    let good = good().to_string();
    let with = |claim: &str| format!("{},{claim}}}", good.strip_suffix('}').unwrap());
    check(&spelt(HEADER, &with(r#""other":1"#))).await.unwrap();
    for (twice, claim) in [
        (r#""sub":"bob""#, "sub"),
        (r#""tenant":"other""#, "tenant"),
        (r#""roles":[]"#, "roles"),
        (r#""n\u0061me":"a","name":"b""#, "name"),
    ] {
        let refused = check(&spelt(HEADER, &with(twice))).await.unwrap_err();
        assert_eq!(refused.status(), 401, "{twice}");
        let claim = format!("the claim {claim} of");
        let untrusted = refused == AuthError::Untrusted;
        assert!(
            untrusted || refused.to_string().contains(&claim),
            "{twice}: {refused}"
        );
    }
    check(&spelt(HEADER, &good)).await.unwrap();
    for header in [
        r#"{"alg":"HS256","alg":"none"}"#,
        r#"{"alg":"HS256","kid":"a","kid":"b"}"#,
    ] {
        let refused = check(&spelt(header, &good)).await.unwrap_err();
        assert_eq!(refused, AuthError::Malformed, "{header}");
    }
}
