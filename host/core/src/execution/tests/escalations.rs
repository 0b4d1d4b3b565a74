//! Escalations: of one task or a whole state, with votes that are kept, and with invalid assignments.

use std::cell::RefCell;
use std::rc::Rc;

use super::deadlines::{
    after, crew, due, every, graph, kinds, late, open, pass, passed, second, user,
};
use super::ownership::released;
use super::script::{Script, fault, offers};
use crate::answer::{Assignment, Deadline, Due, OverdueAction, Plan};
use crate::command::Command;
use crate::event::Event;
use crate::instance::{Candidate, TaskStatus};
use crate::question::EntryCause;

/// A vote of two out of three, with one task that dan owns; late work goes to the boss. Returns the questions to `assign`.
fn vote(deadline: Deadline, of_state: bool) -> (Script, Rc<RefCell<Vec<EntryCause>>>) {
    let causes = Rc::new(RefCell::new(Vec::new()));
    let seen = causes.clone();
    let assign = move |_: &str, cause: &EntryCause| {
        seen.borrow_mut().push(cause.clone());
        if *cause != EntryCause::Entered {
            return Assignment {
                needed: 2,
                exclude: vec!["dan".into()],
                ..offers(&["bosses"])
            };
        }
        let mut assignment = offers(&["crew"; 3]);
        assignment.needed = 2;
        if of_state {
            assignment.deadlines.push(deadline.clone());
        } else {
            assignment.offers[1].deadlines.push(deadline.clone());
        }
        assignment
    };
    let bosses = |lookup: &_| {
        let directory = super::directory::TestDirectory::new().group("bosses", &["bea"]);
        directory.clone().found(lookup)
    };
    let mut script = Script::new()
        .drawn(graph())
        .assigning_for(assign)
        .knowing(bosses)
        .planning(|_, _| Ok(Plan::default()))
        .started();
    for (number, person) in [(0, "bob"), (1, "dan")] {
        let task = script.task(number);
        script
            .run(person, &Command::Claim { task })
            .expect("a claim");
    }
    script.go().expect("a vote");
    (script, causes)
}

fn statuses(script: &Script) -> Vec<&'static str> {
    let name = |status: &TaskStatus| match status {
        TaskStatus::Pending => "pending",
        TaskStatus::Claimed { .. } => "claimed",
        TaskStatus::Completed { .. } => "completed",
        TaskStatus::Cancelled { reason, .. } => {
            assert_eq!(reason.as_deref(), Some("escalated"));
            "cancelled"
        }
    };
    let tasks = &script.instance().active[0].tasks;
    tasks.iter().map(|task| name(&task.status)).collect()
}

#[test]
fn one_late_task_goes_to_others_and_the_votes_stand() {
    let (mut script, causes) = vote(after(60, OverdueAction::Escalate), false);
    let task = script.task(1);
    let events = pass(&mut script, 0, 70);
    let expected = [
        "DEADLINE_PASSED",
        "TASK_ESCALATED",
        "STATE_REASSIGNED",
        "TASK_CANCELLED",
        "TASK_CREATED",
    ];
    assert_eq!(
        (kinds(&events), passed(&events)),
        (expected.to_vec(), (1, 9, None))
    );
    let Event::TaskEscalated { from, .. } = &events[1] else {
        panic!("{events:?}")
    };
    assert_eq!(*from, [user("dan")]);
    let cause = EntryCause::Overdue {
        task: Some(task),
        count: 1,
    };
    assert_eq!(*causes.borrow(), [EntryCause::Entered, cause]);
    assert_eq!(
        statuses(&script),
        ["completed", "cancelled", "pending", "pending"]
    );
    let state_instance = &script.instance().active[0];
    assert_eq!(
        (state_instance.needed, &state_instance.exclude[..]),
        (2, &["dan".to_owned()][..])
    );
    assert_eq!(
        state_instance.tasks[3].candidates,
        [Candidate::Group("bosses".into())]
    );
}

