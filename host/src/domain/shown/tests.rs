//! What is shown, of instances with long histories and long texts; and instances as large as they may become.

use std::collections::BTreeMap;

use jiff::Timestamp;
use uuid::Uuid;

use super::*;
use crate::domain::answer::Principal;
use crate::domain::ids::{InstanceId, StateId, VersionRef};
use crate::domain::instance::{Entity, Holding, Status};
use crate::domain::json::Json;

/// Random numbers of a seed, and instances made of them.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed | 1)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % end
    }

    /// A name of up to so many bytes; mostly a short one.
    pub(crate) fn name(&mut self, bytes_max: usize) -> String {
        let end = if self.below(8) == 0 {
            bytes_max
        } else {
            bytes_max.min(40)
        };
        "n".repeat(1 + self.below(end))
    }

    fn id(&mut self) -> Uuid {
        Uuid::from_u128(self.below(1 << 30) as u128)
    }

    fn decision(&mut self, comment: usize, input: usize) -> Decision {
        Decision {
            outcome: self.name(64),
            actor: self.name(800),
            on_behalf_of: (self.below(3) == 0).then(|| self.name(800)),
            comment: (comment > 0).then(|| "c".repeat(comment)),
            input: input_of(input),
            decided_at: Timestamp::UNIX_EPOCH,
        }
    }

    fn status(&mut self) -> TaskStatus {
        let (claimed_at, owner) = (Timestamp::UNIX_EPOCH, self.name(100));
        match self.below(3) {
            0 => TaskStatus::Pending,
            1 => TaskStatus::Claimed {
                owner,
                claimed_at,
                holding: Holding::default(),
            },
            _ => TaskStatus::Cancelled {
                owner: (self.below(2) == 0).then_some(owner),
                cancelled_at: claimed_at,
                reason: None,
            },
        }
    }

    fn task(&mut self) -> Task {
        let candidates = (0..self.below(6)).map(|kind| match kind % 3 {
            0 => Principal::User(String::new()),
            1 => Principal::Group(String::new()),
            _ => Principal::ManagerOf(String::new()),
        });
        let mut candidates: Vec<_> = candidates.collect();
        for candidate in &mut candidates {
            let (Principal::User(id) | Principal::Group(id) | Principal::ManagerOf(id)) = candidate;
            *id = self.name(200);
        }
        Task {
            id: TaskId(self.id()),
            label: self.name(200),
            candidates,
            form: None,
            created_at: Timestamp::UNIX_EPOCH,
            due_at: Some(Timestamp::UNIX_EPOCH),
            deadlines: vec![],
            status: self.status(),
        }
    }

    fn stay(&mut self, tasks: usize) -> StateInstance {
        let (id, name) = (StateId(self.id()), self.name(64));
        StateInstance {
            due_at: Some(Timestamp::UNIX_EPOCH),
            predecessors: (0..self.below(4)).map(|_| StateId(self.id())).collect(),
            tasks: (0..tasks).map(|_| self.task()).collect(),
            ..StateInstance::new(id, &name, Timestamp::UNIX_EPOCH)
        }
    }

    /// An instance that nothing more can be added to.
    pub(crate) fn largest(&mut self) -> Instance {
        let mut instance = instance();
        instance.data = input_of(DATA_BYTES_MAX);
        let grow = |instance: &mut Instance, add: &mut dyn FnMut(&mut Instance)| loop {
            let before = instance.clone();
            add(instance);
            if check(instance).is_err() {
                *instance = before;
                return;
            }
        };
        grow(&mut instance, &mut |instance| {
            instance.requesters.push(self.name(800));
        });
        grow(&mut instance, &mut |instance| {
            let value = match self.below(3) {
                0 => AttributeValue::Text("t".repeat(self.below(2_000))),
                1 => AttributeValue::Bytes(vec![0; self.below(2_000)]),
                _ => AttributeValue::Boolean(false),
            };
            let name = format!("{}-{}", self.name(64), instance.attributes.len());
            instance.attributes.insert(name, value);
        });
        grow(&mut instance, &mut |instance| {
            let tasks = self.below(60);
            let stay = self.stay(tasks);
            if self.below(5) == 0 {
                instance.waiting.push(stay);
            } else {
                instance.active.push(stay);
            }
        });
        self.vote(&mut instance);
        for _ in 0..120 {
            let before = instance.clone();
            let tasks = self.below(12);
            let mut state = self.stay(tasks);
            for task in &mut state.tasks {
                let (comment, input) = (self.below(2_000), self.below(6_000));
                complete(task, self.decision(comment, input));
            }
            instance.past.push(PastState {
                state,
                left_at: Timestamp::UNIX_EPOCH,
                left_by: self.name(64),
                actor: Some(self.name(200)),
            });
            if check(&instance).is_err() {
                instance = before;
                break;
            }
        }
        instance
    }

    /// Most of what is open is decided, at such length as is let in.
    fn vote(&mut self, instance: &mut Instance) {
        let open = |task: &&mut Task| task.status.is_open();
        let count = instance.active.iter_mut().flat_map(|stay| &mut stay.tasks);
        for _ in 0..count.filter(open).count().saturating_sub(2) {
            let room = room(instance);
            let comment = self.below(2) * (room / 3).min(COMMENT_BYTES_MAX);
            let input = (room - comment).min(DATA_BYTES_MAX);
            let input = if input < 8 { 0 } else { input };
            let decision = self.decision(comment, input);
            let text = decision.comment.clone();
            check_decision(instance, text.as_deref(), decision.input.as_str()).expect("it fits");
            let before = instance.clone();
            let mut tasks = instance.active.iter_mut().flat_map(|stay| &mut stay.tasks);
            complete(tasks.find(open).expect("an open task"), decision);
            if check(instance).is_err() {
                *instance = before;
                return;
            }
        }
    }
}

