//! Flows in other languages than Rust, from an empty folder to running instances. `document-approval` in each language gives the
//! answers of the one in Rust, and an exception is a fault with its line. The flow `expense` also exists in Rust, written from the
//! documentation as its readers would.

mod everything;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use crate::program::{Ran, TestFolder, ran};

/// The flow in Rust, which `wrkflw dev` publishes.
const IN_RUST: &str = "document-approval";
/// The scenarios that the flow in Rust passes.
const SCENARIOS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../plugins/document-approval/scenarios"
);
const EXPENSES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/languages/expense");
/// The comment at which the flows of these tests fail. They get it without the blanks.
const FAILING: &str = "  boom ";

/// A flow in another language.
struct Sample {
    language: &'static str,
    file: &'static str,
    source: &'static str,
    /// The flow of `languages/expense`, which uses more of the SDK: a quorum, deadlines, signals, a patch.
    expense: &'static str,
    /// The flow of `languages/everything`, which uses all of the SDK.
    everything: &'static str,
    /// The text before `assign`, and a guard that is inserted before it and fails for a comment.
    before: &'static str,
    guard: &'static str,
    /// The fault's message before the source line.
    message: &'static str,
    /// Further comments for which the guard does something impossible, or reports what the SDK returns, and the fault's messages.
    impure: &'static [(&'static str, &'static str)],
    /// The beginning of `assign`, and its replacement: for some titles, it returns invalid answers.
    assign: (&'static str, &'static str),
    /// These titles, and the fault's messages.
    wrong: &'static [(&'static str, &'static str)],
}

const TS: Sample = Sample {
    language: "ts",
    file: "src/flow.ts",
    source: include_str!("../../../../plugins/document-approval/languages/flow.ts"),
    expense: include_str!("languages/expense/flow.ts"),
    everything: everything::IN_TYPESCRIPT,
    before: "  assign(",
    guard: "  guard(_facts, event) {\n    if (event.comment === \"clock\") Date.now();\n    if (event.comment === \"date\") new Date();\n    if (event.comment === \"random\") Math.random();\n    if (event.comment === \"decimal\") stay().attribute(\"n\", 1e-7).wire({ n: \"decimal\" });\n    if (event.comment === \"boom\")\n      throw new RangeError(\"It went boom.\");\n  },\n\n",
    message: "RangeError: It went boom.",
    impure: &[
        ("clock", "no clock"),
        ("date", "no clock"),
        ("random", "no randomness"),
        ("decimal", "as 1e-7: give a text"),
    ],
    assign: (
        "  assign({ config, initiator }, state) {\n",
        "  assign({ config, initiator, data }, state) {\n    if (data.title === \"priority\") return toUser(initiator, { priority: 300 });\n    if (data.title === \"after\") return toUser(initiator, { deadlines: [{ after: -5, then: \"remind\" }] });\n    if (data.title === \"at\") return toUser(initiator, { deadlines: [{ at: \"soon\", then: \"remind\" }] });\n    if (data.title === \"nothing\") return JSON.parse(\"null\");\n",
    ),
    wrong: &[
        ("priority", "a whole number from 0 to 255, not 300"),
        ("after", "a whole number from 0 to 4294967295, not -5"),
        ("at", "`at` is no time: soon."),
        ("nothing", "`assign` returns nothing."),
    ],
};

const JS: Sample = Sample {
    language: "js",
    file: "src/flow.js",
    source: include_str!("../../../../plugins/document-approval/languages/flow.js"),
    expense: "",
    everything: "",
    ..TS
};

