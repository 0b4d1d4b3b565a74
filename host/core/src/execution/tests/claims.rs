//! Deadlines that count from the claim of a task.

use std::cell::RefCell;
use std::rc::Rc;

use jiff::Timestamp;

use super::deadlines::{after, claimed, due, every, graph, kinds, open, pass, second};
use super::directory::{TestDirectory, everybody};
use super::script::{Script, decide, fault, json, offers, rejection, start};
use crate::answer::{Deadline, Due, OverdueAction, Since};
use crate::command::Command;
use crate::event::Event;
use crate::ids::TaskId;
use crate::lookup::{Findings, Lookup};

const RELEASE: OverdueAction = OverdueAction::Release;

/// One task of the crew under these deadlines.
fn offered(deadlines: &[Deadline]) -> Script {
    let deadlines = deadlines.to_vec();
    Script::new().drawn(graph()).assigning(move |_| {
        let mut assignment = offers(&["crew"]);
        assignment.offers[0].deadlines.clone_from(&deadlines);
        assignment
    })
}

/// The due times of the only task: of the task, and of each deadline.
fn due_times(script: &Script) -> (Option<i64>, Vec<Option<i64>>) {
    let seconds = |at: Option<Timestamp>| at.map(Timestamp::as_second);
    let task = &script.instance().active[0].tasks[0];
    let deadlines = task.deadlines.iter();
    let each = deadlines.map(|deadline| seconds(deadline.due_at));
    (seconds(task.due_at), each.collect())
}

#[track_caller]
fn at(script: &mut Script, second: i64, person: &str, command: &Command) -> Vec<Event> {
    script.at(second);
    script.run(person, command).expect("it is allowed").events
}

fn delegate(task: TaskId, to: &str) -> Command {
    Command::Delegate {
        task,
        to: to.into(),
        reason: "busy".into(),
    }
}

#[test]
fn whoever_sits_on_a_task_loses_it_however_often() {
    let both = [claimed(after(60, RELEASE)), after(500, RELEASE)];
    let mut script = offered(&both).started();
    let task = script.task(0);
    assert_eq!(due_times(&script), (Some(501), vec![None, Some(501)]));
    for (number, begun) in [(1, 100), (2, 300)] {
        let events = at(&mut script, begun, "bob", &Command::Claim { task });
        assert_eq!(kinds(&events), ["TASK_CLAIMED"]);
        let due_at = Some(begun + 60);
        assert_eq!(due_times(&script), (due_at, vec![due_at, Some(501)]));
        let events = pass(&mut script, 0, begun + 60);
        assert_eq!(kinds(&events), ["DEADLINE_PASSED", "TASK_RELEASED"]);
        let Event::DeadlinePassed { count, .. } = &events[0] else {
            panic!("{events:?}")
        };
        assert_eq!(*count, number);
        assert_eq!(due_times(&script), (Some(501), vec![None, Some(501)]));
    }
    // The other one counts from the creation, and is spent.
    at(&mut script, 490, "cid", &Command::Claim { task });
    let events = pass(&mut script, 1, 501);
    assert_eq!(kinds(&events), ["DEADLINE_PASSED", "TASK_RELEASED"]);
    assert_eq!(due_times(&script), (None, vec![None]));
}

#[test]
fn it_counts_only_while_somebody_owns_the_task() {
    let mut script = offered(&[claimed(after(60, RELEASE))])
        .knowing(everybody)
        .started();
    let task = script.task(0);
    at(&mut script, 10, "bob", &Command::Claim { task });
    let old = open(script.instance())[0].2.clone();
    at(&mut script, 20, "bob", &Command::Release { task });
    assert_eq!(due_times(&script), (None, vec![None]));
    script.at(70);
    let outcome = due(&mut script, old.id, old.due_at).expect("nothing");
    assert_eq!(outcome.events, []);

    at(&mut script, 100, "bob", &Command::Claim { task });
    // The deadline of the first claim does nothing to the second one.
    let outcome = due(&mut script, old.id, old.due_at).expect("nothing");
    assert_eq!(outcome.events, []);
    // A delegate has what is left.
    at(&mut script, 110, "bob", &delegate(task, "cid"));
    assert_eq!(due_times(&script).0, Some(160));
    at(&mut script, 120, "cid", &Command::Resolve { task });
    assert_eq!(due_times(&script).0, Some(160));
    // An operator's choice begins anew, and a reset ends it.
    let reassign = Command::Reassign {
        task,
        to: "dan".into(),
        reason: "bob is ill".into(),
    };
    at(&mut script, 130, "amy", &reassign);
    assert_eq!(due_times(&script).0, Some(190));
    let reset = Command::Reset {
        task,
        reason: "dan, too".into(),
    };
    at(&mut script, 140, "amy", &reset);
    assert_eq!(due_times(&script), (None, vec![None]));
}

