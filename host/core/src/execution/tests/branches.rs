//! Routers, and branches that end or are cancelled while others go on.

use super::deadlines::{after, late, pass};
use super::script::{Script, end_branch, enter, fault, offers, rejection};
use crate::answer::{Assignment, Next, Plan, Target};
use crate::check::samples::way_by as way;
use crate::event::Event;
use crate::execution::ROUTER_STEPS_MAX;
use crate::graph::FiredBy;
use crate::instance::Instance;
use crate::question::Occurrence;

#[test]
fn routers_come_to_an_end() {
    // So many routers in a row, then the end.
    let routers = |count: usize| {
        let plan = move |state: &str, instance: &crate::instance::Instance| {
            let hops = instance
                .state_instances()
                .filter(|state_instance| state_instance.name == "Hop")
                .count();
            Ok(enter(if state == "Review" || hops < count {
                &["Hop"]
            } else {
                &["Done"]
            }))
        };
        Script::new().planning(plan).claimed().go()
    };
    let most = usize::try_from(ROUTER_STEPS_MAX).expect("few");
    let events = routers(most).expect("as many as may be").events;
    assert_eq!(
        events
            .iter()
            .filter(|event| matches!(event, Event::StateTransitioned { from, .. } if from == "Hop"))
            .count(),
        most
    );
    assert_eq!(
        fault(routers(most + 1)),
        "transition: more than 16 router states in a row"
    );
    // A router cannot go on where it is: nobody would move it.
    let state_instances = |state: &str, _: &_| {
        Ok(if state == "Hop" {
            Plan::default()
        } else {
            enter(&["Hop"])
        })
    };
    let stuck = fault(Script::new().planning(state_instances).claimed().go());
    assert_eq!(
        stuck,
        "transition: Hop goes on with nothing left that could move it"
    );
}

/// `Review` begins so many items, by a decision or when it is late. Each passes one router or two on its way to `Other`.
fn routed(items: usize, twice: bool) -> Script {
    let plan = move |occurrence: &Occurrence, state: &str, instance: &Instance| {
        if state == "Review" {
            let targets = (0..items).map(|number| Target {
                key: Some(number.to_string()),
                ..Target::new("Hop")
            });
            return Ok(Plan {
                next: Next::Enter(targets.collect()),
                ..Plan::default()
            });
        }
        let mut active = instance.active.iter();
        let here = active.find(|one| one.id.to_string() == occurrence.state_instance);
        let is_first = here.is_some_and(|one| one.key.is_some());
        let next = if twice && is_first { "Hop" } else { "Other" };
        Ok(enter(&[next]))
    };
    let assign = |state: &str| Assignment {
        deadlines: match state {
            "Review" => vec![after(60, late())],
            _ => vec![],
        },
        ..offers(&["crew"])
    };
    let mut script = Script::new().planning_for(plan).assigning(assign);
    script.redraw(|graph| {
        let late = way("Review", "LATE", FiredBy::Deadline, &["Hop"]);
        graph.transitions.push(late);
    });
    script.claimed()
}

fn active(script: &Script) -> Vec<&str> {
    let active = script.instance().active.iter();
    active.map(|one| one.name.as_str()).collect()
}

/// Only those that follow each other count, so a fork may lead to many.
#[test]
fn many_branches_may_pass_a_router_each() {
    let mut script = routed(40, false);
    script.go().expect("a fork");
    assert_eq!(active(&script), ["Other"; 40]);

    let mut script = routed(40, true);
    pass(&mut script, 0, 100);
    assert_eq!(active(&script), ["Other"; 40]);
}

#[test]
fn all_branches_together_pass_so_many_routers() {
    let mut script = routed(110, true);
    assert_eq!(rejection(script.go()).code(), "limit_reached");
    let events = pass(&mut script, 0, 100);
    let refused = events.iter().find_map(|event| match event {
        Event::TriggerRefused { trigger, code, .. } => Some((trigger.as_str(), code.as_str())),
        _ => None,
    });
    assert_eq!(refused, Some(("LATE", "limit_reached")), "{events:?}");
    assert_eq!(active(&script), ["Review"]);
}

#[test]
fn a_branch_may_end_while_another_goes_on() {
    let plan = |state: &str, instance: &crate::instance::Instance| {
        Ok(match (state, instance.past.len()) {
            ("Review", 0) => enter(&["Review", "Other"]),
            _ => end_branch(),
        })
    };
    let mut script = Script::new().planning(plan).claimed();
    script.go().expect("a fork");
    for (number, ends) in [(0, true), (0, false)] {
        let task = script.task(number);
        script
            .run("bob", &crate::command::Command::Claim { task })
            .expect("a claim");
        let result = script.go();
        if ends {
            result.expect("the other branch goes on");
        } else {
            assert_eq!(
                fault(result),
                "transition: Other ends the last branch without an outcome"
            );
        }
    }
}

#[test]
fn a_plan_may_cancel_another_branch() {
    let plan = |state: &str, instance: &crate::instance::Instance| {
        if state == "Review" && instance.past.is_empty() {
            return Ok(enter(&["Review", "Other"]));
        }
        let other = instance
            .active
            .iter()
            .find(|state_instance| state_instance.name == "Other")
            .expect("the other branch");
        Ok(Plan {
            cancel: vec![other.id.to_string(); 2],
            ..enter(&["Review"])
        })
    };
    let mut script = Script::new().planning(plan).claimed();
    script.go().expect("a fork");
    let task = script.task(0);
    script
        .run("bob", &crate::command::Command::Claim { task })
        .expect("a claim");
    let kinds: Vec<_> = script
        .go()
        .expect("a plan")
        .events
        .iter()
        .map(Event::kind)
        .collect();
    let expected = [
        "DECISION_RECORDED",
        "STATE_TRANSITIONED",
        "TASK_CANCELLED",
        "STATE_CANCELLED",
        "STATE_ENTERED",
        "TASK_CREATED",
    ];
    assert_eq!(kinds, expected);
    let names: Vec<_> = script
        .instance()
        .active
        .iter()
        .map(|state_instance| state_instance.name.clone())
        .collect();
    assert_eq!(names, ["Review"]);
}
