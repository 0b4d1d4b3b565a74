//! Changes of owner: delegated in chains, resolved, reassigned, reset.

use super::directory::everybody;
use super::script::{Script, decide, enter, forbidden, offers, person, rejection, substitute};
use crate::actor::Actor;
use crate::answer::{Assignment, Plan, Principal, Reason, Refusal};
use crate::command::Command;
use crate::event::Event;
use crate::execution::{ExecutionError, Outcome};
use crate::ids::TaskId;
use crate::instance::{Ownership, TaskStatus};
use crate::rejection::Rejection;

fn delegate(task: TaskId, to: &str) -> Command {
    Command::Delegate {
        task,
        to: to.into(),
        reason: "away".into(),
    }
}

fn reassign(task: TaskId, to: &str) -> Command {
    Command::Reassign {
        task,
        to: to.into(),
        reason: "too slow".into(),
    }
}

fn ownership(script: &Script) -> (String, Ownership) {
    match &script.instance().active[0].tasks[0].status {
        TaskStatus::Claimed {
            owner, ownership, ..
        } => (owner.clone(), ownership.clone()),
        other => panic!("not claimed: {other:?}"),
    }
}

fn owner(script: &Script) -> String {
    ownership(script).0
}

/// The code of a conflict with the current state.
#[track_caller]
fn conflict(result: Result<Outcome, ExecutionError>) -> String {
    match rejection(result) {
        rejection @ Rejection::NotNow { .. } => rejection.code().to_owned(),
        other => panic!("no conflict: {other:?}"),
    }
}

/// The code of what is wrong with `/to`.
#[track_caller]
fn wrong_to(result: Result<Outcome, ExecutionError>) -> String {
    match rejection(result) {
        Rejection::Invalid(violations) if violations[0].field == "/to" => {
            violations[0].code.clone()
        }
        other => panic!("nothing wrong with /to: {other:?}"),
    }
}

#[test]
fn whoever_has_a_task_claims_it_again_without_effect() {
    let mut script = Script::new().knowing(everybody).claimed();
    let task = script.task(0);
    let before = script.instance().clone();
    let again = script.run("bob", &Command::Claim { task });
    let again = again.expect("it is bob's already");
    assert!(again.events.is_empty());
    assert_eq!(again.instance, before);
    let other = script.run("cyd", &Command::Claim { task });
    assert!(matches!(rejection(other), Rejection::Taken(_)));
    // Also as a delegate, who is no candidate.
    script
        .run("bob", &delegate(task, "dee"))
        .expect("a delegation");
    let of_delegate = script.run("dee", &Command::Claim { task });
    assert!(of_delegate.expect("it is dee's").events.is_empty());
}

#[test]
fn a_delegate_decides_on_behalf_of_the_first_owner() {
    let mut script = Script::new().knowing(everybody).claimed();
    let task = script.task(0);
    // The delegates are no candidates.
    script
        .run("bob", &delegate(task, "dee"))
        .expect("a delegation");
    let dee = substitute("dee", &[]);
    script
        .run_as(&dee, &delegate(task, "eli"))
        .expect("another");
    let (owner, held) = ownership(&script);
    let links: Vec<_> = held
        .delegations
        .iter()
        .map(|link| (link.from.as_str(), link.to.as_str(), link.reason.as_str()))
        .collect();
    assert_eq!(owner, "eli");
    assert_eq!(links, [("bob", "dee", "away"), ("dee", "eli", "away")]);
    let Rejection::NotOwner { owned, .. } = rejection(script.run("bob", &decide(task, "GO")))
    else {
        panic!("bob has it no longer");
    };
    let revision = script.instance().revision;
    assert_eq!((owned.task, owned.revision), (task, revision));
    assert_eq!(owned.owner.as_deref(), Some("eli"));
    script
        .run_as(&substitute("eli", &[]), &decide(task, "GO"))
        .expect("a decision");
    let past = &script.instance().past[0].state.tasks[0];
    let decision = past.decision().expect("a decision");
    assert_eq!(
        (decision.actor.as_str(), decision.on_behalf_of.as_deref()),
        ("eli", Some("bob"))
    );
}

