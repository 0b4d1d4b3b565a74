//! Replays commands with the host's own code, with additional checks for tests.

use jiff::Timestamp;
use serde_json::Value;
use wrkflw_audit::replay::Replayer;
use wrkflw_core::audit::Entry;
use wrkflw_core::ids::TenantId;
use wrkflw_core::instance::Instance;
use wrkflw_core::json::Json;
use wrkflw_engine::Engine;
use wrkflw_engine::replay::Sandboxed;

/// The first difference of a replay from the audit.
pub(super) type Difference = String;

/// Replays a command, and returns the instance after it.
pub(super) async fn replay(
    engine: &Engine,
    tenant: TenantId,
    before: Option<Instance>,
    entries: &[Entry],
) -> Result<Instance, Difference> {
    let replayed = replayer(engine)
        .replay((tenant, "default"), before, entries)
        .await
        .map_err(|error| error.to_string())?;
    if replayed.other_profile {
        return Err("it was recorded under another profile".into());
    }
    let evidence = entries[0].draft.evidence.as_ref().ok_or("no evidence")?;
    was_asked(&evidence.value())?;
    Ok(replayed.instance)
}

/// The replayer of this engine's database.
pub(super) fn replayer(engine: &Engine) -> Replayer {
    let sandbox = Sandboxed(engine.sandbox().clone());
    Replayer::new(engine.reader().clone(), sandbox)
}

/// The host acts without a request, and delivers a buffered signal long after its request was answered.
fn was_asked(evidence: &Value) -> Result<(), Difference> {
    let is_host = evidence["actor"]["id"] == "wrkflw:host";
    let is_signal = evidence["command"]["action"] == "signal";
    if is_host || is_signal || evidence["requestId"].is_string() {
        Ok(())
    } else {
        Err(format!("no request asked for {}", evidence["command"]))
    }
}

/// The evidence of an entry with one member changed.
pub(super) fn altered(entry: &Entry, pointer: &str, value: serde_json::Value) -> Entry {
    let mut evidence = entry.draft.evidence.as_ref().expect("evidence").value();
    *evidence
        .pointer_mut(pointer)
        .unwrap_or_else(|| panic!("{pointer} is in the evidence")) = value;
    let mut entry = entry.clone();
    entry.draft.evidence = Some(Json::of(&evidence));
    entry
}

/// A time after all times that tests record.
pub(super) fn much_later() -> Timestamp {
    Timestamp::from_second(32_503_680_000).expect("a time")
}
