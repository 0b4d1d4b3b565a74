//! The HTTP API, and what it shows: drawings of flows and the documents that describe the API and the events.
//!
//! It uses `wrkflw-engine` for what changes something, `wrkflw-store` for what is read, and `wrkflw-core` and
//! `wrkflw-runtime`. It is the only crate that names `axum`. Nothing but the command line uses it.
//!
//! [`http`] is the API: requests become commands, and errors become answers. [`diagram`] draws a flow as SVG.
//! [`asyncapi`] describes the events. The last two know nothing of [`http`]; the command line uses them too.
//!
//! Begin with [`http::routes()`].

pub mod asyncapi;
pub mod diagram;
pub mod http;
