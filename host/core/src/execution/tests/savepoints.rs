//! Each trigger is settled before a buffered signal is taken, so a refusal undoes what it belongs to and nothing else.

use super::deadlines::{after, late, pass};
use super::limits::crowded;
use super::script::{Script, enter, json, offers};
use super::waits::{signals, subscription};
use crate::answer::{Assignment, Reason, Refusal, Waiting, Work};
use crate::check::samples::{self, way_by as way};
use crate::command::Command;
use crate::event::Event;
use crate::graph::{FiredBy, Graph, Join, StateKind};
use crate::instance::Instance;
use crate::question::{Entry, Occurrence};

/// `Desk` leads on GO to anything; `Left` on LATE to the join `Both` and to `Wait`. `Wait` takes PAID, `Seal`
/// takes SEALED.
fn graph() -> Graph {
    let state = |name: &str, kind| samples::state(name, name, kind);
    let mut both = state("Both", StateKind::Task);
    both.join = Join::Count(1);
    Graph {
        initial: "Desk".into(),
        initiators: vec!["crew".into()],
        states: vec![
            state("Desk", StateKind::Task),
            state("Left", StateKind::Task),
            state("Right", StateKind::Task),
            state("Wait", StateKind::Wait),
            state("Seal", StateKind::Wait),
            both,
            state("Done", StateKind::Terminal("DONE".into())),
        ],
        transitions: vec![
            way(
                "Desk",
                "GO",
                FiredBy::Decision,
                &["Left", "Right", "Wait", "Seal"],
            ),
            way("Left", "LATE", FiredBy::Deadline, &["Both", "Wait"]),
            way("Right", "GO", FiredBy::Decision, &["Done"]),
            way("Wait", "PAID", FiredBy::Signal, &["Left", "Right"]),
            way("Seal", "SEALED", FiredBy::Signal, &["Left", "Right"]),
            way("Both", "GO", FiredBy::Decision, &["Done"]),
        ],
        ..Graph::default()
    }
}

/// Takes the buffered signals of its trigger.
fn waiting(state: &str) -> Waiting {
    let trigger = if state == "Wait" { "PAID" } else { "SEALED" };
    Waiting {
        subscriptions: vec![subscription(trigger, None, true)],
        ..signals()
    }
}

fn send(script: &mut Script, trigger: &str) {
    let command = Command::Signal {
        instance: script.instance().id,
        trigger: trigger.into(),
        id: trigger.into(),
        input: json("{}"),
        correlation: None,
        state: None,
    };
    script.run("sam", &command).expect("a signal");
}

/// The triggers of the refusals, with their codes.
fn refusals(events: &[Event]) -> Vec<(&str, &str)> {
    let refused = events.iter().filter_map(|event| match event {
        Event::TriggerRefused { trigger, code, .. } => Some((trigger.as_str(), code.as_str())),
        _ => None,
    });
    refused.collect()
}

fn buffered(script: &Script) -> Vec<&str> {
    let buffered = script.instance().buffered.iter();
    buffered.map(|signal| signal.trigger.as_str()).collect()
}

fn active(script: &Script) -> Vec<&str> {
    let active = script.instance().active.iter();
    active.map(|state| state.name.as_str()).collect()
}

/// The join belongs to the deadline. A signal that could be taken beside it stays in the buffer.
#[test]
fn a_refused_join_undoes_the_deadline_that_reached_it_and_no_signal() {
    let work = |entry: &Entry| match entry.state.as_str() {
        "Wait" => Work::Wait(waiting("Wait")),
        "Left" => Work::Task(Assignment {
            deadlines: vec![after(60, late())],
            ..offers(&["crew"])
        }),
        _ => Work::Task(offers(&["crew"])),
    };
    let entered = move |entries: &[Entry]| {
        if entries.iter().any(|entry| entry.state == "Both") {
            return Err(Refusal::NotNow(Reason {
                code: "not_yet".into(),
                message: "later".into(),
            }));
        }
        Ok(entries.iter().map(work).collect())
    };
    let plan = |from: &str, _: &_| {
        Ok(enter(match from {
            "Desk" => &["Left"],
            "Left" => &["Both", "Wait"],
            "Wait" => &["Right"],
            _ => &["Both"],
        }))
    };
    let script = Script::new().drawn(graph()).entering(entered);
    let mut script = script.planning(plan).claimed();
    script.go().expect("a decision");
    send(&mut script, "PAID");
    let events = pass(&mut script, 0, 100);
    assert_eq!(refusals(&events), [("LATE", "not_yet")], "{events:?}");
    assert_eq!(active(&script), ["Left"]);
    assert_eq!(buffered(&script), ["PAID"]);
}

