//! Suspend, resume and restart.

use jiff::Timestamp;
use uuid::Uuid;

use super::directory::everybody;
use super::script::{Script, decide, rejection, start};
use crate::actor::Actor;
use crate::answer::OverdueAction;
use crate::command::{Command, Lineage};
use crate::event::Event;
use crate::ids::{DeadlineId, InstanceId};
use crate::instance::{OpenDeadline, Status};
use crate::json::Json;
use crate::rejection::Rejection;

fn suspend(script: &Script) -> Command {
    Command::Suspend {
        instance: script.instance().id,
        reason: "an audit".into(),
    }
}

fn resume(script: &Script) -> Command {
    Command::Resume {
        instance: script.instance().id,
    }
}

#[test]
fn nothing_happens_to_a_suspended_instance() {
    let mut script = Script::new().knowing(everybody).claimed();
    let (task, instance) = (script.task(0), script.instance().id);
    let (to, reason) = ("dee".to_owned(), "so".to_owned());
    let command = suspend(&script);
    script.run("amy", &command).expect("a suspension");
    let before = script.instance().clone();
    assert!(matches!(&before.status, Status::Suspended { by, .. } if by == "amy"));
    for command in [
        Command::Claim { task },
        Command::Release { task },
        decide(task, "GO"),
        Command::Delegate {
            task,
            to: to.clone(),
            reason: reason.clone(),
        },
        Command::Resolve { task },
        Command::Reassign {
            task,
            to,
            reason: reason.clone(),
        },
        Command::Reset { task, reason },
        suspend(&script),
        Command::Signal {
            instance,
            trigger: "GO".into(),
            id: "1".into(),
            input: Json::empty(),
            correlation: None,
            state: None,
        },
        Command::Deadline {
            instance,
            deadline: DeadlineId(Uuid::from_u128(1)),
            due_at: Timestamp::UNIX_EPOCH,
        },
    ] {
        let refused = rejection(script.run("bob", &command));
        assert!(
            matches!(&refused, Rejection::Suspended { by, .. } if by == "amy"),
            "{command:?}: {refused:?}"
        );
    }
    assert_eq!(script.instance(), &before);
    let look = script.run_as(&Actor::host(), &Command::Reassessment { instance });
    assert_eq!(look.expect("no harm").events, []);
    let command = resume(&script);
    script.run("amy", &command).expect("it goes on");
    let again = rejection(script.run("amy", &command));
    assert_eq!(again.code(), "not_suspended");
    script.go().expect("a decision");
    for command in [suspend(&script), command] {
        let refused = rejection(script.run("amy", &command));
        assert!(matches!(refused, Rejection::Ended { .. }));
    }
}

#[test]
fn deadlines_rest_while_an_instance_is_suspended() {
    let mut script = Script::new().claimed();
    let due_at = Timestamp::from_second(1_000).expect("a time");
    let deadline = OpenDeadline {
        id: DeadlineId(Uuid::from_u128(9)),
        due_at: Some(due_at),
        since_claim: None,
        repeat: None,
        action: OverdueAction::Remind,
        count: 0,
    };
    let instance = script.instance.as_mut().expect("an instance");
    instance.active[0].deadlines = vec![deadline];
    instance.active[0].due_at = Some(due_at);
    let commands = [suspend(&script), resume(&script)];
    for command in &commands {
        script.run("amy", command).expect("an operator");
    }
    // A second passes with each command.
    let state_instance = &script.instance().active[0];
    let later = Timestamp::from_second(1_001).expect("a time");
    assert_eq!(state_instance.deadlines[0].due_at, Some(later));
    assert_eq!(state_instance.due_at, Some(later));
}

#[test]
fn a_suspended_instance_is_cancelled() {
    let mut script = Script::new().claimed();
    let command = suspend(&script);
    script.run("amy", &command).expect("a suspension");
    let cancel = Command::Cancel {
        instance: script.instance().id,
        reason: "no use".into(),
    };
    script.run("amy", &cancel).expect("a cancel");
    assert!(matches!(script.instance().status, Status::Cancelled { .. }));
}

#[test]
fn a_restart_keeps_the_requesters_of_its_predecessor() {
    let predecessor = InstanceId(Uuid::from_u128(77));
    let Command::Start {
        definition,
        entity,
        data,
        ..
    } = start()
    else {
        unreachable!("it is a start")
    };
    let lineage = Lineage {
        id: None,
        initiator: None,
        predecessor: Some(predecessor),
        parent: None,
        requesters: vec!["bob".into(), "ann".into()],
    };
    let restart = Command::Start {
        definition,
        entity,
        data,
        lineage: Some(Box::new(lineage)),
    };
    assert_eq!(restart.action(), "restart");
    let mut script = Script::new();
    let events = script.run("ann", &restart).expect("a restart").events;
    assert!(matches!(&events[0], Event::FlowStarted { .. }));
    assert_eq!(events[1], Event::FlowRestarted { predecessor });
    let instance = script.instance();
    assert_eq!(instance.predecessor, Some(predecessor));
    assert_eq!(instance.requesters, ["ann", "bob"]);
    let task = script.task(0);
    let refused = rejection(script.run("bob", &Command::Claim { task }));
    assert!(matches!(refused, Rejection::Forbidden(reason) if reason.code == "own_request"));
}
