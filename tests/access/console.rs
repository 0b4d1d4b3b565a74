//! Pages of the console over HTTP, as a browser without scripts would request them.

use std::net::SocketAddr;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::client::{Reply, exchange, request, rest};
use super::clients::{deaf, fill_feed};
use super::host::Host;
use super::provider::Provider;
use super::signer::{AUDIENCE, ISSUER};
use crate::support::app::{SECRET, TestApp, task_of};
use crate::support::guests::committee;

/// Signs in to the console with a token. Returns the session cookie.
pub(super) async fn sign_in(host: &Host, token: &str) -> String {
    let body = format!("bearer={token}");
    let form = format!(
        "POST /console/sign-in HTTP/1.1\r\nhost: localhost\r\norigin: http://localhost\r\nconnection: close\r\n\
         content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let reply = Reply::parse(&exchange(host.address, form.as_bytes()).await).expect("an answer");
    assert_eq!(reply.status, 303, "{}", reply.text);
    let cookie = reply.header("set-cookie").expect("a session");
    cookie.split(';').next().expect("a cookie").to_owned()
}

/// A browser of a signed-in person.
struct Browser {
    host: Host,
    cookie: String,
}

impl Browser {
    async fn of(app: &TestApp, person: &str) -> Browser {
        let secret = String::from_utf8(SECRET.to_vec()).expect("text");
        let host = Host::start(app.database.url(), &[("jwt_secret", &secret)]).await;
        let cookie = sign_in(&host, &app.host().token(person)).await;
        Browser { host, cookie }
    }

    async fn load(&self, path: &str) -> Reply {
        let headers = [("cookie", self.cookie.as_str())];
        let page = self.host.ask(&format!("GET {path}"), &headers, "").await;
        assert_eq!(page.status, 200, "{path}: {}", page.text);
        page
    }

    /// Sends a form of a page to its address, with the hidden fields of the page.
    async fn send(&self, page: &Reply, address: &str, filled: &str) -> Reply {
        let hidden = ["token", "key", "seen"].map(|name| {
            let value = hidden(page, address, name);
            format!("{name}={value}&")
        });
        let headers = [
            ("cookie", self.cookie.as_str()),
            ("origin", "http://localhost"),
        ];
        let form = format!("{}{filled}", hidden.concat());
        let line = format!("POST {address}");
        self.host.ask(&line, &headers, &form).await
    }
}

/// The value of a hidden field of the form with this address.
#[track_caller]
fn hidden<'a>(page: &'a Reply, address: &str, name: &str) -> &'a str {
    let form = page.text.split(&format!("action=\"{address}")).nth(1);
    let form = form.and_then(|rest| rest.split("</form>").next());
    let field = format!("type=\"hidden\" name=\"{name}\" value=\"");
    let value = form.and_then(|form| form.split(&field).nth(1)?.split('"').next());
    value.unwrap_or_else(|| panic!("{address}: no {name} in {}", page.text))
}

/// The preview on a page.
#[track_caller]
fn preview(page: &Reply) -> &str {
    let preview = page.text.split("id=\"preview\"").nth(1);
    preview.unwrap_or_else(|| panic!("no preview in {}", page.text))
}

/// A vote in which NO requires a comment.
async fn chambers() -> TestApp {
    let app = TestApp::empty().await;
    let config = json!({ "transitions": { "NO": { "comment": "required" } } });
    let published = app.publish("committee", committee(), &config).await;
    published.expect(201);
    let path = "/v1/definitions/committee/versions/1/activate";
    let forced = app.post("admin", path, json!({ "force": true })).await;
    forced.expect(200);
    app
}

/// A vote of the reviewer, in which a decision with the comment `Never` rejects at once.
async fn vote(app: &TestApp, entity: &str) -> Value {
    let assign = json!({ "needed": 1, "offers": [{ "owner": "reviewer" }] });
    let body = json!({
        "definitionKey": "committee", "entityType": "motion", "entityId": entity,
        "data": { "veto": "Never", "assign": assign },
    });
    app.post("author", "/v1/instances", body).await.started()
}

