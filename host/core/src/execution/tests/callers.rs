//! Refused commands, and their messages.

use super::script::{Script, decide, enter, forbidden, json, offers, person, rejection, start};
use crate::actor::Actor;
use crate::answer::{Offer, Plan, Principal, Reason, Refusal, Violation};
use crate::command::Command;
use crate::event::Event;
use crate::instance::Status;
use crate::json::Json;
use crate::rejection::{Rejection, Winner};

#[test]
fn the_verdict_of_flow_logic_is_the_callers_answer() {
    let reason = Reason {
        code: "too_late".into(),
        message: "Come tomorrow.".into(),
    };
    let because = reason.clone();
    let mut denied = Script::new()
        .claimed()
        .guarding(move |_| Err(Refusal::Denied(because.clone())));
    assert_eq!(rejection(denied.go()), Rejection::Forbidden(reason.clone()));

    let missing = Violation {
        expected: None,
        field: "/comment".into(),
        code: "required".into(),
        message: "Say why.".into(),
    };
    let violations = vec![missing.clone()];
    let mut invalid = Script::new()
        .claimed()
        .guarding(move |_| Err(Refusal::Invalid(vec![missing.clone()])));
    assert_eq!(rejection(invalid.go()), Rejection::Invalid(violations));

    let because = reason.clone();
    let mut refused = Script::new()
        .claimed()
        .planning(move |_, _| Err(Refusal::NotNow(because.clone())));
    assert_eq!(rejection(refused.go()), Rejection::RefusedNow(reason));
}

