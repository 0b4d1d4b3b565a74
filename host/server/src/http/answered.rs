//! The events of a command in its response. Consumers get the same events later.

use std::sync::Arc;

use super::App;
use wrkflw_core::audit::Entry;
use wrkflw_core::cloudevent::{CloudEvent, PublicEntry};
use wrkflw_core::event::{About, DefinitionTexts, Event, EventContext};
use wrkflw_core::graph::Graph;
use wrkflw_core::instance::Instance;
use wrkflw_core::json::Json;
use wrkflw_core::template::Labels;
use wrkflw_engine::Identity;

/// The public events of a command that led to this instance, as CloudEvents.
pub(super) fn events_of(
    app: &App,
    who: &Identity,
    graph: &Graph,
    instance: &Instance,
    entries: &[Entry],
) -> Vec<Json> {
    let mut context = EventContext {
        labels: instance.labels.clone(),
        definition: Arc::new(DefinitionTexts::of(graph)),
        ..EventContext::default()
    };
    let mut events = Vec::new();
    // From the last entry backwards, because each change of the title has the title before it.
    for entry in entries.iter().rev() {
        events.extend(cloud_event(app, who, instance, entry, &context));
        if let Some(before) = labels_before(entry) {
            context.labels = before;
        }
    }
    events.reverse();
    events
}

/// The labels before the entry, if it changed them.
fn labels_before(entry: &Entry) -> Option<Labels> {
    if entry.draft.kind != "FLOW_RETITLED" {
        return None;
    }
    match serde_json::from_str(entry.draft.payload.as_str()).ok()? {
        Event::FlowRetitled {
            previous_title,
            previous_summary,
            ..
        } => Some(Labels {
            title: previous_title,
            summary: previous_summary,
        }),
        _ => None,
    }
}

fn cloud_event(
    app: &App,
    who: &Identity,
    instance: &Instance,
    entry: &Entry,
    context: &EventContext,
) -> Option<Json> {
    let payload = entry.draft.payload.to_string();
    let about = About::of(&entry.draft.kind, &payload);
    let mut states = instance.state_instances();
    let state = states.find(|state| Some(state.id.0) == about.state);
    let mut tasks = instance.state_instances().flat_map(|state| &state.tasks);
    let task = tasks.find(|task| Some(task.id.0) == about.task);
    let public = PublicEntry {
        tenant: who.tenant_name.clone(),
        instance: instance.id,
        id: entry.draft.id,
        kind: entry.draft.kind.clone(),
        payload,
        event_seq: entry.event_seq?,
        occurred_at: entry.draft.at,
        actor: entry.draft.actor.clone(),
        definition: instance.definition.clone(),
        entity: instance.entity.clone(),
        traceparent: entry.draft.traceparent.clone(),
        revision: entry.draft.revision,
        context: EventContext {
            state_name: state.map(|state| state.name.clone()),
            task_title: task.map(|task| task.label.clone()),
            ..context.clone()
        },
    };
    let event = CloudEvent::of(&public, &app.naming).ok()?;
    Some(event.structured())
}
