//! Settings of an identity provider, what it says of itself, and its answers.

use super::*;

fn settings() -> ProviderSettings {
    ProviderSettings {
        issuer: "https://id.example".to_owned(),
        client_id: "console".to_owned(),
        client_secret: None,
        scopes: "openid profile".to_owned(),
        public_url: "https://flows.example".to_owned(),
    }
}

fn metadata() -> Metadata {
    Metadata {
        issuer: "https://id.example".to_owned(),
        authorization_endpoint: "https://id.example/auth?a=b".to_owned(),
        token_endpoint: "https://id.example/token".to_owned(),
        end_session_endpoint: None,
        token_endpoint_auth_methods_supported: Vec::new(),
        code_challenge_methods_supported: None,
    }
}

/// Makes settings wrong.
type Change = fn(&mut ProviderSettings);

#[test]
fn settings_without_tls_are_refused_with_what_to_mend() {
    assert_eq!(settings().check(), Ok(()));
    let cases: [(Change, &str); 5] = [
        (
            |one| one.issuer = "http://id.example".to_owned(),
            "jwt_issuer",
        ),
        (
            |one| one.public_url = "http://flows.example".to_owned(),
            "public_url",
        ),
        (
            |one| one.public_url = "https://a@flows.example".to_owned(),
            "public_url",
        ),
        (
            |one| one.public_url = "https://flows.example/path".to_owned(),
            "public_url",
        ),
        (|one| one.scopes = "profile".to_owned(), "oidc_scopes"),
    ];
    for (change, named) in cases {
        let mut wrong = settings();
        change(&mut wrong);
        let error = wrong.check().expect_err(named);
        assert!(error.starts_with(named), "{error}");
    }
}

#[test]
fn a_provider_that_is_another_or_open_or_without_pkce_is_refused() {
    assert!(metadata().check("https://id.example").is_ok());
    let methods = |all: &[&str]| Some(all.iter().map(|one| (*one).to_owned()).collect());
    let cases: [(Metadata, &str); 5] = [
        (
            Metadata {
                issuer: "https://id.example/".to_owned(),
                ..metadata()
            },
            "calls itself",
        ),
        (
            Metadata {
                token_endpoint: "http://id.example/token".to_owned(),
                ..metadata()
            },
            "TLS",
        ),
        (
            Metadata {
                authorization_endpoint: "javascript:alert(1)".to_owned(),
                ..metadata()
            },
            "TLS",
        ),
        (
            Metadata {
                end_session_endpoint: Some("http://evil.example".to_owned()),
                ..metadata()
            },
            "TLS",
        ),
        (
            Metadata {
                code_challenge_methods_supported: methods(&["plain"]),
                ..metadata()
            },
            "S256",
        ),
    ];
    for (wrong, part) in cases {
        let Err(Failure::Setting(error)) = wrong.check("https://id.example") else {
            panic!("{part}");
        };
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn the_request_has_what_binds_it_to_the_browser() {
    let provider = Provider::new(settings());
    let url = provider
        .authorization(&metadata(), "s", "n", "c")
        .expect("a URL");
    assert_eq!(
        url,
        "https://id.example/auth?a=b&response_type=code&client_id=console&redirect_uri=https%3A%2F%2Fflows.example%2Fconsole%2Fsign-in%2Freturn\
         &scope=openid+profile&state=s&nonce=n&code_challenge=c&code_challenge_method=S256"
    );
}

#[test]
fn only_codes_of_errors_are_shown() {
    assert_eq!(
        error_code("access_denied").as_deref(),
        Some("access_denied")
    );
    for text in ["", "Call 555-1234", "<b>", "access denied", &"a".repeat(65)] {
        assert_eq!(error_code(text), None, "{text}");
    }
}

#[test]
fn a_logout_counts_once() {
    let provider = Provider::new(settings());
    let taken = provider.take("a").expect("the first one");
    assert!(provider.take("a").is_none());
    assert!(provider.take("b").is_some());
    // Whoever handled it has gone before it had an effect.
    drop(taken);
    provider.take("a").expect("the first one again").count();
    assert!(provider.take("a").is_none());
}

#[test]
fn a_secret_with_special_characters_is_encoded() {
    assert_eq!(
        basic("a", "b:c d"),
        format!("Basic {}", BASE64_STANDARD.encode("a:b%3Ac+d"))
    );
}
