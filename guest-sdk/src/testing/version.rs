//! A version of the flow's definition, built from settings and the flow's graph like at publishing.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use wrkflw_core::check::Problem;
use wrkflw_core::ids::VersionRef;
use wrkflw_core::json::Json;
use wrkflw_core::scenario;
use wrkflw_core::version::Version;

use super::contract::graph;
use crate::bindings::exports::wrkflw::flow::logic::Guest;
use crate::export::Logic;
use crate::{Flow, Violation};

/// The version with this number. Fails the test if the host would not publish it. Messages call the config `file`.
#[track_caller]
pub(super) fn version<F: Flow>(key: &str, number: u32, (file, config): (&str, &str)) -> Version {
    match published::<F>(key, number, config) {
        Ok(version) => version,
        Err(problems) => {
            let problems = problems.iter().map(|problem| problem.with_file(file));
            let problems: Vec<_> = problems.collect();
            panic!("the flow cannot be published:\n  {}", problems.join("\n  "))
        }
    }
}

/// The checks of publishing, without a component.
fn published<F: Flow>(key: &str, number: u32, config: &str) -> Result<Version, Vec<Problem>> {
    let config = Json::parse(config)
        .map_err(|error| vec![Problem::of_config(&error.pointer, &error.detail, "syntax")])?;
    let describe = || {
        Logic::<F>::describe(config.to_string()).map_err(|violations| {
            let violations = violations.iter();
            let problem = |one: &Violation| Problem::of_config(&one.field, &one.message, &one.code);
            violations.map(problem).collect::<Vec<_>>()
        })
    };
    let definition = describe()?;
    if definition != describe()? {
        let message = "two fresh calls of `describe` with the same config gave two graphs";
        return Err(vec![Problem::new("describe_unstable", "", message)]);
    }
    let graph = graph::graph(definition)
        .map_err(|detail| vec![Problem::new("describe_malformed", "", detail)])?;
    let reference = VersionRef {
        key: key.to_owned(),
        version: number,
    };
    scenario::version(reference, config, graph)
}

/// The test that `export!` adds to a flow: it can be published with the `config.json` of this folder, or without settings.
#[doc(hidden)]
#[track_caller]
pub fn can_be_published<F: Flow>(folder: &str) {
    let file = Path::new(folder).join("config.json");
    let config = match fs::read_to_string(&file) {
        Ok(config) => ("config.json", config),
        Err(error) if error.kind() == ErrorKind::NotFound => (
            "the empty config (there is no config.json)",
            "{}".to_owned(),
        ),
        Err(error) => panic!("{} cannot be read: {error}", file.display()),
    };
    version::<F>("flow", 1, (config.0, &config.1));
}

#[cfg(test)]
mod tests {
    use wrkflw_core::check::names;

    #[test]
    fn the_sdk_accepts_the_same_names_as_the_host() {
        let longest = "a".repeat(255);
        let too_long = "a".repeat(256);
        for name in [
            "a", "_", "A.b-c_9", &longest, &too_long, "", "9a", "-a", ".a", "a b", "a/b", "\u{e4}",
            "a\u{e4}", "r#a",
        ] {
            let by_host = names::is_name(name);
            assert_eq!(crate::names::is_name(name), by_host, "{name:?}");
        }
    }
}
