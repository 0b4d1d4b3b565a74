//! From an empty folder to a running flow, outside this repository and without a network.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use wrkflw_runtime::clock::Clock;

use crate::program::{Running, TestFolder};
use crate::scenarios;

const FLOW: &str = "my-flow";

/// A new flow that was tested and built.
fn built() -> TestFolder {
    let mut place = TestFolder::new();
    // The first build, without output of an earlier one.
    place.builds = place.folder.join(FLOW).join("target");
    place.data("plugin new my-flow");
    assert_eq!(
        place.run("plugin new my-flow").code,
        5,
        "nothing is overwritten"
    );
    assert_eq!(
        place.run_in(FLOW, "plugin check").code,
        4,
        "nothing is built yet"
    );
    let tested = place.data_in(FLOW, "plugin test");
    assert_eq!(
        (&tested["passed"], &tested["scenarios"]),
        (&true.into(), &1.into())
    );
    let built = place.data_in(FLOW, "plugin build");
    assert!(
        built["sizeBytes"]
            .as_u64()
            .is_some_and(|bytes| (10_000..1_000_000).contains(&bytes)),
        "{built}"
    );
    let quiet = place.run_in(FLOW, "plugin build --quiet");
    assert_eq!((quiet.code, quiet.stderr.as_str()), (0, ""));
    let checked = place.data_in(FLOW, "plugin check");
    assert_eq!(checked["digest"], built["digest"]);
    assert_eq!(checked["ownWork"], serde_json::json!(["Rework"]));
    place
}

/// The number of components that this server has compiled.
fn compiled(dev: &Running) -> Option<String> {
    let url = dev.facts["url"].as_str().expect("its address");
    let address = url.strip_prefix("http://").expect("plain HTTP");
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream
        .write_all(b"GET /metrics HTTP/1.0\r\n\r\n")
        .expect("it reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it answers");
    assert!(text.contains("wrkflw_component_lookups_total"), "{text}");
    let counted = |line: &&str| {
        line.starts_with("wrkflw_component_lookups_total") && line.contains("compiler")
    };
    text.lines().find(counted).map(ToOwned::to_owned)
}

