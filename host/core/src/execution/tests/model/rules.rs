//! A second implementation of who may do what. It reads the model's ledger and world, not the instance.

use super::ledger::{Checked, Hand, Ledger, Life, Work, ensure};
use super::world::{PEOPLE, World};
use crate::command::Command;
use crate::execution::{ExecutionError, Outcome};
use crate::graph::FiredBy;
use crate::ids::TaskId;
use crate::instance::Instance;
use crate::rejection::Rejection;

/// A command of somebody, with the world and the ledger.
pub(super) struct AttemptedCommand<'a> {
    pub(super) ledger: &'a Ledger,
    pub(super) world: &'a World,
    pub(super) actor: &'a str,
    /// For what a wait was told when it began.
    pub(super) instance: &'a Instance,
}

/// Who acts for whom: for themselves, and outside of own work for those absent. Nobody who is excluded is between them.
fn acts_for(ledger: &Ledger, world: &World, work: &Work, (actor, person): (&str, &str)) -> bool {
    let state_instance = work.state_instance;
    let is_open = |between: Vec<&str>| {
        let mut between = between.into_iter();
        !between.any(|one| ledger.is_excluded_by_rule(state_instance, one))
    };
    let own_work = ledger.is_own_work(state_instance);
    person == actor || (!own_work && world.between(actor, person).is_some_and(is_open))
}

/// Whether a claim still holds: the owner, or the absent person for whom the owner may act, is offered the task and may decide it.
pub(super) fn is_entitled(ledger: &Ledger, world: &World, work: &Work, hand: &Hand) -> bool {
    let is_excluded = |person: &String| ledger.excluded_people(work.state_instance, person);
    let rights = [Some(&hand.owner), hand.absent.as_ref()];
    let mut rights = rights.into_iter().flatten();
    !is_excluded(&hand.owner)
        && rights.any(|person| {
            acts_for(ledger, world, work, (hand.owner.as_str(), person.as_str()))
                && world.is_offered(&work.offered, person)
                && !is_excluded(person)
        })
}

pub(super) fn may_start(ledger: &Ledger, world: &World, actor: &str) -> Checked {
    let groups = &ledger.graphs[0].initiators;
    let is_in = groups.iter().any(|group| world.is_in(actor, group));
    ensure(groups.is_empty() || is_in, || {
        format!("{actor} starts nothing")
    })
}

/// The rules must permit an executed command and forbid a refused one.
/// Whether an instance that does not run takes the command.
pub(super) fn is_taken_at_rest(command: &Command) -> bool {
    matches!(
        command,
        Command::Resume { .. }
            | Command::Cancel { .. }
            | Command::Comment { .. }
            | Command::Migrate { .. }
    )
}

pub(super) fn judge(permitted: Checked, result: &Result<Outcome, ExecutionError>) -> Checked {
    match (permitted, result) {
        (Err(why), Ok(_)) => Err(format!("done, though {why}")),
        (Err(why), Err(ExecutionError::Fault(fault))) => {
            Err(format!("asked, though {why}: {fault}"))
        }
        (Ok(()), Err(ExecutionError::Rejected(rejection)))
            if !matches!(rejection, Rejection::RefusedNow(_)) =>
        {
            Err(format!("refused for nothing: {rejection}"))
        }
        _ => Ok(()),
    }
}

fn at_work(work: &Work) -> Checked {
    ensure(!work.suspended, || "it is suspended".into())
}

