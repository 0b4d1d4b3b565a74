//! Verification replays recorded commands: unchanged records give the same results, and each difference is a finding.

use serde_json::json;
use wrkflw_audit::keys::CheckpointKeys;
use wrkflw_audit::record::rows::Which;
use wrkflw_audit::replay::{ReplayError, Replayer};
use wrkflw_audit::verify::{Finding, How, VerifiedCounts, Verifier};
use wrkflw_core::audit::Entry;
use wrkflw_core::json::Json;
use wrkflw_engine::replay::Sandboxed;
use wrkflw_sandbox::{Compiler, Sandbox, Settings};

use super::proofs::tenant_of;
use super::replay::{altered, replayer};
use super::stream::entries;
use super::verify::{approved, behind, brief, forged, id};
use crate::support::app::TestApp;
use crate::support::guests;

async fn verify(app: &TestApp, replayer: &Replayer) -> (VerifiedCounts, Vec<Finding>) {
    let mut findings = Vec::new();
    let how = How {
        seals: None,
        replayer: Some(replayer),
        keys: &CheckpointKeys::default(),
        kept: &[],
    };
    let verifier = Verifier::new(app.engine.reader(), how, |finding| findings.push(finding));
    let tally = verifier.run(None, &Which::All).await.expect("a pass");
    (tally, findings)
}

#[tokio::test]
async fn an_unchanged_audit_replays_to_the_same() {
    let app = TestApp::start().await;
    approved(&app, "doc-1").await;
    app.started("doc-2").await;
    let (tally, findings) = verify(&app, &replayer(&app.engine)).await;
    assert_eq!(findings, []);
    // Two starts, four claims and four decisions.
    assert_eq!((tally.commands, tally.other_profiles), (10, 0));
    assert!(tally.evaluations > tally.commands, "{tally:?}");
    // An auditor may use other limits. Then plans are compared, but not fuel.
    let settings = Settings {
        fuel_transition: 77_000_000,
        ..Settings::new(Compiler::InProcess)
    };
    let sandbox = Sandboxed(Sandbox::new(settings).expect("a sandbox"));
    let other = Replayer::new(app.engine.reader().clone(), sandbox);
    let (tally, findings) = verify(&app, &other).await;
    assert_eq!(findings, []);
    assert_eq!((tally.commands, tally.other_profiles), (10, 10));
    // With too little fuel, nothing is proven, and no change is reported.
    let settings = Settings {
        fuel_enter: 1000,
        ..Settings::new(Compiler::InProcess)
    };
    let sandbox = Sandboxed(Sandbox::new(settings).expect("a sandbox"));
    let poor = Replayer::new(app.engine.reader().clone(), sandbox);
    let (_, findings) = verify(&app, &poor).await;
    assert!(!findings.is_empty());
    for finding in &findings {
        assert_eq!(finding.code, "replay_unable", "{finding:?}");
        let limit = "the call fails here, because it used up its 1000 units of fuel";
        assert!(finding.detail.ends_with(limit), "{finding:?}");
    }
}

/// The instance has more states than flow logic gets, and many commands.
#[tokio::test]
async fn a_long_history_replays_to_the_same() {
    let app = TestApp::start().await;
    let mut instance = app.started("doc-1").await;
    for round in 0..52 {
        let comment = format!("round {round}: {}", "too long ".repeat(200));
        let rejection = json!({ "outcome": "REJECT", "comment": comment });
        instance = app.decided("reviewer", &instance, rejection).await;
        let submission = json!({ "outcome": "SUBMIT" });
        instance = app.decided("author", &instance, submission).await;
    }
    let path = format!("/v1/instances/{}/actions", id(&instance));
    let explained = app.get("reviewer", &path).await.expect(200);
    let omitted = &explained["omitted"];
    assert_eq!(
        (&omitted["states"], &omitted["actions"]),
        (&json!(4), &json!(0))
    );
    let path = format!("/v1/instances/{}/history", id(&instance));
    let history = app.get("admin", &path).await.expect(200);
    let state_instances = history["data"].as_array().expect("state_instances");
    assert_eq!(state_instances.len(), 105, "people see all of them");
    let (tally, findings) = verify(&app, &replayer(&app.engine)).await;
    assert_eq!(findings, []);
    assert_eq!(tally.commands, 1 + 4 * 52);
}

