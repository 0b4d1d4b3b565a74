//! Usability: ids by their beginning, filters, and messages with advice.

use std::fs;

use serde_json::Value;
use wrkflw::sample::DOCUMENT_APPROVAL;

use crate::program::{Ran, TestFolder, ran};

const TITLE: &str = r#"{"title":"Budget"}"#;

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

fn started(place: &TestFolder, entity: &str) -> String {
    let line =
        format!("instance start document-approval --entity {entity} --data {TITLE} --as author");
    text(&place.data(&line)["instance"]["id"])
}

/// Runs a command that must be refused with this exit code and all of these words.
fn refused(place: &TestFolder, line: &str, code: i32, words: &[&str]) {
    let ran = place.run(line);
    assert_eq!(ran.code, code, "{line}: {}", ran.stderr);
    for word in words {
        assert!(ran.stderr.contains(word), "{line}: {word}: {}", ran.stderr);
    }
}

/// The shortest beginning of an id that no other id of the test has.
fn beginning(id: &str) -> &str {
    &id[..30]
}

#[test]
fn every_id_can_be_abbreviated() {
    let place = TestFolder::new();
    let _dev = place.start("dev --empty --ephemeral --port 0");
    let instance = started(&place, "document/1");
    let url = "http://127.0.0.1:9/";
    let subscription = text(&place.data(&format!("subscription create {url}"))["id"]);
    let sent = text(&place.data(&format!("subscription test {subscription}"))["id"]);
    let short = beginning(&subscription);
    place.data(&format!(
        "subscription attempts {short} {}",
        beginning(&sent)
    ));
    place.data(&format!(
        "subscription discard {short} {} --reason late",
        beginning(&sent)
    ));

    let notified = place.until_listed("notification list --as reviewer");
    let notification = text(&notified[0]["id"]);
    let read = place.data(&format!(
        "notification read {} --as reviewer",
        beginning(&notification)
    ));
    assert_eq!(read["read"], notification.as_str());

    let away = "--substitute reviewer2 --from 2030-01-01T00:00:00Z --until 2030-01-02T00:00:00Z";
    let absence = text(&place.data(&format!("absence add reviewer {away}"))["absence"]["id"]);
    place.data(&format!("absence end reviewer {}", beginning(&absence)));

    let view = text(&place.data("saved-view save mine view=mine")["id"]);
    let replaced = place.data(&format!(
        "saved-view save yours view=all --replace {}",
        beginning(&view)
    ));
    assert_eq!(replaced["id"], view.as_str());
    place.data(&format!("saved-view delete {}", beginning(&view)));

    let task = text(&place.data("task list --view all")["data"][0]["id"]);
    let claimed = place.data(&format!(
        "task bulk claim {} --as reviewer",
        beginning(&task)
    ));
    assert_eq!(claimed["done"], 1);
    let about = "task bulk release --view mine --entity document";
    for (id, done) in [("2", 0), ("1", 1)] {
        let released = place.data(&format!("{about}/{id} --as reviewer"));
        assert_eq!(released["done"], done);
    }
    let both = format!("task bulk claim {task} --entity document/1 --as reviewer");
    refused(&place, &both, 2, &["`--view`"]);
    let parked = format!("dead-letter list --instance {}", beginning(&instance));
    refused(
        &place,
        &parked,
        4,
        &[&format!("no parked event of instance {instance}")],
    );
    let token = "embed-token author --origin https://documents.example --as product";
    refused(
        &place,
        &format!("{token} --instance abc"),
        2,
        &["abc is no id of an instance"],
    );

    let operation = text(&place.data("operation cancel document-approval 1 --reason late")["id"]);
    let shown = place.data(&format!("operation show {}", beginning(&operation)));
    assert_eq!(shown["id"], operation.as_str());
}

