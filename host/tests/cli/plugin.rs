//! From an empty folder to a running flow, outside this repository and without a network.

use std::fs;

use serde_json::Value;

use crate::program::{Place, Ran, ran};

fn in_flow(place: &Place, arguments: &[&str]) -> Ran {
    let mut command = place.command(arguments);
    command.current_dir(place.folder.join("my-flow"));
    ran(command)
}

fn data(place: &Place, arguments: &[&str]) -> Value {
    let ran = in_flow(place, &[arguments, &["--output", "json"]].concat());
    assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
    serde_json::from_str(&ran.stdout)
        .unwrap_or_else(|error| panic!("{arguments:?}: {error}: {}", ran.stdout))
}

#[test]
fn a_new_flow_is_tested_built_checked_and_published() {
    let place = Place::new();
    place.data(&["plugin", "new", "my-flow"]);
    assert_eq!(
        place.run(&["plugin", "new", "my-flow"]).code,
        5,
        "nothing is written over"
    );
    assert_eq!(
        in_flow(&place, &["plugin", "check"]).code,
        4,
        "nothing is built yet"
    );
    assert_eq!(data(&place, &["plugin", "test"])["passed"], true);
    let built = data(&place, &["plugin", "build"]);
    assert!(
        built["sizeBytes"]
            .as_u64()
            .is_some_and(|bytes| bytes > 10_000 && bytes < 1_000_000),
        "{built}"
    );
    let checked = data(&place, &["plugin", "check"]);
    assert_eq!(checked["digest"], built["digest"]);
    assert_eq!(checked["ownWork"], serde_json::json!(["Rework"]));

    let _dev = place.start(&["dev", "--ephemeral", "--port", "0"]);
    let published = data(&place, &["definition", "publish", "--activate"]);
    assert_eq!(
        (
            &published["key"],
            &published["version"],
            &published["active"]
        ),
        (&"my-flow".into(), &1.into(), &true.into())
    );
    assert_eq!(published["digest"], built["digest"]);
    assert_eq!(
        data(&place, &["definition", "publish"])["created"],
        false,
        "the same content is the same version"
    );
    let started = data(
        &place,
        &[
            "instance",
            "start",
            "my-flow",
            "--entity",
            "desk/1",
            "--data",
            r#"{"subject":"A desk"}"#,
            "--as",
            "author",
        ],
    );
    assert_eq!(started["states"][0]["name"], "Review");

    let drawing = in_flow(
        &place,
        &["definition", "diagram", "my-flow", "1", "-o", "flow.svg"],
    );
    assert_eq!(drawing.code, 0, "{}", drawing.stderr);
    assert!(
        fs::read_to_string(place.folder.join("my-flow/flow.svg"))
            .unwrap()
            .starts_with("<svg")
    );
    assert_eq!(
        data(&place, &["definition", "show", "my-flow"])["active"],
        true
    );
    assert_eq!(
        data(&place, &["definition", "retire", "my-flow", "1"])["active"],
        false
    );
    assert_eq!(
        in_flow(&place, &["definition", "activate", "my-flow", "1"]).code,
        5
    );

    fs::write(
        place.folder.join("my-flow/config.json"),
        r#"{ "reviewer": "reviewers" }"#,
    )
    .unwrap();
    let refused = in_flow(&place, &["plugin", "check"]);
    assert_eq!(refused.code, 6);
    assert!(
        refused.stderr.contains("/reviewer") && refused.stderr.contains("next: "),
        "{}",
        refused.stderr
    );
    let refused = in_flow(&place, &["definition", "publish"]);
    assert_eq!(refused.code, 6, "{}", refused.stderr);
}

#[test]
fn what_is_no_component_is_refused_with_the_reason() {
    let place = Place::new();
    fs::write(place.folder.join("random.wasm"), b"\x07random bytes").unwrap();
    fs::write(place.folder.join("core.wasm"), b"\0asm\x01\0\0\0").unwrap();
    for file in ["random.wasm", "core.wasm"] {
        let refused = place.run(&["plugin", "check", file]);
        assert_eq!(
            (refused.code, refused.stdout.as_str()),
            (6, ""),
            "{}",
            refused.stderr
        );
    }
    assert!(
        place
            .run(&["plugin", "check", "core.wasm"])
            .stderr
            .contains("core module")
    );
}

#[test]
fn a_name_that_cargo_or_the_api_would_refuse_is_refused_at_once() {
    let place = Place::new();
    for name in ["My-Flow", "../flow", "test", "wrkflw-guest", "9flow"] {
        let refused = place.run(&["plugin", "new", name]);
        assert_eq!(refused.code, 6, "{name}");
    }
    assert_eq!(fs::read_dir(&place.folder).unwrap().count(), 0);
    place.data(&["plugin", "new", "in-place", "--init"]);
    assert!(
        place.folder.join("Cargo.lock").is_file()
            && place.folder.join("sdk/wit/world.wit").is_file()
    );
}
