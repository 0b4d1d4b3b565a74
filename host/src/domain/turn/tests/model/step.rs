//! Random steps of a walk: changes of the directory, then a command by somebody.

use proptest::prelude::*;
use uuid::Uuid;

use super::book::Book;
use super::flow::TRIGGERS;
use super::world::{Change, PEOPLE, World, change};
use crate::domain::actor::Actor;
use crate::domain::command::{Command, Lineage};
use crate::domain::ids::TaskId;
use crate::domain::instance::{Entity, Instance, StateInstance, Status, Task, TaskStatus};
use crate::domain::json::Json;

#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) changes: Vec<Change>,
    /// The host looks again at once who is able to act, as it does soon after each change.
    pub(super) rechecked: bool,
    who: Who,
    /// What suits the moment, rather than anything.
    apt: bool,
    verb: usize,
    pub(super) task: usize,
    pub(super) to: usize,
    pub(super) outcome: usize,
    pub(super) whims: Vec<u8>,
}

/// What a step can see of where it is taken.
pub(super) struct Sight<'a> {
    pub(super) instance: &'a Instance,
    pub(super) book: &'a Book,
    pub(super) world: &'a World,
    /// So many steps were taken before.
    pub(super) number: usize,
}

#[derive(Debug, Clone, Copy)]
enum Verb {
    Claim,
    Release,
    Decide,
    Delegate,
    Resolve,
    Reassign,
    Reset,
    Cancel,
    Suspend,
    Resume,
    Recheck,
    Deadline,
    Restart,
    Signal,
    ChildEnds,
    ChildStarts,
    Migrate,
}

use Verb::{
    Cancel, ChildEnds, ChildStarts, Claim, Deadline, Decide, Delegate, Migrate, Reassign, Recheck,
    Release, Reset, Resolve, Restart, Resume, Signal, Suspend,
};

const ANYTHING: [Verb; 24] = [
    Claim,
    Claim,
    Release,
    Decide,
    Decide,
    Delegate,
    Delegate,
    Resolve,
    Reassign,
    Reset,
    Suspend,
    Resume,
    Recheck,
    Deadline,
    Deadline,
    Cancel,
    Restart,
    Signal,
    Signal,
    Signal,
    ChildEnds,
    ChildStarts,
    Migrate,
    Migrate,
];
/// Where nobody works.
const TO_WAITS: [Verb; 8] = [
    Signal,
    Signal,
    Signal,
    ChildEnds,
    ChildEnds,
    Deadline,
    ChildStarts,
    Migrate,
];
const TO_CANDIDATES: [Verb; 8] = [Claim, Claim, Claim, Claim, Claim, Claim, Reassign, Deadline];
const TO_OWNERS: [Verb; 12] = [
    Decide, Decide, Decide, Decide, Decide, Decide, Delegate, Delegate, Delegate, Deadline,
    Release, Reassign,
];
const TO_DELEGATES: [Verb; 8] = [
    Decide, Decide, Decide, Delegate, Delegate, Delegate, Resolve, Resolve,
];

#[derive(Debug, Clone)]
enum Who {
    Anybody(usize),
    Owner,
    /// Somebody whom the task is offered to, from this person on.
    Candidate(usize),
    /// Whoever stands in for the owner, else for a candidate.
    Substitute(usize),
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let who = prop_oneof![
        2 => (0..PEOPLE.len()).prop_map(Who::Anybody),
        8 => Just(Who::Owner),
        2 => (0..PEOPLE.len()).prop_map(Who::Candidate),
        3 => (0..PEOPLE.len()).prop_map(Who::Substitute),
    ];
    let changes = prop_oneof![3 => Just(vec![]), 1 => prop::collection::vec(change(), 1..4)];
    (
        (changes, prop::bool::weighted(0.7)),
        (who, prop::bool::weighted(0.75), 0..240_usize),
        (0..20_usize, 0..40_usize, 0..12_usize),
        prop::collection::vec(any::<u8>(), 0..28),
    )
        .prop_map(
            |((changes, rechecked), (who, apt, verb), (task, to, outcome), whims)| Step {
                changes,
                rechecked,
                who,
                apt,
                verb,
                task,
                to,
                outcome,
                whims,
            },
        )
}

impl Step {
    /// Whether a child's parent does not wait for it any more.
    pub(super) fn ends_child(&self) -> bool {
        self.apt && self.outcome == 9
    }

    /// What it comes to, as things stand.
    pub(super) fn command(&self, sight: &Sight<'_>) -> (Actor, Command) {
        let Sight {
            instance, world, ..
        } = *sight;
        let task = self.task(instance);
        let actor = world.actor(&self.actor(task, world));
        let id = task.map_or(TaskId(Uuid::nil()), |task| task.id);
        let (to, reason) = (self.to(), self.reason());
        let instance_id = instance.id;
        let command = match self.verb(instance, task) {
            Claim => Command::Claim { task: id },
            Release => Command::Release { task: id },
            Decide => Command::Decide {
                task: id,
                outcome: self.outcome(),
                comment: None,
                input: Json::empty(),
            },
            Delegate => Command::Delegate {
                task: id,
                to,
                reason,
            },
            Resolve => Command::Resolve { task: id },
            Reassign => Command::Reassign {
                task: id,
                to,
                reason,
            },
            Reset => Command::Reset { task: id, reason },
            Cancel if self.to < 20 => Command::Cancel {
                instance: instance_id,
                reason,
            },
            Suspend => Command::Suspend {
                instance: instance_id,
                reason,
            },
            Resume => Command::Resume {
                instance: instance_id,
            },
            Restart if instance.status.ended_at().is_some() => self.start(Some(instance)),
            Recheck | Restart => Command::Recheck {
                instance: instance_id,
            },
            Signal => self.signal(sight),
            ChildEnds => self.child_ends(sight),
            ChildStarts => self.child_starts(sight),
            Migrate => self.migrate(sight),
            Deadline | Cancel => self.deadline(instance),
        };
        let by_host = match &command {
            Command::Start { lineage, .. } => {
                lineage.as_ref().is_some_and(|line| line.parent.is_some())
            }
            _ => command.permission() == "host:act",
        };
        (if by_host { Actor::host() } else { actor }, command)
    }

