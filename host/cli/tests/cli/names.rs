//! How people name things: a part of an id, an entity, or the name of a `wrkflw dev`; and the messages for insufficient names.

use std::fs;

use serde_json::{Value, json};
use wrkflw::sample::DOCUMENT_APPROVAL;

use crate::program::{TestFolder, ran};

fn started(place: &TestFolder, entity: &str) -> Value {
    place.data(&format!(
        r#"instance start document-approval --entity {entity} --data {{"title":"Budget"}} --as author"#
    ))["instance"]
        .clone()
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

#[test]
fn an_instance_is_named_by_a_part_of_its_id_or_by_its_entity_and_a_task_by_a_part() {
    let place = TestFolder::new();
    let _dev = place.start("dev --empty --ephemeral --port 0");
    let first = started(&place, "document/1");
    let (id, task) = (
        text(&first["id"]),
        text(&first["states"][0]["tasks"][0]["id"]),
    );
    let shown = |named: &str| text(&place.data(&format!("instance show {named}"))["id"]);
    for named in [
        "document/1",
        &id,
        &id[..30],
        &id[..23].replace('-', "").to_uppercase(),
    ] {
        assert_eq!(shown(named), id, "{named}");
    }
    let claimed = place.data(&format!("--as reviewer task claim {}", &task[..30]));
    assert_eq!(claimed["task"]["owner"], "reviewer");
    let nobody = place.run("task list --as reviwer");
    assert_eq!((nobody.code, nobody.stdout.as_str()), (2, ""));
    assert!(
        nobody.stderr.contains("--as reviwer") && nobody.stderr.contains("wrkflw person list"),
        "{}",
        nobody.stderr
    );

    let second = text(&started(&place, "document/2")["id"]);
    let ambiguous = place.run(&format!("instance show {}", &id[..4]));
    assert_eq!(ambiguous.code, 2, "{}", ambiguous.stderr);
    for part in ["is ambiguous", &id, &second, "document/2"] {
        assert!(
            ambiguous.stderr.contains(part),
            "{part}: {}",
            ambiguous.stderr
        );
    }
    place.data("instance cancel document/1 --reason late --as admin");
    let restarted = text(&place.data("instance restart document/1 --as author")["instance"]["id"]);
    assert_eq!(shown("document/1"), restarted, "the one that runs");
    place.data("instance cancel document/1 --reason late --as admin");
    let both = place.run("instance show document/1");
    assert_eq!(both.code, 2, "{}", both.stderr);
    assert!(both.stderr.contains(&id) && both.stderr.contains(&restarted));

    for (line, code, words) in [
        ("instance show abc", 2, "abc is no id of an instance"),
        ("instance show abc", 2, "TYPE/ID, such as document/9"),
        ("task claim document/9", 2, "document/9 is no id of a task"),
        (
            "instance show document/77",
            4,
            "there is no instance about document/77",
        ),
        ("instance show ffffffff", 4, "[not_found]"),
        (&format!("instance show {}", &task[..36]), 4, "[not_found]"),
        (
            &format!("instance show {}", &task[..35]),
            4,
            "the beginning of no id of an instance",
        ),
    ] {
        let ran = place.run(line);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (code, ""),
            "{line}: {}",
            ran.stderr
        );
        assert!(ran.stderr.contains(words), "{line}: {}", ran.stderr);
    }
}

/// Another flow was run about the same document more often than the number of instances that are searched. Neither flow is sole
/// per entity.
#[test]
fn the_running_instance_is_found_among_many_ended_ones() {
    let place = TestFolder::new();
    let _dev = place.start("dev --empty --ephemeral --port 0");
    fs::write(place.folder.join("flow.wasm"), DOCUMENT_APPROVAL).expect("our own folder");
    fs::write(place.folder.join("config.json"), "{}").expect("our own folder");
    place.data("definition publish flow.wasm --key another --config config.json --activate");
    let id = text(&started(&place, "document/1")["id"]);
    let start =
        r#"instance start another --entity document/1 --data {"title":"Budget"} --as author"#;
    for _ in 0..11 {
        let tried = text(&place.data(start)["instance"]["id"]);
        place.data(&format!("instance cancel {tried} --reason late --as admin"));
    }
    let shown = || place.data("instance show document/1");
    assert_eq!(shown()["id"], id);
    place.data("instance suspend document/1 --reason question --as admin");
    assert_eq!(
        (&shown()["id"], &shown()["status"]),
        (&json!(id), &json!("SUSPENDED"))
    );
    place.data("instance cancel document/1 --reason late --as admin");
    let ended = place.run("instance show document/1");
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("is ambiguous"), "{}", ended.stderr);
}

