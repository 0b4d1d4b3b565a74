//! Plans that ask for other work in a state that goes on.

use std::cell::RefCell;
use std::rc::Rc;

use super::deadlines::{after, every, graph, late, pass};
use super::directory::TestDirectory;
use super::escalations::{at, to_come};
use super::migration::migrate;
use super::script::{Script, decide, enter, fault, offers, rejection};
use super::waits;
use crate::answer::{
    Assignment, Next, Offer, OverdueAction, Plan, Principal, Reason, Refusal, Work,
};
use crate::command::Command;
use crate::event::Event;
use crate::instance::{Candidate, Task, TaskStatus};
use crate::json::Json;
use crate::question::EntryCause;
use crate::rejection::Rejection;

fn reoffer() -> Plan {
    Plan {
        next: Next::Reoffer,
        ..Plan::default()
    }
}

fn offer(label: &str, group: &str) -> Offer {
    Offer {
        label: label.into(),
        candidates: vec![Principal::Group(group.into())],
        ..Offer::default()
    }
}

fn of(offers: Vec<Offer>, needed: u32) -> Assignment {
    Assignment {
        offers,
        needed,
        ..Assignment::default()
    }
}

/// `Review` has these offers at first, and others once a plan asks for them. The first decision asks.
fn asked_again(first: Assignment, second: Assignment) -> Script {
    let assign = move |_: &str, cause: &EntryCause| match cause {
        EntryCause::Reoffered => second.clone(),
        _ => first.clone(),
    };
    let decided = Rc::new(RefCell::new(0));
    let town = TestDirectory::new().group("bench", &["ben"]);
    Script::new()
        .drawn(graph())
        .living_in(&Rc::new(RefCell::new(town)))
        .assigning_for(assign)
        .planning_for(move |_, _, _| {
            *decided.borrow_mut() += 1;
            Ok(match *decided.borrow() {
                1 => reoffer(),
                _ => enter(&["Done"]),
            })
        })
        .started()
}

fn labels(script: &Script) -> Vec<(&str, &'static str)> {
    let tasks = script.instance().active[0].tasks.iter();
    let status = |status: &TaskStatus| match status {
        TaskStatus::Pending => "pending",
        TaskStatus::Claimed { .. } => "claimed",
        TaskStatus::Completed { .. } => "completed",
        TaskStatus::Cancelled { reason, .. } if reason.as_deref() == Some("reoffered") => {
            "reoffered"
        }
        TaskStatus::Cancelled { .. } => "cancelled",
    };
    tasks
        .map(|task| (task.label.as_str(), status(&task.status)))
        .collect()
}

#[test]
fn reviewers_are_added_while_others_work() {
    let first = ["legal", "tax", "press"].map(|label| offer(label, "crew"));
    let second = vec![
        offer("tax", "crew"),
        offer("press", "bench"),
        offer("board", "crew"),
    ];
    let mut script = asked_again(of(first.to_vec(), 2), of(second, 3));
    let (legal, tax) = (script.task(0), script.task(1));
    script
        .run("cid", &Command::Claim { task: tax })
        .expect("a claim");
    let outcome = script.run("bob", &decide(legal, "GO")).expect("a decision");
    assert_eq!(
        labels(&script),
        [
            ("legal", "completed"),
            ("tax", "claimed"),
            ("press", "pending"),
            ("board", "pending"),
        ]
    );
    let state = &script.instance().active[0];
    assert_eq!((state.needed, state.name.as_str()), (3, "Review"));
    let rerouted = outcome.events.iter().filter_map(|event| match event {
        Event::TaskRerouted { task, step, .. } => Some((*task, step.as_str())),
        _ => None,
    });
    assert_eq!(
        rerouted.collect::<Vec<_>>(),
        [(script.task(2), "reoffered")]
    );
    script.run("cid", &decide(tax, "GO")).expect("the end");
}

