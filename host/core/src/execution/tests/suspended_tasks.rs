//! A suspended task: who suspends and resumes it, what is refused meanwhile, and what its deadlines do.

use jiff::Timestamp;

use super::deadlines::{after, due, every, graph, kinds, open, pass, second};
use super::directory::everybody;
use super::script::{Script, decide, offers, person, rejection};
use crate::actor::Actor;
use crate::answer::OverdueAction;
use crate::command::Command;
use crate::event::Event;
use crate::execution::{ExecutionError, Outcome};
use crate::ids::TaskId;
use crate::instance::Task;
use crate::rejection::Rejection;

/// A task of the crew with a deadline of 60 s, of a state with one of 500 s.
fn offered() -> Script {
    let script = Script::new().drawn(graph()).assigning(|_| {
        let mut assignment = offers(&["crew"]);
        assignment.offers[0].deadlines = vec![every(60, after(60, OverdueAction::Remind))];
        assignment.deadlines = vec![after(500, OverdueAction::Remind)];
        assignment
    });
    script.knowing(everybody).started()
}

fn the_task(script: &Script) -> &Task {
    &script.instance().active[0].tasks[0]
}

fn suspend(task: TaskId, until: Option<i64>) -> Command {
    Command::SuspendTask {
        task,
        reason: Some("the file is missing".into()),
        until: until.map(second),
    }
}

fn operator() -> Actor {
    Actor {
        permissions: vec!["task:act".into(), "task:assign".into()],
        ..person("amy")
    }
}

fn at(
    script: &mut Script,
    second: i64,
    actor: &Actor,
    command: &Command,
) -> Result<Outcome, ExecutionError> {
    script.at(second);
    script.run_as(actor, command)
}

#[test]
fn deadlines_of_a_resumed_task_keep_their_remaining_time() {
    let mut script = offered();
    let (task, bob) = (script.task(0), person("bob"));
    at(&mut script, 10, &bob, &Command::Claim { task }).expect("a claim");
    let outcome = at(&mut script, 21, &bob, &suspend(task, None)).expect("a suspension");
    assert_eq!(kinds(&outcome.events), ["TASK_SUSPENDED"]);
    let suspended = the_task(&script).suspended.clone().expect("a suspension");
    assert_eq!((&*suspended.by, suspended.at), ("bob", second(21)));
    assert_eq!(the_task(&script).due_at, None);
    let [_, (.., of_task)] = &open(script.instance())[..] else {
        panic!("two deadlines")
    };
    let old = of_task.clone();
    script.at(61);
    let outcome = due(&mut script, old.id, old.due_at).expect("nothing");
    assert_eq!(outcome.events, []);
    // The state goes on.
    let events = pass(&mut script, 0, 501);
    assert_eq!(kinds(&events), ["DEADLINE_PASSED", "TASK_REMINDED"]);
    let outcome = at(&mut script, 1021, &bob, &Command::ResumeTask { task }).expect("it goes on");
    assert_eq!(kinds(&outcome.events), ["TASK_RESUMED"]);
    assert_eq!(the_task(&script).due_at, Some(second(1061)));
    let outcome = due(&mut script, old.id, old.due_at).expect("nothing");
    assert_eq!(outcome.events, []);
    pass(&mut script, 0, 1061);
    assert_eq!(the_task(&script).due_at, Some(second(1121)));
}

#[test]
fn a_suspended_task_refuses_all_commands_of_its_owner() {
    let mut script = offered();
    let (task, bob) = (script.task(0), person("bob"));
    let by_operator = at(&mut script, 10, &operator(), &suspend(task, None));
    by_operator.expect("of nobody");
    for command in [Command::Claim { task }, decide(task, "GO")] {
        let refused = rejection(script.run_as(&bob, &command));
        let Rejection::TaskSuspended { suspension, .. } = &refused else {
            panic!("{refused:?}")
        };
        assert_eq!((&*suspension.by, suspension.at), ("amy", second(10)));
        assert!(refused.to_string().contains("amy"), "{refused}");
    }
    let resume = Command::ResumeTask { task };
    script.run_as(&operator(), &resume).expect("it goes on");
    script.run_as(&bob, &Command::Claim { task }).expect("his");
    script.run_as(&bob, &suspend(task, None)).expect("paused");
    let delegate = Command::Delegate {
        task,
        to: "cid".into(),
        reason: "busy".into(),
    };
    for command in [
        decide(task, "GO"),
        Command::Release { task },
        Command::Resolve { task },
        delegate,
        suspend(task, None),
    ] {
        let refused = rejection(script.run_as(&bob, &command));
        assert_eq!(refused.code(), "task_suspended", "{command:?}");
    }
    script.run_as(&bob, &resume).expect("it goes on");
    let again = rejection(script.run_as(&bob, &resume));
    assert_eq!(again.code(), "not_suspended");
    script
        .run_as(&bob, &decide(task, "GO"))
        .expect("a decision");
}

