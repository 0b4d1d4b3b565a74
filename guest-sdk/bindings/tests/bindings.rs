//! Checks that `guest-sdk/src/bindings/generated.rs` and `guest-sdk/c/sdk/bindings` are what wit-bindgen generates from the
//! contract. With `UPDATE=1` this test writes them.
//!
//! The repository has them because the generators take longer to compile than everything else that a flow needs.

use std::env;
use std::fs;
use std::path::Path;

use wit_bindgen_core::wit_parser::{Resolve, WorldId};
use wit_bindgen_core::{Files, WorldGenerator};
use wit_bindgen_rust::Opts;

const RUST: &str = "src/bindings/generated.rs";
const C: &str = "c/sdk/bindings";
const HEADER: &str = "//! Made of `wit/` by wit-bindgen: `UPDATE=1 cargo test -p wrkflw-guest-bindings`. Do not edit.\n\n";

/// The contract, and its world.
fn contract(sdk: &Path) -> (Resolve, WorldId) {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(sdk.join("wit")).expect("valid WIT");
    let world = resolve.select_world(&[package], Some("flow"));
    (resolve, world.expect("the world `flow`"))
}

/// The files that the generator makes from the contract.
fn made(sdk: &Path, generator: &mut dyn WorldGenerator) -> Files {
    let (mut resolve, world) = contract(sdk);
    let mut files = Files::default();
    generator
        .generate(&mut resolve, world, &mut files)
        .expect("bindings");
    files
}

fn rust(sdk: &Path) -> String {
    let options = Opts {
        format: true,
        additional_derive_attributes: vec!["PartialEq".into()],
        pub_export_macro: true,
        export_macro_name: Some("export_logic".into()),
        default_bindings_module: Some("wrkflw_guest::plumbing".into()),
        ..Opts::default()
    };
    let files = made(sdk, &mut options.build());
    let (_, source) = files.iter().next().expect("one file");
    let source = std::str::from_utf8(source).expect("Rust is UTF-8");
    // Removes the indentation, which would be two thirds of the file.
    let lines: Vec<_> = source.lines().map(str::trim_start).collect();
    format!("{HEADER}{}\n", lines.join("\n"))
}

/// Compares a file with the expected text, or writes it.
#[expect(
    clippy::disallowed_methods,
    reason = "the test command says whether to write the file anew"
)]
fn hold(file: &Path, expected: &[u8]) {
    if env::var("UPDATE").is_ok_and(|update| update == "1") {
        fs::create_dir_all(file.parent().expect("a folder")).expect("writable");
        fs::write(file, expected).expect("writable");
    }
    let found = fs::read(file).unwrap_or_default();
    assert!(
        found == expected,
        "{} is not what the contract says: run this test with UPDATE=1",
        file.display()
    );
}

#[test]
fn the_bindings_match_the_contract() {
    let sdk = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    hold(&sdk.join(RUST), rust(sdk).as_bytes());
    let files = made(sdk, &mut *wit_bindgen_c::Opts::default().build());
    for (name, content) in files.iter() {
        hold(&sdk.join(C).join(name), content);
    }
}
