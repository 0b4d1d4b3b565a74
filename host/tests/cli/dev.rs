//! `wrkflw dev` and the commands that talk to it, as the banner of dev suggests them.

use std::fs;

use serde_json::Value;

use crate::program::Place;

fn text(value: &Value, pointer: &str) -> String {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("no {pointer} in {value}"))
        .to_owned()
}

#[test]
fn a_document_is_approved_from_the_command_line() {
    let place = Place::new();
    let mut dev = place.start(&["dev", "--ephemeral", "--port", "0"]);
    assert!(text(&dev.facts, "/url").starts_with("http://127.0.0.1:"));

    let start = [
        "instance",
        "start",
        "document-approval",
        "--entity",
        "document/1",
        "--data",
        r#"{"title":"Budget"}"#,
        "--as",
        "author",
    ];
    let dry = place.data(&[start.as_slice(), &["--dry-run"]].concat());
    assert_eq!(dry["dryRun"], true);
    let started = place.data(&start);
    let (id, first) = (
        text(&started, "/id"),
        text(&started, "/states/0/tasks/0/id"),
    );
    let again = place.run(&start);
    assert_eq!(
        (again.code, again.stdout.as_str()),
        (5, ""),
        "{}",
        again.stderr
    );
    assert!(
        again.stderr.contains("[already_running]\nnext: "),
        "{}",
        again.stderr
    );

    let available = place.data(&["task", "list", "--view", "available", "--as", "reviewer"]);
    assert_eq!(text(&available, "/data/0/id"), first);
    assert_eq!(
        place
            .run(&["task", "claim", &first, "--as", "outsider"])
            .code,
        3
    );
    assert_eq!(
        place.data(&["task", "claim", &first, "--as", "reviewer"])["task"]["owner"],
        "reviewer"
    );
    assert_eq!(
        place
            .run(&["task", "claim", &first, "--as", "reviewer2"])
            .code,
        5
    );
    let silent = place.run(&[
        "task", "decide", &first, "REJECT", "--as", "reviewer", "--output", "json",
    ]);
    let problem: Value =
        serde_json::from_str(&silent.stderr).expect("the problem as the server sent it");
    assert_eq!(
        (silent.code, text(&problem, "/errors/0/pointer")),
        (6, "/comment".to_owned())
    );
    assert_eq!(
        place.data(&["task", "release", &first, "--as", "reviewer"])["task"]["status"],
        "PENDING"
    );
    place.data(&["task", "claim", &first, "--as", "reviewer"]);
    let stale = place.run(&[
        "task",
        "decide",
        &first,
        "APPROVE",
        "--if-match",
        "1",
        "--as",
        "reviewer",
    ]);
    assert_eq!(stale.code, 5, "{}", stale.stderr);
    let decided = place.data(&["task", "decide", &first, "APPROVE", "--as", "reviewer"]);
    let last = text(&decided, "/instance/states/0/tasks/0/id");
    place.data(&["task", "claim", &last, "--as", "approver"]);
    let ended = place.data(&[
        "task",
        "decide",
        &last,
        "APPROVE",
        "--comment",
        "Fine.",
        "--as",
        "approver",
    ]);
    assert_eq!(text(&ended, "/instance/outcome"), "APPROVED");

    assert_eq!(
        place.data(&["instance", "history", &id])["data"]
            .as_array()
            .map(Vec::len),
        Some(3)
    );
    assert_eq!(
        place.data(&["instance", "show", &id])["status"],
        "COMPLETED"
    );
    assert_eq!(
        place.data(&["instance", "list", "--status", "COMPLETED"])["data"][0]["id"],
        *id
    );
    let unknown = place.run(&["task", "show", "00000000-0000-7000-8000-000000000000"]);
    assert_eq!((unknown.code, unknown.stdout.as_str()), (4, ""));
    assert_eq!(
        place
            .run(&["instance", "cancel", &id, "--reason", "late"])
            .code,
        5
    );
    assert_eq!(dev.stop(), Some(0));
    assert_eq!(
        place.run(&["instance", "show", &id]).code,
        7,
        "a server that is gone is not found any more"
    );
}

