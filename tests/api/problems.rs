//! Each problem code is provoked here, and each response has the promised form.

mod hosts;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::future::{Either, select};
use http_body_util::BodyExt as _;
use jsonwebtoken::{EncodingKey, Header};
use sqlx::AssertSqlSafe;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;
use wrkflw::sample::DOCUMENT_APPROVAL;
use wrkflw_core::cloudevent::Naming;
use wrkflw_runtime::clock::Clock;
use wrkflw_server::http::admission::Admission;
use wrkflw_server::http::auth::{AuthSettings, Authenticator, Secret};
use wrkflw_server::http::pace::Pace;
use wrkflw_server::http::problem::CODES;
use wrkflw_server::http::{App, router};

use self::hosts::*;
use super::webhooks::subscribe;
use super::*;
use crate::support::app::SECRET;
use crate::support::guests::{committee, subflows};

/// The requested path, and the response.
type Asked = (String, Answer);

async fn ask(
    app: &TestApp,
    user: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<Value>,
) -> Asked {
    let answer = app.host().send(user, method, path, headers, body).await;
    (
        path.split('?').next().unwrap_or_default().to_owned(),
        answer,
    )
}

/// A token with these claims, signed with this secret in the way that the host expects.
pub(super) fn signed(claims: &Value, secret: &[u8]) -> String {
    let key = EncodingKey::from_secret(secret);
    let token = jsonwebtoken::encode(&Header::default(), claims, &key).expect("a token");
    format!("Bearer {token}")
}

