//! Migration of instances that wait: which branches stay apart in their joins, and what could still move a wait state.

use super::deadlines::{after, late};
use super::migration::{migrate, unfit};
use super::script::{Script, decide, enter};
use super::waits::{script, signals};
use crate::answer::Waiting;
use crate::check::samples::{self, way};
use crate::graph::{FiredBy, Graph, Join, State, StateKind};
use crate::ids::ForkId;

/// `Begin` forks into `A`, which goes to the join `Early`, and `B` and `C`, which go to the join `Late`.
fn forking() -> Graph {
    let work = |name: &str| samples::state(name, name, StateKind::Task);
    let join = |name: &str| State {
        join: Join::All,
        ..work(name)
    };
    let done = StateKind::Terminal("DONE".into());
    Graph {
        initial: "Begin".into(),
        states: vec![
            work("Begin"),
            work("A"),
            work("B"),
            work("C"),
            join("Early"),
            join("Late"),
            samples::state("Done", "Done", done),
        ],
        transitions: vec![
            way("Begin", "GO", &["A", "B", "C"]),
            way("A", "GO", &["Early"]),
            way("B", "GO", &["Late"]),
            way("C", "GO", &["Late"]),
            way("Early", "GO", &["Late"]),
            way("Late", "GO", &["Done"]),
        ],
        ..Graph::default()
    }
}

/// `bob` decides GO in this state.
fn step(script: &mut Script, state: &str) {
    let active = script.instance().active.iter();
    let mut tasks = active
        .filter(|one| one.name == state)
        .flat_map(|one| &one.tasks);
    let open = tasks.find(|task| task.status.is_open());
    let task = open.expect("an open task").id;
    script.claim(task);
    script.run("bob", &decide(task, "GO")).expect("a decision");
}

/// `B` waits in `Late`, `A` in `Early`, and `C` is at work.
fn forked(change: impl FnOnce(&mut Graph)) -> Script {
    let plan = |from: &str, _: &_| {
        Ok(match from {
            "Begin" => enter(&["A", "B", "C"]),
            "A" => enter(&["Early"]),
            "Late" => enter(&["Done"]),
            _ => enter(&["Late"]),
        })
    };
    let script = Script::new().drawn(forking()).planning(plan);
    let mut script = script.followed_by(change).started();
    for state in ["Begin", "B", "A"] {
        step(&mut script, state);
    }
    script
}

fn waiting(script: &Script) -> Vec<&str> {
    let waiting = script.instance().waiting.iter();
    waiting.map(|one| one.name.as_str()).collect()
}

#[test]
fn branches_of_a_fork_that_wait_in_two_joins_do_not_come_to_wait_in_one() {
    let single = |graph: &mut Graph| {
        graph.states.retain(|state| state.name != "Early");
        graph.transitions.retain(|way| way.source != "Early");
        let ways = graph.transitions.iter_mut();
        for target in ways.flat_map(|way| way.targets.iter_mut()) {
            *target = target.replace("Early", "Late");
        }
    };
    let mut script = forked(single);
    assert_eq!(waiting(&script), ["Late", "Early"]);
    let to_one = [("Early", "Late")];
    assert_eq!(unfit(&mut script, &to_one), ["/states/Early same_join"]);

    // Once one of them has begun, each join is for itself.
    step(&mut script, "C");
    step(&mut script, "Early");
    migrate(&mut script, &[]).expect("a migration");
    step(&mut script, "Late");
    assert!(script.instance().status.ended_at().is_some());
}

#[test]
fn branches_stay_apart_in_joins_that_change_names_and_in_other_forks() {
    let swap = [("Early", "Late"), ("Late", "Early")];
    let mut script = forked(|_| ());
    migrate(&mut script, &swap).expect("a migration");
    assert_eq!(waiting(&script), ["Early", "Late"]);

    let mut script = forked(|_| ());
    let mut instance = script.instance().clone();
    let inner = ForkId(uuid::Uuid::from_u128(77));
    for branch in [&mut instance.active[0], &mut instance.waiting[1]] {
        branch.forks.push(inner);
    }
    script.instance = Some(instance);
    migrate(&mut script, &[("Early", "Late")]).expect("a migration");
    assert_eq!(waiting(&script), ["Late", "Late"]);
}

/// `Wait` takes no signals.
fn deaf(graph: &mut Graph) {
    let ways = &mut graph.transitions;
    ways.retain(|way| way.source != "Wait" || !way.by.contains(&FiredBy::Signal));
}

#[test]
fn a_wait_that_signals_alone_move_needs_a_version_that_takes_one() {
    let until = |waiting: Waiting| {
        let script = script("Wait", move |_| waiting.clone());
        let mut script = script.followed_by(deaf);
        script.go().expect("a wait");
        script
    };
    let mut lost = until(signals());
    assert_eq!(unfit(&mut lost, &[]), ["/states/Wait nothing_moves_it"]);
    let one_left = |graph: &mut Graph| graph.transitions.retain(|way| way.trigger != "PAID");
    let mut kept = until(signals()).followed_by(one_left);
    migrate(&mut kept, &[]).expect("another signal moves it");

    let timed = Waiting {
        deadlines: vec![after(60, late())],
        ..signals()
    };
    let mut kept = until(timed.clone());
    migrate(&mut kept, &[]).expect("the deadline moves it");

    // Where nothing moved it before, nothing is lost.
    let mut stuck = until(timed);
    stuck.redraw(deaf);
    let mut instance = stuck.instance().clone();
    instance.active[0].deadlines.clear();
    stuck.instance = Some(instance);
    migrate(&mut stuck, &[]).expect("a migration");
}