    fn verb(&self, instance: &Instance, task: Option<&Task>) -> Verb {
        let apt: &[Verb] = match (&instance.status, task.map(|task| &task.status)) {
            _ if !self.apt => &ANYTHING,
            (Status::Suspended { .. }, _) => &[Resume],
            (Status::Completed { .. } | Status::Cancelled { .. }, _) => &[Restart],
            _ if self.verb.is_multiple_of(5) => &TO_WAITS,
            (_, Some(TaskStatus::Pending)) => &TO_CANDIDATES,
            (_, Some(TaskStatus::Claimed { holding, .. })) if holding.delegations.is_empty() => {
                &TO_OWNERS
            }
            (_, Some(TaskStatus::Claimed { .. })) => &TO_DELEGATES,
            _ => &TO_WAITS,
        };
        apt[self.verb % apt.len()]
    }

    /// A start by somebody, at times for somebody else, at times of a line.
    pub(super) fn start(&self, after: Option<&Instance>) -> Command {
        let other = PEOPLE[self.task % PEOPLE.len()].to_owned();
        let lineage = Lineage {
            id: None,
            initiator: (self.to % 4 == 1).then(|| other.clone()),
            predecessor: after.map(|instance| instance.id),
            parent: None,
            requesters: after.map_or_else(|| vec![other], |instance| instance.requesters.clone()),
        };
        Command::Start {
            definition: "errands".into(),
            entity: Entity {
                kind: "errand".into(),
                id: "1".into(),
            },
            data: Json::parse(r#"{"title":"A plan"}"#).expect("JSON"),
            lineage: (after.is_some() || self.to.is_multiple_of(3)).then(|| Box::new(lineage)),
        }
    }

    /// Mostly an open task.
    fn task<'a>(&self, instance: &'a Instance) -> Option<&'a Task> {
        let tasks = || instance.stays().flat_map(|stay| &stay.tasks);
        let is_open = |task: &&Task| task.status.is_open();
        let mut wanted: Vec<_> = tasks().filter(is_open).collect();
        if wanted.is_empty() || self.task >= 18 {
            wanted = tasks().collect();
        }
        let place = self.task.checked_rem(wanted.len())?;
        Some(wanted[place])
    }

    fn actor(&self, task: Option<&Task>, world: &World) -> String {
        let offered = |from: usize| {
            let task = task?;
            let mut people = PEOPLE.iter().cycle().skip(from).take(PEOPLE.len());
            people.find(|person| world.is_offered(&task.candidates, person))
        };
        let owner = task.and_then(Task::owner);
        let found = match &self.who {
            Who::Anybody(person) => Some(PEOPLE[*person]),
            Who::Owner => owner.or_else(|| offered(self.to % PEOPLE.len()).copied()),
            Who::Candidate(from) => offered(*from).copied(),
            Who::Substitute(from) => {
                let absent = owner.or_else(|| offered(*from).copied());
                absent.and_then(|absent| world.substitute(absent))
            }
        };
        found.unwrap_or(PEOPLE[self.to % PEOPLE.len()]).to_owned()
    }

    fn outcome(&self) -> String {
        match self.outcome {
            0..=6 => TRIGGERS[0],
            7..=9 => TRIGGERS[1],
            10 => TRIGGERS[2],
            _ => "ON",
        }
        .to_owned()
    }

    fn to(&self) -> String {
        match self.to {
            38 => "zed".to_owned(),
            39 => String::new(),
            number => PEOPLE[number % PEOPLE.len()].to_owned(),
        }
    }

    fn reason(&self) -> String {
        if self.outcome == 11 { " " } else { "so" }.to_owned()
    }

    /// One of those open, at times one that was put off meanwhile.
    fn deadline(&self, instance: &Instance) -> Command {
        let of_tasks = |stay: &StateInstance| {
            let open = stay.tasks.iter().flat_map(|task| task.deadlines.clone());
            stay.deadlines
                .iter()
                .cloned()
                .chain(open)
                .collect::<Vec<_>>()
        };
        let open: Vec<_> = instance.active.iter().flat_map(of_tasks).collect();
        let Some(place) = self.task.checked_rem(open.len()) else {
            return Command::Recheck {
                instance: instance.id,
            };
        };
        let deadline = &open[place];
        let stale = jiff::SignedDuration::from_secs(i64::from(self.outcome == 11));
        Command::Deadline {
            instance: instance.id,
            deadline: deadline.id,
            due_at: deadline.due_at.checked_sub(stale).expect("a time"),
        }
    }
}