#[test]
fn a_start_is_judged_by_group_schema_and_flow_logic() {
    let outsider = Actor {
        groups: vec![],
        ..person("eve")
    };
    assert_eq!(
        forbidden(Script::new().run_as(&outsider, &start())),
        "not_an_initiator"
    );

    let Command::Start {
        lineage: None,
        definition,
        entity,
        ..
    } = start()
    else {
        unreachable!("it is a start")
    };
    let untitled = Command::Start {
        lineage: None,
        definition,
        entity,
        data: json(r#"{"title":7}"#),
    };
    let Rejection::Invalid(violations) = rejection(Script::new().run("ann", &untitled)) else {
        panic!("invalid")
    };
    assert_eq!(violations[0].field, "/data/title");

    let mut closed = Script::new().starting(|by| {
        assert_eq!(by.id, "ann");
        Err(Refusal::Denied(Reason {
            code: "closed".into(),
            message: "Closed.".into(),
        }))
    });
    assert_eq!(forbidden(closed.run("ann", &start())), "closed");
}

#[test]
fn no_requester_decides_on_any_path() {
    // Not by claiming, though a candidate by group and by name.
    let named = |_: &str| {
        let mut assignment = offers(&["crew"]);
        assignment.offers[0]
            .candidates
            .push(Principal::User("ann".into()));
        assignment
    };
    let mut script = Script::new().assigning(named).started();
    let task = script.task(0);
    assert_eq!(
        forbidden(script.run("ann", &Command::Claim { task })),
        "own_request"
    );
    assert_eq!(
        forbidden(script.run("ann", &decide(task, "GO"))),
        "own_request"
    );
    // Nor as the owner, however the task became theirs.
    let mut script = Script::new().claimed();
    let instance = script.instance.as_mut().expect("an instance");
    instance.requesters.push("bob".into());
    assert_eq!(forbidden(script.go()), "own_request");
    // In a state of own work the initiator does, and nobody else.
    let mine = |state: &str| {
        let mut assignment = offers(&["crew"]);
        if state == "Rework" {
            assignment.offers[0].candidates = vec![Principal::User("ann".into())];
        }
        assignment
    };
    let plan = |state: &str, _: &_| {
        Ok(enter(if state == "Review" {
            &["Rework"]
        } else {
            &["Done"]
        }))
    };
    let mut script = Script::new().assigning(mine).planning(plan).claimed();
    script.go().expect("to the rework");
    let task = script.task(0);
    assert_eq!(
        forbidden(script.run("bob", &Command::Claim { task })),
        "not_a_candidate"
    );
    script
        .run("ann", &Command::Claim { task })
        .expect("her own work");
    script
        .run("ann", &decide(task, "GO"))
        .expect("her own work");
    assert!(matches!(script.instance().status, Status::Completed { .. }));
}

#[test]
fn a_person_decides_once_in_a_state_instance() {
    let goes_on = |_: &str, _: &_| Ok(Plan::default());
    // As a candidate of the second task.
    let mut script = Script::new()
        .assigning(|_| offers(&["crew", "crew"]))
        .planning(goes_on)
        .claimed();
    script.go().expect("the first decision");
    let second = script.task(1);
    assert_eq!(
        forbidden(script.run("bob", &Command::Claim { task: second })),
        "already_decided"
    );
    // As the owner of both from the start.
    let both = |_: &str| {
        let mut assignment = offers(&["crew", "crew"]);
        assignment
            .offers
            .iter_mut()
            .for_each(|offer| offer.owner = Some("bob".into()));
        assignment
    };
    let mut script = Script::new().assigning(both).planning(goes_on).started();
    script.go().expect("the first decision");
    let command = decide(script.task(1), "GO");
    assert_eq!(forbidden(script.run("bob", &command)), "already_decided");
}

#[test]
fn the_excluded_do_not_work() {
    let excluding = |_: &str| {
        let mut assignment = offers(&["crew"]);
        assignment.exclude = vec!["bob".into()];
        assignment
    };
    let mut script = Script::new().assigning(excluding).started();
    let task = script.task(0);
    assert_eq!(
        forbidden(script.run("bob", &Command::Claim { task })),
        "excluded"
    );
    script
        .run("cid", &Command::Claim { task })
        .expect("somebody else");
    // Excluded only after claiming.
    let mut script = Script::new().claimed();
    script.instance.as_mut().expect("an instance").active[0]
        .exclude
        .push("bob".into());
    assert_eq!(forbidden(script.go()), "excluded");
}

#[test]
fn a_transition_may_need_a_permission() {
    let mut script = Script::new().claimed();
    let command = decide(script.task(0), "DROP");
    assert_eq!(forbidden(script.run("bob", &command)), "permission_missing");
    let entitled = Actor {
        permissions: vec!["errand:drop".into()],
        ..person("bob")
    };
    script.run_as(&entitled, &command).expect("a permission");
}

#[test]
fn outcomes_are_those_that_decisions_fire() {
    let mut script = Script::new().claimed();
    for outcome in ["NOWHERE", "ON", ""] {
        let command = decide(script.task(0), outcome);
        let Rejection::Invalid(violations) = rejection(script.run("bob", &command)) else {
            panic!("invalid")
        };
        assert_eq!(
            (violations[0].field.as_str(), violations[0].code.as_str()),
            ("/outcome", "unknown_outcome")
        );
        assert_eq!(
            violations[0].message,
            "Review takes one of the outcomes GO, DROP"
        );
    }
}

#[test]
fn only_owners_act_and_losers_learn_who_won() {
    let mut script = Script::new().started();
    let task = script.task(0);
    assert_eq!(
        forbidden(script.run("bob", &Command::Release { task })),
        "not_owner"
    );
    script
        .run("bob", &Command::Claim { task })
        .expect("a claim");
    assert_eq!(
        forbidden(script.run("cid", &Command::Release { task })),
        "not_owner"
    );
    let outsider = Actor {
        groups: vec![],
        ..person("eve")
    };
    assert_eq!(
        forbidden(script.run_as(&outsider, &Command::Claim { task })),
        "not_a_candidate"
    );
    let Rejection::Taken(Winner { action, by, .. }) =
        rejection(script.run("cid", &Command::Claim { task }))
    else {
        panic!("taken")
    };
    assert_eq!((action, by.as_deref()), ("claimed", Some("bob")));
    script.go().expect("a decision");
    let lost = rejection(script.run("cid", &decide(task, "GO")));
    let Rejection::Taken(winner) = lost else {
        panic!("taken")
    };
    assert_eq!(
        (
            winner.action,
            winner.by.as_deref(),
            winner.outcome.as_deref()
        ),
        ("decided", Some("bob"), Some("GO"))
    );
}

#[test]
fn nothing_follows_the_end() {
    let cancel = |script: &Script| Command::Cancel {
        instance: script.instance().id,
        reason: "late".into(),
    };
    let mut completed = Script::new().claimed();
    let task = completed.task(0);
    completed.go().expect("the end");
    let mut cancelled = Script::new().started();
    let open = cancelled.task(0);
    let command = cancel(&cancelled);
    let events = cancelled.run("ann", &command).expect("a cancel").events;
    assert!(
        matches!(
            &events[..],
            [Event::TaskCancelled { .. }, Event::FlowCancelled { .. }]
        ),
        "{events:?}"
    );
    for (script, task) in [(&mut completed, task), (&mut cancelled, open)] {
        let before = script.instance().clone();
        let again = cancel(script);
        assert!(matches!(
            rejection(script.run("ann", &again)),
            Rejection::Ended { .. }
        ));
        for command in [
            Command::Claim { task },
            Command::Release { task },
            decide(task, "GO"),
        ] {
            assert!(
                matches!(rejection(script.run("bob", &command)), Rejection::Taken(_)),
                "{command:?}"
            );
        }
        assert_eq!(script.instance(), &before);
        assert!(before.active.is_empty());
    }
}

#[test]
fn a_terminal_state_ends_every_branch() {
    let plan = |state: &str, instance: &crate::instance::Instance| {
        let first = state == "Review" && instance.past.is_empty();
        Ok(enter(if first {
            &["Review", "Other"]
        } else {
            &["Done"]
        }))
    };
    let mut script = Script::new().planning(plan).claimed();
    script.go().expect("a fork");
    let names: Vec<_> = script
        .instance()
        .active
        .iter()
        .map(|state_instance| state_instance.name.clone())
        .collect();
    assert_eq!(names, ["Review", "Other"]);
    let (review, other) = (script.task(0), script.task(1));
    script
        .run("cid", &Command::Claim { task: review })
        .expect("a claim");
    script
        .run("bob", &Command::Claim { task: other })
        .expect("a claim");
    let events = script
        .run("bob", &decide(other, "GO"))
        .expect("the end")
        .events;
    let kinds: Vec<_> = events.iter().map(Event::kind).collect();
    let expected = [
        "DECISION_RECORDED",
        "STATE_TRANSITIONED",
        "TASK_CANCELLED",
        "STATE_ENTERED",
        "FLOW_COMPLETED",
    ];
    assert_eq!(kinds, expected);
    let instance = script.instance();
    assert!(
        instance.active.is_empty()
            && instance
                .state_instances()
                .flat_map(|state_instance| &state_instance.tasks)
                .all(|task| !task.status.is_open())
    );
    let lost = rejection(script.run("cid", &decide(review, "GO")));
    let Rejection::Taken(winner) = lost else {
        panic!("taken")
    };
    assert_eq!((winner.action, winner.by), ("cancelled", None));
}

#[test]
fn an_offer_with_an_owner_needs_no_claim() {
    let owned = |_: &str| {
        let offer = Offer {
            label: "work".into(),
            owner: Some("bob".into()),
            ..Offer::default()
        };
        crate::answer::Assignment {
            offers: vec![offer],
            needed: 1,
            ..Default::default()
        }
    };
    let mut script = Script::new().assigning(owned).started();
    script.go().expect("his from the start");
    let decision = script.instance().past[0].state.tasks[0]
        .decision()
        .cloned()
        .expect("a decision");
    assert_eq!(
        (decision.actor.as_str(), decision.input),
        ("bob", Json::empty())
    );
}
