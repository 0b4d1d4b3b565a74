//! Work that the host gives to one of its candidates.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};

use super::deadlines::{after, graph, pass};
use super::directory::TestDirectory;
use super::script::{Script, decide, enter};
use crate::actor::Actor;
use crate::answer::{Allocation, Assignment, Next, Offer, OverdueAction, Plan, Principal, Target};
use crate::command::Command;
use crate::execution::allocation::CONSIDERED_MAX;
use crate::instance::TaskStatus;
use crate::question::EntryCause;

use Allocation::{LeastLoaded, RoundRobin};

fn group(id: &str) -> Principal {
    Principal::Group(id.into())
}

fn user(id: &str) -> Principal {
    Principal::User(id.into())
}

fn offer(to: &[Principal], allocation: Allocation) -> Offer {
    Offer {
        label: "work".into(),
        candidates: to.to_vec(),
        allocation,
        ..Offer::default()
    }
}

fn assignment(offers: &[Offer]) -> Assignment {
    Assignment {
        offers: offers.to_vec(),
        needed: 1,
        ..Assignment::default()
    }
}

/// A crew of four, of whom `ann` starts the instance. `bob` and `dan` own two open tasks elsewhere and `cid` owns one. `cid` was given
/// a task a second after `bob`.
fn crew() -> TestDirectory {
    let at = |second| Timestamp::from_second(second).ok();
    let crew = TestDirectory::default().group("crew", &["ann", "bob", "cid", "dan"]);
    crew.working("bob", 2, at(1))
        .working("cid", 1, at(2))
        .working("dan", 2, None)
}

fn shared(directory: TestDirectory) -> Rc<RefCell<TestDirectory>> {
    Rc::new(RefCell::new(directory))
}

fn owners(script: &Script) -> Vec<Option<String>> {
    let active = script.instance().active.iter();
    let open = active.flat_map(|active| &active.tasks);
    let open = open.filter(|task| task.status.is_open());
    open.map(|task| task.owner().map(str::to_owned)).collect()
}

fn names(names: &[&str]) -> Vec<Option<String>> {
    let name = |name: &&str| (!name.is_empty()).then(|| (*name).to_owned());
    names.iter().map(name).collect()
}

/// The owners of the tasks of a state that `ann` enters with this assignment.
fn given(directory: TestDirectory, assignment: &Assignment) -> Vec<Option<String>> {
    let assignment = assignment.clone();
    let script = Script::new()
        .living_in(&shared(directory))
        .assigning(move |_| assignment.clone());
    owners(&script.started())
}

#[test]
fn each_rule_orders_the_candidates() {
    let crew_of = |allocation| assignment(&[offer(&[group("crew")], allocation)]);
    // `dan` was never given one, `cid` owns the fewest; among as many, the turn counts, and then the id.
    assert_eq!(given(crew(), &crew_of(RoundRobin)), names(&["dan"]));
    assert_eq!(given(crew(), &crew_of(LeastLoaded)), names(&["cid"]));
    let third = crew().working("cid", 3, None);
    assert_eq!(given(third, &crew_of(LeastLoaded)), names(&["dan"]));
    let same = ["bob", "cid", "dan"];
    let same = same
        .iter()
        .fold(crew(), |crew, who| crew.working(who, 0, None));
    assert_eq!(given(same.clone(), &crew_of(LeastLoaded)), names(&["bob"]));
    assert_eq!(given(same, &crew_of(RoundRobin)), names(&["bob"]));
    assert_eq!(given(crew(), &crew_of(Allocation::Offered)), names(&[""]));
}

#[test]
fn it_is_given_to_any_kind_of_candidate_and_no_one_else() {
    let directory = || crew().manager("eve", "cid");
    for (to, owner) in [
        (vec![user("bob"), user("eve")], "eve"),
        (vec![Principal::ManagerOf("eve".into())], "cid"),
        (vec![Principal::ManagerOf("bob".into())], ""),
        (vec![user("ann")], ""),
        (vec![group("nobody")], ""),
        (vec![], ""),
    ] {
        let given = given(directory(), &assignment(&[offer(&to, RoundRobin)]));
        assert_eq!(given, names(&[owner]), "{to:?}");
    }
    for (of, owner) in [("crew", "cid"), ("board", "")] {
        let member = Principal::Member {
            person: "cid".into(),
            group: of.into(),
        };
        let given = given(directory(), &assignment(&[offer(&[member], LeastLoaded)]));
        assert_eq!(given, names(&[owner]), "{of}");
    }
    let each = Offer {
        each_member: Some("crew".into()),
        ..offer(&[], RoundRobin)
    };
    assert_eq!(
        given(crew(), &assignment(&[each])),
        names(&["bob", "cid", "dan"])
    );
}

