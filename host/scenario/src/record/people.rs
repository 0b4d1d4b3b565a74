//! The directory's answers over time. The first answers are the beginning of a scenario, later ones give the changes.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use wrkflw_core::event::Event;
use wrkflw_core::graph::{Graph, Read};
use wrkflw_core::instance::Candidate;
use wrkflw_core::json::{Json, Node};

use super::commands::Issued;
use super::redact::Redactor;
use crate::seen::{object, text};

/// The permission of those who may act on the tasks of others.
const OPERATOR: &str = "task:assign";

/// A change of the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    Joins {
        group: String,
        person: String,
    },
    Leaves {
        group: String,
        person: String,
    },
    Manager {
        person: String,
        manager: Option<String>,
    },
}

/// The substitute, the absent person, and the definition that it is limited to.
type Away = (String, String, Option<String>);

/// When somebody was absent.
#[derive(Debug, Default)]
struct Period {
    /// None for the beginning of the scenario.
    from: Option<Timestamp>,
    /// The first moment at which the directory's answer showed that it is over; none before that.
    until: Option<Timestamp>,
}

/// Members, managers and absences as commands were told them.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    /// At the beginning, by group and person.
    members: BTreeMap<(String, String), bool>,
    groups: BTreeSet<String>,
    managers: BTreeMap<String, Option<String>>,
    calendars: BTreeMap<String, Json>,
    absences: BTreeMap<Away, Vec<Period>>,
    permissions: BTreeMap<String, BTreeSet<String>>,
    /// Before each command.
    changes: Vec<Vec<Change>>,
}

impl Timeline {
    pub(super) fn of(commands: &[Issued], graph: &Graph) -> Timeline {
        let mut timeline = Timeline::default();
        let known = memberships(commands);
        let mut members = BTreeMap::new();
        let mut managers = BTreeMap::new();
        for issued in commands {
            let mut changes = Vec::new();
            for pair in &known {
                let Some(is_in) = membership(issued, pair) else {
                    continue;
                };
                timeline.members.entry(pair.clone()).or_insert(is_in);
                if members.insert(pair.clone(), is_in) == Some(!is_in) {
                    let (group, person) = pair.clone();
                    changes.push(if is_in {
                        Change::Joins { group, person }
                    } else {
                        Change::Leaves { group, person }
                    });
                }
            }
            for looked in &issued.evidence.lookups {
                timeline.groups.extend(looked.asked.groups.iter().cloned());
                for (name, settings) in &looked.found.calendars {
                    let calendars = timeline.calendars.entry(name.clone());
                    calendars.or_insert_with(|| settings.clone());
                }
                for person in &looked.asked.managers_of {
                    let manager = looked.found.managers.get(person).cloned();
                    let first = timeline.managers.entry(person.clone());
                    first.or_insert_with(|| manager.clone());
                    let before = managers.insert(person.clone(), manager.clone());
                    if before.is_some_and(|before| before != manager) {
                        let person = person.clone();
                        changes.push(Change::Manager { person, manager });
                    }
                }
            }
            timeline.take_actor(issued, graph);
            timeline.take_returns(issued);
            timeline.changes.push(changes);
        }
        timeline
    }

    fn take_actor(&mut self, issued: &Issued, graph: &Graph) {
        let actor = &issued.evidence.actor;
        if actor.is_host() {
            return;
        }
        for absent in &actor.stands_in_for {
            let (substitute, person) = (actor.id.clone(), absent.person.clone());
            let away = (substitute, person, absent.definition.clone());
            let periods = self.absences.entry(away).or_default();
            if periods.last().is_none_or(|last| last.until.is_some()) {
                let from = (!periods.is_empty()).then_some(issued.evidence.now);
                periods.push(Period { from, until: None });
            }
        }
        let held = actor.permissions.iter().filter(|held| matters(held, graph));
        let mut held = held.peekable();
        if held.peek().is_some() {
            let permissions = self.permissions.entry(actor.id.clone()).or_default();
            permissions.extend(held.cloned());
        }
    }

    /// The host asks for the absences by which somebody has claimed a task. An absence that is missing in the answer is over.
    fn take_returns(&mut self, issued: &Issued) {
        for looked in &issued.evidence.lookups {
            for ((substitute, person, only), periods) in &mut self.absences {
                let mut absences = looked.found.stand_ins.get(substitute).into_iter().flatten();
                let is_away = absences.any(|one| one.person == *person && one.definition == *only);
                let is_over = looked.asked.stand_ins_of.contains(substitute) && !is_away;
                let last = periods.last_mut().filter(|last| last.until.is_none());
                if let Some(last) = last.filter(|_| is_over) {
                    last.until = Some(issued.evidence.now);
                }
            }
        }
    }

    /// Whether something changed before this command.
    pub(super) fn changes(&self, command: usize) -> bool {
        !self.changes[command].is_empty()
    }

    pub(super) fn changes_before(&mut self, command: usize) -> Vec<Change> {
        std::mem::take(&mut self.changes[command])
    }

