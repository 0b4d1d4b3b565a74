//! An export proves without the database what the database would prove: an unchanged file has no findings, and every change of
//! the file is found.

mod parts;
mod versions;

use serde_json::{Value, json};
use wrkflw_audit::export::Exporter;
use wrkflw_audit::keys::CheckpointKeys;
use wrkflw_audit::record::rows::Which;
use wrkflw_audit::seal::SealKeys;
use wrkflw_audit::verify::file::FileVerifier;
use wrkflw_audit::verify::{Finding, How, VerifiedCounts};
use wrkflw_core::checkpoint::Checkpoint;
use wrkflw_core::ids::InstanceId;
use wrkflw_core::instance::Entity;

use super::checkpoints::{keys, sign};
use super::replay::replayer;
use super::verify::{approved, behind};
use crate::support::app::{TestApp, task_of};

async fn export(app: &TestApp, which: &Which) -> Vec<Value> {
    let lines = written(app, which).await.into_iter();
    let read = |line: String| serde_json::from_str::<Value>(&line).expect("JSON");
    lines.map(read).collect()
}

/// The lines of the file.
async fn written(app: &TestApp, which: &Which) -> Vec<String> {
    let mut lines = Vec::new();
    let exporter = Exporter::new(app.engine.reader(), false, |line| {
        lines.push(serde_json::to_string(line)?);
        Ok(())
    });
    let now = app.engine.clock().now();
    let count = exporter.run(None, which, now).await.expect("an export");
    assert_eq!(count, lines.len() as u64);
    lines
}

struct Bench<'a> {
    app: &'a TestApp,
    keys: &'a CheckpointKeys,
    seals: Option<&'a SealKeys>,
    kept: &'a [Checkpoint],
    replayed: bool,
}

impl<'a> Bench<'a> {
    /// Without the keys of seals, without kept checkpoints, and without a replay.
    fn of(app: &'a TestApp, keys: &'a CheckpointKeys) -> Bench<'a> {
        Bench {
            app,
            keys,
            seals: None,
            kept: &[],
            replayed: false,
        }
    }

    /// Checks that the verification of these lines has a finding or fails.
    async fn finds(&self, lines: &[Value], what: &str) {
        let found = self.verify(lines).await;
        assert!(
            !matches!(&found, Ok((_, findings)) if findings.is_empty()),
            "{what}: {found:?}"
        );
    }

    async fn verify(&self, lines: &[Value]) -> Result<(VerifiedCounts, Vec<Finding>), String> {
        let lines: Vec<_> = lines.iter().map(Value::to_string).collect();
        self.verify_written(&lines).await
    }

    async fn verify_written(
        &self,
        lines: &[String],
    ) -> Result<(VerifiedCounts, Vec<Finding>), String> {
        let mut findings = Vec::new();
        let replayer = self.replayed.then(|| replayer(&self.app.engine));
        let how = How {
            seals: self.seals,
            replayer: replayer.as_ref(),
            keys: self.keys,
            kept: self.kept,
        };
        let mut verifier = FileVerifier::new(how, |finding| findings.push(finding));
        for line in lines {
            verifier
                .line(line)
                .await
                .map_err(|error| error.to_string())?;
        }
        let tally = verifier.end().map_err(|error| error.to_string())?;
        assert_eq!(tally.findings, findings.len() as u64);
        Ok((tally, findings))
    }
}

/// Two instances and a refusal under a checkpoint, and a start that is not under one yet.
async fn history() -> (TestApp, CheckpointKeys, InstanceId) {
    let app = TestApp::start().await;
    let keys = keys(&[("one", 1)]);
    let id = approved(&app, "doc-1").await;
    let open = app.started("doc-2").await;
    let claim = format!("/v1/tasks/{}/claim", task_of(&open));
    app.post("outsider", &claim, json!({}))
        .await
        .problem(403, "forbidden");
    sign(&app.engine, &keys).await;
    app.started("doc-3").await;
    (app, keys, id)
}

