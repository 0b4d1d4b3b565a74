//! Service calls: those that have a result.

use super::active;
use crate::event::Event;
use crate::instance::Instance;

pub(super) fn end(instance: &mut Instance, event: &Event) -> Result<(), String> {
    let (Event::ServiceAnswered { state, result, .. } | Event::ServiceFailed { state, result, .. }) =
        event
    else {
        unreachable!("called only for the end of a call")
    };
    let call = active(instance, *state)?.call.as_mut();
    let open = call.filter(|call| call.result.is_none());
    let open = open.ok_or_else(|| format!("state {state} has no open call"))?;
    open.result = Some(result.clone());
    Ok(())
}
