//! Random flows of nested forks and loops with branches spawned inside forks, run at random beside a model that knows how they were
//! built: the branches are always where the model has them, and every join begins once, when its last branch has arrived or ended.

use std::cell::Cell;
use std::rc::Rc;

use proptest::prelude::*;

use super::script::{Script, decide, end_branch, enter, offers};
use super::spawn::spawn;
use crate::command::Command;
use crate::graph::{FiredBy, Graph, Join, State, StateKind, Transition};
use crate::instance::{Instance, Status};
use crate::json::Json;

/// A piece of a flow. The numbers name its states.
#[derive(Debug, Clone)]
enum Block {
    Work(usize),
    Then(Vec<Block>),
    /// Any of the branches, but one at least, as the moment says.
    Fork(usize, Vec<Block>),
    /// The body, then a task that may lead back to its beginning.
    Again(usize, Box<Block>),
}

fn blocks() -> impl Strategy<Value = Block> {
    Just(Block::Work(0)).prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..3).prop_map(Block::Then),
            prop::collection::vec(inner.clone(), 2..4)
                .prop_map(|branches| Block::Fork(0, branches)),
            inner.prop_map(|body| Block::Again(0, Box::new(body))),
        ]
    })
}

/// Gives each piece a number of its own.
fn number(block: &mut Block, next: &mut usize) {
    *next += 1;
    let own = *next;
    match block {
        Block::Work(number) => *number = own,
        Block::Then(parts) => {
            for part in parts {
                number(part, next);
            }
        }
        Block::Fork(id, branches) => {
            *id = own;
            for branch in branches {
                number(branch, next);
            }
        }
        Block::Again(id, body) => {
            *id = own;
            number(body, next);
        }
    }
}

#[derive(Default)]
struct Wiring {
    states: Vec<State>,
    transitions: Vec<Transition>,
}

impl Wiring {
    fn state(&mut self, name: &str, kind: StateKind, join: bool) {
        self.states.push(State {
            name: name.into(),
            title: name.into(),
            description: String::new(),
            kind,
            join: if join { Join::All } else { Join::None },
            own_work: false,
        });
    }

    fn way(&mut self, source: &str, trigger: &str, by: FiredBy, targets: &[String]) {
        self.transitions.push(Transition {
            source: source.into(),
            trigger: trigger.into(),
            targets: targets.to_vec(),
            by: vec![by],
            ..Transition::default()
        });
    }

    /// Draws the block with its way on to `next`, and returns where it begins. Work inside a fork may let a branch begin
    /// beside it, which goes on to the fork's join.
    fn wire(&mut self, block: &Block, next: &str, around: Option<&str>) -> String {
        match block {
            Block::Work(id) => {
                if let Some(join) = around {
                    let beside = [self.task(&format!("S{id}"), join, false)];
                    // A name of its own: no other state takes the signal.
                    let trigger = format!("SPAWN{id}");
                    self.way(&format!("W{id}"), &trigger, FiredBy::Signal, &beside);
                }
                self.task(&format!("W{id}"), next, false)
            }
            Block::Then(parts) => parts
                .iter()
                .rev()
                .fold(next.to_owned(), |next, part| self.wire(part, &next, around)),
            Block::Fork(id, branches) => {
                let (fork, join) = (format!("F{id}"), format!("J{id}"));
                self.task(&join, next, true);
                let firsts: Vec<_> = branches
                    .iter()
                    .map(|branch| self.wire(branch, &join, Some(&join)))
                    .collect();
                self.state(&fork, StateKind::Router, false);
                self.way(&fork, "PASS", FiredBy::Entry, &firsts);
                fork
            }
            Block::Again(id, body) => {
                let back = format!("L{id}");
                let first = self.wire(body, &back, around);
                self.task(&back, next, false);
                self.way(
                    &back,
                    "AGAIN",
                    FiredBy::Decision,
                    std::slice::from_ref(&first),
                );
                first
            }
        }
    }

