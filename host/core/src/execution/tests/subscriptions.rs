//! Subscriptions of states to signals: which are the flow's fault, and what becomes of them while the state goes on.

use super::script::{Script, enter, fault, json, offers, rejection, start};
use super::waits::{graph, is_done, kinds, script, signals, subscription};
use crate::answer::{Assignment, Next, Plan, SignalSubscription, Target, Waiting};
use crate::check::samples;
use crate::command::Command;
use crate::event::Event;
use crate::execution::NOBODY_WAITS;
use crate::graph::{FiredBy, Graph};
use crate::ids::StateId;
use crate::question::EntryCause;

/// `Desk` takes PAID and WITHDRAW by signal.
fn drawn() -> Graph {
    let mut graph = graph();
    let way = samples::way_by("Desk", "PAID", FiredBy::Signal, &["Done", "Wait"]);
    graph.transitions.push(way);
    graph
}

fn work(subscriptions: Vec<SignalSubscription>) -> Assignment {
    Assignment {
        subscriptions,
        ..offers(&["crew"])
    }
}

fn sent(script: &Script, trigger: &str, id: &str, correlation: Option<&str>) -> Command {
    Command::Signal {
        instance: script.instance().id,
        trigger: trigger.into(),
        id: id.into(),
        input: json("{}"),
        correlation: correlation.map(str::to_owned),
        state: None,
    }
}

#[test]
fn a_task_state_is_found_by_each_of_its_keys_and_no_other() {
    let subscribed = || {
        work(vec![
            subscription("PAID", Some("invoice 1"), false),
            subscription("PAID", Some("invoice 2"), false),
            subscription("WITHDRAW", Some("order 7"), false),
        ])
    };
    for (trigger, key, is_found) in [
        ("PAID", "invoice 1", true),
        ("PAID", "invoice 2", true),
        ("PAID", "order 7", false),
        ("WITHDRAW", "order 7", true),
        ("WITHDRAW", "invoice 1", false),
    ] {
        let script = Script::new()
            .drawn(drawn())
            .assigning(move |_| subscribed());
        let mut script = script.planning(|_, _| Ok(enter(&["Done"]))).started();
        let command = sent(&script, trigger, "1", Some(key));
        if is_found {
            script.run("sam", &command).expect("a signal");
            assert!(is_done(&script), "{trigger} {key}");
        } else {
            let refused = rejection(script.run("sam", &command));
            assert_eq!(refused.code(), NOBODY_WAITS, "{trigger} {key}");
        }
    }
}

/// `Wait` subscribes to early SEALED alone. It drops an early PAID; a task state leaves it.
#[test]
fn early_signals_count_for_the_triggers_that_are_named() {
    let mut script = script("Wait", |_| Waiting {
        subscriptions: vec![subscription("SEALED", None, true)],
        ..signals()
    });
    let command = sent(&script, "PAID", "1", None);
    script.run("sam", &command).expect("a signal");
    let outcome = script.go().expect("a wait");
    assert_eq!(kinds(&outcome).last(), Some(&"SIGNAL_TAKEN"));
    assert_eq!(script.instance().active[0].name, "Wait");
    assert!(script.instance().buffered.is_empty());
}

/// A key does not keep the state from counting what was sent to its instance early.
#[test]
fn a_task_state_takes_early_signals_and_leaves_those_of_other_triggers() {
    let mut graph = drawn();
    let targets = &mut graph.transitions[0].targets;
    targets.push("Counter".into());
    let mut counter = graph.states[0].clone();
    counter.name = "Counter".into();
    graph.states.push(counter);
    for trigger in ["PAID", "SEALED"] {
        let way = samples::way_by("Counter", trigger, FiredBy::Signal, &["Done"]);
        graph.transitions.push(way);
    }
    graph
        .transitions
        .retain(|way| way.source != "Desk" || way.trigger == "GO");
    let assign = |state: &str| match state {
        "Counter" => work(vec![subscription("PAID", Some("invoice 1"), true)]),
        _ => work(vec![]),
    };
    let plan = |from: &str, _: &_| {
        Ok(match from {
            "Desk" => enter(&["Counter"]),
            _ => Plan::default(),
        })
    };
    let script = Script::new().drawn(graph).assigning(assign);
    let mut script = script.planning(plan).claimed();
    for (trigger, id) in [("SEALED", "1"), ("PAID", "2"), ("PAID", "3")] {
        let command = sent(&script, trigger, id, None);
        script.run("sam", &command).expect("a signal");
    }
    let outcome = script.go().expect("a counter");
    let taken = kinds(&outcome);
    let count = |kind: &str| taken.iter().filter(|one| **one == kind).count();
    assert_eq!((count("SIGNAL_TAKEN"), count("STATE_CONTINUED")), (2, 2));
    let left: Vec<_> = script.instance().buffered.iter().collect();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].trigger, "SEALED");
}