const PYTHON: Sample = Sample {
    language: "python",
    file: "src/flow.py",
    source: include_str!("../../../../plugins/document-approval/languages/flow.py"),
    expense: include_str!("languages/expense/flow.py"),
    everything: everything::IN_PYTHON,
    before: "    def assign(",
    guard: "    def guard(self, facts, event):\n        if event.comment == \"boom\":\n            raise ValueError(\"It went boom.\")\n        if event.comment == \"decimal\":\n            from decimal import Decimal\n\n            from wrkflw import stay\n\n            plans = [stay().attribute(\"n\", one).wire({\"n\": \"decimal\"}) for one in (Decimal(\"1E+2\"), 1e-5)]\n            raise ValueError(\" \".join(one.attributes[0].value.value for one in plans))\n        if event.comment == \"types\":\n            from dataclasses import make_dataclass\n            from datetime import date\n            from typing import Any\n\n            from wrkflw.typed import check, read\n\n            loose = make_dataclass(\"Loose\", [(\"one\", Any), (\"more\", dict[str, Any]), (\"rest\", list[object])])\n            check(loose, \"The data\")\n            made = read(loose, {\"one\": 1, \"more\": {\"a\": None}, \"rest\": [\"b\"]}, \"/data\")\n            assert (made.one, made.more, made.rest) == (1, {\"a\": None}, [\"b\"])\n            check(make_dataclass(\"Bill\", [(\"due\", list[date | None])]), \"The data\")\n        if event.comment == \"people\":\n            event.not_by(\"reviewer\")\n\n",
    message: "ValueError: It went boom.",
    impure: &[
        ("decimal", "ValueError: 100 0.00001"),
        (
            "types",
            "TypeError: Bill.due is a date, which JSON cannot be",
        ),
    ],
    assign: (
        "    def assign(self, facts: Facts[Config, Document], state: str) -> Assignment:\n",
        "    def assign(self, facts: Facts[Config, Document], state: str) -> Assignment:\n        if facts.data.title == \"priority\":\n            return to_user(facts.initiator, priority=300)\n        if facts.data.title == \"needed\":\n            return to_user(facts.initiator, needed=2.5)\n        if facts.data.title == \"exclude\":\n            return to_user(facts.initiator, exclude=facts.initiator)\n        if facts.data.title == \"allocation\":\n            from wrkflw import Offer, user\n\n            return Assignment(offers=[Offer(to=[user(facts.initiator)], allocation=\"anyone\")])\n        if facts.data.title == \"nothing\":\n            return None\n        if facts.data.title == \"parse\":\n            import json\n\n            json.loads(\"{\")\n",
    ),
    wrong: &[
        ("priority", "a whole number from 0 to 255, not 300"),
        ("needed", "a whole number from 0 to 4294967295, not 2.5"),
        ("exclude", "`exclude` is a list, not the text author."),
        (
            "allocation",
            "no anyone: `allocation` is one of offered, round-robin, least-loaded.",
        ),
        ("nothing", "`assign` returns no Assignment, but None."),
        ("parse", "(char 1) (flow.py:"),
    ],
};

const C: Sample = Sample {
    language: "c",
    file: "src/flow.c",
    source: include_str!("../../../../plugins/document-approval/languages/flow.c"),
    expense: include_str!("languages/expense/flow.c"),
    everything: everything::IN_C,
    before: "const wf_flow_t",
    guard: "static void guard(const wf_facts_t *facts, const wf_event_t *event) {\n  (void)facts;\n  if (wf_is(wf_comment(event), \"boom\"))\n    WF_FAULT(\"It went boom.\");\n  bool read = wf_integer(wf_text(\"-5000.0\"), 1) == -5000 && wf_integer(wf_text(\"5e3\"), 1) == 5000 && wf_integer(wf_text(\"120E-1\"), 1) == 12;\n  read = read && wf_integer(wf_text(\"12345678901234567890\"), 1) == INT64_MAX && wf_integer(wf_text(\"-1e30\"), 1) == INT64_MIN;\n  read = read && wf_integer(wf_text(\"0e999\"), 1) == 0 && wf_integer(wf_text(\"1.5\"), 1) == 1 && wf_integer(wf_text(\"true\"), 1) == 1;\n  if (!read)\n    WF_FAULT(\"A number is misread.\");\n}\n\n",
    message: "It went boom.",
    impure: &[],
    assign: ("", ""),
    wrong: &[],
};

impl Sample {
    /// The source with the failing guard and the invalid answers, and the line number that fails.
    fn failing(&self) -> (String, usize) {
        let source = self
            .source
            .replacen(self.before, &format!("{}{}", self.guard, self.before), 1)
            .replace("  .graph = graph,", "  .graph = graph,\n  .guard = guard,")
            .replacen("import { flow,", "import { flow, stay,", 1)
            .replacen(self.assign.0, self.assign.1, 1);
        let fails = |line: &str| line.contains("It went boom.");
        let line = source.lines().position(fails).expect("the guard is there");
        (source, line + 1)
    }

