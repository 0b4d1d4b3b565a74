//! A task for each member of a group, and the part of them that must decide.

use std::cell::RefCell;
use std::rc::Rc;

use super::directory::TestDirectory;
use super::script::{Script, decide, enter, fault, person, rejection, start};
use crate::actor::Actor;
use crate::answer::{Assignment, Next, Offer, Plan, Principal, Share};
use crate::check::samples::way_by;
use crate::command::Command;
use crate::event::Event;
use crate::event::reasons::LEFT_GROUP;
use crate::graph::FiredBy;
use crate::instance::{Candidate, Instance, Status, Task, TaskStatus};
use crate::json::Json;
use crate::question::{EntryCause, Occurrence};
use crate::rejection::Rejection;

type Town = Rc<RefCell<TestDirectory>>;

fn each(group: &str) -> Offer {
    Offer {
        label: "vote".into(),
        each_member: Some(group.into()),
        ..Offer::default()
    }
}

fn board(needed: u32) -> Assignment {
    Assignment {
        offers: vec![each("crew")],
        needed,
        ..Assignment::default()
    }
}

fn part(numerator: u32, denominator: u32) -> Assignment {
    Assignment {
        share: Some(Share {
            numerator,
            denominator,
            exceeded: false,
        }),
        ..board(0)
    }
}

fn town(members: &[&str]) -> Town {
    Rc::new(RefCell::new(
        TestDirectory::new()
            .group("crew", members)
            .group("office", &["ola"]),
    ))
}

fn change(town: &Town, members: &[&str]) {
    let changed = town.borrow().clone().group("crew", members);
    town.replace(changed);
}

/// A script of which every decision but the last stays.
fn script(town: &Town, assignment: Assignment) -> Script {
    Script::new()
        .living_in(town)
        .planning(|_, _| Ok(Plan::default()))
        .assigning(move |_| assignment.clone())
}

fn reassess(script: &mut Script) -> Vec<Event> {
    let instance = script.instance().id;
    let outcome = script.run_as(&Actor::host(), &Command::Reassessment { instance });
    outcome.expect("a reassessment").events
}

/// The people to whom the tasks that were not withdrawn are offered as members.
fn voters(script: &Script) -> Vec<&str> {
    let tasks = script.instance().active[0].tasks.iter();
    let kept = tasks.filter(|task| !matches!(task.status, TaskStatus::Cancelled { .. }));
    kept.map(|task| match &task.candidates[..] {
        [Candidate::Member { person, group }] if group == "crew" => person.as_str(),
        [] => "nobody",
        others => panic!("other candidates: {others:?}"),
    })
    .collect()
}

fn needed(script: &Script) -> u32 {
    script.instance().active[0].needed
}

#[test]
fn each_member_who_may_decide_has_a_task() {
    // `ann` is the initiator.
    let town = town(&["ann", "bob", "cid", "dan"]);
    let without_dan = Assignment {
        exclude: vec!["dan".into()],
        ..board(2)
    };
    let mut script = script(&town, without_dan).started();
    assert_eq!(voters(&script), ["bob", "cid"]);
    let of_bob = script.task(0);
    let refused = rejection(script.run("cid", &decide(of_bob, "GO")));
    assert_eq!(refused.forbids(), Some("not_a_candidate"));
    script.run("bob", &decide(of_bob, "GO")).expect("a vote");
}

#[test]
fn who_has_left_may_not_decide_even_before_the_task_is_withdrawn() {
    let town = town(&["bob", "cid"]);
    let mut script = script(&town, board(1)).started();
    let task = script.task(0);
    let stranger = Actor {
        groups: Vec::new(),
        ..super::script::person("bob")
    };
    let refused = rejection(script.run_as(&stranger, &decide(task, "GO")));
    assert_eq!(refused.forbids(), Some("not_a_candidate"));
}

#[test]
fn a_leavers_task_is_withdrawn_and_a_joiner_gets_none() {
    let town = town(&["bob", "cid", "dan"]);
    let mut script = script(&town, board(2)).started();
    script.claim(script.task(0));
    change(&town, &["cid", "dan", "eve"]);
    let events = reassess(&mut script);
    let listed: Vec<_> = events
        .iter()
        .map(|event| match event {
            Event::TaskReleased { owner, .. } => format!("released {owner}"),
            Event::TaskCancelled { reason, .. } => format!("withdrawn {reason:?}"),
            other => panic!("unexpected: {other:?}"),
        })
        .collect();
    assert_eq!(
        listed,
        [
            "released bob".to_owned(),
            format!("withdrawn {:?}", Some(LEFT_GROUP))
        ]
    );
    assert_eq!(voters(&script), ["cid", "dan"]);
    assert_eq!(reassess(&mut script), []);

    // Two are needed, so the next task goes to the fallbacks instead. Here is none.
    change(&town, &["dan"]);
    let events = reassess(&mut script);
    assert_eq!(voters(&script), ["nobody", "dan"]);
    assert!(
        events
            .iter()
            .any(|event| matches!(event, Event::StateUnassignable { .. })),
        "{events:?}"
    );
}