#[test]
fn a_wrong_id_or_beginning_has_the_same_message_everywhere() {
    let place = TestFolder::new();
    let _dev = place.start("dev --empty --ephemeral --port 0");
    let subscription = text(&place.data("subscription create http://127.0.0.1:9/")["id"]);
    for (line, kind, next) in [
        (
            "operation show abc",
            "an operation",
            "wrkflw operation list",
        ),
        (
            "notification read abc",
            "a notification of yours",
            "wrkflw notification list",
        ),
        (
            "session end abc",
            "a session of yours",
            "wrkflw session list",
        ),
        (
            "saved-view delete abc",
            "a saved view of yours",
            "wrkflw saved-view list",
        ),
        (
            "subscription show abc",
            "a subscription",
            "wrkflw subscription list",
        ),
        (
            "absence end reviewer abc",
            "an absence",
            "wrkflw absence list reviewer",
        ),
        (
            &format!("subscription attempts {subscription} abc"),
            "a delivery",
            &format!("wrkflw subscription deliveries {subscription}"),
        ),
        ("task show abc", "a task", "wrkflw task list --view all"),
        (
            "dead-letter retry abc --reason late",
            "an instance",
            "wrkflw instance list",
        ),
    ] {
        let no_id = format!(
            "abc is no id of {kind}: an id has 32 hexadecimal digits, and its first 4 or more are enough"
        );
        refused(&place, line, 2, &[&no_id, next]);
        let unknown = format!("ffffffff is the beginning of no id of {kind}");
        if !line.starts_with("task") && !line.starts_with("dead-letter") {
            refused(
                &place,
                &line.replace("abc", "ffffffff"),
                4,
                &[&unknown, next],
            );
        }
    }
}

#[test]
fn an_ambiguous_beginning_is_refused_and_signals_need_full_ids() {
    let place = TestFolder::new();
    let _dev = place.start("dev --empty --ephemeral --port 0");
    let save = |name: &str| text(&place.data(&format!("saved-view save {name} view=mine"))["id"]);
    let (one, other) = (save("one"), save("two"));
    refused(
        &place,
        "signal show abc",
        2,
        &["abc is no id of a signal", "all 32"],
    );
    let several = format!("saved-view delete {}", &one[..4]);
    refused(
        &place,
        &several,
        2,
        &["is ambiguous", &one, &other, "one", "two"],
    );
}

#[test]
fn attributes_are_filters_of_the_list() {
    let place = TestFolder::new();
    let _dev = place.start("dev --empty --ephemeral --port 0");
    started(&place, "document/1");
    // The sample declares no attribute, so the server lists the declared ones.
    let list = "instance list --attribute colour=red";
    refused(&place, list, 6, &["colour"]);
    refused(
        &place,
        &format!("{list} --attribute size=gt:3 --attribute"),
        2,
        &["--attribute"],
    );
    refused(
        &place,
        "instance list --attribute colour",
        2,
        &["NAME=VALUE"],
    );
}

#[test]
fn actions_that_move_an_instance_come_first_and_the_others_in_one_line() {
    let place = TestFolder::new();
    let _dev = place.start("dev --empty --ephemeral --port 0");
    started(&place, "document/1");
    let shown = place
        .run("instance actions document/1 --as reviewer")
        .stdout;
    let first: Vec<&str> = shown
        .lines()
        .map(|line| line.split_whitespace().next().unwrap_or_default())
        .collect();
    assert_eq!(
        first,
        ["ACTION", "claim", "decide", "decide", "also:"],
        "{shown}"
    );
    assert!(shown.ends_with("also:  comment\n"), "{shown}");
    let operator = place.run("instance actions document/1 --as admin").stdout;
    assert!(
        operator.ends_with("also:  reassign, suspend, comment, cancel\n"),
        "{operator}"
    );
    let all = place
        .run("instance actions document/1 --all --as reviewer")
        .stdout;
    assert!(
        all.contains("instance:cancel") && !all.contains("also"),
        "{all}"
    );
    let json = place.data("instance actions document/1 --as reviewer");
    assert!(
        json["actions"].as_array().is_some_and(|all| all.len() > 5),
        "{json}"
    );
}

