//! Makes a scenario of a recorded instance. Its audit has every command, the memberships at that time, and the effects.
//!
//! Each command becomes a step. The directory's answers become the groups and managers of the scenario. If later answers differ,
//! a step has the change. Names and texts of people are written only if the [`Rules`] keep them.

mod calls;
mod commands;
mod people;
mod redact;

use jiff::Timestamp;
use serde::Deserialize;

use wrkflw_core::actor::Actor;
use wrkflw_core::command::Command;
use wrkflw_core::event::Event;
use wrkflw_core::graph::Graph;
use wrkflw_core::ids::{CommandId, InstanceId, TaskId};
use wrkflw_core::instance::{Instance, StateInstance, Task};
use wrkflw_core::json::{Json, Node};
use wrkflw_core::lookup::{Findings, Lookup};

use self::commands::{Recorded, commands};
use self::people::{Change, Timeline};
use self::redact::Redactor;
pub use self::redact::Rules;
use crate::file::STEPS_MAX;
use crate::seen::{self, object, text};
use crate::write::yaml;

/// Events that a scenario expects in addition to their effects.
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
    lookups: Vec<AnsweredLookup>,
}

#[derive(Debug, Deserialize)]
struct AnsweredLookup {
    asked: Lookup,
    found: Findings,
}

/// A scenario that was made of an instance.
#[derive(Debug)]
pub struct Made {
    /// The text of the file.
    pub yaml: String,
    /// The key of its definition.
    pub definition: String,
    pub steps: usize,
    /// The names and texts that were kept, as a warning to people who share the scenario.
    pub kept: Vec<String>,
}

