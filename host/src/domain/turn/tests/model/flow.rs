//! Random flows whose logic answers at random, often against the rules: guards allow everything, plans lead anywhere,
//! and work is offered to anybody, requesters included.

use std::cell::RefCell;
use std::rc::Rc;

use proptest::prelude::*;

use super::super::script::Script;
use super::world::{GROUPS, PEOPLE, PRESS, World};
use crate::domain::answer::{
    Assignment, Deadline, Due, Offer, OverdueAction, Plan, Principal, PublishedEvent, Reason,
};
use crate::domain::graph::{FiredBy, Graph, State, StateKind, Transition};
use crate::domain::instance::Instance;
use crate::domain::question::Occurrence;

pub(super) const TRIGGERS: [&str; 3] = ["GO", "NO", "LATE"];

/// States of work first, then routers, then two ends.
#[derive(Debug, Clone)]
pub(super) struct Flow {
    works: Vec<Work>,
    routers: Vec<Vec<usize>>,
    only_crew_starts: bool,
}

#[derive(Debug, Clone)]
struct Work {
    own: bool,
    join: bool,
    ways: Vec<Way>,
}

#[derive(Debug, Clone)]
struct Way {
    by: usize,
    targets: Vec<usize>,
    permission: bool,
}

pub(super) fn flow() -> impl Strategy<Value = Flow> {
    let targets = || prop::collection::vec(0..16_usize, 1..4);
    let way = (0..8_usize, targets(), prop::bool::weighted(0.15)).prop_map(
        |(by, targets, permission)| Way {
            by,
            targets,
            permission,
        },
    );
    let work = (
        prop::bool::weighted(0.15),
        prop::bool::weighted(0.3),
        prop::collection::vec(way, 1..=TRIGGERS.len()),
    )
        .prop_map(|(own, join, ways)| Work { own, join, ways });
    (
        prop::collection::vec(work, 1..6),
        prop::collection::vec(targets(), 0..3),
        prop::bool::weighted(0.2),
    )
        .prop_map(|(works, routers, only_crew_starts)| Flow {
            works,
            routers,
            only_crew_starts,
        })
}

impl Flow {
    fn names(&self) -> Vec<String> {
        let works = (0..self.works.len()).map(|number| format!("T{number}"));
        let routers = (0..self.routers.len()).map(|number| format!("R{number}"));
        let ends = (0..2).map(|number| format!("E{number}"));
        works.chain(routers).chain(ends).collect()
    }

    pub(super) fn graph(&self) -> Graph {
        let names = self.names();
        let kind = |name: &str| match &name[..1] {
            "T" => StateKind::Task,
            "R" => StateKind::Router,
            _ => StateKind::Terminal(name.to_owned()),
        };
        let states = names.iter().enumerate().map(|(number, name)| {
            let work = self.works.get(number);
            State {
                name: name.clone(),
                title: name.clone(),
                kind: kind(name),
                join: number > 0 && work.is_some_and(|work| work.join),
                own_work: work.is_some_and(|work| work.own),
            }
        });
        let targets = |wanted: &[usize]| {
            let mut targets: Vec<_> = wanted
                .iter()
                .map(|target| match target {
                    14 | 15 => names[names.len() + target - 16].clone(),
                    _ => names[target % (names.len() - 2)].clone(),
                })
                .collect();
            targets.sort_unstable();
            targets.dedup();
            targets
        };
        let of_works = self.works.iter().enumerate().flat_map(|(number, work)| {
            let ways = work.ways.iter().enumerate();
            ways.map(
                move |(
                    way,
                    Way {
                        by,
                        targets,
                        permission,
                    },
                )| (number, way, *by, targets, *permission),
            )
        });
        let of_works = of_works.map(|(number, way, by, wanted, permission)| Transition {
            source: names[number].clone(),
            trigger: TRIGGERS[way].to_owned(),
            targets: targets(wanted),
            by: match by {
                6 if way > 0 => vec![FiredBy::Signal],
                7 if way > 0 => vec![FiredBy::Deadline],
                5..=7 => vec![FiredBy::Decision, FiredBy::Deadline],
                _ => vec![FiredBy::Decision],
            },
            permission: permission.then(|| PRESS.to_owned()),
        });
        let of_routers = self
            .routers
            .iter()
            .enumerate()
            .map(|(number, wanted)| Transition {
                source: format!("R{number}"),
                trigger: "ON".to_owned(),
                targets: targets(wanted),
                by: vec![FiredBy::Entry],
                permission: None,
            });
        Graph {
            initial: names[0].clone(),
            initiators: self
                .only_crew_starts
                .then(|| "crew".to_owned())
                .into_iter()
                .collect(),
            transitions: of_works.chain(of_routers).collect(),
            states: states.collect(),
            data_schema: None,
            attributes: Vec::new(),
        }
    }

    /// The flow at work: its answers come from `whims`, its directory is the world.
    pub(super) fn script(&self, whims: &Rc<RefCell<Whims>>, world: &Rc<RefCell<World>>) -> Script {
        let (planning, assigning, world) = (whims.clone(), whims.clone(), world.clone());
        let (drawn, graph) = (self.graph(), self.graph());
        let plan = move |occurrence: &Occurrence, state: &str, instance: &Instance| {
            planning
                .borrow_mut()
                .plan(&drawn, occurrence, state, instance)
        };
        let assign = move |state: &str, _: &_| assigning.borrow_mut().assignment(&graph, state);
        Script::new()
            .drawn(self.graph())
            .planning_for(plan)
            .assigning_for(assign)
            .knowing(move |lookup| world.borrow().found(lookup))
    }
}

