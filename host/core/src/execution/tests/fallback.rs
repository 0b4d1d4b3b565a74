//! Fallbacks when too few people are eligible: when tasks are created and after changes of the directory.

use std::cell::RefCell;
use std::rc::Rc;

use super::directory::{TestDirectory, everybody};
use super::script::{Script, decide, enter, offers, start};
use crate::actor::{Actor, StandIn};
use crate::answer::{Assignment, Offer, Plan, Principal};
use crate::command::Command;
use crate::event::Event;
use crate::execution::Outcome;
use crate::instance::{Candidate, TaskStatus};

fn user(id: &str) -> Principal {
    Principal::User(id.into())
}

fn group(id: &str) -> Principal {
    Principal::Group(id.into())
}

fn offering(candidates: &[&[Principal]]) -> Assignment {
    let offer = |candidates: &&[Principal]| Offer {
        label: "work".into(),
        candidates: candidates.to_vec(),
        ..Offer::default()
    };
    Assignment {
        offers: candidates.iter().map(offer).collect(),
        needed: 1,
        fallback: Some("office".into()),
        ..Assignment::default()
    }
}

/// What happened after the tasks were made, a word each.
fn summary(outcome: &Outcome) -> String {
    let words = outcome.events.iter().filter_map(|event| match event {
        Event::TaskRerouted {
            step, candidates, ..
        } => Some(format!("{step}:{}", candidates.last()?.id())),
        Event::TaskCancelled { reason, .. } => Some(reason.clone()?),
        Event::TaskReleased { owner, reason, .. } => {
            let reason = reason.as_deref().unwrap_or("released");
            Some(format!("{reason}:{owner}"))
        }
        Event::StateUnassignable { .. } => Some("unassignable".into()),
        Event::StateAssignable { .. } => Some("assignable".into()),
        _ => None,
    });
    words.collect::<Vec<_>>().join(" ")
}

/// What comes of an assignment in a town, when `ann` starts.
#[track_caller]
fn check(directory: TestDirectory, assignment: Assignment, expected: &str) -> Script {
    let directory = Rc::new(RefCell::new(directory));
    let mut script = Script::new()
        .living_in(&directory)
        .assigning(move |_| assignment.clone());
    let outcome = script.run("ann", &start()).expect("a start");
    assert_eq!(summary(&outcome), expected);
    let state_instance = &outcome.instance.active[0];
    assert_eq!(
        state_instance.unassignable_since.is_some(),
        expected.ends_with("unassignable")
    );
    script
}

fn village() -> TestDirectory {
    let directory = TestDirectory::default()
        .group("bench", &[])
        .group("pair", &["bob"]);
    directory
        .group("office", &["ola"])
        .group("mine", &["ann"])
        .manager("ann", "max")
}

#[test]
fn work_goes_to_one_fallback_after_another() {
    let anns = |directory: TestDirectory, manager: &str| directory.manager("ann", manager);
    let alone = || TestDirectory {
        managers: [].into(),
        ..village()
    };
    let empty = || offering(&[&[group("bench")]]);
    check(village(), offering(&[&[group("pair")]]), "");
    check(village(), offering(&[&[user("bob")]]), "");
    // An empty group, one of requesters only, nobody named, an unknown manager.
    check(village(), empty(), "manager:max");
    check(village(), offering(&[&[group("mine")]]), "manager:max");
    check(village(), offering(&[&[]]), "manager:max");
    let of_bob = Principal::ManagerOf("bob".into());
    check(village(), offering(&[&[of_bob]]), "manager:max");
    check(village(), offering(&[&[group("none")]]), "manager:max");
    // No manager, or one who must not decide.
    check(alone(), empty(), "fallback:office");
    check(anns(village(), "ann"), empty(), "fallback:office");
    let mut without_max = empty();
    without_max.exclude.push("max".into());
    check(village(), without_max.clone(), "fallback:office");
    // Nobody in the fallback group either, or none.
    let deserted = alone().group("office", &["ann"]);
    check(deserted, empty(), "fallback:office unassignable");
    without_max.fallback = None;
    check(village(), without_max, "unassignable");
}

