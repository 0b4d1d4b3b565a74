//! The sample flow that is embedded in the binary.

/// The component of `plugins/document-approval`, made by the build script.
pub const DOCUMENT_APPROVAL: &[u8] =
    include_bytes!(concat!(env!("OUT_DIR"), "/document-approval.wasm"));
