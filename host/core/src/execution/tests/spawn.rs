//! Plans by which a state goes on and branches begin beside it.

use super::deadlines::{every, kinds, late, open, pass};
use super::script::{Script, decide, end_branch, enter, fault, offers, rejection};
use super::{deadlines, waits};
use crate::answer::{Deadline, Next, OverdueAction, Plan, Target};
use crate::check::samples::{self, way_by as way};
use crate::command::Command;
use crate::event::{Event, is_blind};
use crate::execution::Outcome;
use crate::graph::{FiredBy, Graph, Join, State, StateKind};
use crate::ids::TaskId;
use crate::instance::blind::{hidden_end, hidden_entry};
use crate::instance::{Instance, StateInstance, Status};
use crate::json::Json;
use crate::question::Occurrence;
use crate::shown::BRANCHES_MAX;

/// The branches of `Review` and those beside it meet in `Meet`, unless they end.
pub(super) fn graph() -> Graph {
    let state = |name: &str, kind| State {
        join: if name == "Meet" {
            Join::All
        } else {
            Join::None
        },
        ..samples::state(name, name, kind)
    };
    let anywhere = ["Other", "Reminder", "Meet", "Hop", "Done"];
    Graph {
        initial: "Review".into(),
        initiators: vec!["crew".into()],
        states: vec![
            state("Review", StateKind::Task),
            state("Other", StateKind::Task),
            state("Reminder", StateKind::Task),
            state("Hop", StateKind::Router),
            state("Meet", StateKind::Task),
            state("Done", StateKind::Terminal("DONE".into())),
        ],
        transitions: vec![
            way("Review", "GO", FiredBy::Decision, &["Meet"]),
            way("Review", "ASK", FiredBy::Decision, &anywhere),
            way("Review", "FORK", FiredBy::Decision, &["Other", "Reminder"]),
            way("Review", "LATE", FiredBy::Deadline, &["Reminder"]),
            way("Review", "CALL", FiredBy::Signal, &["Reminder"]),
            way("Hop", "ON", FiredBy::Entry, &["Other"]),
            way("Other", "GO", FiredBy::Decision, &["Meet"]),
            way("Other", "ASK", FiredBy::Decision, &["Review"]),
            way("Reminder", "GO", FiredBy::Decision, &["Meet"]),
            way("Reminder", "END", FiredBy::Decision, &["Meet"]),
            way("Meet", "GO", FiredBy::Decision, &["Done"]),
        ],
        ..Graph::default()
    }
}

pub(super) fn spawn(states: &[&str]) -> Plan {
    Plan {
        next: Next::Spawn(states.iter().map(|state| Target::new(*state)).collect()),
        ..Plan::default()
    }
}

/// GO goes on, END ends, LATE and CALL spawn `Reminder`, and ASK does what is said. `Review` has two tasks and these deadlines.
fn flow(deadlines: &[Deadline], plan_for: impl Fn(&str) -> Plan + 'static) -> Script {
    let deadlines = deadlines.to_vec();
    let plan = move |occurrence: &Occurrence, state: &str, _: &Instance| {
        Ok(match (occurrence.trigger.as_str(), state) {
            ("GO", "Meet") => enter(&["Done"]),
            ("GO", _) => enter(&["Meet"]),
            ("FORK", _) => enter(&["Other", "Reminder"]),
            ("LATE" | "CALL", _) => spawn(&["Reminder"]),
            ("END", _) => end_branch(),
            _ => plan_for(state),
        })
    };
    let assign = move |state: &str| match state {
        "Review" => crate::answer::Assignment {
            deadlines: deadlines.clone(),
            ..offers(&["crew", "crew"])
        },
        _ => offers(&["crew"]),
    };
    let script = Script::new().drawn(graph()).planning_for(plan);
    script.assigning(assign).started()
}

fn reminded() -> Script {
    flow(&[every(60, deadlines::after(60, late()))], |_| {
        spawn(&["Other"])
    })
}