#[test]
fn a_delegation_goes_to_somebody_who_may_and_never_in_a_circle() {
    let excluding = |_: &str| {
        let mut assignment = offers(&["crew", "crew"]);
        assignment.exclude = vec!["eve".into()];
        assignment
    };
    let mut script = Script::new()
        .knowing(everybody)
        .assigning(excluding)
        .planning(|_, _| Ok(Plan::default()))
        .started();
    let (task, second) = (script.task(0), script.task(1));
    for (who, task) in [("bob", task), ("cid", second)] {
        script.run(who, &Command::Claim { task }).expect("a claim");
    }
    script.run("cid", &decide(second, "GO")).expect("a vote");
    let to = |script: &mut Script, to: &str| script.run("bob", &delegate(task, to));
    assert_eq!(forbidden(to(&mut script, "ann")), "own_request");
    assert_eq!(forbidden(to(&mut script, "eve")), "excluded");
    assert_eq!(forbidden(to(&mut script, "cid")), "already_decided");
    assert_eq!(wrong_to(to(&mut script, "nobody")), "unknown_person");
    assert_eq!(wrong_to(to(&mut script, "bob")), "delegation_to_self");
    assert_eq!(wrong_to(to(&mut script, "")), "required");
    assert_eq!(
        forbidden(script.run("fay", &delegate(task, "dee"))),
        "not_owner"
    );

    let by = |script: &mut Script, who: &str, to: &str| {
        script.run_as(&substitute(who, &[]), &delegate(task, to))
    };
    to(&mut script, "dee").expect("the first");
    assert_eq!(wrong_to(by(&mut script, "dee", "bob")), "delegation_circle");
    by(&mut script, "dee", "eli").expect("the second");
    by(&mut script, "eli", "fay").expect("the third");
    assert_eq!(
        conflict(by(&mut script, "fay", "gus")),
        "delegations_exhausted"
    );
    assert_eq!(owner(&script), "fay");
}

#[test]
fn a_substitute_delegates_for_the_owner() {
    let mut script = Script::new().knowing(everybody).claimed();
    let task = script.task(0);
    let sue = substitute("sue", &["bob"]);
    assert_eq!(
        wrong_to(script.run_as(&sue, &delegate(task, "bob"))),
        "delegation_circle"
    );
    assert_eq!(
        wrong_to(script.run_as(&sue, &delegate(task, "sue"))),
        "delegation_to_self"
    );
    script
        .run_as(&sue, &delegate(task, "dee"))
        .expect("a delegation");
    assert_eq!(ownership(&script).1.delegations[0].from, "bob");
    // Somebody who claimed for an absent person cannot delegate the task to that person either.
    let mut script = Script::new().knowing(everybody).started();
    script
        .run_as(&sue, &Command::Claim { task })
        .expect("a claim");
    assert_eq!(
        wrong_to(script.run_as(&sue, &delegate(task, "bob"))),
        "delegation_circle"
    );
    // Nor does she hand it on once he is back.
    let back = substitute("sue", &[]);
    assert_eq!(
        forbidden(script.run_as(&back, &delegate(task, "dee"))),
        "no_longer_substitute"
    );
}

#[test]
fn those_acted_for_are_excluded_through_a_delegation_too() {
    let mut script = Script::new().knowing(everybody).claimed();
    let task = script.task(0);
    script
        .run("bob", &delegate(task, "dee"))
        .expect("a delegation");
    // Excluded only after delegating.
    let instance = script.instance.as_mut().expect("an instance");
    instance.active[0].exclude.push("bob".into());
    assert_eq!(
        forbidden(script.run("dee", &decide(task, "GO"))),
        "excluded"
    );
}

#[test]
fn a_delegate_hands_back_link_by_link() {
    let mut script = Script::new().knowing(everybody).claimed();
    let task = script.task(0);
    let resolve = Command::Resolve { task };
    assert_eq!(conflict(script.run("bob", &resolve)), "not_delegated");
    script.run("bob", &delegate(task, "dee")).expect("one");
    script.run("dee", &delegate(task, "eli")).expect("two");
    assert_eq!(forbidden(script.run("dee", &resolve)), "not_owner");
    script.run("eli", &resolve).expect("back to dee");
    assert_eq!(owner(&script), "dee");
    script.run("dee", &resolve).expect("back to bob");
    assert_eq!(
        (owner(&script), ownership(&script).1.is_plain()),
        ("bob".to_owned(), true)
    );
    script.go().expect("his own again");
}

