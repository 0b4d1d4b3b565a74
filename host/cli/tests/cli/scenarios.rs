//! Scenarios on the command line: run with a component, generated from a recorded instance, and run again after every change.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Instant;
use std::{fs, thread};

use serde_json::Value;

use crate::program::{LOOK_MAX, TestFolder};

/// A folder with the component of the sample flow.
fn with_sample() -> TestFolder {
    let place = TestFolder::new();
    let file = place.folder.join("sample.wasm");
    fs::write(file, wrkflw::sample::DOCUMENT_APPROVAL).expect("our own folder");
    place
}

fn repository() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    folder.expect("the workspace").to_owned()
}

fn text(value: &Value, pointer: &str) -> String {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found
        .unwrap_or_else(|| panic!("{pointer}: {value}"))
        .to_owned()
}

#[test]
fn scenarios_need_only_a_component() {
    let place = with_sample();
    let all = repository().join("plugins/document-approval/scenarios");
    let ran = place.run(&format!(
        "plugin test --component sample.wasm {}",
        all.display()
    ));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("passed  ").count(), 3, "{}", ran.stderr);
    let quiet = place.run(&format!(
        "plugin test -q --component sample.wasm {}",
        all.display()
    ));
    assert_eq!((quiet.code, quiet.stderr.as_str()), (0, ""));
    let wrong = "groups: { authors: [ann] }\nsteps:\n  - start: { title: A }\n    by: ann\n    expect: { states: Approved }\n";
    fs::write(place.folder.join("wrong.yaml"), wrong).expect("our own folder");
    fs::write(place.folder.join("bad.yaml"), "steps:\n  - stat: {}\n").expect("our own folder");
    for file in ["config.yaml", "again.yaml"] {
        let refused = "config: { reviewer: x }\nsteps:\n  - wait: 1h\n";
        fs::write(place.folder.join(file), refused).expect("our own folder");
    }
    let ran = place
        .run("plugin test -q --component sample.wasm wrong.yaml bad.yaml config.yaml again.yaml");
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    for words in [
        "4 failed, 0 passed",
        "wrong.yaml:3: step 1, start by ann",
        r#"states: expected "Approved", got ["Submitted"]"#,
        "bad.yaml:2: /steps/0/stat: this is not expected here",
        "config.yaml: the component cannot be published",
        "again.yaml: the same",
        "/reviewer",
    ] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
    // A wrong config for all scenarios is reported with its file.
    fs::write(place.folder.join("settings.json"), r#"{ "reviewer": "x" }"#)
        .expect("our own folder");
    fs::write(place.folder.join("plain.yaml"), "steps:\n  - wait: 1h\n").expect("our own folder");
    let ran = place.run("plugin test -q --component sample.wasm --config settings.json plain.yaml");
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("settings.json: /reviewer: unknown field"),
        "{}",
        ran.stderr
    );
    let schema = place.run("plugin schema").stdout;
    serde_json::from_str::<Value>(&schema).expect("a JSON Schema");
}

#[test]
fn an_unreadable_scenario_fails_alone() {
    let place = with_sample();
    let wait = "steps:\n  - wait: 1h\n";
    for (file, text) in [
        ("bad.json", "{".to_owned()),
        ("first.yaml", format!("config: bad.json\n{wait}")),
        ("second.yaml", format!("config: none.json\n{wait}")),
        ("last.yaml", wait.to_owned()),
    ] {
        fs::write(place.folder.join(file), text).expect("our own folder");
    }
    let ran =
        place.run("plugin test --component sample.wasm first.yaml second.yaml none.yaml last.yaml");
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    for words in [
        "3 failed, 1 passed",
        "first.yaml: bad.json has",
        "second.yaml: cannot read none.json",
        "none.yaml: cannot be read",
        "passed  last.yaml",
    ] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
}

