//! Builds the sample flow's component and embeds it in the binary, so that a plain `cargo build` of a clean clone needs no other
//! step.

use std::path::Path;

#[path = "../sandbox/src/componentize.rs"]
#[expect(unreachable_pub, reason = "public in the crate that owns the file")]
mod componentize;
#[path = "build/guest.rs"]
mod guest;

const SAMPLE: &str = "document-approval";
/// The sources of the sample, and what `plugin new` copies, relative to this folder.
const SOURCES: [&str; 12] = [
    "build/guest.rs",
    "../sandbox/src/componentize.rs",
    "../../Cargo.lock",
    "../../Cargo.toml",
    "../../guest-sdk/Cargo.toml",
    "../../guest-sdk/c",
    "../../guest-sdk/python",
    "../../guest-sdk/src",
    "../../guest-sdk/template",
    "../../guest-sdk/typescript",
    "../../plugins/document-approval",
    "../../wit",
];

fn main() -> Result<(), String> {
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .ok_or("this crate is in its workspace")?;
    #[expect(
        clippy::disallowed_methods,
        reason = "cargo has no other way to pass it"
    )]
    let out = std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    let out = Path::new(&out);
    // Beside the profile's folder, so that other builds (of clippy, of the fuzzer, of the tests' guests) reuse it.
    let guests = out.ancestors().nth(4).unwrap_or(out).join("guests");
    let module = guest::build(root, SAMPLE, &guests, componentize::STACK)?;
    let component = componentize::componentize(&module)?;
    let file = out.join(SAMPLE).with_extension("wasm");
    std::fs::write(&file, component).map_err(|error| format!("{}: {error}", file.display()))
}
