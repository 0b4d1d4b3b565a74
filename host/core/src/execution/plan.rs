//! Checks a plan against the graph and the data's schema, and turns it into events.

use super::fault::{self, ExecutionError, Fault, MESSAGE_BYTES_MAX, bounded};
use super::next::Branches;
use super::{
    Execution, Moving, blind, enter, next, reassessment, savepoint, separate, state_instance_of,
};
use crate::answer::{Attribute, AttributeValue, Next, Note, Plan, PublishedEvent};
use crate::event::Event;
use crate::graph::{AttributeType, Graph};
use crate::ids::StateId;
use crate::instance::Instance;
use crate::json::Json;
use crate::question::{EntryCause, Occurrence};
use crate::schema::Schema;
use crate::search::is_decimal;
use crate::shown::DATA_BYTES_MAX;
use crate::template::Labels;
use crate::version::Version;

pub(super) const TRANSITION: &str = "transition";
/// The largest data of an event that a plan publishes.
const PUBLISHED_BYTES_MAX: usize = 64 * 1024;
const PUBLISHED_MAX: usize = 32;
const NOTES_MAX: usize = 32;
/// The largest detail of a note. All notes are in one event.
const DETAIL_BYTES_MAX: usize = 4 * 1024;
const ATTRIBUTES_MAX: usize = 64;

/// The checked effects of a plan besides the states that it enters and cancels.
struct Effects {
    /// JSON Merge Patch for the instance's data.
    data: Option<Json>,
    attributes: Vec<Attribute>,
    notes: Vec<Note>,
}

/// Checks the whole plan, then emits its events.
pub(super) fn run(
    execution: &mut Execution<'_>,
    occurrence: &Occurrence,
    moving: Moving,
    plan: Plan,
) -> Result<(), ExecutionError> {
    let cancel = check_cancel(&execution.instance, &moving, &plan)?;
    let branches = Branches::of(execution);
    branches.check(occurrence, &moving, &plan.next, &cancel)?;
    if let Err(full) = branches.check_count(occurrence, &plan.next, cancel.len()) {
        return savepoint::reject(execution, full);
    }
    let effects = check_effects(execution.context.version, &execution.instance.data, &plan)?;
    let published = plan
        .publish
        .into_iter()
        .map(check_published)
        .collect::<Result<Vec<_>, _>>()?;
    if published.len() > PUBLISHED_MAX {
        return Err(Fault::new(
            TRANSITION,
            format!("a plan publishes at most {PUBLISHED_MAX} events"),
        )
        .into());
    }
    let (moved, is_reoffered) = (moving.state, plan.next == Next::Reoffer);
    let changes_data = effects.data.is_some();
    let blind = plan.next.goes_on() && blind::is_blind(&execution.instance, &moving);
    apply(execution, &occurrence.trigger, moving, plan.next, effects);
    if changes_data {
        retitle(execution);
    }
    for event in published {
        execution.emit(event);
    }
    for state in cancel {
        cancel_state(execution, state, &occurrence.trigger, blind);
    }
    if is_reoffered {
        enter::ask_again(execution, moved, EntryCause::Reoffered);
    }
    Ok(())
}

/// Cancels a branch. `blind`: because of a decision that is hidden.
pub(super) fn cancel_state(
    execution: &mut Execution<'_>,
    state: StateId,
    trigger: &str,
    blind: bool,
) {
    cancel_open_tasks(execution, Some(state));
    let name = state_instance_of(&execution.instance, state).name.clone();
    execution.emit(Event::StateCancelled {
        state,
        name,
        trigger: trigger.to_owned(),
        blind,
    });
}