    /// The members of the file.
    pub(super) fn initial(&self, redactor: &mut Redactor<'_>) -> Vec<(&'static str, Node)> {
        let mut groups: BTreeMap<String, Vec<Node>> = BTreeMap::new();
        for group in &self.groups {
            groups.entry(group.clone()).or_default();
        }
        for ((group, person), is_in) in &self.members {
            let members = groups.entry(group.clone()).or_default();
            members.extend(is_in.then(|| text(&redactor.person(person))));
        }
        let groups = groups.into_iter();
        let groups: BTreeMap<_, _> = groups
            .map(|(group, members)| (group, Node::Array(members)))
            .collect();
        let managers = self.managers.iter().filter_map(|(person, manager)| {
            let manager = text(&redactor.person(manager.as_ref()?));
            Some((redactor.person(person), manager))
        });
        let managers: BTreeMap<_, _> = managers.collect();
        let permissions = self.permissions.iter().map(|(person, held)| {
            let held = held.iter().map(|one| text(one)).collect();
            (redactor.person(person), Node::Array(held))
        });
        let permissions: BTreeMap<_, _> = permissions.collect();
        let absences = self.absences.iter();
        let absences = absences.flat_map(|(away, all)| all.iter().map(move |one| (away, one)));
        let absences = absences.map(|((substitute, person, only), period)| {
            let at = |moment: Option<Timestamp>| {
                moment.map_or(Node::Null, |moment| text(&moment.to_string()))
            };
            object([
                ("person", text(&redactor.person(person))),
                ("substitute", text(&redactor.person(substitute))),
                ("definition", only.as_deref().map_or(Node::Null, text)),
                ("from", at(period.from)),
                ("until", at(period.until)),
            ])
        });
        let absences: Vec<_> = absences.collect();
        let calendars = self.calendars.iter();
        let calendars: BTreeMap<_, _> = calendars
            .map(|(name, settings)| (name.clone(), settings.node()))
            .collect();
        let maps = [
            ("groups", groups),
            ("managers", managers),
            ("permissions", permissions),
            ("calendars", calendars),
        ];
        let maps = maps.into_iter().filter(|(_, map)| !map.is_empty());
        let mut members: Vec<_> = maps.map(|(name, map)| (name, Node::Object(map))).collect();
        if !absences.is_empty() {
            members.push(("absences", Node::Array(absences)));
        }
        members
    }
}

/// Whether a rule of the host or of the flow asks for the permission.
fn matters(permission: &str, graph: &Graph) -> bool {
    let mut ways = graph.transitions.iter();
    permission == OPERATOR
        || graph.reads.contains(&Read::Permissions)
        || ways.any(|way| way.permission.as_deref() == Some(permission))
}

/// Every membership that is told at least once, by group and person.
fn memberships(commands: &[Issued]) -> BTreeSet<(String, String)> {
    let mut all = BTreeSet::new();
    for Issued { evidence, .. } in commands {
        let actor = &evidence.actor;
        let of_actor = actor.groups.iter();
        all.extend(of_actor.map(|group| (group.clone(), actor.id.clone())));
        for absent in &actor.stands_in_for {
            let groups = absent.groups.iter();
            all.extend(groups.map(|group| (group.clone(), absent.person.clone())));
        }
        for looked in &evidence.lookups {
            for (group, members) in &looked.found.members {
                let members = members.iter();
                all.extend(members.map(|person| (group.clone(), person.clone())));
            }
            for (person, groups) in &looked.found.groups {
                let groups = groups.iter();
                all.extend(groups.map(|group| (group.clone(), person.clone())));
            }
        }
    }
    all
}

/// Whether the person was in the group, if the command was told.
fn membership(issued: &Issued, (group, person): &(String, String)) -> Option<bool> {
    let evidence = &issued.evidence;
    let actor = &evidence.actor;
    if actor.id == *person {
        return Some(actor.is_in(group));
    }
    let mut stand_ins = actor.stands_in_for.iter();
    if let Some(absent) = stand_ins.find(|absent| absent.person == *person) {
        return Some(absent.groups.contains(group));
    }
    evidence.lookups.iter().find_map(|looked| {
        let (lookup, found) = (&looked.asked, &looked.found);
        if lookup.memberships_of.contains(person) {
            let groups = found.groups.get(person);
            return Some(groups.is_some_and(|groups| groups.contains(group)));
        }
        if !lookup.groups.contains(group) {
            return None;
        }
        let members = found.members.get(group).map_or(&[] as &[String], |all| all);
        let is_whole = members.len() < lookup.members_max as usize;
        let is_in = members.contains(person);
        (is_in || is_whole).then_some(is_in)
    })
}

/// Everybody who is named, in the order of their first mention.
pub(super) fn all(commands: &[Issued]) -> Vec<String> {
    let mut all = Vec::new();
    for issued in commands {
        let actor = &issued.evidence.actor;
        if !actor.is_host() {
            all.push(actor.id.clone());
        }
        all.extend(
            actor
                .stands_in_for
                .iter()
                .map(|absent| absent.person.clone()),
        );
        for event in issued.events() {
            of_event(event, &mut all);
        }
        for looked in &issued.evidence.lookups {
            all.extend(looked.asked.managers_of.iter().cloned());
            all.extend(looked.asked.people.iter().cloned());
            all.extend(looked.found.managers.values().cloned());
            all.extend(looked.found.members.values().flatten().cloned());
            all.extend(looked.found.groups.keys().cloned());
        }
    }
    all
}

fn of_event(event: &Event, all: &mut Vec<String>) {
    match event {
        Event::FlowStarted { requesters, .. } => all.extend(requesters.iter().cloned()),
        Event::TaskCreated { task, .. } => {
            all.extend(task.owner().map(str::to_owned));
            all.extend(task.candidates.iter().filter_map(person));
        }
        Event::TaskRerouted { candidates, .. } => all.extend(candidates.iter().filter_map(person)),
        Event::StateEntered { state, .. } => all.extend(state.exclude.iter().cloned()),
        Event::TaskDelegated { to, .. }
        | Event::TaskReassigned { to, .. }
        | Event::TaskResolved { to, .. } => all.push(to.clone()),
        _ => {}
    }
}

fn person(candidate: &Candidate) -> Option<String> {
    match candidate {
        Candidate::User(person) | Candidate::Member { person, .. } => Some(person.clone()),
        Candidate::Group(_) => None,
    }
}