#[test]
fn a_decision_that_claims_begins_nothing() {
    let mut script = offered(&[claimed(after(60, RELEASE))]).started();
    let command = decide(script.task(0), "GO");
    let events = at(&mut script, 10, "bob", &command);
    let Event::TaskClaimed { deadlines, .. } = &events[0] else {
        panic!("{events:?}")
    };
    assert_eq!(deadlines, &[]);
}

#[test]
fn a_repetition_goes_on_until_the_task_is_released() {
    let remind = claimed(every(70, after(60, OverdueAction::Remind)));
    let mut script = offered(&[remind]).started();
    let task = script.task(0);
    at(&mut script, 10, "bob", &Command::Claim { task });
    pass(&mut script, 0, 70);
    assert_eq!(due_times(&script).0, Some(140));
    at(&mut script, 80, "bob", &Command::Release { task });
    assert_eq!(due_times(&script), (None, vec![None]));
    at(&mut script, 90, "bob", &Command::Claim { task });
    assert_eq!(due_times(&script).0, Some(150));
}

#[test]
fn an_owner_from_the_start_has_claimed_it() {
    let deadline = claimed(after(60, RELEASE));
    let script = Script::new().drawn(graph()).assigning(move |_| {
        let mut assignment = offers(&["crew"]);
        assignment.offers[0].owner = Some("bob".into());
        assignment.offers[0].deadlines = vec![deadline.clone()];
        assignment
    });
    assert_eq!(due_times(&script.started()), (Some(61), vec![Some(61)]));
}

#[test]
fn working_time_is_counted_by_the_calendar_of_the_claim() {
    let calendars = Rc::new(RefCell::new(Some("09:00")));
    let known = calendars.clone();
    let directory = move |lookup: &Lookup| {
        let office = known.borrow().map(|from| {
            let hours = format!(r#"[{{"from":"{from}","until":"17:00"}}]"#);
            let office = format!(r#"{{"timeZone":"UTC","hours":{{"thursday":{hours}}}}}"#);
            ("office".to_owned(), json(&office))
        });
        Findings {
            calendars: office
                .filter(|_| !lookup.calendars.is_empty())
                .into_iter()
                .collect(),
            ..TestDirectory::new().found(lookup)
        }
    };
    let working = Deadline {
        when: Due::Working {
            seconds: 3600,
            calendar: "office".into(),
        },
        ..claimed(after(0, RELEASE))
    };
    let mut script = offered(&[working]).knowing(directory).started();
    let task = script.task(0);
    *calendars.borrow_mut() = Some("11:00");
    // The clock begins on a Thursday.
    at(&mut script, 3600, "bob", &Command::Claim { task });
    assert_eq!(due_times(&script).0, Some(12 * 3600));
    at(&mut script, 3700, "bob", &Command::Release { task });
    *calendars.borrow_mut() = None;
    let refused = rejection(script.run("bob", &Command::Claim { task }));
    assert_eq!(refused.code(), "refused_now");
    let text = refused.to_string();
    assert!(text.contains("no calendar \"office\""), "{text}");
    // To decide it, nobody needs the calendar.
    script.run("bob", &decide(task, "GO")).expect("a decision");
}

#[test]
fn only_a_deadline_of_a_task_counts_from_its_claim() {
    let counted = claimed(after(60, RELEASE));
    let mut script = Script::new().drawn(graph()).assigning(move |_| {
        let mut assignment = offers(&["crew"]);
        assignment.deadlines = vec![counted.clone()];
        assignment
    });
    assert_eq!(
        fault(script.run("ann", &start())),
        "enter: a deadline of Review as a whole counts from a claim; only a deadline of a task can"
    );
    let fixed = Deadline {
        when: Due::At(second(100)),
        since: Since::Claimed,
        ..after(0, RELEASE)
    };
    assert_eq!(
        fault(offered(&[fixed]).run("ann", &start())),
        "enter: a deadline of Review is at a fixed time and counts from a claim; it can be only one of them"
    );
}
