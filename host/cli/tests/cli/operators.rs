//! What operators do about a harmful flow: find failures, stop the version, and cancel its instances.

use std::fs;

use serde_json::{Value, json};

use crate::program::{Running, TestFolder, until};

/// A host with a few instances of document approval, and their ids.
fn office(place: &TestFolder, count: usize) -> (Running, Vec<Value>) {
    let dev = place.start("dev --empty --port 0");
    let start = |number: usize| {
        let line = format!(
            r#"instance start document-approval --entity document/{number} --data {{"title":"Budget"}} --as author"#
        );
        place.data(&line)["instance"]["id"].clone()
    };
    (dev, (0..count).map(start).collect())
}

/// Publishes another version with this config.
fn published(place: &TestFolder, config: &Value) -> Value {
    let config = config.to_string();
    let write = |name: &str, bytes: &[u8]| {
        fs::write(place.folder.join(name), bytes).expect("our own folder");
    };
    write("flow.wasm", wrkflw::sample::DOCUMENT_APPROVAL);
    write("flow.json", config.as_bytes());
    place.data("definition publish flow.wasm --key document-approval --config flow.json --note Trial --as admin")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("text")
}

/// The operation once it has ended.
fn until_over(place: &TestFolder, operation: &Value) -> Value {
    let show = format!("operation show {} --as admin", text(&operation["id"]));
    until("the operation is over", || {
        let shown = place.data(&show);
        if shown["status"] == "RUNNING" {
            Err(shown)
        } else {
            Ok(shown)
        }
    })
}

/// For each instance, inserts a job that has failed three times.
fn fail_jobs(place: &TestFolder) {
    place.sql(
        "insert into job (tenant_id, id, kind, instance_id, due_at, payload, attempts, last_error, lease_until)
        select tenant_id, id, 'deadline', id, timestamptz '2030-01-31 08:00Z', '{}', 3, 'the calendar office is not there',
            now() + interval '1 hour' from instance",
    );
}

#[test]
fn failing_jobs_are_listed_page_by_page() {
    let place = TestFolder::new();
    let (_dev, ids) = office(&place, 3);
    let none = place.run("job list --as admin");
    assert_eq!(
        (none.code, none.stdout.as_str()),
        (0, ""),
        "{}",
        none.stderr
    );
    assert!(none.stderr.contains("nothing found"), "{}", none.stderr);
    fail_jobs(&place);

    let table = place.run("job list --state failing --as admin");
    let mut lines = table.stdout.lines();
    let heads: Vec<_> = lines
        .next()
        .expect("a heading")
        .split_whitespace()
        .collect();
    assert_eq!(
        heads,
        [
            "ID",
            "KIND",
            "INSTANCE",
            "DEFINITION",
            "VERSION",
            "DUE",
            "ATTEMPTS",
            "NEXT",
            "ERROR"
        ]
    );
    let first = lines.next().expect("a job");
    let id = text(&ids[0]);
    let beginning = format!("{id}  deadline  {id}  document-approval  1 ");
    assert!(first.starts_with(&beginning), "{first}");
    assert!(
        first.ends_with("the calendar office is not there"),
        "{first}"
    );

    let page = place.data("job list --limit 2 --as admin");
    let next = page["page"]["next"].as_str().expect("there is more");
    let rest = place.data(&format!("job list --after {next} --as admin"));
    let of = |page: &Value| -> Vec<Value> {
        let jobs = page["data"].as_array().expect("jobs").iter();
        jobs.map(|job| job["instanceId"].clone()).collect()
    };
    assert_eq!([of(&page), of(&rest)].concat(), ids);

    let refused = place.run("job list --as author");
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    let unknown = place.run("job list --state sleeping --as admin");
    assert_eq!(unknown.code, 6, "{}", unknown.stderr);
}

#[test]
fn a_version_is_stopped_and_its_instances_are_cancelled() {
    let place = TestFolder::new();
    let (_dev, ids) = office(&place, 3);
    let stopped = place.data("definition stop document-approval 1 --reason harm --as admin");
    assert_eq!(stopped["stopped"], true);
    let refused = place.run(
        r#"instance start document-approval --entity document/9 --data {"title":"Budget"} --as author"#,
    );
    assert_eq!(refused.code, 5, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("[version_stopped]"),
        "{}",
        refused.stderr
    );
    assert!(
        refused
            .stderr
            .contains("next: `wrkflw definition resume document-approval 1`"),
        "{}",
        refused.stderr
    );

    let cancel = "operation cancel document-approval 1 --reason harm --as admin";
    let tried = place.data(&format!("{cancel} --dry-run"));
    assert_eq!((&tried["total"], &tried["done"]), (&json!(3), &json!(3)));
    let tried = place.run(&format!("{cancel} --dry-run")).stdout;
    assert!(
        tried.contains(&format!("\n{}  done", text(&ids[0]))),
        "{tried}"
    );

    // Selected by their properties.
    let one = place.data(&format!(
        "{cancel} --entity document/1 --in Submitted --status RUNNING --initiator author"
    ));
    assert_eq!(one["total"], 1);
    let begun = place.data(&format!("{cancel} --idempotency-key all"));
    assert_eq!(
        place.data(&format!("{cancel} --idempotency-key all"))["id"],
        begun["id"]
    );
    until_over(&place, &begun);
    let id = text(&begun["id"]);
    let shown = place.run(&format!("operation show {id} --as admin")).stdout;
    assert!(shown.contains("action        cancel\n"), "{shown}");
    let items = place.data(&format!("operation items {id} --result failed --as admin"));
    assert_eq!(items["data"], json!([]));
    for instance in &ids {
        let instance = text(instance);
        let status = &place.data(&format!("instance show {instance}"))["status"];
        assert_eq!(status, "CANCELLED");
    }
    let resumed = place.data("definition resume document-approval 1 --as admin");
    assert_eq!(resumed["stopped"], false);
}

