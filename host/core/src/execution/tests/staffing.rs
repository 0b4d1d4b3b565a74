//! Random work and random changes of the directory: a state is marked unassignable exactly when it is.

use std::cell::RefCell;
use std::rc::Rc;

use proptest::prelude::*;

use super::directory::TestDirectory;
use super::script::{Script, decide, enter, person};
use crate::actor::Actor;
use crate::answer::{Assignment, Offer, Plan, Principal};
use crate::command::Command;
use crate::instance::{Candidate, Instance, StateInstance};

const PEOPLE: [&str; 5] = ["ann", "bob", "cid", "dan", "max"];
const GROUPS: [&str; 3] = ["crew", "bench", "office"];

#[derive(Debug, Clone)]
enum StaffingStep {
    /// Of a group, by a mask of people.
    Members(usize, u32),
    Manager(Option<usize>),
    Claim(usize, usize),
    Release(usize),
    Vote(usize),
}

fn step() -> impl Strategy<Value = StaffingStep> {
    let person = 0..PEOPLE.len();
    prop_oneof![
        3 => (0..GROUPS.len(), 0..32_u32).prop_map(|(group, mask)| StaffingStep::Members(group, mask)),
        1 => prop::option::of(person.clone()).prop_map(StaffingStep::Manager),
        4 => (person, 0..4_usize).prop_map(|(person, task)| StaffingStep::Claim(person, task)),
        1 => (0..4_usize).prop_map(StaffingStep::Release),
        3 => (0..4_usize).prop_map(StaffingStep::Vote),
    ]
}

fn principal() -> impl Strategy<Value = Principal> {
    let person = prop::sample::select(&PEOPLE[..]);
    prop_oneof![
        3 => prop::sample::select(&GROUPS[..]).prop_map(|id| Principal::Group(id.into())),
        1 => person.clone().prop_map(|id| Principal::User(id.into())),
        1 => person.prop_map(|id| Principal::ManagerOf(id.into())),
    ]
}

fn assignment() -> impl Strategy<Value = Assignment> {
    let offer = (
        prop::collection::vec(principal(), 0..3),
        // Never the initiator, who is first.
        prop::option::weighted(0.2, 1..PEOPLE.len()),
    );
    let offer = offer.prop_map(|(candidates, owner)| Offer {
        label: "work".into(),
        candidates,
        owner: owner.map(|person| PEOPLE[person].to_owned()),
        ..Offer::default()
    });
    (
        prop::collection::vec(offer, 0..4),
        0..4_u32,
        prop::option::of(prop::sample::select(&GROUPS[..])),
        prop::option::weighted(0.3, 1..PEOPLE.len()),
    )
        .prop_map(|(mut offers, needed, fallback, excluded)| {
            let exclude: Vec<_> = excluded.iter().map(|one| PEOPLE[*one].to_owned()).collect();
            for offer in &mut offers {
                offer.owner = offer.owner.take().filter(|owner| !exclude.contains(owner));
            }
            let offered = u32::try_from(offers.len()).expect("few offers");
            Assignment {
                needed: needed.min(offered),
                offers,
                exclude,
                fallback: fallback.map(str::to_owned),
                ..Assignment::default()
            }
        })
}

/// How many open tasks of the state instance people could decide, one each, by exhaustive search.
fn possible(
    directory: &TestDirectory,
    instance: &Instance,
    state_instance: &StateInstance,
) -> usize {
    let decided = |person: &str| {
        let mut deciders = state_instance
            .tasks
            .iter()
            .filter_map(|task| task.decision());
        deciders.any(|decision| decision.actor == person)
    };
    let may = |person: &str| {
        !instance.requesters.iter().any(|one| one == person)
            && !state_instance.exclude.iter().any(|one| one == person)
            && !decided(person)
    };
    let tasks: Vec<Vec<usize>> = state_instance
        .tasks
        .iter()
        .filter(|task| task.status.is_open())
        .map(|task| {
            let offered = |person: &str| {
                task.owner() == Some(person)
                    || task.candidates.iter().any(|candidate| match candidate {
                        Candidate::User(id) | Candidate::Member { person: id, .. } => id == person,
                        Candidate::Group(id) => {
                            let members = directory.groups.get(id);
                            members.is_some_and(|members| members.contains(person))
                        }
                    })
            };
            let people = (0..PEOPLE.len()).filter(|one| offered(PEOPLE[*one]) && may(PEOPLE[*one]));
            people.collect()
        })
        .collect();
    most(&tasks, 0)
}

