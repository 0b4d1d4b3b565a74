//! Deadlines: when they are due, what they do, and when they do nothing.

use jiff::Timestamp;

use super::script::{Script, decide, enter, fault, json, offers, rejection, start};
use crate::actor::Actor;
use crate::answer::{Deadline, Due, OverdueAction, Plan, Reason, Refusal, Since};
use crate::check::samples;
use crate::command::Command;
use crate::event::Event;
use crate::execution::{ExecutionError, Outcome};
use crate::graph::{FiredBy, Graph, NameUse, StateKind};
use crate::ids::{DeadlineId, StateId, TaskId};
use crate::instance::{Candidate, Instance, OpenDeadline, Status};
use crate::lookup::Findings;
use crate::question::{Occurrence, Source};
use crate::rejection::Rejection;

/// `Review` goes on GO and, by deadlines, on LATE.
pub(super) fn graph() -> Graph {
    let state = |name: &str, kind| samples::state(name, name, kind);
    let way = |source: &str, trigger: &str, by| {
        samples::way_by(source, trigger, by, &["Review", "Other", "Done"])
    };
    Graph {
        initial: "Review".into(),
        initiators: vec!["crew".into()],
        states: vec![
            state("Review", StateKind::Task),
            state("Other", StateKind::Task),
            state("Done", StateKind::Terminal("DONE".into())),
        ],
        transitions: vec![
            way("Review", "GO", FiredBy::Decision),
            way("Review", "LATE", FiredBy::Deadline),
            way("Other", "GO", FiredBy::Decision),
        ],
        uses: vec![NameUse::Calendar("office".into())],
        ..Graph::default()
    }
}

pub(super) fn after(seconds: u32, action: OverdueAction) -> Deadline {
    Deadline {
        when: Due::After(seconds),
        since: Since::Created,
        repeat: None,
        action,
    }
}

pub(super) fn every(pause: u32, deadline: Deadline) -> Deadline {
    Deadline {
        repeat: Some(pause),
        ..deadline
    }
}

/// Counted from each claim.
pub(super) fn claimed(deadline: Deadline) -> Deadline {
    Deadline {
        since: Since::Claimed,
        ..deadline
    }
}

pub(super) fn late() -> OverdueAction {
    OverdueAction::Fire("LATE".into())
}

/// All work is offered to the crew, under these deadlines of the state, and of each task.
fn watched(of_state_instance: &[Deadline], of_task: &[Deadline], tasks: usize) -> Script {
    let (of_state_instance, of_task) = (of_state_instance.to_vec(), of_task.to_vec());
    Script::new().drawn(graph()).assigning(move |_| {
        let mut assignment = offers(&vec!["crew"; tasks]);
        assignment.deadlines.clone_from(&of_state_instance);
        for offer in &mut assignment.offers {
            offer.deadlines.clone_from(&of_task);
        }
        assignment
    })
}

/// All that is open, the state's before its tasks'.
pub(super) fn open(instance: &Instance) -> Vec<(StateId, Option<TaskId>, OpenDeadline)> {
    let mut all = Vec::new();
    for state_instance in &instance.active {
        let of_state_instance = state_instance.deadlines.iter();
        all.extend(of_state_instance.map(|deadline| (state_instance.id, None, deadline.clone())));
        for task in &state_instance.tasks {
            let of_task = task.deadlines.iter();
            all.extend(
                of_task.map(|deadline| (state_instance.id, Some(task.id), deadline.clone())),
            );
        }
    }
    all
}

pub(super) fn due(
    script: &mut Script,
    id: DeadlineId,
    due_at: impl Into<Option<Timestamp>>,
) -> Result<Outcome, ExecutionError> {
    let due_at = due_at.into().expect("it counts");
    let command = Command::Deadline {
        instance: script.instance().id,
        deadline: id,
        due_at,
    };
    script.run_as(&Actor::host(), &command)
}

/// At this second, the open deadline of this number is found to have passed.
#[track_caller]
pub(super) fn pass(script: &mut Script, number: usize, second: i64) -> Vec<Event> {
    let deadline = open(script.instance())[number].2.clone();
    script.at(second);
    let outcome = due(script, deadline.id, deadline.due_at);
    outcome.expect("it passes").events
}

pub(super) fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

pub(super) fn kinds(events: &[Event]) -> Vec<&'static str> {
    events.iter().map(Event::kind).collect()
}