#[test]
fn an_owner_keeps_the_one_offer_that_is_left() {
    let review = || offer("review", "crew");
    let first = vec![offer("go", "crew"), review(), review()];
    let mut script = asked_again(of(first, 1), of(vec![review()], 1));
    let (go, second) = (script.task(0), script.task(2));
    script
        .run("cid", &Command::Claim { task: second })
        .expect("a claim");
    script.run("bob", &decide(go, "GO")).expect("a decision");
    assert_eq!(
        labels(&script),
        [
            ("go", "completed"),
            ("review", "reoffered"),
            ("review", "claimed"),
        ]
    );
}

#[test]
fn an_owner_keeps_what_is_offered_to_them_again() {
    let to = |person: &str| Offer {
        candidates: vec![Principal::User(person.into())],
        ..offer("review", "crew")
    };
    let first = vec![offer("go", "crew"), to("fay"), to("gus")];
    let second = vec![to("gus"), to("hal")];
    let mut script = asked_again(of(first, 1), of(second, 2));
    let (go, of_fay, of_gus) = (script.task(0), script.task(1), script.task(2));
    for (person, task) in [("fay", of_fay), ("gus", of_gus)] {
        script
            .run(person, &Command::Claim { task })
            .expect("a claim");
    }
    script.run("bob", &decide(go, "GO")).expect("a decision");
    let tasks = &script.instance().active[0].tasks;
    let owners: Vec<_> = tasks.iter().map(Task::owner).collect();
    assert_eq!(owners, [Some("bob"), None, Some("gus")]);
    assert_eq!(tasks[1].candidates, [Candidate::User("hal".into())]);
}

#[test]
fn whoever_has_decided_is_given_no_other_task() {
    let mut given = offer("more", "crew");
    given.owner = Some("bob".into());
    let second = of(vec![given], 1);
    let mut script = asked_again(of(vec![offer("go", "crew")], 1), second);
    let go = script.task(0);
    script.run("bob", &decide(go, "GO")).expect("a decision");
    let expected = [("go", "completed"), ("more", "pending")];
    assert_eq!(labels(&script), expected);
}

#[test]
fn what_is_not_offered_again_is_withdrawn() {
    let first = vec![offer("go", "crew"), offer("gone", "crew")];
    let second = vec![offer("asked", "crew")];
    let mut script = asked_again(of(first, 1), of(second, 1));
    let go = script.task(0);
    script.run("bob", &decide(go, "GO")).expect("a decision");
    assert_eq!(
        labels(&script),
        [
            ("go", "completed"),
            ("gone", "reoffered"),
            ("asked", "pending"),
        ]
    );
}

/// As when a state is entered. A vote must not wait for them.
#[test]
fn what_nobody_can_do_is_withdrawn_if_others_suffice() {
    let first = ["go", "kept", "lost"].map(|label| offer(label, "crew"));
    let second = [("kept", "crew"), ("lost", "nobodys"), ("new", "nobodys")];
    let second = second.map(|(label, group)| offer(label, group));
    let mut script = asked_again(of(first.to_vec(), 1), of(second.to_vec(), 2));
    let go = script.task(0);
    script.run("bob", &decide(go, "GO")).expect("a decision");
    let expected = [
        ("go", "completed"),
        ("kept", "pending"),
        ("lost", "cancelled"),
        ("new", "cancelled"),
    ];
    assert_eq!(labels(&script), expected);
}

#[test]
fn the_deadlines_of_the_state_and_of_kept_tasks_stay() {
    let mut first = of(vec![offer("go", "crew"), offer("kept", "crew")], 1);
    first.deadlines = vec![after(60, late())];
    first.offers[1].deadlines = vec![after(90, late())];
    let mut second = of(vec![offer("kept", "crew"), offer("new", "crew")], 1);
    second.deadlines = vec![after(5, late())];
    second.offers[0].deadlines = vec![after(7, late())];
    let mut script = asked_again(first, second);
    let before = script.instance().active[0].clone();
    script
        .run("bob", &decide(before.tasks[0].id, "GO"))
        .expect("a decision");
    let after = &script.instance().active[0];
    assert_eq!(after.deadlines, before.deadlines);
    assert_eq!(after.tasks[1].deadlines, before.tasks[1].deadlines);
}

