//! The conditions under which guests run here, recorded with each evaluation.
//!
//! Guests can observe limits and stack, and fuel totals may change with the engine. So a replay of an evaluation must know
//! them. The record is a short JSON text, identified by its digest.

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::engine::{GROW_FUEL_PER_PAGE, STACK_BYTES_MAX, WASMTIME_VERSION};
use super::settings::Settings;
use wrkflw_core::ids::Digest;
use wrkflw_core::json::Json;

/// The conditions of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    pub text: Json,
    /// The SHA-256 of the text.
    pub digest: Digest,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Text<'a> {
    wasmtime: &'a str,
    architecture: &'a str,
    wit: &'a str,
    nan: &'a str,
    fuel: Fuel,
    deadline_ms: u64,
    memory_bytes_max: usize,
    table_elements_max: usize,
    stack_bytes_max: usize,
    input_bytes_max: usize,
    output_bytes_max: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Fuel {
    start: u64,
    transition: u64,
    enter: u64,
    describe: u64,
    memory_grow_per_page: u8,
}

impl Profile {
    pub(super) fn new(settings: &Settings) -> Profile {
        let text = Json::of(&Text {
            wasmtime: WASMTIME_VERSION,
            architecture: std::env::consts::ARCH,
            wit: super::v0_1::PACKAGE,
            nan: "canonical",
            fuel: Fuel {
                start: settings.fuel_start,
                transition: settings.fuel_transition,
                enter: settings.fuel_enter,
                describe: settings.fuel_describe,
                memory_grow_per_page: GROW_FUEL_PER_PAGE,
            },
            deadline_ms: settings.deadline_ms,
            memory_bytes_max: settings.memory_bytes_max,
            table_elements_max: settings.table_elements_max,
            stack_bytes_max: STACK_BYTES_MAX,
            input_bytes_max: settings.input_bytes_max,
            output_bytes_max: settings.output_bytes_max,
        });
        let digest = Digest(Sha256::digest(text.as_str()).into());
        Profile { text, digest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Compiler;

    #[test]
    fn other_limits_are_another_profile() {
        let settings = Settings::new(Compiler::InProcess);
        let stricter = Settings {
            fuel_start: 1,
            ..settings.clone()
        };
        assert_eq!(Profile::new(&settings), Profile::new(&settings));
        assert_ne!(
            Profile::new(&settings).digest,
            Profile::new(&stricter).digest
        );
    }
}