#[test]
fn the_last_open_task_goes_to_the_fallback_group() {
    let town = town(&["bob", "cid"]);
    let assignment = Assignment {
        fallback: Some("office".into()),
        ..part(1, 2)
    };
    let mut script = script(&town, assignment).started();
    let task = script.task(0);
    script.run("bob", &decide(task, "GO")).expect("a vote");
    change(&town, &["bob"]);
    reassess(&mut script);
    let left = &script.instance().active[0].tasks[1];
    assert_eq!(
        (&left.candidates[..], left.status.is_open()),
        (&[Candidate::Group("office".into())][..], true)
    );
}

#[test]
fn a_part_of_the_tasks_is_counted_without_those_withdrawn() {
    let town = town(&["bob", "cid", "dan", "eve", "fay"]);
    let mut script = script(&town, part(2, 3)).started();
    assert_eq!(needed(&script), 4);
    change(&town, &["cid", "dan", "eve"]);
    reassess(&mut script);
    assert_eq!((voters(&script).len(), needed(&script)), (3, 2));
    let more = Share {
        exceeded: true,
        numerator: 1,
        denominator: 2,
    };
    assert_eq!([1, 2, 3, 4].map(|tasks| more.of(tasks)), [1, 2, 2, 3]);
    assert_eq!(part(2, 3).share.expect("a part").of(5), 4);
}

/// Flow logic is asked by decisions alone. So the last task stays, for whoever is found.
#[test]
fn a_vote_that_withdrawals_have_decided_ends_with_the_next_decision() {
    for members in [&["bob", "cid", "dan", "fay"][..], &["bob", "cid", "dan"]] {
        let town = town(&["bob", "cid", "dan", "eve", "fay"]);
        let assignment = Assignment {
            fallback: Some("office".into()),
            ..part(2, 3)
        };
        // As the quorum of an SDK.
        let plan = |occurrence: &Occurrence, _: &str, instance: &Instance| {
            let state = &instance.active[0];
            let decided = state.tasks.iter().filter_map(Task::decision);
            let votes = decided.filter(|decision| decision.outcome == "GO").count();
            let votes = votes + usize::from(occurrence.trigger == "GO");
            let is_reached = votes >= usize::try_from(state.needed).expect("few");
            Ok(if is_reached {
                enter(&["Done"])
            } else {
                Plan::default()
            })
        };
        let mut script = script(&town, assignment).planning_for(plan);
        script.redraw(|graph| {
            let no = way_by("Review", "NO", FiredBy::Decision, &["Done"]);
            graph.transitions.push(no);
        });
        let mut script = script.started();
        for (number, person) in ["bob", "cid", "dan"].into_iter().enumerate() {
            let task = script.task(number);
            script.run(person, &decide(task, "GO")).expect("a vote");
        }
        assert_eq!(needed(&script), 4);
        change(&town, members);
        reassess(&mut script);
        assert_eq!(needed(&script), 3);
        let tasks = script.instance().active[0].tasks.iter();
        let mut open = tasks.filter(|task| task.status.is_open());
        let last = open.next().expect("a task is left");
        assert_eq!(open.next(), None);
        let (task, voter) = match &last.candidates[..] {
            [Candidate::Member { person: id, .. }] => (last.id, person(id)),
            [Candidate::Group(group)] => {
                let ola = Actor {
                    groups: vec![group.clone()],
                    ..person("ola")
                };
                (last.id, ola)
            }
            others => panic!("other candidates: {others:?}"),
        };
        let outcome = script.run_as(&voter, &decide(task, "NO"));
        let ended = outcome.expect("the end").instance.status;
        assert!(matches!(ended, Status::Completed { .. }), "{ended:?}");
    }
}

#[test]
fn what_was_needed_stays_when_the_state_is_left() {
    let town = town(&["bob", "cid", "dan"]);
    let assignment = part(1, 3);
    let mut script = Script::new()
        .living_in(&town)
        .assigning(move |_| assignment.clone())
        .started();
    script.go().expect("the end");
    let past = &script.instance().past[0].state;
    assert_eq!((past.needed, past.tasks.len()), (1, 3));
    let cancelled = past.tasks.iter().filter(|task| task.decision().is_none());
    assert_eq!(cancelled.count(), 2);
}

#[test]
fn too_few_members_leave_tasks_for_the_fallbacks() {
    let town = town(&["bob"]);
    let script = script(&town, board(2)).started();
    assert_eq!(voters(&script), ["bob", "nobody"]);
    assert!(script.instance().active[0].unassignable_since.is_some());
}

#[test]
fn work_that_is_offered_anew_has_a_task_for_joiners_and_none_for_leavers() {
    let town = town(&["bob", "cid", "dan"]);
    let mut script = Script::new()
        .living_in(&town)
        .planning(|_, _| {
            Ok(Plan {
                next: Next::Reoffer,
                ..Plan::default()
            })
        })
        .assigning(|_| part(2, 3))
        .started();
    let kept = script.task(1);
    script
        .run("cid", &Command::Claim { task: kept })
        .expect("a claim");
    change(&town, &["bob", "cid", "eve"]);
    script.go().expect("a decision that asks for other work");
    let state = &script.instance().active[0];
    assert_eq!(voters(&script), ["bob", "cid", "eve"]);
    assert_eq!((state.needed, state.tasks[1].owner()), (2, Some("cid")));
}