#[tokio::test]
async fn a_decision_is_previewed_again_if_its_comment_changes_the_effects() {
    let app = chambers().await;
    let browser = Browser::of(&app, "reviewer").await;
    for (entity, comment, outcome) in [("a", "Fine", "APPROVED"), ("b", "Never", "REJECTED")] {
        let instance = vote(&app, entity).await;
        let (id, task) = (instance["id"].as_str().expect("an id"), task_of(&instance));
        let page = format!("/console/instances/{id}");
        let form = format!("{page}?action=decide&task={task}&outcome=YES");
        let mut form = browser.load(&form).await;
        let ends = |outcome: &str| format!("The instance ends: {outcome}");
        assert!(preview(&form).contains(&ends("APPROVED")), "{}", form.text);
        let act = format!("{page}/act");
        let filled =
            format!("action=decide&task={task}&outcome=YES&comment={comment}&step=confirm");
        let path = format!("/v1/instances/{id}");
        let mut sent = browser.send(&form, &act, &filled).await;
        if outcome != "APPROVED" {
            assert_eq!(sent.status, 200, "{}", sent.text);
            assert!(preview(&sent).contains(&ends(outcome)), "{}", sent.text);
            let still = app.get("reviewer", &path).await.expect(200);
            assert_eq!(still["status"], "RUNNING", "nothing is done yet");
            form = sent;
            sent = browser.send(&form, &act, &filled).await;
        }
        assert_eq!(sent.status, 303, "{}", sent.text);
        let ended = app.get("reviewer", &path).await.expect(200);
        assert_eq!(ended["outcome"], outcome, "{entity}");
    }
}

#[tokio::test]
async fn decisions_on_many_tasks_are_previewed_again_if_their_comment_changes_the_effects() {
    let app = chambers().await;
    let browser = Browser::of(&app, "reviewer").await;
    let instance = vote(&app, "many").await;
    let (id, task) = (instance["id"].as_str().expect("an id"), task_of(&instance));
    let filled = |comment: &str, step: &str| {
        format!("action=decide&task={task}&outcome=NO&comment={comment}&step={step}")
    };
    let address = "/console/bulk";
    // Every page contains the token of the session.
    let first = browser.load(&format!("/console/instances/{id}")).await;
    let token = hidden(&first, "/console/sign-out", "token");
    let headers = [
        ("cookie", browser.cookie.as_str()),
        ("origin", "http://localhost"),
    ];
    let form = format!("token={token}&{}", filled("Late", "preview"));
    let line = format!("POST {address}");
    let shown = browser.host.ask(&line, &headers, &form).await;
    assert!(
        preview(&shown).contains("1 task will change"),
        "{}",
        shown.text
    );
    let without = browser.send(&shown, address, &filled("", "confirm")).await;
    assert!(
        preview(&without).contains("1 is refused"),
        "{}",
        without.text
    );
    let other = browser
        .send(&shown, address, &filled("Dear", "confirm"))
        .await;
    assert!(other.text.contains("id=\"results\""), "{}", other.text);
    let path = format!("/v1/instances/{id}");
    let ended = app.get("reviewer", &path).await.expect(200);
    assert_eq!(ended["outcome"], "REJECTED");
}

#[tokio::test]
async fn diagrams_of_versions_and_instances_can_be_downloaded() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let browser = Browser::of(&app, "admin").await;
    let id = instance["id"].as_str().expect("an id");
    for page in [
        "/console/definitions/document-approval/1".to_owned(),
        format!("/console/instances/{id}?tab=diagram"),
    ] {
        let shown = browser.load(&page).await;
        let links = shown.text.split("href=\"").skip(1);
        let mut links = links.filter_map(|rest| rest.split('"').next());
        let file = links.find(|link| link.ends_with("diagram.svg"));
        let file = file.unwrap_or_else(|| panic!("no file in {}", shown.text));
        let drawing = browser.load(file).await;
        let kind = drawing.header("content-type").expect("a type");
        assert!(kind.starts_with("image/svg+xml"), "{file}: {kind}");
    }
}