#[test]
fn a_late_state_goes_to_others_as_far_as_it_is_open() {
    let (mut script, causes) = vote(every(60, after(60, OverdueAction::Escalate)), true);
    let events = pass(&mut script, 0, 61);
    let Event::TaskEscalated { from, task, .. } = &events[1] else {
        panic!("{events:?}")
    };
    assert_eq!((&from[..], *task), (&[user("dan"), crew()][..], None));
    assert_eq!(
        statuses(&script),
        ["completed", "cancelled", "cancelled", "pending"]
    );
    // And again, from those who have it by now.
    let events = pass(&mut script, 0, 121);
    let Event::TaskEscalated {
        from,
        count: Some(2),
        ..
    } = &events[1]
    else {
        panic!("{events:?}")
    };
    assert_eq!(*from, [Candidate::Group("bosses".into())]);
    assert_eq!(
        causes.borrow()[1..],
        [1, 2].map(|count| EntryCause::Overdue { task: None, count })
    );
}

/// The other seat is for somebody else from then on.
#[test]
fn whoever_an_escalation_excludes_loses_the_other_tasks_as_well() {
    let assign = |_: &str, cause: &EntryCause| {
        if *cause != EntryCause::Entered {
            return Assignment {
                exclude: vec!["bob".into()],
                ..offers(&["crew"])
            };
        }
        let mut assignment = offers(&["crew", "crew"]);
        assignment.offers[0].deadlines = vec![after(60, OverdueAction::Escalate)];
        assignment
    };
    let script = Script::new().drawn(graph()).assigning_for(assign);
    let mut script = script.started();
    let (overdue, other) = (script.task(0), script.task(1));
    script.claim(overdue);
    script.claim(other);
    let events = pass(&mut script, 0, 70);
    let lost = Some((other, "bob", Some("lost_eligibility")));
    assert_eq!(released(&events), lost, "{events:?}");
    assert_eq!(statuses(&script), ["cancelled", "pending", "pending"]);
}

/// The tasks that were withdrawn count, so one that repeats meets the limit in the end. Later deadlines are not held up.
#[test]
fn an_escalation_beyond_a_limit_is_recorded_and_changes_nothing() {
    const OFFERS: usize = 150;
    let assign = |_: &str, _: &EntryCause| {
        let mut assignment = offers(&["crew"; OFFERS]);
        assignment.deadlines = vec![every(60, after(60, OverdueAction::Escalate))];
        assignment
    };
    let mut script = Script::new()
        .drawn(graph())
        .assigning_for(assign)
        .planning(|_, _| Ok(Plan::default()))
        .started();
    let mut refusals = Vec::new();
    for number in 1..=8 {
        let before = script.instance().active[0].tasks.clone();
        let events = pass(&mut script, 0, 60 * number + 1);
        if let [
            Event::DeadlinePassed { next, .. },
            Event::TriggerRefused { trigger, code, .. },
        ] = &events[..]
        {
            assert!(next.is_some(), "it passes again");
            assert_eq!(script.instance().active[0].tasks, before);
            refusals.push((trigger.clone(), code.clone()));
        } else {
            assert_eq!(refusals.len(), 0, "{:?}", kinds(&events));
        }
    }
    let refused = ("escalate".to_owned(), "limit_reached".to_owned());
    assert!(
        refusals.len() >= 2 && refusals.iter().all(|one| *one == refused),
        "{refusals:?}"
    );
}

#[test]
fn an_escalation_cannot_ask_for_more_votes_than_there_are() {
    for (needed, is_fault) in [(2, false), (3, true)] {
        let assign = move |_: &str, cause: &EntryCause| {
            let mut assignment = offers(&["crew", "crew"]);
            assignment.deadlines = vec![after(60, OverdueAction::Escalate)];
            if *cause != EntryCause::Entered {
                assignment = offers(&["crew"]);
                assignment.needed = needed;
            }
            assignment
        };
        let mut script = Script::new()
            .drawn(graph())
            .assigning_for(assign)
            .planning(|_, _| Ok(Plan::default()))
            .claimed();
        script.go().expect("a vote");
        let deadline = open(script.instance())[0].2.clone();
        script.at(61);
        let result = due(&mut script, deadline.id, deadline.due_at);
        if is_fault {
            assert_eq!(
                fault(result),
                "enter: Review needs 3 decisions and offers 1 task besides 1 existing one"
            );
        } else {
            result.expect("an escalation");
        }
    }
}

