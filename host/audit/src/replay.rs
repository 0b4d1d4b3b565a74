//! Runs commands again from recorded data alone: the instance folded from earlier entries, the recorded time, actor,
//! look-ups and ids, and the recorded component. It does not read the current directory, and writes nothing.
//!
//! A difference is reported by its place, not by its values, because they may be confidential.

mod record;
mod source;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use moka::future::Cache;
use serde::Serialize;
use serde_json::Value;

use self::record::{Evaluated, Record, RecordedLookup};
pub use self::source::{Carried, Source};
use wrkflw_core::audit::Entry;
use wrkflw_core::command::Command;
use wrkflw_core::event::Event;
use wrkflw_core::execution::{Ask, Context, Execution, ExecutionError};
use wrkflw_core::ids::{Digest, TenantId, VersionRef, hex};
use wrkflw_core::instance::Instance;
use wrkflw_core::json::{Json, escaped};
use wrkflw_core::question::{Answer, Facts, Question};
use wrkflw_core::version::Version;
use wrkflw_core::zone;

/// Versions in the cache.
const VERSIONS_MAX: u64 = 1000;

/// Calls flow logic again, as the sandbox of a host does.
pub trait Logic: Send + Sync {
    /// The digest of the engine profile (engine and limits): SHA-256 in hexadecimal digits.
    fn profile(&self) -> String;

    /// Asks a version's component one question, and fetches its bytes if necessary. The error is [`Unable`] if the component could not
    /// be asked, or had too little time.
    fn ask<'a, 'f: 'a>(
        &'a self,
        pinned: (&'a VersionRef, Digest),
        facts: Facts<'a>,
        question: &'a Question,
        fetch: &'a Fetch<'f>,
    ) -> BoxFuture<'a, Result<Answered, ReplayError>>;
}

/// Reads the bytes of the component.
pub type Fetch<'a> = dyn Fn() -> BoxFuture<'a, Result<Vec<u8>, String>> + Send + Sync + 'a;

/// The answer of flow logic, with its fuel.
#[derive(Debug)]
pub struct Answered {
    /// SHA-256 of the contract, the function and its arguments.
    pub asked: [u8; 32],
    pub answer: Answer,
    pub fuel: u64,
    /// Why the call failed, if it did. Then `answer` is a host's record of the failure.
    pub failure: Option<String>,
}

/// Runs commands again.
pub struct Replayer {
    source: Box<dyn Source>,
    logic: Box<dyn Logic>,
    versions: Cache<(TenantId, VersionRef), Arc<Version>>,
}

/// A command whose replay gave the recorded result.
#[derive(Debug)]
pub struct Replayed {
    pub instance: Instance,
    pub evaluations: u64,
    /// Whether it was recorded under another engine profile, so that fuel was not compared.
    pub other_profile: bool,
}

/// Why a replay did not prove its command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// The replay differs from the record.
    #[error("{0}")]
    Differs(String),
    /// The replay was not possible.
    #[error("{0}")]
    Unable(String),
}

use ReplayError::{Differs, Unable};

impl Replayer {
    pub fn new(source: impl Source + 'static, logic: impl Logic + 'static) -> Replayer {
        Replayer {
            source: Box::new(source),
            logic: Box::new(logic),
            versions: Cache::new(VERSIONS_MAX),
        }
    }

    /// Runs the command of these entries again on the instance before it. `name` is the tenant's public name, which flow
    /// logic reads.
    pub async fn replay(
        &self,
        (tenant, name): (TenantId, &str),
        before: Option<Instance>,
        entries: &[Entry],
    ) -> Result<Replayed, ReplayError> {
        let first = entries
            .first()
            .ok_or_else(|| Unable("there are no entries".into()))?;
        let record = record(first)?;
        let reference = VersionRef {
            key: record.definition.clone(),
            version: record.version,
        };
        let version = self.version(tenant, &reference).await?;
        pinned_down(&record, &version, first)?;
        let previous = match (&before, &record.command) {
            (Some(instance), Command::Migrate { .. }) => {
                Some(self.version(tenant, &instance.definition).await?)
            }
            _ => None,
        };
        let context = Context {
            version: &version,
            previous: previous.as_deref(),
            tenant: name,
            actor: &record.actor,
            now: record.now,
        };
        let other_profile = record.profile != self.logic.profile();
        let run = self.run(context, before, &record, (entries, other_profile));
        let instance = run.await.map_err(|error| by_zones(error, &record))?;
        Ok(Replayed {
            instance,
            evaluations: record.evaluations.len() as u64,
            other_profile,
        })
    }

