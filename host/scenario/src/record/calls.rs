//! Steps of what services answered.

use super::redact::Redactor;
use super::{Members, Recorded, input};
use crate::seen::text;
use wrkflw_core::command::Command;
use wrkflw_core::ids::StateId;
use wrkflw_core::instance::Instance;
use wrkflw_core::json::Node;

/// The step of a report about a service call.
pub(super) fn ended(redactor: &mut Redactor<'_>, recorded: &Recorded<'_>) -> Members {
    let named = |id: StateId| {
        let mut states = recorded.before.iter().flat_map(Instance::state_instances);
        let state = states.find(|one| one.id == id)?;
        Some((state.call.as_ref()?.service.clone(), state.name.clone()))
    };
    let (state, attempts, more) = match &recorded.evidence.command {
        Command::ServiceAnswered {
            state,
            attempts,
            output,
            model,
            model_version,
            ..
        } => {
            let mut more: Members = input(redactor, output).into_iter().collect();
            more.extend(model.as_deref().map(|model| ("model", text(model))));
            let version = model_version.as_deref();
            more.extend(version.map(|version| ("modelVersion", text(version))));
            (state, attempts, more)
        }
        Command::ServiceFailed {
            state,
            attempts,
            error,
            ..
        } => (
            state,
            attempts,
            vec![("error", text(&redactor.comment(error)))],
        ),
        _ => return Members::new(),
    };
    let (service, name) = named(*state).unwrap_or_default();
    let mut members = vec![("service", text(&service)), ("in", text(&name))];
    members.push(("attempts", Node::Number(attempts.to_string())));
    members.extend(more);
    members
}
