//! The host's rules for starts, claims and decisions. The host checks them before it calls flow logic, and flow logic cannot override them.
//!
//! `eligibility` has the rules about who may work in a state instance, and for whom. `ownership` has the rules for releases,
//! delegations and the commands of operators on tasks, and `suspension` those for suspended tasks.

use super::eligibility::Workplace;
use super::{Context, Deciding, Execution, ExecutionError, Moving, Phase, effort};
use crate::actor::Actor;
use crate::answer::Violation;
use crate::command::Command;
use crate::event::Event;
use crate::graph::{CommentRule, FiredBy, Transition};
use crate::ids::TaskId;
use crate::instance::{Instance, StateInstance, Status, Task, TaskStatus};
use crate::json::Json;
use crate::question::{Occurrence, Source};
use crate::rejection::{Rejection, Winner};
use crate::schema::Schema;
use crate::shown;

/// Refuses a start by a person outside the groups of initiators, or with data that does not satisfy the schema.
pub(super) fn may_start(context: Context<'_>, data: &Json) -> Result<(), Rejection> {
    let initiators = &context.version.graph.initiators;
    // The host starts children. The initiator was checked when the parent started.
    if !context.actor.is_host()
        && !initiators.is_empty()
        && !initiators.iter().any(|group| context.actor.is_in(group))
    {
        let key = &context.version.reference.key;
        let message = match initiators.as_slice() {
            [group] => format!(
                "only members of the group {group} may start {key}; GET /v1/groups/{group} shows them"
            ),
            groups => format!(
                "only members of the groups {} may start {key}; GET /v1/groups/{{id}} shows those of each",
                groups.join(", ")
            ),
        };
        return Err(Rejection::forbidden("not_an_initiator", message));
    }
    match &context.version.schema {
        Some(schema) => satisfies(schema, "/data", data),
        None => Ok(()),
    }
}

/// The actor of a start in the facts for flow logic. For a child, which the host starts, this is the initiator without groups
/// or permissions.
pub(super) fn starter(context: Context<'_>, initiator: &str) -> Actor {
    if !context.actor.is_host() {
        return context.actor.clone();
    }
    Actor {
        id: initiator.to_owned(),
        ..Actor::host()
    }
}

/// Whether the command may enlarge the facts for flow logic. The commands below add little or nothing, so they are never
/// refused for the size.
pub(super) fn may_enlarge(command: &Command) -> bool {
    !matches!(
        command,
        Command::Release { .. }
            | Command::Resolve { .. }
            | Command::Reset { .. }
            | Command::ResumeTask { .. }
            | Command::Comment { .. }
            | Command::Cancel { .. }
            | Command::Suspend { .. }
            | Command::Resume { .. }
            | Command::Reassessment { .. }
    )
}

/// Refuses commands on a suspended instance, except to comment on it, cancel, resume or migrate it. A reassessment is allowed, too, but
/// does nothing while the instance is suspended.
pub(super) fn not_suspended(instance: &Instance, command: &Command) -> Result<(), Rejection> {
    match (&instance.status, command) {
        (
            _,
            Command::Cancel { .. }
            | Command::Comment { .. }
            | Command::Resume { .. }
            | Command::Migrate { .. }
            | Command::Reassessment { .. },
        ) => Ok(()),
        (Status::Suspended { reason, by, at }, _) => Err(Rejection::Suspended {
            id: instance.id,
            reason: reason.clone(),
            by: by.clone(),
            at: *at,
            revision: instance.revision,
        }),
        _ => Ok(()),
    }
}

/// Refuses work on a suspended task.
pub(super) fn task_not_suspended(instance: &Instance, task: &Task) -> Result<(), Rejection> {
    match &task.suspended {
        None => Ok(()),
        Some(suspension) => Err(Rejection::TaskSuspended {
            task: task.id,
            suspension: suspension.clone(),
            revision: instance.revision,
        }),
    }
}

/// The event of a claim by the actor, with no deadlines yet.
pub(super) fn claim_event(place: Workplace<'_>, task: &Task) -> Result<Event, Rejection> {
    let on_behalf_of = place.claimed_for(task)?;
    if let TaskStatus::Claimed {
        owner, claimed_at, ..
    } = &task.status
    {
        let winner = Winner {
            task: task.id,
            action: "claimed",
            by: Some(owner.clone()),
            at: *claimed_at,
            outcome: None,
            revision: place.instance.revision,
        };
        return Err(Rejection::Taken(winner));
    }
    task_not_suspended(place.instance, task)?;
    Ok(Event::TaskClaimed {
        task: task.id,
        state: place.state_instance.id,
        owner: place.context.actor.id.clone(),
        on_behalf_of,
        deadlines: Vec::new(),
    })
}

/// A decision on a task without an owner claims it first. The rules of a claim apply, and both are recorded. No deadline
/// counts from this claim, since the decision ends the task.
pub(super) fn claim_if_pending(
    execution: &mut Execution<'_>,
    id: TaskId,
) -> Result<(), ExecutionError> {
    let (place, task) = workplace(execution.context, &execution.instance, id)?;
    if task.status == TaskStatus::Pending {
        let claim = claim_event(place, task)?;
        execution.emit(claim);
    }
    Ok(())
}

