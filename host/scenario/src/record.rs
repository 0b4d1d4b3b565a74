//! Makes a scenario of a recorded instance: its audit has every command, who was in which group, and what followed.
//!
//! Each command becomes a step. What the directory told becomes the groups and managers of the scenario; where it told something
//! else later, a step says so. Nothing of people or their texts is written unless the [`Rules`] keep it.

mod people;
mod redact;

use jiff::Timestamp;
use serde::Deserialize;

use wrkflw_core::actor::Actor;
use wrkflw_core::apply::{Stamp, apply};
use wrkflw_core::command::Command;
use wrkflw_core::event::Event;
use wrkflw_core::ids::{CommandId, InstanceId, TaskId};
use wrkflw_core::instance::{Instance, StateInstance, Task};
use wrkflw_core::json::{Json, Node};
use wrkflw_core::lookup::{Findings, Lookup};

use self::people::{Change, Timeline};
use self::redact::Redactor;
pub use self::redact::Rules;
use crate::file::STEPS_MAX;
use crate::seen::{self, object, text};
use crate::write::yaml;

/// Events that a scenario expects besides what they change.
const NOTABLE: [&str; 4] = [
    "TASK_REMINDED",
    "TASK_ESCALATED",
    "TRIGGER_REFUSED",
    "STATE_UNASSIGNABLE",
];
/// The modelled members of a task that a scenario expects.
const OF_TASKS: [&str; 4] = ["label", "in", "for", "owner"];

/// An entry of an instance's audit, as the API shows it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    revision: u32,
    command_id: CommandId,
    actor: Option<String>,
    payload: Event,
    /// On the first entry of a command.
    evidence: Option<Evidence>,
    occurred_at: Timestamp,
}

/// The inputs of a command.
#[derive(Debug, Deserialize)]
pub struct Evidence {
    command: Command,
    actor: Actor,
    now: Timestamp,
    definition: String,
    #[serde(default)]
    lookups: Vec<Looked>,
}

#[derive(Debug, Deserialize)]
struct Looked {
    asked: Lookup,
    found: Findings,
}

/// A command with the instance before and after it.
struct Recorded {
    evidence: Evidence,
    events: Vec<Event>,
    before: Option<Instance>,
    after: Instance,
}

/// A scenario that was made of an instance.
#[derive(Debug)]
pub struct Made {
    /// The text of the file.
    pub yaml: String,
    /// The key of its definition.
    pub definition: String,
    pub steps: usize,
    /// What was kept of people and texts, for whoever passes it on.
    pub kept: Vec<String>,
}

/// The text of a scenario. `config` is that of the instance's version. The error says what a scenario cannot have.
pub fn record(
    id: InstanceId,
    entries: Vec<Entry>,
    config: &Json,
    rules: &Rules,
) -> Result<Made, String> {
    let commands = commands(id, entries)?;
    let first = commands.first().ok_or("the instance has no audit")?;
    let (begins, definition) = (first.evidence.now, first.evidence.definition.clone());
    let mut timeline = Timeline::of(&commands);
    let mut redactor = Redactor::new(rules, people::all(&commands));
    let mut steps: Vec<Node> = Vec::new();
    let mut index = 0;
    while index < commands.len() {
        let recorded = &commands[index];
        let changes = timeline.changes_before(index);
        let mut events: Vec<&Event> = recorded.events.iter().collect();
        let mut last = recorded;
        // Deadlines that pass one after the other pass in one step: a scenario passes them all, and the host may have been late.
        if matches!(recorded.evidence.command, Command::Deadline { .. }) {
            while let Some(next) = commands.get(index + 1) {
                if !matches!(next.evidence.command, Command::Deadline { .. }) {
                    break;
                }
                events.extend(&next.events);
                (last, index) = (next, index + 1);
            }
        }
        let at = ("at", text(&last.evidence.now.to_string()));
        let expect = expected(&mut redactor, &last.after, &events);
        let mut written = changed(&mut redactor, &changes);
        if let Some(happened) = step(&mut redactor, recorded)? {
            written.push(happened);
        }
        let count = written.len();
        for (place, mut members) in written.into_iter().enumerate() {
            if place == 0 && !steps.is_empty() {
                members.push(at.clone());
            }
            if place + 1 == count {
                members.push(("expect", expect.clone()));
            }
            steps.push(object(members));
        }
        index += 1;
    }
    if steps.len() > STEPS_MAX {
        return Err(format!("it has more than {STEPS_MAX} steps"));
    }
    let count = steps.len();
    let mut members = vec![
        ("definition", text(&definition)),
        ("config", redactor.config(config)),
        ("now", text(&begins.to_string())),
        ("steps", Node::Array(steps)),
    ];
    members.extend(timeline.initial(&mut redactor));
    Ok(Made {
        yaml: yaml(&object(members)),
        definition,
        steps: count,
        kept: redactor.kept(),
    })
}

