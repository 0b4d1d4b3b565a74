//! The types of `wrkflw:flow` as Rust sees them: the only use of wit-bindgen.
//!
//! Everything here is generated from `wit/`, which links to the WIT folder of the version that
//! this SDK speaks. Authors never name this module; `lib.rs` lists by hand what they see of it.
#![expect(missing_docs, clippy::pedantic, reason = "generated")]

wit_bindgen::generate!({
    path: "wit",
    world: "flow",
    additional_derives: [PartialEq],
    pub_export_macro: true,
    export_macro_name: "export_logic",
    default_bindings_module: "wrkflw_guest::plumbing",
});