#[test]
fn an_operator_gives_a_task_to_anybody_who_is_not_excluded() {
    let mut script = Script::new().knowing(everybody).started();
    let task = script.task(0);
    assert_eq!(
        forbidden(script.run("amy", &reassign(task, "ann"))),
        "own_request"
    );
    assert_eq!(
        wrong_to(script.run("amy", &reassign(task, "nobody"))),
        "unknown_person"
    );
    script
        .run("amy", &reassign(task, "dee"))
        .expect("a pending one");
    assert!(ownership(&script).1.assigned);
    assert_eq!(
        wrong_to(script.run("amy", &reassign(task, "dee"))),
        "already_owner"
    );
    let events = script
        .run("amy", &reassign(task, "eli"))
        .expect("an owned one")
        .events;
    let [Event::TaskReassigned { previous, to, .. }] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!((previous.as_deref(), to.as_str()), (Some("dee"), "eli"));
    // He is no candidate, and decides.
    script
        .run_as(&substitute("eli", &[]), &decide(task, "GO"))
        .expect("given to him");
}

#[test]
fn an_operator_takes_a_task_from_its_owner() {
    let mut script = Script::new().claimed();
    let task = script.task(0);
    let reset = Command::Reset {
        task,
        reason: "ill".into(),
    };
    let events = script.run("amy", &reset).expect("a reset").events;
    assert!(matches!(&events[..], [Event::TaskReset { owner, .. }] if owner == "bob"));
    assert_eq!(
        script.instance().active[0].tasks[0].status,
        TaskStatus::Pending
    );
    assert_eq!(conflict(script.run("amy", &reset)), "not_claimed");
    script
        .run("bob", &Command::Claim { task })
        .expect("a claim");
    let operator = Actor {
        permissions: vec!["task:assign".into()],
        ..person("amy")
    };
    let events = script.run_as(&operator, &Command::Release { task });
    let events = events.expect("a release").events;
    let [
        Event::TaskReleased {
            owner,
            reason,
            message,
            ..
        },
    ] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!(
        (owner.as_str(), reason.as_deref(), message.as_deref()),
        ("bob", Some("by_operator"), Some("released by an operator"))
    );
}

#[test]
fn own_work_is_given_to_nobody_else() {
    let mine = |state: &str| {
        let mut assignment = offers(&["crew"]);
        if state == "Rework" {
            assignment.offers[0].candidates = vec![Principal::User("ann".into())];
        }
        assignment
    };
    let plan = |_: &str, _: &_| Ok(enter(&["Rework"]));
    let script = Script::new().assigning(mine).planning(plan);
    let mut script = script.knowing(everybody).claimed();
    script.go().expect("to the rework");
    let task = script.task(0);
    assert_eq!(
        forbidden(script.run("amy", &reassign(task, "dee"))),
        "own_work"
    );
    script
        .run("amy", &reassign(task, "ann"))
        .expect("it is hers");
    for command in [delegate(task, "dee"), reassign(task, "dee")] {
        assert_eq!(forbidden(script.run("ann", &command)), "own_work");
    }
}

#[test]
fn a_decision_on_a_task_that_nobody_owns_claims_it() {
    let mut script = Script::new().started();
    let task = script.task(0);
    let events = script.run("bob", &decide(task, "GO")).expect("both").events;
    let [
        Event::TaskClaimed {
            owner,
            on_behalf_of: None,
            ..
        },
        Event::DecisionRecorded { .. },
        ..,
    ] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!(owner, "bob");
    let past = &script.instance().past[0].state.tasks[0];
    assert_eq!(past.decision().expect("a decision").actor, "bob");

    // For an absent candidate, too.
    let mut script = Script::new().started();
    let command = decide(script.task(0), "GO");
    let decided = script.run_as(&substitute("sue", &["bob"]), &command);
    assert!(matches!(
        &decided.expect("both").events[..2],
        [
            Event::TaskClaimed { on_behalf_of: Some(claimed), .. },
            Event::DecisionRecorded { on_behalf_of: Some(decided), .. },
        ] if claimed == "bob" && decided == "bob"
    ));
}