    async fn run(
        &self,
        context: Context<'_>,
        before: Option<Instance>,
        record: &Record,
        (entries, other_profile): (&[Entry], bool),
    ) -> Result<Instance, ReplayError> {
        let mut recorded_ids = record.made.iter().copied();
        let mut lacking = false;
        let mut ids = || {
            recorded_ids.next().unwrap_or_else(|| {
                lacking = true;
                uuid::Uuid::nil()
            })
        };
        let mut execution = Execution::begin(context, before, &record.command, &mut ids)
            .map_err(|error| refused(&error))?;
        let mut lookups = record.lookups.iter();
        let mut evaluations = record.evaluations.iter().zip(1..);
        let pinned = (&context.version.reference, context.version.component);
        let fetch = || -> BoxFuture<'_, _> { Box::pin(self.component(pinned.1)) };
        while let Some(ask) = execution.ask().map_err(|error| refused(&error))? {
            let question = match ask {
                Ask::Logic(question) => question,
                Ask::Directory(lookup) => {
                    let recorded = lookups
                        .next()
                        .ok_or_else(|| Differs("the directory is asked once more".into()))?;
                    same("the question to the directory", &recorded.asked, &lookup)?;
                    execution
                        .found(&recorded.found)
                        .map_err(|error| refused(&error))?;
                    continue;
                }
            };
            let function = question.function();
            let (recorded, number) = evaluations
                .next()
                .ok_or_else(|| Differs(format!("`{function}` is asked once more")))?;
            let at = |what| format!("{what} of evaluation {number} (`{function}`)");
            let instance = execution.instance();
            let facts = execution.facts(&instance);
            let evaluated = self.logic.ask(pinned, facts, &question, &fetch).await?;
            drop(instance);
            let digest = hex(&evaluated.asked);
            same(&at("the digest of the question"), &recorded.asked, &digest)?;
            same_answer(&at("the answer"), (recorded, &evaluated), other_profile)?;
            if !other_profile {
                same(&at("the fuel"), &recorded.fuel, &evaluated.fuel)?;
            }
            execution
                .answer(evaluated.answer)
                .map_err(|error| refused(&error))?;
        }
        let outcome = execution.finish();
        let unused = [
            (evaluations.count(), "evaluations"),
            (lookups.len(), "look-ups"),
            (recorded_ids.len(), "ids"),
        ];
        if let Some((count, what)) = unused.into_iter().find(|(count, _)| *count > 0) {
            return Err(Differs(format!(
                "{count} of the recorded {what} are not used"
            )));
        }
        if lacking {
            return Err(Differs("it makes more ids than are recorded".into()));
        }
        of_events(entries, &outcome.events)?;
        Ok(outcome.instance)
    }

    async fn version(
        &self,
        tenant: TenantId,
        reference: &VersionRef,
    ) -> Result<Arc<Version>, ReplayError> {
        let key = (tenant, reference.clone());
        if let Some(version) = self.versions.get(&key).await {
            return Ok(version);
        }
        let found = source::version(&*self.source, tenant, reference).await;
        let version = Arc::new(found.map_err(Unable)?);
        // The compiled code may be cached, and then nothing else reads the stored component. It must be the right one, too.
        self.component(version.component).await.map_err(Unable)?;
        self.versions.insert(key, version.clone()).await;
        Ok(version)
    }

    async fn component(&self, digest: Digest) -> Result<Vec<u8>, String> {
        source::component(&*self.source, digest).await
    }
}

fn refused(error: &ExecutionError) -> ReplayError {
    Differs(format!("the command is refused: {error}"))
}

/// Under another version of the time zone database, working time may end at another moment. Then a difference is no evidence of tampering.
fn by_zones(error: ReplayError, record: &Record) -> ReplayError {
    let reads_calendars = |looked: &RecordedLookup| !looked.asked.calendars.is_empty();
    match error {
        Differs(what)
            if record.lookups.iter().any(reads_calendars)
                && record.time_zones.as_deref() != zone::version() =>
        {
            Unable(format!(
                "{what}; it counts by calendars, and was recorded under another time zone database"
            ))
        }
        other => other,
    }
}

