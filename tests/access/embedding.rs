//! What an embed token permits: one instance, from the page that it names, as long as it is valid and its person may see the
//! instance.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wrkflw_audit::seal::{SealKeys, token};
use wrkflw_runtime::clock::Clock;

use super::client::Reply;
use super::host::Host;
use crate::support::app::{SECRET, TestApp, task_of};

const ORIGIN: &str = "https://documents.example";
const INSTANCE: &str = "POST /embed/instance";

/// A host with an instance that waits for its first review.
struct Embedding {
    app: TestApp,
    host: Host,
    instance: Value,
}

impl Embedding {
    async fn new() -> Embedding {
        let app = TestApp::start().await;
        let instance = app.started("doc-1").await;
        let secret = String::from_utf8(SECRET.to_vec()).expect("text");
        let host = Host::start(app.database.url(), &[("jwt_secret", &secret)]).await;
        Embedding {
            app,
            host,
            instance,
        }
    }

    async fn token(&self, subject: &str, scope: &str) -> String {
        let bearer = format!("Bearer {}", self.app.host().token("admin"));
        let body = json!({
            "subject": subject, "roles": ["user"], "instanceId": self.instance["id"], "origin": ORIGIN, "scope": scope,
        });
        let headers = [("authorization", bearer.as_str())];
        let line = "POST /v1/embed-tokens";
        let answer = self.host.ask(line, &headers, &body.to_string()).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()["token"].as_str().expect("a token").to_owned()
    }

    async fn ask(&self, line: &str, token: &str, origin: &str, form: &str) -> Reply {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str()), ("origin", origin)];
        self.host.ask(line, &headers, form).await
    }

    async fn decide(&self, token: &str, instance: &Value, step: &str) -> Reply {
        let task = task_of(instance);
        let form = format!("action=decide&task={task}&outcome=APPROVE&step={step}");
        self.ask(INSTANCE, token, ORIGIN, &form).await
    }
}

fn allowed(reply: &Reply) -> Option<&str> {
    reply.header("access-control-allow-origin")
}

#[tokio::test]
async fn a_token_shows_its_instance_to_its_page_only() {
    let world = Embedding::new().await;
    let token = world.token("reviewer", "decide").await;
    let shown = world.ask(INSTANCE, &token, ORIGIN, "").await;
    assert_eq!(shown.status, 200, "{}", shown.text);
    assert_eq!(allowed(&shown), Some(ORIGIN));
    assert!(shown.text.contains("document doc-1"), "{}", shown.text);
    for other in [
        "https://evil.example",
        "http://documents.example",
        "https://documents.example:8443",
        "null",
    ] {
        let refused = world.ask(INSTANCE, &token, other, "").await;
        assert_eq!((refused.status, allowed(&refused)), (403, None), "{other}");
        assert!(!refused.text.contains("doc-1"), "{}", refused.text);
    }
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    let without = world.host.ask(INSTANCE, &headers, "").await;
    assert_eq!(without.status, 403);
}

#[tokio::test]
async fn a_token_opens_nothing_else() {
    let world = Embedding::new().await;
    let other = world.app.started("doc-2").await;
    let token = world.token("reviewer", "decide").await;
    let id = world.instance["id"].as_str().expect("an id");
    for line in [
        format!("GET /v1/instances/{id}"),
        format!("GET /v1/instances/{id}/actions"),
        format!("POST /v1/tasks/{}/decide", task_of(&world.instance)),
        "GET /v1/me".to_owned(),
        "POST /v1/embed-tokens".to_owned(),
    ] {
        let refused = world.ask(&line, &token, ORIGIN, "").await;
        assert_eq!(refused.status, 401, "{line}: {}", refused.text);
    }
    let page = format!("GET /console/instances/{id}");
    let page = world.ask(&page, &token, ORIGIN, "").await;
    assert_eq!(page.status, 303, "a token is no session");
    let foreign = world.decide(&token, &other, "preview").await;
    assert_eq!(foreign.status, 403, "{}", foreign.text);
    let task = task_of(&world.instance);
    for form in [
        format!("action=claim&task={task}&step=confirm"),
        "action=cancel&step=confirm&reason=no".to_owned(),
        "action=comment&step=confirm&comment=no".to_owned(),
    ] {
        let refused = world.ask(INSTANCE, &token, ORIGIN, &form).await;
        assert_eq!(refused.status, 403, "{form}: {}", refused.text);
    }
}

#[tokio::test]
async fn a_token_that_only_reads_decides_nothing() {
    let world = Embedding::new().await;
    let token = world.token("reviewer", "read").await;
    let shown = world.ask(INSTANCE, &token, ORIGIN, "").await;
    assert!(
        shown.text.contains("Decide in the console"),
        "{}",
        shown.text
    );
    assert!(!shown.text.contains("action=decide"), "{}", shown.text);
    for step in ["", "preview", "confirm"] {
        let refused = world.decide(&token, &world.instance, step).await;
        assert_eq!(refused.status, 403, "{step}: {}", refused.text);
    }
}

