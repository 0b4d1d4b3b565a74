//! What may happen to one instance, told once more from the rules alone and in the order of its revisions: two flows, and
//! no more than tests see of them over HTTP.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// Who started it, and never works on it.
pub(super) const REQUESTER: &str = "author";
/// Everybody whom the work is offered to, the requester among them.
pub(super) const CREW: [&str; 7] = [
    "reviewer",
    "reviewer2",
    "pam",
    "quentin",
    "rosa",
    "sven",
    REQUESTER,
];
/// Known, and of no group that is asked.
pub(super) const OUTSIDER: &str = "approver";
/// May do what operators do.
pub(super) const OPERATOR: &str = "admin";
const DELEGATIONS_MAX: usize = 3;

/// How an instance goes on.
#[derive(Debug, Clone, Copy)]
pub(super) enum Flow {
    /// Ends once so many have said YES, or too few are left to.
    Committee { needed: usize },
    /// Work, then a wait that ends with so many payments, or leads to work again.
    Errands { payments: u64, keep_early: bool },
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
    /// By their ids, in the order of their making; those of stays that are over come first.
    pub(super) tasks: Vec<(String, Task)>,
    /// Where the tasks of the present stay begin.
    pub(super) stay: usize,
    /// Who decided in the present stay, or in whose name.
    pub(super) spent: BTreeSet<String>,
    pub(super) paid: u64,
    pub(super) early: Vec<&'static str>,
    /// By whom, which trigger, and the sender's id.
    pub(super) signals: BTreeSet<(String, String, String)>,
}

/// A "no", as far as callers are told: its code, and more where there is more.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Refusal {
    pub(super) code: &'static str,
    pub(super) reason: Option<&'static str>,
    /// What the conflict says.
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
    /// As it was started; the ids are taken from what was shown.
    pub(super) fn started(flow: Flow, shown: &Value) -> Instance {
        let mut instance = Instance {
            flow,
            revision: 0,
            life: Life::Running,
            waits: false,
            tasks: Vec::new(),
            stay: 0,
            spent: BTreeSet::new(),
            paid: 0,
            early: Vec::new(),
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

    fn barred(&self, person: &str) -> Option<Refusal> {
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

    /// Whether the signal has counted: then nothing more happens.
    pub(super) fn has_counted(&self, who: &str, command: &Command) -> bool {
        let counted = |trigger: &str, id: &str| {
            let key = (who.to_owned(), trigger.to_owned(), id.to_owned());
            self.signals.contains(&key)
        };
        matches!(command, Command::Signal(trigger, id) if counted(trigger, id))
    }

    /// Every rule against it; none where it is permitted.
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
                    let told = json!({ "action": "cancelled", "by": by });
                    against.push(conflict("task_taken", told));
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
            let told = json!({ "status": self.status(), "by": by });
            against.push(conflict("instance_ended", told));
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
        let works = matches!(command, Command::Decide(..) | Command::Delegate(..));
        if works || matches!(command, Command::Resolve(_)) {
            against.extend((owner != Some(who)).then(|| not_owner(owner)));
        }
        if works {
            let people = chain.iter().map(String::as_str).chain([who]);
            against.extend(people.filter_map(|person| self.barred(person)));
        }
        let offers_to = |to: &str| self.barred(to);
        match command {
            Command::Claim(_) => {
                if let Some(owner) = owner {
                    let told = json!({ "action": "claimed", "by": owner });
                    against.push(conflict("task_taken", told));
                }
                against.extend(self.barred(who));
                against.extend((!CREW.contains(&who)).then(|| forbidden("not_a_candidate")));
            }
            Command::Release(_) => {
                let may = owner == Some(who) || (who == OPERATOR && owner.is_some());
                against.extend((!may).then(|| not_owner(owner)));
            }
            Command::Decide(_, outcome) => {
                let declared: &[_] = match self.flow {
                    Flow::Committee { .. } => &["YES", "NO"],
                    Flow::Errands { .. } => &["GO"],
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
