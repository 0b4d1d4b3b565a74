//! Random steps of a walk: changes of the directory, then a command by somebody.

use proptest::prelude::*;
use uuid::Uuid;

use super::flow::TRIGGERS;
use super::ledger::Ledger;
use super::world::{Change, PEOPLE, World, change};
use crate::actor::Actor;
use crate::command::{Command, Lineage};
use crate::ids::TaskId;
use crate::instance::{Entity, Instance, StateInstance, Status, Task, TaskStatus};
use crate::json::Json;

#[derive(Debug, Clone)]
pub(super) struct ModelStep {
    pub(super) changes: Vec<Change>,
    /// A reassessment follows at once, as it does soon after each change in production.
    pub(super) reassessed: bool,
    who: Who,
    /// Steps that are likely to be allowed, rather than any step.
    apt: bool,
    verb: usize,
    pub(super) task: usize,
    pub(super) to: usize,
    pub(super) outcome: usize,
    pub(super) choices: Vec<u8>,
}

/// The context of a step.
pub(super) struct View<'a> {
    pub(super) instance: &'a Instance,
    pub(super) ledger: &'a Ledger,
    pub(super) world: &'a World,
    /// The number of earlier steps.
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
    SuspendTask,
    ResumeTask,
    Cancel,
    Comment,
    Suspend,
    Resume,
    Reassessment,
    Deadline,
    Restart,
    Signal,
    ChildEnds,
    ChildStarts,
    Migrate,
}

use Verb::{
    Cancel, ChildEnds, ChildStarts, Claim, Comment, Deadline, Decide, Delegate, Migrate,
    Reassessment, Reassign, Release, Reset, Resolve, Restart, Resume, ResumeTask, Signal, Suspend,
    SuspendTask,
};

const ANYTHING: [Verb; 27] = [
    SuspendTask,
    ResumeTask,
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
    Comment,
    Suspend,
    Resume,
    Reassessment,
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
const TO_CANDIDATES: [Verb; 8] = [
    Claim, Claim, Claim, Claim, Decide, Decide, Reassign, Deadline,
];
const TO_OWNERS: [Verb; 13] = [
    SuspendTask,
    Decide,
    Decide,
    Decide,
    Decide,
    Decide,
    Decide,
    Delegate,
    Delegate,
    Delegate,
    Deadline,
    Release,
    Reassign,
];
const TO_SUSPENDED: [Verb; 6] = [ResumeTask, ResumeTask, ResumeTask, Deadline, Decide, Reset];
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

pub(super) fn step() -> impl Strategy<Value = ModelStep> {
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
            |((changes, reassessed), (who, apt, verb), (task, to, outcome), choices)| ModelStep {
                changes,
                reassessed,
                who,
                apt,
                verb,
                task,
                to,
                outcome,
                choices,
            },
        )
}

impl ModelStep {
    /// Whether a child's parent does not wait for it any more.
    pub(super) fn ends_child(&self) -> bool {
        self.apt && self.outcome == 9
    }

    /// The command for the current state.
    pub(super) fn command(&self, view: &View<'_>) -> (Actor, Command) {
        let View {
            instance, world, ..
        } = *view;
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
            SuspendTask => Command::SuspendTask {
                task: id,
                reason: (self.outcome != 10).then_some(reason),
                until: self.until(instance),
            },
            ResumeTask => Command::ResumeTask { task: id },
            Cancel if self.to < 20 => Command::Cancel {
                instance: instance_id,
                reason,
            },
            Comment => Command::Comment {
                instance: instance_id,
                comment: reason,
                mentions: vec![to],
            },
            Suspend => Command::Suspend {
                instance: instance_id,
                reason,
            },
            Resume => Command::Resume {
                instance: instance_id,
            },
            Restart if instance.status.ended_at().is_some() => self.start(Some(instance)),
            Reassessment | Restart => Command::Reassessment {
                instance: instance_id,
            },
            Signal => self.signal(view),
            ChildEnds => self.child_ends(view),
            ChildStarts => self.child_starts(view),
            Migrate => self.migrate(view),
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
            _ if task.is_some_and(|task| task.suspended.is_some()) => &TO_SUSPENDED,
            (_, Some(TaskStatus::Pending)) => &TO_CANDIDATES,
            (_, Some(TaskStatus::Claimed { ownership, .. }))
                if ownership.delegations.is_empty() =>
            {
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
            definition: "subflows".into(),
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
        let tasks = || {
            instance
                .state_instances()
                .flat_map(|state_instance| &state_instance.tasks)
        };
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

    /// When the host resumes a task: soon, never by itself, or in the past.
    fn until(&self, instance: &Instance) -> Option<jiff::Timestamp> {
        let seconds = [None, Some(100_000), Some(-1)][self.to % 3]?;
        let until = instance.updated_at + jiff::SignedDuration::from_secs(seconds);
        Some(until)
    }

    /// An open deadline, sometimes with a time from before it was postponed.
    fn deadline(&self, instance: &Instance) -> Command {
        let of_tasks = |state_instance: &StateInstance| {
            let tasks = || state_instance.tasks.iter();
            let open = tasks().flat_map(|task| task.deadlines.clone());
            let open = state_instance.deadlines.iter().cloned().chain(open);
            open.filter_map(|deadline| Some((deadline.id, deadline.due_at?)))
                .chain(tasks().filter_map(Task::resumption))
                .collect::<Vec<_>>()
        };
        let open: Vec<_> = instance.active.iter().flat_map(of_tasks).collect();
        let Some(place) = self.task.checked_rem(open.len()) else {
            return Command::Reassessment {
                instance: instance.id,
            };
        };
        let (deadline, due_at) = open[place];
        let stale = jiff::SignedDuration::from_secs(i64::from(self.outcome == 11));
        Command::Deadline {
            instance: instance.id,
            deadline,
            due_at: due_at.checked_sub(stale).expect("a time"),
        }
    }
}