#[tokio::test]
async fn an_export_is_verified_without_the_database() {
    let (app, keys, id) = history().await;
    let bench = Bench {
        seals: Some(app.engine.seals()),
        replayed: true,
        ..Bench::of(&app, &keys)
    };
    let lines = export(&app, &Which::All).await;
    let (tally, findings) = bench.verify(&lines).await.expect("a file");
    assert_eq!(findings, []);
    assert_eq!((tally.instances, tally.decisions, tally.seals), (3, 4, 4));
    assert_eq!(
        tally.commands, 11,
        "three starts, four claims, four decisions"
    );
    assert!(tally.checkpoints > 0 && tally.signatures == tally.checkpoints);
    let started = tally.entries + 1 - tally.leaves;
    assert_eq!(
        tally.uncovered, started,
        "the last start, and the refusal is a leaf"
    );

    let about = Which::About(Entity {
        kind: "document".into(),
        id: "doc-1".into(),
    });
    for which in [Which::One(id), about] {
        let lines = export(&app, &which).await;
        let (tally, findings) = bench.verify(&lines).await.expect("a file");
        assert_eq!(findings, [], "{which:?}");
        assert_eq!((tally.streams, tally.decisions, tally.seals), (1, 4, 4));
        assert_eq!(
            (tally.leaves, tally.uncovered),
            (tally.entries, 0),
            "each entry has its proof"
        );
        assert_eq!((tally.checkpoints, tally.signatures), (1, 1));
    }
    // A verifier without keys verifies the rest.
    let bare = Bench {
        seals: None,
        keys: &CheckpointKeys::default(),
        replayed: false,
        ..bench
    };
    let (tally, findings) = bare.verify(&lines).await.expect("a file");
    assert_eq!((tally.seals, tally.signatures, findings), (0, 0, vec![]));
}

/// Every member of every line, changed.
#[tokio::test]
async fn every_change_of_a_file_is_found() {
    let (app, keys, id) = history().await;
    let bench = Bench {
        seals: Some(app.engine.seals()),
        ..Bench::of(&app, &keys)
    };
    let mut changed = 0;
    for which in [Which::All, Which::One(id)] {
        let lines = export(&app, &which).await;
        assert_eq!(bench.verify(&lines).await.expect("a file").1, []);
        let taken_in = lines[1]["tenant"]["takenIn"].as_i64().expect("a position");
        // A sample of each kind; all of a checkpoint, and entries where the chain alone does not help.
        let chosen = |at: &usize| {
            let line = &lines[*at];
            let whole = which == Which::All;
            line.get("checkpoint").is_some()
                || line.get("refused").is_some()
                || (whole && line.get("stream").is_some())
                || (whole && line.get("version").is_some())
                || (whole && line.get("leaf").is_some() && at.is_multiple_of(9))
                || (line.get("entry").is_some() && at.is_multiple_of(if whole { 17 } else { 4 }))
        };
        for at in (0..lines.len()).filter(chosen) {
            let members: Vec<String> = lines[at]
                .as_object()
                .and_then(|line| line.values().next()?.as_object())
                .map(|members| members.keys().cloned().collect())
                .unwrap_or_default();
            for member in members {
                let mut other = lines.clone();
                let value = other[at]
                    .as_object_mut()
                    .and_then(|line| line.values_mut().next()?.get_mut(&member));
                let value = value.expect("a member");
                if !alter(value) {
                    continue;
                }
                let labels = lines[at].get("leaf").is_some()
                    && ["kind", "id", "seq"].contains(&member.as_str());
                // Entries that are not under a checkpoint yet may lose parts that the chain does not cover.
                let late = lines[at]["entry"]["pos"]
                    .as_i64()
                    .is_some_and(|pos| pos > taken_in)
                    && ["xid", "pos", "traceparent"].contains(&member.as_str());
                if labels || late {
                    continue;
                }
                let what = format!("line {at}, {member}: {}", lines[at]);
                bench.finds(&other, &what).await;
                changed += 1;
            }
        }
    }
    assert!(changed > 100, "{changed} members");
}

/// Only an export of whole tenants proves that a tenant should be in it.
#[tokio::test]
async fn a_tenant_that_the_file_lacks_is_found_by_its_kept_checkpoints() {
    let (app, _, id) = history().await;
    let lines = export(&app, &Which::All).await;
    let part = export(&app, &Which::One(id)).await;
    let own = last_checkpoint(&lines);
    let other = Checkpoint {
        tenant: "other".into(),
        ..own.clone()
    };
    let no_keys = CheckpointKeys::default();
    let bench = Bench {
        kept: &[own, other],
        ..Bench::of(&app, &no_keys)
    };
    let listed = |findings: Vec<Finding>| {
        let brief = findings.into_iter().map(|it| (it.tenant, it.code));
        brief.collect::<Vec<_>>()
    };
    let (_, findings) = bench.verify(&lines).await.expect("a file");
    assert_eq!(listed(findings), [("other".to_owned(), "rewound")]);
    let (_, findings) = bench.verify(&part).await.expect("a file");
    assert_eq!(findings, []);
    let mut none = vec![lines[0].clone(), json!({ "end": {} })];
    recount(&mut none);
    let (_, findings) = bench.verify(&none).await.expect("a file");
    assert_eq!(
        listed(findings),
        [
            ("default".to_owned(), "rewound"),
            ("other".to_owned(), "rewound")
        ]
    );
}

