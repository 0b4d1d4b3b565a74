//! The limits of an instance, and reserved names.

use super::deadlines::{after, late, pass};
use super::script::{Script, decide, enter, fault, json, offers, rejection};
use crate::answer::{Assignment, Deadline, Due, Offer, OverdueAction, Plan, Principal, Since};
use crate::command::Command;
use crate::event::Event;
use crate::ids::TaskId;
use crate::rejection::Rejection;
use crate::shown::STATE_INSTANCES_MAX;

const VOTERS: usize = 200;

/// A graph without a schema, and a plan that changes the data so.
fn patched(patch: &'static str) -> String {
    let graph = Script::new().graph().clone();
    let script = Script::new().drawn(graph).claimed();
    let plan = Plan {
        data: Some(patch.to_owned()),
        ..enter(&["Done"])
    };
    fault(script.planning(move |_, _| Ok(plan.clone())).go())
}

#[test]
fn data_stays_an_object() {
    for patch in ["[]", "null", "7", "\"x\"", "[{}]"] {
        assert_eq!(
            patched(patch),
            "transition: the data would no longer be a JSON object",
            "{patch}"
        );
    }
}

#[test]
fn the_hosts_own_names_get_no_work() {
    let host = || "wrkflw:host".to_owned();
    let offered = |change: &dyn Fn(&mut Assignment, &mut Offer)| {
        let mut assignment = offers(&["crew"]);
        let mut offer = assignment.offers.remove(0);
        change(&mut assignment, &mut offer);
        assignment.offers.push(offer);
        let mut script = Script::new().assigning(move |_| assignment.clone());
        fault(script.run("ann", &super::script::start()))
    };
    for (what, message) in [
        ("an owner", offered(&|_, offer| offer.owner = Some(host()))),
        (
            "a candidate",
            offered(&|_, offer| offer.candidates = vec![Principal::User(host())]),
        ),
        (
            "a candidate",
            offered(&|_, offer| offer.candidates = vec![Principal::ManagerOf(host())]),
        ),
        (
            "a candidate",
            offered(&|_, offer| offer.candidates = vec![Principal::Group("wrkflw:all".into())]),
        ),
        (
            "an excluded person or fallback group",
            offered(&|assignment, _| assignment.fallback = Some(host())),
        ),
    ] {
        let begins = format!("enter: {what} is wrkflw:");
        assert!(
            message.starts_with(&begins) && message.ends_with("a name reserved for the host"),
            "{message}"
        );
    }
}

