//! Random people who delegate random tasks to each other, some of them absent. Every decision is checked by a second
//! implementation of the rules that reads only the events.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use uuid::Uuid;

use super::directory::everybody;
use super::script::{Script, decide, enter, offers, person, start};
use crate::absence::LINKS_MAX;
use crate::actor::{Actor, StandIn};
use crate::answer::{Plan, Principal};
use crate::command::Command;
use crate::eligibility::directory::{Directory, Substitution};
use crate::eligibility::{Judge, Work};
use crate::execution::ExecutionError;
use crate::instance::{Instance, Task, TaskStatus};
use crate::rejection::Rejection;

/// The initiator, somebody excluded, two of the crew, and two who are not.
const PEOPLE: [&str; 6] = ["ann", "eve", "bob", "cid", "dee", "eli"];
const CREW: [&str; 4] = ["ann", "eve", "bob", "cid"];

#[derive(Debug, Clone)]
struct PeopleStep {
    actor: usize,
    task: usize,
    action: usize,
    to: usize,
    /// Pairs of an absent person and their substitute.
    absences: Vec<(usize, usize)>,
}

fn step() -> impl Strategy<Value = PeopleStep> {
    let one = 0..PEOPLE.len();
    let absences = prop::collection::vec((one.clone(), one.clone()), 0..4);
    (one.clone(), 0..3_usize, 0..12_usize, one, absences).prop_map(
        |(actor, task, action, to, absences)| PeopleStep {
            actor,
            task,
            action,
            to,
            absences,
        },
    )
}

fn groups(id: &str) -> Vec<String> {
    let crew = CREW.contains(&id).then(|| "crew".to_owned());
    crew.into_iter().collect()
}

fn actor(step: &PeopleStep) -> Actor {
    let id = PEOPLE[step.actor];
    let stands_in_for = mine(step).into_iter().map(|(absent, _)| StandIn {
        person: PEOPLE[absent].into(),
        groups: groups(PEOPLE[absent]),
        definition: None,
        via: vec![],
    });
    Actor {
        groups: groups(id),
        stands_in_for: stands_in_for.collect(),
        ..person(id)
    }
}

/// The absences that name the step's actor.
fn mine(step: &PeopleStep) -> Vec<(usize, usize)> {
    let absences = step.absences.iter().copied();
    absences.filter(|(_, by)| *by == step.actor).collect()
}

fn command(step: &PeopleStep, task: &Task) -> Command {
    let (task, to, reason) = (task.id, PEOPLE[step.to].to_owned(), "so".to_owned());
    match step.action {
        0..=2 => Command::Claim { task },
        3..=5 => decide(task, "GO"),
        6..=8 => Command::Delegate { task, to, reason },
        9 => Command::Resolve { task },
        10 => Command::Reassign { task, to, reason },
        _ => Command::Release { task },
    }
}

/// Everybody who is said to have decided, or in whose name it was done.
fn named(instance: &Instance) -> Vec<BTreeSet<String>> {
    let tasks = instance
        .state_instances()
        .flat_map(|state_instance| &state_instance.tasks);
    let decided = tasks.filter_map(|task| task.decision().map(|decision| (task, decision)));
    decided
        .map(|(task, decision)| {
            let people = [Some(decision.actor.as_str()), task.owner()];
            let principal = decision.on_behalf_of.as_deref();
            let people = people.into_iter().chain([principal]).flatten();
            people.map(str::to_owned).collect()
        })
        .collect()
}

fn holds(instance: &Instance) {
    let decisions = named(instance);
    for (number, people) in decisions.iter().enumerate() {
        assert!(!people.contains("ann"), "own request: {people:?}");
        assert!(!people.contains("eve"), "excluded: {people:?}");
        for others in &decisions[..number] {
            assert!(people.is_disjoint(others), "twice: {people:?} {others:?}");
        }
    }
    for task in instance
        .state_instances()
        .flat_map(|state_instance| &state_instance.tasks)
    {
        if let TaskStatus::Claimed {
            owner, ownership, ..
        } = &task.status
        {
            let links = &ownership.delegations;
            assert!(links.len() <= super::super::DELEGATIONS_MAX);
            let mut chain: Vec<_> = links.iter().map(|link| &link.from).collect();
            assert!(links.last().is_none_or(|link| link.to == *owner));
            chain.push(owner);
            let distinct: BTreeSet<_> = chain.iter().collect();
            assert_eq!(distinct.len(), chain.len(), "a circle: {chain:?}");
        }
    }
}

fn flow() -> Script {
    let assign = |_: &str| {
        let mut assignment = offers(&["crew", "crew", "crew"]);
        assignment.exclude = vec!["eve".into()];
        let dee = Principal::User("dee".into());
        assignment.offers[2].candidates.push(dee);
        assignment
    };
    let plan = |_: &str, instance: &Instance| {
        let tasks = instance.active[0].tasks.iter();
        let left = tasks.filter(|task| task.status.is_open()).count();
        Ok(if left > 1 {
            Plan::default()
        } else {
            enter(&["Done"])
        })
    };
    Script::new()
        .assigning(assign)
        .planning(plan)
        .knowing(everybody)
}

