//! What is read of the answers of services, and what they are sent.

use super::*;

const NOW: &str = "2026-11-24T10:00:00Z";

fn now() -> Timestamp {
    NOW.parse().expect("an instant")
}

fn headers(retry_after: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(RETRY_AFTER, retry_after.parse().expect("a value"));
    headers
}

#[test]
fn statuses_of_the_request_itself_are_final_and_others_are_not() {
    for (status, is_final) in [
        (301, false),
        (400, true),
        (401, true),
        (404, true),
        (408, false),
        (409, false),
        (422, true),
        (425, false),
        (429, false),
        (500, false),
        (503, false),
    ] {
        let failed = refused(status, &HeaderMap::new(), now());
        assert_eq!(failed.is_final, is_final, "{status}");
        assert_eq!(failed.error, format!("the service answered {status}"));
    }
}

#[test]
fn the_wish_for_a_pause_is_kept_within_bounds() {
    for (wish, seconds) in [
        ("7", Some(7)),
        ("0", Some(0)),
        ("3601", Some(3600)),
        ("99999999999999999999999", None),
        ("Tue, 24 Nov 2026 10:01:00 GMT", Some(60)),
        ("Tue, 24 Nov 2026 09:00:00 GMT", None),
        ("Wed, 25 Nov 2026 10:00:00 GMT", Some(3600)),
        ("soon", None),
    ] {
        let failed = refused(503, &headers(wish), now());
        assert_eq!(failed.pause, seconds.map(Duration::from_secs), "{wish}");
    }
}

#[test]
fn a_reply_is_an_object_with_an_output() {
    let read = |text: &str| replied(text.as_bytes());
    let whole = read(r#"{"output":{"b":1,"a":2.50},"model":"m","modelVersion":"3","more":[]}"#);
    let whole = whole.expect("a reply");
    assert_eq!(whole.output.as_str(), r#"{"a":2.50,"b":1}"#);
    assert_eq!(
        (whole.model.as_deref(), whole.model_version.as_deref()),
        (Some("m"), Some("3"))
    );
    assert!(
        read(r#"{"output":7}"#).is_ok(),
        "the core judges the output"
    );
    for (wrong, words) in [
        ("", "the reply has"),
        ("[]", "not as agreed"),
        ("{}", "`output`"),
        (r#"{"output":{},"output":{}}"#, "the reply has"),
        (r#"{"output":{},"model":7}"#, "not as agreed"),
        (r#"{"output":{},"model":""}"#, "a model that is not"),
        (
            r#"{"output":{},"modelVersion":"a\nb"}"#,
            "a modelVersion that",
        ),
    ] {
        let error = read(wrong).expect_err(wrong);
        assert!(error.contains(words), "{wrong}: {error}");
    }
    assert!(replied(&[0xff]).is_err());
}

#[test]
fn what_is_kept_of_an_error_is_bounded_and_plain() {
    let kept = Failed::new(format!("a\nb{}", "x".repeat(1_000))).error;
    assert!(
        kept.starts_with("abx") && kept.len() == ERROR_CHARS_MAX,
        "{kept}"
    );
}

#[test]
fn a_request_says_for_whom_it_is_and_who_sends_it() {
    let call = OpenCall {
        service: "scorer".into(),
        request: Json::parse(r#"{"pages":3}"#).expect("JSON"),
        timeout: 5,
        retries: vec![],
        on_reply: "SCORED".into(),
        on_failure: "UNSCORED".into(),
        result: None,
    };
    let request = ServiceRequest {
        tenant: "acme",
        instance: "i-1".into(),
        state: "s-1".into(),
        attempt: 2,
        call: &call,
        traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    };
    let service = Service::new(
        "http://127.0.0.1:9/score",
        Some("secret".into()),
        Some(b"key".to_vec()),
    );
    let service = service.expect("a service");
    assert!(!format!("{service:?}").contains("secret"));
    let sent = http_request(&service, &request, now()).expect("a request");
    let body = String::from_utf8(sent.body().clone()).expect("text");
    assert_eq!(
        body,
        r#"{"attempt":2,"instanceId":"i-1","request":{"pages":3},"service":"scorer","stateId":"s-1","tenant":"acme"}"#
    );
    let header = |name: &str| sent.headers()[name].to_str().expect("text").to_owned();
    assert_eq!(header("idempotency-key"), "s-1");
    assert_eq!(header("authorization"), "Bearer secret");
    assert_eq!(header("traceparent"), request.traceparent);
    let timestamp = header("webhook-timestamp");
    assert_eq!(timestamp, now().as_second().to_string());
    assert_eq!(
        header("webhook-signature"),
        sign(b"key", "s-1", &timestamp, &body)
    );
    assert!(Service::new("http://8.8.8.8/", None, None).is_err());
}
