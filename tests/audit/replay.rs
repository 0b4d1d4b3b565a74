//! Commands, run again by the host's own replay, and what tests ask of it beyond that.

use jiff::Timestamp;
use serde_json::Value;
use wrkflw_audit::replay::Replayer;
use wrkflw_core::audit::Entry;
use wrkflw_core::ids::TenantId;
use wrkflw_core::instance::Instance;
use wrkflw_core::json::Json;
use wrkflw_engine::Engine;
use wrkflw_engine::replay::Sandboxed;

/// Where a replay left the recorded way.
pub(super) type Difference = String;

/// Runs a command again, and returns the instance after it.
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

/// What runs commands of this engine's database again.
pub(super) fn replayer(engine: &Engine) -> Replayer {
    let sandbox = Sandboxed(engine.sandbox().clone());
    Replayer::new(engine.reader().clone(), sandbox)
}

/// The host acts without being asked, and delivers a signal that was kept when its request is long answered.
fn was_asked(evidence: &Value) -> Result<(), Difference> {
    let is_host = evidence["actor"]["id"] == "wrkflw:host";
    let is_signal = evidence["command"]["action"] == "signal";
    if is_host || is_signal || evidence["requestId"].is_string() {
        Ok(())
    } else {
        Err(format!("no request asked for {}", evidence["command"]))
    }
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