#[test]
fn a_decision_that_claims_obeys_the_rules_of_both() {
    let excluding = |_: &str| {
        let mut assignment = offers(&["crew", "crew"]);
        assignment.exclude = vec!["eve".into()];
        assignment.needed = 2;
        assignment
    };
    let mut script = Script::new()
        .assigning(excluding)
        .planning(|_, _| Ok(Plan::default()))
        .started();
    let (task, second) = (script.task(0), script.task(1));
    let go = |script: &mut Script, who: &str| forbidden(script.run(who, &decide(task, "GO")));
    assert_eq!(go(&mut script, "ann"), "own_request");
    assert_eq!(go(&mut script, "eve"), "excluded");
    let outsider = forbidden(script.run_as(&substitute("oda", &[]), &decide(task, "GO")));
    assert_eq!(outsider, "not_a_candidate");
    assert_eq!(
        forbidden(script.run("bob", &decide(task, "DROP"))),
        "permission_missing"
    );
    script.run("bob", &decide(second, "GO")).expect("a vote");
    assert_eq!(go(&mut script, "bob"), "already_decided");
    // Only the owner may decide on a claimed task.
    script
        .run("cid", &Command::Claim { task })
        .expect("a claim");
    assert_eq!(go(&mut script, "dan"), "not_owner");
}

#[test]
fn a_decision_that_flow_logic_refuses_claims_nothing() {
    let mut script = Script::new().started().guarding(|_| {
        Err(Refusal::Denied(Reason {
            code: "later".into(),
            message: "not now".into(),
        }))
    });
    let command = decide(script.task(0), "GO");
    assert_eq!(forbidden(script.run("bob", &command)), "later");
    assert_eq!(
        script.instance().active[0].tasks[0].status,
        TaskStatus::Pending
    );
}

/// The first release among these events: the task, its owner and the reason.
pub(super) fn released(events: &[Event]) -> Option<(TaskId, &str, Option<&str>)> {
    events.iter().find_map(|event| match event {
        Event::TaskReleased {
            task,
            owner,
            reason,
            ..
        } => Some((*task, owner.as_str(), reason.as_deref())),
        _ => None,
    })
}

/// Three tasks of the crew, two of which must be decided.
fn two_votes() -> Script {
    Script::new()
        .knowing(everybody)
        .assigning(|_| Assignment {
            needed: 2,
            ..offers(&["crew", "crew", "crew"])
        })
        .planning(|_, _| Ok(Plan::default()))
        .started()
}

/// `bob` decides the second task, and the first one goes from this owner back to the crew.
#[track_caller]
fn goes_back(script: &mut Script, from: &str) {
    let (first, second) = (script.task(0), script.task(1));
    let voted = script.run("bob", &decide(second, "GO")).expect("a vote");
    assert_eq!(
        released(&voted.events),
        Some((first, from, Some("lost_eligibility")))
    );
    script
        .run("cid", &decide(first, "GO"))
        .expect("somebody else");
}

#[test]
fn whoever_has_decided_gives_up_their_other_task_of_the_state() {
    let mut script = two_votes();
    for task in [script.task(0), script.task(1)] {
        script.claim(task);
    }
    goes_back(&mut script, "bob");
    // Somebody has it from him.
    let mut script = two_votes();
    let first = script.task(0);
    script.claim(first);
    script
        .run("bob", &delegate(first, "dan"))
        .expect("a delegation");
    goes_back(&mut script, "dan");
    // Somebody claimed it for him.
    let mut script = two_votes();
    let claim = Command::Claim {
        task: script.task(0),
    };
    script
        .run_as(&substitute("sue", &["bob"]), &claim)
        .expect("a claim for bob");
    goes_back(&mut script, "sue");
    // An operator gave it to him.
    let mut script = two_votes();
    let first = script.task(0);
    script
        .run("amy", &reassign(first, "bob"))
        .expect("a reassignment");
    goes_back(&mut script, "bob");
}