/// The open task and where it is.
pub(super) fn workplace<'a>(
    context: Context<'a>,
    instance: &'a Instance,
    id: TaskId,
) -> Result<(Workplace<'a>, &'a Task), Rejection> {
    let (state_instance, task) = open(instance, id)?;
    let place = Workplace {
        context,
        instance,
        state_instance,
    };
    Ok((place, task))
}

/// Checks a decision, and returns the question to `transition` about it.
pub(super) fn may_decide(
    context: Context<'_>,
    instance: &Instance,
    mut deciding: Deciding,
) -> Result<Phase, Rejection> {
    let (place, task) = workplace(context, instance, deciding.task)?;
    let state_instance = place.state_instance;
    deciding.on_behalf_of = place.acting_for(task, "decide")?;
    task_not_suspended(instance, task)?;
    let transition = may_trigger(context, state_instance, &deciding.outcome)?;
    let comment = deciding.comment.as_deref();
    shown::check_decision(instance, comment, deciding.input.as_str())?;
    let mut violations: Vec<_> = comment_violation(transition, comment).into_iter().collect();
    violations.extend(input_violations(transition, &deciding.input));
    if !violations.is_empty() {
        return Err(Rejection::Invalid(violations));
    }
    let occurrence = Occurrence {
        state_instance: state_instance.id.to_string(),
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
    let moving = Moving {
        state: state_instance.id,
        decision: Some(deciding),
    };
    Ok(Phase::Transition(occurrence.into(), moving))
}

/// The open task of this id. The error says who ended the task or the instance.
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
        Some(TaskStatus::Completed { decision, .. }) if is_hidden(instance, id) => {
            winner("decided", None, decision.decided_at, None)
        }
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

/// Whether the decision on the task is hidden, because its blind state is active.
fn is_hidden(instance: &Instance, id: TaskId) -> bool {
    let found = instance.open_task(id);
    found.is_some_and(|(state_instance, _)| state_instance.blind)
}

/// The transition that a decision fires.
fn may_trigger<'a>(
    context: Context<'a>,
    state_instance: &StateInstance,
    outcome: &str,
) -> Result<&'a Transition, Rejection> {
    let graph = &context.version.graph;
    let by_decision = |by: &[FiredBy]| by.contains(&FiredBy::Decision);
    let Some(transition) = graph
        .transition(&state_instance.name, outcome)
        .filter(|transition| by_decision(&transition.by))
    else {
        let offered: Vec<_> = graph
            .leaving(&state_instance.name)
            .filter(|way| by_decision(&way.by))
            .map(|way| way.trigger.as_str())
            .collect();
        let message = format!(
            "{} takes one of the outcomes {}",
            state_instance.name,
            offered.join(", ")
        );
        return Err(Rejection::invalid("/outcome", "unknown_outcome", message));
    };
    match &transition.permission {
        Some(permission) if !context.actor.may(permission) => Err(Rejection::forbidden(
            "permission_missing",
            format!(
                "{outcome} in {} needs the permission {permission}",
                state_instance.name
            ),
        )),
        Some(_) | None => Ok(transition),
    }
}

/// The violation of the transition's rule by the comment of a decision.
fn comment_violation(transition: &Transition, comment: Option<&str>) -> Option<Violation> {
    let is_blank = comment.is_none_or(|comment| comment.trim().is_empty());
    let (code, message) = match transition.comment {
        CommentRule::Required if is_blank => ("required", "needs a comment"),
        CommentRule::None if !is_blank => ("not_taken", "takes no comment"),
        CommentRule::Required | CommentRule::None | CommentRule::Optional => return None,
    };
    Some(Violation {
        expected: (code == "required").then(|| Json::of(&true)),
        field: "/comment".into(),
        code: code.into(),
        message: format!("{} {message}", transition.trigger),
    })
}

/// The violations of the transition's schema by the input of a decision or signal.
pub(super) fn input_violations(transition: &Transition, input: &Json) -> Vec<Violation> {
    let Some(schema) = &transition.input else {
        return Vec::new();
    };
    let schema =
        effort::input_schema(schema).expect("schemas are compiled when they are published");
    violations(&schema, "/input", input)
}

/// Refuses a document that violates the schema. `below` is the pointer to the document.
pub(super) fn satisfies(schema: &Schema, below: &str, document: &Json) -> Result<(), Rejection> {
    let violations = violations(schema, below, document);
    if violations.is_empty() {
        return Ok(());
    }
    Err(Rejection::Invalid(violations))
}

fn violations(schema: &Schema, below: &str, document: &Json) -> Vec<Violation> {
    let placed = |violation: Violation| Violation {
        field: format!("{below}{}", violation.field),
        ..violation
    };
    let found = schema.violations(document);
    found.into_iter().map(placed).collect()
}