#[test]
fn a_manager_is_a_person_from_then_on() {
    let of_ann = Principal::ManagerOf("ann".into());
    let script = check(village(), offering(&[&[of_ann, group("pair")]]), "");
    let task = &script.instance().active[0].tasks[0];
    let expected = [
        Candidate::User("max".into()),
        Candidate::Group("pair".into()),
    ];
    assert_eq!(task.candidates, expected);
}

#[test]
fn an_assignment_to_nobody_is_one_task_for_whoever_is_found() {
    let script = check(village(), offering(&[]), "manager:max");
    let tasks = &script.instance().active[0].tasks;
    let [task] = &tasks[..] else {
        panic!("not one task: {tasks:?}")
    };
    assert_eq!(
        (task.label.as_str(), &task.candidates[..]),
        ("Review", &[Candidate::User("max".into())][..])
    );
}

#[test]
fn enough_able_people_leave_the_rest_undone() {
    let (bench, pair) = (&[group("bench")][..], &[group("pair")][..]);
    let script = check(
        village(),
        offering(&[bench, pair, &[]]),
        "nobody_eligible nobody_eligible",
    );
    let open = script.instance().active[0].tasks.iter();
    assert_eq!(open.filter(|task| task.status.is_open()).count(), 1);
    // Bob decides once: of two decisions the second is somebody else's.
    let two = |offers: &[&[Principal]]| Assignment {
        needed: 2,
        ..offering(offers)
    };
    check(village(), two(&[pair, pair]), "manager:max");
    check(village(), two(&[pair, &[user("cid")]]), "");
    check(
        village(),
        two(&[pair, bench, bench]),
        "manager:max manager:max",
    );
    let three = Assignment {
        needed: 3,
        ..two(&[pair, bench, bench])
    };
    let expected = "manager:max manager:max fallback:office";
    check(village(), three, expected);
}

#[test]
fn own_work_has_no_fallback() {
    let directory = Rc::new(RefCell::new(village().group("crew", &["bob"])));
    let assign = |state: &str| {
        let mut assignment = offering(&[]);
        if state == "Rework" {
            assignment.exclude.push("ann".into());
        } else {
            assignment.offers = offers(&["crew"]).offers;
        }
        assignment
    };
    let mut script = Script::new()
        .living_in(&directory)
        .assigning(assign)
        .planning(|_, _| Ok(enter(&["Rework"])))
        .claimed();
    let lookups = directory.borrow().asked;
    let outcome = script.go().expect("a decision");
    assert_eq!(summary(&outcome), "unassignable");
    assert_eq!(directory.borrow().asked, lookups, "nobody was asked for");
    let task = &script.instance().active[0].tasks[0];
    assert_eq!(task.candidates, [Candidate::User("ann".into())]);
}

#[test]
fn the_directory_is_asked_only_where_it_matters() {
    for (assignment, lookups) in [
        (offering(&[&[user("bob")]]), 0),
        (offering(&[&[user("bob"), group("pair")]]), 0),
        (offering(&[&[group("pair")]]), 1),
        (offering(&[&[user("bob")], &[group("pair")]]), 1),
        (offering(&[&[Principal::ManagerOf("ann".into())]]), 1),
        (offering(&[&[group("bench")]]), 2),
    ] {
        let directory = Rc::new(RefCell::new(village()));
        let script = Script::new()
            .living_in(&directory)
            .assigning(move |_| assignment.clone());
        script.started();
        assert_eq!(directory.borrow().asked, lookups);
    }
}

/// A script whose work is offered to a group, its town, and the reassessment of its instance.
fn settled(assignment: Assignment) -> (Script, Rc<RefCell<TestDirectory>>) {
    let directory = Rc::new(RefCell::new(village().group("crew", &["bob", "cid"])));
    let script = Script::new()
        .living_in(&directory)
        .assigning(move |_| assignment.clone());
    (script.started(), directory)
}

fn reassessment(script: &mut Script) -> Outcome {
    let instance = script.instance().id;
    let command = Command::Reassessment { instance };
    let outcome = script.run_as(&Actor::host(), &command);
    outcome.expect("a reassessment is never refused")
}