/// A decision that says so much.
fn saying(task: TaskId, comment: usize, input: usize) -> Command {
    let Command::Decide { outcome, .. } = decide(task, "GO") else {
        unreachable!("it is a decision");
    };
    Command::Decide {
        task,
        outcome,
        comment: Some("c".repeat(comment)),
        input: json(&format!(r#"{{"x":"{}"}}"#, "x".repeat(input))),
    }
}

#[test]
fn however_much_is_said_everybody_has_room_left() {
    let script = Script::new().assigning(|_| Assignment {
        needed: 200,
        ..offers(&["crew"; VOTERS])
    });
    let state_instance = |_: &str, _: &crate::instance::Instance| Ok(Plan::default());
    let mut script = script.planning(state_instance).started();
    let mut rooms = Vec::new();
    for number in 0..VOTERS - 1 {
        let (voter, task) = (format!("voter-{number}"), script.task(number));
        script
            .run(&voter, &Command::Claim { task })
            .expect("a claim");
        let refused = rejection(script.run(&voter, &saying(task, 10, 60_000)));
        let Rejection::Invalid(violations) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(
            (&*violations[0].field, &*violations[0].code),
            ("/input", "too_long")
        );
        let refused = rejection(script.run(&voter, &saying(task, 16_000, 10)));
        let Rejection::Invalid(violations) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(violations[0].field, "/comment");
        let room = violations[0]
            .message
            .strip_prefix("comment and input have at most ");
        let room: usize = room
            .and_then(|rest| rest.split(' ').next()?.parse().ok())
            .expect("the limit is named");
        rooms.push(room);
        // The names and marks of the input are eight bytes.
        let all = saying(task, 10, room - 18);
        script.run(&voter, &all).expect("a vote of just this size");
    }
    assert!(rooms[0] > 600, "{rooms:?}");
    assert!(rooms.is_sorted(), "nobody's room shrinks: {rooms:?}");
}

/// A refusal in a blind state, or beside it, would tell how much the others wrote.
#[test]
fn a_limit_tells_nothing_of_hidden_texts() {
    let refused = |comment: usize| {
        let plan = |_: &str, instance: &crate::instance::Instance| {
            Ok(if instance.past.is_empty() {
                enter(&["Review", "Other"])
            } else {
                Plan::default()
            })
        };
        let assign = |state: &str| match state {
            "Other" => Assignment {
                needed: 3,
                blind: true,
                ..offers(&["crew"; 3])
            },
            _ => offers(&["crew"]),
        };
        let script = Script::new().planning(plan).assigning(assign);
        let mut script = script.claimed();
        script.go().expect("a vote and a review");
        let (review, votes) = (script.task(0), [script.task(1), script.task(2)]);
        let vote = saying(votes[0], comment, 10);
        script.run("vic", &vote).expect("a vote");
        let refusals = [("val", votes[1]), ("rob", review)].map(|(person, task)| {
            let refused = rejection(script.run(person, &saying(task, 10, 60_000)));
            format!("{refused:?}")
        });
        assert!(refusals[0].contains("too_long"), "{refusals:?}");
        refusals
    };
    assert_eq!(refused(1), refused(15_000));
}

/// Work that logic could not be told of.
pub(super) fn crowded() -> Assignment {
    let crowd: Vec<_> = (0..VOTERS)
        .map(|number| Principal::User(format!("a-member-of-the-crowd-{number:03}")))
        .collect();
    let mut assignment = offers(&["crew"; VOTERS]);
    for offer in &mut assignment.offers {
        offer.candidates.clone_from(&crowd);
    }
    assignment
}

#[test]
fn work_that_logic_could_not_be_told_of_is_not_offered() {
    let mut script = Script::new().assigning(|_| crowded());
    let refused = rejection(script.run("ann", &super::script::start()));
    assert_eq!(refused.code(), "limit_reached");
    assert!(refused.to_string().contains("more work"), "{refused}");
}

/// Nobody would see an error, and the deadline would be tried for ever.
#[test]
fn a_deadline_that_leads_to_such_work_is_refused_on_record() {
    let mut script = Script::new()
        .drawn(super::deadlines::graph())
        .planning(|_, _| Ok(enter(&["Other"])))
        .assigning(|state| match state {
            "Other" => crowded(),
            _ => Assignment {
                deadlines: vec![after(60, late())],
                ..offers(&["crew"])
            },
        })
        .started();
    let events = pass(&mut script, 0, 61);
    let [_, Event::TriggerRefused { trigger, code, .. }] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!((trigger.as_str(), code.as_str()), ("LATE", "limit_reached"));
    assert_eq!(script.instance().active[0].name, "Review");
    // Whoever decides is told.
    script.claim(script.task(0));
    assert_eq!(rejection(script.go()).code(), "limit_reached");
}

/// Each may lie twenty years ahead, and is counted when the work is offered.
#[test]
fn so_many_deadlines_of_one_assignment_count_working_time() {
    let offered = |tasks: usize| {
        let working = Deadline {
            when: Due::Working {
                seconds: 3_600,
                calendar: "office".into(),
            },
            since: Since::Created,
            repeat: None,
            action: OverdueAction::Remind,
        };
        let mut script = Script::new().assigning(move |_| {
            let mut assignment = offers(&vec!["crew"; tasks]);
            for offer in &mut assignment.offers {
                offer.deadlines = vec![working.clone(); 16];
            }
            assignment
        });
        fault(script.run("ann", &super::script::start()))
    };
    // No calendar exists, which is reported only if the number of deadlines is within the limit.
    let message = offered(25);
    assert!(message.contains("there is no calendar"), "{message}");
    let message = offered(26);
    assert!(
        message.ends_with("counts more than 400 deadlines by calendars"),
        "{message}"
    );
}

#[test]
fn an_instance_enters_so_many_states_and_can_still_be_ended() {
    let next = |from: &str| if from == "Review" { "Other" } else { "Review" };
    let script = Script::new().assigning(|_| Assignment {
        offers: vec![],
        ..Assignment::default()
    });
    let script = script.planning(move |from, _| Ok(enter(&[next(from)])));
    let mut script = script.started();
    // As if it had been elsewhere before.
    let mut instance = script.instance().clone();
    let state_instance = instance.active[0].clone();
    let now = instance.updated_at;
    for number in 2..STATE_INSTANCES_MAX {
        let mut state = state_instance.clone();
        state.id = crate::ids::StateId(uuid::Uuid::from_u128(1_000_000 + number as u128));
        state.tasks.clear();
        instance.past.push(crate::instance::PastState {
            state,
            left_at: now,
            left_trigger: "GO".into(),
            actor: None,
        });
    }
    script.instance = Some(instance);
    let hand = |script: &mut Script| {
        let task = script.task(0);
        let given = Command::Reassign {
            task,
            to: "bob".into(),
            reason: "nobody else".into(),
        };
        script.run("eve", &given).expect("a reassignment");
        script.go()
    };
    script = script.knowing(super::directory::everybody);
    hand(&mut script).expect("the last state");
    let refused = rejection(hand(&mut script));
    assert_eq!(refused.code(), "limit_reached");
    assert!(refused.to_string().contains("1000 states"), "{refused}");
    let cancel = Command::Cancel {
        instance: script.instance().id,
        reason: "it goes in circles".into(),
    };
    let outcome = script.run("eve", &cancel).expect("the end");
    assert!(matches!(
        outcome.events.last(),
        Some(Event::FlowCancelled { .. })
    ));
}
