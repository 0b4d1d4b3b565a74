//! Signals: which state instance takes one, which are buffered, and what happens to buffered ones.

use super::script::{Script, enter, forbidden, json, offers, person, rejection};
use super::waits::{graph, is_done, kinds, script, signals, subscription};
use crate::actor::Actor;
use crate::answer::{Plan, Reason, Refusal, Violation, Waiting};
use crate::check::samples;
use crate::command::Command;
use crate::event::Event;
use crate::execution::signal::{BUFFERED_MAX, BUFFERED_OF_SENDER_MAX};
use crate::execution::{ExecutionError, NOBODY_WAITS, Outcome};
use crate::graph::{FiredBy, Graph};
use crate::instance::Instance;
use crate::question::{EntryCause, Occurrence, Source};
use crate::rejection::Rejection;

fn buffered() -> Waiting {
    Waiting {
        subscriptions: vec![
            subscription("PAID", None, true),
            subscription("SEALED", None, true),
        ],
        ..signals()
    }
}

fn signal(script: &Script, trigger: &str, id: &str) -> Command {
    Command::Signal {
        instance: script.instance().id,
        trigger: trigger.into(),
        id: id.into(),
        input: json(r#"{"amount":1.50}"#),
        correlation: None,
        state: None,
    }
}

fn send(script: &mut Script, trigger: &str, id: &str) -> Result<Outcome, ExecutionError> {
    let command = signal(script, trigger, id);
    script.run("sam", &command)
}

#[test]
fn a_signal_moves_the_state_instance_that_takes_it() {
    let mut script = script("Wait", |_| signals());
    script.go().expect("a wait");
    let outcome = send(&mut script, "PAID", "1").expect("a signal");
    assert_eq!(
        kinds(&outcome),
        [
            "SIGNAL_RECEIVED",
            "STATE_TRANSITIONED",
            "STATE_ENTERED",
            "FLOW_COMPLETED"
        ]
    );
    assert!(matches!(&outcome.events[0],
        Event::SignalReceived { state: Some(_), sender, .. } if sender.id == "sam"));
    let late = rejection(send(&mut script, "PAID", "2"));
    assert!(matches!(late, Rejection::Ended { .. }), "{late:?}");
}

/// A requester may take the request back: that is a signal, never a decision.
#[test]
fn requesters_signal_and_no_signal_decides() {
    let mut script = script("Wait", |_| signals());
    let command = signal(&script, "GO", "1");
    let refused = rejection(script.run("ann", &command));
    assert!(matches!(&refused, Rejection::Invalid(violations)
        if violations[0].code == "unknown_signal" && violations[0].message.ends_with("PAID, SEALED, WITHDRAW")));
    let command = signal(&script, "WITHDRAW", "1");
    let outcome = script.run("ann", &command).expect("a withdrawal");
    assert!(kinds(&outcome).contains(&"TASK_CANCELLED") && is_done(&script));
}

#[test]
fn signals_need_an_id_and_the_permission_of_their_way() {
    let mut script = script("Wait", |_| signals());
    script.go().expect("a wait");
    for id in [String::new(), "x".repeat(201), "a\0b".into()] {
        let refused = rejection(send(&mut script, "PAID", &id));
        assert!(matches!(refused, Rejection::Invalid(_)), "{refused:?}");
    }
    assert_eq!(
        forbidden(send(&mut script, "SEALED", "1")),
        "permission_missing"
    );
    let sealer = Actor {
        permissions: vec!["errand:seal".into()],
        ..person("sue")
    };
    let command = signal(&script, "SEALED", "1");
    script.run_as(&sealer, &command).expect("a seal");
    assert!(is_done(&script));
}

#[test]
fn flow_logic_judges_a_signal_by_its_sender() {
    let guard = |occurrence: &Occurrence| match &occurrence.source {
        Source::Signal { sender, .. } if sender.id == "sam" => Err(Refusal::Denied(Reason {
            code: "not_you".into(),
            message: "somebody else".into(),
        })),
        _ => Ok(()),
    };
    let mut script = script("Wait", |_| signals()).guarding(guard);
    script.go().expect("a wait");
    assert_eq!(forbidden(send(&mut script, "PAID", "1")), "not_you");
    let command = signal(&script, "PAID", "1");
    script.run("sue", &command).expect("a signal");
}

#[test]
fn early_signals_are_kept_for_those_who_count_them() {
    let mut script = script("Wait", |_| buffered());
    let outcome = send(&mut script, "PAID", "1").expect("a signal");
    assert_eq!(kinds(&outcome), ["SIGNAL_RECEIVED"]);
    assert_eq!(script.instance().buffered.len(), 1);
    let outcome = script.go().expect("a wait");
    let kinds = kinds(&outcome);
    let (entered, rest) = kinds.split_at(kinds.len() - 4);
    assert_eq!(entered.last(), Some(&"STATE_ENTERED"));
    assert_eq!(
        rest,
        [
            "SIGNAL_TAKEN",
            "STATE_TRANSITIONED",
            "STATE_ENTERED",
            "FLOW_COMPLETED"
        ]
    );
    assert!(script.instance().buffered.is_empty() && is_done(&script));
}

#[test]
fn early_signals_are_dropped_by_those_who_do_not() {
    let mut script = script("Deaf", |_| signals());
    send(&mut script, "PAID", "1").expect("a signal");
    send(&mut script, "SEALED", "2").expect("a signal");
    let outcome = script.go().expect("a wait");
    assert_eq!(kinds(&outcome).last(), Some(&"SIGNAL_TAKEN"));
    // The state does not drop signals that it does not take.
    let kept: Vec<_> = script
        .instance()
        .buffered
        .iter()
        .map(|signal| signal.id.as_str())
        .collect();
    assert_eq!(kept, ["2"]);
    assert_eq!(script.instance().active[0].name, "Deaf");
}

/// Whichever is entered first, a signal is kept for the one that counts it.
#[test]
fn the_order_of_a_forks_targets_decides_nothing() {
    let outcomes = [["Deaf", "Wait"], ["Wait", "Deaf"]].map(|both| {
        let plan = move |occurrence: &Occurrence, _: &str, _: &Instance| {
            let is_fork = occurrence.trigger == "GO";
            Ok(enter(if is_fork { &both[..] } else { &["Done"] }))
        };
        let wait = |state: &str| match state {
            "Wait" => buffered(),
            _ => signals(),
        };
        let script = Script::new().drawn(graph()).waiting(wait);
        let mut script = script.planning_for(plan).claimed();
        send(&mut script, "PAID", "1").expect("a signal");
        let outcome = script.go().expect("a fork");
        assert!(is_done(&script), "{both:?}");
        kinds(&outcome)
    });
    assert_eq!(outcomes[0], outcomes[1]);
}

/// The sender's permissions at the time of sending count; a refused signal does not block the next one.
#[test]
fn a_refused_early_signal_is_recorded_and_the_next_is_tried() {
    let guard = |occurrence: &Occurrence| match &occurrence.source {
        Source::Signal { sender, .. } if sender.id == "mal" => {
            Err(Refusal::Invalid(vec![Violation {
                expected: None,
                field: "/input/amount".into(),
                code: "too_little".into(),
                message: "pay more".into(),
            }]))
        }
        _ => Ok(()),
    };
    let mut script = script("Wait", |_| buffered()).guarding(guard);
    for (sender, trigger, id) in [
        ("sam", "SEALED", "0"),
        ("mal", "PAID", "1"),
        ("sam", "PAID", "2"),
        ("sam", "PAID", "3"),
    ] {
        let command = signal(&script, trigger, id);
        script.run(sender, &command).expect("a signal");
    }
    let outcome = script.go().expect("a wait");
    let refused: Vec<_> = outcome
        .events
        .iter()
        .filter_map(|event| match event {
            Event::TriggerRefused { code, .. } => Some(code.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(refused, ["permission_missing", "too_little"]);
    assert!(is_done(&script));
    let left: Vec<_> = script
        .instance()
        .buffered
        .iter()
        .map(|signal| signal.id.as_str())
        .collect();
    assert_eq!(left, ["3"]);
}

/// The ids of the buffered signals that were taken.
fn taken(outcome: &Outcome) -> Vec<usize> {
    let taken = outcome.events.iter().filter_map(|event| match event {
        Event::SignalTaken { id, .. } => Some(id.parse().expect("a number")),
        _ => None,
    });
    taken.collect()
}

/// The host goes on with the rest, and a signal that comes meanwhile does not overtake it.
#[test]
fn one_command_takes_sixteen_early_signals() {
    let plan = |occurrence: &Occurrence, _: &str, _: &Instance| {
        Ok(match occurrence.trigger.as_str() {
            "GO" => enter(&["Wait"]),
            _ => Plan::default(),
        })
    };
    let numbers = |first, last| (first..=last).collect::<Vec<_>>();
    let script = Script::new().drawn(graph()).waiting(|_| buffered());
    let mut script = script.planning_for(plan).claimed();
    for number in 1..=40 {
        send(&mut script, "PAID", &number.to_string()).expect("a signal");
    }
    let first = script.go().expect("a wait");
    assert_eq!(taken(&first), numbers(1, 16));
    let late = send(&mut script, "PAID", "41").expect("a signal");
    assert!(matches!(
        &late.events[0],
        Event::SignalReceived { state: None, .. }
    ));
    assert_eq!(taken(&late), numbers(17, 32));
    let instance = script.instance().id;
    let rest = script.run_as(&Actor::host(), &Command::Reassessment { instance });
    assert_eq!(taken(&rest.expect("the rest")), numbers(33, 41));
    assert!(script.instance().buffered.is_empty());
    let next = send(&mut script, "PAID", "42").expect("a signal");
    assert!(matches!(
        &next.events[0],
        Event::SignalReceived { state: Some(_), .. }
    ));
}

#[test]
fn so_many_early_signals_are_kept_and_no_more() {
    let mut script = script("Wait", |_| buffered());
    for number in 0..BUFFERED_OF_SENDER_MAX {
        send(&mut script, "PAID", &number.to_string()).expect("a signal");
    }
    let full = rejection(send(&mut script, "PAID", "one more"));
    assert_eq!(full.code(), "limit_reached");
    assert!(full.to_string().contains("100 signals of yours"), "{full}");
    // Others have room, until the instance has none.
    for number in BUFFERED_OF_SENDER_MAX..BUFFERED_MAX {
        let command = signal(&script, "PAID", "1");
        script
            .run(&format!("sender {}", number / 50), &command)
            .expect("a signal");
    }
    let command = signal(&script, "PAID", "1");
    let full = rejection(script.run("tom", &command));
    assert!(
        full.to_string().contains("400 signals are buffered"),
        "{full}"
    );
    // One that moves something needs no place.
    send(&mut script, "WITHDRAW", "now").expect("a signal");
    assert!(is_done(&script));
}

/// Buffered signals are part of their instance, so the bytes of one sender and of all are limited, too.
#[test]
fn early_signals_take_so_many_bytes_and_no_more() {
    let sized = |script: &Script, id: &str, bytes: usize| {
        let mut command = signal(script, "PAID", id);
        if let Command::Signal { input, .. } = &mut command {
            let rest = r#"{"note":""}"#.len();
            *input = json(&format!(r#"{{"note":"{}"}}"#, "x".repeat(bytes - rest)));
        }
        command
    };
    let mut script = script("Wait", |_| buffered());
    for sender in ["sam", "tom", "una", "vic"] {
        for id in ["1", "2", "3", "4"] {
            let quarter = sized(&script, id, 64 * 1024);
            script.run(sender, &quarter).expect("a signal");
        }
        let more = sized(&script, "5", 12);
        let full = rejection(script.run(sender, &more));
        let text = full.to_string();
        assert!(text.contains("262144 bytes of yours would be"), "{text}");
    }
    let more = sized(&script, "1", 12);
    let full = rejection(script.run("wes", &more));
    assert_eq!(full.code(), "limit_reached");
    let text = full.to_string();
    assert!(text.contains("more than 1048576 bytes would be"), "{text}");
}

#[test]
fn a_plan_that_refuses_an_early_signal_leaves_the_state_waiting() {
    let script = Script::new().drawn(graph()).waiting(|_| buffered());
    let mut script = script
        .planning(|from, _| match from {
            "Desk" => Ok(enter(&["Wait"])),
            _ => Err(Refusal::NotNow(Reason {
                code: "not_yet".into(),
                message: "later".into(),
            })),
        })
        .claimed();
    send(&mut script, "PAID", "1").expect("a signal");
    let outcome = script.go().expect("a wait");
    assert_eq!(kinds(&outcome).last(), Some(&"TRIGGER_REFUSED"));
    assert_eq!(script.instance().active[0].name, "Wait");
    // A new signal is refused.
    let refused = rejection(send(&mut script, "PAID", "2"));
    assert!(matches!(refused, Rejection::RefusedNow(_)), "{refused:?}");
}

/// `Desk` takes PAID in the second version, also if it came before.
fn subscribing_later() -> Script {
    let assign = |state: &str, cause: &EntryCause| {
        let mut assignment = offers(&["crew"]);
        if *cause == EntryCause::Migrated && state == "Desk" {
            assignment.subscriptions = vec![subscription("PAID", None, true)];
        }
        assignment
    };
    Script::new().drawn(graph()).assigning_for(assign)
}

fn paid_at_the_desk(graph: &mut Graph) {
    let way = samples::way_by("Desk", "PAID", FiredBy::Signal, &["Done", "Deaf"]);
    graph.transitions.push(way);
}

/// A suspended instance that is migrated to a version which takes a buffered signal does not move.
#[test]
fn early_signals_wait_until_a_suspended_instance_goes_on() {
    let script = subscribing_later().planning(|_, _| Ok(enter(&["Done"])));
    let mut script = script.followed_by(paid_at_the_desk).started();
    send(&mut script, "PAID", "1").expect("a signal");
    let instance = script.instance().id;
    let suspend = Command::Suspend {
        instance,
        reason: "holidays".into(),
    };
    script.run("amy", &suspend).expect("a suspension");
    let migrate = Command::Migrate {
        instance,
        version: 2,
        states: [].into(),
    };
    let outcome = script.run("amy", &migrate).expect("a migration");
    assert!(!kinds(&outcome).contains(&"SIGNAL_TAKEN"));
    let resume = Command::Resume { instance };
    let outcome = script.run("amy", &resume).expect("it goes on");
    assert_eq!(kinds(&outcome)[..2], ["FLOW_RESUMED", "SIGNAL_TAKEN"]);
    assert!(is_done(&script));
}

/// Signals of several senders and triggers may have the same id. Dropping some of them keeps the others.
#[test]
fn early_signals_of_one_id_are_told_apart() {
    let mut script = script("Deaf", |_| signals());
    for (sender, trigger) in [("sam", "SEALED"), ("sam", "PAID"), ("tom", "PAID")] {
        let command = signal(&script, trigger, "1");
        script.run(sender, &command).expect("a signal");
    }
    let outcome = script.go().expect("a wait");
    let taken = outcome.events.iter().filter_map(|event| match event {
        Event::SignalTaken { id, older, .. } => Some((id.as_str(), *older)),
        _ => None,
    });
    // Behind the one of the same id that the state does not take.
    assert_eq!(taken.collect::<Vec<_>>(), [("1", Some(1)), ("1", Some(1))]);
    let left: Vec<_> = script.instance().buffered.iter().collect();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].trigger, "SEALED");
}

/// A signal by correlation is only for state instances with its key, and is never buffered.
#[test]
fn a_signal_by_correlation_is_for_its_name_alone() {
    let named = |_: &str| Waiting {
        subscriptions: vec![subscription("PAID", Some("order 7"), false)],
        ..signals()
    };
    let mut script = script("Wait", named);
    let sent = |script: &Script, correlation: &str| match signal(script, "PAID", "1") {
        Command::Signal {
            instance,
            trigger,
            id,
            input,
            ..
        } => Command::Signal {
            instance,
            trigger,
            id,
            input,
            correlation: Some(correlation.to_owned()),
            state: None,
        },
        other => unreachable!("{other:?}"),
    };
    let command = sent(&script, "order 7");
    let before = rejection(script.run("sam", &command));
    assert_eq!(before.code(), NOBODY_WAITS, "{before}");
    script.go().expect("a wait");
    let command = sent(&script, "order 8");
    let other = rejection(script.run("sam", &command));
    assert_eq!(other.code(), NOBODY_WAITS, "{other}");
    let command = sent(&script, "order 7");
    script.run("sam", &command).expect("a signal");
    assert!(is_done(&script));
}

/// A signal that the old version did not take is kept, and moves the instance as soon as the work has been offered as the new
/// version says: to the end, or on, with the other branch cancelled.
#[test]
fn a_kept_signal_may_end_what_a_migration_has_assigned() {
    for cancels in [false, true] {
        let plan = move |occurrence: &Occurrence, _: &str, instance: &Instance| {
            let mut plan = match occurrence.trigger.as_str() {
                "GO" => enter(&["Desk", "Side"]),
                "PAID" if cancels => enter(&["Deaf"]),
                _ => enter(&["Done"]),
            };
            if cancels && occurrence.trigger == "PAID" {
                let mut active = instance.active.iter();
                let side = active.find(|state_instance| state_instance.name == "Side");
                plan.cancel = side.map(|side| side.id.to_string()).into_iter().collect();
            }
            Ok(plan)
        };
        let mut drawn = graph();
        let mut side = drawn.states[0].clone();
        side.name = "Side".into();
        drawn.states.push(side);
        let targets = &mut drawn.transitions[0].targets;
        targets.extend(["Desk".into(), "Side".into()]);
        let end = samples::way_by("Side", "END", FiredBy::Decision, &["Done"]);
        drawn.transitions.push(end);
        let script = subscribing_later()
            .drawn(drawn)
            .planning_for(plan)
            .waiting(|_| signals());
        let mut script = script.followed_by(paid_at_the_desk).claimed();
        script.go().expect("two branches");
        send(&mut script, "PAID", "1").expect("it is kept");
        assert_eq!(script.instance().buffered.len(), 1);
        let migrate = Command::Migrate {
            instance: script.instance().id,
            version: 2,
            states: [].into(),
        };
        let outcome = script.run("amy", &migrate).expect("a migration");
        let found = kinds(&outcome);
        let place = |kind: &str| found.iter().rposition(|one| *one == kind);
        assert!(place("STATE_REASSIGNED").is_some(), "{found:?}");
        assert!(
            place("STATE_REASSIGNED") < place("SIGNAL_TAKEN"),
            "{found:?}"
        );
        assert_eq!(is_done(&script), !cancels, "{found:?}");
    }
}