#[test]
fn a_test_that_would_leave_something_out_is_refused() {
    let place = with_sample();
    let wait = "steps:\n  - wait: 1h\n";
    fs::create_dir(place.folder.join("empty")).expect("our own folder");
    fs::create_dir(place.folder.join("flow")).expect("our own folder");
    fs::write(place.folder.join("empty/scenario.yamll"), wait).expect("our own folder");
    fs::write(place.folder.join("plain.yaml"), wait).expect("our own folder");
    let manifest = "name = \"my-flow\"\nlanguage = \"ts\"\n";
    fs::write(place.folder.join("flow/flow.toml"), manifest).expect("our own folder");
    let component = "plugin test --component ../sample.wasm";
    for (line, code, words) in [
        (component.to_owned(), 2, "--component needs scenarios"),
        (
            format!("{component} ../plain.yaml ../empty"),
            4,
            "empty has no scenario",
        ),
        (
            format!("{component} ../plain.yaml -- --nocapture"),
            2,
            "`cargo test`",
        ),
        ("plugin test -- --nocapture".to_owned(), 2, "`cargo test`"),
    ] {
        let refused = place.run_in("flow", &line);
        assert_eq!(refused.code, code, "{line}: {}", refused.stderr);
        assert!(refused.stderr.contains(words), "{line}: {}", refused.stderr);
    }
}

#[test]
fn a_recorded_instance_becomes_a_passing_scenario() {
    let place = with_sample();
    let _dev = place.start("dev --empty --ephemeral --port 0");
    let started = place.data(
        r#"instance start document-approval --entity document/secret --data {"title":"Redundancies"} --as author"#,
    );
    let (id, task) = (
        text(&started, "/instance/id"),
        text(&started, "/instance/states/0/tasks/0/id"),
    );
    place.data(&format!("task claim {task} --as reviewer"));
    place.data(&format!(
        "task delegate {task} --to reviewer2 --reason Please --as reviewer"
    ));
    place.data(&format!("task resolve {task} --as reviewer2"));
    place.data(&format!(
        "task suspend {task} --reason question --as reviewer"
    ));
    place.data(&format!("task resume {task} --as reviewer"));
    place.data(&format!(
        "task reassign {task} --to reviewer2 --reason late --as admin"
    ));
    place.data(&format!("task reset {task} --reason ill --as admin"));
    place.data(&format!("instance suspend {id} --reason audit --as admin"));
    place.data(&format!("instance resume {id} --as admin"));
    place.data(&format!(
        "task decide {task} REJECT --comment Confidential --as reviewer"
    ));
    let shown = place.data(&format!("instance show {id}"));
    let rework = text(&shown, "/states/0/tasks/0/id");
    place.data(&format!("task decide {rework} ABANDON --as author"));

    let refused = place.run(&format!("instance export {id} --scenario --as outsider"));
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    let exported = place.run(&format!("instance export {id} --scenario -o made.yaml"));
    assert!(
        exported.code == 0 && exported.stderr.contains("kept: times"),
        "{}",
        exported.stderr
    );
    let yaml = fs::read_to_string(place.folder.join("made.yaml")).expect("the scenario");
    for secret in [
        "Redundancies",
        "secret",
        "Confidential",
        "author ",
        "reviewer2",
        "outsider",
    ] {
        assert!(!yaml.contains(secret), "{secret}: {yaml}");
    }
    let ran = place.run("plugin test --component sample.wasm made.yaml");
    assert_eq!(ran.code, 0, "{}{yaml}", ran.stderr);

    fs::write(
        place.folder.join("rules.yaml"),
        "keep: [/title, people, comments]\n",
    )
    .expect("our own folder");
    let kept = place.run(&format!(
        "instance export {id} --scenario --redact rules.yaml"
    ));
    let has = |words: &str| kept.stdout.contains(words);
    assert!(
        has("Redundancies") && has("by: reviewer\n") && has("Confidential"),
        "{}",
        kept.stdout
    );
    assert!(!has("document/secret"), "{}", kept.stdout);
}