fn most(tasks: &[Vec<usize>], busy: u32) -> usize {
    let Some((first, rest)) = tasks.split_first() else {
        return 0;
    };
    let free = first.iter().filter(|person| busy & (1 << **person) == 0);
    let done = free.map(|person| 1 + most(rest, busy | (1 << person)));
    done.max().unwrap_or(0).max(most(rest, busy))
}

fn is_true(directory: &TestDirectory, instance: &Instance) -> Result<(), TestCaseError> {
    for state_instance in &instance.active {
        let decided = state_instance
            .tasks
            .iter()
            .filter(|task| task.decision().is_some());
        let needed = (state_instance.needed as usize).saturating_sub(decided.count());
        let open = state_instance
            .tasks
            .iter()
            .filter(|task| task.status.is_open());
        let required = needed.max(1).min(open.count());
        prop_assert!(required > 0, "an active state instance has open work");
        let eligible = possible(directory, instance, state_instance) >= required;
        prop_assert_eq!(
            eligible,
            state_instance.unassignable_since.is_none(),
            "{:#?} in {:#?}",
            state_instance,
            directory
        );
    }
    Ok(())
}

proptest! {
    #[test]
    fn no_state_is_stuck_in_silence(assignment in assignment(), steps in prop::collection::vec(step(), 0..24)) {
        let directory = Rc::new(RefCell::new(TestDirectory::default().group("crew", &["bob", "cid"])));
        let mut script = Script::new()
            .living_in(&directory)
            .assigning(move |_| assignment.clone())
            .planning(|_, instance: &Instance| {
                let open = instance.active[0].tasks.iter().filter(|task| task.status.is_open());
                Ok(if open.count() > 1 { Plan::default() } else { enter(&["Review"]) })
            })
            .started();
        is_true(&directory.borrow(), script.instance())?;
        for step in steps {
            act(&mut script, &directory, &step);
            is_true(&directory.borrow(), script.instance())?;
        }
    }
}

fn act(script: &mut Script, directory: &Rc<RefCell<TestDirectory>>, step: &StaffingStep) {
    let id = script.instance().id;
    let tasks = script.instance().active[0].tasks.clone();
    let open: Vec<_> = tasks.iter().filter(|task| task.status.is_open()).collect();
    let one = |number: &usize| open[number % open.len()];
    match step {
        StaffingStep::Members(group, mask) => {
            let members = (0..PEOPLE.len()).filter(|one| mask & (1 << one) != 0);
            let members: Vec<_> = members.map(|one| PEOPLE[one]).collect();
            let changed = directory.borrow().clone().group(GROUPS[*group], &members);
            directory.replace(changed);
        }
        StaffingStep::Manager(None) => directory.borrow_mut().managers.clear(),
        StaffingStep::Manager(Some(manager)) => {
            let changed = directory.borrow().clone().manager("ann", PEOPLE[*manager]);
            directory.replace(changed);
        }
        // What is refused changes nothing.
        StaffingStep::Claim(who, task) => {
            let directory = directory.borrow().clone();
            let groups = directory.groups.iter();
            let own = groups.filter(|(_, members)| members.contains(PEOPLE[*who]));
            let actor = Actor {
                groups: own.map(|(group, _)| group.clone()).collect(),
                ..person(PEOPLE[*who])
            };
            drop(script.run_as(&actor, &Command::Claim { task: one(task).id }));
        }
        StaffingStep::Release(task) => {
            let owner = one(task).owner().unwrap_or("dan").to_owned();
            drop(script.run(&owner, &Command::Release { task: one(task).id }));
        }
        StaffingStep::Vote(task) => {
            let owner = one(task).owner().unwrap_or("dan").to_owned();
            drop(script.run(&owner, &decide(one(task).id, "GO")));
        }
    }
    if matches!(step, StaffingStep::Members(..) | StaffingStep::Manager(_)) {
        let reassessment = Command::Reassessment { instance: id };
        script
            .run_as(&Actor::host(), &reassessment)
            .expect("a reassessment");
    }
}