    fn key(&self) -> String {
        format!("in-{}", self.language)
    }

    /// Creates a new folder and builds it.
    fn begin(&self, place: &TestFolder) {
        let key = self.key();
        place.data(&format!("plugin new {key} --language {}", self.language));
        let tested = place.run_in(&key, "plugin test --quiet");
        assert_eq!(
            (tested.code, tested.stderr.as_str()),
            (0, ""),
            "the template"
        );
        fs::write(place.folder.join(&key).join("config.json"), "{}").expect("our own folder");
    }

    /// Builds this source in the folder.
    fn write(&self, place: &TestFolder, source: &str) {
        let folder = place.folder.join(self.key());
        fs::write(folder.join(self.file), source).expect("our own folder");
        place.data_in(&folder, "plugin build");
    }

    /// Runs the scenarios, which must all pass. Returns their number.
    fn tested(&self, place: &TestFolder, scenarios: &str) -> u64 {
        let component = place.folder.join(self.key()).join("build").join(self.key());
        let component = component.with_extension("wasm");
        let line = format!(
            "plugin test --component {} {scenarios}",
            component.display()
        );
        let tested = place.data(&line);
        tested["scenarios"].as_u64().expect("a number")
    }

    fn file_name(&self) -> &str {
        let name = Path::new(self.file).file_name();
        name.and_then(|name| name.to_str()).expect("a name")
    }
}

/// The output of a command without ids and times.
fn answer(place: &TestFolder, line: &str) -> Value {
    let Ran {
        code,
        stdout,
        stderr,
    } = place.run(&format!("{line} --output json"));
    if code != 0 {
        let problem: Value =
            serde_json::from_str(&stderr).unwrap_or_else(|_| panic!("{line}: {stderr}"));
        return json!([code, problem["code"], problem["errors"], problem["reason"]]);
    }
    let answer: Value = serde_json::from_str(&stdout).expect("JSON");
    let instance = answer.get("instance").unwrap_or(&answer);
    let states = instance["states"].as_array().into_iter().flatten();
    let states = states.map(|state| {
        let tasks = state["tasks"].as_array().into_iter().flatten();
        let tasks = tasks.map(|task| json!([task["label"], task["status"], task["candidates"]]));
        let due = state["dueAt"].is_string();
        let (needed, priority) = (&state["needed"], &state["priority"]);
        json!([
            state["name"],
            needed,
            priority,
            due,
            tasks.collect::<Vec<_>>()
        ])
    });
    let events = answer["events"].as_array().into_iter().flatten();
    let events = events.map(|event| json!([event["type"], event["data"]["notes"]]));
    let whole = [
        "status",
        "outcome",
        "title",
        "summary",
        "data",
        "attributes",
    ];
    let whole = whole.map(|member| &instance[member]);
    json!([
        whole,
        states.collect::<Vec<_>>(),
        events.collect::<Vec<_>>()
    ])
}

/// The id of the only open task about this entity that the person may work on; among several, the one with this label.
fn task(place: &TestFolder, about: &str, label: Option<&str>, person: &str) -> String {
    let line = format!("task list --view available --entity {about} --as {person}");
    let listed = place.data(&line);
    let tasks = listed["data"].as_array().expect("a list");
    let is_meant = |task: &&Value| label.is_none_or(|label| task["label"] == label);
    let found = tasks.iter().find(is_meant);
    let found = found.unwrap_or_else(|| panic!("no {label:?} for {person}: {listed}"));
    found["id"].as_str().expect("an id").to_owned()
}