#[test]
fn a_reassessment_says_what_has_become_of_the_work() {
    let (mut script, directory) = settled(offering(&[&[group("crew")]]));
    let before = script.instance().clone();
    assert_eq!(reassessment(&mut script).events, []);
    assert_eq!(script.instance(), &before);

    let change = |group: &str, members: &[&str]| {
        let changed = directory.borrow().clone().group(group, members);
        directory.replace(changed);
    };
    directory.borrow_mut().managers.clear();
    change("office", &[]);
    change("crew", &["ann"]);
    assert_eq!(
        summary(&reassessment(&mut script)),
        "fallback:office unassignable"
    );
    assert!(reassessment(&mut script).events.is_empty());
    change("office", &["ola"]);
    assert_eq!(summary(&reassessment(&mut script)), "assignable");
    change("office", &[]);
    assert_eq!(summary(&reassessment(&mut script)), "unassignable");
    directory
        .borrow_mut()
        .managers
        .insert("ann".into(), "max".into());
    assert_eq!(
        summary(&reassessment(&mut script)),
        "manager:max assignable"
    );
}

#[test]
fn an_owner_who_may_no_longer_have_a_task_gives_it_back() {
    let (mut script, directory) = settled(offering(&[&[group("crew")]]));
    let task = script.task(0);
    script
        .run("bob", &Command::Claim { task })
        .expect("a claim");
    assert!(reassessment(&mut script).events.is_empty());
    let changed = directory.borrow().clone().group("crew", &["cid"]);
    directory.replace(changed);
    assert_eq!(summary(&reassessment(&mut script)), "lost_eligibility:bob");
    assert!(reassessment(&mut script).events.is_empty());
    script
        .run("cid", &Command::Claim { task })
        .expect("a claim");
    let changed = directory.borrow().clone().group("crew", &[]);
    directory.replace(changed);
    assert_eq!(
        summary(&reassessment(&mut script)),
        "lost_eligibility:cid manager:max"
    );
}

/// As a release before this rule left it.
#[test]
fn whoever_has_decided_gives_back_what_they_claimed() {
    let crew = &[group("crew")][..];
    let (script, _) = settled(Assignment {
        needed: 2,
        ..offering(&[crew, crew])
    });
    let mut script = script.planning(|_, _| Ok(Plan::default()));
    let (first, second) = (script.task(0), script.task(1));
    script
        .run("cid", &Command::Claim { task: second })
        .expect("a claim");
    script.run("bob", &decide(first, "GO")).expect("a vote");
    assert!(reassessment(&mut script).events.is_empty());
    let instance = script.instance.as_mut().expect("an instance");
    let TaskStatus::Claimed { owner, .. } = &mut instance.active[0].tasks[1].status else {
        panic!("nobody has it")
    };
    "bob".clone_into(owner);
    assert_eq!(summary(&reassessment(&mut script)), "lost_eligibility:bob");
}

#[test]
fn work_that_was_given_stays_with_its_owner() {
    let mut assignment = offering(&[&[group("bench")]]);
    assignment.offers[0].owner = Some("bob".into());
    let (mut script, _) = settled(assignment);
    assert!(reassessment(&mut script).events.is_empty());
    // Given back, it is nobody's.
    let task = script.task(0);
    let outcome = script.run("bob", &Command::Release { task });
    assert_eq!(
        summary(&outcome.expect("a release")),
        "released:bob manager:max"
    );
}