fn names(state_instances: &[StateInstance]) -> Vec<&str> {
    let names = state_instances.iter().map(|one| one.name.as_str());
    names.collect()
}

fn place<'s>(script: &'s Script, name: &str) -> &'s StateInstance {
    let mut active = script.instance().active.iter();
    active.find(|one| one.name == name).expect("active")
}

fn open_task(script: &Script, name: &str) -> TaskId {
    let mut tasks = place(script, name).tasks.iter();
    tasks
        .find(|task| task.status.is_open())
        .expect("an open task")
        .id
}

/// Somebody new decides so on an open task of this state.
fn step(script: &mut Script, name: &str, outcome: &str) -> Vec<Event> {
    let (task, person) = (open_task(script, name), format!("p{}", script.now()));
    let run = |script: &mut Script, command| script.run(&person, &command);
    run(script, Command::Claim { task }).expect("a claim");
    let decided = run(script, decide(task, outcome));
    decided.expect("a decision").events
}

#[test]
fn a_deadline_begins_a_branch_beside_the_work() {
    let mut script = reminded();
    let task = script.task(0);
    script.claim(task);
    let before = place(&script, "Review").clone();
    let events = pass(&mut script, 0, 60);
    let expected = [
        "DEADLINE_PASSED",
        "STATE_CONTINUED",
        "STATE_ENTERED",
        "TASK_CREATED",
    ];
    assert_eq!(kinds(&events), expected);
    assert!(
        matches!(&events[1], Event::StateContinued { to, trigger, .. } if trigger == "LATE" && to == &["Reminder"])
    );
    let after = place(&script, "Review");
    assert_eq!((&after.tasks, after.id), (&before.tasks, before.id));
    assert_eq!(after.deadlines[0].count, 1, "it passes again");
    let begun = place(&script, "Reminder");
    assert_eq!(begun.predecessors, [before.id]);
    assert_eq!(begun.entered_trigger.as_deref(), Some("LATE"));
    assert_eq!(begun.forks, before.forks);
    pass(&mut script, 0, 120);
    let here = names(&script.instance().active);
    assert_eq!(here, ["Review", "Reminder", "Reminder"]);
}

#[test]
fn a_decision_begins_a_branch_beside_the_tasks_left() {
    let mut script = reminded();
    let events = step(&mut script, "Review", "ASK");
    let expected = [
        "DECISION_RECORDED",
        "STATE_CONTINUED",
        "STATE_ENTERED",
        "TASK_CREATED",
    ];
    assert_eq!(kinds(&events), expected);
    assert_eq!(names(&script.instance().active), ["Review", "Other"]);
}

/// With a deadline that moves it, a state may go on after its last task.
#[test]
fn a_state_that_nothing_could_move_does_not_go_on() {
    for movable in [true, false] {
        let fires = [deadlines::after(60, late())];
        let mut script = flow(if movable { &fires } else { &[] }, |_| spawn(&["Other"]));
        script.redraw(|graph| graph.transitions.retain(|way| way.trigger != "CALL"));
        step(&mut script, "Review", "ASK");
        let task = open_task(&script, "Review");
        script
            .run("eve", &Command::Claim { task })
            .expect("a claim");
        let decided = script.run("eve", &decide(task, "ASK"));
        if movable {
            assert_eq!(decided.expect("LATE may come").instance.active.len(), 3);
        } else {
            let expected = "transition: Review goes on with nothing left that could move it";
            assert_eq!(fault(decided), expected);
        }
    }
}

/// The signal by which `Review` goes on and `Reminder` begins beside it.
fn call(script: &mut Script) -> Outcome {
    let command = Command::Signal {
        instance: script.instance().id,
        trigger: "CALL".into(),
        id: "one".into(),
        input: Json::empty(),
        correlation: None,
        state: None,
    };
    script.run("eve", &command).expect("a signal")
}

