//! The versions in an export of a whole tenant must be those that its entries published.

use serde_json::{Value, json};
use wrkflw_audit::record::rows::Which;

use super::super::checkpoints::{keys, sign};
use super::super::verify::everything;
use super::{Bench, codes, export, history, recount, written};
use crate::api::upload;
use crate::support::app::TestApp;
use crate::support::guests;

#[tokio::test]
async fn a_version_that_was_not_published_in_this_form_is_found() {
    let (app, keys, _) = history().await;
    let lines = export(&app, &Which::All).await;
    let bench = Bench::of(&app, &keys);
    let at = lines.iter().position(|line| line.get("version").is_some());
    let at = at.expect("a version");
    let changed = |pointer: &str, value: Value| {
        let mut other = lines.clone();
        let member = other[at]["version"].pointer_mut(pointer);
        *member.unwrap_or_else(|| panic!("{pointer} is in the line")) = value;
        other
    };
    let missing = {
        let mut other = lines.clone();
        other.remove(at);
        other
    };
    let more = {
        let mut other = lines.clone();
        let mut made_up = lines[at].clone();
        made_up["version"]["reference"]["version"] = json!(9);
        other.insert(at, made_up);
        other
    };
    for (mut other, words) in [
        (
            // No command uses this version.
            changed("/graph/title", json!("Rubber stamp")),
            "graph is not what its audit entries say",
        ),
        (
            changed("/config", json!({ "reviewers": "others" })),
            "config is not what its audit entries say",
        ),
        (
            changed("/component", json!("0".repeat(64))),
            "but its audit entries say",
        ),
        (
            missing,
            "this row is missing, but its audit entries record it",
        ),
        (more, "this row exists, but no entry records it"),
    ] {
        recount(&mut other);
        let (_, findings) = bench.verify(&other).await.expect("a file");
        assert_eq!(codes(&findings), ["version"], "{words}: {findings:?}");
        assert!(findings[0].detail.contains(words), "{findings:?}");
    }
}

#[tokio::test]
async fn a_version_keeps_the_digits_of_its_numbers() {
    let app = TestApp::empty().await;
    // The flow gives the schema to its graph.
    let schema = r#"{"properties":{"amount":{"maximum":2.50,"type":"number"}},"type":"object"}"#;
    let config = format!(r#"{{"input":{},"limit":1.10,"rate":1e2}}"#, json!(schema));
    let fields: [(&str, &[u8]); 2] = [
        ("config", config.as_bytes()),
        ("component", guests::hostile()),
    ];
    upload(&app.host(), "admin", "hostile", &fields)
        .await
        .expect(201);
    let (_, findings) = everything(&app).await;
    assert_eq!(findings, []);

    let keys = keys(&[("one", 1)]);
    sign(&app.engine, &keys).await;
    let bench = Bench::of(&app, &keys);
    let lines = written(&app, &Which::All).await;
    let (_, findings) = bench.verify_written(&lines).await.expect("a file");
    assert_eq!(findings, []);
    let at = lines
        .iter()
        .position(|line| line.starts_with(r#"{"version":"#));
    let at = at.expect("a version");
    for (digits, others) in [
        (r#""limit":1.10"#, r#""limit":1.1"#),
        (r#""maximum":2.50,"type""#, r#""maximum":2.5,"type""#),
    ] {
        let mut changed = lines.clone();
        changed[at] = lines[at].replace(digits, others);
        assert_ne!(changed[at], lines[at], "{digits}");
        let (_, findings) = bench.verify_written(&changed).await.expect("a file");
        assert_eq!(codes(&findings), ["version"], "{digits}: {findings:?}");
    }
}
