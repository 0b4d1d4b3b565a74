//! Instances for tests, as large as they may become.

use std::collections::BTreeMap;

use jiff::Timestamp;
use uuid::Uuid;

use super::{
    AttributeValue, COMMENT_BYTES_MAX, DATA_BYTES_MAX, Decision, Instance, PastState,
    StateInstance, Task, TaskId, TaskStatus, check, check_decision, room,
};
use crate::ids::{InstanceId, StateId, VersionRef};
use crate::instance::{Candidate, Entity, Ownership, Status};
use crate::json::Json;
use crate::template::Labels;

/// Random numbers of a seed, and instances made of them.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed | 1)
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % end
    }

    /// A name of up to `bytes_max` bytes; usually a short one.
    pub fn name(&mut self, bytes_max: usize) -> String {
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
                ownership: Ownership::default(),
            },
            _ => TaskStatus::Cancelled {
                owner: (self.below(2) == 0).then_some(owner),
                cancelled_at: claimed_at,
                reason: None,
            },
        }
    }

    pub(super) fn task(&mut self) -> Task {
        let candidates = (0..self.below(6)).map(|kind| match kind % 3 {
            0 => Candidate::User(String::new()),
            1 => Candidate::Group(String::new()),
            _ => Candidate::Member {
                person: String::new(),
                group: String::new(),
            },
        });
        let mut candidates: Vec<_> = candidates.collect();
        for candidate in &mut candidates {
            let name = self.name(200);
            match candidate {
                Candidate::User(id) | Candidate::Group(id) => *id = name,
                Candidate::Member { person, group } => (*person, *group) = (name.clone(), name),
            }
        }
        Task {
            id: TaskId(self.id()),
            label: self.name(200),
            candidates,
            created_at: Timestamp::UNIX_EPOCH,
            due_at: Some(Timestamp::UNIX_EPOCH),
            deadlines: vec![],
            suspended: None,
            status: self.status(),
        }
    }

    fn state_instance(&mut self, tasks: usize) -> StateInstance {
        let (id, name) = (StateId(self.id()), self.name(64));
        StateInstance {
            due_at: Some(Timestamp::UNIX_EPOCH),
            predecessors: (0..self.below(4)).map(|_| StateId(self.id())).collect(),
            tasks: (0..tasks).map(|_| self.task()).collect(),
            key: (self.below(2) == 0).then(|| self.name(200)),
            data: (self.below(4) == 0).then(|| input_of(self.below(2_000))),
            ..StateInstance::new(id, &name, Timestamp::UNIX_EPOCH)
        }
    }

    /// An instance that nothing more can be added to.
    pub fn largest(&mut self) -> Instance {
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
            let state_instance = self.state_instance(tasks);
            if self.below(5) == 0 {
                instance.waiting.push(state_instance);
            } else {
                instance.active.push(state_instance);
            }
        });
        self.vote(&mut instance);
        for _ in 0..120 {
            let before = instance.clone();
            let tasks = self.below(12);
            let mut state = self.state_instance(tasks);
            for task in &mut state.tasks {
                let (comment, input) = (self.below(2_000), self.below(6_000));
                complete(task, self.decision(comment, input));
            }
            instance.past.push(PastState {
                state,
                left_at: Timestamp::UNIX_EPOCH,
                left_trigger: self.name(64),
                actor: Some(self.name(200)),
            });
            if check(&instance).is_err() {
                instance = before;
                break;
            }
        }
        instance
    }

    /// Decides most open tasks, with the longest allowed comments and inputs.
    fn vote(&mut self, instance: &mut Instance) {
        let open = |task: &&mut Task| task.status.is_open();
        let count = instance
            .active
            .iter_mut()
            .flat_map(|state_instance| &mut state_instance.tasks);
        for _ in 0..count.filter(open).count().saturating_sub(2) {
            let room = room(instance);
            let comment = self.below(2) * (room / 3).min(COMMENT_BYTES_MAX);
            let input = (room - comment).min(DATA_BYTES_MAX);
            let input = if input < 8 { 0 } else { input };
            let decision = self.decision(comment, input);
            let text = decision.comment.clone();
            let input = decision.input.as_str();
            check_decision(instance, text.as_deref(), input).expect("it fits");
            let before = instance.clone();
            let mut tasks = instance
                .active
                .iter_mut()
                .flat_map(|state_instance| &mut state_instance.tasks);
            complete(tasks.find(open).expect("an open task"), decision);
            if check(instance).is_err() {
                *instance = before;
                return;
            }
        }
    }
}

/// An input of this many bytes.
pub fn input_of(bytes: usize) -> Json {
    let text = if bytes < 8 {
        "{}".to_owned()
    } else {
        format!(r#"{{"x":"{}"}}"#, "x".repeat(bytes - 8))
    };
    Json::from_canonical(text)
}

pub(super) fn complete(task: &mut Task, decision: Decision) {
    task.status = TaskStatus::Completed {
        owner: decision.actor.clone(),
        claimed_at: Timestamp::UNIX_EPOCH,
        decision,
    };
}

pub(super) fn instance() -> Instance {
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
        labels: Labels::default(),
        sole: false,
        observers: None,
        attributes: BTreeMap::new(),
        active: vec![],
        waiting: vec![],
        past: vec![],
        buffered: vec![],
    }
}
