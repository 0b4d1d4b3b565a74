//! Settings as operators give them: in a named file, and with every number at its minimum.

use serde_json::json;
use wrkflw_runtime::clock::Clock;
use wrkflw_server::http::auth::{AuthSettings, Claims, Secret};
use wrkflw_server::http::token;

use super::TIMEOUT;
use super::client::{Reply, ask};
use super::host::Host;
use crate::support::app::{SECRET, TestApp, task_of};

fn secret() -> &'static str {
    str::from_utf8(SECRET).expect("text")
}

/// A token of this user and issuer.
fn token(subject: &str, issuer: Option<&str>) -> String {
    let auth = AuthSettings {
        hs256_secret: Some(Secret::new(SECRET)),
        issuer: issuer.map(str::to_owned),
        ..AuthSettings::default()
    };
    let claims = Claims {
        subject: subject.to_owned(),
        tenant: "default".to_owned(),
        roles: vec!["user".to_owned()],
    };
    let token = token::mint(&auth, &claims, TIMEOUT, Clock::System.now());
    format!("Bearer {}", token.expect("a token"))
}

async fn send(host: &Host, line: &str, token: &str, body: &str) -> Reply {
    ask(host.address, line, &[("authorization", token)], body).await
}

#[tokio::test]
async fn a_host_checks_tokens_by_the_settings_of_the_named_file() {
    let app = TestApp::start().await;
    let settings = [
        ("jwt_secret", secret()),
        ("jwt_issuer", "https://ours.example"),
    ];
    let line = "serve --output json --config named.toml";
    let host = Host::start_by(app.database.url(), &settings, "named.toml", line).await;
    let ours = token("author", Some("https://ours.example"));
    let theirs = token("author", Some("https://theirs.example"));
    let line = "GET /v1/instances";
    assert_eq!(send(&host, line, &ours, "").await.status, 200);
    assert_eq!(send(&host, line, &theirs, "").await.status, 401);
    assert_eq!(
        send(&host, line, &token("author", None), "").await.status,
        401
    );
}

#[tokio::test]
async fn a_host_with_every_number_at_its_minimum_serves() {
    let app = TestApp::start().await;
    let settings = [
        ("jwt_secret", secret()),
        ("connections_max", "1"),
        ("requests_in_flight_max", "1"),
        ("guest_memory_bytes_max", "2097152"),
        ("drain_notice_seconds", "0"),
    ];
    let host = Host::start(app.database.url(), &settings).await;
    let start = json!({
        "definitionKey": "document-approval", "entityType": "document", "entityId": "least", "data": { "title": "A plan" },
    });
    let author = token("author", None);
    let started = send(&host, "POST /v1/instances", &author, &start.to_string()).await;
    assert_eq!(started.status, 201, "{}", started.text);
    let task = task_of(&started.json()["instance"]);
    let reviewer = token("reviewer", None);
    for (command, body) in [("claim", ""), ("decide", r#"{"outcome":"APPROVE"}"#)] {
        let line = format!("POST /v1/tasks/{task}/{command}");
        let done = send(&host, &line, &reviewer, body).await;
        assert_eq!(done.status, 200, "{command}: {}", done.text);
    }
    let listed = send(&host, "GET /v1/tasks", &reviewer, "").await;
    assert_eq!(listed.status, 200, "{}", listed.text);
}