fn record(entry: &Entry) -> Result<Record, ReplayError> {
    let evidence = entry.draft.evidence.as_ref();
    let evidence = evidence.ok_or_else(|| Unable("there is no evidence".into()))?;
    serde_json::from_str(evidence.as_str())
        .map_err(|error| Unable(format!("its evidence cannot be read: {error}")))
}

/// Checks that the evidence fits its entry and the version.
fn pinned_down(record: &Record, version: &Version, entry: &Entry) -> Result<(), ReplayError> {
    let draft = &entry.draft;
    let actor = (!record.actor.is_host()).then_some(&record.actor.id);
    same("the command's id", &record.id, &draft.command)?;
    same("the actor", &actor, &draft.actor.as_ref())?;
    same("the moment", &record.now, &draft.at)?;
    let (component, config) = (version.component.to_string(), hex(&version.config.digest()));
    let of_version = |what: &str| format!("the {what} of {}", version.reference);
    same(&of_version("component"), &record.component, &component)?;
    same(&of_version("config"), &record.config, &config)
}

fn of_events(entries: &[Entry], again: &[Event]) -> Result<(), ReplayError> {
    same("the number of events", &entries.len(), &again.len())?;
    for (entry, event) in entries.iter().zip(again) {
        let (seq, draft) = (entry.seq, &entry.draft);
        // The text may have been changed by hand, so it need not be JSON.
        let payload = Json::stored(draft.payload.as_str())
            .map_err(|_| Differs(format!("the payload of entry {seq} cannot be read")))?;
        same(&format!("the event of entry {seq}"), &payload, event)?;
        if draft.evidence.is_some() && seq != entries[0].seq {
            let detail = format!("entry {seq} has evidence, which only the first of a command has");
            return Err(Differs(detail));
        }
    }
    Ok(())
}

/// Compares two answers. Under another engine profile, limits may differ. Then a failure on one side is no evidence of tampering.
fn same_answer(
    what: &str,
    (recorded, again): (&Evaluated, &Answered),
    other_profile: bool,
) -> Result<(), ReplayError> {
    let compared = same(what, &recorded.answer, &again.answer);
    if compared.is_ok() || !other_profile {
        return compared;
    }
    let why = match &again.failure {
        Some(cause) => format!("the call fails here, because {cause}"),
        // Only failed calls are recorded without fuel.
        None if recorded.fuel == 0 => "the recorded call failed, and fails no more here".to_owned(),
        None => return compared,
    };
    Err(Unable(format!(
        "{what} cannot be compared under another engine profile: {why}"
    )))
}

/// Checks that both are the same JSON. The error names the place where they differ.
fn same(what: &str, recorded: &impl Serialize, again: &impl Serialize) -> Result<(), ReplayError> {
    let (recorded, again) = (Json::of(recorded), Json::of(again));
    if recorded == again {
        return Ok(());
    }
    let at = parting(&recorded.value(), &again.value());
    let place = if at.is_empty() {
        String::new()
    } else {
        format!(" at {at}")
    };
    Err(Differs(format!(
        "{what} differs from what is recorded{place}"
    )))
}