/// In the folder of a new flow that `dev` runs: an instance becomes a scenario, which fails with the next version of the flow.
pub(crate) fn of_a_changed_flow(place: &TestFolder, flow: &str) {
    let started = place.data(&format!(
        r#"instance start {flow} --entity desk/7 --data {{"subject":"Chair"}} --as author"#
    ));
    let (id, task) = (
        text(&started, "/instance/id"),
        text(&started, "/instance/states/0/tasks/0/id"),
    );
    place.data(&format!("task claim {task} --as reviewer"));
    place.data(&format!(
        "task decide {task} RETURN --comment Which? --as reviewer"
    ));
    let shown = place.data(&format!("instance show {id}"));
    let rework = text(&shown, "/states/0/tasks/0/id");
    place.data(&format!("task decide {rework} SUBMIT --as author"));
    place.data(&format!(
        "instance export {id} --scenario -o {flow}/scenarios/recorded.yaml"
    ));
    let passes = place.run_in(flow, "plugin test scenarios");
    assert_eq!(passes.code, 0, "{}", passes.stderr);
    change(
        place,
        flow,
        ".on(Trigger::Submit, State::Review)",
        ".on(Trigger::Submit, State::Accepted)",
    );
    let fails = place.run_in(flow, "plugin test scenarios/recorded.yaml");
    assert_eq!(fails.code, 1, "{}", fails.stderr);
    for words in [
        "step 4, decide SUBMIT",
        r#"states: expected "Review", got []"#,
    ] {
        assert!(fails.stderr.contains(words), "{words}: {}", fails.stderr);
    }
    change(
        place,
        flow,
        ".on(Trigger::Submit, State::Accepted)",
        ".on(Trigger::Submit, State::Review)",
    );
}

/// In the same folder: saved changes are published, unless a step fails.
pub(crate) fn watched(place: &TestFolder, flow: &str) {
    let mut command = place.command("plugin watch");
    command.current_dir(place.folder.join(flow));
    let watch = Watch::start(command);
    watch.until("waiting for changes");
    change(place, flow, "\"Review\"", "\"Second look\"");
    watch.until("FAILED  scenarios");
    watch.until("waiting for changes");
    change(place, flow, "\"Second look\"", "\"Review\"");
    // Published again, or already active.
    watch.until("activ");
    watch.until("waiting for changes");
    change(
        place,
        flow,
        ".terminal(State::Withdrawn, \"WITHDRAWN\")",
        ".terminal(State::Withdrawn, \"TAKEN_BACK\")",
    );
    watch.until("published and activated");
    watch.until("waiting for changes");
    let shown = place.data(&format!("definition show {flow}"));
    assert!(shown.to_string().contains("TAKEN_BACK"), "{shown}");
}

/// Replaces a text in the source of the flow.
pub(crate) fn change(place: &TestFolder, flow: &str, from: &str, to: &str) {
    let path = place.folder.join(flow).join("src/lib.rs");
    let source = fs::read_to_string(&path).expect("the source");
    assert!(source.contains(from), "{from}");
    fs::write(path, source.replacen(from, to, 1)).expect("our own folder");
}

/// A `plugin watch` in the background.
struct Watch {
    child: Child,
    /// The lines that it prints.
    lines: Receiver<String>,
}

impl Watch {
    fn start(mut command: Command) -> Watch {
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let printed = BufReader::new(child.stderr.take().expect("a pipe"));
        let (sender, lines) = mpsc::channel();
        // It ends with the output, or with the receiver.
        thread::spawn(move || {
            let mut lines = printed.lines().map_while(Result::ok);
            lines.all(|line| sender.send(line).is_ok())
        });
        Watch { child, lines }
    }

    /// Waits for a line with these words. Each line is taken once.
    fn until(&self, words: &str) {
        let (begun, mut printed) = (Instant::now(), String::new());
        loop {
            let left = LOOK_MAX.saturating_sub(begun.elapsed());
            let Ok(line) = self.lines.recv_timeout(left) else {
                panic!("{words} never comes: {printed}");
            };
            if line.contains(words) {
                return;
            }
            printed += &line;
            printed.push('\n');
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Not SIGINT: a shell without job control makes its background commands ignore it, and their children inherit that.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