#[test]
fn a_group_that_is_too_large_is_refused_with_the_reason() {
    let crowd: Vec<String> = (0..201)
        .map(|number| format!("person {number:03}"))
        .collect();
    let all: Vec<&str> = crowd.iter().map(String::as_str).collect();
    let town = town(&all);
    let assignment = Assignment {
        exclude: vec![crowd[7].clone()],
        ..board(1)
    };
    let fits = script(&town, assignment).started();
    assert_eq!(voters(&fits).len(), 200);

    let mut script = script(&town, board(1));
    let Rejection::NotNow { code, message } = rejection(script.run("ann", &start())) else {
        panic!("another refusal");
    };
    assert_eq!(code, "limit_reached");
    assert!(message.contains("each member of crew"), "{message}");
    assert!(message.contains("200 tasks at most"), "{message}");
}

#[test]
fn the_escalation_of_one_task_leaves_the_others_alone() {
    let town = town(&["bob", "cid"]);
    let mut script = Script::new()
        .drawn(super::deadlines::graph())
        .living_in(&town)
        .planning(|_, _| Ok(enter(&["Done"])))
        .assigning_for(|_, cause| {
            let mut assignment = board(1);
            if *cause == EntryCause::Entered {
                let deadline = super::deadlines::after(60, crate::answer::OverdueAction::Escalate);
                assignment.offers[0].deadlines = vec![deadline];
            }
            assignment
        })
        .started();
    let deadline = script.instance().active[0].tasks[0].deadlines[0].clone();
    let command = Command::Deadline {
        instance: script.instance().id,
        deadline: deadline.id,
        due_at: deadline.due_at.expect("it is counting"),
    };
    script.at(70);
    script
        .run_as(&Actor::host(), &command)
        .expect("an escalation");
    // `cid` keeps a task, so there is one for `bob` alone.
    assert_eq!(voters(&script), ["cid", "bob"]);
}

#[test]
fn blind_decisions_are_told_by_the_command_that_ends_the_state() {
    let town = town(&["bob", "cid"]);
    let assignment = Assignment {
        blind: true,
        ..board(2)
    };
    let votes = Rc::new(RefCell::new(0));
    let mut script = Script::new()
        .living_in(&town)
        .planning(move |_, _| {
            *votes.borrow_mut() += 1;
            Ok(match *votes.borrow() {
                1 => Plan::default(),
                _ => enter(&["Done"]),
            })
        })
        .assigning(move |_| assignment.clone())
        .started();
    let (of_bob, of_cid) = (script.task(0), script.task(1));
    let first = script.run("bob", &decide(of_bob, "GO")).expect("a vote");
    for kind in ["DECISION_RECORDED", "STATE_CONTINUED"] {
        let mut events = first.events.iter();
        let event = events.find(|event| event.kind() == kind).expect(kind);
        assert!(crate::event::is_blind(kind, Json::of(event).as_str()));
    }
    assert!(
        !first
            .events
            .iter()
            .any(|event| matches!(event, Event::StateDisclosed { .. }))
    );
    let Rejection::Taken(winner) = rejection(script.run("cid", &decide(of_bob, "GO"))) else {
        panic!("another refusal");
    };
    assert_eq!((winner.by, winner.outcome), (None, None));
    let last = script.run("cid", &decide(of_cid, "GO")).expect("a vote");
    let disclosed = last.events.iter().filter_map(|event| match event {
        Event::StateDisclosed { decisions, .. } => Some(decisions),
        _ => None,
    });
    let pairs: Vec<_> = disclosed
        .flatten()
        .map(|decision| (decision.actor.as_str(), decision.outcome.as_str()))
        .collect();
    assert_eq!(pairs, [("bob", "GO"), ("cid", "GO")]);
}

#[test]
fn what_makes_no_sense_is_a_fault() {
    let town = town(&["bob"]);
    let with = |change: fn(&mut Assignment)| {
        let mut assignment = board(1);
        change(&mut assignment);
        fault(script(&town, assignment).run("ann", &start()))
    };
    let both = with(|one| one.offers[0].candidates = vec![Principal::User("bob".into())]);
    assert!(both.contains("no other candidates"), "{both}");
    let owned = with(|one| one.offers[0].owner = Some("bob".into()));
    assert!(owned.contains("no owner"), "{owned}");
    for (numerator, denominator, exceeded) in
        [(0, 3, false), (4, 3, false), (1, 0, false), (1, 1, true)]
    {
        let share = Share {
            numerator,
            denominator,
            exceeded,
        };
        let assignment = Assignment {
            share: Some(share),
            ..board(0)
        };
        let refused = fault(script(&town, assignment).run("ann", &start()));
        assert!(refused.contains("which no decisions can be"), "{refused}");
    }
}