/// Where the answers of one command come from: numbers, and zeros when they are used up.
#[derive(Debug, Default)]
pub(super) struct Whims {
    pub(super) left: Vec<u8>,
}

impl Whims {
    fn below(&mut self, bound: usize) -> usize {
        usize::from(self.left.pop().unwrap_or(0)) % bound
    }

    fn plan(
        &mut self,
        graph: &Graph,
        occurrence: &Occurrence,
        state: &str,
        instance: &Instance,
    ) -> Result<Plan, Reason> {
        let stay = |id: &String| {
            instance
                .active
                .iter()
                .find(|stay| stay.id.to_string() == *id)
        };
        let stay = occurrence
            .state_instance
            .as_ref()
            .and_then(stay)
            .expect("an active stay");
        let open = stay
            .tasks
            .iter()
            .filter(|task| task.status.is_open())
            .count();
        let declared = graph
            .transition(state, &occurrence.trigger)
            .expect("a declared way");
        let targets = &declared.targets;
        let one = |whims: &mut Whims| targets[whims.below(targets.len())].clone();
        let enter = match self.below(20) {
            0..=10 if open > 1 => None,
            0..=7 => Some(vec![one(self)]),
            8..=15 => Some(targets.clone()),
            16 => Some(Vec::new()),
            17 => None,
            18 => {
                let any = self.below(graph.states.len());
                Some(vec![graph.states[any].name.clone()])
            }
            _ if self.below(2) == 0 => {
                let twice = one(self);
                Some(vec![twice.clone(), twice])
            }
            _ => {
                return Err(Reason {
                    code: "unwilling".into(),
                    message: "not today".into(),
                });
            }
        };
        // At times itself, which is not another.
        let itself = self.below(16) == 15;
        let here = instance.active.iter().chain(&instance.waiting);
        let here: Vec<_> = here.filter(|other| itself || other.id != stay.id).collect();
        let cancels = !here.is_empty() && self.below(8) == 7;
        let cancel = cancels.then(|| here[self.below(here.len())].id.to_string());
        let published = (self.below(6) == 5).then(|| PublishedEvent {
            name: "moved".into(),
            data: r#"{"on":1.50}"#.into(),
        });
        Ok(Plan {
            enter,
            cancel: cancel.into_iter().collect(),
            data: (self.below(5) == 4).then(|| r#"{"title":"Another"}"#.to_owned()),
            publish: published.into_iter().collect(),
            ..Plan::default()
        })
    }

    fn person(&mut self) -> String {
        PEOPLE[self.below(PEOPLE.len())].to_owned()
    }

    fn group(&mut self) -> String {
        GROUPS[self.below(GROUPS.len())].to_owned()
    }

    fn candidate(&mut self) -> Principal {
        match self.below(8) {
            0..=2 => Principal::Group(self.group()),
            3..=6 => Principal::User(self.person()),
            _ => Principal::ManagerOf(self.person()),
        }
    }

    fn assignment(&mut self, graph: &Graph, state: &str) -> Assignment {
        let own = graph.state(state).is_some_and(|declared| declared.own_work);
        let is_meek = own && self.below(6) != 5;
        let count = [1, 1, 2, 2, 3, 4, 0][self.below(7)];
        let offer = |whims: &mut Whims| {
            let count = [1, 1, 2, 3, 0][whims.below(5)];
            let owner = whims.below(6) == 5;
            Offer {
                label: "work".into(),
                candidates: (0..if is_meek { 0 } else { count })
                    .map(|_| whims.candidate())
                    .collect(),
                owner: (owner && !is_meek).then(|| whims.person()),
                deadlines: whims.deadlines(graph, state),
                form: None,
            }
        };
        let offers: Vec<_> = (0..count).map(|_| offer(self)).collect();
        let needed = 1 + self.below(offers.len().max(1));
        let excluded = [0, 0, 0, 1, 2][self.below(5)];
        Assignment {
            needed: u32::try_from(needed).expect("few"),
            offers,
            exclude: (0..excluded).map(|_| self.person()).collect(),
            fallback: (self.below(3) == 2).then(|| self.group()),
            priority: 0,
            deadlines: self.deadlines(graph, state),
        }
    }

    fn deadlines(&mut self, graph: &Graph, state: &str) -> Vec<Deadline> {
        if self.below(3) != 2 {
            return Vec::new();
        }
        let mut ways = graph.leaving(state);
        let by_deadline = ways.find(|way| way.by.contains(&FiredBy::Deadline));
        let action = match (self.below(6), by_deadline) {
            (0, _) => OverdueAction::Remind,
            (1, _) => OverdueAction::Release,
            (2 | 3, _) | (4, None) => OverdueAction::Escalate,
            (4, Some(way)) => OverdueAction::Fire(way.trigger.clone()),
            _ if self.below(8) == 7 => OverdueAction::Fire("GO".into()),
            _ => OverdueAction::Remind,
        };
        vec![Deadline {
            when: Due::After(60),
            repeat: (self.below(3) == 2).then_some(60),
            action,
        }]
    }
}