#[test]
fn work_that_nobody_is_able_to_do_is_escalated_too() {
    let mut script = Script::new()
        .drawn(graph())
        .assigning_for(|_, cause| {
            let mut assignment = offers(&["crew"]);
            if *cause == EntryCause::Entered {
                assignment.offers[0].candidates.clear();
                assignment.deadlines = vec![after(60, OverdueAction::Escalate)];
            }
            assignment
        })
        .started();
    assert!(script.instance().active[0].unassignable_since.is_some());
    let events = pass(&mut script, 0, 61);
    assert!(kinds(&events).contains(&"STATE_ASSIGNABLE"), "{events:?}");
}

/// Whenever it is offered, one task of the crew has these deadlines.
fn always(deadlines: Vec<Deadline>) -> Script {
    let assign = move |_: &str, _: &EntryCause| {
        let mut assignment = offers(&["crew"]);
        assignment.offers[0].deadlines.clone_from(&deadlines);
        assignment
    };
    let script = Script::new().drawn(graph()).assigning_for(assign);
    script.planning(|_, _| Ok(Plan::default())).started()
}

pub(super) fn at(moment: i64, action: OverdueAction) -> Deadline {
    Deadline {
        when: Due::At(second(moment)),
        ..after(0, action)
    }
}

/// The actions that are open, and when they are due.
pub(super) fn to_come(script: &Script) -> Vec<(OverdueAction, i64)> {
    let all = open(script.instance()).into_iter();
    let all = all.map(|(.., one)| (one.action, one.due_at.expect("it counts").as_second()));
    all.collect()
}

#[test]
fn escalated_work_is_not_escalated_again_at_once() {
    let escalate = || OverdueAction::Escalate;
    for (deadline, again) in [
        (at(60, escalate()), None),
        (every(100, at(60, escalate())), Some(160)),
        (after(0, escalate()), Some(130)),
        (after(59, escalate()), Some(130)),
        (after(61, escalate()), Some(131)),
    ] {
        let mut script = always(vec![deadline]);
        let events = pass(&mut script, 0, 70);
        assert!(kinds(&events).contains(&"TASK_CREATED"), "{events:?}");
        let again = again.map(|at| (escalate(), at));
        assert_eq!(to_come(&script), Vec::from_iter(again));
    }
}

#[test]
fn escalated_work_keeps_the_fixed_times_that_are_to_come() {
    let deadlines = || {
        vec![
            at(50, OverdueAction::Remind),
            at(60, OverdueAction::Escalate),
            at(90, late()),
        ]
    };
    // After an outage.
    let mut script = always(deadlines());
    pass(&mut script, 0, 100);
    pass(&mut script, 0, 100);
    assert_eq!(to_come(&script), [(late(), 90)]);
    // Each of them goes on once.
    let escalate = || OverdueAction::Escalate;
    let reminders = [
        at(50, OverdueAction::Remind),
        at(60, escalate()),
        at(90, OverdueAction::Remind),
    ];
    let mut script = always(reminders.into());
    pass(&mut script, 0, 55);
    pass(&mut script, 0, 70);
    assert_eq!(to_come(&script), [(OverdueAction::Remind, 90)]);
    let mut script = always(vec![at(60, escalate()), at(90, escalate())]);
    pass(&mut script, 0, 70);
    assert_eq!(to_come(&script), [(escalate(), 130)]);
    pass(&mut script, 0, 130);
    assert_eq!(to_come(&script), []);
    // After a suspension.
    let mut script = always(deadlines());
    let instance = script.instance().id;
    let reason = "wait".to_owned();
    script.at(11);
    let suspended = script.run("amy", &Command::Suspend { instance, reason });
    suspended.expect("suspended");
    script.at(111);
    let resumed = script.run("amy", &Command::Resume { instance });
    resumed.expect("resumed");
    pass(&mut script, 0, 150);
    pass(&mut script, 0, 160);
    assert_eq!(to_come(&script), [(late(), 190)]);
}
