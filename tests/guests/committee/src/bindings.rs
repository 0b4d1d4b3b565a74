//! The generated bindings of the contract, without an SDK.

wit_bindgen::generate!({
    path: "../../../wit/flow@0.1.0",
    world: "wrkflw:flow/flow",
    pub_export_macro: true,
});