/// The commands of the entries, with the instance folded along.
fn commands(id: InstanceId, entries: Vec<Entry>) -> Result<Vec<Recorded>, String> {
    let mut commands: Vec<Recorded> = Vec::new();
    let mut instance: Option<Instance> = None;
    let mut last = None;
    for entry in entries {
        let stamp = Stamp {
            instance: id,
            revision: entry.revision,
            at: entry.occurred_at,
            actor: entry.actor.as_deref(),
        };
        let before = instance.clone();
        let after = apply(instance, &entry.payload, stamp).map_err(|error| error.to_string())?;
        instance = Some(after.clone());
        match (last == Some(entry.command_id), commands.last_mut()) {
            (true, Some(command)) => {
                command.events.push(entry.payload);
                command.after = after;
            }
            _ => {
                let evidence = entry.evidence.ok_or("an entry lacks its evidence")?;
                last = Some(entry.command_id);
                commands.push(Recorded {
                    evidence,
                    events: vec![entry.payload],
                    before,
                    after,
                });
            }
        }
    }
    Ok(commands)
}

type Members = Vec<(&'static str, Node)>;

/// Steps for changes of the directory.
fn changed(redactor: &mut Redactor<'_>, changes: &[Change]) -> Vec<Members> {
    let one = |name: &str, value: Node| Node::Object([(name.to_owned(), value)].into());
    let steps = changes.iter().map(|change| match change {
        Change::Joins { group, person } => {
            let person = Node::Array(vec![text(&redactor.person(person))]);
            vec![("join", one(group, person))]
        }
        Change::Leaves { group, person } => {
            let person = Node::Array(vec![text(&redactor.person(person))]);
            vec![("leave", one(group, person))]
        }
        Change::Manager { person, manager } => {
            let manager = manager
                .as_ref()
                .map_or(Node::Null, |one| text(&redactor.person(one)));
            vec![("manager", one(&redactor.person(person), manager))]
        }
    });
    steps.collect()
}

/// The step of a command; none for what a scenario does by itself.
fn step(redactor: &mut Redactor<'_>, recorded: &Recorded) -> Result<Option<Members>, String> {
    let Recorded {
        evidence,
        events,
        before,
        after,
    } = recorded;
    let by = ("by", text(&redactor.person(&evidence.actor.id)));
    let mut members: Members = Vec::new();
    match &evidence.command {
        Command::Start {
            entity,
            data,
            lineage,
            ..
        } => {
            let requesters = after
                .requesters
                .iter()
                .filter(|one| **one != after.initiator);
            let requesters: Vec<_> = requesters.map(|one| text(&redactor.person(one))).collect();
            if lineage
                .as_ref()
                .is_some_and(|lineage| lineage.parent.is_some())
            {
                return Err(
                    "it is the child of another instance, which a scenario cannot start".into(),
                );
            }
            let entity = format!("{}/{}", entity.kind, redactor.entity(&entity.id));
            members.push(("start", redactor.data(data)));
            members.push(("by", text(&redactor.person(&after.initiator))));
            members.push(("entity", text(&entity)));
            if !requesters.is_empty() {
                members.push(("requesters", Node::Array(requesters)));
            }
            return Ok(Some(members));
        }
        Command::Decide {
            task,
            outcome,
            comment,
            input,
        } => {
            members.push(("decide", text(outcome)));
            members.extend(which(redactor, before.as_ref(), *task, None));
            members.extend(absent(redactor, evidence, events));
            if let Some(comment) = comment {
                members.push(("comment", text(&redactor.comment(comment))));
            }
            if *input != Json::empty() {
                members.push(("input", redactor.data(input)));
            }
        }
        Command::Claim { task } => {
            members.extend(which(redactor, before.as_ref(), *task, Some("claim")));
            members.extend(absent(redactor, evidence, events));
        }
        Command::Release { task } => {
            members.extend(which(redactor, before.as_ref(), *task, Some("release")))
        }
        Command::Resolve { task } => {
            members.extend(which(redactor, before.as_ref(), *task, Some("resolve")))
        }
        Command::ResumeTask { task } => {
            members.extend(which(redactor, before.as_ref(), *task, Some("resumeTask")))
        }
        Command::Reset { task, .. } => {
            members.extend(which(redactor, before.as_ref(), *task, Some("reset")))
        }
        Command::Delegate { task, to, .. } => {
            members.extend(which(redactor, before.as_ref(), *task, Some("delegate")));
            members.push(("to", text(&redactor.person(to))));
        }
        Command::Reassign { task, to, .. } => {
            members.extend(which(redactor, before.as_ref(), *task, Some("reassign")));
            members.push(("to", text(&redactor.person(to))));
        }
        Command::SuspendTask { task, until, .. } => {
            members.extend(which(redactor, before.as_ref(), *task, Some("suspendTask")));
            members.extend(until.map(|until| ("until", text(&until.to_string()))));
        }
        Command::Signal {
            trigger,
            id,
            input,
            correlation,
            ..
        } => {
            members.push(("signal", text(trigger)));
            members.push(("id", text(&redactor.text(id))));
            if *input != Json::empty() {
                members.push(("input", redactor.data(input)));
            }
            let correlation = correlation.as_ref().map(|key| text(&redactor.entity(key)));
            members.extend(correlation.map(|key| ("correlation", key)));
        }
        Command::Cancel { .. } => members.push(("cancel", text("-"))),
        Command::Suspend { .. } => members.push(("suspend", text("-"))),
        Command::Resume { .. } => members.push(("resume", Node::Bool(true))),
        Command::ChildEnded {
            child,
            outcome,
            data,
            ..
        } => {
            let states = before.iter().flat_map(Instance::state_instances);
            let mut children = states.flat_map(|state| &state.children);
            let key = children
                .find(|one| one.id == *child)
                .map(|one| one.key.clone());
            members.push(("child", text(&key.unwrap_or_default())));
            members.push(("outcome", text(outcome)));
            if *data != Json::empty() {
                members.push(("input", redactor.data(data)));
            }
            return Ok(Some(members));
        }
        // Time passes, and the host does the rest.
        Command::Deadline { .. } => return Ok(Some(members)),
        // It follows from a change of the directory.
        Command::Reassessment { .. } => return Ok(None),
        Command::Migrate { .. } => {
            return Err("it was migrated to another version, which a scenario cannot do".into());
        }
    }
    members.push(by);
    Ok(Some(members))
}

/// What names the task: under `verb`, its label where there are several, or `true`; with its state and item where these differ.
fn which(
    redactor: &mut Redactor<'_>,
    before: Option<&Instance>,
    id: TaskId,
    verb: Option<&'static str>,
) -> Members {
    let open: Vec<(&StateInstance, &Task)> = before
        .iter()
        .flat_map(|instance| &instance.active)
        .flat_map(|state| state.tasks.iter().map(move |task| (state, task)))
        .filter(|(_, task)| task.status.is_open())
        .collect();
    let only = verb.map(|verb| (verb, Node::Bool(true)));
    let Some((state, task)) = open.iter().find(|(_, task)| task.id == id) else {
        return only.into_iter().collect();
    };
    let label = text(&redactor.name(&task.label));
    let labels_differ = open.iter().any(|(_, other)| other.label != task.label);
    let mut members: Members = match verb {
        Some(verb) if labels_differ => vec![(verb, label)],
        None if labels_differ => vec![("task", label)],
        _ => only.into_iter().collect(),
    };
    if open.iter().any(|(other, _)| other.name != state.name) {
        members.push(("in", text(&state.name)));
    }
    if open.iter().any(|(other, _)| other.key != state.key) {
        let key = state.key.as_ref().map(|key| text(key));
        members.extend(key.map(|key| ("item", key)));
    }
    members
}

/// The absent person for whom the actor claims or decides.
fn absent(
    redactor: &mut Redactor<'_>,
    evidence: &Evidence,
    events: &[Event],
) -> Option<(&'static str, Node)> {
    let mut acted_for = events.iter().filter_map(|event| match event {
        Event::TaskClaimed { on_behalf_of, .. } | Event::DecisionRecorded { on_behalf_of, .. } => {
            on_behalf_of.as_ref()
        }
        _ => None,
    });
    let absent = acted_for.find(|person| {
        let stand_ins = &evidence.actor.stands_in_for;
        stand_ins.iter().any(|one| one.person == **person)
    });
    absent.map(|person| ("for", text(&redactor.person(person))))
}

/// What the instance is after a command.
fn expected(redactor: &mut Redactor<'_>, after: &Instance, events: &[&Event]) -> Node {
    let events: Vec<Event> = events.iter().map(|event| (*event).clone()).collect();
    let mut members: Members = seen::of_instance(after)
        .into_iter()
        .filter(|(name, _)| ["outcome", "states", "waiting", "unassignable"].contains(name))
        .filter(|(name, value)| *name == "states" || *value != Node::Array(Vec::new()))
        .collect();
    if after.status.name() != "RUNNING" {
        members.push(("status", text(after.status.name())));
    }
    let tasks = seen::tasks(after).into_iter().map(|task| {
        let Node::Object(members) = task else {
            return task;
        };
        let shown = members
            .into_iter()
            .filter(|(name, _)| OF_TASKS.contains(&name.as_str()));
        redactor.names(&Node::Object(shown.collect()))
    });
    members.push(("tasks", Node::Array(tasks.collect())));
    let lists = [
        ("notes", "code", seen::notes(&events)),
        ("publishes", "name", seen::published(&events)),
    ];
    for (name, of, items) in lists {
        let named = items.into_iter().filter_map(|item| match item {
            Node::Object(mut members) => members.remove(of),
            _ => None,
        });
        let named: Vec<_> = named.collect();
        if !named.is_empty() {
            members.push((name, Node::Array(named)));
        }
    }
    let notable = events
        .iter()
        .map(Event::kind)
        .filter(|kind| NOTABLE.contains(kind));
    let notable: Vec<_> = notable.map(text).collect();
    if !notable.is_empty() {
        members.push(("events", Node::Array(notable)));
    }
    object(members)
}