/// An input of so many bytes; an empty one of none.
pub(crate) fn input_of(bytes: usize) -> Json {
    let text = if bytes < 8 {
        "{}".to_owned()
    } else {
        format!(r#"{{"x":"{}"}}"#, "x".repeat(bytes - 8))
    };
    Json::from_canonical(text)
}

fn complete(task: &mut Task, decision: Decision) {
    task.status = TaskStatus::Completed {
        owner: decision.actor.clone(),
        claimed_at: Timestamp::UNIX_EPOCH,
        decision,
    };
}

pub(crate) fn instance() -> Instance {
    let at = Timestamp::UNIX_EPOCH;
    Instance {
        id: InstanceId(Uuid::nil()),
        definition: VersionRef {
            key: "k".repeat(64),
            version: 1,
        },
        revision: 1,
        entity: Entity {
            kind: "e".repeat(200),
            id: "é".repeat(200),
        },
        initiator: "i".repeat(200),
        requesters: vec![],
        status: Status::Running,
        started_at: at,
        updated_at: at,
        predecessor: Some(InstanceId(Uuid::nil())),
        parent: Some(InstanceId(Uuid::nil())),
        data: Json::empty(),
        attributes: BTreeMap::new(),
        active: vec![],
        waiting: vec![],
        past: vec![],
        early: vec![],
    }
}

/// States left in this order, in each of which somebody decided, saying so much.
fn past(said: &[usize]) -> Instance {
    let mut instance = instance();
    for (number, bytes) in said.iter().enumerate() {
        let id = Uuid::from_u128(number as u128);
        let decision = Decision {
            outcome: "GO".into(),
            actor: format!("person-{number}"),
            on_behalf_of: None,
            comment: None,
            input: input_of(*bytes),
            decided_at: Timestamp::UNIX_EPOCH,
        };
        let mut task = Dice::new(1).task();
        (task.id, task.candidates, task.label) = (TaskId(id), vec![], String::new());
        complete(&mut task, decision);
        let mut state = StateInstance::new(StateId(id), "Work", Timestamp::UNIX_EPOCH);
        state.tasks = vec![task];
        instance.past.push(PastState {
            state,
            left_at: Timestamp::UNIX_EPOCH,
            left_by: "GO".into(),
            actor: None,
        });
    }
    instance
}

/// The numbers of the decisions whose texts are told.
fn told(instance: &Instance) -> Vec<u128> {
    let shown = Shown::of(instance);
    let tasks = shown.past.iter().flat_map(|past| &past.state.tasks);
    let told = tasks.filter(|task| shown.tells(task.id));
    told.map(|task| task.id.0.as_u128()).collect()
}

#[test]
fn who_decided_is_told_of_every_state() {
    let instance = past(&[60_000; 150]);
    let names: Vec<_> = deciders(&instance)
        .map(|decider| decider.decision.actor.clone())
        .collect();
    let all: Vec<_> = (0..150).map(|number| format!("person-{number}")).collect();
    assert_eq!(names, all);
    let shown = Shown::of(&instance);
    assert_eq!(shown.past.len(), 100);
    let omitted = Omitted {
        texts: 149,
        states: 50,
    };
    assert_eq!(shown.omitted, omitted);
    assert_eq!(told(&instance), [149]);
}

#[test]
fn whoever_writes_much_hides_nobody_elses_words() {
    // A long text after and before short ones goes; the short ones stay, however old.
    assert_eq!(told(&past(&[100, 200, 50_000, 300, 60_000])), [0, 1, 2, 3]);
    assert_eq!(told(&past(&[60_000, 100, 50_000])), [1, 2]);
    // Of equal ones the older go.
    assert_eq!(told(&past(&[30_000, 30_000, 30_000])), [1, 2]);
    assert_eq!(told(&past(&[65_536, 0])), [0, 1]);
    assert_eq!(Shown::of(&past(&[10, 20])).omitted, Omitted::default());
}

#[test]
fn an_instance_takes_so_many_decisions() {
    let count = |instance: &Instance| check_decision(instance, None, "{}");
    assert_eq!(count(&past(&[0; 500])), Ok(()));
    let full = count(&past(&[0; 700])).expect_err("too many");
    assert_eq!(full.code(), "limit_reached");
    assert!(check(&past(&[0; 700])).is_err());
}

#[test]
fn what_all_decisions_say_has_an_end_too() {
    let mut instance = past(&[80_000; 50]);
    let said = |instance: &Instance, bytes: usize| {
        check_decision(instance, None, input_of(bytes).as_str())
    };
    assert!(said(&instance, 12_000).is_ok());
    assert!(said(&instance, 30_000).is_err());
    instance.past.extend(past(&[80_000; 4]).past);
    assert_eq!(said(&instance, 0), Ok(()));
    assert!(said(&instance, 1_000).is_err());
}

#[test]
fn nobody_acts_with_more_groups_than_can_be_told() {
    let mut actor = Actor::host();
    actor.groups = vec!["g".repeat(100); 400];
    assert_eq!(check_actor(&actor), Ok(()));
    actor.permissions = vec!["p".repeat(100); 100];
    let refused = check_actor(&actor).expect_err("too many");
    assert_eq!(refused.code(), "limit_reached");
}