#[test]
fn owners_and_operators_suspend_and_nobody_else() {
    let mut script = offered();
    let (task, bob) = (script.task(0), person("bob"));
    for command in [suspend(task, None), Command::ResumeTask { task }] {
        let refused = rejection(script.run_as(&bob, &command));
        assert!(matches!(refused, Rejection::NotOwner { .. }), "{refused:?}");
    }
    script.run_as(&bob, &Command::Claim { task }).expect("his");
    let refused = rejection(script.run_as(&person("cid"), &suspend(task, None)));
    assert!(matches!(refused, Rejection::NotOwner { .. }), "{refused:?}");
    script.run_as(&bob, &suspend(task, None)).expect("paused");
    // An operator who takes it from its owner ends the suspension.
    for command in [
        Command::Reset {
            task,
            reason: "bob is ill".into(),
        },
        Command::Reassign {
            task,
            to: "dan".into(),
            reason: "bob is ill".into(),
        },
    ] {
        let mut taken = offered();
        taken.instance = script.instance.clone();
        taken.at(script.now() + 2);
        taken.run_as(&operator(), &command).expect("an operator");
        assert_eq!(the_task(&taken).suspended, None);
        assert!(the_task(&taken).due_at.is_some(), "its deadline goes on");
    }
}

#[test]
fn the_host_resumes_it_at_the_set_time() {
    let mut script = offered();
    let (task, bob) = (script.task(0), person("bob"));
    script.run_as(&bob, &Command::Claim { task }).expect("his");
    for (until, code) in [(21, "not_in_future"), (32_000_000, "too_late")] {
        let refused = rejection(at(&mut script, 21, &bob, &suspend(task, Some(until))));
        let Rejection::Invalid(violations) = &refused else {
            panic!("{refused:?}")
        };
        assert_eq!(
            (&*violations[0].field, &*violations[0].code),
            ("/until", code)
        );
    }
    at(&mut script, 31, &bob, &suspend(task, Some(131))).expect("paused");
    let (id, until) = the_task(&script).resumption().expect("a time");
    assert_eq!(until, second(131));
    let early = due(&mut script, id, second(130)).expect("nothing");
    assert_eq!(early.events, []);
    script.at(140);
    let outcome = due(&mut script, id, until).expect("resumed");
    let state = outcome.instance.active[0].id;
    assert_eq!(outcome.events, [Event::TaskResumed { task, state }]);
    // Late by nine seconds, which count as suspended.
    assert_eq!(
        the_task(&script).due_at.map(Timestamp::as_second),
        Some(61 + 109)
    );
    let again = due(&mut script, id, until).expect("nothing");
    assert_eq!(again.events, []);
}

#[test]
fn resuming_the_instance_does_not_resume_its_suspended_task() {
    let mut script = offered();
    let (task, bob, amy) = (script.task(0), person("bob"), operator());
    let instance = script.instance().id;
    at(&mut script, 10, &bob, &Command::Claim { task }).expect("his");
    at(&mut script, 21, &bob, &suspend(task, None)).expect("paused");
    let whole = Command::Suspend {
        instance,
        reason: "a strike".into(),
    };
    at(&mut script, 31, &amy, &whole).expect("all of it");
    let resume = Command::ResumeTask { task };
    let refused = rejection(at(&mut script, 41, &bob, &resume));
    assert!(matches!(refused, Rejection::Suspended { .. }));
    at(&mut script, 131, &amy, &Command::Resume { instance }).expect("it goes on");
    assert_eq!(the_task(&script).due_at, None);
    at(&mut script, 221, &bob, &resume).expect("it goes on");
    assert_eq!(the_task(&script).due_at, Some(second(261)));
    assert_eq!(script.instance().active[0].due_at, Some(second(601)));
}