/// Count, seconds late, and the second when it passes again.
#[track_caller]
pub(super) fn passed(events: &[Event]) -> (u32, u64, Option<i64>) {
    match &events[0] {
        Event::DeadlinePassed {
            count, late, next, ..
        } => (*count, *late, next.map(Timestamp::as_second)),
        other => panic!("{other:?}"),
    }
}

pub(super) fn crew() -> Candidate {
    Candidate::Group("crew".into())
}

pub(super) fn user(id: &str) -> Candidate {
    Candidate::User(id.into())
}

#[test]
fn whoever_has_the_work_is_reminded() {
    let of_task = [after(60, OverdueAction::Remind)];
    let owned = |script: &mut Script| {
        script.claim(script.task(0));
    };
    let recipients = |script: &mut Script| {
        let events = pass(script, 0, 61);
        assert_eq!(passed(&events), (1, 0, None));
        let [
            _,
            Event::TaskReminded {
                recipients,
                due_at,
                count: 1,
                ..
            },
        ] = &events[..]
        else {
            panic!("{events:?}")
        };
        assert_eq!(*due_at, second(61));
        assert_eq!(open(script.instance()), []);
        recipients.clone()
    };
    let mut script = watched(&[], &of_task, 1).started();
    assert_eq!(recipients(&mut script), [crew()]);
    let mut script = watched(&[], &of_task, 1).started();
    owned(&mut script);
    assert_eq!(recipients(&mut script), [user("bob")]);
    // Of the state as a whole: everybody who has some of it, and each of them once.
    let mut script = watched(&of_task, &[], 3).started();
    owned(&mut script);
    assert_eq!(recipients(&mut script), [user("bob"), crew()]);
}

#[test]
fn pauses_missed_in_an_outage_are_not_made_up_for() {
    let repeating = [every(100, after(60, OverdueAction::Remind))];
    let mut script = watched(&[], &repeating, 1).started();
    for (at, expected) in [
        (61, (1, 0, Some(161))),
        (411, (2, 250, Some(461))),
        (461, (3, 0, Some(561))),
        (661, (4, 100, Some(761))),
    ] {
        let events = pass(&mut script, 0, at);
        assert_eq!(passed(&events), expected);
        assert_eq!(kinds(&events), ["DEADLINE_PASSED", "TASK_REMINDED"]);
        let task = &script.instance().active[0].tasks[0];
        assert_eq!(task.due_at.map(Timestamp::as_second), expected.2);
    }
}

#[test]
fn late_work_goes_back_to_the_queue() {
    let of_task = [after(60, OverdueAction::Release)];
    let mut script = watched(&of_task, &[], 2).started();
    let task = script.task(1);
    script.claim(task);
    let events = pass(&mut script, 0, 61);
    let [
        _,
        Event::TaskReleased {
            task: released,
            owner,
            reason,
            ..
        },
    ] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!(
        (*released, owner.as_str(), reason.as_deref()),
        (task, "bob", Some("overdue"))
    );
    script.claim(task);

    let mut script = watched(&[], &of_task, 1).started();
    assert_eq!(kinds(&pass(&mut script, 0, 61)), ["DEADLINE_PASSED"]);
}

#[test]
fn a_trigger_moves_the_state_on() {
    let plan = |occurrence: &Occurrence, _: &str, _: &Instance| {
        let expected = Source::Deadline {
            task: None,
            due_at: Timestamp::from_second(61).expect("a time"),
            count: 1,
        };
        assert_eq!(occurrence.source, expected);
        Ok(enter(&["Done"]))
    };
    let mut script = watched(&[after(60, late())], &[after(90, late())], 1)
        .planning_for(plan)
        .started();
    let of_task = open(script.instance())[1].2.clone();
    let events = pass(&mut script, 0, 61);
    let expected = [
        "DEADLINE_PASSED",
        "TASK_CANCELLED",
        "STATE_TRANSITIONED",
        "STATE_ENTERED",
        "FLOW_COMPLETED",
    ];
    assert_eq!(kinds(&events), expected);
    let ended = script.instance().clone();
    assert!(matches!(ended.status, Status::Completed { .. }));
    // The task's deadline ended with it.
    let outcome = due(&mut script, of_task.id, of_task.due_at).expect("nothing");
    assert_eq!((outcome.events, outcome.instance), (vec![], ended));
}