/// The JSON Pointer of the first place where two values differ.
fn parting(one: &Value, other: &Value) -> String {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let names = one
                .keys()
                .chain(other.keys().filter(|name| !one.contains_key(*name)));
            names
                .map(|name| (name, one.get(name), other.get(name)))
                .find(|(_, one, other)| one != other)
                .map_or_else(String::new, |(name, one, other)| {
                    let rest = one.zip(other).map(|(one, other)| parting(one, other));
                    format!("/{}{}", escaped(name), rest.unwrap_or_default())
                })
        }
        (Value::Array(one), Value::Array(other)) => (0..one.len().max(other.len()))
            .find(|at| one.get(*at) != other.get(*at))
            .map_or_else(String::new, |at| {
                let rest = one
                    .get(at)
                    .zip(other.get(at))
                    .map(|(one, other)| parting(one, other));
                format!("/{at}{}", rest.unwrap_or_default())
            }),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use uuid::Uuid;
    use wrkflw_core::answer::{Reason, Refusal};
    use wrkflw_core::audit::{Draft, Head, Stream, StreamKind};
    use wrkflw_core::ids::CommandId;

    /// As in an export that was changed by hand.
    #[test]
    fn a_payload_that_is_not_json_is_a_finding() {
        let event = Event::FlowResumed {};
        let entry = |payload: Json| {
            let stream = Stream {
                tenant: TenantId(1),
                kind: StreamKind::Instance,
                id: Uuid::from_u128(7),
            };
            let draft = Draft {
                id: Uuid::from_u128(1),
                kind: event.kind().into(),
                revision: 2,
                command: CommandId(Uuid::from_u128(2)),
                actor: None,
                task: None,
                payload,
                evidence: None,
                salt: [3; 16],
                at: jiff::Timestamp::UNIX_EPOCH,
                public: true,
                traceparent: None,
            };
            [Head::genesis(stream).append(stream, draft)]
        };
        let again = [event.clone()];
        assert_eq!(of_events(&entry(Json::of(&event)), &again), Ok(()));
        for (text, expected) in [
            ("{", "the payload of entry 1 cannot be read"),
            ("1", "the event of entry 1 differs from what is recorded"),
        ] {
            let error = of_events(&entry(Json::from_canonical(text)), &again);
            assert_eq!(error.expect_err("another event").to_string(), expected);
        }
    }

    #[test]
    fn a_failure_under_other_limits_is_not_a_difference() {
        let failed = || {
            Answer::Start(Err(Refusal::Fault(Reason {
                code: "logic_budget_exceeded".to_owned(),
                message: "flow logic gave no answer".to_owned(),
            })))
        };
        let allowed = || Answer::Start(Ok(()));
        let recorded = |answer: Answer, fuel| Evaluated {
            asked: String::new(),
            answer: Json::of(&answer),
            fuel,
        };
        let again = |answer, fuel, failure: Option<&str>| Answered {
            asked: [0; 32],
            answer,
            fuel,
            failure: failure.map(str::to_owned),
        };
        let fails = || again(failed(), 0, Some("it used up its 7 units of fuel"));
        for (recorded, again, other, expected) in [
            (recorded(failed(), 0), fails(), true, None),
            (recorded(failed(), 0), fails(), false, None),
            (
                recorded(allowed(), 9),
                fails(),
                true,
                Some(Unable("it cannot be compared under another engine profile: the call fails here, because it used up its 7 units of fuel".to_owned())),
            ),
            (
                recorded(failed(), 0),
                again(allowed(), 9, None),
                true,
                Some(Unable("it cannot be compared under another engine profile: the recorded call failed, and fails no more here".to_owned())),
            ),
            (
                recorded(allowed(), 9),
                fails(),
                false,
                Some(Differs("it differs from what is recorded at /answer/Ok".to_owned())),
            ),
            // The logic itself refuses.
            (
                recorded(failed(), 9),
                again(allowed(), 9, None),
                true,
                Some(Differs("it differs from what is recorded at /answer/Err".to_owned())),
            ),
        ] {
            let compared = same_answer("it", (&recorded, &again), other);
            assert_eq!(compared.err(), expected);
        }
    }

    #[test]
    fn a_difference_is_named_by_its_place() {
        let check = |one: Value, other: Value, at: &str| {
            let error = same("it", &one, &other).expect_err("they differ");
            let suffix = if at.is_empty() {
                String::new()
            } else {
                format!(" at {at}")
            };
            assert_eq!(
                error.to_string(),
                format!("it differs from what is recorded{suffix}")
            );
        };
        check(
            json!({"a": [1, {"b": 2}]}),
            json!({"a": [1, {"b": 3}]}),
            "/a/1/b",
        );
        check(json!({"a": 1}), json!({"a": 1, "c/d": 2}), "/c~1d");
        check(json!([1]), json!([1, 2]), "/1");
        check(json!("secret"), json!("word"), "");
        assert_eq!(
            same("it", &json!({"a": 1, "b": 2}), &json!({"b": 2, "a": 1})),
            Ok(())
        );
    }
}
