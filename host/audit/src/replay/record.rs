//! Reads the evidence of a command; [`evidence`](crate::evidence) writes it.

use jiff::Timestamp;
use serde::Deserialize;
use uuid::Uuid;

use wrkflw_core::actor::Actor;
use wrkflw_core::command::Command;
use wrkflw_core::ids::CommandId;
use wrkflw_core::json::Json;
use wrkflw_core::lookup::{Findings, Lookup};

/// All that is needed to evaluate a command again.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Record {
    pub(super) id: CommandId,
    pub(super) command: Command,
    pub(super) actor: Actor,
    pub(super) now: Timestamp,
    pub(super) definition: String,
    pub(super) version: u32,
    /// Hexadecimal SHA-256, as the digests below.
    pub(super) component: String,
    pub(super) config: String,
    pub(super) profile: String,
    /// The version of the time zone database, if the command read calendars.
    #[serde(default)]
    pub(super) time_zones: Option<String>,
    pub(super) evaluations: Vec<Evaluated>,
    #[serde(default)]
    pub(super) lookups: Vec<RecordedLookup>,
    /// The ids that the host generated, in order.
    pub(super) made: Vec<Uuid>,
}

/// A look-up in the directory and its result.
#[derive(Deserialize)]
pub(super) struct RecordedLookup {
    pub(super) asked: Lookup,
    pub(super) found: Findings,
}

/// One question and the answer of flow logic.
#[derive(Deserialize)]
pub(super) struct Evaluated {
    /// SHA-256 of the contract, the function and its arguments, in hexadecimal digits.
    pub(super) asked: String,
    pub(super) answer: Json,
    pub(super) fuel: u64,
}
