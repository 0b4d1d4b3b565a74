//! The HTTP interface.

pub mod auth;
pub mod token;
