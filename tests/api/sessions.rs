//! Sessions of browsers: found only by their secret, listed and ended by their person, and ended after a day or without use.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use wrkflw_engine::{Engine, Identity, ProviderSession, SESSION_IDLE_MAX, SESSION_MAX, Session};
use wrkflw_runtime::clock::Clock;

use super::*;
use wrkflw_store::directory::tenants;

async fn identity(app: &TestApp, person: &str) -> Identity {
    let tenant = tenants::find(app.engine.reader(), "default").await;
    Identity {
        tenant: tenant.expect("the database").expect("the tenant"),
        tenant_name: "default".to_owned(),
        subject: person.to_owned(),
        roles: vec!["user".to_owned()],
        embedded_by: None,
    }
}

async fn begin(engine: &Engine, who: &Identity, until: Timestamp) -> [u8; 32] {
    let begun = engine
        .sessions()
        .begin(who, "A browser\u{7}", until, None)
        .await;
    begun.expect("a session")
}

async fn end(app: &TestApp, person: &str, id: uuid::Uuid) -> Answer {
    let path = format!("/v1/me/sessions/{id}");
    app.host().send(person, "DELETE", &path, &[], None).await
}

async fn found(engine: &Engine, who: &Identity, secret: &[u8]) -> Session {
    let found = engine.sessions().get(who.tenant, secret).await;
    found.expect("the database").expect("the session")
}

async fn is_open(engine: &Engine, who: &Identity, secret: &[u8]) -> bool {
    let found = engine.sessions().get(who.tenant, secret).await;
    found.expect("the database").is_some()
}

/// Begins a session of the administrator, and lets this host find it.
pub(crate) async fn begun_and_found(app: &TestApp, engine: &Engine) {
    let who = identity(app, "admin").await;
    let secret = begin(&app.engine, &who, Timestamp::MAX).await;
    assert!(is_open(engine, &who, &secret).await);
}

#[tokio::test]
async fn a_session_is_found_by_its_secret_with_its_person_and_roles() {
    let app = TestApp::start().await;
    let author = identity(&app, "author").await;
    let secret = begin(&app.engine, &author, Timestamp::MAX).await;
    let found = found(&app.engine, &author, &secret).await;
    assert_eq!(found.who.subject, "author");
    assert_eq!(found.who.roles, ["user"]);
    assert_eq!(found.who.tenant_name, "default");
    let mut other = secret;
    other[31] ^= 1;
    assert!(!is_open(&app.engine, &author, &other).await);
    let stored: Vec<u8> = sqlx::query_scalar("select secret_digest from session")
        .fetch_one(app.database.admin_pool())
        .await
        .expect("a row");
    assert_ne!(stored, secret, "the secret is not stored");
}

#[tokio::test]
async fn people_list_and_end_their_own_sessions() {
    let app = TestApp::start().await;
    let (author, reviewer) = (
        identity(&app, "author").await,
        identity(&app, "reviewer").await,
    );
    let secret = begin(&app.engine, &author, Timestamp::MAX).await;
    let later = begin(&app.engine, &author, Timestamp::MAX).await;
    let kept = begin(&app.engine, &reviewer, Timestamp::MAX).await;
    let first = found(&app.engine, &author, &secret).await;
    let second = found(&app.engine, &author, &later).await;
    let foreign = found(&app.engine, &reviewer, &kept).await;
    let listed = app.get("author", "/v1/me/sessions").await.expect(200);
    let ids = listed["data"].as_array().expect("a list").iter();
    let ids: Vec<_> = ids.map(|one| one["id"].as_str().expect("an id")).collect();
    assert_eq!(ids, [second.id.to_string(), first.id.to_string()]);
    assert_eq!(listed["data"][0]["client"], "A browser");

    let refused = end(&app, "author", foreign.id).await;
    refused.problem(404, "not_found");
    assert!(is_open(&app.engine, &reviewer, &kept).await);
    end(&app, "author", first.id).await.expect(204);
    assert!(!is_open(&app.engine, &author, &secret).await);
    let again = end(&app, "author", first.id).await;
    again.problem(404, "not_found");
}

