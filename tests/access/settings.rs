//! Settings as operators give them: in a named file, and with nearly every number at its minimum.

use serde_json::{Value, json};
use wrkflw_runtime::clock::Clock;
use wrkflw_server::http::auth::{AuthSettings, Claims, Secret};
use wrkflw_server::http::token;

use super::TIMEOUT;
use super::client::{Reply, ask};
use super::host::Host;
use crate::support::app::{SECRET, TestApp, task_of};
use crate::support::guests::subflows;
use crate::support::machine::Machine;
use crate::support::until_so;

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
    let foreign = token("author", Some("https://theirs.example"));
    let line = "GET /v1/instances";
    assert_eq!(send(&host, line, &ours, "").await.status, 200);
    assert_eq!(send(&host, line, &foreign, "").await.status, 401);
    assert_eq!(
        send(&host, line, &token("author", None), "").await.status,
        401
    );
}

/// Starts an instance as `author`. Returns the response.
async fn start(host: &Host, body: &Value) -> Value {
    let author = token("author", None);
    let started = send(host, "POST /v1/instances", &author, &body.to_string()).await;
    assert_eq!(started.status, 201, "{}", started.text);
    started.json()["instance"].clone()
}

/// Of the nine numbers, only `guest_deadline_ms` has its default: its minimum may be too short for the unoptimised host of the tests.
#[tokio::test]
async fn a_host_with_nearly_every_number_at_its_minimum_serves() {
    let (app, mut machine) = (TestApp::start().await, Machine::start().await);
    let published = app.publish("subflows", subflows(), &json!({})).await;
    published.expect(201);
    let path = "/v1/definitions/subflows/versions/1/activate";
    app.post("admin", path, json!({})).await.expect(200);
    let services = format!("machine={}", machine.url);
    let settings = [
        ("jwt_secret", secret()),
        ("roles", "api,timers"),
        ("services", services.as_str()),
        ("connections_max", "1"),
        ("requests_in_flight_max", "1"),
        ("request_seconds_max", "1"),
        ("guest_memory_bytes_max", "2097152"),
        ("drain_notice_seconds", "0"),
        ("descendants_max", "0"),
        ("open_jobs_max", "1"),
        ("service_calls_max", "1"),
    ];
    let host = Host::start(app.database.url(), &settings).await;
    let approval = json!({
        "definitionKey": "document-approval", "entityType": "document", "entityId": "least", "data": { "title": "A plan" },
    });
    let task = task_of(&start(&host, &approval).await);
    let reviewer = token("reviewer", None);
    for (command, body) in [("claim", ""), ("decide", r#"{"outcome":"APPROVE"}"#)] {
        let line = format!("POST /v1/tasks/{task}/{command}");
        let done = send(&host, &line, &reviewer, body).await;
        assert_eq!(done.status, 200, "{command}: {}", done.text);
    }
    let listed = send(&host, "GET /v1/tasks", &reviewer, "").await;
    assert_eq!(listed.status, 200, "{}", listed.text);

    // The call is the one open job that an instance may have.
    let errand = json!({
        "definitionKey": "subflows", "entityType": "errand", "entityId": "least", "data": { "first": "Ask", "ask": {} },
    });
    let asking = start(&host, &errand).await;
    machine.next().await;
    let id = asking["id"].as_str().expect("an id");
    let line = format!("GET /v1/instances/{id}");
    let look = async || send(&host, &line, &reviewer, "").await.json();
    let ended = until_so(look, |shown: &Value| shown["status"] == "COMPLETED").await;
    assert_eq!(ended["outcome"], "DONE");
}
