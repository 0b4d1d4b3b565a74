//! The contract as generated, with nothing between it and the host.

wit_bindgen::generate!({
    path: "../../../wit/flow@0.1.0",
    world: "wrkflw:flow/flow",
    pub_export_macro: true,
});
