//! A person's preferences for pages: private, and the same on every host.

use super::*;
use wrkflw_store::directory::tenants;

const PATH: &str = "/v1/me/preferences";

#[tokio::test]
async fn people_choose_language_zone_and_theme_for_themselves() {
    let app = TestApp::start().await;
    let none = app.get("author", PATH).await.expect(200);
    let nothing =
        json!({ "mutedNotifications": [], "language": null, "timeZone": null, "theme": null });
    assert_eq!(none, nothing);
    let chosen = json!({ "mutedNotifications": ["MENTION"], "language": "de-CH", "timeZone": "Europe/Zurich", "theme": "dark" });
    let kept = app.put("author", PATH, chosen.clone()).await;
    assert_eq!(kept.expect(200), chosen);
    assert_eq!(app.get("author", PATH).await.expect(200), chosen);
    let other = app.get("reviewer", PATH).await.expect(200);
    assert_eq!(other, nothing, "the choice is of one person");
    // A member that the body leaves out is not set.
    let muted = json!({ "mutedNotifications": [] });
    let replaced = app.put("author", PATH, muted).await.expect(200);
    assert_eq!(replaced, nothing);
}

#[tokio::test]
async fn an_impossible_choice_is_refused() {
    let app = TestApp::start().await;
    let cases = [
        (json!({ "language": "Deutsch!" }), "/language", "malformed"),
        (
            json!({ "language": "a".repeat(36) }),
            "/language",
            "malformed",
        ),
        (
            json!({ "timeZone": "Mars/Olympus" }),
            "/timeZone",
            "unknown_time_zone",
        ),
        (
            json!({ "timeZone": "+07:00" }),
            "/timeZone",
            "unknown_time_zone",
        ),
        (json!({ "theme": "pink" }), "/theme", "malformed"),
        (json!({ "colour": "red" }), "/colour", "unknown_field"),
    ];
    for (mut body, pointer, code) in cases {
        body["mutedNotifications"] = json!([]);
        let refused = app.put("author", PATH, body).await;
        let problem = refused.problem(422, "invalid_request");
        let error = &problem["errors"][0];
        assert_eq!(
            (&error["pointer"], &error["code"]),
            (&json!(pointer), &json!(code))
        );
    }
    let none = app.get("author", PATH).await.expect(200);
    assert_eq!(none["timeZone"], json!(null));
}

#[tokio::test]
async fn a_session_has_the_preferences_of_its_person() {
    let app = TestApp::start().await;
    let tenant = tenants::find(app.engine.reader(), "default").await;
    let who = wrkflw_engine::Identity {
        tenant: tenant.expect("the database").expect("the tenant"),
        tenant_name: "default".to_owned(),
        subject: "author".to_owned(),
        roles: vec!["user".to_owned()],
        embedded_by: None,
    };
    let begun = app
        .engine
        .sessions()
        .begin(&who, "A browser", jiff::Timestamp::MAX, None)
        .await;
    let secret = begun.expect("a session");
    let body = json!({ "mutedNotifications": [], "timeZone": "Asia/Bangkok" });
    app.put("author", PATH, body).await.expect(200);
    let found = app.engine.sessions().get(who.tenant, &secret).await;
    let found = found.expect("the database").expect("the session");
    assert_eq!(found.preference.time_zone.as_deref(), Some("Asia/Bangkok"));
    assert_eq!(found.preference.theme, None);
}
