//! Random flows with random answers that often violate the rules: nothing is refused, plans lead anywhere, and work is
//! offered to anybody, including requesters. Each flow has a second version that differs from the first.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use proptest::prelude::*;

use super::super::script::Script;
use super::choices::Choices;
use super::world::{PRESS, World};
use crate::graph::{FiredBy, Graph, Join, State, StateKind, Transition};
use crate::instance::Instance;
use crate::question::Occurrence;

pub(super) const TRIGGERS: [&str; 3] = ["GO", "NO", "LATE"];
/// Templates of a title or summary.
pub(super) const TITLE: &str = "{/title} for {entityId}";
pub(super) const EMPTY: &str = "{/nothing}";
const TEMPLATES: [Option<&str>; 3] = [None, Some(TITLE), Some(EMPTY)];

/// Task states first, then wait states, then routers, then two terminal states.
#[derive(Debug, Clone)]
pub(super) struct Flow {
    works: Vec<Work>,
    waits: Vec<Vec<Way>>,
    routers: Vec<Vec<usize>>,
    /// Begins with a wait, if it has one.
    waits_first: bool,
    only_crew_starts: bool,
    /// Lists of separate task states, by their numbers.
    separate: Vec<Vec<usize>>,
    /// The templates of the title and of the summary.
    templates: (usize, usize),
    sequel: Sequel,
}

/// How the second version differs. Numbers name states.
#[derive(Debug, Clone)]
struct Sequel {
    renamed: Vec<usize>,
    changed: Option<(usize, Feature)>,
    templates: (usize, usize),
}

/// What a state must have in common with its state in the other version.
#[derive(Debug, Clone, Copy)]
enum Feature {
    Kind,
    Join,
    OwnWork,
    /// What deadlines and children fire.
    Ways,
}

#[derive(Debug, Clone)]
struct Work {
    own: bool,
    join: Join,
    ways: Vec<Way>,
}

#[derive(Debug, Clone)]
struct Way {
    by: usize,
    targets: Vec<usize>,
    permission: bool,
}

pub(super) fn flow() -> impl Strategy<Value = Flow> {
    let targets = || prop::collection::vec(0..18_usize, 1..4);
    let way = move || {
        (0..8_usize, targets(), prop::bool::weighted(0.15)).prop_map(|(by, targets, permission)| {
            Way {
                by,
                targets,
                permission,
            }
        })
    };
    let ways = move || prop::collection::vec(way(), 1..=TRIGGERS.len());
    let work = (
        prop::bool::weighted(0.15),
        prop_oneof![
            7 => Just(Join::None),
            2 => Just(Join::All),
            1 => (1..3u32).prop_map(Join::Count),
        ],
        ways(),
    )
        .prop_map(|(own, join, ways)| Work { own, join, ways });
    (
        prop::collection::vec(work, 1..6),
        prop::collection::vec(ways(), 0..4),
        prop::collection::vec(targets(), 0..3),
        (prop::bool::weighted(0.3), prop::bool::weighted(0.2)),
        prop::collection::vec(prop::collection::vec(0..6_usize, 2..4), 0..3),
        (templates(), sequel()),
    )
        .prop_map(
            |(
                works,
                waits,
                routers,
                (waits_first, only_crew_starts),
                separate,
                (templates, sequel),
            )| Flow {
                works,
                waits,
                routers,
                waits_first,
                only_crew_starts,
                separate,
                templates,
                sequel,
            },
        )
}

fn sequel() -> impl Strategy<Value = Sequel> {
    let feature = prop_oneof![
        Just(Feature::Kind),
        Just(Feature::Join),
        Just(Feature::OwnWork),
        Just(Feature::Ways),
    ];
    let changed = prop::option::weighted(0.6, (0..8_usize, feature));
    (
        prop::collection::vec(0..8_usize, 0..3),
        changed,
        templates(),
    )
        .prop_map(|(renamed, changed, templates)| Sequel {
            renamed,
            changed,
            templates,
        })
}

fn templates() -> impl Strategy<Value = (usize, usize)> {
    (0..TEMPLATES.len(), 0..TEMPLATES.len())
}

fn entitle(graph: &mut Graph, (title, summary): (usize, usize)) {
    graph.instance_title = TEMPLATES[title].map(str::to_owned);
    graph.instance_summary = TEMPLATES[summary].map(str::to_owned);
}

impl Flow {
    fn names(&self) -> Vec<String> {
        let works = (0..self.works.len()).map(|number| format!("T{number}"));
        let waits = (0..self.waits.len()).map(|number| format!("W{number}"));
        let routers = (0..self.routers.len()).map(|number| format!("R{number}"));
        let ends = (0..2).map(|number| format!("E{number}"));
        works.chain(waits).chain(routers).chain(ends).collect()
    }

    pub(super) fn graph(&self) -> Graph {
        let names = self.names();
        let kind = |name: &str| match &name[..1] {
            "T" => StateKind::Task,
            "W" => StateKind::Wait,
            "R" => StateKind::Router,
            _ => StateKind::Terminal(name.to_owned()),
        };
        let states = names.iter().enumerate().map(|(number, name)| {
            let work = self.works.get(number);
            State {
                name: name.clone(),
                title: name.clone(),
                description: String::new(),
                kind: kind(name),
                join: work
                    .filter(|_| number > 0)
                    .map_or(Join::None, |work| work.join),
                own_work: work.is_some_and(|work| work.own),
            }
        });
        let mut graph = Graph {
            initial: self.first(&names).clone(),
            initiators: self
                .only_crew_starts
                .then(|| "crew".to_owned())
                .into_iter()
                .collect(),
            transitions: self.transitions(&names),
            states: states.collect(),
            separate: self.separate(),
            ..Graph::default()
        };
        entitle(&mut graph, self.templates);
        graph
    }