#[test]
fn a_start_without_eligible_people_says_so() {
    let place = TestFolder::new();
    let _dev = place.start("dev --empty --ephemeral --port 0");
    fs::write(place.folder.join("flow.wasm"), DOCUMENT_APPROVAL).expect("our own folder");
    let config = json!({ "reviewers": "moon-people" }).to_string();
    fs::write(place.folder.join("config.json"), config).expect("our own folder");
    place.data("definition publish flow.wasm --key document-approval --config config.json --activate --force");
    let start = r#"instance start document-approval --entity document/1 --data {"title":"Budget"} --as author"#;
    let ran = place.run(start);
    assert!(
        ran.stderr.contains(": too few people may do this"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("wrkflw instance eligibility "),
        "{}",
        ran.stderr
    );
    let eligibility = place.run("instance eligibility document/1");
    assert!(
        eligibility.stdout.contains("(nobody)"),
        "{}",
        eligibility.stdout
    );
}

#[test]
fn the_folder_or_the_name_selects_one_of_several_dev_servers() {
    let place = TestFolder::new();
    let folder = |name: &str| {
        fs::create_dir_all(place.folder.join(name)).expect("our own folder");
        name.to_owned()
    };
    let start = |name: &str, options: &str| {
        let mut command = place.command(&format!(
            "dev --empty --port 0 --ephemeral --output json{options}"
        ));
        command.current_dir(place.folder.join(folder(name)));
        place.start_command(command)
    };
    let mut first = start("one", "");
    let mut second = start("two", " --name other");
    assert_eq!(
        (&first.facts["name"], &second.facts["name"]),
        (&json!("one"), &json!("other"))
    );
    let names = |from: &str| -> Vec<String> {
        let listed = place.data_in(folder(from), "dev --list");
        listed["data"]
            .as_array()
            .expect("data")
            .iter()
            .map(|one| text(&one["name"]))
            .collect()
    };
    assert_eq!(names("one"), ["one", "other"]);
    assert_eq!(names("two"), ["other", "one"]);

    let start = r#"instance start document-approval --entity document/1 --data {"title":"Budget"} --as author"#;
    place.data_in("one", start);
    let count = |from: &str, options: &str| {
        let listed = place.run_in(
            folder(from),
            &format!("instance list --output json {options}"),
        );
        let page: Value = serde_json::from_str(&listed.stdout).expect("JSON");
        assert_eq!(listed.stderr, "", "{from} {options}");
        page["data"].as_array().map(Vec::len)
    };
    assert_eq!(count("one", ""), Some(1));
    assert_eq!(count("one/deeper", ""), Some(1));
    assert_eq!(count("two", ""), Some(0));
    assert_eq!(count("two", "--dev one"), Some(1));
    assert_eq!(count("elsewhere", "--dev one"), Some(1));
    let by_url = format!("--server {} --as author", text(&first.facts["url"]));
    assert_eq!(count("elsewhere", &by_url), Some(1), "signed by its secret");
    none_is_guessed(&place, start);
    names_are_unique(&place);

    assert_eq!(second.stop(), Some(0));
    let alone = place.run_in("elsewhere", "instance list --output json");
    let page: Value = serde_json::from_str(&alone.stdout).expect("JSON");
    assert_eq!(
        page["data"].as_array().map(Vec::len),
        Some(1),
        "one is left"
    );
    assert!(
        alone.stderr.starts_with("of the `wrkflw dev` one in /"),
        "{}",
        alone.stderr
    );
    assert_eq!(count("elsewhere", "-q"), Some(1), "without a message");
    first.kill();
    assert_eq!(names("one"), [""; 0]);
}

/// With `one` and `other` running, in a folder of neither.
fn none_is_guessed(place: &TestFolder, start: &str) {
    fs::write(place.folder.join("elsewhere/flow.wasm"), DOCUMENT_APPROVAL).expect("our own");
    for line in [
        "instance list",
        "token author",
        "audit keys",
        "demo",
        "definition publish flow.wasm --key other --activate",
        start,
    ] {
        let guess = place.run_in("elsewhere", line);
        assert_eq!((guess.code, guess.stdout.as_str()), (2, ""), "{line}");
        for part in ["several", "\n  one  http", "\n  other  http", "--dev NAME"] {
            assert!(
                guess.stderr.contains(part),
                "{line}: {part}: {}",
                guess.stderr
            );
        }
    }
    let token = place.run_in("elsewhere", "token author --dev one -q");
    assert_eq!((token.code, token.stderr.as_str()), (0, ""));

    let mut of_a_host = place.command("doctor --json");
    of_a_host
        .current_dir(place.folder.join("elsewhere"))
        .env("WRKFLW_DATABASE_URL", "postgres://127.0.0.1:1/nothing");
    let found: Value = serde_json::from_str(&ran(of_a_host).stdout).expect("findings");
    let (dev, verdict) = (
        text(&found["data"][0]["detail"]),
        &found["data"][0]["verdict"],
    );
    assert!(dev.starts_with("several") && verdict == "warn", "{found}");
}

/// With `one` and `other` running.
fn names_are_unique(place: &TestFolder) {
    let unknown = place.run("instance list --dev nobody");
    assert_eq!(unknown.code, 7, "{}", unknown.stderr);
    assert!(
        unknown.stderr.contains("\n  other  http://"),
        "{}",
        unknown.stderr
    );
    let taken = place.run("dev --name one --ephemeral --port 0");
    assert_eq!(taken.code, 5, "{}", taken.stderr);
    assert!(
        taken.stderr.contains("runs already, in "),
        "{}",
        taken.stderr
    );
}

#[test]
fn every_shell_has_a_completion_script_and_every_command_a_man_page() {
    let place = TestFolder::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = place.run(&format!("completions {shell}"));
        assert_eq!(script.code, 0, "{shell}: {}", script.stderr);
        assert!(script.stdout.contains("eligibility"), "{shell}");
    }
    assert!(place.run("man").stdout.contains(".TH"));
    let pages = place.data("man --out pages")["pages"]
        .as_u64()
        .expect("a number");
    let written = fs::read_dir(place.folder.join("pages"))
        .expect("the folder")
        .count();
    assert_eq!(usize::try_from(pages), Ok(written));
    let page = fs::read_to_string(place.folder.join("pages/wrkflw-task-claim.1")).expect("a page");
    assert!(page.contains("wrkflw task claim"), "{page}");
}
