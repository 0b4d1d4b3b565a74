//! The source of an occurrence, as flow logic receives it.

use std::cell::RefCell;
use std::rc::Rc;

use jiff::Timestamp;

use super::deadlines::{after, every, late, open, pass};
use super::script::{Script, enter, json, offers};
use super::{deadlines, waits};
use crate::answer::{Assignment, Child, Plan, Waiting};
use crate::command::Command;
use crate::instance::Entity;
use crate::question::Source;

type Sources = Rc<RefCell<Vec<Source>>>;

/// Notes the sources of all transitions but decisions and entries.
fn noting(script: Script, plan: impl Fn(&str) -> Plan + 'static) -> (Script, Sources) {
    let sources = Sources::default();
    let noted = sources.clone();
    let script = script.planning_for(move |occurrence, state, _| {
        if !matches!(occurrence.source, Source::Task { .. } | Source::Entry) {
            noted.borrow_mut().push(occurrence.source.clone());
        }
        Ok(plan(state))
    });
    (script, sources)
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

#[test]
fn a_deadline_says_which_one_it_is_and_how_often_it_has_passed() {
    let script = Script::new().drawn(deadlines::graph()).assigning(|_| {
        let mut assignment: Assignment = offers(&["crew"]);
        assignment.deadlines = vec![every(60, after(60, late()))];
        assignment.offers[0].deadlines = vec![after(90, late())];
        assignment
    });
    let (script, sources) = noting(script, |_| Plan::default());
    let mut script = script.started();
    let task = open(script.instance())[1].1;
    pass(&mut script, 0, 61);
    pass(&mut script, 1, 100);
    pass(&mut script, 0, 130);
    let deadline = |task, second, count| Source::Deadline {
        task,
        due_at: at(second),
        count,
    };
    assert_eq!(
        *sources.borrow(),
        [
            deadline(None, 61, 1),
            deadline(task, 91, 1),
            deadline(None, 121, 2)
        ]
    );
}

#[test]
fn a_signal_says_who_sent_it_under_which_id_and_when() {
    let script = Script::new().drawn(waits::graph()).waiting(|_| Waiting {
        subscriptions: vec![waits::subscription("PAID", Some("order-7"), true)],
        ..waits::signals()
    });
    let (script, sources) = noting(script, |state| match state {
        "Desk" => enter(&["Wait"]),
        _ => Plan::default(),
    });
    let mut script = script.claimed();
    let send = |script: &mut Script, id: &str, correlation: Option<&str>, second| {
        let command = Command::Signal {
            instance: script.instance().id,
            trigger: "PAID".into(),
            id: id.into(),
            input: json("{}"),
            correlation: correlation.map(str::to_owned),
            state: None,
        };
        script.at(second);
        script.run("sam", &command).expect("a signal");
    };
    send(&mut script, "early", None, 50);
    script.at(70);
    script.go().expect("a wait");
    send(&mut script, "later", Some("order-7"), 90);
    let signals: Vec<_> = sources
        .borrow()
        .iter()
        .map(|source| match source {
            Source::Signal {
                sender,
                id,
                correlation,
                at,
            } => (sender.id.clone(), id.clone(), correlation.clone(), *at),
            other => panic!("{other:?}"),
        })
        .collect();
    let sam = || "sam".to_owned();
    assert_eq!(
        signals,
        [
            (sam(), "early".to_owned(), None, at(50)),
            (
                sam(),
                "later".to_owned(),
                Some("order-7".to_owned()),
                at(90)
            ),
        ]
    );
}

#[test]
fn the_end_of_a_child_says_what_it_was_about_and_why_it_never_began() {
    let child = Child {
        key: "errand".into(),
        entity_type: "order".into(),
        entity_id: "7".into(),
        data: "{}".into(),
        on_end: Some("ENDED".into()),
        detached: false,
    };
    let script = Script::new()
        .drawn(waits::graph())
        .waiting(move |_| Waiting {
            children: vec![child.clone()],
            ..waits::signals()
        });
    let (script, sources) = noting(script, |state| match state {
        "Desk" => enter(&["Wait"]),
        _ => enter(&["Done"]),
    });
    let mut script = script.claimed();
    script.go().expect("a wait");
    let id = script.instance().active[0].children[0].id;
    let command = Command::ChildEnded {
        instance: script.instance().id,
        child: id,
        version: None,
        outcome: "NOT_STARTED".into(),
        data: json("{}"),
        reason: Some("no version is active".into()),
    };
    script.run("ann", &command).expect("its end");
    assert_eq!(
        *sources.borrow(),
        [Source::Child {
            id: id.to_string(),
            key: "errand".into(),
            entity: Entity {
                kind: "order".into(),
                id: "7".into(),
            },
            version: None,
            outcome: "NOT_STARTED".into(),
            reason: Some("no version is active".into()),
        }]
    );
}