#[test]
fn a_trigger_that_flow_logic_refuses_is_on_record() {
    let refuse = |_: &str, _: &Instance| {
        Err(Refusal::NotNow(Reason {
            code: "not_yet".into(),
            message: "There is time.".into(),
        }))
    };
    let mut script = watched(&[every(60, after(60, late()))], &[], 1)
        .planning(refuse)
        .started();
    for (count, at) in [(1, 61), (2, 121)] {
        let events = pass(&mut script, 0, at);
        assert_eq!(passed(&events).0, count);
        let [_, Event::TriggerRefused { trigger, code, .. }] = &events[..] else {
            panic!("{events:?}")
        };
        assert_eq!((trigger.as_str(), code.as_str()), ("LATE", "not_yet"));
    }
    assert_eq!(script.instance().active[0].name, "Review");
}

#[test]
fn a_trigger_that_the_version_no_longer_declares_is_refused() {
    let mut script = watched(&[after(60, late())], &[], 1).started();
    let mut later = graph();
    later.transitions.retain(|way| way.trigger != "LATE");
    script = script.drawn(later);
    let events = pass(&mut script, 0, 61);
    let [_, Event::TriggerRefused { code, .. }] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(code, "trigger_not_declared");
}

#[test]
fn a_deadline_cancels_the_instance_with_all_its_work() {
    let cancel = |reason: &str| after(60, OverdueAction::Cancel(reason.into()));
    let of_task = [cancel("no receipts")];
    let mut script = watched(&[], &of_task, 2).started();
    script.claim(script.task(1));
    let (state, task, deadline) = open(script.instance())[0].clone();
    let events = pass(&mut script, 0, 61);
    let expected = [
        "DEADLINE_PASSED",
        "TASK_CANCELLED",
        "TASK_CANCELLED",
        "FLOW_CANCELLED",
    ];
    assert_eq!(kinds(&events), expected);
    assert_eq!(events[0].task(), task);
    let expected = Event::FlowCancelled {
        reason: "no receipts".into(),
        deadline: Some(deadline.id),
        state: Some(state),
    };
    assert_eq!(events[3], expected);
    let Status::Cancelled { reason, by, .. } = &script.instance().status else {
        panic!("{:?}", script.instance().status)
    };
    assert_eq!((&**reason, &**by), ("no receipts", crate::actor::HOST));
    for (reason, message) in [
        (" ".to_owned(), "cancels for no reason"),
        ("x".repeat(2_001), "has more than 2000 characters"),
    ] {
        let refused = fault(watched(&[cancel(&reason)], &[], 1).run("ann", &start()));
        assert!(refused.ends_with(message), "{refused}");
    }
}

#[test]
fn deadlines_end_with_what_they_watch_over() {
    let remind = || [after(60, OverdueAction::Remind)];
    let plan = |_: &str, instance: &Instance| {
        let votes = instance.active[0].tasks.iter();
        let votes = votes.filter(|task| !task.status.is_open()).count();
        Ok(if votes == 0 {
            Plan::default()
        } else {
            enter(&["Other"])
        })
    };
    let mut script = watched(&remind(), &remind(), 2).planning(plan).claimed();
    let all = open(script.instance());
    let owners: Vec<_> = all.iter().map(|(_, task, _)| *task).collect();
    let (first, second) = (script.task(0), script.task(1));
    assert_eq!(owners, [None, Some(first), Some(second)]);
    script.go().expect("a vote");
    assert_eq!(open(script.instance()).len(), 2);
    script
        .run("cid", &Command::Claim { task: second })
        .expect("a claim");
    script.run("cid", &decide(second, "GO")).expect("a vote");
    assert!(
        open(script.instance())
            .iter()
            .all(|(state, ..)| *state != all[0].0)
    );
    let stands = script.instance().clone();
    for (_, _, deadline) in all {
        let outcome = due(&mut script, deadline.id, deadline.due_at).expect("nothing");
        assert_eq!((outcome.events, &outcome.instance), (vec![], &stands));
    }
}

