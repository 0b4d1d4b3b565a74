//! How an instance begins: its first event, where it comes from, and the question to the guard.

use std::collections::VecDeque;

use uuid::Uuid;

use super::{After, Context, Entry, Phase, START, Turn, TurnError, rules};
use crate::domain::apply::{Stamp, apply};
use crate::domain::command::Command;
use crate::domain::event::Event;
use crate::domain::ids::InstanceId;
use crate::domain::json::Json;
use crate::domain::question::{Occurrence, Source};

impl<'a> Turn<'a> {
    pub(super) fn start(
        context: Context<'a>,
        command: &Command,
        ids: &'a mut (dyn FnMut() -> Uuid + Send),
    ) -> Result<Turn<'a>, TurnError> {
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
        let event = Event::FlowStarted {
            definition: context.version.reference.clone(),
            entity: entity.clone(),
            initiator: initiator.clone(),
            requesters,
            predecessor: lineage.and_then(|lineage| lineage.predecessor),
            parent: lineage.and_then(|lineage| lineage.parent),
            data: data.clone(),
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
            instance = apply(Some(instance), &event, stamp).expect("it goes on");
            events.push(event);
        }
        let proposed = Occurrence {
            state_instance: None,
            trigger: START.to_owned(),
            source: Source::Start(rules::starter(context, initiator)),
            input: Json::empty(),
        };
        let initial = Entry {
            name: context.version.graph.initial.clone(),
            predecessors: Vec::new(),
            by: None,
            forks: Vec::new(),
            choices: 0,
        };
        Ok(Turn {
            context,
            ids,
            instance,
            revision: 1,
            events,
            phase: Phase::Guard(proposed, After::Enter),
            entering: VecDeque::from([initial]),
            beginning: VecDeque::new(),
            doubts: VecDeque::new(),
            migration: None,
            router_steps: 0,
            is_early: false,
            adds: true,
        })
    }
}