#[tokio::test]
async fn verifying_an_instance_keeps_the_view_that_is_worked_through() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let browser = Browser::of(&app, "admin").await;
    let id = instance["id"].as_str().expect("an id");
    let page = format!("/console/instances/{id}?queue=view%3Dall");
    let audit = browser.load(&format!("{page}&tab=audit")).await;
    let links = audit.text.split("href=\"").skip(1);
    let mut links = links.filter_map(|rest| rest.split('"').next());
    let verify = links.find(|link| link.ends_with("verify=true"));
    let verify = verify.unwrap_or_else(|| panic!("no link in {}", audit.text));
    let verify = verify.replace("&#38;", "&");
    assert_eq!(verify, format!("{page}&tab=audit&verify=true"));
    browser.load(&verify).await;
}

/// A host without a key signs no checkpoints.
#[tokio::test]
async fn the_audit_page_says_that_no_checkpoint_is_signed() {
    let app = TestApp::start().await;
    app.started("doc-1").await;
    let browser = Browser::of(&app, "admin").await;
    let audit = browser.load("/console/audit").await;
    let words = "because no checkpoint is signed";
    assert!(audit.text.contains(words), "{}", audit.text);
}

/// A sign-out aborts a running download, so that the reader does not take a part for the whole file.
#[tokio::test(flavor = "multi_thread")]
async fn a_download_is_aborted_when_its_reader_signs_out() {
    let app = TestApp::start().await;
    app.started("doc-1").await;
    fill_feed(&app).await;
    let browser = Browser::of(&app, "admin").await;
    let page = browser.load("/console/audit").await;
    let cookie = ("cookie", browser.cookie.as_str());
    let mut client = deaf(&browser.host).await;
    let headers = [cookie, ("connection", "close")];
    let text = request("GET /console/audit/entries.jsonl", &headers, "");
    client.write_all(text.as_bytes()).await.expect("sent");
    let begun = client.read_u8().await.expect("a beginning");
    // The host cannot read the rest of the file before the reader has signed out.
    let mut held = app
        .database
        .admin_pool()
        .begin()
        .await
        .expect("a connection");
    let lock = sqlx::query("lock table audit_entry in access exclusive mode");
    lock.execute(&mut *held).await.expect("a lock");
    let headers = [cookie, ("origin", "http://localhost")];
    let token = hidden(&page, "/console/sign-out", "token");
    let form = format!("token={token}");
    let line = "POST /console/sign-out";
    let out = browser.host.ask(line, &headers, &form).await;
    assert_eq!(out.status, 303, "{}", out.text);
    held.rollback().await.expect("no lock");
    let mut received = vec![begun];
    received.extend(rest(&mut client).await);
    let reply = Reply::parse(&received).expect("an answer");
    assert_eq!(reply.status, 200);
    let last = reply.text.lines().last().unwrap_or_default();
    assert!(!last.starts_with("{\"next\":"), "the file is whole");
}

/// Invented session cookies cost at most a place and one lookup.
#[tokio::test(flavor = "multi_thread")]
async fn pages_use_request_places_like_the_api() {
    const IN_FLIGHT_MAX: usize = 2;
    let app = TestApp::start().await;
    let secret = String::from_utf8(SECRET.to_vec()).expect("text");
    let settings = [
        ("jwt_secret", secret.as_str()),
        ("requests_in_flight_max", "2"),
    ];
    let host = Host::start(app.database.url(), &settings).await;
    let cookie = format!("__Host-wrkflw-session=1.{}", "A".repeat(43));
    let headers = [("cookie", cookie.as_str())];
    let mut stuck = app.database.admin_pool().begin().await.expect("begun");
    let lock = sqlx::query("lock table session in access exclusive mode");
    lock.execute(&mut *stuck).await.expect("locked");
    let count = 2 * 5 * IN_FLIGHT_MAX;
    let pages = (0..count).map(|_| host.ask("GET /console", &headers, ""));
    let mut answers = pages.collect::<FuturesUnordered<_>>();
    for _ in 0..count - IN_FLIGHT_MAX {
        let refused = answers.next().await.expect("an answer");
        let met = (refused.status, refused.code());
        assert_eq!(met, (503, "overloaded".to_owned()), "{}", refused.text);
        assert_eq!(refused.header("retry-after"), Some("1"));
    }
    stuck.rollback().await.expect("an end");
    while let Some(answer) = answers.next().await {
        let leads = answer.header("location").expect("a page");
        assert!(leads.starts_with("/console/sign-in"), "{leads}");
    }
}