#[test]
fn events_are_read_in_order_and_taken_up_after_a_cursor() {
    let place = Place::new();
    let _dev = place.start(&["dev", "--ephemeral", "--port", "0"]);
    let data = r#"{"title":"Budget"}"#;
    let begin = |entity: &str| {
        place.data(&[
            "instance",
            "start",
            "document-approval",
            "--entity",
            entity,
            "--data",
            data,
            "--as",
            "author",
        ]);
    };
    begin("document/1");
    let first = place.run(&["events", "tail", "--output", "json"]);
    let types = |stdout: &str| -> Vec<String> {
        stdout
            .lines()
            .map(|line| {
                text(
                    &serde_json::from_str(line).expect("an event a line"),
                    "/type",
                )
            })
            .collect()
    };
    let began = [
        "dev.wrkflw.flow.started",
        "dev.wrkflw.state.entered",
        "dev.wrkflw.task.created",
    ];
    assert_eq!(types(&first.stdout), began);
    let cursor = first
        .stderr
        .trim()
        .rsplit(' ')
        .next()
        .expect("the cursor is hinted at")
        .to_owned();
    assert_eq!(
        place.run(&["events", "tail", "--after", &cursor]).stdout,
        ""
    );

    begin("document/2");
    let followed = place.run(&[
        "events", "tail", "--follow", "--limit", "3", "--after", &cursor, "--output", "json",
        "--quiet",
    ]);
    assert_eq!((followed.code, followed.stderr.as_str()), (0, ""));
    assert_eq!(types(&followed.stdout), began);
    assert!(
        !followed
            .stdout
            .contains("\"id\":\"1\",\"type\":\"document\"")
    );
}

#[test]
fn data_and_secrets_are_kept_and_a_production_host_shares_the_database() {
    let place = Place::new();
    let mut dev = place.start(&["dev", "--port", "0"]);
    let start = [
        "instance",
        "start",
        "document-approval",
        "--entity",
        "document/1",
        "--data",
        r#"{"title":"Budget"}"#,
        "--as",
        "author",
    ];
    let id = text(&place.data(&start), "/id");
    let token = text(&place.data(&["token", "reviewer"]), "/token");
    assert_eq!(dev.stop(), Some(0));

    let mut dev = place.start(&["dev", "--port", "0"]);
    assert_eq!(
        place.data(&["instance", "show", &id, "--token", &token])["status"],
        "RUNNING"
    );
    let versions = place.data(&["definition", "list", "document-approval"]);
    assert_eq!(
        versions["data"].as_array().map(Vec::len),
        Some(1),
        "the same component is the same version"
    );

    let database = format!(
        "postgres://postgres@localhost/postgres?host={}/.wrkflw/postgres/socket",
        place.folder.display()
    );
    let home = place.folder.join(".wrkflw");
    let secret = home.join("jwt.secret");
    let seal = fs::read_to_string(home.join("seal.secret")).unwrap();
    let settings = format!(
        "database_url = {database:?}\njwt_secret_file = {secret:?}\nseal_keys = [\"dev:{seal}\"]\nroles = [\"api\"]\n"
    );
    fs::write(place.folder.join("wrkflw.toml"), settings).unwrap();
    assert_eq!(place.data(&["migrate"])["migrated"], true);
    let mut serve = place.start(&["serve", "--listen", "127.0.0.1:0"]);
    let url = format!("http://{}", text(&serve.facts, "/listen"));
    assert_eq!(
        place.data(&["instance", "show", &id, "--server", &url, "--token", &token])["id"],
        *id
    );
    assert_eq!(
        place.run(&["instance", "show", &id, "--server", &url]).code,
        3,
        "no token is made for another server"
    );
    assert_eq!(serve.stop(), Some(0));
    assert_eq!(dev.stop(), Some(0));
}