/// Emits the decision, and what follows from it for the state instance that the plan is about.
fn apply(
    execution: &mut Execution<'_>,
    trigger: &str,
    moving: Moving,
    next: Next,
    effects: Effects,
) {
    let from = state_instance_of(&execution.instance, moving.state)
        .name
        .clone();
    let blind = blind::is_blind(&execution.instance, &moving);
    if let Some(deciding) = moving.decision {
        execution.emit(Event::DecisionRecorded {
            task: deciding.task,
            state: moving.state,
            state_name: from.clone(),
            outcome: deciding.outcome,
            on_behalf_of: deciding.on_behalf_of,
            comment: deciding.comment,
            input: deciding.input,
            blind,
        });
        if !execution.context.version.graph.separate.is_empty() {
            separate::exclude_elsewhere(execution, deciding.task, &from, blind);
        }
        if next.goes_on() {
            reassessment::release_to_others(execution, moving.state, deciding.task, blind);
        }
    }
    let Effects {
        data,
        attributes,
        notes,
    } = effects;
    let to = next.targets().iter().map(|target| target.name.clone());
    let to: Vec<_> = to.collect();
    let state = moving.state;
    if !next.goes_on() {
        cancel_open_tasks(execution, Some(state));
    }
    next::begin_branches(execution, state, trigger, &next);
    let previous = previous_values(&execution.instance, &attributes);
    execution.emit(if next.goes_on() {
        Event::StateContinued {
            state,
            trigger: trigger.to_owned(),
            to,
            data,
            attributes,
            previous,
            notes,
            blind,
        }
    } else {
        Event::StateTransitioned {
            state,
            from,
            trigger: trigger.to_owned(),
            to,
            data,
            attributes,
            previous,
            notes,
        }
    });
}

/// The values of these attributes before the change.
fn previous_values(instance: &Instance, attributes: &[Attribute]) -> Vec<Attribute> {
    let changed = attributes.iter().filter_map(|change| {
        let value = instance.attributes.get(&change.name)?.clone();
        Some(Attribute {
            name: change.name.clone(),
            value: Some(value),
        })
    });
    changed.collect()
}

/// The state instances that the plan cancels, each once. Refuses one that is not there, and the one that the plan is about.
fn check_cancel(instance: &Instance, moving: &Moving, plan: &Plan) -> Result<Vec<StateId>, Fault> {
    let find = |id: &String| {
        let mut here = instance.active.iter().chain(&instance.waiting);
        let found = here.find(|state| state.id.to_string() == *id && state.id != moving.state);
        found.map(|state| state.id).ok_or_else(|| {
            Fault::new(
                TRANSITION,
                bounded(format!("{id:?} is no other active or waiting state")),
            )
        })
    };
    let mut cancel = plan
        .cancel
        .iter()
        .map(find)
        .collect::<Result<Vec<_>, _>>()?;
    cancel.sort_unstable();
    cancel.dedup();
    Ok(cancel)
}

/// The checked effects of the plan. `data` is that of the instance before.
fn check_effects(version: &Version, data: &Json, plan: &Plan) -> Result<Effects, Fault> {
    let schema = version.schema.as_ref();
    let data = plan
        .data
        .as_deref()
        .map(|patch| check_data(schema, data, patch))
        .transpose()?;
    if plan.attributes.len() > ATTRIBUTES_MAX || plan.notes.len() > NOTES_MAX {
        let message =
            format!("a plan carries at most {ATTRIBUTES_MAX} attributes and {NOTES_MAX} notes");
        return Err(Fault::new(TRANSITION, message));
    }
    for attribute in &plan.attributes {
        check_attribute(&version.graph, attribute)?;
    }
    for note in &plan.notes {
        check_note(note)?;
    }
    Ok(Effects {
        data,
        attributes: plan.attributes.clone(),
        notes: plan.notes.clone(),
    })
}

/// The patch of the data, in canonical form. Refuses one after which the data would be invalid.
fn check_data(schema: Option<&Schema>, data: &Json, patch: &str) -> Result<Json, Fault> {
    let patch = Json::parse(patch)
        .map_err(|error| Fault::new(TRANSITION, format!("the data patch has {error}")))?;
    let data = data.merged(&patch);
    if !data.is_object() {
        return Err(Fault::new(
            TRANSITION,
            "the data would no longer be a JSON object",
        ));
    }
    if data.as_str().len() > DATA_BYTES_MAX {
        return Err(Fault::new(
            TRANSITION,
            format!("the data grows beyond {DATA_BYTES_MAX} bytes"),
        ));
    }
    match schema.and_then(|schema| schema.first_violation(&data)) {
        Some(first) => {
            let message = format!(
                "the data no longer satisfies the flow's own schema: {} at {}",
                first.message, first.field
            );
            Err(Fault::new(TRANSITION, bounded(message)))
        }
        None => Ok(patch),
    }
}