async fn of_tokens(app: &TestApp) -> Vec<Asked> {
    let claims = |claim: &str, value: Value| {
        let mut claims = json!({ "sub": "author", "tenant": "default", "roles": ["user"], "exp": 4_000_000_000_u64 });
        claims[claim] = value;
        claims
    };
    let path = "/v1/instances";
    let mut answers = vec![ask(app, "", "GET", path, &[], None).await];
    for token in [
        "Bearer nonsense".to_owned(),
        signed(&claims("exp", json!(1)), SECRET),
        signed(&claims("nbf", json!(3_900_000_000_u64)), SECRET),
        signed(&claims("sub", json!("author")), &[7; 32]),
        signed(&claims("sub", json!("")), SECRET),
        signed(&claims("tenant", json!("nowhere")), SECRET),
    ] {
        answers.push(ask(app, "", "GET", path, &[("authorization", &token)], None).await);
    }
    // Nothing listens at this address.
    let unreachable = AuthSettings {
        jwks_url: Some("http://127.0.0.1:9/keys".into()),
        issuer: Some("https://id.example".into()),
        audience: Some("wrkflw".into()),
        ..AuthSettings::default()
    };
    let head = URL_SAFE_NO_PAD.encode(r#"{"alg":"RS256","kid":"k"}"#);
    let token = format!("Bearer {head}.{}.AAAA", URL_SAFE_NO_PAD.encode("{}"));
    let host = app.guarded_by(&unreachable);
    let answer = host
        .send("", "GET", path, &[("authorization", &token)], None)
        .await;
    answers.push((path.to_owned(), answer));
    answers
}

async fn of_requests(app: &TestApp) -> Vec<Asked> {
    let path = "/v1/instances";
    let body = || Some(approval_start("doc-9"));
    let large = json!({ "entityId": "x".repeat(300_000) });
    let padding = "x".repeat(17_000);
    let mut answers = vec![
        ask(app, "author", "GET", "/v1/instances?limit=0", &[], None).await,
        ask(app, "author", "GET", "/v1/instances?after=*", &[], None).await,
        ask(app, "author", "GET", "/v1/nothing", &[], None).await,
        ask(app, "author", "PATCH", path, &[], None).await,
        ask(
            app,
            "author",
            "POST",
            path,
            &[],
            Some(json!({ "colour": "red" })),
        )
        .await,
        ask(app, "author", "POST", path, &[], Some(large)).await,
        ask(app, "author", "GET", path, &[("x-padding", &padding)], None).await,
        ask(
            app,
            "author",
            "POST",
            path,
            &[("content-encoding", "gzip")],
            body(),
        )
        .await,
        ask(
            app,
            "author",
            "GET",
            "/v1/events?after=OS0xLTEtMA",
            &[],
            None,
        )
        .await,
        ask(
            app,
            "author",
            "POST",
            path,
            &[("idempotency-key", "k")],
            body(),
        )
        .await,
        ask(
            app,
            "author",
            "POST",
            path,
            &[("idempotency-key", "k")],
            Some(approval_start("doc-8")),
        )
        .await,
    ];
    for (content_type, body) in [("application/json", "{"), ("text/plain", "hello")] {
        let answer = raw(&app.host(), "author", ("POST", path), content_type, body).await;
        answers.push((path.to_owned(), answer));
    }
    answers.extend(of_full_lists(app).await);
    answers
}

/// One subscription too many, and an invalid key.
async fn of_full_lists(app: &TestApp) -> [Asked; 2] {
    let subscriptions = "insert into subscription
        (tenant_id, id, url, types, secret, active, created_at, created_by)
        select t.id, gen_random_uuid(), '', '{}', '', true, now(), 'admin' from tenant t, generate_series(1, 100)";
    sql(app, subscriptions).await;
    let one_more = Some(json!({ "url": "https://example.org/", "types": ["*"] }));
    let one_more = ask(app, "admin", "POST", "/v1/subscriptions", &[], one_more).await;
    let answer = app.publish("Wrong_Key", b"nonsense", &json!({})).await;
    [
        one_more,
        ("/v1/definitions/Wrong_Key/versions".into(), answer),
    ]
}

/// A body that never arrives, on a host with a short timeout.
async fn of_a_slow_body(app: &TestApp) -> Asked {
    let path = "/v1/instances";
    let auth = AuthSettings {
        hs256_secret: Some(Secret::new(SECRET)),
        ..AuthSettings::default()
    };
    let auth = Authenticator::new(auth, Clock::System).expect("sound settings");
    let service = App::new(
        app.engine.clone(),
        Arc::new(auth),
        Naming::default(),
        "wrkflw.events".into(),
        Arc::new(String::new),
        CancellationToken::new(),
    );
    let body_max = Duration::from_millis(50);
    let never = futures_util::stream::pending::<Result<String, Infallible>>();
    let request = app.host().request("author", "POST", path);
    let request = request
        .header("content-type", "application/json")
        .body(Body::from_stream(never));
    let router = router(service.paced(Pace { body_max }));
    let response = router.oneshot(request.expect("a request")).await;
    let (parts, body) = response.expect("the router answers").into_parts();
    let text = body.collect().await.expect("a body").to_bytes();
    let answer = Answer {
        status: parts.status.as_u16(),
        headers: parts.headers,
        body: serde_json::from_slice(&text).expect("JSON"),
        text: String::from_utf8(text.to_vec()).expect("text"),
    };
    (path.to_owned(), answer)
}

async fn of_work(app: &TestApp) -> Vec<Asked> {
    let instance = app.started("doc-1").await;
    let (id, task) = (instance["id"].as_str().expect("an id"), task_of(&instance));
    let claim = format!("/v1/tasks/{task}/claim");
    let decide = format!("/v1/tasks/{task}/decide");
    let cancel = format!("/v1/instances/{id}/cancel");
    let empty = || Some(json!({}));
    let reason = || Some(json!({ "reason": "withdrawn" }));
    vec![
        ask(app, "outsider", "POST", &claim, &[], empty()).await,
        ask(
            app,
            "author",
            "POST",
            "/v1/instances",
            &[],
            Some(approval_start("doc-1")),
        )
        .await,
        ask(app, "reviewer", "POST", &cancel, &[], reason()).await,
        ask(
            app,
            "reviewer",
            "POST",
            &claim,
            &[("if-match", "\"9\"")],
            empty(),
        )
        .await,
        ask(app, "reviewer", "POST", &claim, &[], empty()).await,
        ask(app, "reviewer2", "POST", &claim, &[], empty()).await,
        ask(
            app,
            "reviewer",
            "POST",
            &decide,
            &[],
            Some(json!({ "outcome": "REJECT" })),
        )
        .await,
        ask(app, "admin", "POST", &cancel, &[], reason()).await,
        ask(app, "admin", "POST", &cancel, &[], reason()).await,
    ]
}

/// Requests that conflict with the present state.
async fn of_operation(app: &TestApp) -> Vec<Asked> {
    people::known(app, &["dee", "eli"]).await;
    let instance = app.started("doc-2").await;
    let (id, task) = (instance["id"].as_str().expect("an id"), task_of(&instance));
    let on_task = |what: &str| format!("/v1/tasks/{task}/{what}");
    let on_instance = |what: &str| format!("/v1/instances/{id}/{what}");
    let reason = || json!({ "reason": "as agreed" });
    let to = |person: &str| json!({ "to": person, "reason": "away" });
    let mut answers = Vec::new();
    for (user, path, body) in [
        ("admin", on_task("reset"), reason()),
        ("reviewer", on_task("claim"), json!({})),
        ("reviewer", on_task("resolve"), json!({})),
        ("reviewer", on_task("delegate"), to("reviewer2")),
        ("reviewer2", on_task("delegate"), to("dee")),
        ("dee", on_task("delegate"), to("eli")),
        ("eli", on_task("delegate"), to("approver")),
        ("author", on_instance("restart"), json!({})),
        ("admin", on_instance("resume"), json!({})),
        ("eli", on_task("suspend"), json!({})),
        ("eli", on_task("resolve"), json!({})),
        ("eli", on_task("resume"), json!({})),
        ("admin", on_instance("suspend"), reason()),
        ("eli", on_task("resolve"), json!({})),
    ] {
        answers.push(ask(app, user, "POST", &path, &[], Some(body)).await);
    }
    answers
}

/// One operation too many, and a migration after which nobody could work.
async fn of_migrations(app: &TestApp) -> Vec<Asked> {
    let instance = app.started("doc-3").await;
    let config = json!({ "reviewers": "nobody" });
    let published = app.publish("document-approval", DOCUMENT_APPROVAL, &config);
    let version = published.await.expect(201)["version"].clone();
    let operations = "insert into bulk_operation
        (tenant_id, id, action, settings, requested_by, roles, created_at, total, more)
        select t.id, gen_random_uuid(), 'migrate', '{}', 'admin', '[]', now(), 0, false
        from tenant t, generate_series(1, 10)";
    sql(app, operations).await;
    let many =
        json!({ "definitionKey": "document-approval", "fromVersion": 1, "version": version });
    let one = format!(
        "/v1/instances/{}/migrate",
        instance["id"].as_str().expect("an id")
    );
    let to = json!({ "version": version });
    let stopped = format!("/v1/definitions/document-approval/versions/{version}");
    let why = Some(json!({ "reason": "a circle" }));
    let stop = ask(app, "admin", "POST", &format!("{stopped}/stop"), &[], why).await;
    let refused = ask(app, "admin", "POST", &one, &[], Some(to.clone())).await;
    let empty = Some(json!({}));
    let resume = ask(
        app,
        "admin",
        "POST",
        &format!("{stopped}/resume"),
        &[],
        empty,
    )
    .await;
    vec![
        stop,
        refused,
        resume,
        ask(app, "admin", "POST", "/v1/migrations", &[], Some(many)).await,
        ask(app, "admin", "POST", &one, &[], Some(to)).await,
    ]
}

async fn of_logic(app: &TestApp) -> Vec<Asked> {
    let empty = || Some(json!({}));
    let mut answers = Vec::new();
    let body = hostile_start("t-1", json!({}));
    let instance = app.post("author", "/v1/instances", body).await.started();
    let decide = format!(
        "/v1/tasks/{}/decide",
        claimed(app, "reviewer", &instance).await
    );
    for behaviour in ["refuse", "spin", "trap", "huge"] {
        let body = json!({ "outcome": "GO", "input": { "behaviour": behaviour } });
        answers.push(ask(app, "reviewer", "POST", &decide, &[], Some(body)).await);
    }
    for what in ["retire", "activate"] {
        let path = format!("/v1/definitions/hostile/versions/1/{what}");
        answers.push(ask(app, "admin", "POST", &path, &[], empty()).await);
    }
    let body = Some(hostile_start("t-2", json!({})));
    answers.push(ask(app, "author", "POST", "/v1/instances", &[], body).await);
    let config = json!({ "initiators": "nobodies" });
    let published = app.publish("document-approval", DOCUMENT_APPROVAL, &config);
    let version = &published.await.expect(201)["version"];
    let path = format!("/v1/definitions/document-approval/versions/{version}/activate");
    answers.push(ask(app, "admin", "POST", &path, &[], empty()).await);
    answers
}

/// Checks the form of RFC 9457 and of this API.
fn check(path: &str, answer: &Answer) {
    let (problem, text) = (&answer.body, &answer.text);
    assert_eq!(
        answer.headers["content-type"], "application/problem+json",
        "{text}"
    );
    let code = problem["code"].as_str().expect("a code");
    let (_, status, title) = CODES
        .iter()
        .find(|(known, ..)| *known == code)
        .expect("a known code");
    assert_eq!(
        (&problem["status"], answer.status),
        (&json!(status), *status),
        "{text}"
    );
    assert_eq!(problem["title"], *title);
    assert!(
        problem["type"]
            .as_str()
            .expect("a type")
            .ends_with(&format!("/{code}")),
        "{text}"
    );
    assert!(
        problem["detail"]
            .as_str()
            .is_some_and(|detail| !detail.is_empty()),
        "{text}"
    );
    assert_eq!(problem["instance"], path, "{text}");
    assert_eq!(
        problem["requestId"],
        answer.headers["x-request-id"].to_str().expect("text")
    );
    let known = [
        "type",
        "title",
        "status",
        "detail",
        "code",
        "instance",
        "requestId",
        "errors",
        "reason",
        "conflict",
    ];
    for member in problem.as_object().expect("an object").keys() {
        assert!(known.contains(&member.as_str()), "{member}");
    }
    let challenged = answer.headers.contains_key("www-authenticate");
    assert_eq!(challenged, answer.status == 401, "{text}");
    let again = answer.headers.contains_key("retry-after");
    assert_eq!(again, matches!(answer.status, 429 | 503), "{text}");
}

async fn of_calendars(app: &TestApp) -> Asked {
    let path = "/v1/calendars/office";
    let put = app.put("admin", path, super::calendars::office()).await;
    put.expect(200);
    let config = json!({ "calendars": ["office"] });
    let published = app.publish("vote", committee(), &config).await;
    published.expect(201);
    let activate = "/v1/definitions/vote/versions/1/activate";
    let activated = app.post("admin", activate, json!({})).await;
    activated.expect(200);
    let refused = app.host().send("admin", "DELETE", path, &[], None).await;
    (path.to_owned(), refused)
}

#[tokio::test]
async fn every_code_has_the_promised_form() {
    let app = TestApp::start().await;
    with_hostile(&app).await;
    let mut answers = of_tokens(&app).await;
    answers.push(of_deliveries(&app).await);
    answers.extend(of_requests(&app).await);
    answers.push(of_a_slow_body(&app).await);
    answers.extend(of_work(&app).await);
    answers.extend(of_migrations(&app).await);
    answers.extend(of_operation(&app).await);
    answers.extend(of_logic(&app).await);
    answers.push(of_a_busy_instance(&app).await);
    answers.push(of_a_full_host(&app).await);
    answers.push(of_too_many_streams(&app).await);
    answers.push(of_dead_letters(&app).await);
    answers.push(of_calendars(&app).await);
    answers.push(of_signals(&app).await);
    answers.extend(of_a_broken_host(&app).await);
    let mut provoked = BTreeSet::new();
    for (path, answer) in &answers {
        if StatusCode::from_u16(answer.status).is_ok_and(|status| status.is_success()) {
            continue;
        }
        check(path, answer);
        provoked.insert(answer.body["code"].as_str().expect("a code").to_owned());
    }
    let all: BTreeSet<String> = CODES.iter().map(|(code, ..)| (*code).to_owned()).collect();
    let missing: Vec<_> = all.difference(&provoked).collect();
    assert!(missing.is_empty(), "no request provokes {missing:?}");
}
