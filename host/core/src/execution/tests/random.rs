//! Random commands and random answers: the host's rules hold for everything that was executed.

use std::cell::RefCell;
use std::rc::Rc;

use proptest::prelude::*;

use super::script::{Script, decide, enter, offers, start};
use crate::answer::{Plan, Principal};
use crate::apply::{Stamp, apply};
use crate::command::Command;
use crate::execution::{ExecutionError, Outcome};
use crate::instance::{Instance, PastState, TaskStatus};

const PEOPLE: [&str; 4] = ["ann", "bob", "cid", "dan"];
const STATES: [&str; 6] = ["Review", "Other", "Rework", "Hop", "Done", "Unreached"];

#[derive(Debug, Clone)]
struct RandomStep {
    person: usize,
    task: usize,
    action: usize,
    /// What the plan enters; none lets the state go on.
    enter: Option<Vec<usize>>,
    offers: usize,
    owner: Option<usize>,
    excluded: Option<usize>,
}

fn step() -> impl Strategy<Value = RandomStep> {
    let person = 0..PEOPLE.len();
    (
        (person.clone(), 0..4_usize, 0..10_usize),
        prop::option::weighted(0.9, prop::collection::vec(0..STATES.len(), 0..3)),
        1..4_usize,
        prop::option::weighted(0.2, person.clone()),
        prop::option::weighted(0.2, person),
    )
        .prop_map(
            |((person, task, action), enter, offers, owner, excluded)| RandomStep {
                person,
                task,
                action,
                enter,
                offers,
                owner,
                excluded,
            },
        )
}

/// A flow that answers as the current step says.
fn flow(current: &Rc<RefCell<Option<RandomStep>>>) -> Script {
    let (planning, assigning) = (current.clone(), current.clone());
    let plan = move |state: &str, _: &Instance| {
        let step = planning.borrow();
        let wanted = step.as_ref().and_then(|step| step.enter.as_ref());
        Ok(match wanted {
            None => Plan::default(),
            // A router that leads to itself would never end.
            Some(_) if state == "Hop" => enter(&["Review"]),
            Some(states) => enter(
                &states
                    .iter()
                    .map(|state| STATES[*state])
                    .collect::<Vec<_>>(),
            ),
        })
    };
    let assign = move |state: &str| {
        let step = assigning.borrow();
        let Some(step) = step.as_ref() else {
            return offers(&["crew"]);
        };
        let mut assignment = offers(&vec!["crew"; step.offers]);
        if state == "Rework" {
            assignment
                .offers
                .iter_mut()
                .for_each(|offer| offer.candidates = vec![Principal::User("ann".into())]);
        } else {
            assignment.offers[0].owner = step.owner.map(|person| PEOPLE[person].to_owned());
            assignment.exclude = step
                .excluded
                .map(|person| PEOPLE[person].to_owned())
                .into_iter()
                .collect();
        }
        assignment
    };
    Script::new().planning(plan).assigning(assign)
}

fn attempt(
    script: &mut Script,
    step: &RandomStep,
) -> Option<(String, Result<Outcome, ExecutionError>)> {
    let person = PEOPLE[step.person];
    let instance = script.instance();
    let tasks: Vec<_> = instance
        .state_instances()
        .flat_map(|state_instance| &state_instance.tasks)
        .collect();
    let open: Vec<_> = tasks.iter().filter(|task| task.status.is_open()).collect();
    let task = match open.get(step.task % open.len().max(1)) {
        Some(task) => (**task).clone(),
        None => (*tasks.last()?).clone(),
    };
    let owner = task.owner().unwrap_or(person).to_owned();
    let (actor, command) = match step.action {
        0..=3 => (person.to_owned(), Command::Claim { task: task.id }),
        4 => (owner, Command::Release { task: task.id }),
        5..=7 => (owner, decide(task.id, "GO")),
        8 => (person.to_owned(), decide(task.id, "GO")),
        _ if step.task == 0 => (
            person.to_owned(),
            Command::Cancel {
                instance: instance.id,
                reason: "late".into(),
            },
        ),
        _ => (person.to_owned(), Command::Release { task: task.id }),
    };
    let result = script.run(&actor, &command);
    Some((actor, result))
}

/// The events on top of the instance before them, folded one by one.
fn folded(before: Option<Instance>, outcome: &Outcome, actor: &str) -> Option<Instance> {
    outcome.events.iter().fold(before, |instance, event| {
        let after = &outcome.instance;
        let stamp = Stamp {
            instance: after.id,
            revision: after.revision,
            at: after.updated_at,
            actor: Some(actor),
        };
        Some(apply(instance, event, stamp).expect("an event that can follow"))
    })
}

fn holds(instance: &Instance) {
    let ended = instance.status.ended_at().is_some();
    assert_eq!(
        instance.active.is_empty(),
        ended,
        "work is active until the end"
    );
    for past in &instance.past {
        assert!(
            past.state.tasks.iter().all(|task| !task.status.is_open()),
            "no open task in the past"
        );
    }
    assert!(
        instance.past.is_sorted_by_key(PastState::order),
        "the past is in order"
    );
    for state_instance in instance.state_instances() {
        let mut deciders = Vec::new();
        for task in &state_instance.tasks {
            if let TaskStatus::Completed {
                owner, decision, ..
            } = &task.status
            {
                assert_eq!(owner, &decision.actor, "the owner decided");
                assert!(
                    state_instance.name == "Rework" || !instance.requesters.contains(owner),
                    "no requester decided"
                );
                assert!(
                    !state_instance.exclude.contains(owner),
                    "nobody excluded decided"
                );
                assert!(
                    !deciders.contains(owner),
                    "nobody decided twice in a state instance"
                );
                deciders.push(owner.clone());
            }
        }
    }
}

proptest! {
    #[test]
    fn the_hosts_rules_hold_whatever_is_tried(steps in prop::collection::vec(step(), 0..40)) {
        let current = Rc::new(RefCell::new(None));
        let mut script = flow(&current);
        script.run("ann", &start()).expect("a start");
        for step in steps {
            let before = script.instance().clone();
            current.replace(Some(step.clone()));
            let Some((actor, result)) = attempt(&mut script, &step) else { continue };
            if let Ok(outcome) = result {
                    if outcome.events.is_empty() {
                        // Whoever has a task claims it again.
                        prop_assert!(step.action <= 3);
                        prop_assert_eq!(outcome.instance, before);
                        continue;
                    }
                    prop_assert_eq!(outcome.instance.revision, before.revision + 1);
                    prop_assert_eq!(folded(Some(before), &outcome, &actor), Some(outcome.instance.clone()));
                    holds(&outcome.instance);
            } else {
                prop_assert_eq!(script.instance(), &before);
            }
        }
    }
}
