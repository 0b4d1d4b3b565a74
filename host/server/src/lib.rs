//! The HTTP API, diagrams of flows, and the documents that describe the API and the events.
//!
//! It uses `wrkflw-engine` for changes, `wrkflw-store` for reads, and `wrkflw-core`, `wrkflw-runtime` and `wrkflw-fault`. The
//! console calls the API in its own process; the command line serves both.
//!
//! [`http`] is the API: requests become commands, and errors become responses. [`diagram`] draws a flow as SVG.
//! [`asyncapi`] describes the events. The last two do not use [`http`].
//!
//! Start at [`http::routes()`].

pub mod asyncapi;
pub mod diagram;
pub mod http;