#[test]
fn messages_name_their_subject_and_a_helpful_command() {
    let place = TestFolder::new();
    let _dev = place.start("dev --empty --ephemeral --port 0");
    let first = started(&place, "document/1");
    let start = "instance start document-approval --entity document/1 --as author --data";
    let next = format!("`wrkflw instance show {first}` shows it");
    refused(&place, &format!("{start} {TITLE}"), 5, &[&next]);
    refused(
        &place,
        &format!("{start} {{\"title\":"),
        6,
        &["--data is no JSON: line 1, column 9: the text ends here, and a value is expected"],
    );
    refused(
        &place,
        &format!("{start} []"),
        6,
        &["/data: this must be a JSON object"],
    );
    let version = "there is no definition version 99 of document-approval";
    for line in [
        "definition show document-approval 99",
        "definition activate document-approval 99",
        "instance migrate document/1 --to 99",
    ] {
        refused(&place, line, 4, &[version]);
    }
    let add = "group add";
    refused(
        &place,
        &format!("{add} nogroup nobody"),
        4,
        &["there is no group nogroup", "wrkflw group list"],
    );
    refused(
        &place,
        &format!("{add} reviewers nobody"),
        4,
        &["there is no person nobody", "wrkflw person list"],
    );

    let task = text(&place.data("task list --view all")["data"][0]["id"]);
    let claim = format!("task claim {task} --as");
    let show = format!("`wrkflw task show {task}`");
    refused(&place, &format!("{claim} author"), 3, &[&show]);
    let claimed = place.run(&format!("{claim} reviewer"));
    let outcomes = "OUTCOME, which is one of APPROVE, REJECT (needs /comment)";
    assert!(claimed.stderr.contains(outcomes), "{}", claimed.stderr);
    place.data("instance suspend document/1 --reason late");
    let resume = format!("`wrkflw instance resume {first}` lets it go on");
    refused(
        &place,
        &format!("task decide {task} APPROVE --as reviewer"),
        5,
        &[&resume],
    );
}

#[test]
fn a_published_version_that_is_not_activated_has_a_hint() {
    let place = TestFolder::new();
    let _dev = place.start("dev --empty --ephemeral --port 0");
    fs::write(place.folder.join("flow.wasm"), DOCUMENT_APPROVAL).expect("our own folder");
    fs::write(
        place.folder.join("config.json"),
        r#"{"reviewers":"authors"}"#,
    )
    .expect("our own folder");
    let publish = "definition publish flow.wasm --key document-approval --config config.json";
    place.data(publish);
    place.data("definition retire document-approval 2");
    let Ran {
        code,
        stdout,
        stderr,
    } = place.run(&format!("{publish} --activate"));
    assert_eq!(code, 5, "{stderr}");
    for words in [
        "version 2 of document-approval is published, but it was not activated",
        "`wrkflw definition reinstate document-approval 2` makes it usable again; then `wrkflw definition activate document-approval 2`",
    ] {
        assert!(stderr.contains(words), "{words}: {stderr}");
    }
    assert!(stdout.contains("version   2\n"), "{stdout}");
}

#[test]
fn no_row_of_a_table_has_json() {
    let place = TestFolder::new();
    let _dev = place.start("dev --empty --ephemeral --port 0");
    started(&place, "document/1");
    let task = text(&place.data("task list --view all")["data"][0]["id"]);
    place.data(&format!("task claim {task} --as reviewer"));
    place.data(&format!(
        "task delegate {task} --to reviewer2 --reason away --as reviewer"
    ));
    for line in [
        "audit list",
        "instance audit document/1",
        "events tail",
        "definition activate document-approval 1 --dry-run",
        &format!("task show {task}"),
        "definition show document-approval 1",
    ] {
        let shown = ran(place.command(line)).stdout;
        let rows = shown.lines().filter(|row| !row.ends_with("{}"));
        for row in rows {
            assert!(!row.contains("{\""), "{line}: {row}");
        }
    }
    let delegated = place.run(&format!("task show {task}")).stdout;
    assert!(
        delegated.contains("from reviewer, reason away, to reviewer2"),
        "{delegated}"
    );
}