#[test]
fn a_signal_and_the_end_of_a_child_begin_branches_too() {
    let mut script = reminded();
    let called = call(&mut script);
    assert_eq!(names(&called.instance.active), ["Review", "Reminder"]);

    let child = crate::answer::Child {
        key: "subflows".into(),
        entity_type: "errand".into(),
        entity_id: "1".into(),
        data: "{}".into(),
        on_end: Some("ENDED".into()),
        detached: false,
    };
    let waiting = crate::answer::Waiting {
        children: vec![child],
        ..waits::signals()
    };
    let mut script = waits::script("Wait", move |_| waiting.clone());
    script.redraw(|graph| {
        let mut ways = graph.transitions.iter_mut();
        let ended = ways.find(|way| way.source == "Wait" && way.trigger == "ENDED");
        ended.expect("a way").targets = vec!["Desk".into()];
    });
    let mut script = script.planning(|state, _| {
        Ok(match state {
            "Desk" => enter(&["Wait"]),
            _ => spawn(&["Desk"]),
        })
    });
    script.go().expect("a decision");
    let ended = Command::ChildEnded {
        instance: script.instance().id,
        child: script.instance().active[0].children[0].id,
        version: Some(1),
        outcome: "DONE".into(),
        data: Json::empty(),
        reason: None,
    };
    let ended = script.run_as(&crate::actor::Actor::host(), &ended);
    let ended = ended.expect("an end").instance;
    assert_eq!(names(&ended.active), ["Wait", "Desk"]);
}

#[test]
fn a_join_waits_for_spawned_branches() {
    let mut script = reminded();
    pass(&mut script, 0, 60);
    step(&mut script, "Review", "ASK");
    step(&mut script, "Review", "GO");
    assert_eq!(names(&script.instance().waiting), ["Meet"]);
    step(&mut script, "Other", "GO");
    assert_eq!(names(&script.instance().active), ["Reminder"]);
    // It ends, and nobody else is waited for.
    step(&mut script, "Reminder", "END");
    assert_eq!(names(&script.instance().active), ["Meet"]);
    assert_eq!(place(&script, "Meet").predecessors.len(), 2);
    step(&mut script, "Meet", "GO");
    assert!(matches!(script.instance().status, Status::Completed { .. }));
}

#[test]
fn a_spawned_branch_that_comes_first_waits_for_the_state_beside_which_it_began() {
    let mut script = reminded();
    step(&mut script, "Review", "ASK");
    step(&mut script, "Other", "GO");
    assert_eq!(names(&script.instance().waiting), ["Meet"]);
    assert_eq!(names(&script.instance().active), ["Review"]);
    step(&mut script, "Review", "GO");
    assert_eq!(names(&script.instance().active), ["Meet"]);
}

/// `Other` leads back to `Review`, which spawns inside the fork that it is in.
#[test]
fn a_branch_spawned_inside_a_fork_belongs_to_that_fork() {
    let mut script = flow(&[every(60, deadlines::after(60, late()))], |state| {
        enter(&[if state == "Other" { "Review" } else { "Meet" }])
    });
    step(&mut script, "Review", "FORK");
    step(&mut script, "Reminder", "GO");
    step(&mut script, "Other", "ASK");
    let fork = place(&script, "Review").forks.clone();
    assert_eq!(fork.len(), 1);
    let second = script.now() + 60;
    pass(&mut script, 0, second);
    assert_eq!(place(&script, "Reminder").forks, fork);
    step(&mut script, "Review", "GO");
    assert_eq!(names(&script.instance().active), ["Reminder"]);
    step(&mut script, "Reminder", "GO");
    assert_eq!(names(&script.instance().active), ["Meet"]);
    assert_eq!(place(&script, "Meet").forks, [], "it closes the fork");
    assert_eq!(place(&script, "Meet").predecessors.len(), 3);
}

#[test]
fn the_last_branch_does_not_end_but_one_beside_others_may() {
    let mut script = reminded();
    pass(&mut script, 0, 60);
    let plan = |_: &Occurrence, _: &str, _: &Instance| Ok(end_branch());
    let mut script = script.planning_for(plan);
    step(&mut script, "Review", "GO");
    assert_eq!(names(&script.instance().active), ["Reminder"]);
    let task = open_task(&script, "Reminder");
    script.claim(task);
    assert_eq!(
        fault(script.run("bob", &decide(task, "END"))),
        "transition: Reminder ends the last branch without an outcome"
    );
}

