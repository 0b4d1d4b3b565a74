//! The flow `everything` returns each kind of answer of flow logic, in each language. All languages must give the same: the graph,
//! every answer and every refusal. `everything/told.json` has them. With `UPDATE=1`, the flow in Rust writes it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::program::TestFolder;

const TOLD: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/cli/languages/everything/told.json"
);
const FOLDER_IN_RUST: &str = "everything";
const IN_RUST: &str = include_str!("everything/flow.rs");
pub(super) const IN_TYPESCRIPT: &str = include_str!("everything/flow.ts");
pub(super) const IN_PYTHON: &str = include_str!("everything/flow.py");
pub(super) const IN_C: &str = include_str!("everything/flow.c");
const CALENDAR: &str =
    r#"{"timeZone":"UTC","hours":{"monday":[{"from":"09:00","until":"17:00"}]}}"#;

/// Publishes the component of this folder, makes every call, and compares the answers with those of the flow in Rust.
#[expect(
    clippy::disallowed_methods,
    reason = "a developer asks for the file by the environment"
)]
pub(super) fn tells_what_rust_tells(place: &TestFolder, key: &str) {
    let found = recorded(place, key);
    let updates = std::env::var("UPDATE").is_ok_and(|update| update == "1");
    if updates && key == FOLDER_IN_RUST {
        let text = serde_json::to_string_pretty(&found).expect("JSON");
        fs::write(TOLD, text + "\n").expect("our own file");
    }
    let expected = fs::read_to_string(TOLD).expect("our own file");
    let expected: Value = serde_json::from_str(&expected).expect("JSON");
    for part in ["refusals", "answers"] {
        let list = |all: &Value| all[part].as_array().cloned().unwrap_or_default();
        for (at, (found, expected)) in list(&found).iter().zip(&list(&expected)).enumerate() {
            assert_eq!(
                found.to_string(),
                expected.to_string(),
                "{key}: {part}, {at}"
            );
        }
    }
    assert_eq!(found, expected, "{key}");
}

#[test]
fn rust_gives_the_recorded_answers() {
    let place = TestFolder::new();
    let _dev = place.start("dev --empty --ephemeral --port 0");
    place.data(&format!("plugin new {FOLDER_IN_RUST} --language rust"));
    let folder = place.folder.join(FOLDER_IN_RUST);
    fs::write(folder.join("src/lib.rs"), IN_RUST).expect("our own folder");
    fs::write(folder.join("config.json"), "{}").expect("our own folder");
    place.data_in(&folder, "plugin build");
    tells_what_rust_tells(&place, FOLDER_IN_RUST);
    a_panic_names_its_function(&place, &folder.join("src/lib.rs"));
}

/// The component of the template contains the names of functions. The runtime of Rust reports an index out of range; the message
/// names the innermost function of the author.
fn a_panic_names_its_function(place: &TestFolder, source: &Path) {
    let guards = "fn guard(facts: &Facts<Self>, event: &Event<Self>) -> Verdict {";
    let failing =
        "        if event.trigger == More {\n            _ = seventh(&facts.data.name);\n        }";
    let function = "#[inline(never)]\nfn seventh(name: &str) -> u8 {\n    name.as_bytes()[7]\n}";
    let text = IN_RUST.replacen(guards, &format!("{guards}\n{failing}"), 1) + function;
    fs::write(source, text).expect("our own folder");
    place.data_in(FOLDER_IN_RUST, "plugin build");
    place.data_in(FOLDER_IN_RUST, "definition publish --activate --force");
    let data = r#"--data {"name":"x"} --as author"#;
    place.data(&format!(
        "instance start {FOLDER_IN_RUST} --entity case/panic {data}"
    ));
    let failed = place.run("instance signal case/panic MORE --as author");
    assert_eq!(failed.code, 8, "{}", failed.stderr);
    let named = format!("unreachable` instruction executed in {FOLDER_IN_RUST}::seventh at ");
    assert!(failed.stderr.contains(&named), "{}", failed.stderr);
}

