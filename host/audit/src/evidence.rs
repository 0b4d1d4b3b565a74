//! The evidence of a command: the inputs that are needed to evaluate it again. Its first audit entry has it. Hosts write it,
//! and [`replay`](crate::replay) reads it.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use uuid::Uuid;

use wrkflw_core::actor::Actor;
use wrkflw_core::command::Command;
use wrkflw_core::ids::{CommandId, hex};
use wrkflw_core::json::Json;
use wrkflw_core::lookup::{Findings, Lookup};
use wrkflw_core::question::Answer;
use wrkflw_core::version::Version;
use wrkflw_core::zone;

/// One question to flow logic and its answer.
///
/// The question is not recorded: it follows from the command and the instance. Its digest shows whether a replay asks the same.
#[derive(Debug, Clone)]
pub struct Evaluation {
    /// SHA-256 of the contract, the function and its arguments. Facts are recorded only by this digest.
    pub asked: [u8; 32],
    pub answer: Answer,
    pub fuel: u64,
    /// Wall time in microseconds. A replay does not compare it, because no two runs take the same time.
    pub micros: u64,
}

/// The inputs of a command that its events do not have.
pub struct Circumstances<'a> {
    pub id: CommandId,
    pub command: &'a Command,
    pub actor: &'a Actor,
    pub now: Timestamp,
    pub version: &'a Version,
    /// SHA-256 of the engine profile.
    pub profile: String,
    pub request_id: Option<&'a str>,
    /// Who issued the embed token by which the actor acted.
    pub embedded_by: Option<&'a str>,
    pub evaluations: &'a [Evaluation],
    pub lookups: &'a [(Lookup, Arc<Findings>)],
    /// The ids that the host generated, in order.
    pub made: &'a [Uuid],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Evidence<'a> {
    id: CommandId,
    command: &'a Command,
    actor: &'a Actor,
    now: Timestamp,
    definition: &'a str,
    version: u32,
    component: String,
    config: String,
    profile: &'a str,
    request_id: Option<&'a str>,
    /// The version of the time zone database, by which calendars count. None if the command read no calendar.
    #[serde(skip_serializing_if = "Option::is_none")]
    time_zones: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    embedded_by: Option<&'a str>,
    evaluations: Vec<Record<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lookups: Vec<LookupEvidence<'a>>,
    made: &'a [Uuid],
}

/// A look-up in the directory and its result.
#[derive(Serialize)]
struct LookupEvidence<'a> {
    asked: &'a Lookup,
    found: &'a Findings,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a> {
    asked: String,
    answer: &'a Answer,
    fuel: u64,
    micros: u64,
}

impl Record<'_> {
    fn of(evaluation: &Evaluation) -> Record<'_> {
        let Evaluation {
            asked,
            answer,
            fuel,
            micros,
        } = evaluation;
        Record {
            asked: hex(asked),
            answer,
            fuel: *fuel,
            micros: *micros,
        }
    }
}

impl Circumstances<'_> {
    /// The evidence in canonical form. It has the digest of the config, because the version has the text.
    pub fn evidence(&self) -> Json {
        let evaluations = self.evaluations.iter().map(Record::of);
        let mut lookups = self.lookups.iter();
        let reads_calendars = lookups.any(|(asked, _)| !asked.calendars.is_empty());
        let lookups = self.lookups.iter();
        let lookups = lookups.map(|(asked, found)| LookupEvidence { asked, found });
        Json::of(&Evidence {
            id: self.id,
            command: self.command,
            actor: self.actor,
            now: self.now,
            definition: &self.version.reference.key,
            version: self.version.reference.version,
            component: self.version.component.to_string(),
            config: hex(&self.version.config.digest()),
            profile: &self.profile,
            request_id: self.request_id,
            time_zones: reads_calendars.then(zone::version).flatten(),
            embedded_by: self.embedded_by,
            evaluations: evaluations.collect(),
            lookups: lookups.collect(),
            made: self.made,
        })
    }
}
