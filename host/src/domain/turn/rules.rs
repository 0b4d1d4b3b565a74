//! What the host alone judges, before flow logic is asked. No plugin can loosen it.

use super::{After, Context, Deciding, Moving, Phase};
use crate::domain::actor::Actor;
use crate::domain::answer::{Principal, Violation};
use crate::domain::graph::{FiredBy, State};
use crate::domain::ids::{StateId, TaskId};
use crate::domain::instance::{Instance, StateInstance, Status, Task, TaskStatus};
use crate::domain::json::Json;
use crate::domain::question::{Occurrence, Source};
use crate::domain::rejection::{Rejection, Winner};
use crate::domain::schema::Schema;

pub(super) fn may_start(context: Context<'_>, data: &Json) -> Result<(), Rejection> {
    let initiators = &context.version.graph.initiators;
    if !initiators.is_empty() && !initiators.iter().any(|group| context.actor.is_in(group)) {
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

pub(super) fn may_claim(
    context: Context<'_>,
    instance: &Instance,
    id: TaskId,
) -> Result<StateId, Rejection> {
    let (stay, task) = open(instance, id)?;
    may_work(context, instance, stay)?;
    if !is_candidate(context.actor, task) {
        let message = format!(
            "{} is not among the candidates of this task: {}",
            context.actor.id,
            candidates(task)
        );
        return Err(Rejection::forbidden("not_a_candidate", message));
    }
    match &task.status {
        TaskStatus::Claimed {
            owner, claimed_at, ..
        } => Err(Rejection::Taken(Winner {
            task: id,
            action: "claimed",
            by: Some(owner.clone()),
            at: *claimed_at,
            outcome: None,
        })),
        TaskStatus::Pending | TaskStatus::Completed { .. } | TaskStatus::Cancelled { .. } => {
            Ok(stay.id)
        }
    }
}

pub(super) fn may_release(
    context: Context<'_>,
    instance: &Instance,
    id: TaskId,
) -> Result<StateId, Rejection> {
    let (stay, task) = open(instance, id)?;
    is_owner(context.actor, task, "release")?;
    Ok(stay.id)
}

pub(super) fn may_cancel(instance: &Instance) -> Result<(), Rejection> {
    match instance.status.ended_at() {
        Some(at) => Err(Rejection::Ended {
            id: instance.id,
            status: instance.status.name(),
            at,
        }),
        None => Ok(()),
    }
}

/// The question to the guard that a decision begins with.
pub(super) fn may_decide(
    context: Context<'_>,
    instance: &Instance,
    deciding: Deciding,
) -> Result<Phase, Rejection> {
    let (stay, task) = open(instance, deciding.task)?;
    may_work(context, instance, stay)?;
    is_owner(context.actor, task, "decide")?;
    may_trigger(context, stay, &deciding.outcome)?;
    if let Some(form) = &task.form {
        let schema = Schema::compile(form).expect("forms are compiled when they are offered");
        satisfies(&schema, "/input", &deciding.input)?;
    }
    let occurrence = Occurrence {
        state_instance: Some(stay.id.to_string()),
        trigger: deciding.outcome.clone(),
        source: Source::Task {
            task: deciding.task.to_string(),
            actor: context.actor.clone(),
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
fn open(instance: &Instance, id: TaskId) -> Result<(&StateInstance, &Task), Rejection> {
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
            Err(Rejection::Ended {
                id: instance.id,
                status: instance.status.name(),
                at,
            })
        }
    }
}

fn declared<'a>(context: Context<'a>, stay: &StateInstance) -> &'a State {
    context
        .version
        .graph
        .state(&stay.name)
        .expect("stays are in declared states")
}

/// Nobody works on their own request, on what they are excluded from, or twice in one stay.
fn may_work(
    context: Context<'_>,
    instance: &Instance,
    stay: &StateInstance,
) -> Result<(), Rejection> {
    let id = &context.actor.id;
    if instance.requesters.contains(id) && !declared(context, stay).own_work {
        let message = format!(
            "{id} requested this instance and does not work on it in {}",
            stay.name
        );
        return Err(Rejection::forbidden("own_request", message));
    }
    if stay.exclude.contains(id) {
        return Err(Rejection::forbidden(
            "excluded",
            format!("{id} is excluded from work in {}", stay.name),
        ));
    }
    let decided = |task: &Task| {
        task.decision()
            .is_some_and(|decision| decision.actor == *id)
    };
    if stay.tasks.iter().any(decided) {
        return Err(Rejection::forbidden(
            "already_decided",
            format!("{id} has already decided in {}", stay.name),
        ));
    }
    Ok(())
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

fn is_owner(actor: &Actor, task: &Task, what: &str) -> Result<(), Rejection> {
    match task.owner() {
        Some(owner) if owner == actor.id => Ok(()),
        Some(owner) => Err(Rejection::forbidden(
            "not_owner",
            format!("only its owner {owner} may {what} this task"),
        )),
        None => Err(Rejection::forbidden(
            "not_owner",
            format!("nobody owns this task; claim it before you {what} it"),
        )),
    }
}

fn is_candidate(actor: &Actor, task: &Task) -> bool {
    task.candidates.iter().any(|candidate| match candidate {
        Principal::User(id) => *id == actor.id,
        Principal::Group(id) => actor.is_in(id),
        Principal::ManagerOf(_) => false,
    })
}

fn candidates(task: &Task) -> String {
    let name = |principal: &Principal| match principal {
        Principal::User(id) => format!("user {id}"),
        Principal::Group(id) => format!("group {id}"),
        Principal::ManagerOf(id) => format!("the manager of {id}"),
    };
    task.candidates
        .iter()
        .map(name)
        .collect::<Vec<_>>()
        .join(", ")
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
