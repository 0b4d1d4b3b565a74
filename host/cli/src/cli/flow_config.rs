//! The config with which a flow is checked or published: a file, or the empty object.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use super::failure::{Exit, Failure};
use wrkflw_core::check::Problem;
use wrkflw_core::json::Json;

/// The text of a config.
pub(super) struct FlowConfig {
    /// The path of its file, or the words by which messages name the empty config.
    pub(super) name: String,
    pub(super) text: String,
}

impl FlowConfig {
    pub(super) fn read(path: Option<PathBuf>) -> Result<FlowConfig> {
        let Some(path) = path else {
            return Ok(FlowConfig {
                name: "the empty config (there is no config.json)".to_owned(),
                text: "{}".to_owned(),
            });
        };
        let text = fs::read_to_string(&path);
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        let here = std::env::current_dir().unwrap_or_default();
        let name = path.strip_prefix(here).unwrap_or(&path);
        Ok(FlowConfig {
            name: name.display().to_string(),
            text,
        })
    }

    /// The config in the form that the host stores.
    pub(super) fn parse(&self) -> Result<Json> {
        Json::parse(&self.text).map_err(|error| {
            let problem = Problem::of_config(&error.pointer, &error.detail, "syntax");
            Failure::new(Exit::Invalid, "the config cannot be read")
                .details([problem.with_file(&self.name)])
                .next("fix this and repeat")
                .into()
        })
    }

    /// Adds the name of the config's file to the problems of the config in a failure. Other errors do not change.
    pub(super) fn named_in(&self, error: anyhow::Error) -> anyhow::Error {
        match error.downcast::<Failure>() {
            Ok(failure) => failure
                .with_file(Problem::CONFIG_INVALID, &self.name)
                .into(),
            Err(other) => other,
        }
    }
}