/// Whether the explanation of eligibility says that this person may decide the task. It knows these absences.
fn is_eligible(
    person: usize,
    absences: &[(usize, usize)],
    instance: &Instance,
    task: &Task,
) -> bool {
    let mut directory = Directory {
        members: BTreeMap::from([("crew".to_owned(), CREW.map(str::to_owned).into())]),
        ..Directory::default()
    };
    for (absent, by) in absences {
        let absent = PEOPLE[*absent].to_owned();
        let one = Substitution {
            absence: Uuid::nil(),
            person: absent.clone(),
            substitute: PEOPLE[*by].to_owned(),
            definition: None,
        };
        directory.substitutions.entry(absent).or_default().push(one);
    }
    let work = Work::of(instance, &instance.active[0], task, false);
    let eligibility = Judge::of(&directory).judge(&work);
    eligibility.eligible.contains_key(PEOPLE[person])
}

/// The absent people for whom this person may act, also through others, the nearest first.
fn stand_ins(person: usize, absences: &[(usize, usize)]) -> Vec<StandIn> {
    let name = |person: &usize| PEOPLE[*person].to_owned();
    let (mut lines, mut found) = (vec![vec![person]], Vec::new());
    for _ in 0..LINKS_MAX {
        let mut longer = Vec::new();
        for line in &lines {
            for (absent, by) in absences {
                if line.last() == Some(by) && !line.contains(absent) {
                    longer.push([line.as_slice(), &[*absent]].concat());
                }
            }
        }
        lines = longer;
        for line in &lines {
            let (absent, between) = line[1..].split_last().expect("somebody is absent");
            found.push(StandIn {
                person: name(absent),
                groups: groups(PEOPLE[*absent]),
                definition: None,
                via: between.iter().map(name).collect(),
            });
        }
    }
    found
}

/// How many decisions were made in another's name.
fn walk(steps: &[PeopleStep]) -> usize {
    let mut script = flow();
    script.run("ann", &start()).expect("a start");
    for step in steps {
        let Some(state_instance) = script.instance().active.first() else {
            break;
        };
        let task = &state_instance.tasks[step.task];
        let command = command(step, task);
        let before = script.instance().clone();
        let may_decide = matches!(command, Command::Decide { .. })
            && task.status.is_open()
            && is_eligible(step.actor, &mine(step), &before, task);
        match script.run_as(&actor(step), &command) {
            Ok(_) => holds(script.instance()),
            Err(error) => {
                let forbids = matches!(
                    error,
                    ExecutionError::Rejected(Rejection::Forbidden(_) | Rejection::NotOwner { .. })
                );
                assert!(!may_decide || !forbids, "{step:?}: {error:?}");
                assert_eq!(script.instance(), &before);
            }
        }
    }
    let decisions = script
        .instance()
        .state_instances()
        .flat_map(|state_instance| &state_instance.tasks);
    let principals = decisions.filter_map(|task| task.decision()?.on_behalf_of.as_ref());
    principals.count()
}

fn runner() -> TestRunner {
    let same = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let config = Config {
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new_with_rng(config, same)
}

#[test]
fn no_way_around_leads_past_a_bar() {
    let for_others = Cell::new(0);
    let steps = prop::collection::vec(step(), 0..60);
    let result = runner().run(&steps, |steps| {
        for_others.set(for_others.get() + walk(&steps));
        Ok(())
    });
    result.unwrap_or_else(|failure| panic!("{failure}"));
    // A property that holds of nothing would hold as well.
    assert!(for_others.get() > 20, "{}", for_others.get());
}

/// Whoever stands in for others, also through others, may claim a task exactly if the explanation says so.
#[test]
fn a_chain_is_explained_as_it_is_judged() {
    let one = 0..PEOPLE.len();
    let absences = prop::collection::vec((one.clone(), one.clone()), 0..10);
    let (claimed, refused) = (Cell::new(0), Cell::new(0));
    let result = runner().run(
        &(one, absences, any::<bool>()),
        |(who, absences, decides)| {
            let mut script = flow();
            script.run("ann", &start()).expect("a start");
            if decides {
                let other = script.task(1);
                script.run("bob", &decide(other, "GO")).expect("a decision");
            }
            let task = script.instance().active[0].tasks[0].clone();
            let expected = is_eligible(who, &absences, script.instance(), &task);
            let actor = Actor {
                groups: groups(PEOPLE[who]),
                stands_in_for: stand_ins(who, &absences),
                ..person(PEOPLE[who])
            };
            let result = script.run_as(&actor, &Command::Claim { task: task.id });
            assert_eq!(result.is_ok(), expected, "{actor:?}: {result:?}");
            let count = if expected { &claimed } else { &refused };
            count.set(count.get() + 1);
            Ok(())
        },
    );
    result.unwrap_or_else(|failure| panic!("{failure}"));
    let counts = (claimed.get(), refused.get());
    assert!(counts.0 > 30 && counts.1 > 30, "{counts:?}");
}