#[test]
fn a_terminal_state_ends_the_state_that_would_go_on() {
    let mut script = flow(&[], |_| spawn(&["Reminder", "Done"]));
    let events = step(&mut script, "Review", "ASK");
    assert!(matches!(script.instance().status, Status::Completed { .. }));
    let entered = events.iter().filter_map(|event| match event {
        Event::StateEntered { state, .. } => Some(state.name.as_str()),
        _ => None,
    });
    assert_eq!(entered.collect::<Vec<_>>(), ["Done"]);
    assert!(script.instance().active.is_empty());
}

#[test]
fn what_is_spawned_is_declared_once_each_and_something() {
    let refusal = |plan: Plan| {
        let mut script = flow(&[], move |_| plan.clone());
        let task = script.task(0);
        script.claim(task);
        fault(script.run("bob", &decide(task, "ASK")))
    };
    assert_eq!(
        refusal(spawn(&[])),
        "transition: Review spawns no state; a state goes on alone with `stay`"
    );
    assert_eq!(
        refusal(spawn(&["Review"])),
        "transition: Review on ASK may lead to Other, Reminder, Meet, Hop, Done, not to \"Review\""
    );
    assert_eq!(
        refusal(spawn(&["Other", "Other"])),
        "transition: a plan must not enter a state twice"
    );
}

#[test]
fn a_router_does_not_go_on() {
    let mut script = flow(&[], |_| spawn(&["Hop"]));
    let plan = |occurrence: &Occurrence, _: &str, _: &Instance| {
        Ok(match occurrence.trigger.as_str() {
            "ON" => spawn(&["Other"]),
            _ => enter(&["Hop"]),
        })
    };
    let task = script.task(0);
    script.claim(task);
    let mut script = script.planning_for(plan);
    assert_eq!(
        fault(script.run("bob", &decide(task, "ASK"))),
        "transition: Hop goes on with nothing left that could move it"
    );
}

/// A deadline that repeats for ever does not spawn for ever. Its refusals are recorded, and the work goes on.
#[test]
fn an_instance_has_so_many_branches_at_a_time() {
    let mut script = reminded();
    for number in 1..BRANCHES_MAX {
        let second = 60 * i64::try_from(number).expect("few");
        let events = pass(&mut script, 0, second);
        assert_eq!(kinds(&events)[1], "STATE_CONTINUED", "{number}");
    }
    assert_eq!(script.instance().active.len(), BRANCHES_MAX);
    let second = script.now() + 60;
    let events = pass(&mut script, 0, second);
    assert_eq!(kinds(&events), ["DEADLINE_PASSED", "TRIGGER_REFUSED"]);
    let Event::TriggerRefused { code, message, .. } = &events[1] else {
        panic!("{events:?}");
    };
    assert_eq!(code, "limit_reached");
    assert!(message.contains("more than 200 states"), "{message}");
    assert_eq!(open(script.instance()).len(), 1, "the deadline is open");

    let task = open_task(&script, "Review");
    script.claim(task);
    let refused = rejection(script.run("bob", &decide(task, "ASK")));
    assert_eq!(refused.code(), "limit_reached");
    // Whatever adds none is possible, and makes room.
    step(&mut script, "Reminder", "END");
    let decided = script.run("bob", &decide(task, "ASK"));
    assert_eq!(decided.expect("room").instance.active.len(), BRANCHES_MAX);
}

