//! Commands, run again from their evidence alone: the instance as the entries before make it, the recorded moment,
//! actor and ids, the pinned component. Nothing of the directory as it is now.

use std::sync::Arc;

use jiff::Timestamp;
use wrkflw::domain::audit::{Entry, sha256};
use wrkflw::domain::command::Command;
use wrkflw::domain::ids::{Digest, TenantId, VersionRef};
use wrkflw::domain::instance::Instance;
use wrkflw::domain::json::Json;
use wrkflw::domain::turn::{Ask, Context, Turn};
use wrkflw::domain::version::Version;
use wrkflw::engine::Engine;
use wrkflw::wasm::Pinned;

use super::stream::{Evidence, event};

/// Where a replay left the recorded way.
pub(super) type Difference = String;

/// Runs a command again, and returns the instance after it.
#[expect(clippy::too_many_lines, reason = "one comparison after the other")]
pub(super) async fn replay(
    engine: &Engine,
    tenant: TenantId,
    before: Option<Instance>,
    entries: &[Entry],
) -> Result<Instance, Difference> {
    let recorded = entries[0].draft.evidence.as_ref().ok_or("no evidence")?;
    let evidence: Evidence =
        serde_json::from_str(recorded.as_str()).map_err(|error| error.to_string())?;
    let reference = VersionRef {
        key: evidence.definition.clone(),
        version: evidence.version,
    };
    let version = engine
        .version(tenant, &reference)
        .await
        .map_err(|error| error.to_string())?;
    pinned_down(engine, &evidence, &version, &entries[0])?;
    let command = &evidence.command;
    let previous = left(engine, tenant, before.as_ref(), command).await?;

    let context = Context {
        version: &version,
        previous: previous.as_deref(),
        tenant: "default",
        actor: &evidence.actor,
        now: evidence.now,
    };
    let mut made = evidence.made.iter().copied();
    let mut ids = || made.next().expect("the ids that were made");
    let mut turn =
        Turn::begin(context, before, command, &mut ids).map_err(|error| error.to_string())?;
    let mut evaluations = evidence.evaluations.iter();
    let pinned = Pinned {
        reference,
        digest: version.component,
    };
    let mut lookups = evidence.lookups.iter();
    while let Some(ask) = turn.ask().map_err(|error| error.to_string())? {
        let question = match ask {
            Ask::Logic(question) => question,
            Ask::Directory(lookup) => {
                let recorded = lookups.next().ok_or("a look-up more than recorded")?;
                same("the look-up", &recorded.asked, &lookup)?;
                turn.found(&recorded.found)
                    .map_err(|error| error.to_string())?;
                continue;
            }
        };
        let recorded = evaluations.next().ok_or("a question more than recorded")?;
        let instance = turn.instance();
        let facts = turn.facts(&instance);
        same("the question", &recorded.question, &Json::of(&question))?;
        same(
            "the facts",
            &recorded.facts,
            &hex(Json::of(&facts).as_str()),
        )?;
        let fetch = || engine.store().component(version.component);
        let evaluated = engine.sandbox().ask(&pinned, facts, &question, fetch).await;
        let evaluated = evaluated.map_err(|error| error.to_string())?;
        drop(instance);
        same("the answer", &recorded.answer, &Json::of(&evaluated.answer))?;
        same("the fuel", &recorded.fuel, &evaluated.fuel)?;
        turn.answer(evaluated.answer)
            .map_err(|error| error.to_string())?;
    }
    same("the questions left", &evaluations.len(), &0)?;
    same("the look-ups left", &lookups.len(), &0)?;
    let outcome = turn.finish();
    same("the ids left", &made.len(), &0)?;
    same(
        "the events",
        &outcome.events,
        &entries.iter().map(event).collect::<Vec<_>>(),
    )?;
    Ok(outcome.instance)
}

/// The version that a migration leaves.
async fn left(
    engine: &Engine,
    tenant: TenantId,
    before: Option<&Instance>,
    command: &Command,
) -> Result<Option<Arc<Version>>, Difference> {
    let (Some(instance), Command::Migrate { .. }) = (before, command) else {
        return Ok(None);
    };
    let previous = engine.version(tenant, &instance.definition).await;
    previous.map(Some).map_err(|error| error.to_string())
}

/// The evidence names what it stands with, and what the command ran on.
fn pinned_down(
    engine: &Engine,
    evidence: &Evidence,
    version: &Version,
    entry: &Entry,
) -> Result<(), Difference> {
    same("the command's id", &evidence.id, &entry.draft.command)?;
    same(
        "the actor",
        &Some(&evidence.actor)
            .filter(|actor| !actor.is_host())
            .map(|actor| &actor.id),
        &entry.draft.actor.as_ref(),
    )?;
    same("the moment", &evidence.now, &entry.draft.at)?;
    same(
        "the component",
        &evidence.component,
        &version.component.to_string(),
    )?;
    same(
        "the config",
        &evidence.config,
        &hex(version.config.as_str()),
    )?;
    same(
        "the profile",
        &evidence.profile,
        &engine.sandbox().profile().digest.to_string(),
    )?;
    // The host acts without being asked, and delivers a signal that was kept when its request is long answered.
    let is_asked = !evidence.actor.is_host() && !matches!(evidence.command, Command::Signal { .. });
    if is_asked {
        evidence.request_id.as_ref().ok_or("no request")?;
    }
    Ok(())
}

fn same<T: PartialEq + std::fmt::Debug>(
    what: &str,
    recorded: &T,
    again: &T,
) -> Result<(), Difference> {
    if recorded == again {
        Ok(())
    } else {
        Err(format!(
            "{what}: {recorded:?} was recorded, {again:?} came again"
        ))
    }
}

fn hex(text: &str) -> String {
    Digest(sha256(text.as_bytes())).to_string()
}

/// The evidence of an entry with one of its members changed.
pub(super) fn altered(entry: &Entry, pointer: &str, value: serde_json::Value) -> Entry {
    let mut evidence = entry.draft.evidence.as_ref().expect("evidence").value();
    *evidence
        .pointer_mut(pointer)
        .unwrap_or_else(|| panic!("{pointer} is in the evidence")) = value;
    let mut entry = entry.clone();
    entry.draft.evidence = Some(Json::of(&evidence));
    entry
}

/// A moment later than any that a test records.
pub(super) fn much_later() -> Timestamp {
    Timestamp::from_second(32_503_680_000).expect("a time")
}
