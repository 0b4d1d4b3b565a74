//! What the host alone judges of starts and decisions, before flow logic is asked. No plugin can loosen it.
//!
//! Who may work in a stay, and for whom, stands in `standing`; how tasks change hands in `hands`.

use super::standing::Place;
use super::{After, Context, Deciding, Moving, Phase, effort};
use crate::domain::actor::Actor;
use crate::domain::answer::Violation;
use crate::domain::graph::FiredBy;
use crate::domain::ids::TaskId;
use crate::domain::instance::{Instance, StateInstance, Status, Task, TaskStatus};
use crate::domain::json::Json;
use crate::domain::question::{Occurrence, Source};
use crate::domain::rejection::{Rejection, Winner};
use crate::domain::schema::Schema;
use crate::domain::shown;

pub(super) fn may_start(context: Context<'_>, data: &Json) -> Result<(), Rejection> {
    let initiators = &context.version.graph.initiators;
    // A child is started by the host, for whoever may start its parent.
    if !context.actor.is_host()
        && !initiators.is_empty()
        && !initiators.iter().any(|group| context.actor.is_in(group))
    {
        let message = format!(
            "only members of {} may start {}",
            initiators.join(", "),
            context.version.reference.key
        );
        return Err(Rejection::forbidden("not_an_initiator", message));
    }
    match &context.version.schema {
        Some(schema) => satisfies(schema, "/data", data),
        None => Ok(()),
    }
}

/// Who starts the instance, as flow logic is told. The host starts children: in the initiator's name, but with no group
/// and no permission, since nobody acts.
pub(super) fn starter(context: Context<'_>, initiator: &str) -> Actor {
    if !context.actor.is_host() {
        return context.actor.clone();
    }
    Actor {
        id: initiator.to_owned(),
        ..Actor::host()
    }
}

/// The question to the guard that a decision begins with.
pub(super) fn may_decide(
    context: Context<'_>,
    instance: &Instance,
    mut deciding: Deciding,
) -> Result<Phase, Rejection> {
    let (stay, task) = open(instance, deciding.task)?;
    let place = Place {
        context,
        instance,
        stay,
    };
    deciding.on_behalf_of = place.acting_for(task, "decide")?;
    may_trigger(context, stay, &deciding.outcome)?;
    let comment = deciding.comment.as_deref();
    shown::check_decision(instance, comment, deciding.input.as_str())?;
    if let Some(form) = &task.form {
        let schema = effort::form(form).expect("forms are compiled when they are offered");
        satisfies(&schema, "/input", &deciding.input)?;
    }
    let occurrence = Occurrence {
        state_instance: Some(stay.id.to_string()),
        trigger: deciding.outcome.clone(),
        source: Source::Task {
            task: deciding.task.to_string(),
            actor: Actor {
                on_behalf_of: deciding.on_behalf_of.clone(),
                ..context.actor.clone()
            },
            comment: deciding.comment.clone(),
        },
        input: deciding.input.clone(),
    };
    Ok(Phase::Guard(
        occurrence,
        After::Transition(Moving {
            state: stay.id,
            decision: Some(deciding),
        }),
    ))
}

/// The open task of this id; otherwise who ended it, or the instance.
pub(super) fn open(instance: &Instance, id: TaskId) -> Result<(&StateInstance, &Task), Rejection> {
    if let Some(found) = instance
        .open_task(id)
        .filter(|(_, task)| task.status.is_open())
    {
        return Ok(found);
    }
    let winner = |action, by, at, outcome| {
        Err(Rejection::Taken(Winner {
            task: id,
            action,
            by,
            at,
            outcome,
            revision: instance.revision,
        }))
    };
    match instance.task(id).map(|task| &task.status) {
        Some(TaskStatus::Completed { decision, .. }) => winner(
            "decided",
            Some(decision.actor.clone()),
            decision.decided_at,
            Some(decision.outcome.clone()),
        ),
        Some(TaskStatus::Cancelled { cancelled_at, .. }) => {
            let by = match &instance.status {
                Status::Cancelled { by, .. } => Some(by.clone()),
                _ => None,
            };
            winner("cancelled", by, *cancelled_at, None)
        }
        Some(TaskStatus::Pending | TaskStatus::Claimed { .. }) | None => {
            let at = instance.status.ended_at().unwrap_or(instance.updated_at);
            Err(Rejection::ended(instance, at))
        }
    }
}

fn may_trigger(context: Context<'_>, stay: &StateInstance, outcome: &str) -> Result<(), Rejection> {
    let graph = &context.version.graph;
    let by_decision = |by: &[FiredBy]| by.contains(&FiredBy::Decision);
    let Some(transition) = graph
        .transition(&stay.name, outcome)
        .filter(|transition| by_decision(&transition.by))
    else {
        let offered: Vec<_> = graph
            .leaving(&stay.name)
            .filter(|way| by_decision(&way.by))
            .map(|way| way.trigger.as_str())
            .collect();
        let message = format!(
            "{} takes one of the outcomes {}",
            stay.name,
            offered.join(", ")
        );
        return Err(Rejection::invalid("/outcome", "unknown_outcome", message));
    };
    match &transition.permission {
        Some(permission) if !context.actor.may(permission) => Err(Rejection::forbidden(
            "permission_missing",
            format!(
                "{outcome} in {} needs the permission {permission}",
                stay.name
            ),
        )),
        Some(_) | None => Ok(()),
    }
}

pub(super) fn satisfies(schema: &Schema, below: &str, document: &Json) -> Result<(), Rejection> {
    let violations = schema.violations(document);
    if violations.is_empty() {
        return Ok(());
    }
    let placed = |violation: Violation| Violation {
        field: format!("{below}{}", violation.field),
        ..violation
    };
    Err(Rejection::Invalid(
        violations.into_iter().map(placed).collect(),
    ))
}