/// An intruder forges chain, heads and rows consistently. The replay detects it without the seals.
#[tokio::test]
async fn a_forged_history_does_not_replay() {
    let app = TestApp::start().await;
    let id = approved(&app, "doc-1").await;
    let forged = forged(&entries(app.database.admin_pool(), id).await, |entry| {
        let text = entry
            .draft
            .payload
            .as_str()
            .replace("too short", "splendid!");
        entry.draft.payload = Json::parse(&text).expect("JSON");
    });
    for entry in &forged {
        let (payload, hash) = (
            entry.draft.payload.as_str().replace('\'', "''"),
            wrkflw_core::ids::hex(&entry.hash),
        );
        let seq = entry.seq;
        behind(&app, &format!(
            "update audit_entry set payload = '{payload}', hash = '\\x{hash}' where stream_id = '{id}' and seq = {seq}"
        ))
        .await;
    }
    let head = wrkflw_core::ids::hex(&forged.last().expect("entries").hash);
    behind(
        &app,
        &format!("update instance set audit_head = '\\x{head}'"),
    )
    .await;
    behind(
        &app,
        "update decision set comment = 'splendid!' where comment = 'too short'",
    )
    .await;
    let (_, findings) = verify(&app, &replayer(&app.engine)).await;
    assert!(
        findings.iter().all(|finding| finding.code == "replay"),
        "{findings:#?}"
    );
    let first = &findings[0];
    assert_eq!((first.id, first.seq), (id.0, Some(5)));
    assert_eq!(
        first.detail,
        "the event of entry 5 differs from what is recorded at /comment"
    );
}

/// Rules of daylight saving time change. Recorded due times follow the rules of their time.
#[tokio::test]
async fn a_due_time_by_another_time_zone_database_is_no_difference() {
    let app = TestApp::empty().await;
    let days = json!({ "monday": [{ "from": "09:00", "until": "17:00" }] });
    let office = json!({ "timeZone": "Europe/Berlin", "hours": days });
    let put = app.put("admin", "/v1/calendars/office", office);
    put.await.expect(200);
    let config = json!({ "calendars": ["office"] });
    let published = app.publish("vote", guests::committee(), &config);
    published.await.expect(201);
    let activate = "/v1/definitions/vote/versions/1/activate";
    app.post("admin", activate, json!({})).await.expect(200);
    let deadline = json!({ "days": 3, "working": "office", "do": "remind" });
    let offer = json!({ "users": ["reviewer"], "deadlines": [deadline] });
    let start = json!({
        "definitionKey": "vote", "entityType": "motion", "entityId": "m-1",
        "data": { "assign": { "offers": [offer] } },
    });
    let instance = app.post("author", "/v1/instances", start).await.started();
    let due = instance["states"][0]["tasks"][0]["dueAt"].as_str();
    let due = due.expect("it is due");
    let recorded = entries(app.database.admin_pool(), id(&instance)).await;
    let moved = |entry: &Entry| {
        let mut entry = entry.clone();
        let text = entry.draft.payload.as_str();
        let text = text.replace(due, "2001-01-01T00:00:00Z");
        entry.draft.payload = Json::parse(&text).expect("JSON");
        entry
    };
    let shifted: Vec<_> = recorded.iter().map(moved).collect();
    let tenant = (tenant_of(&app).await, "default");
    let replayer = replayer(&app.engine);
    let again = async |entries: &[Entry]| {
        let again = replayer.replay(tenant, None, entries).await;
        again.map(drop)
    };
    let older = |entries: &[Entry]| {
        let mut entries = entries.to_vec();
        entries[0] = altered(&entries[0], "/timeZones", json!("1999a"));
        entries
    };
    assert_eq!(again(&recorded).await, Ok(()));
    assert_eq!(again(&older(&recorded)).await, Ok(()));
    let differs = again(&shifted).await;
    assert!(
        matches!(differs, Err(ReplayError::Differs(_))),
        "{differs:?}"
    );
    let unable = again(&older(&shifted)).await;
    assert!(matches!(unable, Err(ReplayError::Unable(_))), "{unable:?}");
}

#[tokio::test]
async fn a_missing_or_changed_version_is_named() {
    let app = TestApp::start().await;
    approved(&app, "doc-1").await;
    for table in ["component", "definition_version"] {
        behind(&app, &format!("create table kept_{table} as table {table}")).await;
    }
    for (table, change, code, words) in [
        (
            "component",
            "delete from component",
            "replay_unable",
            "there is no component",
        ),
        (
            "component",
            "update component set bytes = set_byte(bytes, 100, get_byte(bytes, 100) # 1)",
            "replay_unable",
            "have the digest",
        ),
        (
            "definition_version",
            "delete from definition_version",
            "replay_unable",
            "is not there",
        ),
        (
            "definition_version",
            "update definition_version set config = '{\"reviewers\":\"approvers\"}'",
            "replay",
            "the config of document-approval version 1 differs from what is recorded",
        ),
        (
            "definition_version",
            "update definition_version set graph = replace(graph, 'FinalReview', 'LastReview')",
            "replay",
            "",
        ),
    ] {
        behind(&app, change).await;
        let (_, findings) = verify(&app, &replayer(&app.engine)).await;
        assert!(!findings.is_empty(), "{change}");
        let named = |finding: &Finding| finding.code == code && finding.detail.contains(words);
        assert!(findings.iter().any(named), "{change}: {findings:#?}");
        assert!(
            brief(&findings)[0].starts_with(&format!("instance: {code} ")),
            "{findings:#?}"
        );
        behind(
            &app,
            &format!("truncate {table}; insert into {table} table kept_{table}"),
        )
        .await;
    }
    assert_eq!(verify(&app, &replayer(&app.engine)).await.1, []);
}