fn check_attribute(graph: &Graph, attribute: &Attribute) -> Result<(), Fault> {
    let name = &attribute.name;
    let declared = graph
        .attributes
        .iter()
        .find(|declared| declared.name == *name);
    let declared = declared.ok_or_else(|| {
        Fault::new(
            TRANSITION,
            bounded(format!("the attribute {name:?} is not declared")),
        )
    })?;
    let Some(value) = &attribute.value else {
        return Ok(());
    };
    let fits = match (declared.kind, value) {
        (AttributeType::Text, AttributeValue::Text(text)) => {
            text.len() <= MESSAGE_BYTES_MAX && !text.contains('\0')
        }
        (AttributeType::Decimal, AttributeValue::Decimal(text)) => is_decimal(text),
        (AttributeType::Float, AttributeValue::Float(number)) => number.is_finite(),
        (AttributeType::Bytes, AttributeValue::Bytes(bytes)) => bytes.len() <= MESSAGE_BYTES_MAX,
        (AttributeType::Boolean, AttributeValue::Boolean(_))
        | (AttributeType::Timestamp, AttributeValue::Timestamp(_)) => true,
        _ => false,
    };
    if fits {
        Ok(())
    } else {
        Err(Fault::new(
            TRANSITION,
            format!(
                "the attribute {name} is no {:?} that can be kept",
                declared.kind
            ),
        ))
    }
}

/// Cancels the open tasks of one state instance, or of all.
pub(super) fn cancel_open_tasks(execution: &mut Execution<'_>, of: Option<StateId>) {
    let open: Vec<_> = execution
        .instance
        .active
        .iter()
        .filter(|state| of.is_none_or(|id| id == state.id))
        .flat_map(|state| {
            state
                .tasks
                .iter()
                .filter(|task| task.status.is_open())
                .map(|task| (state.id, task.id))
        })
        .collect();
    for (state, task) in open {
        execution.emit(Event::TaskCancelled {
            task,
            state,
            reason: None,
        });
    }
}

/// Records the title and the summary if a change of the data or the version has changed them.
pub(super) fn retitle(execution: &mut Execution<'_>) {
    let templates = &execution.context.version.templates;
    let labels = templates.labels(&execution.instance.entity, &execution.instance.data);
    if labels != execution.instance.labels {
        let Labels { title, summary } = labels;
        let before = execution.instance.labels.clone();
        execution.emit(Event::FlowRetitled {
            title,
            summary,
            previous_title: before.title,
            previous_summary: before.summary,
        });
    }
}

fn check_note(note: &Note) -> Result<(), Fault> {
    fault::name(TRANSITION, "the code of a note", &note.code)?;
    let message = "the message of a note";
    fault::text(TRANSITION, message, &note.message, MESSAGE_BYTES_MAX)?;
    let detail = note
        .detail
        .as_ref()
        .map_or(0, |detail| detail.as_str().len());
    if detail > DETAIL_BYTES_MAX {
        let message = format!(
            "the detail of the note {:?} is longer than {DETAIL_BYTES_MAX} bytes",
            note.code
        );
        return Err(Fault::new(TRANSITION, bounded(message)));
    }
    Ok(())
}

fn check_published(event: PublishedEvent) -> Result<Event, Fault> {
    let well_formed = |name: &str| {
        (1..=64).contains(&name.len())
            && name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.chars().all(|c| {
                c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-' | '_')
            })
    };
    if !well_formed(&event.name) {
        let message = format!(
            "an event's name is 1 to 64 of a-z, 0-9, '.', '-' and '_', not {:?}",
            event.name
        );
        return Err(Fault::new(TRANSITION, bounded(message)));
    }
    if event.data.len() > PUBLISHED_BYTES_MAX {
        return Err(Fault::new(
            TRANSITION,
            format!(
                "the data of event {} is longer than {PUBLISHED_BYTES_MAX} bytes",
                event.name
            ),
        ));
    }
    let data = Json::parse(&event.data).map_err(|error| {
        Fault::new(
            TRANSITION,
            format!("the data of event {} has {error}", event.name),
        )
    })?;
    Ok(Event::Custom {
        name: event.name,
        data,
    })
}