/// `PAID` leads to work that is too large, `SEALED` to an ordinary task.
fn outgrown_by_a_signal() -> Script {
    let script = Script::new().drawn(graph()).waiting(waiting);
    let script = script.assigning(|state| match state {
        "Left" => Assignment {
            deadlines: vec![after(60, late())],
            ..crowded()
        },
        _ => offers(&["crew"]),
    });
    script.planning_for(|occurrence, _, _| {
        Ok(enter(match occurrence.trigger.as_str() {
            "PAID" => &["Left"],
            "SEALED" => &["Right"],
            _ => &["Wait", "Seal"],
        }))
    })
}

/// What its sender chose ends neither the decision before it nor the signal behind it.
#[test]
fn a_signal_over_which_flow_logic_fails_is_undone_alone() {
    let broken = Refusal::Fault(Reason {
        code: "broken".into(),
        message: "no plan".into(),
    });
    // The second enters a state that is not declared for its trigger.
    for answer in [Err(broken), Ok(enter(&["Both"]))] {
        let plan =
            move |occurrence: &Occurrence, _: &str, _: &Instance| match occurrence.trigger.as_str()
            {
                "PAID" => answer.clone(),
                "SEALED" => Ok(enter(&["Right"])),
                _ => Ok(enter(&["Wait", "Seal"])),
            };
        let script = Script::new().drawn(graph()).waiting(waiting);
        let mut script = script.planning_for(plan).claimed();
        send(&mut script, "PAID");
        send(&mut script, "SEALED");
        let outcome = script.go().expect("a decision");
        assert_eq!(refusals(&outcome.events), [("PAID", "logic_fault")]);
        assert!(buffered(&script).is_empty());
        assert_eq!(active(&script), ["Wait", "Right"]);
    }
}

/// Each leads through two routers back to the state that takes the next.
#[test]
fn every_signal_may_pass_routers_of_its_own() {
    let mut drawn = graph();
    for name in ["First", "Second"] {
        let router = samples::state(name, name, StateKind::Router);
        drawn.states.push(router);
    }
    let targets = &mut drawn.transitions[3].targets;
    targets.push("First".into());
    drawn
        .transitions
        .push(way("First", "ON", FiredBy::Entry, &["Second"]));
    drawn
        .transitions
        .push(way("Second", "ON", FiredBy::Entry, &["Wait"]));
    let script = Script::new().drawn(drawn).waiting(waiting);
    let plan = |from: &str, _: &_| {
        Ok(enter(match from {
            "Wait" => &["First"],
            "First" => &["Second"],
            _ => &["Wait"],
        }))
    };
    let mut script = script.planning(plan).claimed();
    for _ in 0..16 {
        send(&mut script, "PAID");
    }
    let outcome = script.go().expect("a decision");
    assert!(refusals(&outcome.events).is_empty());
    let taken = outcome.events.iter();
    let taken = taken.filter(|event| matches!(event, Event::SignalTaken { .. }));
    assert_eq!(taken.count(), 16);
    assert!(buffered(&script).is_empty());
    assert_eq!(active(&script), ["Wait"]);
}

/// The signal that is too large is refused, not the decision before it or the signal after it.
#[test]
fn the_signal_that_enlarges_the_facts_is_refused() {
    let mut script = outgrown_by_a_signal().claimed();
    send(&mut script, "PAID");
    send(&mut script, "SEALED");
    let outcome = script.go().expect("a decision");
    assert_eq!(refusals(&outcome.events), [("PAID", "limit_reached")]);
    assert!(buffered(&script).is_empty());
    assert_eq!(active(&script), ["Wait", "Right"]);
}

/// A command that is never refused for the size does not let a signal exceed it.
#[test]
fn a_signal_after_a_resumption_is_held_to_the_size() {
    let mut script = outgrown_by_a_signal().claimed();
    script.go().expect("two branches");
    let instance = script.instance().id;
    let reason = "holidays".into();
    script
        .run("amy", &Command::Suspend { instance, reason })
        .expect("a suspension");
    // As if it had come before.
    let mut suspended = script.instance().clone();
    suspended.buffered = {
        let mut early = outgrown_by_a_signal().claimed();
        send(&mut early, "PAID");
        early.instance().buffered.clone()
    };
    script.instance = Some(suspended);
    let outcome = script
        .run("amy", &Command::Resume { instance })
        .expect("it goes on");
    assert_eq!(refusals(&outcome.events), [("PAID", "limit_reached")]);
    assert_eq!(active(&script), ["Wait", "Seal"]);
}
