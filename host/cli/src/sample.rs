//! The sample flow that the binary carries.

/// The component of `plugins/document-approval`, made by the build script.
pub const DOCUMENT_APPROVAL: &[u8] =
    include_bytes!(concat!(env!("OUT_DIR"), "/document-approval.wasm"));
