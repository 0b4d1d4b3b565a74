//! Tables of who takes part in an instance, and who joins by a change.

use uuid::Uuid;

use super::*;
use crate::actor::StandIn;
use crate::apply::{Stamp, apply};
use crate::event::Event;
use crate::ids::{InstanceId, StateId, TaskId, VersionRef};
use crate::instance::{Candidate, Entity, Ownership, StateInstance};
use crate::json::Json;
use jiff::Timestamp;

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|name| (*name).to_owned()).collect()
}

/// An instance by `ann` with a task for each status, observed by these groups.
fn instance(observers: Option<&[&str]>, tasks: Vec<Task>) -> Instance {
    let start = Event::FlowStarted {
        definition: VersionRef {
            key: "purchase".into(),
            version: 1,
        },
        entity: Entity {
            kind: "order".into(),
            id: "1".into(),
        },
        initiator: "ann".into(),
        requesters: names(&["ann", "pat"]),
        predecessor: None,
        parent: None,
        data: Json::empty(),
        title: None,
        summary: None,
        sole: false,
        observers: observers.map(names),
    };
    let stamp = Stamp {
        instance: InstanceId(Uuid::from_u128(1)),
        revision: 1,
        at: Timestamp::UNIX_EPOCH,
        actor: Some("ann"),
    };
    let mut instance = apply(None, &start, stamp).expect("a start");
    let mut state = StateInstance::new(StateId(Uuid::from_u128(2)), "Vote", Timestamp::UNIX_EPOCH);
    state.tasks = tasks;
    instance.active.push(state);
    instance
}

fn task(number: u128, candidates: Vec<Candidate>, status: TaskStatus) -> Task {
    Task {
        id: TaskId(Uuid::from_u128(number)),
        label: "work".into(),
        candidates,
        created_at: Timestamp::UNIX_EPOCH,
        due_at: None,
        deadlines: vec![],
        suspended: None,
        status,
    }
}

fn claimed(owner: &str, on_behalf_of: Option<&str>) -> TaskStatus {
    TaskStatus::Claimed {
        owner: owner.into(),
        claimed_at: Timestamp::UNIX_EPOCH,
        ownership: Ownership {
            on_behalf_of: on_behalf_of.map(str::to_owned),
            ..Ownership::default()
        },
    }
}

fn tasks() -> Vec<Task> {
    vec![
        task(
            3,
            vec![Candidate::Group("finance".into())],
            claimed("fay", Some("flora")),
        ),
        task(4, vec![Candidate::User("mara".into())], TaskStatus::Pending),
        task(
            5,
            vec![],
            TaskStatus::Cancelled {
                owner: Some("otto".into()),
                cancelled_at: Timestamp::UNIX_EPOCH,
                reason: None,
            },
        ),
    ]
}

fn actor(id: &str, groups: &[&str]) -> Actor {
    Actor {
        id: id.into(),
        groups: names(groups),
        permissions: vec![],
        on_behalf_of: None,
        stands_in_for: vec![],
    }
}

#[test]
fn only_people_of_the_circle_see_a_restricted_instance() {
    let restricted = Circle::of(&instance(Some(&["auditors"]), tasks()));
    for person in ["ann", "pat", "fay", "flora", "mara", "otto"] {
        assert!(
            restricted.includes(&actor(person, &[]), "purchase"),
            "{person}"
        );
    }
    for group in ["auditors", "finance"] {
        assert!(
            restricted.includes(&actor("x", &[group]), "purchase"),
            "{group}"
        );
    }
    assert!(!restricted.includes(&actor("eve", &["sales"]), "purchase"));
    let managed = Circle {
        managers: names(&["boss"]),
        ..restricted
    };
    assert!(managed.includes(&actor("boss", &[]), "purchase"));
    let open = Circle::of(&instance(None, tasks()));
    assert!(open.includes(&actor("eve", &[]), "purchase"));
}

#[test]
fn a_substitute_sees_as_a_participant_what_the_absent_person_sees() {
    let circle = Circle::of(&instance(Some(&["auditors"]), tasks()));
    let standing_in = |groups: &[&str], definition: Option<&str>| {
        let absent = StandIn {
            person: "abe".into(),
            groups: names(groups),
            definition: definition.map(str::to_owned),
            via: vec![],
        };
        Actor {
            stands_in_for: vec![absent],
            ..actor("eve", &[])
        }
    };
    assert!(circle.includes(&standing_in(&["finance"], None), "purchase"));
    assert!(circle.includes(&standing_in(&["finance"], Some("purchase")), "purchase"));
    assert!(!circle.includes(&standing_in(&["finance"], Some("other")), "purchase"));
    assert!(
        !circle.includes(&standing_in(&["auditors"], None), "purchase"),
        "nobody observes for another"
    );
}

#[test]
fn a_change_adds_those_who_were_no_participants_before() {
    let joined = |before: Option<&Instance>, after: &Instance| -> Vec<String> {
        let joined = joining(before, after, &[], "ann");
        joined
            .iter()
            .map(|one| format!("{} {}", one.kind.name(), one.id))
            .collect()
    };
    let begun = instance(Some(&["auditors"]), vec![]);
    assert_eq!(
        joined(None, &begun),
        ["user ann", "user pat", "observer auditors"]
    );
    let worked = instance(Some(&["auditors"]), tasks());
    assert_eq!(
        joined(Some(&begun), &worked),
        [
            "user fay",
            "user flora",
            "user mara",
            "user otto",
            "group finance"
        ]
    );
    assert!(
        joining(Some(&worked), &begun, &[], "ann").is_empty(),
        "nobody ceases to be one"
    );
    let open = instance(None, tasks());
    assert!(
        joining(None, &open, &[], "ann").is_empty(),
        "nothing is written for the tenant"
    );
    assert_eq!(
        joined(Some(&open), &worked).len(),
        8,
        "a migration adds all of them"
    );
    let other = instance(Some(&["board"]), tasks());
    assert_eq!(joined(Some(&worked), &other), ["observer board"]);
}

#[test]
fn a_mention_makes_a_participant_of_a_restricted_instance() {
    let commented = [Event::FlowCommented {
        comment: "@eve, please".to_owned(),
        mentions: vec!["eve".to_owned(), "ann".to_owned()],
    }];
    let restricted = instance(Some(&["auditors"]), vec![]);
    let joined = joining(Some(&restricted), &restricted, &commented, "ann");
    let joined: Vec<_> = joined
        .iter()
        .map(|one| (one.kind, one.id.as_str()))
        .collect();
    assert_eq!(joined, [(Kind::User, "eve")], "ann was one before");
    let own = joining(Some(&restricted), &restricted, &commented, "eve");
    assert!(own.is_empty(), "who mentions themselves sees it by a group");
}
