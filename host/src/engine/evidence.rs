//! All that is needed to evaluate a command again, as its first audit entry keeps it.

use jiff::Timestamp;
use serde::Serialize;
use uuid::Uuid;

use crate::domain::actor::Actor;
use crate::domain::command::Command;
use crate::domain::ids::{CommandId, hex};
use crate::domain::json::Json;
use crate::domain::lookup::{Findings, Lookup};
use crate::domain::question::{Answer, Question};
use crate::domain::version::Version;

/// One question, and what flow logic answered.
#[derive(Debug, Clone)]
pub(super) struct Evaluation {
    pub(super) question: Question,
    /// SHA-256 of the canonical facts.
    pub(super) facts_digest: [u8; 32],
    pub(super) answer: Answer,
    pub(super) fuel: u64,
    /// Wall time in microseconds. Told, never compared: no second run takes the same.
    pub(super) micros: u64,
}

/// The circumstances of a command that its events do not tell.
pub(super) struct Circumstances<'a> {
    pub(super) id: CommandId,
    pub(super) command: &'a Command,
    pub(super) actor: &'a Actor,
    pub(super) now: Timestamp,
    pub(super) version: &'a Version,
    /// SHA-256 of the engine profile.
    pub(super) profile: String,
    pub(super) request_id: Option<&'a str>,
    pub(super) evaluations: &'a [Evaluation],
    pub(super) lookups: &'a [(Lookup, Findings)],
    /// Ids that the host made, in their order.
    pub(super) made: &'a [Uuid],
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
    evaluations: Vec<Record<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lookups: Vec<Looked<'a>>,
    made: &'a [Uuid],
}

/// What the directory was asked, and what it said.
#[derive(Serialize)]
struct Looked<'a> {
    asked: &'a Lookup,
    found: &'a Findings,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a> {
    question: &'a Question,
    facts: String,
    answer: &'a Answer,
    fuel: u64,
    micros: u64,
}

impl Record<'_> {
    fn of(evaluation: &Evaluation) -> Record<'_> {
        let Evaluation {
            question,
            facts_digest,
            answer,
            fuel,
            micros,
        } = evaluation;
        Record {
            question,
            facts: hex(facts_digest),
            answer,
            fuel: *fuel,
            micros: *micros,
        }
    }
}

impl Circumstances<'_> {
    /// The evidence in canonical form. The config is named by its digest: the version keeps its text.
    pub(super) fn evidence(&self) -> Json {
        let evaluations = self.evaluations.iter().map(Record::of).collect();
        let looked = |(asked, found)| Looked { asked, found };
        let lookups = self
            .lookups
            .iter()
            .map(|(asked, found)| looked((asked, found)));
        Json::of(&Evidence {
            id: self.id,
            command: self.command,
            actor: self.actor,
            now: self.now,
            definition: &self.version.reference.key,
            version: self.version.reference.version,
            component: self.version.component.to_string(),
            config: hex(&crate::domain::audit::sha256(
                self.version.config.as_str().as_bytes(),
            )),
            profile: &self.profile,
            request_id: self.request_id,
            evaluations,
            lookups: lookups.collect(),
            made: self.made,
        })
    }
}