/// What the plan cancels makes room, and is entered no more.
#[test]
fn a_state_that_goes_on_may_cancel_an_earlier_reminder() {
    let plan = |occurrence: &Occurrence, _: &str, instance: &Instance| {
        let earlier = instance.active.iter().filter(|one| one.name == "Reminder");
        Ok(Plan {
            cancel: match occurrence.trigger.as_str() {
                "LATE" => earlier.map(|one| one.id.to_string()).collect(),
                _ => vec![],
            },
            ..spawn(&["Reminder"])
        })
    };
    let mut script = reminded().planning_for(plan);
    for second in [60, 120, 180] {
        pass(&mut script, 0, second);
        assert_eq!(names(&script.instance().active), ["Review", "Reminder"]);
    }
    assert_eq!(script.instance().past.len(), 2);
}

#[test]
fn who_has_decided_is_excluded_from_a_separate_state_that_they_spawn() {
    let mut script = flow(&[], |_| spawn(&["Other"]));
    script.redraw(|graph| graph.separate = vec![vec!["Review".into(), "Other".into()]]);
    let task = script.task(0);
    script.claim(task);
    script.run("bob", &decide(task, "ASK")).expect("a decision");
    assert_eq!(place(&script, "Other").exclude, ["bob"]);
}

#[test]
fn an_action_that_fires_is_no_other_than_that_of_an_interrupting_deadline() {
    // The same deadline interrupts or not, as the plan says when it passes.
    let mut script = reminded();
    let plan = |_: &Occurrence, _: &str, instance: &Instance| {
        let targets = vec![Target::new("Reminder")];
        let is_first = instance.active.len() == 1;
        Ok(Plan {
            next: if is_first {
                Next::Spawn(targets)
            } else {
                Next::Enter(targets)
            },
            ..Plan::default()
        })
    };
    assert_eq!(
        open(script.instance())[0].2.action,
        OverdueAction::Fire("LATE".into())
    );
    script = script.planning_for(plan);
    pass(&mut script, 0, 60);
    assert_eq!(names(&script.instance().active), ["Review", "Reminder"]);
    pass(&mut script, 0, 120);
    assert_eq!(names(&script.instance().active), ["Reminder", "Reminder"]);
}

/// The types of the events that tell nobody of a decision that is hidden.
fn hiding(events: &[Event]) -> Vec<&'static str> {
    let blind = events
        .iter()
        .filter(|event| is_blind(event.kind(), Json::of(event).as_str()));
    blind.map(Event::kind).collect()
}

#[test]
fn what_a_blind_decision_begins_or_cancels_hides_it() {
    let plan = |occurrence: &Occurrence, _: &str, instance: &Instance| {
        let begun = instance.active.iter().filter(|one| one.name == "Other");
        let cancel: Vec<_> = begun.map(|one| one.id.to_string()).collect();
        Ok(match occurrence.trigger.as_str() {
            "CALL" => spawn(&["Reminder"]),
            _ if cancel.is_empty() => spawn(&["Other"]),
            _ => Plan {
                cancel,
                ..Plan::default()
            },
        })
    };
    let assign = |state: &str| crate::answer::Assignment {
        blind: state == "Review",
        ..offers(&["crew", "crew"])
    };
    let script = Script::new().drawn(graph()).planning_for(plan);
    let mut script = script.assigning(assign).started();
    let begun = step(&mut script, "Review", "ASK");
    let expected = ["DECISION_RECORDED", "STATE_CONTINUED", "STATE_ENTERED"];
    assert_eq!(hiding(&begun), expected);
    let hidden = hidden_entry(script.instance(), place(&script, "Other"));
    assert_eq!(
        hidden.map(|decision| decision.outcome.as_str()),
        Some("ASK")
    );

    let called = call(&mut script);
    assert!(hiding(&called.events).is_empty(), "a signal is told");
    let reminder = place(&script, "Reminder");
    assert_eq!(hidden_entry(script.instance(), reminder), None);

    let cancelled = step(&mut script, "Review", "ASK");
    let expected = ["DECISION_RECORDED", "STATE_CONTINUED", "STATE_CANCELLED"];
    assert_eq!(hiding(&cancelled), expected);
    let past = &script.instance().past[0];
    assert!(hidden_end(script.instance(), past).is_some());
}