impl AttemptedCommand<'_> {
    /// Whether the rules let it happen.
    pub(super) fn permitted(&self, command: &Command) -> Checked {
        let life = self.ledger.life;
        let suspended = || "it is suspended".to_owned();
        match command {
            Command::Reassessment { .. } => return Ok(()),
            Command::Comment {
                comment, mentions, ..
            } => {
                let known = mentions.iter().all(|one| PEOPLE.contains(&one.as_str()));
                ensure(known, || "a stranger is mentioned".into())?;
                return ensure(!comment.trim().is_empty(), || "nothing is said".into());
            }
            Command::Cancel { .. } => return ensure(life != Life::Ended, || "it has ended".into()),
            Command::Resume { .. } => return ensure(life == Life::Suspended, || "it runs".into()),
            Command::Deadline { .. } | Command::ChildEnded { .. } => {
                return ensure(life != Life::Suspended, suspended);
            }
            Command::Migrate {
                version, states, ..
            } => {
                let version = usize::try_from(*version).expect("few") - 1;
                return self.ledger.may_go_over(self.instance, version, states);
            }
            _ => ensure(life != Life::Suspended, suspended)?,
        }
        match command {
            Command::Suspend { .. } => ensure(life == Life::Running, || "it has ended".into()),
            Command::Signal { trigger, id, .. } => self.signal(trigger, id),
            Command::Claim { task } => self.claim(self.open(*task)?),
            Command::Release { task } => {
                let (work, hand) = self.held(*task)?;
                let may = self.is_theirs(work, hand) || self.world.may_assign(self.actor);
                ensure(may, || "another's".into())?;
                at_work(work)
            }
            Command::Decide { task, outcome, .. } => self.decide(*task, outcome),
            Command::Delegate { task, to, reason } => self.delegate(*task, to, reason),
            Command::Resolve { task } => {
                let (work, hand) = self.held(*task)?;
                ensure(self.is_theirs(work, hand), || "another's".into())?;
                at_work(work)?;
                ensure(!hand.chain.is_empty(), || "from nobody".into())
            }
            Command::Reassign { task, to, reason } => self.reassign(*task, to, reason),
            Command::SuspendTask { task, until, .. } => {
                self.may_pause(*task)?;
                ensure(!self.open(*task)?.suspended, || "suspended".into())?;
                ensure(
                    until.is_none_or(|until| until > self.instance.updated_at),
                    || "until before".into(),
                )
            }
            Command::ResumeTask { task } => {
                self.may_pause(*task)?;
                ensure(self.open(*task)?.suspended, || "at work".into())
            }
            Command::Reset { task, reason } => {
                self.held(*task)?;
                ensure(!reason.trim().is_empty(), || "for no reason".into())
            }
            other => Err(format!("{} is not judged here", other.action())),
        }
    }

    fn open(&self, task: TaskId) -> Result<&Work, String> {
        let found = self.ledger.tasks.get(&task).filter(|work| work.open);
        found.ok_or_else(|| "no open task".to_owned())
    }

    /// The owner and operators suspend and resume.
    fn may_pause(&self, task: TaskId) -> Checked {
        let work = self.open(task)?;
        let is_theirs = work.hand.as_ref();
        let is_theirs = is_theirs.is_some_and(|hand| self.is_theirs(work, hand));
        ensure(is_theirs || self.world.may_assign(self.actor), || {
            "another's".into()
        })
    }

    fn held(&self, task: TaskId) -> Result<(&Work, &Hand), String> {
        let work = self.open(task)?;
        let hand = work.hand.as_ref().ok_or("nobody owns it")?;
        Ok((work, hand))
    }

    fn acts_for(&self, work: &Work, person: &str) -> bool {
        acts_for(self.ledger, self.world, work, (self.actor, person))
    }

    /// Whoever is excluded acts for nobody else.
    fn is_theirs(&self, work: &Work, hand: &Hand) -> bool {
        let is_own = hand.owner == self.actor;
        let excluded = self.not_excluded(work, self.actor).is_err();
        self.acts_for(work, &hand.owner) && (is_own || !excluded)
    }

    fn not_excluded(&self, work: &Work, person: &str) -> Checked {
        ensure(
            !self.ledger.excluded_people(work.state_instance, person),
            || format!("{person} is excluded"),
        )
    }

    /// Whether the actor has it already.
    fn is_own(&self, work: &Work) -> bool {
        let hand = work.hand.as_ref();
        hand.is_some_and(|hand| hand.owner == self.actor)
    }

    /// Whether the command is to do nothing: a claim of what the actor has.
    pub(super) fn is_idle(&self, command: &Command) -> bool {
        match command {
            Command::Claim { task } => self.open(*task).is_ok_and(|work| self.is_own(work)),
            _ => false,
        }
    }

    fn claim(&self, work: &Work) -> Checked {
        if self.is_own(work) {
            return Ok(());
        }
        ensure(work.hand.is_none(), || "somebody has it".into())?;
        at_work(work)?;
        self.not_excluded(work, self.actor)?;
        let right = PEOPLE.iter().any(|person| {
            let excluded_people = self.ledger.excluded_people(work.state_instance, person);
            self.acts_for(work, person)
                && self.world.is_offered(&work.offered, person)
                && !excluded_people
        });
        ensure(right, || "not offered".into())
    }

    /// The owner's work is done by the owner or in their name, and nobody involved is excluded.
    fn works(&self, task: TaskId) -> Result<(&Work, &Hand), String> {
        let (work, hand) = self.held(task)?;
        ensure(self.is_theirs(work, hand), || "another's".into())?;
        at_work(work)?;
        let mut people = vec![self.actor, &hand.owner];
        people.extend(hand.chain.iter().map(String::as_str));
        let absent = hand.absent.as_deref();
        if hand.given || !hand.chain.is_empty() {
            people.extend(absent);
        } else {
            let offered = |person: &str| {
                self.acts_for(work, person) && self.world.is_offered(&work.offered, person)
            };
            let own = offered(&hand.owner);
            let may_decide = |person: &str| self.not_excluded(work, person).is_ok();
            match absent.filter(|absent| offered(absent) && (!own || may_decide(absent))) {
                Some(absent) => people.push(absent),
                None => ensure(own, || "no longer offered".into())?,
            }
        }
        people
            .iter()
            .try_for_each(|person| self.not_excluded(work, person))?;
        Ok((work, hand))
    }

    fn decide(&self, task: TaskId, outcome: &str) -> Checked {
        let work = self.open(task)?;
        match work.hand {
            // A decision on a task without an owner also claims it.
            None => self.claim(work)?,
            Some(_) => {
                self.works(task)?;
            }
        }
        let state = &self.ledger.state_instances[&work.state_instance].name;
        let mut ways = self.ledger.graph().transitions.iter();
        let way = ways.find(|way| way.source == *state && way.trigger == outcome);
        let way = way.filter(|way| way.by.contains(&FiredBy::Decision));
        let way = way.ok_or("no outcome")?;
        let may = way.permission.is_none() || self.world.may_press(self.actor);
        ensure(may, || "without the permission".into())
    }

    fn delegate(&self, task: TaskId, to: &str, reason: &str) -> Checked {
        let (work, hand) = self.works(task)?;
        ensure(!self.ledger.is_own_work(work.state_instance), || {
            "own work".into()
        })?;
        ensure(hand.chain.len() < 3, || "handed on too often".into())?;
        self.receives(work, to, reason)?;
        let before = [
            Some(self.actor),
            Some(hand.owner.as_str()),
            hand.absent.as_deref(),
        ];
        let before = before
            .into_iter()
            .flatten()
            .chain(hand.chain.iter().map(String::as_str));
        ensure(!before.into_iter().any(|person| person == to), || {
            "a circle".into()
        })
    }

    fn reassign(&self, task: TaskId, to: &str, reason: &str) -> Checked {
        let work = self.open(task)?;
        self.receives(work, to, reason)?;
        let owner = work.hand.as_ref().map(|hand| hand.owner.as_str());
        ensure(owner != Some(to), || "theirs already".into())?;
        let own_work = self.ledger.is_own_work(work.state_instance);
        ensure(!own_work || to == self.ledger.initiator, || {
            "own work".into()
        })
    }

    /// A declared signal has a transition and its permission, or is buffered.
    fn signal(&self, trigger: &str, id: &str) -> Checked {
        ensure(self.ledger.life == Life::Running, || "it has ended".into())?;
        ensure(!id.is_empty() && !id.contains(char::is_control), || {
            "no id".into()
        })?;
        let mut ways = self.ledger.graph().transitions.iter();
        let known = ways.any(|way| way.trigger == trigger && way.by.contains(&FiredBy::Signal));
        ensure(known, || "no signal".into())?;
        let Some(state_instance) = self.ledger.taker(trigger) else {
            return ensure(self.ledger.buffered.len() < 100, || "too many wait".into());
        };
        let way = self
            .ledger
            .heard(&self.ledger.state_instances[&state_instance].name, trigger);
        let needs = way.is_some_and(|way| way.permission.is_some());
        ensure(!needs || self.world.may_press(self.actor), || {
            "without the permission".into()
        })
    }

    fn receives(&self, work: &Work, to: &str, reason: &str) -> Checked {
        ensure(!reason.trim().is_empty(), || "for no reason".into())?;
        ensure(PEOPLE.contains(&to), || "unknown".into())?;
        self.not_excluded(work, to)
    }
}