    fn separate(&self) -> Vec<Vec<String>> {
        let lists = self.separate.iter().map(|list| {
            let numbers: BTreeSet<_> = list
                .iter()
                .map(|number| number % self.works.len())
                .collect();
            let others = numbers
                .into_iter()
                .filter(|number| !self.works[*number].own);
            others.map(|number| format!("T{number}")).collect()
        });
        lists.filter(|list: &Vec<String>| list.len() > 1).collect()
    }

    fn first<'a>(&self, names: &'a [String]) -> &'a String {
        let waits = self.waits_first && !self.waits.is_empty();
        &names[if waits { self.works.len() } else { 0 }]
    }

    fn transitions(&self, names: &[String]) -> Vec<Transition> {
        let targets = |wanted: &[usize]| {
            let mut targets: Vec<_> = wanted
                .iter()
                .map(|target| match target {
                    16 | 17 => names[names.len() + target - 18].clone(),
                    _ => names[target % (names.len() - 2)].clone(),
                })
                .collect();
            targets.sort_unstable();
            targets.dedup();
            targets
        };
        let way = |source: String, (number, way): (usize, &Way), by| Transition {
            source,
            trigger: TRIGGERS[number].to_owned(),
            targets: targets(&way.targets),
            by,
            permission: way.permission.then(|| PRESS.to_owned()),
            ..Transition::default()
        };
        let mut all = Vec::new();
        for (number, work) in self.works.iter().enumerate() {
            for (place, drawn) in work.ways.iter().enumerate() {
                let by = match drawn.by {
                    6 if place > 0 => vec![FiredBy::Signal],
                    7 if place > 0 => vec![FiredBy::Deadline],
                    5..=7 => vec![FiredBy::Decision, FiredBy::Deadline],
                    _ => vec![FiredBy::Decision],
                };
                all.push(way(format!("T{number}"), (place, drawn), by));
            }
        }
        for (number, ways) in self.waits.iter().enumerate() {
            for (place, drawn) in ways.iter().enumerate() {
                let by = match drawn.by {
                    0..=2 => vec![FiredBy::Signal],
                    3 => vec![FiredBy::Signal, FiredBy::Deadline],
                    4 => vec![FiredBy::Deadline, FiredBy::Child],
                    5 | 6 => vec![FiredBy::Child],
                    _ => vec![FiredBy::Signal, FiredBy::Child],
                };
                all.push(way(format!("W{number}"), (place, drawn), by));
            }
        }
        all.extend(
            self.routers
                .iter()
                .enumerate()
                .map(|(number, wanted)| Transition {
                    source: format!("R{number}"),
                    trigger: "ON".to_owned(),
                    targets: targets(wanted),
                    by: vec![FiredBy::Entry],
                    ..Transition::default()
                }),
        );
        all
    }

    /// Makes the second version's graph of the first one's.
    fn redraw(&self, graph: &mut Graph) {
        entitle(graph, self.sequel.templates);
        let working = self.works.len() + self.waits.len();
        if let Some((number, feature)) = self.sequel.changed {
            let place = number % working;
            let state = &mut graph.states[place];
            match feature {
                Feature::Kind if state.kind == StateKind::Wait => state.kind = StateKind::Task,
                Feature::Kind => state.kind = StateKind::Wait,
                Feature::Join if place == 0 => {}
                Feature::Join if state.join == Join::None => state.join = Join::All,
                Feature::Join => state.join = Join::None,
                Feature::OwnWork => state.own_work ^= state.kind == StateKind::Task,
                Feature::Ways => {
                    let name = state.name.clone();
                    let ways = graph.transitions.iter_mut();
                    for way in ways.filter(|way| way.source == name) {
                        way.by = vec![FiredBy::Signal];
                    }
                }
            }
        }
        for number in &self.sequel.renamed {
            let old = graph.states[number % working].name.clone();
            let new = format!("{old}x");
            graph.states[number % working].name.clone_from(&new);
            for way in &mut graph.transitions {
                let targets = way.targets.iter_mut().chain([&mut way.source]);
                for name in targets.filter(|name| **name == old) {
                    name.clone_from(&new);
                }
            }
            for name in graph.separate.iter_mut().flatten() {
                if *name == old {
                    name.clone_from(&new);
                }
            }
            if graph.initial == old {
                graph.initial = new;
            }
        }
        let others: Vec<_> = graph
            .states
            .iter()
            .filter(|state| state.kind == StateKind::Task && !state.own_work)
            .map(|state| &state.name)
            .collect();
        graph
            .separate
            .retain(|list| list.iter().all(|name| others.contains(&name)));
    }

    /// The flow at work: its answers come from `choices`, its directory is the world.
    pub(super) fn script(
        &self,
        choices: &Rc<RefCell<Choices>>,
        world: &Rc<RefCell<World>>,
    ) -> Script {
        let (planning, assigning) = (choices.clone(), choices.clone());
        let (waiting, world) = (choices.clone(), world.clone());
        let plan = move |occurrence: &Occurrence, state: &str, instance: &Instance| {
            planning.borrow_mut().plan(occurrence, state, instance)
        };
        let script = Script::new()
            .drawn(self.graph())
            .followed_by(|graph| self.redraw(graph))
            .planning_for(plan)
            .assigning_for(move |state, cause| assigning.borrow_mut().assigned(state, cause))
            .waiting(move |state| waiting.borrow_mut().waiting(state))
            .knowing(move |lookup| world.borrow().found(lookup));
        choices.borrow_mut().graphs = script.graphs();
        script
    }
}