#[test]
fn nobody_gets_two_tasks_of_a_state_or_one_they_must_not_decide() {
    let crew_of = || offer(&[group("crew")], RoundRobin);
    let four = assignment(&[crew_of(), crew_of(), crew_of(), crew_of()]);
    assert_eq!(given(crew(), &four), names(&["dan", "bob", "cid", ""]));
    let without = Assignment {
        exclude: vec!["dan".into()],
        ..four.clone()
    };
    assert_eq!(given(crew(), &without), names(&["bob", "cid", "", ""]));
    let absent = crew().away("bob");
    assert_eq!(given(absent, &four), names(&["dan", "cid", "", ""]));
    // Somebody whom another offer names, before or after, has a task already; and the named owner stays.
    let named = Offer {
        owner: Some("dan".into()),
        ..crew_of()
    };
    let two = assignment(&[crew_of(), named]);
    assert_eq!(given(crew(), &two), names(&["bob", "dan"]));
}

#[test]
fn branches_that_begin_together_take_turns() {
    for (allocation, expected) in [
        (RoundRobin, ["dan", "bob", "cid", "dan", "bob"]),
        (LeastLoaded, ["cid", "dan", "bob", "cid", "dan"]),
    ] {
        let work = assignment(&[offer(&[group("crew")], allocation)]);
        let items = ["a", "b", "c", "d", "e"].map(|key| Target {
            key: Some(key.into()),
            ..Target::new("Other")
        });
        let mut script = Script::new()
            .living_in(&shared(crew()))
            .assigning(move |state| match state {
                "Other" => work.clone(),
                _ => assignment(&[offer(&[user("bob")], Allocation::Offered)]),
            })
            .planning(move |_, _| {
                Ok(Plan {
                    next: Next::Enter(items.to_vec()),
                    ..Plan::default()
                })
            })
            .started();
        script
            .run("bob", &decide(script.task(0), "GO"))
            .expect("a decision");
        assert_eq!(owners(&script), names(&expected), "{allocation:?}");
    }
}

#[test]
fn whoever_is_familiar_comes_first_and_then_the_rule() {
    let retained = |to: &str| Offer {
        retain: true,
        ..offer(&[group(to)], RoundRobin)
    };
    let directory = shared(crew().group("bench", &["cid"]));
    let mut script = Script::new()
        .living_in(&directory)
        .assigning(move |state| match state {
            "Other" => assignment(&[retained("crew"), retained("crew"), retained("bench")]),
            _ => assignment(&[offer(&[user("bob")], Allocation::Offered)]),
        })
        .planning(|_, _| Ok(enter(&["Other"])))
        .started();
    script
        .run("bob", &decide(script.task(0), "GO"))
        .expect("a decision");
    assert_eq!(owners(&script), names(&["bob", "dan", "cid"]));
    let tasks = &script.instance().active[0].tasks;
    let how = tasks.iter().map(|task| match &task.status {
        TaskStatus::Claimed { ownership, .. } => ownership.allocated,
        _ => false,
    });
    assert_eq!(how.collect::<Vec<_>>(), [false, true, true]);
}

#[test]
fn it_can_be_given_back_and_then_waits_for_a_claim() {
    let work = assignment(&[offer(&[group("crew")], LeastLoaded)]);
    let mut script = Script::new()
        .living_in(&shared(crew()))
        .assigning(move |_| work.clone())
        .started();
    let task = script.task(0);
    script
        .run("bob", &decide(task, "GO"))
        .expect_err("not theirs");
    script
        .run("cid", &Command::Release { task })
        .expect("a release");
    assert_eq!(owners(&script), names(&[""]));
    script.run("bob", &decide(task, "GO")).expect("a decision");
}