/// Leaves this many forms unfinished. The host refuses all but `read` of them, and reads these as long as the connections are
/// open.
async fn leave_unfinished(
    address: SocketAddr,
    count: usize,
    read: usize,
) -> FuturesUnordered<impl Future<Output = Vec<u8>>> {
    const UNFINISHED: &str = "POST /console/language HTTP/1.1\r\nhost: localhost\r\norigin: http://localhost\r\nconnection: close\r\n\
                      content-type: application/x-www-form-urlencoded\r\ncontent-length: 20\r\n\r\nto=";
    let forms = (0..count).map(|_| exchange(address, UNFINISHED.as_bytes()));
    let mut forms = forms.collect::<FuturesUnordered<_>>();
    for _ in 0..count - read {
        let received = forms.next().await.expect("an answer");
        let refused = Reply::parse(&received).expect("an answer");
        let met = (refused.status, refused.code());
        assert_eq!(met, (503, "overloaded".to_owned()), "{}", refused.text);
        assert_eq!(refused.header("retry-after"), Some("1"));
    }
    forms
}

/// Logouts by the provider have places of their own.
#[tokio::test(flavor = "multi_thread")]
async fn unfinished_forms_without_a_session_do_not_block_logouts() {
    let app = TestApp::empty().await;
    let provider = Provider::start(&[]).await;
    let settings = [
        ("jwks_url", provider.url.as_str()),
        ("jwt_issuer", ISSUER),
        ("jwt_audience", AUDIENCE),
        ("oidc_client_id", "console"),
        ("requests_in_flight_max", "8"),
    ];
    let host = Host::start(app.database.url(), &settings).await;
    let _forms = leave_unfinished(host.address, 16, 2).await;
    let line = "POST /console/sign-out/provider";
    let read = host.ask(line, &[], "other=1").await;
    let description = read.json()["error_description"].clone();
    assert_eq!(
        (read.status, description),
        (400, json!("the form has no logout_token"))
    );
    let refused = "wrkflw_requests_refused_total{reason=\"forms\"}";
    assert_eq!(host.measure(refused).await, Some(14.0));
}

/// Anybody can leave a form unfinished. It takes a place for pages, and most of these remain free.
#[tokio::test(flavor = "multi_thread")]
async fn unfinished_forms_without_a_session_leave_places_for_pages() {
    let app = TestApp::start().await;
    let secret = String::from_utf8(SECRET.to_vec()).expect("text");
    let settings = [
        ("jwt_secret", secret.as_str()),
        ("requests_in_flight_max", "8"),
    ];
    let host = Host::start(app.database.url(), &settings).await;
    let cookie = sign_in(&host, &app.host().token("reviewer")).await;
    let browser = Browser { host, cookie };
    let _forms = leave_unfinished(browser.host.address, 16, 2).await;
    let shown = browser.host.ask("GET /console/sign-in", &[], "").await;
    assert_eq!(shown.status, 200, "{}", shown.text);
    // A signed-in person sends forms as before.
    let page = browser.load("/console").await;
    let token = hidden(&page, "/console/sign-out", "token");
    let headers = [
        ("cookie", browser.cookie.as_str()),
        ("origin", "http://localhost"),
    ];
    let line = "POST /console/sign-out";
    let form = format!("token={token}");
    let out = browser.host.ask(line, &headers, &form).await;
    assert_eq!(out.status, 303, "{}", out.text);
}

#[tokio::test]
async fn an_ambiguous_request_for_a_page_is_refused() {
    let app = TestApp::empty().await;
    let secret = String::from_utf8(SECRET.to_vec()).expect("text");
    let host = Host::start(app.database.url(), &[("jwt_secret", &secret)]).await;
    for path in ["/console", "/console/sign-in"] {
        for (headers, status) in [("", 200), ("host: b\r\n", 400)] {
            let text =
                format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{headers}\r\n");
            let received = exchange(host.address, text.as_bytes()).await;
            let reply = Reply::parse(&received).expect("an answer");
            let met = if reply.status == 303 {
                200
            } else {
                reply.status
            };
            assert_eq!(met, status, "{path}: {}", reply.text);
            assert!(met == 200 || reply.code() == "malformed_request");
        }
    }
}