    fn task(&mut self, name: &str, next: &str, join: bool) -> String {
        self.state(name, StateKind::Task, join);
        let next = [next.to_owned()];
        self.way(name, "GO", FiredBy::Decision, &next);
        self.way(name, "END", FiredBy::Decision, &next);
        name.to_owned()
    }
}

fn graph(block: &Block) -> Graph {
    let mut wiring = Wiring::default();
    let first = wiring.wire(block, "Done", None);
    wiring.state("Done", StateKind::Terminal("DONE".into()), false);
    wiring.task("Begin", &first, false);
    Graph {
        initial: "Begin".into(),
        states: wiring.states,
        transitions: wiring.transitions,
        ..Graph::default()
    }
}

/// Which of `count` branches a fork takes at this moment; one at least.
fn taken(fork: &str, count: usize, moment: u64) -> Vec<usize> {
    let id: u64 = fork[1..].parse().expect("a number");
    let mixed =
        (moment ^ id.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32;
    let mask = mixed % ((1 << count) - 1) + 1;
    (0..count)
        .filter(|branch| mask & (1 << branch) != 0)
        .collect()
}

/// Where the branches are, by the structure of the flow.
#[derive(Debug, Clone)]
enum BranchPosition {
    At(String),
    Inside {
        fork: String,
        branches: Vec<BranchPosition>,
        arrived: usize,
    },
}

enum Moved {
    To(BranchPosition),
    /// It goes on, and this branch begins beside it.
    Beside(BranchPosition, BranchPosition),
    Arrived,
    Ended,
    Done,
}

impl BranchPosition {
    fn enter(graph: &Graph, name: &str, moment: u64) -> BranchPosition {
        if !name.starts_with('F') {
            return BranchPosition::At(name.to_owned());
        }
        let targets = &graph.transition(name, "PASS").expect("a way").targets;
        let branches = taken(name, targets.len(), moment)
            .into_iter()
            .map(|branch| BranchPosition::enter(graph, &targets[branch], moment));
        BranchPosition::Inside {
            fork: name.to_owned(),
            branches: branches.collect(),
            arrived: 0,
        }
    }

    fn active(&self) -> Vec<String> {
        match self {
            BranchPosition::At(name) => vec![name.clone()],
            BranchPosition::Inside { branches, .. } => {
                branches.iter().flat_map(BranchPosition::active).collect()
            }
        }
    }

    /// The joins that some have come to, and how many.
    fn waiting(&self) -> Vec<(String, usize)> {
        let BranchPosition::Inside {
            fork,
            branches,
            arrived,
        } = self
        else {
            return vec![];
        };
        let own = (*arrived > 0).then(|| (format!("J{}", &fork[1..]), *arrived));
        own.into_iter()
            .chain(branches.iter().flat_map(BranchPosition::waiting))
            .collect()
    }

    /// Moves the branch that is the `number`-th of the active ones.
    fn step(self, graph: &Graph, number: usize, trigger: &str, moment: u64) -> Moved {
        match self {
            BranchPosition::At(name) => {
                let next = &graph.transition(&name, trigger).expect("a way").targets[0];
                match trigger {
                    _ if trigger.starts_with("SPAWN") => {
                        let beside = BranchPosition::At(format!("S{}", &name[1..]));
                        Moved::Beside(BranchPosition::At(name), beside)
                    }
                    "END" => Moved::Ended,
                    _ if next == "Done" => Moved::Done,
                    _ if next.starts_with('J') => Moved::Arrived,
                    _ => Moved::To(BranchPosition::enter(graph, next, moment)),
                }
            }
            BranchPosition::Inside {
                fork,
                mut branches,
                mut arrived,
            } => {
                let mut before = 0;
                let index = branches
                    .iter()
                    .position(|branch| {
                        before += branch.active().len();
                        number < before
                    })
                    .expect("a branch");
                let number = number + branches[index].active().len() - before;
                match branches.remove(index).step(graph, number, trigger, moment) {
                    Moved::To(place) => branches.insert(index, place),
                    Moved::Beside(place, beside) => {
                        branches.insert(index, place);
                        branches.push(beside);
                    }
                    Moved::Arrived => arrived += 1,
                    Moved::Ended => {}
                    Moved::Done => return Moved::Done,
                }
                match (branches.is_empty(), arrived) {
                    (true, 0) => Moved::Ended,
                    (true, _) => Moved::To(BranchPosition::At(format!("J{}", &fork[1..]))),
                    (false, _) => Moved::To(BranchPosition::Inside {
                        fork,
                        branches,
                        arrived,
                    }),
                }
            }
        }
    }
}

fn places(instance: &Instance) -> (Vec<String>, Vec<(String, usize)>) {
    let mut active: Vec<_> = instance
        .active
        .iter()
        .map(|state_instance| state_instance.name.clone())
        .collect();
    let waiting = instance.waiting.iter();
    let mut waiting: Vec<_> = waiting
        .map(|state_instance| {
            (
                state_instance.name.clone(),
                state_instance.predecessors.len(),
            )
        })
        .collect();
    active.sort();
    waiting.sort();
    (active, waiting)
}

/// Goes each way as drawn; routers choose as the moment says, and END ends a branch.
fn scripted(drawn: &Graph, moment: &Rc<Cell<u64>>) -> Script {
    let (ways, now) = (drawn.clone(), moment.clone());
    Script::new()
        .drawn(drawn.clone())
        .planning_for(move |occurrence, state, _| {
            let way = ways.transition(state, &occurrence.trigger).expect("a way");
            let names: Vec<_> = way.targets.iter().map(String::as_str).collect();
            Ok(match occurrence.trigger.as_str() {
                "PASS" => {
                    let taken = taken(state, names.len(), now.get());
                    enter(&taken.into_iter().map(|at| names[at]).collect::<Vec<_>>())
                }
                "END" => end_branch(),
                spawns if spawns.starts_with("SPAWN") => spawn(&names),
                _ => enter(&names),
            })
        })
        .assigning(|_| offers(&["crew"]))
        .started()
}

/// Every branch that arrived at a join arrived at only one, once.
fn check_arrivals(instance: &Instance) -> Result<(), TestCaseError> {
    let past = instance.past.iter().map(|past| &past.state);
    let joins = past
        .chain(&instance.active)
        .filter(|state_instance| state_instance.name.starts_with('J'));
    let mut arrived: Vec<_> = joins
        .flat_map(|state_instance| &state_instance.predecessors)
        .collect();
    let count = arrived.len();
    arrived.sort_unstable();
    arrived.dedup();
    prop_assert_eq!(arrived.len(), count);
    Ok(())
}

/// Whether the state spawns, and what it spawned before has moved on.
fn may_spawn(graph: &Graph, name: &str, active: &[String]) -> bool {
    let beside = format!("S{}", &name[1..]);
    let trigger = format!("SPAWN{}", &name[1..]);
    graph.transition(name, &trigger).is_some() && !active.contains(&beside)
}

fn signal(instance: &Instance, trigger: &str, number: usize) -> Command {
    Command::Signal {
        instance: instance.id,
        trigger: trigger.into(),
        id: number.to_string(),
        input: Json::empty(),
        correlation: None,
        state: None,
    }
}

fn walk(block: &Block, steps: &[(usize, u8)]) -> Result<(), TestCaseError> {
    let drawn = graph(block);
    let moment = Rc::new(Cell::new(0));
    let mut script = scripted(&drawn, &moment);
    let mut model = Some(BranchPosition::At("Begin".into()));
    for (number, (pick, kind)) in steps.iter().enumerate() {
        let Some(place) = model.take() else { break };
        moment.set(number as u64 + 1);
        let active = place.active();
        let name = &active[pick % active.len()];
        let spawns = format!("SPAWN{}", &name[1..]);
        let trigger = match kind {
            0 if name.starts_with('L') => "AGAIN",
            2 if may_spawn(&drawn, name, &active) => &*spawns,
            1 if active.len() + place.waiting().len() > 1 => "END",
            _ => "GO",
        };
        // No state has two branches at once: every loop is closed inside its own branch.
        let mut state_instances = script.instance().active.iter();
        let state_instance = state_instances
            .find(|state_instance| state_instance.name == *name)
            .expect("as the model");
        let task = state_instance.tasks[0].id;
        let moved = if trigger == spawns {
            script.run("bob", &signal(script.instance(), trigger, number))
        } else {
            script.claim(task);
            script.run("bob", &decide(task, trigger))
        };
        moved.map_err(|error| TestCaseError::fail(format!("{trigger} in {name}: {error}")))?;
        match place.step(&drawn, pick % active.len(), trigger, moment.get()) {
            Moved::To(place) => {
                let (mut active, mut waiting) = (place.active(), place.waiting());
                active.sort();
                waiting.sort();
                prop_assert_eq!(places(script.instance()), (active, waiting));
                model = Some(place);
            }
            Moved::Done => {
                let ended = matches!(script.instance().status, Status::Completed { .. });
                prop_assert!(ended && script.instance().waiting.is_empty());
            }
            Moved::Arrived | Moved::Ended | Moved::Beside(..) => {
                prop_assert!(false, "outside of all forks");
            }
        }
    }
    check_arrivals(script.instance())
}

/// The outer fork goes on in `W3`, which ends, in a choice of `W5` alone, and beside both in `W7`.
#[test]
fn a_choice_joined_in_the_place_of_its_fork_leaves_the_forks_join_open() {
    let work = || Block::Work(0);
    let choice = Block::Fork(0, vec![work(), work()]);
    let inner = Block::Fork(0, vec![work(), choice]);
    let mut block = Block::Fork(0, vec![inner, work()]);
    number(&mut block, &mut 0);
    let drawn = graph(&block);
    let ways = drawn.clone();
    let mut script = Script::new()
        .drawn(drawn)
        .planning_for(move |occurrence, state, _| {
            let way = ways.transition(state, &occurrence.trigger).expect("a way");
            let names: Vec<_> = way.targets.iter().map(String::as_str).collect();
            Ok(match (occurrence.trigger.as_str(), state) {
                ("END", _) => end_branch(),
                (_, "F4") => enter(&names[..1]),
                _ => enter(&names),
            })
        })
        .started();
    let mut go = |name: &str, trigger| {
        let state_instance = script
            .instance()
            .active
            .iter()
            .find(|state_instance| state_instance.name == name);
        let task = state_instance
            .unwrap_or_else(|| panic!("{name} is active"))
            .tasks[0]
            .id;
        script.claim(task);
        script.run("bob", &decide(task, trigger)).expect("a step");
        places(script.instance())
    };
    let here = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(go("Begin", "GO").0, here(&["W3", "W5", "W7"]));
    assert_eq!(go("W3", "END").0, here(&["W5", "W7"]));
    assert_eq!(
        go("W5", "GO").0,
        here(&["J4", "W7"]),
        "nobody else comes to J4"
    );
    assert_eq!(go("J4", "GO").0, here(&["J2", "W7"]), "nor to J2");
    let (active, waiting) = go("J2", "GO");
    assert_eq!(
        (active, waiting.len()),
        (here(&["W7"]), 1),
        "J1 waits for W7"
    );
    assert_eq!(go("W7", "GO").0, here(&["J1"]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn no_branch_is_lost_or_doubled_and_joins_begin_when_the_last_has_come(
        block in blocks(),
        steps in prop::collection::vec((0_usize..64, 0_u8..5), 1..60),
    ) {
        let mut block = block;
        number(&mut block, &mut 0);
        walk(&block, &steps)?;
    }
}