#[test]
fn who_leaves_the_group_loses_it() {
    let directory = shared(crew());
    let work = assignment(&[offer(&[group("crew")], LeastLoaded)]);
    let mut script = Script::new()
        .living_in(&directory)
        .assigning(move |_| work.clone())
        .started();
    directory
        .borrow_mut()
        .groups
        .entry("crew".into())
        .or_default()
        .remove("cid");
    let instance = script.instance().id;
    let reassessment = Command::Reassessment { instance };
    script
        .run_as(&Actor::host(), &reassessment)
        .expect("a check");
    assert_eq!(owners(&script), names(&[""]));
}

#[test]
fn overdue_work_goes_to_somebody_else() {
    let mut work = offer(&[group("crew")], RoundRobin);
    work.deadlines.push(after(60, OverdueAction::Escalate));
    let work = assignment(&[work]);
    let mut script = Script::new()
        .drawn(graph())
        .living_in(&shared(crew()))
        .assigning(move |_| work.clone())
        .started();
    for (number, person) in (1..).zip(["dan", "bob", "cid"]) {
        assert_eq!(owners(&script), names(&[person]));
        pass(&mut script, 0, 60 * number);
    }
    assert_eq!(owners(&script), names(&[""]));
}

#[test]
fn work_that_is_offered_anew_is_given_to_nobody() {
    let first = assignment(&[offer(&[group("crew")], RoundRobin)]);
    let mut again = first.clone();
    again.offers.push(Offer {
        label: "second look".into(),
        ..offer(&[group("crew")], RoundRobin)
    });
    let mut script = Script::new()
        .living_in(&shared(crew()))
        .assigning_for(move |_, cause| match cause {
            EntryCause::Entered => Assignment {
                offers: vec![
                    first.offers[0].clone(),
                    offer(&[user("bob")], Allocation::Offered),
                ],
                ..first.clone()
            },
            _ => again.clone(),
        })
        .planning(|_, _| {
            Ok(Plan {
                next: Next::Reoffer,
                ..Plan::default()
            })
        })
        .started();
    script
        .run("bob", &decide(script.task(1), "GO"))
        .expect("a decision");
    // The owner keeps theirs.
    assert_eq!(owners(&script), names(&["dan", ""]));
}

#[test]
fn a_bounded_number_of_people_is_considered_of_each_offer_in_turn() {
    let many: Vec<String> = (0..300).map(|number| format!("p{number:03}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let directory = crew().group("many", &many);
    let lookups = Rc::new(RefCell::new(Vec::new()));
    let answers = shared(directory);
    let (sent, offers) = (
        lookups.clone(),
        assignment(&[
            offer(&[group("many")], RoundRobin),
            offer(&[group("crew")], LeastLoaded),
        ]),
    );
    let script = Script::new()
        .knowing(move |lookup| {
            sent.borrow_mut().push(lookup.clone());
            answers.borrow_mut().found(lookup)
        })
        .assigning(move |_| offers.clone())
        .started();
    let lookups = lookups.borrow();
    // The first look-up: one more than are considered, for the requester.
    assert_eq!(lookups[0].members_max as usize, CONSIDERED_MAX + 1);
    let of = lookups[1].workloads.as_ref().expect("a question");
    assert_eq!(of.people.len(), CONSIDERED_MAX);
    let crew: BTreeSet<_> = ["bob", "cid", "dan"].map(str::to_owned).into();
    assert!(crew.is_subset(&of.people));
    assert!(!of.people.contains("ann"));
    assert_eq!((of.state.as_str(), of.open_max), ("Review", 100));
    assert!(!lookups[1].is_lasting());
    assert_eq!(owners(&script), names(&["p000", "cid"]));
}

#[test]
fn a_turn_counts_to_the_moment() {
    // Whoever was given one a moment earlier is next.
    let now = Timestamp::UNIX_EPOCH;
    let later = now + SignedDuration::from_millis(1);
    let crew = crew()
        .working("bob", 0, Some(later))
        .working("cid", 0, Some(now))
        .working("dan", 0, Some(later));
    let work = assignment(&[offer(&[group("crew")], RoundRobin)]);
    assert_eq!(given(crew, &work), names(&["cid"]));
}