#[test]
fn only_a_task_state_offers_anew() {
    let mut script = waits::script("Wait", |_| waits::signals());
    script.go().expect("a wait");
    let mut script = script.planning(|_, _| Ok(reoffer()));
    let signal = Command::Signal {
        instance: script.instance().id,
        trigger: "PAID".into(),
        id: "1".into(),
        input: Json::empty(),
        correlation: None,
        state: None,
    };
    assert_eq!(
        fault(script.run("sam", &signal)),
        "transition: Wait offers no tasks that could be others"
    );
}

#[test]
fn a_refusal_of_other_work_is_the_callers_answer() {
    let reason = Reason {
        code: "no_more".into(),
        message: "There is nobody else.".into(),
    };
    let because = reason.clone();
    let mut script = Script::new()
        .drawn(graph())
        .planning(|_, _| Ok(reoffer()))
        .entering(move |entries| {
            if entries[0].cause == EntryCause::Reoffered {
                return Err(Refusal::NotNow(because.clone()));
            }
            Ok(vec![Work::Task(offers(&["crew"]))])
        })
        .claimed();
    let before = script.instance().clone();
    assert_eq!(rejection(script.go()), Rejection::RefusedNow(reason));
    assert_eq!(*script.instance(), before);
}

#[test]
fn a_fixed_moment_that_has_acted_does_not_act_again_after_a_migration() {
    let assign = |_: &str, _: &EntryCause| {
        let mut assignment = offers(&["crew"]);
        assignment.deadlines = vec![
            every(100, at(50, OverdueAction::Remind)),
            at(60, OverdueAction::Escalate),
            at(90, late()),
            after(300, OverdueAction::Release),
        ];
        assignment.offers[0].deadlines = vec![at(50, OverdueAction::Remind)];
        assignment
    };
    let mut script = Script::new()
        .drawn(graph())
        .followed_by(|_| ())
        .assigning_for(assign)
        .started();
    // The reminder and the escalation of the state, then the reminder of the new task.
    for number in [0, 1, 3] {
        pass(&mut script, number, 70);
    }
    script.at(200);
    migrate(&mut script, &[]).expect("a migration");
    let expected = [
        (OverdueAction::Remind, 150),
        (late(), 90),
        (OverdueAction::Release, 500),
    ];
    assert_eq!(to_come(&script), expected);
}

#[test]
fn a_fixed_moment_that_has_acted_does_not_go_on_like_a_later_one() {
    let assign = |_: &str, _: &EntryCause| {
        let remind = |seconds| at(seconds, OverdueAction::Remind);
        let mut assignment = offers(&["crew"]);
        assignment.deadlines = vec![remind(50), remind(500)];
        assignment
    };
    let script = Script::new().drawn(graph()).followed_by(|_| ());
    let mut script = script.assigning_for(assign).started();
    pass(&mut script, 0, 70);
    script.at(200);
    migrate(&mut script, &[]).expect("a migration");
    assert_eq!(to_come(&script), [(OverdueAction::Remind, 500)]);
}

#[test]
fn a_fixed_moment_that_has_acted_does_not_act_on_other_offers() {
    let reminded = |label: &str| Offer {
        deadlines: vec![at(5, OverdueAction::Remind)],
        ..offer(label, "crew")
    };
    let first = vec![offer("legal", "crew"), reminded("tax")];
    let second = vec![reminded("tax"), reminded("board")];
    let mut script = asked_again(of(first, 1), of(second, 2));
    pass(&mut script, 0, 10);
    let legal = script.task(0);
    script.run("bob", &decide(legal, "GO")).expect("a decision");
    assert_eq!(script.instance().active[0].tasks.len(), 3);
    assert_eq!(to_come(&script), []);
}
