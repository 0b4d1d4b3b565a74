//! Substitutes of absent candidates and owners: who may act for whom, and how long.

use super::script::{Script, decide, enter, forbidden, offers, person, substitute};
use crate::actor::{Actor, StandIn};
use crate::answer::{Assignment, Plan, Principal};
use crate::command::Command;
use crate::instance::{Decision, TaskStatus};
use crate::question::Source;

fn ownership_for(script: &Script) -> Option<String> {
    match &script.instance().active[0].tasks[0].status {
        TaskStatus::Claimed { ownership, .. } => ownership.on_behalf_of.clone(),
        other => panic!("not claimed: {other:?}"),
    }
}

fn decision(script: &Script) -> Decision {
    let past = &script.instance().past[0].state;
    past.tasks[0].decision().cloned().expect("a decision")
}

/// `sue`, who is no candidate, claimed for the absent `bob`.
fn claimed_for_bob() -> Script {
    let mut script = Script::new().started();
    let task = script.task(0);
    script
        .run_as(&substitute("sue", &["bob"]), &Command::Claim { task })
        .expect("a claim for bob");
    assert_eq!(ownership_for(&script).as_deref(), Some("bob"));
    script
}

#[test]
fn a_substitute_claims_and_decides_for_an_absent_candidate() {
    let mut script = claimed_for_bob().guarding(|occurrence| {
        if let Source::Task { actor, .. } = &occurrence.source {
            // Flow logic gets the person on whose behalf it is.
            assert_eq!(
                (actor.id.as_str(), actor.on_behalf_of.as_deref()),
                ("sue", Some("bob"))
            );
        }
        Ok(())
    });
    let command = decide(script.task(0), "GO");
    script
        .run_as(&substitute("sue", &["bob"]), &command)
        .expect("a decision");
    let decision = decision(&script);
    assert_eq!(
        (decision.actor.as_str(), decision.on_behalf_of.as_deref()),
        ("sue", Some("bob"))
    );
}

#[test]
fn ones_own_right_comes_first() {
    let mut script = Script::new().started();
    let task = script.task(0);
    let both = Actor {
        groups: vec!["crew".into()],
        ..substitute("sue", &["bob"])
    };
    script
        .run_as(&both, &Command::Claim { task })
        .expect("a claim");
    assert_eq!(ownership_for(&script), None);
    script
        .run_as(&both, &decide(task, "GO"))
        .expect("a decision");
    assert_eq!(decision(&script).on_behalf_of, None);
}

#[test]
fn an_owner_who_became_a_candidate_acts_for_themselves_if_the_absent_is_excluded() {
    let mut script = claimed_for_bob();
    let instance = script.instance.as_mut().expect("an instance");
    instance.active[0].exclude.push("bob".into());
    let command = decide(script.task(0), "GO");
    let for_bob = substitute("sue", &["bob"]);
    assert_eq!(forbidden(script.run_as(&for_bob, &command)), "excluded");
    let both = Actor {
        groups: vec!["crew".into()],
        ..for_bob
    };
    script.run_as(&both, &command).expect("her own right");
    assert_eq!(decision(&script).on_behalf_of, None);
}

#[test]
fn an_absence_may_hold_for_one_definition() {
    let limited = |definition: &str| {
        let mut actor = substitute("sue", &["bob"]);
        actor.stands_in_for[0].definition = Some(definition.into());
        actor
    };
    let mut script = Script::new().started();
    let task = script.task(0);
    let claim = Command::Claim { task };
    assert_eq!(
        forbidden(script.run_as(&limited("holidays"), &claim)),
        "not_a_candidate"
    );
    script
        .run_as(&limited("subflows"), &claim)
        .expect("this definition");
}

#[test]
fn standing_is_read_at_the_moment_of_deciding() {
    // The absence is over.
    let mut script = claimed_for_bob();
    let command = decide(script.task(0), "GO");
    let alone = substitute("sue", &[]);
    assert_eq!(
        forbidden(script.run_as(&alone, &command)),
        "no_longer_substitute"
    );
    // It holds, and the absent person left the group.
    let mut without_group = substitute("sue", &["bob"]);
    without_group.stands_in_for[0].groups.clear();
    assert_eq!(
        forbidden(script.run_as(&without_group, &command)),
        "not_a_candidate"
    );
    // It is over, and she has come to be a candidate herself.
    script
        .run_as(&person("sue"), &command)
        .expect("her own right");
    assert_eq!(decision(&script).on_behalf_of, None);
    // An owner who claimed as a candidate must still be one.
    let mut script = Script::new().claimed();
    let left = substitute("bob", &[]);
    assert_eq!(forbidden(script.run_as(&left, &command)), "not_a_candidate");
    // An owner by assignment need not be.
    let owned = |_: &str| {
        let mut assignment = offers(&["crew"]);
        assignment.offers[0].owner = Some("bob".into());
        assignment
    };
    let mut script = Script::new().assigning(owned).started();
    let command = decide(script.task(0), "GO");
    script.run_as(&left, &command).expect("his by assignment");
}

