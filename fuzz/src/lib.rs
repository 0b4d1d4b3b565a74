//! Fuzz targets: parsers of untrusted bytes, with properties that hold for every input.
//!
//! A target is a function that panics if a property is violated. [`TARGETS`] lists them. `run.sh` runs them with inputs
//! that libFuzzer derives from `corpus/`; `tests/corpus.rs` runs the corpus itself in the everyday tests.
//! Targets use no disk, no network and no clock, so an input that failed once fails again.

mod answers;
mod calendar;
mod config;
mod cursor;
mod json;
mod jwks;
mod scan;
mod schema;
mod search;
mod token;

/// A fuzz target.
pub struct Target {
    /// The name of its folder below `corpus/`.
    pub name: &'static str,
    /// Panics if a property is violated.
    pub run: fn(&[u8]),
    /// The largest input that is worth trying, in bytes.
    pub bytes_max: usize,
}

/// Maximum size of a text.
const TEXT_BYTES_MAX: usize = 4 * 1024;
/// Maximum size of a component.
const COMPONENT_BYTES_MAX: usize = 16 * 1024;

const fn text(name: &'static str, run: fn(&[u8])) -> Target {
    Target {
        name,
        run,
        bytes_max: TEXT_BYTES_MAX,
    }
}

/// All targets.
pub const TARGETS: [Target; 10] = [
    text("answers", answers::run),
    text("calendar", calendar::run),
    text("config", config::run),
    text("cursor", cursor::run),
    text("json", json::run),
    text("jwks", jwks::run),
    Target {
        name: "scan",
        run: scan::run,
        bytes_max: COMPONENT_BYTES_MAX,
    },
    text("schema", schema::run),
    text("search", search::run),
    text("token", token::run),
];

/// The target of this name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// The texts of an input, separated by NUL.
fn parts(data: &[u8]) -> Option<Vec<&str>> {
    let parts = data.split(|byte| *byte == 0).map(str::from_utf8);
    parts.collect::<Result<_, _>>().ok()
}