/// The text of a scenario. Config and graph are those of the instance's version. The error names the part that a scenario cannot express.
pub fn record(
    id: InstanceId,
    entries: Vec<Entry>,
    (config, graph): (&Json, &Graph),
    rules: &Rules,
) -> Result<Made, String> {
    let commands = commands(entries)?;
    let first = commands.first().ok_or("the instance has no audit")?;
    let (begins, definition) = (first.evidence.now, first.evidence.definition.clone());
    let mut timeline = Timeline::of(&commands, graph);
    let mut redactor = Redactor::new(rules, people::all(&commands));
    let mut steps: Vec<Node> = Vec::new();
    let (mut index, mut now, mut instance) = (0, begins, None);
    while let Some(issued) = commands.get(index) {
        let changes = timeline.changes_before(index);
        let mut recorded = issued.recorded(id, instance)?;
        // Deadlines that pass one after the other become one step: a scenario passes all due deadlines, and the host may have been late.
        if matches!(recorded.evidence.command, Command::Deadline { .. }) {
            while let Some(next) = commands.get(index + 1) {
                let is_deadline = matches!(next.evidence.command, Command::Deadline { .. });
                if !is_deadline || timeline.changes(index + 1) {
                    break;
                }
                recorded.go_on(id, next)?;
                index += 1;
            }
        }
        let at = ("at", text(&recorded.evidence.now.to_string()));
        let expect = expected(&mut redactor, &recorded.after, &recorded.events);
        let mut written = changed(&mut redactor, &changes);
        if let Some(happened) = step(&mut redactor, &recorded)? {
            written.push(happened);
        }
        let count = written.len();
        for (place, mut members) in written.into_iter().enumerate() {
            if place == 0 && recorded.evidence.now != now {
                now = recorded.evidence.now;
                members.push(at.clone());
            }
            if place + 1 == count {
                members.push(("expect", expect.clone()));
            }
            steps.push(object(members));
        }
        if steps.len() > STEPS_MAX {
            return Err(format!("it has more than {STEPS_MAX} steps"));
        }
        instance = Some(recorded.after);
        index += 1;
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

/// The step of a command; none if a scenario runs the command by itself.
fn step(redactor: &mut Redactor<'_>, recorded: &Recorded<'_>) -> Result<Option<Members>, String> {
    let mut members = match &recorded.evidence.command {
        Command::Start { .. } => return start(redactor, recorded).map(Some),
        Command::ChildEnded { .. } => {
            let before = recorded.before.as_ref();
            return Ok(Some(child_ended(
                redactor,
                &recorded.evidence.command,
                before,
            )));
        }
        Command::ServiceAnswered { .. } | Command::ServiceFailed { .. } => {
            return Ok(Some(calls::ended(redactor, recorded)));
        }
        // Time passes, and the host does the rest.
        Command::Deadline { .. } => return Ok(Some(Members::new())),
        // A reassessment follows from a change of the directory. A comment has no effect on the flow.
        Command::Reassessment { .. } | Command::Comment { .. } => return Ok(None),
        Command::Migrate { .. } => {
            return Err("it was migrated to another version, which a scenario cannot do".into());
        }
        Command::Signal { .. } => signal(redactor, recorded),
        Command::Cancel { .. } => vec![("cancel", text("-"))],
        Command::Suspend { .. } => vec![("suspend", text("-"))],
        Command::Resume { .. } => vec![("resume", Node::Bool(true))],
        Command::Claim { task } => {
            let mut members = which(redactor, recorded, *task, Some("claim"));
            members.extend(absent(redactor, recorded));
            members
        }
        Command::Decide { .. } => decision(redactor, recorded),
        Command::Release { task } => which(redactor, recorded, *task, Some("release")),
        Command::Resolve { task } => which(redactor, recorded, *task, Some("resolve")),
        Command::ResumeTask { task } => which(redactor, recorded, *task, Some("resumeTask")),
        Command::Reset { task, .. } => which(redactor, recorded, *task, Some("reset")),
        Command::Delegate { task, to, .. } => {
            let mut members = which(redactor, recorded, *task, Some("delegate"));
            members.push(("to", text(&redactor.person(to))));
            members
        }
        Command::Reassign { task, to, .. } => {
            let mut members = which(redactor, recorded, *task, Some("reassign"));
            members.push(("to", text(&redactor.person(to))));
            members
        }
        Command::SuspendTask { task, until, .. } => {
            let mut members = which(redactor, recorded, *task, Some("suspendTask"));
            members.extend(until.map(|until| ("until", text(&until.to_string()))));
            members
        }
    };
    let by = redactor.person(&recorded.evidence.actor.id);
    members.push(("by", text(&by)));
    Ok(Some(members))
}

fn start(redactor: &mut Redactor<'_>, recorded: &Recorded<'_>) -> Result<Members, String> {
    let Command::Start {
        entity,
        data,
        lineage,
        ..
    } = &recorded.evidence.command
    else {
        return Ok(Members::new());
    };
    let is_child = lineage
        .as_ref()
        .is_some_and(|lineage| lineage.parent.is_some());
    if is_child {
        return Err("it is the child of another instance, which a scenario cannot start".into());
    }
    let after = &recorded.after;
    let requesters = after.requesters.iter();
    let requesters = requesters.filter(|one| **one != after.initiator);
    let requesters: Vec<_> = requesters.map(|one| text(&redactor.person(one))).collect();
    let entity = format!("{}/{}", entity.kind, redactor.entity(&entity.id));
    let mut members = vec![
        ("start", redactor.data(data)),
        ("by", text(&redactor.person(&after.initiator))),
        ("entity", text(&entity)),
    ];
    if !requesters.is_empty() {
        members.push(("requesters", Node::Array(requesters)));
    }
    Ok(members)
}

fn child_ended(
    redactor: &mut Redactor<'_>,
    command: &Command,
    before: Option<&Instance>,
) -> Members {
    let Command::ChildEnded {
        child,
        outcome,
        data,
        reason,
        ..
    } = command
    else {
        return Members::new();
    };
    let states = before.into_iter().flat_map(Instance::state_instances);
    let mut children = states.flat_map(|state| &state.children);
    let key = children.find(|one| one.id == *child);
    let key = key.map_or("", |child| child.key.as_str());
    let mut members = vec![("child", text(key)), ("outcome", text(outcome))];
    // Only a child that could not be started has one.
    let reason = reason.as_ref();
    members.extend(reason.map(|reason| ("reason", text(&redactor.comment(reason)))));
    members.extend(input(redactor, data));
    members
}

fn signal(redactor: &mut Redactor<'_>, recorded: &Recorded<'_>) -> Members {
    let Command::Signal {
        trigger,
        id,
        input: payload,
        correlation,
        state,
        ..
    } = &recorded.evidence.command
    else {
        return Members::new();
    };
    let mut members = vec![("signal", text(trigger)), ("id", text(&redactor.text(id)))];
    // A signal to all is a command for each state instance, all with one id.
    let mut active = recorded.before.iter().flat_map(|one| &one.active);
    if let Some(meant) = active.find(|one| Some(one.id) == *state) {
        members.push(("in", text(&meant.name)));
        let key = meant.key.as_ref();
        members.extend(key.map(|key| ("item", text(&redactor.known(key)))));
    }
    members.extend(input(redactor, payload));
    let key = correlation.as_ref();
    members.extend(key.map(|key| ("correlation", text(&redactor.entity(key)))));
    members
}

fn decision(redactor: &mut Redactor<'_>, recorded: &Recorded<'_>) -> Members {
    let Command::Decide {
        task,
        outcome,
        comment,
        input: form,
    } = &recorded.evidence.command
    else {
        return Members::new();
    };
    let mut members = vec![("decide", text(outcome))];
    members.extend(which(redactor, recorded, *task, None));
    members.extend(absent(redactor, recorded));
    let comment = comment.as_ref();
    members.extend(comment.map(|comment| ("comment", text(&redactor.comment(comment)))));
    members.extend(input(redactor, form));
    members
}

/// An input that is not empty.
fn input(redactor: &mut Redactor<'_>, input: &Json) -> Option<(&'static str, Node)> {
    (*input != Json::empty()).then(|| ("input", redactor.data(input)))
}

/// The members that name the task: under `verb`, its label if there are several tasks, or `true`; with its state and item if these differ.
fn which(
    redactor: &mut Redactor<'_>,
    recorded: &Recorded<'_>,
    id: TaskId,
    verb: Option<&'static str>,
) -> Members {
    let open: Vec<(&StateInstance, &Task)> = recorded
        .before
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
        let key = state.key.as_ref().map(|key| text(&redactor.known(key)));
        members.extend(key.map(|key| ("item", key)));
    }
    members
}

/// The absent person for whom the actor claims or decides.
fn absent(redactor: &mut Redactor<'_>, recorded: &Recorded<'_>) -> Option<(&'static str, Node)> {
    let mut acted_for = recorded.events.iter().filter_map(|event| match event {
        Event::TaskClaimed { on_behalf_of, .. } | Event::DecisionRecorded { on_behalf_of, .. } => {
            on_behalf_of.as_ref()
        }
        _ => None,
    });
    let absent = acted_for.find(|person| {
        let mut stand_ins = recorded.evidence.actor.stands_in_for.iter();
        stand_ins.any(|one| one.person == **person)
    });
    absent.map(|person| ("for", text(&redactor.person(person))))
}

/// The instance after a command, as expectations.
fn expected(redactor: &mut Redactor<'_>, after: &Instance, events: &[&Event]) -> Node {
    let events: Vec<Event> = events.iter().map(|event| (*event).clone()).collect();
    let mut members: Members = seen::of_instance(after)
        .into_iter()
        .filter(|(name, _)| ["outcome", "states", "waiting", "unassignable"].contains(name))
        .filter(|(name, value)| *name == "states" || *value != Node::Array(Vec::new()))
        .collect();
    if !["RUNNING", "COMPLETED"].contains(&after.status.name()) {
        members.push(("status", text(after.status.name())));
    }
    let one_state = after.active.len() == 1;
    let tasks = seen::tasks(after).into_iter().map(|task| {
        let Node::Object(members) = task else {
            return task;
        };
        let shown = members
            .into_iter()
            .filter(|(name, _)| OF_TASKS.contains(&name.as_str()) && !(one_state && name == "in"));
        let shown = shown.map(|(name, value)| (name, short(value)));
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
    object(members.into_iter().map(|(name, value)| match name {
        "states" | "waiting" | "unassignable" => (name, short(value)),
        _ => (name, value),
    }))
}

/// One value stands for a list of it.
fn short(node: Node) -> Node {
    match node {
        Node::Array(mut items) if items.len() == 1 => items.remove(0),
        other => other,
    }
}

#[cfg(test)]
mod tests;