#[test]
fn a_substitute_of_the_owner_decides_and_releases() {
    let mut script = Script::new().claimed();
    let task = script.task(0);
    let release = Command::Release { task };
    assert_eq!(
        forbidden(script.run_as(&substitute("sue", &["cid"]), &release)),
        "not_owner"
    );
    let released = script.run_as(&substitute("sue", &["bob"]), &release);
    let events = released.expect("a release").events;
    let crate::event::Event::TaskReleased { owner, reason, .. } = &events[0] else {
        panic!("{events:?}")
    };
    assert_eq!(
        (owner.as_str(), reason.as_deref()),
        ("bob", Some("by_substitute"))
    );
    script
        .run("bob", &Command::Claim { task })
        .expect("a claim");
    script
        .run_as(&substitute("sue", &["bob"]), &decide(task, "GO"))
        .expect("a decision");
    let decision = decision(&script);
    assert_eq!(
        (decision.actor.as_str(), decision.on_behalf_of.as_deref()),
        ("sue", Some("bob"))
    );
}

#[test]
fn a_substitute_of_a_substitute_decides_for_the_first() {
    let mut script = claimed_for_bob();
    let command = decide(script.task(0), "GO");
    // `tom` stands in for `sue` alone, who is no candidate: her standing for bob is not his.
    let mut chain = substitute("tom", &["sue"]);
    chain.stands_in_for[0].groups.clear();
    assert_eq!(
        forbidden(script.run_as(&chain, &command)),
        "no_longer_substitute"
    );
    chain.stands_in_for.push(StandIn {
        person: "bob".into(),
        groups: vec!["crew".into()],
        definition: None,
        via: vec!["sue".into()],
    });
    script.run_as(&chain, &command).expect("a chain");
    let decision = decision(&script);
    assert_eq!(
        (decision.actor.as_str(), decision.on_behalf_of.as_deref()),
        ("tom", Some("bob"))
    );
}

#[test]
fn bars_hold_for_those_acted_for() {
    let claim = |script: &Script| Command::Claim {
        task: script.task(0),
    };
    // A substitute of the requester, who is a candidate by group.
    let mut script = Script::new().started();
    let command = claim(&script);
    let for_ann = substitute("sue", &["ann"]);
    assert_eq!(forbidden(script.run_as(&for_ann, &command)), "own_request");
    // The requester as a substitute.
    let ann = substitute("ann", &["bob"]);
    assert_eq!(forbidden(script.run_as(&ann, &command)), "own_request");
    let mut script = Script::new().claimed();
    let command = decide(script.task(0), "GO");
    assert_eq!(forbidden(script.run_as(&ann, &command)), "own_request");
    // Of several absent people, one who is not excluded.
    let mut script = Script::new().started();
    let command = claim(&script);
    script
        .run_as(&substitute("sue", &["ann", "bob"]), &command)
        .expect("for bob");
    assert_eq!(ownership_for(&script).as_deref(), Some("bob"));
    // Somebody excluded.
    let excluding = |_: &str| {
        let mut assignment = offers(&["crew"]);
        assignment.exclude = vec!["bob".into()];
        assignment
    };
    let mut script = Script::new().assigning(excluding).started();
    let command = claim(&script);
    let for_bob = substitute("sue", &["bob"]);
    assert_eq!(forbidden(script.run_as(&for_bob, &command)), "excluded");
}

/// `sub` stands in for `bob` through this person, who is absent, too.
fn through(between: &str) -> Actor {
    let mut sub = substitute("sub", &["bob"]);
    sub.stands_in_for[0].via = vec![between.to_owned()];
    sub
}

