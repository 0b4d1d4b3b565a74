//! The start of an instance: its first events and the question to flow logic whether the person may start.

use super::{Context, Execution, ExecutionError, Ids, Pending, Phase, rules};
use crate::apply::{Stamp, apply};
use crate::command::Command;
use crate::event::Event;
use crate::ids::InstanceId;

pub(super) fn begin<'a>(
    context: Context<'a>,
    command: &Command,
    ids: &'a mut Ids<'a>,
) -> Result<Execution<'a>, ExecutionError> {
    let Command::Start {
        entity,
        data,
        lineage,
        ..
    } = command
    else {
        unreachable!("only a start has no instance")
    };
    rules::may_start(context, data)?;
    let lineage = lineage.as_deref();
    let initiator = lineage.and_then(|lineage| lineage.initiator.as_ref());
    let initiator = initiator.unwrap_or(&context.actor.id);
    let mut requesters = vec![initiator.clone()];
    for inherited in lineage.iter().flat_map(|lineage| &lineage.requesters) {
        if !requesters.contains(inherited) {
            requesters.push(inherited.clone());
        }
    }
    let labels = context.version.templates.labels(entity, data);
    let event = Event::FlowStarted {
        definition: context.version.reference.clone(),
        entity: entity.clone(),
        initiator: initiator.clone(),
        requesters,
        predecessor: lineage.and_then(|lineage| lineage.predecessor),
        parent: lineage.and_then(|lineage| lineage.parent),
        data: data.clone(),
        title: labels.title,
        summary: labels.summary,
        sole: context.version.graph.sole_per_entity,
        observers: context.version.graph.observers.clone(),
    };
    let chosen = lineage.and_then(|lineage| lineage.id);
    let stamp = Stamp {
        instance: chosen.unwrap_or_else(|| InstanceId(ids())),
        revision: 1,
        at: context.now,
        actor: context.by(),
    };
    let mut instance = apply(None, &event, stamp).expect("a start begins an instance");
    let mut events = vec![event];
    if let Some(predecessor) = instance.predecessor {
        let event = Event::FlowRestarted { predecessor };
        instance = apply(Some(instance), &event, stamp).expect("a restart follows a start");
        events.push(event);
    }
    let initial = Pending {
        name: context.version.graph.initial.clone(),
        predecessors: Vec::new(),
        by: None,
        forks: Vec::new(),
        choices: 0,
        key: None,
        data: None,
    };
    let mut execution = Execution::new(context, instance, 1, ids);
    execution.events = events;
    execution.phase = Phase::Start(rules::starter(context, initiator));
    execution.entering.push_back(initial);
    Ok(execution)
}
