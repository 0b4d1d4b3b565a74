//! The manifest that the SDK is carried with says what the workspace says.

use std::fs::read_to_string;

#[test]
fn the_carried_manifest_has_the_versions_of_the_workspace() {
    let read =
        |path: &str| read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).expect(path);
    let (carried, own, workspace) = (
        read("template/sdk.toml.tmpl"),
        read("Cargo.toml"),
        read("../Cargo.toml"),
    );
    let section = |manifest: &str, name: &str| -> Vec<String> {
        let body = manifest
            .split(&format!("[{name}]\n"))
            .nth(1)
            .expect("the section")
            .to_owned();
        body.lines()
            .take_while(|line| !line.starts_with('['))
            .filter(|line| line.contains('='))
            .map(Into::into)
            .collect()
    };
    let versions = section(&workspace, "workspace.dependencies");
    let expected: Vec<_> = section(&own, "dependencies")
        .iter()
        .map(|line| line.split('.').next().expect("a name").to_owned())
        .map(|name| {
            versions
                .iter()
                .find(|line| line.starts_with(&format!("{name} =")))
                .expect("a version")
                .clone()
        })
        .collect();
    assert_eq!(section(&carried, "dependencies"), expected);
    for line in section(&workspace, "workspace.package") {
        assert!(carried.contains(&line), "{line} is missing");
    }
}