#[test]
fn subscriptions_that_could_have_no_effect_are_the_flows_fault() {
    let long = "x".repeat(201);
    let one =
        |trigger: &str, key: Option<&str>, buffered| vec![subscription(trigger, key, buffered)];
    let many = (0..21).map(|number| subscription("PAID", Some(&number.to_string()), false));
    let twice = vec![
        subscription("PAID", Some("7"), false),
        subscription("PAID", Some("7"), true),
    ];
    let twice_early = vec![
        subscription("PAID", None, true),
        subscription("PAID", None, true),
    ];
    for (subscriptions, says) in [
        (many.collect(), "has 20 subscriptions at most, not 21"),
        (twice, "subscribes to PAID under the key 7 twice"),
        (twice_early, "subscribes to PAID twice"),
        (one("PAID", None, false), "the subscription has no effect"),
        (one("GO", Some("7"), false), "declared for no signal there"),
        (one("NO", Some("7"), false), "declared for no signal there"),
        (one("PAID", Some(""), false), "a correlation key is empty"),
        (
            one("PAID", Some(&long), false),
            "a correlation key is longer than 200",
        ),
    ] {
        let waited = subscriptions.clone();
        let mut waits = script("Wait", move |_| Waiting {
            subscriptions: waited.clone(),
            ..signals()
        });
        let message = fault(waits.go());
        assert!(
            message.starts_with("enter: ") && message.contains(says),
            "{message}"
        );
        let assigned = subscriptions.clone();
        let works = Script::new().drawn(drawn());
        let mut works = works.assigning(move |_| work(assigned.clone()));
        let message = fault(works.run("ann", &start()));
        assert!(
            message.starts_with("enter: ") && message.contains(says),
            "{message}"
        );
    }
}

/// What `enter` says later holds after a migration alone; a reoffer leaves what is there.
#[test]
fn a_migration_replaces_subscriptions_and_a_reoffer_does_not() {
    let key = |cause: &EntryCause| match cause {
        EntryCause::Entered => "entered",
        EntryCause::Migrated => "migrated",
        EntryCause::Reoffered => "reoffered",
        EntryCause::Overdue { .. } => "overdue",
    };
    let assign = move |_: &str, cause: &EntryCause| {
        work(vec![subscription("PAID", Some(key(cause)), false)])
    };
    let script = Script::new().drawn(drawn()).assigning_for(assign);
    let script = script.planning(|_, _| {
        Ok(Plan {
            next: Next::Reoffer,
            ..Plan::default()
        })
    });
    let mut script = script.followed_by(|_| ()).started();
    let keys = |script: &Script| -> Vec<String> {
        let correlated = script.instance().active[0].correlated();
        correlated.map(|(_, key)| key.to_owned()).collect()
    };
    let command = sent(&script, "PAID", "1", Some("entered"));
    let outcome = script.run("sam", &command).expect("a reoffer");
    assert!(kinds(&outcome).contains(&"STATE_REASSIGNED"));
    assert_eq!(keys(&script), ["entered"]);
    let migrate = Command::Migrate {
        instance: script.instance().id,
        version: 2,
        states: [].into(),
    };
    script.run("amy", &migrate).expect("a migration");
    assert_eq!(keys(&script), ["migrated"]);
}

/// A signal to all names the state instance that it is for, of several in one instance.
#[test]
fn a_signal_to_all_is_for_the_state_instance_that_is_named() {
    let plan = |from: &str, _: &_| {
        let item = |key: &str| Target {
            key: Some(key.into()),
            ..Target::new("Wait")
        };
        let next = match from {
            "Desk" => Next::Enter(vec![item("a"), item("b")]),
            _ => Next::Stay,
        };
        Ok(Plan {
            next,
            ..Plan::default()
        })
    };
    let wait = |_: &str| Waiting {
        subscriptions: vec![subscription("PAID", Some("order 7"), false)],
        ..signals()
    };
    let script = Script::new().drawn(graph()).waiting(wait);
    let mut script = script.planning(plan).claimed();
    script.go().expect("two branches");
    let ids: Vec<_> = script.instance().active.iter().map(|one| one.id).collect();
    for meant in [ids[1], ids[0]] {
        let mut command = sent(&script, "PAID", "1", Some("order 7"));
        if let Command::Signal { state, .. } = &mut command {
            *state = Some(meant);
        }
        let outcome = script.run("sam", &command).expect("a signal");
        assert!(
            matches!(&outcome.events[0], Event::SignalReceived { state, .. } if *state == Some(meant))
        );
    }
    let mut command = sent(&script, "PAID", "1", Some("order 7"));
    if let Command::Signal { state, .. } = &mut command {
        *state = Some(StateId(uuid::Uuid::nil()));
    }
    let gone = rejection(script.run("sam", &command));
    assert_eq!(gone.code(), NOBODY_WAITS);
}