fn recorded(place: &TestFolder, key: &str) -> Value {
    place.data(&format!("calendar set office {CALENDAR}"));
    // By force, because the host has no service `shop`.
    let published = place.data_in(key, "definition publish --activate --force");
    let version = &published["version"];
    let graph = place.data(&format!("definition show {key} {version}"))["graph"].clone();
    let refusals = [
        refusal(place, key, "author", "denied"),
        refusal(place, key, "author", "later"),
        refusal(place, key, "author", "invalid"),
        refusal(place, key, "author", "fault"),
        refusal(place, key, "reviewer", "x"),
    ];
    let about = format!("case/{key}");
    place.data(&format!(
        r#"instance start {key} --entity {about} --data {{"name":"x"}} --as author"#
    ));
    let signal = |trigger: &str, person: &str| {
        let input = r#"{"text":"Ä","list":[1,2.5,null]}"#;
        let line = format!("instance signal {about} {trigger} --input {input} --as {person}");
        super::answer(place, &line)
    };
    let decide = |label: &str, outcome: &str, person: &str| {
        let task = super::task(place, &about, Some(label), person);
        super::answer(
            place,
            &format!("task decide {task} {outcome} --as {person}"),
        )
    };
    let on_the_way = [
        signal("SHIFT", "reviewer"),
        signal("MORE", "reviewer"),
        decide("Each", "AGREE", "reviewer"),
    ];
    for trigger in ["SHIFT", "MORE", "AGAIN"] {
        signal(trigger, "author");
    }
    decide("Each", "AGREE --comment Yes.", "reviewer");
    decide("Each", r#"AGREE --input {"note":"1"}"#, "reviewer2");
    decide("Own", "FINISH", "author");
    let refusals = refusals.into_iter().chain(on_the_way);
    let mut ids = BTreeMap::new();
    let answers = answers(place, &about).into_iter();
    let answers = answers.map(|answer| comparable(answer, &mut ids));
    json!({
        "graph": graph,
        "refusals": refusals.collect::<Vec<_>>(),
        "answers": answers.collect::<Vec<_>>(),
    })
}

/// The answers of flow logic about this instance.
fn answers(place: &TestFolder, about: &str) -> Vec<Value> {
    let audit = place.data(&format!("instance audit {about} --limit 100 --as admin"));
    let entries = audit["data"].as_array().expect("a list").iter();
    let evaluations = entries.filter_map(|entry| entry["evidence"]["evaluations"].as_array());
    let answers = evaluations.flatten().map(|one| one["answer"].clone());
    answers.collect()
}

/// The source in TypeScript or Python without its `call`, so that the SDK's default applies.
pub(super) fn without_call(source: &str) -> Option<String> {
    let begin = source
        .find("  call: (")
        .or_else(|| source.find("    def call("))?;
    let end = begin + source[begin..].find("\n\n")? + "\n\n".len();
    Some(format!("{}{}", &source[..begin], &source[end..]))
}

/// The default service has the name of the state. It gets the text of the instance's data, because a JSON parser may have rounded
/// its numbers.
pub(super) fn asks_with_all_digits(place: &TestFolder, key: &str) {
    const AMOUNT: &str = r#""amount":12345678901234567890.5"#;
    place.data_in(key, "definition publish --activate --force");
    let about = format!("case/digits-{key}");
    place.data(&format!(
        r#"instance start {key} --entity {about} --data {{{AMOUNT},"name":"x"}} --as author"#
    ));
    let options = json!({ "service": "Order", "onReply": "ANSWERED", "onFailure": "UNANSWERED" });
    let options = options.as_object().expect("an object");
    let is_asked = |answer: &Value| {
        let works = answer["answer"]["Ok"].as_array().into_iter().flatten();
        let mut calls = works.map(|work| &work["is"]);
        calls.any(|call| {
            let request = call["request"].as_str();
            request.is_some_and(|text| text.contains(AMOUNT))
                && options.iter().all(|(name, value)| call[name] == *value)
        })
    };
    let answers = answers(place, &about);
    assert!(answers.iter().any(is_asked), "{key}: {answers:?}");
}

fn refusal(place: &TestFolder, key: &str, person: &str, name: &str) -> Value {
    let data = format!(r#"{{"name":"{name}"}}"#);
    let line = format!("instance start {key} --entity case/{name} --data {data} --as {person}");
    super::answer(place, &line)
}

/// The text without the differences between runs: ids become numbers in the order of their occurrence.
fn comparable(value: Value, ids: &mut BTreeMap<String, usize>) -> Value {
    match value {
        Value::String(text) if text.len() == 36 && text.matches('-').count() == 4 => {
            let next = ids.len();
            json!(format!("id {}", ids.entry(text).or_insert(next)))
        }
        // A text that is JSON itself, whose members have another order in each language.
        Value::String(text) if text.starts_with('{') => {
            let inner = serde_json::from_str(&text).expect("JSON");
            comparable(inner, ids)
        }
        Value::Array(list) => list.into_iter().map(|one| comparable(one, ids)).collect(),
        Value::Object(members) => {
            let members = members.into_iter();
            members
                .map(|(name, one)| (name, comparable(one, ids)))
                .collect()
        }
        other => other,
    }
}