#[test]
fn a_substitute_keeps_a_task_as_long_as_the_absence_holds() {
    let (mut script, directory) = settled(offering(&[&[group("crew")]]));
    let task = script.task(0);
    let stand_in = |definition: Option<&str>, group: &str| StandIn {
        person: "bob".into(),
        groups: vec![group.to_owned()],
        definition: definition.map(str::to_owned),
        via: vec![],
    };
    let through = |person: &str| StandIn {
        via: vec![person.to_owned()],
        ..stand_in(None, "crew")
    };
    let hold = |script: &mut Script| {
        let instance = script.instance.as_mut().expect("an instance");
        let TaskStatus::Pending = instance.active[0].tasks[0].status else {
            panic!("somebody has it")
        };
        script
            .run("cid", &Command::Claim { task })
            .expect("a claim");
        let instance = script.instance.as_mut().expect("an instance");
        let TaskStatus::Claimed {
            owner, ownership, ..
        } = &mut instance.active[0].tasks[0].status
        else {
            panic!("nobody has it")
        };
        *owner = "zoe".into();
        ownership.on_behalf_of = Some("bob".into());
    };
    for (found, kept) in [
        (vec![stand_in(None, "crew")], true),
        (vec![stand_in(Some("subflows"), "crew")], true),
        (vec![stand_in(Some("orders"), "crew")], false),
        (vec![stand_in(None, "pair")], false),
        (vec![through("dee")], true),
        // `ann` requested it.
        (vec![through("ann")], false),
        (vec![], false),
    ] {
        hold(&mut script);
        directory.borrow_mut().stand_ins = [("zoe".to_owned(), found)].into();
        let change = summary(&reassessment(&mut script));
        assert_eq!(change, if kept { "" } else { "lost_eligibility:zoe" });
        if kept {
            script
                .run("zoe", &Command::Release { task })
                .expect("a release");
        }
    }
}

#[test]
fn a_vote_that_leaves_nobody_goes_to_the_fallback() {
    let crew = &[group("crew")][..];
    let (script, _) = settled(Assignment {
        needed: 2,
        ..offering(&[crew, crew, crew])
    });
    let mut script = script.planning(|_, _| Ok(Plan::default()));
    for (number, person, expected) in [(0, "bob", ""), (1, "cid", "manager:max")] {
        let task = script.task(number);
        script
            .run(person, &Command::Claim { task })
            .expect("a claim");
        let outcome = script.run(person, &decide(task, "GO"));
        assert_eq!(summary(&outcome.expect("a vote")), expected);
    }
}

fn delegate(script: &mut Script, from: &str, task: usize, to: &str) -> String {
    let command = Command::Delegate {
        task: script.task(task),
        to: to.into(),
        reason: "away".into(),
    };
    summary(&script.run(from, &command).expect("a delegation"))
}

/// Tasks that belong to people, two of whom must decide.
fn given(owners: &[&str]) -> Script {
    let offer = |owner: &&str| Offer {
        label: "work".into(),
        owner: Some((*owner).to_owned()),
        ..Offer::default()
    };
    let assignment = Assignment {
        offers: owners.iter().map(offer).collect(),
        needed: 2,
        ..Assignment::default()
    };
    let script = Script::new().knowing(everybody);
    let script = script.assigning(move |_| assignment.clone());
    script.planning(|_, _| Ok(Plan::default())).started()
}

#[test]
fn a_delegate_of_somebody_who_has_decided_is_not_able() {
    let mut script = given(&["bob", "cid"]);
    assert_eq!(delegate(&mut script, "bob", 0, "dan"), "");
    assert_eq!(delegate(&mut script, "cid", 1, "bob"), "");
    // He has decided, so he is excluded, and nobody else may decide in his name.
    let vote = decide(script.task(1), "GO");
    let outcome = script.run("bob", &vote).expect("a vote");
    assert_eq!(summary(&outcome), "lost_eligibility:dan unassignable");
}

#[test]
fn who_gets_a_second_task_leaves_one_to_nobody() {
    let mut script = given(&["bob", "cid"]);
    assert_eq!(delegate(&mut script, "bob", 0, "cid"), "unassignable");
    let resolve = Command::Resolve {
        task: script.task(0),
    };
    let outcome = script.run("cid", &resolve).expect("handed back");
    assert_eq!(summary(&outcome), "assignable");
    let reassign = Command::Reassign {
        task: script.task(1),
        to: "bob".into(),
        reason: "why not".into(),
    };
    let outcome = script.run("max", &reassign).expect("a reassignment");
    assert_eq!(summary(&outcome), "unassignable");
}