/// The last checkpoint of an export.
fn last_checkpoint(lines: &[Value]) -> Checkpoint {
    lines
        .iter()
        .filter_map(|line| serde_json::from_value(line["checkpoint"].clone()).ok())
        .next_back()
        .expect("a checkpoint")
}

/// Adapts the end of an export to its lines.
fn recount(lines: &mut [Value]) {
    let before = lines.len() - 1;
    lines[before]["end"]["lines"] = json!(before);
}

/// In an export of an instance, each entry has a proof of its own.
#[tokio::test]
async fn removed_proofs_and_checkpoints_are_found() {
    let (app, keys, id) = history().await;
    let lines = export(&app, &Which::One(id)).await;
    let bench = Bench::of(&app, &keys);
    let of_entry = |at: &usize| lines[*at].get("entry").is_some();
    let entries: Vec<usize> = (0..lines.len()).filter(of_entry).collect();
    let last = entries.last().copied().expect("entries");
    for at in entries.iter().copied() {
        let mut other = lines.clone();
        without_proof(&mut other[at]);
        let (_, findings) = bench.verify(&other).await.expect("a file");
        let seq = lines[at]["entry"]["seq"].as_u64();
        let named: Vec<_> = findings.iter().map(|it| (it.code, it.id, it.seq)).collect();
        assert_eq!(named, [("leaf", id.0, seq)], "line {at}");
        // The proofs of later entries show it, whatever the file claims.
        other[1]["tenant"]["takenIn"] = json!(0);
        let (_, findings) = bench.verify(&other).await.expect("a file");
        let named: Vec<_> = findings.iter().map(|it| (it.code, it.id, it.seq)).collect();
        let expected = (at != last).then_some(("leaf", id.0, seq));
        assert_eq!(named, expected.into_iter().collect::<Vec<_>>(), "line {at}");
    }
    let mut other = lines.clone();
    other.retain(|line| line.get("checkpoint").is_none());
    recount(&mut other);
    let each = vec!["leaf"; entries.len()];
    let (_, findings) = bench.verify(&other).await.expect("a file");
    assert_eq!(codes(&findings), each, "{findings:#?}");
    for line in &mut other {
        if line.get("entry").is_some() {
            without_proof(line);
        }
    }
    let (_, findings) = bench.verify(&other).await.expect("a file");
    assert_eq!(codes(&findings), each, "{findings:#?}");
    // The file itself does not show it any more, but a kept checkpoint does.
    other[1]["tenant"]["takenIn"] = json!(0);
    let (tally, findings) = bench.verify(&other).await.expect("a file");
    assert_eq!((tally.uncovered, findings), (tally.entries, vec![]));
    let kept = last_checkpoint(&lines);
    let with_kept = Bench {
        kept: std::slice::from_ref(&kept),
        ..bench
    };
    let (_, findings) = with_kept.verify(&other).await.expect("a file");
    assert_eq!(codes(&findings), ["rewound"]);
}

/// Removes the proof of an entry.
fn without_proof(line: &mut Value) {
    let entry = line["entry"].as_object_mut().expect("an entry");
    entry.remove("proof").expect("a proof");
}

fn codes(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.code).collect()
}

#[tokio::test]
async fn entries_after_the_last_checkpoint_need_no_proof() {
    let (app, keys, _) = history().await;
    let bench = Bench::of(&app, &keys);
    let about = |id: &str| {
        Which::About(Entity {
            kind: "document".into(),
            id: id.into(),
        })
    };
    // The instance began after the checkpoint.
    let lines = export(&app, &about("doc-3")).await;
    let (tally, findings) = bench.verify(&lines).await.expect("a file");
    assert_eq!(findings, []);
    assert_eq!((tally.leaves, tally.uncovered), (0, tally.entries));
    // No checkpoint of the tenant has been signed yet.
    let app = TestApp::start().await;
    app.started("doc-1").await;
    let lines = export(&app, &about("doc-1")).await;
    let bench = Bench { app: &app, ..bench };
    let (tally, findings) = bench.verify(&lines).await.expect("a file");
    assert_eq!(findings, []);
    assert_eq!((tally.checkpoints, tally.uncovered), (0, tally.entries));
}