#[test]
fn working_time_counts_by_the_tenants_calendar() {
    let deadline = Deadline {
        when: Due::Working {
            seconds: 10 * 3600,
            calendar: "office".into(),
        },
        since: Since::Created,
        repeat: None,
        action: OverdueAction::Remind,
    };
    // The clock begins on a Thursday.
    let hours = r#"[{"from":"09:00","until":"17:00"}]"#;
    let office = format!(r#"{{"timeZone":"UTC","hours":{{"thursday":{hours},"monday":{hours}}}}}"#);
    let calendars = move |lookup: &crate::lookup::Lookup| Findings {
        calendars: lookup
            .calendars
            .iter()
            .map(|name| (name.clone(), json(&office)))
            .collect(),
        ..super::directory::TestDirectory::new().found(lookup)
    };
    let monday_at_eleven = second(4 * 86_400 + 11 * 3600);
    for (of_state_instance, of_task) in [
        (vec![deadline.clone()], vec![]),
        (vec![], vec![deadline.clone()]),
    ] {
        let script = watched(&of_state_instance, &of_task, 1)
            .knowing(calendars.clone())
            .started();
        assert_eq!(open(script.instance())[0].2.due_at, Some(monday_at_eleven));
        let mut script = watched(&of_state_instance, &of_task, 1);
        assert_eq!(
            fault(script.run("ann", &start())),
            "enter: there is no calendar \"office\"; an operator adds it by `PUT /v1/calendars/office` or `wrkflw calendar set office`"
        );
    }
    let mut never = deadline;
    never.when = Due::Working {
        seconds: u32::MAX,
        calendar: "office".into(),
    };
    let mut script = watched(&[never], &[], 1).knowing(calendars);
    assert_eq!(
        fault(script.run("ann", &start())),
        "enter: the calendar \"office\" has fewer than 4294967295 working seconds in twenty years"
    );
}

/// Of all calendars, publication can look up only those that the graph lists.
#[test]
fn a_calendar_that_the_graph_does_not_list_counts_no_deadline() {
    let (days, calendar) = (1, "home".to_owned());
    let deadline = [Deadline {
        when: Due::WorkingDays { days, calendar },
        ..after(0, OverdueAction::Remind)
    }];
    for mut script in [watched(&deadline, &[], 1), watched(&[], &deadline, 1)] {
        assert_eq!(
            fault(script.run("ann", &start())),
            "enter: a deadline of Review counts by the calendar \"home\", which the graph does not list among the names that it uses"
        );
    }
}

#[test]
fn deadlines_rest_while_the_instance_is_suspended() {
    let remind = || [after(60, OverdueAction::Remind)];
    let mut script = watched(&remind(), &remind(), 1).started();
    let [(.., before), _] = &open(script.instance())[..] else {
        panic!("two deadlines")
    };
    let (before, instance) = (before.clone(), script.instance().id);
    script.at(11);
    let suspend = Command::Suspend {
        instance,
        reason: "wait".into(),
    };
    script.run("amy", &suspend).expect("suspended");
    script.at(61);
    let rests = due(&mut script, before.id, before.due_at);
    assert!(matches!(rejection(rests), Rejection::Suspended { .. }));
    script.at(111);
    script
        .run("amy", &Command::Resume { instance })
        .expect("resumed");
    let state_instance = &script.instance().active[0];
    for due_at in [state_instance.due_at, state_instance.tasks[0].due_at] {
        assert_eq!(due_at, Some(second(161)));
    }
    // A command with the old time does nothing.
    let outcome = due(&mut script, before.id, before.due_at).expect("nothing");
    assert_eq!(outcome.events, []);
    assert_eq!(passed(&pass(&mut script, 0, 161)), (1, 0, None));
}

#[test]
fn the_next_one_open_is_what_is_shown() {
    let both = [
        after(120, OverdueAction::Remind),
        after(60, OverdueAction::Remind),
    ];
    let mut script = watched(&both, &both, 1).started();
    let shown = |script: &Script| {
        let state_instance = &script.instance().active[0];
        [state_instance.due_at, state_instance.tasks[0].due_at]
            .map(|at| at.map(Timestamp::as_second))
    };
    assert_eq!(shown(&script), [Some(61), Some(61)]);
    pass(&mut script, 1, 61);
    assert_eq!(shown(&script), [Some(121), Some(61)]);
    pass(&mut script, 2, 62);
    assert_eq!(shown(&script), [Some(121), Some(121)]);
    // The missed deadline stays visible.
    pass(&mut script, 0, 121);
    pass(&mut script, 0, 121);
    assert_eq!(shown(&script), [Some(121), Some(121)]);
}