/// Runs the same commands with a flow, and returns their outputs.
fn transcript(place: &TestFolder, key: &str) -> Vec<(&'static str, Value)> {
    let start = |data: &str, person: &str| {
        answer(
            place,
            &format!("instance start {key} --entity document/{key} --data {data} --as {person}"),
        )
    };
    let decide = |outcome: &str, rest: &str, person: &str| {
        let id = task(place, &format!("document/{key}"), None, person);
        answer(
            place,
            &format!("task decide {id} {outcome} {rest} --as {person}"),
        )
    };
    let mut answers = vec![
        (
            "not everybody starts",
            start(r#"{"title":"Budget"}"#, "outsider"),
        ),
        ("a title is needed", start("{}", "author")),
        ("an author starts", start(r#"{"title":"Budget"}"#, "author")),
        ("a rejection says why", decide("REJECT", "", "reviewer")),
        (
            "it goes back",
            decide("REJECT", "--comment Why?", "reviewer"),
        ),
        ("it comes again", decide("SUBMIT", "", "author")),
        ("a reviewer approves", decide("APPROVE", "", "reviewer")),
        (
            "an approver rejects",
            decide("REJECT", "--comment No.", "approver"),
        ),
        ("it is given up", decide("ABANDON", "", "author")),
    ];
    let graph = place.data(&format!("definition show {key}"));
    answers.push(("the graph", graph["graph"].clone()));
    answers
}

/// A wrong answer is a fault with a message.
fn refuses_wrong_answers(place: &TestFolder, sample: &Sample) {
    let key = sample.key();
    for (title, words) in sample.wrong {
        let line = format!(
            r#"instance start {key} --entity document/{title}-{key} --data {{"title":"{title}"}} --as author"#
        );
        let failed = place.run(&line);
        assert_eq!(failed.code, 8, "{key}, {title}: {}", failed.stderr);
        assert!(failed.stderr.contains(words), "{key}: {}", failed.stderr);
    }
}

/// A package that is added after the first build is installed by the next build. Until then, the component is too old to be
/// published.
fn takes_an_added_package(place: &TestFolder, sample: &Sample) {
    let folder = place.folder.join(sample.key());
    let write =
        |file: &str, text: &str| fs::write(folder.join(file), text).expect("our own folder");
    fs::create_dir(folder.join("extra")).expect("our own folder");
    write(
        "extra/package.json",
        r#"{"name":"extra","version":"1.0.0"}"#,
    );
    write("extra/index.js", "export const one = 1;\n");
    let named = fs::read_to_string(folder.join("package.json")).expect("our own folder");
    let (of_sdk, added) = (r#""wrkflw": "#, r#""extra": "file:extra", "wrkflw": "#);
    write("package.json", &named.replacen(of_sdk, added, 1));
    let refused = place.run_in(sample.key(), "definition publish");
    assert_eq!(refused.code, 5, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("is older than package.json"),
        "{}",
        refused.stderr
    );
    let source = format!("import {{ one }} from \"extra\";\n{}", sample.source);
    sample.write(place, &source.replacen("title: \"", "title: one + \"", 1));
}

/// Publishes a flow and compares it with the one in Rust.
fn is_as_in_rust(samples: &[&Sample]) {
    let place = TestFolder::new();
    let _dev = place.start("dev --empty --ephemeral --port 0");
    let in_rust = transcript(&place, IN_RUST);
    for sample in samples {
        let key = sample.key();
        sample.begin(&place);
        sample.write(&place, &sample.failing().0);
        let published = place.data_in(&key, "definition publish --activate");
        assert_eq!(published["active"], true, "{published}");
        assert!(sample.tested(&place, SCENARIOS) > 2);
        for (ours, other) in in_rust.iter().zip(transcript(&place, &key)) {
            assert_eq!(*ours, other, "{key}");
        }
        let start = format!(
            r#"instance start {key} --entity document/failing-{key} --data {{"title":"x"}} --as author"#
        );
        place.data(&start);
        let id = task(&place, &format!("document/failing-{key}"), None, "reviewer");
        let mut failing = place.command(&format!("task decide {id} APPROVE --as reviewer"));
        failing.args(["--comment", FAILING]);
        let failed = ran(failing);
        assert_eq!(failed.code, 8, "{}", failed.stderr);
        let place_of_fault = format!("{}:{})", sample.file_name(), sample.failing().1);
        for words in [sample.message, &place_of_fault] {
            assert!(
                failed.stderr.contains(words),
                "{key}: no {words} in {}",
                failed.stderr
            );
        }
        for (comment, words) in sample.impure {
            let failed = place.run(&format!(
                "task decide {id} APPROVE --comment {comment} --as reviewer"
            ));
            assert_eq!(failed.code, 8, "{key}, {comment}: {}", failed.stderr);
            assert!(failed.stderr.contains(words), "{key}: {}", failed.stderr);
        }
        refuses_wrong_answers(&place, sample);
        if sample.language == JS.language {
            takes_an_added_package(&place, sample);
        }
        if !sample.expense.is_empty() {
            sample.write(&place, sample.expense);
            assert_eq!(sample.tested(&place, EXPENSES), 4);
        }
        if !sample.everything.is_empty() {
            sample.write(&place, sample.everything);
            everything::tells_what_rust_tells(&place, &key);
        }
        if let Some(source) = everything::without_call(sample.everything) {
            sample.write(&place, &source);
            everything::asks_with_all_digits(&place, &key);
        }
    }
}

#[test]
fn typescript_and_javascript_answer_like_rust() {
    is_as_in_rust(&[&TS, &JS]);
}

#[test]
fn python_does_what_rust_does() {
    is_as_in_rust(&[&PYTHON]);
}

#[test]
fn c_does_what_rust_does() {
    is_as_in_rust(&[&C]);
}

#[test]
fn c_refuses_wrong_settings_within_an_object() {
    let place = TestFolder::new();
    C.begin(&place);
    let of_config = r#".config = "{"#;
    let nested = r#".config = "{\"limits\": {\"most\": 1, \"any\": {}}, "#;
    C.write(&place, &C.source.replacen(of_config, nested, 1));
    let config = r#"{"limits":{"most":"x","other":1,"any":{"b":2}}}"#;
    let folder = place.folder.join(C.key());
    fs::write(folder.join("config.json"), config).expect("our own folder");
    let refused = place.run_in(&folder, "plugin check");
    assert_ne!(refused.code, 0, "{}", refused.stderr);
    let has = |words: &str| refused.stderr.contains(words);
    assert!(
        has("/limits/most") && has("/limits/other") && !has("/limits/any"),
        "{}",
        refused.stderr
    );
}

#[test]
fn rust_passes_the_scenarios_of_the_other_languages() {
    let place = TestFolder::new();
    place.data("plugin new in-rust --language rust");
    let folder = place.folder.join("in-rust");
    let expense = include_str!("languages/expense/flow.rs");
    for flow in [expense, TS.expense] {
        assert!(
            flow.lines().count() < 150,
            "short enough to be read at once"
        );
    }
    fs::write(folder.join("src/lib.rs"), expense).expect("our own folder");
    fs::write(folder.join("config.json"), "{}").expect("our own folder");
    fs::remove_dir_all(folder.join("scenarios")).expect("our own folder");
    symlink(EXPENSES, folder.join("scenarios")).expect("our own folder");
    // The scenarios are named. Otherwise the command would run native tests, which this flow does not have.
    let tested = place.data_in(&folder, "plugin test scenarios");
    assert_eq!(tested["scenarios"], 4);
}

#[test]
fn a_missing_tool_is_named_with_its_installation() {
    let place = TestFolder::new();
    for (language, program, package) in [
        ("ts", "npm", "nodejs"),
        ("python", "python3", "python3-venv"),
        ("c", "clang", "lld"),
    ] {
        place.data(&format!("plugin new in-{language} --language {language}"));
        let mut command = place.command("plugin build");
        command.current_dir(place.folder.join(format!("in-{language}")));
        command.env("PATH", place.folder.join("empty"));
        let refused = crate::program::ran(command);
        assert_eq!(refused.code, 1, "{}", refused.stderr);
        for words in [program, package] {
            assert!(refused.stderr.contains(words), "{}", refused.stderr);
        }
    }
}

#[test]
fn an_invalid_manifest_is_refused_and_not_taken_for_rust() {
    let place = TestFolder::new();
    fs::write(
        place.folder.join("flow.toml"),
        "name = \"x\"\nlanguage = \"cobol\"\n",
    )
    .expect("our own folder");
    let refused = place.run("plugin build");
    assert_eq!(refused.code, 6, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("cobol") && refused.stderr.contains("next: "),
        "{}",
        refused.stderr
    );
}
