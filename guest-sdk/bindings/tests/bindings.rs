//! `guest-sdk/src/bindings/generated.rs` is what wit-bindgen makes of the contract. With `UPDATE=1` this test writes it.
//!
//! It is kept in the repository because the generator takes longer to compile than everything else that a flow needs.

use std::env;
use std::fs;
use std::path::Path;

use wit_bindgen_core::wit_parser::Resolve;
use wit_bindgen_core::{Files, WorldGenerator as _};
use wit_bindgen_rust::Opts;

const FILE: &str = "src/bindings/generated.rs";
const HEADER: &str = "//! Made of `wit/` by wit-bindgen: `UPDATE=1 cargo test -p wrkflw-guest-bindings`. Do not edit.\n\n";

fn generated(sdk: &Path) -> String {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(sdk.join("wit")).expect("valid WIT");
    let world = resolve.select_world(&[package], Some("flow"));
    let options = Opts {
        format: true,
        additional_derive_attributes: vec!["PartialEq".into()],
        pub_export_macro: true,
        export_macro_name: Some("export_logic".into()),
        default_bindings_module: Some("wrkflw_guest::plumbing".into()),
        ..Opts::default()
    };
    let mut files = Files::default();
    let mut generator = options.build();
    generator
        .generate(&mut resolve, world.expect("the world `flow`"), &mut files)
        .expect("bindings");
    let (_, source) = files.iter().next().expect("one file");
    let source = std::str::from_utf8(source).expect("Rust is UTF-8");
    // Two thirds of it would be indentation.
    let lines: Vec<_> = source.lines().map(str::trim_start).collect();
    format!("{HEADER}{}\n", lines.join("\n"))
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the test command says whether to write the file anew"
)]
fn the_bindings_are_those_of_the_contract() {
    let sdk = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let (file, expected) = (sdk.join(FILE), generated(sdk));
    if env::var("UPDATE").is_ok_and(|update| update == "1") {
        fs::write(&file, &expected).expect("writable");
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        found == expected,
        "{FILE} is not what the contract says: run this test with UPDATE=1"
    );
}