#[tokio::test]
async fn a_session_ends_after_a_day_and_without_use() {
    let app = TestApp::start().await;
    let now = Arc::new(AtomicI64::new(Clock::System.now().as_millisecond()));
    let engine = &app.engine_with_clock(Clock::Manual(now.clone())).await;
    let author = identity(&app, "author").await;
    let milliseconds = |time: std::time::Duration| i64::try_from(time.as_millis()).expect("short");
    let (idle, day) = (milliseconds(SESSION_IDLE_MAX), milliseconds(SESSION_MAX));

    let unused = begin(engine, &author, Timestamp::MAX).await;
    now.fetch_add(idle - 1, Ordering::SeqCst);
    let used = begin(engine, &author, Timestamp::MAX).await;
    now.fetch_add(1, Ordering::SeqCst);
    assert!(!is_open(engine, &author, &unused).await);

    // A session ends after a day, however often it is used. Its use is recorded at most once a minute.
    let (step, mut passed) = (idle - 60_001, 1);
    while passed + step < day {
        now.fetch_add(step, Ordering::SeqCst);
        passed += step;
        assert!(is_open(engine, &author, &used).await, "{passed}");
    }
    now.fetch_add(day - passed, Ordering::SeqCst);
    assert!(!is_open(engine, &author, &used).await);

    // The expiry of the token ends the session.
    let until = Timestamp::from_millisecond(now.load(Ordering::SeqCst) + 1).expect("a moment");
    let short = begin(engine, &author, until).await;
    assert!(is_open(engine, &author, &short).await);
    now.fetch_add(1, Ordering::SeqCst);
    assert!(!is_open(engine, &author, &short).await);
}

#[tokio::test]
async fn the_oldest_of_more_than_a_hundred_sessions_ends() {
    let app = TestApp::start().await;
    let author = identity(&app, "author").await;
    let oldest = begin(&app.engine, &author, Timestamp::MAX).await;
    for _ in 0..99 {
        begin(&app.engine, &author, Timestamp::MAX).await;
    }
    assert!(is_open(&app.engine, &author, &oldest).await);
    begin(&app.engine, &author, Timestamp::MAX).await;
    assert!(!is_open(&app.engine, &author, &oldest).await);
}

#[tokio::test]
async fn the_identity_provider_ends_its_sessions() {
    let app = TestApp::start().await;
    let (author, reviewer) = (
        identity(&app, "author").await,
        identity(&app, "reviewer").await,
    );
    let there = |name: &str| ProviderSession {
        name: Some(name.to_owned()),
        id_token: format!("token of {name}"),
    };
    let begin = async |who: &Identity, provider: Option<ProviderSession>| {
        let begun = app
            .engine
            .sessions()
            .begin(who, "A browser", Timestamp::MAX, provider.as_ref())
            .await;
        begun.expect("a session")
    };
    let first = begin(&author, Some(there("s-1"))).await;
    let kept = begin(&author, Some(there("s-2"))).await;
    let without = begin(&author, None).await;
    let foreign = begin(&reviewer, Some(there("s-3"))).await;
    let ended = async |person, session| {
        let ended = app.engine.sessions().end_of_provider(person, session).await;
        ended.expect("the database")
    };
    assert_eq!(
        ended(Some("reviewer"), Some("s-1")).await,
        0,
        "of another person"
    );
    assert_eq!(ended(None, Some("s-1")).await, 1);
    assert!(!is_open(&app.engine, &author, &first).await);
    assert!(is_open(&app.engine, &author, &kept).await);
    // A sign-out returns the ID token for the provider.
    let second = found(&app.engine, &author, &kept).await;
    let hint = app.engine.sessions().end(&author, second.id).await;
    assert_eq!(hint.expect("the session").as_deref(), Some("token of s-2"));
    assert_eq!(ended(Some("author"), None).await, 1, "all of the person");
    assert!(!is_open(&app.engine, &author, &without).await);
    assert!(is_open(&app.engine, &reviewer, &foreign).await);
}