#[tokio::test]
async fn an_export_whose_proofs_lack_a_leaf_fails() {
    let (app, _, id) = history().await;
    behind(&app, "delete from audit_leaf where leaf = 0").await;
    let exporter = Exporter::new(app.engine.reader(), false, |_| Ok(()));
    let now = app.engine.clock().now();
    let error = exporter.run(None, &Which::One(id), now).await;
    let error = error.expect_err("a leaf is missing").to_string();
    assert!(error.contains("leaves are missing"), "{error}");
}

/// Replaces the value by another one of the same kind. Returns whether there is one.
fn alter(value: &mut Value) -> bool {
    *value = match value.take() {
        Value::Number(number) => json!(number.as_u64().unwrap_or(0) + 1),
        Value::String(text) => {
            match (text.parse::<uuid::Uuid>(), text.parse::<jiff::Timestamp>()) {
                (Ok(_), _) => json!(wrkflw_runtime::clock::new_id()),
                (_, Ok(at)) => json!(at + jiff::SignedDuration::from_millis(1)),
                // The first digit of a digest, or the first letter of a text.
                _ => {
                    let first = if text.starts_with('0') { "1" } else { "0" };
                    json!(format!("{first}{}", text.get(1..).unwrap_or_default()))
                }
            }
        }
        Value::Null => json!("x"),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => return false,
    };
    true
}

/// For an instance without its row, tasks, decisions and seals would not be compared.
#[tokio::test]
async fn an_instance_cannot_pass_as_another_kind_of_stream() {
    let (app, keys, id) = history().await;
    let mut lines = export(&app, &Which::All).await;
    for line in &mut lines {
        if line["instance"]["id"] == json!(id) {
            let mut head = line["instance"]["head"].clone();
            head["eventSeq"] = Value::Null;
            *line = json!({ "stream": { "kind": "instance", "id": id, "head": head } });
        }
    }
    lines.retain(|line| line["task"]["instance"] != json!(id));
    recount(&mut lines);
    let (_, findings) = Bench::of(&app, &keys).verify(&lines).await.expect("a file");
    assert_eq!(codes(&findings), ["head_missing"]);
}

#[tokio::test]
async fn missing_and_swapped_lines_are_found() {
    let (app, keys, id) = history().await;
    let lines = export(&app, &Which::All).await;
    let bench = Bench::of(&app, &keys);
    let at = |kind: &str| {
        lines
            .iter()
            .position(|line| line.get(kind).is_some())
            .expect("a line")
    };
    for kind in [
        "leaf",
        "checkpoint",
        "instance",
        "task",
        "entry",
        "refused",
        "stream",
        "version",
        "end",
    ] {
        let mut fewer = lines.clone();
        fewer.remove(at(kind));
        let count = fewer.len() as u64 - 1;
        if let Some(end) = fewer.last_mut().and_then(|line| line.get_mut("end")) {
            end["lines"] = json!(count);
        }
        bench.finds(&fewer, kind).await;
    }
    for kind in ["leaf", "entry"] {
        let mut swapped = lines.clone();
        swapped.swap(at(kind), at(kind) + 1);
        bench.finds(&swapped, kind).await;
    }
    // A whole instance is removed from the file.
    let mine = |line: &Value| line["instance"]["id"] == json!(id);
    let first = lines.iter().position(mine).expect("the instance");
    let ends = |line: &Value| {
        ["task", "entry"]
            .iter()
            .all(|kind| line.get(kind).is_none())
    };
    let rest = lines[first + 1..]
        .iter()
        .position(ends)
        .expect("what comes after it");
    let mut without = lines.clone();
    without.drain(first..=first + rest);
    recount(&mut without);
    let (_, findings) = bench.verify(&without).await.expect("a file");
    assert!(!findings.is_empty());
    assert!(
        findings
            .iter()
            .all(|it| it.code == "entry_missing" && it.id == id.0),
        "{findings:#?}"
    );
    // An export of a database that was reset, compared with a kept checkpoint.
    let kept = last_checkpoint(&lines);
    behind(&app, "truncate audit_leaf; truncate checkpoint").await;
    let rewound = export(&app, &Which::All).await;
    let with_kept = Bench {
        kept: std::slice::from_ref(&kept),
        ..bench
    };
    let (_, findings) = with_kept.verify(&rewound).await.expect("a file");
    assert!(
        findings.iter().any(|it| it.code == "rewound"),
        "{findings:#?}"
    );
}