#[test]
fn a_new_flow_is_tested_built_checked_and_published() {
    let place = built();
    let dev = place.start("dev --empty --ephemeral --port 0");
    let before = compiled(&dev);
    let published = place.data_in(FLOW, "definition publish --activate");
    assert_eq!(compiled(&dev), before, "`plugin check` has compiled it");
    assert_eq!(
        (&published["key"], &published["version"]),
        (&FLOW.into(), &1.into())
    );
    assert_eq!(published["active"], true);
    let again = place.data_in(FLOW, "definition publish");
    assert_eq!(
        again["created"], false,
        "the same content is the same version"
    );
    let started = place
        .data(r#"instance start my-flow --entity desk/1 --data {"subject":"Desk"} --as author"#);
    assert_eq!(started["instance"]["states"][0]["name"], "Review");
    scenarios::of_a_changed_flow(&place, FLOW);
    scenarios::watched(&place, FLOW);

    let (there, away) = ("wrkflw_guest::export!", "// wrkflw_guest::export!");
    scenarios::change(&place, FLOW, there, away);
    let refused = place.run_in(FLOW, "plugin build -q");
    assert!(
        refused.code == 6 && refused.stderr.contains("wrkflw_guest::export!"),
        "{} {}",
        refused.code,
        refused.stderr
    );
    scenarios::change(&place, FLOW, away, there);

    place.data("definition diagram my-flow 1 -o flow.svg");
    let drawing = fs::read_to_string(place.folder.join("flow.svg")).expect("the drawing");
    assert!(
        drawing.contains("<svg") && drawing.contains("Review"),
        "{drawing}"
    );
    let shown = place.data("definition show my-flow");
    assert_eq!(shown["active"]["active"], true);
    assert_eq!(place.data("definition retire my-flow 1")["retired"], true);
    let refused = place.run("definition activate my-flow 1");
    assert!(
        refused.code == 5 && refused.stderr.contains("definition reinstate"),
        "{}",
        refused.stderr
    );
    let reinstated = place.data("definition reinstate my-flow 1");
    assert_eq!(
        (&reinstated["retired"], &reinstated["changed"]),
        (&false.into(), &true.into())
    );
    assert_eq!(place.data("definition activate my-flow 1")["active"], true);

    a_component_older_than_its_sources_is_not_published(&place);
    refusals_name_the_file_and_the_field(&place);
    tests_fail_if_check_would_refuse_the_flow(&place);
}

fn refusals_name_the_file_and_the_field(place: &TestFolder) {
    let config = place.folder.join(FLOW).join("config.json");
    for (text, expected) in [
        (
            r#"{ "reviewer": "reviewers" }"#,
            "config.json: /reviewer: unknown field `reviewer`",
        ),
        (r#"{ "reviewers": 1, }"#, "config.json: "),
    ] {
        fs::write(&config, text).expect("our own folder");
        for (line, code) in [
            ("plugin test", 1),
            ("plugin check", 6),
            ("definition publish", 6),
        ] {
            let refused = place.run_in(FLOW, line);
            assert_eq!(refused.code, code, "{line}: {}", refused.stderr);
            assert!(
                refused.stderr.contains(expected),
                "{line}: {}",
                refused.stderr
            );
        }
    }
    fs::write(config, r#"{ "reviewers": "reviewers" }"#).expect("our own folder");
}

fn tests_fail_if_check_would_refuse_the_flow(place: &TestFolder) {
    let source = place.folder.join(FLOW).join("src/lib.rs");
    let text = fs::read_to_string(&source).expect("the flow");
    let misnamed =
        "Graph::start(State::Review).attribute(\"cost centre\", wrkflw_guest::AttributeType::Text)";
    let text = text
        .replace("Graph::start(State::Review)", misnamed)
        .replace("\"string\" }", "\"string\", \"minLength\": \"three\" }");
    fs::write(&source, text).expect("our own folder");
    let tested = place.run_in(FLOW, "plugin test");
    place.data_in(FLOW, "plugin build");
    let checked = place.run_in(FLOW, "plugin check");
    assert_eq!((tested.code, checked.code), (1, 6), "{}", checked.stderr);
    let problem = "/attributes/0: name the attribute `cost centre` like `costCentre`: letters, digits, `_`, `.` and `-`, a letter \
                   or `_` first, at most 255 characters [attribute_name_malformed]";
    let of_schema = "/dataSchema/properties/subject/minLength: ";
    for refused in [tested, checked] {
        for problem in [problem, of_schema, "[schema_invalid]"] {
            assert!(refused.stderr.contains(problem), "{}", refused.stderr);
        }
    }
}

#[test]
fn other_files_than_components_are_refused_with_the_reason() {
    let place = TestFolder::new();
    fs::write(place.folder.join("random.wasm"), b"\x07random bytes").expect("our own folder");
    fs::write(place.folder.join("core.wasm"), b"\0asm\x01\0\0\0").expect("our own folder");
    for (file, words) in [
        ("random.wasm", "no WebAssembly"),
        ("core.wasm", "core WebAssembly module"),
    ] {
        let refused = place.run(&format!("plugin check {file}"));
        assert_eq!(
            (refused.code, refused.stdout.as_str()),
            (6, ""),
            "{}",
            refused.stderr
        );
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
    }
}

#[test]
fn an_invalid_flow_name_is_refused_at_once() {
    let place = TestFolder::new();
    for name in ["My-Flow", "../flow", "test", "wrkflw-guest", "9flow"] {
        assert_eq!(place.run(&format!("plugin new {name}")).code, 6, "{name}");
    }
    assert_eq!(
        fs::read_dir(&place.folder).expect("our own folder").count(),
        0
    );
    place.data("plugin new in-place --init");
    assert!(place.folder.join("Cargo.lock").is_file());
    assert!(place.folder.join("sdk/src/bindings/generated.rs").is_file());
}

fn a_component_older_than_its_sources_is_not_published(place: &TestFolder) {
    let folder = place.folder.join(FLOW);
    let built = place.data_in(FLOW, "plugin build");
    let component = built["path"].as_str().expect("a path").to_owned();
    let changed = |path: &str| {
        let metadata = fs::metadata(folder.join(path)).expect("our own folder");
        metadata.modified().expect("a time")
    };
    let age = |than: &str| {
        let file = fs::File::options().write(true).open(&component);
        let before = changed(than) - Duration::from_secs(1);
        file.expect("the component")
            .set_modified(before)
            .expect("our own");
    };
    for source in ["src/lib.rs", "Cargo.toml", "sdk/src/lib.rs"] {
        touch(&folder.join(source));
        age(source);
        let warning = format!("{component} is older than {source}");
        let checked = place.run_in(FLOW, "plugin check");
        assert_eq!(checked.code, 0, "{}", checked.stderr);
        assert!(
            checked.stderr.contains(&format!("warning: {warning}")),
            "{}",
            checked.stderr
        );
        let refused = place.run_in(FLOW, "definition publish --activate");
        assert_eq!(refused.code, 5, "{}", refused.stderr);
        assert!(
            refused.stderr.contains(&warning) && refused.stderr.contains("wrkflw plugin build"),
            "{}",
            refused.stderr
        );
    }
    let named = format!("definition publish {component} --key as-it-is");
    assert_eq!(place.data_in(FLOW, &named)["version"], 1);
    place.data_in(FLOW, "plugin build");
    // Only sources count: other files may be newer.
    for other in ["config.json", "README.md"] {
        touch(&folder.join(other));
    }
    let checked = place.run_in(FLOW, "plugin check");
    assert!(!checked.stderr.contains("older"), "{}", checked.stderr);
}

fn touch(path: &Path) {
    let file = fs::File::options().write(true).open(path);
    let touched = file
        .expect("a file")
        .set_modified(Clock::System.now().into());
    touched.expect("our own folder");
}