#[test]
fn a_chain_through_somebody_who_is_excluded_leads_nowhere() {
    let excluding = |_: &str| Assignment {
        exclude: vec!["eve".into()],
        ..offers(&["crew"])
    };
    // `ann` requested it.
    for between in ["ann", "eve"] {
        let mut script = Script::new().assigning(excluding).started();
        let task = script.task(0);
        let claim = Command::Claim { task };
        let sub = through(between);
        for command in [&claim, &decide(task, "GO")] {
            let refused = forbidden(script.run_as(&sub, command));
            assert_eq!(refused, "not_a_candidate", "{between}");
        }
        script.claim(task);
        let refused = forbidden(script.run_as(&sub, &decide(task, "GO")));
        assert_eq!(refused, "not_owner", "{between}");
        // Another chain to the same person counts.
        let mut by_two = sub.clone();
        by_two.stands_in_for.extend(through("dee").stands_in_for);
        script
            .run_as(&by_two, &decide(task, "GO"))
            .expect("through dee");
        assert_eq!(decision(&script).on_behalf_of.as_deref(), Some("bob"));
    }
}

#[test]
fn who_has_decided_may_be_in_the_middle_of_a_chain() {
    let mut script = Script::new()
        .assigning(|_| offers(&["crew", "crew"]))
        .planning(|_, _| Ok(Plan::default()))
        .started();
    let (first, second) = (script.task(0), script.task(1));
    script.run("cid", &decide(first, "GO")).expect("a decision");
    script
        .run_as(&through("cid"), &Command::Claim { task: second })
        .expect("bob has not decided");
}

#[test]
fn nobody_decides_twice_in_a_state_instance_for_anybody() {
    let two = || {
        Script::new()
            .assigning(|_| offers(&["crew", "crew"]))
            .planning(|_, _| Ok(Plan::default()))
    };
    // First bob himself, then somebody for him.
    let mut script = two().claimed();
    script.go().expect("bob decides");
    let command = Command::Claim {
        task: script.task(1),
    };
    let for_bob = substitute("sue", &["bob"]);
    assert_eq!(
        forbidden(script.run_as(&for_bob, &command)),
        "already_decided"
    );
    // First somebody for him, then bob, then she for another.
    let mut script = two().claimed();
    let first = decide(script.task(0), "GO");
    script.run_as(&for_bob, &first).expect("sue for bob");
    let again = Command::Claim {
        task: script.task(1),
    };
    assert_eq!(forbidden(script.run("bob", &again)), "already_decided");
    let for_cid = substitute("sue", &["cid"]);
    assert_eq!(
        forbidden(script.run_as(&for_cid, &again)),
        "already_decided"
    );
    script.run("cid", &again).expect("somebody else");
}

#[test]
fn what_initiators_do_on_their_own_request_nobody_does_for_them() {
    let mine = |state: &str| {
        let mut assignment = offers(&["crew"]);
        if state == "Rework" {
            assignment.offers[0].candidates = vec![Principal::User("ann".into())];
        }
        assignment
    };
    let plan = |_: &str, _: &_| Ok(enter(&["Rework"]));
    let mut script = Script::new().assigning(mine).planning(plan).claimed();
    script.go().expect("to the rework");
    let task = script.task(0);
    let for_ann = substitute("sue", &["ann"]);
    for command in [Command::Claim { task }, decide(task, "GO")] {
        assert_eq!(
            forbidden(script.run_as(&for_ann, &command)),
            "not_a_candidate"
        );
    }
    script
        .run("ann", &Command::Claim { task })
        .expect("her own work");
    assert_eq!(
        forbidden(script.run_as(&for_ann, &decide(task, "GO"))),
        "not_owner"
    );
}

#[test]
fn whoever_is_excluded_leaves_the_task_of_an_absent_owner_alone() {
    let exclude = |_: &str| Assignment {
        exclude: vec!["sue".into()],
        ..offers(&["crew"])
    };
    let mut script = Script::new().assigning(exclude).claimed();
    let task = script.task(0);
    let suspend = || Command::SuspendTask {
        task,
        reason: None,
        until: None,
    };
    let all = || {
        let release = Command::Release { task };
        [suspend(), Command::ResumeTask { task }, release]
    };
    // `ann` requested it.
    for (person, code) in [("sue", "excluded"), ("ann", "own_request")] {
        let actor = substitute(person, &["bob"]);
        for command in all().into_iter().chain([Command::Resolve { task }]) {
            let refused = forbidden(script.run_as(&actor, &command));
            assert_eq!(refused, code, "{person} {command:?}");
        }
    }
    script
        .run_as(&substitute("sam", &["bob"]), &suspend())
        .expect("a substitute");
    script
        .run("bob", &Command::ResumeTask { task })
        .expect("the owner");
    let operator = Actor {
        permissions: vec!["task:assign".into()],
        ..substitute("sue", &["bob"])
    };
    for command in all() {
        script.run_as(&operator, &command).expect("an operator");
    }
}