#[tokio::test]
async fn expired_and_forged_tokens_are_refused() {
    let world = Embedding::new().await;
    let text = json!({
        "tenant": "default", "subject": "reviewer", "roles": ["user"], "instance": world.instance["id"], "origin": ORIGIN,
        "scope": "decide", "issuer": "admin", "until": Clock::System.now().as_millisecond() - 1,
    });
    let mut later = text.clone();
    later["until"] = json!(Clock::System.now().as_millisecond() + 60_000);
    let key = wrkflw_core::ids::unhex("5ea15ea15ea15ea15ea15ea15ea15ea1").expect("digits");
    let keys = |key: Vec<u8>| {
        let keys = BTreeMap::from([("k1".to_owned(), key)]);
        SealKeys::new("k1", keys).expect("keys")
    };
    let (own, foreign) = (keys(key), keys(vec![7; 16]));
    let token = token::seal(&own, &later.to_string());
    let good = world.ask(INSTANCE, &token, ORIGIN, "").await;
    assert_eq!(good.status, 200, "{}", good.text);
    for (what, token) in [
        ("expired", token::seal(&own, &text.to_string())),
        ("another key", token::seal(&foreign, &later.to_string())),
        ("no token", "nonsense".to_owned()),
        ("too long", "a".repeat(9000)),
        ("a token of the API", world.app.host().token("reviewer")),
    ] {
        let refused = world.ask(INSTANCE, &token, ORIGIN, "").await;
        assert_eq!(refused.status, 401, "{what}: {}", refused.text);
        // The page must be able to read that it needs a new token.
        assert_eq!(allowed(&refused), Some(ORIGIN), "{what}");
        assert!(!refused.text.contains("doc-1"), "{what}");
    }
}

#[tokio::test]
async fn a_token_loses_access_when_its_person_does() {
    let world = Embedding::new().await;
    let token = world.token("reviewer", "decide").await;
    let form = world.decide(&token, &world.instance, "").await;
    assert_eq!(form.status, 200, "{}", form.text);
    let member = "/v1/groups/reviewers/members/reviewer";
    let host = world.app.host();
    let left = host.send("admin", "DELETE", member, &[], None).await;
    left.expect(200);
    let refused = world.decide(&token, &world.instance, "preview").await;
    assert_eq!(refused.status, 403, "{}", refused.text);
    let role = json!({ "permissions": ["task:read"] });
    let changed = world.app.put("admin", "/v1/roles/user", role).await;
    changed.expect(200);
    let blind = world.ask(INSTANCE, &token, ORIGIN, "").await;
    assert_eq!(blind.status, 403, "{}", blind.text);
    assert!(blind.text.contains("instance:read"), "{}", blind.text);
    assert!(!blind.text.contains("doc-1"), "{}", blind.text);
    let stream = world.ask("POST /embed/live", &token, ORIGIN, "").await;
    assert_eq!(stream.status, 403, "{}", stream.text);
}

#[tokio::test]
async fn a_preflight_is_answered_and_the_script_is_served_to_all_origins() {
    let world = Embedding::new().await;
    let headers = [
        ("origin", ORIGIN),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "authorization"),
    ];
    for path in ["/embed/instance", "/embed/live"] {
        let line = format!("OPTIONS {path}");
        let reply = world.host.ask(&line, &headers, "").await;
        assert_eq!((reply.status, allowed(&reply)), (204, Some(ORIGIN)));
        assert_eq!(reply.header("access-control-allow-credentials"), None);
    }
    let line = "GET /embed/wrkflw-instance.js";
    let element = world.host.ask(line, &[], "").await;
    assert_eq!((element.status, allowed(&element)), (200, Some("*")));
    let tag = element.header("etag").expect("a tag");
    let again = world.host.ask(line, &[("if-none-match", tag)], "").await;
    assert_eq!(again.status, 304);
    let other = [("if-none-match", "\"other\"")];
    assert_eq!(world.host.ask(line, &other, "").await.status, 200);
    // The API itself stays closed to other origins.
    let api = world
        .host
        .ask("GET /v1/me", &[("origin", ORIGIN)], "")
        .await;
    assert_eq!(allowed(&api), None);
}

#[tokio::test]
async fn a_decision_records_the_person_and_the_issuer_of_the_token() {
    let world = Embedding::new().await;
    let token = world.token("reviewer", "decide").await;
    let preview = world.decide(&token, &world.instance, "preview").await;
    assert_eq!(preview.status, 200, "{}", preview.text);
    // The hidden fields of the form. The button adds the step.
    let hidden = preview.text.split("type=\"hidden\"").skip(1);
    let hidden = hidden.filter_map(|field| {
        let value = |name: &str| field.split(&format!("{name}=\"")).nth(1)?.split('"').next();
        Some(format!("{}={}&", value("name")?, value("value")?))
    });
    let form = format!("{}step=confirm", hidden.collect::<String>());
    let decided = world.ask(INSTANCE, &token, ORIGIN, &form).await;
    assert!(decided.text.contains("is recorded"), "{}", decided.text);
    let id = world.instance["id"].as_str().expect("an id");
    let path = format!("/v1/instances/{id}/audit");
    let audit = world.app.get("admin", &path).await.expect(200);
    let entries = audit["data"].as_array().expect("entries");
    let with = |kind: &str| {
        let found = entries.iter().find(|entry| entry["type"] == kind);
        found.unwrap_or_else(|| panic!("{kind} in {audit}"))
    };
    let start = &with("FLOW_STARTED")["evidence"];
    assert_eq!(start.get("embeddedBy"), None, "by a token of one's own");
    // A decision claims first, so the claim has the evidence of the command.
    let claim = with("TASK_CLAIMED");
    assert_eq!(claim["actor"], "reviewer");
    assert_eq!(claim["evidence"]["embeddedBy"], "admin");
    assert_eq!(with("DECISION_RECORDED")["actor"], "reviewer");
}
