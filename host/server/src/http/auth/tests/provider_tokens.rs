//! Tokens of sign-ins and sign-outs: each check has a token that fails by it alone.

use super::*;

const CLIENT: &str = "console";

fn id_token(claim: &str, value: Value) -> Value {
    let mut token = content("aud", json!(CLIENT));
    token["iat"] = json!(NOW_SECONDS);
    token["nonce"] = json!("n-1");
    token["sid"] = json!("s-1");
    token[claim] = value;
    token
}

fn logout_token(claim: &str, value: Value) -> Value {
    let mut token = json!({
        "iss": "https://id.example",
        "aud": CLIENT,
        "iat": NOW_SECONDS,
        "exp": NOW_SECONDS + 120,
        "jti": "j-1",
        "sub": "alice",
        "sid": "s-1",
        "events": { "http://schemas.openid.net/event/backchannel-logout": {} },
    });
    token[claim] = value;
    token
}

fn without(mut token: Value, claims: &[&str]) -> Value {
    for claim in claims {
        token.as_object_mut().unwrap().remove(*claim);
    }
    token
}

fn sent(content: &Value) -> String {
    hs256(content).split_once(' ').unwrap().1.to_owned()
}

fn claim_error(claim: &str) -> AuthError {
    AuthError::Claim {
        claim: claim.to_owned(),
    }
}

async fn signed_in(content: &Value) -> Result<IdToken, AuthError> {
    let authenticator = Authenticator::new(settings(), TestTime::new().clock()).unwrap();
    authenticator.id_token(&sent(content), CLIENT, "n-1").await
}

async fn signed_out(content: &Value) -> Result<LogoutToken, AuthError> {
    let authenticator = Authenticator::new(settings(), TestTime::new().clock()).unwrap();
    authenticator.logout_token(&sent(content), CLIENT).await
}

#[tokio::test]
async fn an_id_token_names_the_person_and_the_session_at_the_provider() {
    let found = signed_in(&id_token("sid", json!("s-1"))).await.unwrap();
    assert_eq!(found.claims.subject, "alice");
    assert_eq!(found.claims.tenant, "acme");
    assert_eq!(found.claims.roles, ["publisher", "operator"]);
    assert_eq!(found.session.as_deref(), Some("s-1"));
    let nameless = signed_in(&without(id_token("sub", json!("alice")), &["sid"])).await;
    assert_eq!(nameless.unwrap().session, None);
}

#[tokio::test]
async fn an_id_token_is_for_this_client_this_sign_in_and_this_moment() {
    let several = json!([CLIENT, "other"]);
    let mut right_party = id_token("aud", several.clone());
    right_party["azp"] = json!(CLIENT);
    assert!(signed_in(&right_party).await.is_ok());
    let foreign = |claim| Err(AuthError::Foreign { claim });
    let cases = [
        (
            id_token("iss", json!("https://evil.example")),
            foreign("iss"),
        ),
        // A token of the API opens no session here.
        (id_token("aud", json!("wrkflw")), foreign("aud")),
        (id_token("aud", several), foreign("azp")),
        (id_token("azp", json!("other")), foreign("azp")),
        (id_token("nonce", json!("n-2")), foreign("nonce")),
        (id_token("nonce", Value::Null), Err(claim_error("nonce"))),
        (
            id_token("exp", json!(NOW_SECONDS - 30)),
            Err(AuthError::Expired),
        ),
        (
            id_token("iat", json!(NOW_SECONDS + 31)),
            Err(AuthError::NotYetValid),
        ),
        (
            without(id_token("sub", json!("a")), &["iat"]),
            Err(claim_error("iat")),
        ),
        (id_token("sub", json!("a\nb")), Err(claim_error("sub"))),
        (id_token("sid", json!("")), Err(claim_error("sid"))),
        (id_token("sid", json!(7)), Err(claim_error("sid"))),
    ];
    for (content, expected) in cases {
        assert_eq!(signed_in(&content).await.map(drop), expected, "{content}");
    }
    let unsigned = sent(&id_token("sid", json!("s-1")));
    let (start, _) = unsigned.rsplit_once('.').unwrap();
    let authenticator = Authenticator::new(settings(), TestTime::new().clock()).unwrap();
    let forged = authenticator
        .id_token(&format!("{start}.AAAA"), CLIENT, "n-1")
        .await;
    assert_eq!(forged, Err(AuthError::Untrusted));
}

#[tokio::test]
async fn a_logout_token_names_a_person_or_a_session() {
    let both = signed_out(&logout_token("jti", json!("j-1"))).await;
    let expected = LogoutToken {
        id: "j-1".to_owned(),
        person: Some("alice".to_owned()),
        session: Some("s-1".to_owned()),
    };
    assert_eq!(both, Ok(expected));
    for left_out in ["sub", "sid"] {
        let one = signed_out(&without(logout_token("jti", json!("j-1")), &[left_out])).await;
        assert!(one.is_ok(), "{left_out}: {one:?}");
    }
}

#[tokio::test]
async fn a_logout_token_is_checked_like_no_other_token() {
    let foreign = |claim| Err(AuthError::Foreign { claim });
    let complete = || logout_token("jti", json!("j-1"));
    let mut id_token_as_logout = id_token("sid", json!("s-1"));
    id_token_as_logout["jti"] = json!("j-1");
    let cases = [
        (
            logout_token("iss", json!("https://evil.example")),
            foreign("iss"),
        ),
        (logout_token("aud", json!("wrkflw")), foreign("aud")),
        (without(complete(), &["aud"]), foreign("aud")),
        (without(complete(), &["iat"]), Err(claim_error("iat"))),
        (
            logout_token("iat", json!(NOW_SECONDS + 31)),
            Err(AuthError::NotYetValid),
        ),
        (
            without(logout_token("iat", json!(NOW_SECONDS - 330)), &["exp"]),
            Err(AuthError::Expired),
        ),
        (
            logout_token("exp", json!(NOW_SECONDS - 30)),
            Err(AuthError::Expired),
        ),
        (without(complete(), &["events"]), Err(claim_error("events"))),
        (
            logout_token("events", json!({"other": {}})),
            Err(claim_error("events")),
        ),
        (
            logout_token("nonce", json!("n-1")),
            Err(claim_error("nonce")),
        ),
        (without(complete(), &["jti"]), Err(claim_error("jti"))),
        (
            without(complete(), &["sub", "sid"]),
            Err(claim_error("sid")),
        ),
        (id_token_as_logout, Err(claim_error("events"))),
    ];
    for (content, expected) in cases {
        assert_eq!(signed_out(&content).await.map(drop), expected, "{content}");
    }
}

#[tokio::test]
async fn neither_token_opens_the_api() {
    for content in [
        id_token("sid", json!("s-1")),
        logout_token("jti", json!("j-1")),
    ] {
        let refused = check(&hs256(&content)).await.unwrap_err();
        let expected = [AuthError::Foreign { claim: "aud" }, claim_error("exp")];
        assert!(expected.contains(&refused), "{refused:?}");
    }
}
