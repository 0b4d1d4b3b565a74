//! What consumers see of an event's payload.

use std::borrow::Cow;

use crate::json::{Json, JsonError, Member, members};

/// The audit type of events that flows publish themselves.
pub const CUSTOM: &str = "CUSTOM";

/// The CloudEvents type of an audit type without the operator's prefix: `task.claimed` for `TASK_CLAIMED`, and `custom.` with the
/// event's name for events that flows publish.
pub fn type_suffix(kind: &str, custom_name: Option<&str>) -> String {
    match custom_name {
        Some(name) => format!("custom.{name}"),
        None => kind.to_ascii_lowercase().replacen('_', ".", 1),
    }
}

/// The payload of an entry without data, input, sender and children, which may be large or confidential. Callers with the
/// permission can read them over HTTP. An event that a flow publishes keeps its data. The function works on the stored text, so
/// that numbers keep their text and an older host can publish entries of a newer one.
pub fn public_view<'a>(kind: &str, payload: &'a str) -> Result<Vec<Member<'a>>, JsonError> {
    let mut members = members(payload)?;
    let is_blind = is_blind(kind, payload);
    members.retain(|(name, _)| match &**name {
        "type" => false,
        "outcome" => !is_blind,
        "data" | "input" | "sender" => kind == CUSTOM,
        _ => true,
    });
    for (name, value) in &mut members {
        match &**name {
            "comment" | "onBehalfOf" if is_blind => *value = Cow::Borrowed("null"),
            // The data of items and children and the requests to services are not public.
            "state" => {
                leave_out(value, "children")?;
                leave_out(value, "call")?;
                leave_out(value, "data")?;
            }
            _ => {}
        }
    }
    Ok(members)
}

/// Whether the entry is a decision that is hidden until its state ends.
pub fn is_blind(kind: &str, payload: &str) -> bool {
    // The first member of the canonical text, since names are sorted.
    kind == "DECISION_RECORDED" && payload.starts_with(r#"{"blind":true,"#)
}

/// Removes the member of this name from an object.
fn leave_out(object: &mut Cow<'_, str>, name: &str) -> Result<(), JsonError> {
    if !object.starts_with('{') || !object.contains(name) {
        return Ok(());
    }
    let all = members(object)?;
    let others = all.iter().filter(|(held, _)| held != name);
    let rest = Json::of_members(others.map(|(name, value)| (&**name, &**value)));
    *object = Cow::Owned(rest.to_string());
    Ok(())
}
