//! A model of one instance, written from the rules alone: which commands it refuses at a revision, and why. It covers two flows,
//! and only what the API shows of them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// The person who starts the instance, and may not work on it.
pub(super) const REQUESTER: &str = "author";
/// The candidates, the requester among them.
pub(super) const CREW: [&str; 7] = [
    "reviewer",
    "reviewer2",
    "pam",
    "quentin",
    "rosa",
    "sven",
    REQUESTER,
];
/// A known person who is in no group that is offered work.
pub(super) const OUTSIDER: &str = "approver";
/// An operator.
pub(super) const OPERATOR: &str = "admin";
const DELEGATIONS_MAX: usize = 3;

/// The flow of an instance.
#[derive(Debug, Clone, Copy)]
pub(super) enum Flow {
    /// Ends once `needed` people have decided YES, or too few voters are left for that.
    Committee { needed: usize },
    /// Work, then a wait that ends after `payments` signals, or leads back to work.
    Subflows { payments: u64, buffered: bool },
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Command {
    Claim(String),
    Release(String),
    Decide(String, &'static str),
    Delegate(String, &'static str),
    Resolve(String),
    Reassign(String, &'static str),
    Reset(String),
    Cancel,
    Suspend,
    Resume,
    Signal(&'static str, String),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Life {
    Running,
    Suspended(String),
    Completed(&'static str),
    Cancelled(String),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Task {
    Open {
        owner: Option<String>,
        chain: Vec<String>,
    },
    Decided {
        by: String,
        outcome: &'static str,
    },
    Cancelled,
}

/// An instance at one revision.
#[derive(Debug, Clone)]
pub(super) struct Instance {
    pub(super) flow: Flow,
    pub(super) revision: u64,
    pub(super) life: Life,
    pub(super) waits: bool,
    /// By their ids, in the order of creation. Tasks of left state instances come first.
    pub(super) tasks: Vec<(String, Task)>,
    /// The index of the first task of the present state instance.
    pub(super) state_instance: usize,
    /// The people who decided in the present state instance, or on whose behalf somebody did.
    pub(super) spent: BTreeSet<String>,
    pub(super) paid: u64,
    pub(super) buffered: Vec<&'static str>,
    /// Sender, trigger and the sender's id.
    pub(super) signals: BTreeSet<(String, String, String)>,
}

/// A refusal as callers see it: its code, and more where the API shows more.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Refusal {
    pub(super) code: &'static str,
    pub(super) reason: Option<&'static str>,
    /// The conflict in the problem document.
    pub(super) conflict: Option<Value>,
}

fn no(code: &'static str) -> Refusal {
    Refusal {
        code,
        reason: None,
        conflict: None,
    }
}

fn forbidden(reason: &'static str) -> Refusal {
    Refusal {
        reason: Some(reason),
        ..no("forbidden")
    }
}

fn not_owner(owner: Option<&str>) -> Refusal {
    Refusal {
        conflict: Some(json!({ "owner": owner })),
        ..forbidden("not_owner")
    }
}

fn conflict(code: &'static str, conflict: Value) -> Refusal {
    Refusal {
        conflict: Some(conflict),
        ..no(code)
    }
}

impl Instance {
    /// The instance as it was started, with the ids in `shown`.
    pub(super) fn started(flow: Flow, shown: &Value) -> Instance {
        let mut instance = Instance {
            flow,
            revision: 0,
            life: Life::Running,
            waits: false,
            tasks: Vec::new(),
            state_instance: 0,
            spent: BTreeSet::new(),
            paid: 0,
            buffered: Vec::new(),
            signals: BTreeSet::new(),
        };
        instance.begin_work(shown);
        instance.revision = 1;
        instance
    }

    fn task(&self, id: &str) -> Option<&Task> {
        let mut tasks = self.tasks.iter();
        tasks.find(|(known, _)| known == id).map(|(_, task)| task)
    }

    fn why_is_excluded(&self, person: &str) -> Option<Refusal> {
        if person == REQUESTER {
            Some(forbidden("own_request"))
        } else {
            let spent = self.spent.contains(person);
            spent.then(|| forbidden("already_decided"))
        }
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.life, Life::Completed(_) | Life::Cancelled(_))
    }

    pub(super) fn status(&self) -> &'static str {
        match self.life {
            Life::Running => "RUNNING",
            Life::Suspended(_) => "SUSPENDED",
            Life::Completed(_) => "COMPLETED",
            Life::Cancelled(_) => "CANCELLED",
        }
    }

    /// Whether the command has no effect because it was done before: the signal was received, or the caller owns the task.
    pub(super) fn has_counted(&self, who: &str, command: &Command) -> bool {
        let counted = |trigger: &str, id: &str| {
            let key = (who.to_owned(), trigger.to_owned(), id.to_owned());
            self.signals.contains(&key)
        };
        match command {
            Command::Signal(trigger, id) => counted(trigger, id),
            Command::Claim(id) => {
                let owner = match self.task(id) {
                    Some(Task::Open { owner, .. }) => owner.as_deref(),
                    _ => None,
                };
                self.life == Life::Running && owner == Some(who)
            }
            _ => false,
        }
    }

    /// The refusals by all rules: empty if the command is permitted.
    pub(super) fn refusals(&self, who: &str, command: &Command) -> Vec<Refusal> {
        if self.has_counted(who, command) {
            return Vec::new();
        }
        let mut against = Vec::new();
        let operators = matches!(
            command,
            Command::Reassign(..)
                | Command::Reset(_)
                | Command::Cancel
                | Command::Suspend
                | Command::Resume
        );
        if operators && who != OPERATOR {
            against.push(no("permission_missing"));
        }
        if let Life::Suspended(by) = &self.life
            && !matches!(command, Command::Cancel | Command::Resume)
        {
            against.push(conflict("instance_suspended", json!({ "by": by })));
        }
        match command {
            Command::Cancel | Command::Suspend | Command::Resume | Command::Signal(..) => {
                self.against_whole(command, &mut against);
            }
            Command::Claim(id)
            | Command::Release(id)
            | Command::Decide(id, _)
            | Command::Delegate(id, _)
            | Command::Resolve(id)
            | Command::Reassign(id, _)
            | Command::Reset(id) => match self.task(id) {
                None => against.push(no("not_found")),
                Some(Task::Open { owner, chain }) => {
                    self.against_task(who, command, owner.as_deref(), chain, &mut against);
                }
                Some(Task::Decided { by, outcome }) => against.push(conflict(
                    "task_taken",
                    json!({ "action": "decided", "by": by, "outcome": outcome }),
                )),
                Some(Task::Cancelled) => {
                    let by = match &self.life {
                        Life::Cancelled(by) => Some(by),
                        _ => None,
                    };
                    let about = json!({ "action": "cancelled", "by": by });
                    against.push(conflict("task_taken", about));
                }
            },
        }
        against
    }

    fn against_whole(&self, command: &Command, against: &mut Vec<Refusal>) {
        if self.is_over() {
            let by = match &self.life {
                Life::Cancelled(by) => Some(by),
                _ => None,
            };
            let about = json!({ "status": self.status(), "by": by });
            against.push(conflict("instance_ended", about));
        }
        match (command, self.flow) {
            (Command::Resume, _) if self.life == Life::Running => against.push(no("not_suspended")),
            (Command::Signal(..), Flow::Committee { .. }) => against.push(no("invalid_input")),
            _ => {}
        }
    }

    fn against_task(
        &self,
        who: &str,
        command: &Command,
        owner: Option<&str>,
        chain: &[String],
        against: &mut Vec<Refusal>,
    ) {
        // A decision on a task without an owner claims it, too.
        let claims = matches!(command, Command::Decide(..)) && owner.is_none();
        let works = !claims && matches!(command, Command::Decide(..) | Command::Delegate(..));
        if works || matches!(command, Command::Resolve(_)) {
            against.extend((owner != Some(who)).then(|| not_owner(owner)));
        }
        if works {
            let people = chain.iter().map(String::as_str).chain([who]);
            against.extend(people.filter_map(|person| self.why_is_excluded(person)));
        }
        let offers_to = |to: &str| self.why_is_excluded(to);
        if claims || matches!(command, Command::Claim(_)) {
            against.extend(self.why_is_excluded(who));
            against.extend((!CREW.contains(&who)).then(|| forbidden("not_a_candidate")));
        }
        match command {
            Command::Claim(_) => {
                if let Some(owner) = owner {
                    let about = json!({ "action": "claimed", "by": owner });
                    against.push(conflict("task_taken", about));
                }
            }
            Command::Release(_) => {
                let may = owner == Some(who) || (who == OPERATOR && owner.is_some());
                against.extend((!may).then(|| not_owner(owner)));
            }
            Command::Decide(_, outcome) => {
                let declared: &[_] = match self.flow {
                    Flow::Committee { .. } => &["YES", "NO"],
                    Flow::Subflows { .. } => &["GO"],
                };
                against.extend((!declared.contains(outcome)).then(|| no("invalid_input")));
            }
            Command::Delegate(_, to) => {
                let exhausted = chain.len() >= DELEGATIONS_MAX;
                against.extend(exhausted.then(|| no("delegations_exhausted")));
                let had = *to == who || owner == Some(to) || chain.iter().any(|from| from == to);
                against.extend(had.then(|| no("invalid_input")));
                against.extend(offers_to(to));
            }
            Command::Resolve(_) => {
                against.extend(chain.is_empty().then(|| no("not_delegated")));
            }
            Command::Reassign(_, to) => {
                against.extend((owner == Some(to)).then(|| no("invalid_input")));
                against.extend(offers_to(to));
            }
            Command::Reset(_) => against.extend(owner.is_none().then(|| no("not_claimed"))),
            Command::Cancel | Command::Suspend | Command::Resume | Command::Signal(..) => {}
        }
    }
}