#[test]
fn instances_are_migrated_together() {
    let place = TestFolder::new();
    let (_dev, ids) = office(&place, 2);
    assert_eq!(
        published(&place, &json!({ "reviewers": "approvers" }))["version"],
        2
    );

    let migrate =
        "operation migrate document-approval 1 --to 2 --state Submitted=Submitted --as admin";
    let same = place.run(&migrate.replace("--to 2", "--to 1"));
    assert_eq!(same.code, 6, "{}", same.stderr);
    assert!(
        same.stderr.contains("have this version already"),
        "{}",
        same.stderr
    );
    let begun = place.data(migrate);
    let done = until_over(&place, &begun);
    assert_eq!(
        (&done["done"], &done["status"]),
        (&json!(2), &json!("DONE"))
    );
    for instance in &ids {
        let instance = text(instance);
        let version = &place.data(&format!("instance show {instance}"))["definitionVersion"];
        assert_eq!(version, 2);
    }
    let stop = format!("operation stop {} --as admin", text(&begun["id"]));
    assert_eq!(place.data(&stop)["status"], "DONE", "it is over already");
}

#[test]
fn a_version_with_unknown_names_is_activated_by_force() {
    let place = TestFolder::new();
    let (_dev, _) = office(&place, 0);
    let warned = &published(&place, &json!({ "initiators": "moon-people" }))["warnings"][0];
    assert_eq!(
        (&warned["kind"], &warned["name"]),
        (&json!("group"), &json!("moon-people"))
    );
    let activate = "definition activate document-approval 2 --as admin";
    let refused = place.run(activate);
    assert_eq!(refused.code, 5, "{}", refused.stderr);
    for part in ["[unknown_names]", "moon-people", "--force"] {
        assert!(refused.stderr.contains(part), "{}", refused.stderr);
    }
    let tried = place.data(&format!("{activate} --dry-run"));
    let effects = &tried["effects"];
    assert_eq!(
        (
            &tried["dryRun"],
            &effects["before"],
            &effects["unknown"][0]["name"]
        ),
        (&json!(true), &json!(1), &json!("moon-people"))
    );
    let table = place.run(&format!("{activate} --dry-run --output table"));
    assert!(table.stdout.contains("active now"), "{}", table.stdout);
    let activated = place.data(&format!("{activate} --force"));
    assert_eq!(
        (&activated["version"], &activated["active"]),
        (&json!(2), &json!(true))
    );
    let listed = place.data("definition list document-approval --as admin");
    assert_eq!(listed["data"][0]["note"], "Trial");
    assert_eq!(listed["data"][1]["note"], "The sample of wrkflw dev");
}

/// Waits until a command prints these words. Hosts write their counts every ten seconds.
fn until_printed(place: &TestFolder, line: &str, words: &str) -> String {
    until(&format!("{line} prints {words}"), || {
        let printed = place.run(line);
        assert_eq!(printed.code, 0, "{}", printed.stderr);
        if printed.stdout.contains(words) {
            Ok(printed.stdout)
        } else {
            Err(printed.stdout)
        }
    })
}

#[test]
fn operators_see_hosts_figures_and_refusals() {
    let place = TestFolder::new();
    let (_dev, _) = office(&place, 2);
    let hosts = place.data("host list --as admin");
    assert_eq!(hosts["data"].as_array().map(Vec::len), Some(1), "{hosts}");
    assert_eq!(hosts["versions"], json!([env!("CARGO_PKG_VERSION")]));
    let printed = place.run("host list --as admin");
    assert!(printed.stdout.starts_with("NAME"), "{}", printed.stdout);
    assert_eq!(printed.stderr, "", "one version needs no warning");
    let tasks = place.data("task list --view all --as admin");
    let own = format!("task claim {} --as author", text(&tasks["data"][0]["id"]));
    assert_ne!(place.run(&own).code, 0);
    let lines = until_printed(&place, "series list --as admin", "own_request");
    let line = |name: &str| {
        let found = lines.lines().find(|line| line.starts_with(name));
        found
            .expect("a line")
            .split_whitespace()
            .collect::<Vec<_>>()
    };
    assert_eq!(line("starts")[1], "2", "{lines}");
    assert_eq!(line("refusals")[1..3], ["own_request", "1"], "{lines}");
    let shown = place.run("series show starts --as admin");
    assert!(shown.stdout.starts_with("AT"), "{}", shown.stdout);
    let unknown = place.run("series show sales --as admin");
    assert!(
        unknown.code != 0 && unknown.stderr.contains("name"),
        "{}",
        unknown.stderr
    );
    let refused = place.data("refusal list --reason own_request --as admin");
    assert_eq!(refused["data"][0]["actor"], "author", "{refused}");
    let none = place.data("refusal list --reason permission_missing --as admin");
    assert_eq!(none["data"], json!([]), "{none}");
}
