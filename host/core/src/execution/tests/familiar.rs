//! Work that goes to somebody who is familiar with the instance.

use std::cell::RefCell;
use std::rc::Rc;

use super::directory::TestDirectory;
use super::script::{Script, decide, enter};
use crate::answer::{Assignment, Offer, Principal};
use crate::command::Command;

/// Offers to these principals that retain the familiar one.
fn offers(to: &[Principal]) -> Assignment {
    let offer = |principal: &Principal| Offer {
        label: "work".into(),
        candidates: vec![principal.clone()],
        retain: true,
        ..Offer::default()
    };
    Assignment {
        offers: to.iter().map(offer).collect(),
        needed: 1,
        ..Assignment::default()
    }
}

fn group(id: &str) -> Principal {
    Principal::Group(id.into())
}

fn user(id: &str) -> Principal {
    Principal::User(id.into())
}

/// The owners of the tasks of `Other`, which is entered once `cid` and then `bob` have decided in `Review`, where `dan` has a
/// task. The offices are `crew`, of all, and `bench`, of `cid` and `eve`.
fn owners(other: &Assignment) -> Vec<Option<String>> {
    let directory = TestDirectory::new().group("bench", &["cid", "eve"]);
    let directory = Rc::new(RefCell::new(directory));
    let (other, first) = (
        other.clone(),
        offers(&[group("crew"), group("crew"), user("dan")]),
    );
    let decided = Rc::new(RefCell::new(0));
    let mut script = Script::new()
        .living_in(&directory)
        .assigning(move |state| match state {
            "Review" => first.clone(),
            _ => other.clone(),
        })
        .planning(move |_, _| {
            *decided.borrow_mut() += 1;
            Ok(match *decided.borrow() {
                1 => crate::answer::Plan::default(),
                _ => enter(&["Other"]),
            })
        })
        .started();
    let tasks = [0, 1, 2].map(|number| script.task(number));
    let claim = Command::Claim { task: tasks[2] };
    script.run("dan", &claim).expect("a claim");
    script
        .run("cid", &decide(tasks[0], "GO"))
        .expect("a decision");
    script
        .run("bob", &decide(tasks[1], "GO"))
        .expect("a decision");
    let tasks = script.instance().active[0].tasks.iter();
    tasks.map(|task| task.owner().map(str::to_owned)).collect()
}

#[test]
fn the_last_decider_who_is_a_candidate_owns_it() {
    for (to, owner) in [
        (group("crew"), Some("bob")),
        (group("bench"), Some("cid")),
        (user("cid"), Some("cid")),
        (user("eve"), None),
        (
            Principal::Member {
                person: "cid".into(),
                group: "bench".into(),
            },
            Some("cid"),
        ),
    ] {
        let found = owners(&offers(std::slice::from_ref(&to)));
        assert_eq!(found, [owner.map(str::to_owned)], "{to:?}");
    }
}

#[test]
fn nobody_gets_two_tasks_of_a_state_or_one_they_must_not_decide() {
    let three = offers(&[group("crew"), group("crew"), group("crew")]);
    let of = |names: [Option<&str>; 3]| names.map(|name| name.map(str::to_owned));
    assert_eq!(owners(&three), of([Some("bob"), Some("cid"), None]));
    let without_bob = Assignment {
        exclude: vec!["bob".into()],
        ..three.clone()
    };
    assert_eq!(owners(&without_bob), of([Some("cid"), None, None]));
    // Somebody whom another offer names, before or after, has a task already.
    for (place, expected) in [
        (0, [Some("bob"), Some("cid"), None]),
        (2, [Some("cid"), None, Some("bob")]),
    ] {
        let mut naming = three.clone();
        naming.offers[place].owner = Some("bob".into());
        assert_eq!(owners(&naming), of(expected), "{place}");
    }
    let mut plain = three;
    for offer in &mut plain.offers {
        offer.retain = false;
    }
    assert_eq!(owners(&plain), of([None, None, None]));
}
