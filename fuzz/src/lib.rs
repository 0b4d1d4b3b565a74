//! Fuzz targets: what reads bytes of strangers, with what must hold whatever they are.
//!
//! A target is a function that panics where a promise is broken. [`TARGETS`] lists them; `run.sh` feeds them with
//! inputs that libFuzzer makes from `corpus/`, and `tests/corpus.rs` runs the kept inputs in the everyday tests.
//! Targets touch no disk, no network and no clock, so an input that failed once fails again.

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

/// Something to feed bytes to.
pub struct Target {
    /// As its folder below `corpus/` is called.
    pub name: &'static str,
    /// Panics where a promise is broken.
    pub run: fn(&[u8]),
    /// The largest input that is worth trying, in bytes.
    pub bytes_max: usize,
}

/// The most bytes of an input that is text.
const TEXT_BYTES_MAX: usize = 4 * 1024;
/// The most bytes of a component.
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

/// The parts of an input that lie between NULs: how one input carries several texts.
fn parts(data: &[u8]) -> Option<Vec<&str>> {
    let parts = data.split(|byte| *byte == 0).map(str::from_utf8);
    parts.collect::<Result<_, _>>().ok()
}
