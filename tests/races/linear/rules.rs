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
enum Life {
    Running,
    Suspended(String),
    Completed(&'static str),
    Cancelled(String),
}

#[derive(Debug, Clone, PartialEq)]
enum Task {
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
    life: Life,
    waits: bool,
    /// By their ids, in the order of their making; those of stays that are over come first.
    tasks: Vec<(String, Task)>,
    /// Where the tasks of the present stay begin.
    stay: usize,
    /// Who decided in the present stay, or in whose name.
    spent: BTreeSet<String>,
    paid: u64,
    early: Vec<&'static str>,
    signals: BTreeSet<String>,
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

    /// Work is offered: new tasks, which bear the ids that are shown.
    fn begin_work(&mut self, shown: &Value) {
        self.waits = false;
        self.stay = self.tasks.len();
        self.spent.clear();
        let tasks = shown["states"][0]["tasks"].as_array();
        for task in tasks.into_iter().flatten() {
            let id = task["id"].as_str().unwrap_or_default().to_owned();
            let open = Task::Open {
                owner: None,
                chain: Vec::new(),
            };
            self.tasks.push((id, open));
        }
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

    fn is_over(&self) -> bool {
        matches!(self.life, Life::Completed(_) | Life::Cancelled(_))
    }

    fn status(&self) -> &'static str {
        match self.life {
            Life::Running => "RUNNING",
            Life::Suspended(_) => "SUSPENDED",
            Life::Completed(_) => "COMPLETED",
            Life::Cancelled(_) => "CANCELLED",
        }
    }

    /// Whether the signal has counted: then nothing more happens.
    pub(super) fn has_counted(&self, command: &Command) -> bool {
        matches!(command, Command::Signal(_, id) if self.signals.contains(id))
    }

    /// Every rule against it; none where it is permitted.
    pub(super) fn refusals(&self, who: &str, command: &Command) -> Vec<Refusal> {
        if self.has_counted(command) {
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
            against.extend((owner != Some(who)).then(|| forbidden("not_owner")));
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
                against.extend((!may).then(|| forbidden("not_owner")));
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

    /// What it comes to, where it is permitted. New tasks bear the ids that are shown.
    pub(super) fn after(&self, who: &str, command: &Command, shown: &Value) -> Instance {
        let mut next = self.clone();
        next.revision += 1;
        match command {
            Command::Cancel => next.end(Life::Cancelled(who.to_owned())),
            Command::Suspend => next.life = Life::Suspended(who.to_owned()),
            Command::Resume => next.life = Life::Running,
            Command::Signal(trigger, id) => {
                next.signals.insert(id.clone());
                next.hear(trigger, shown);
            }
            Command::Claim(id)
            | Command::Release(id)
            | Command::Decide(id, _)
            | Command::Delegate(id, _)
            | Command::Resolve(id)
            | Command::Reassign(id, _)
            | Command::Reset(id) => next.change(who, id, command, shown),
        }
        next
    }

    fn end(&mut self, life: Life) {
        self.life = life;
        let open = self.tasks.iter_mut();
        for (_, task) in open.filter(|(_, task)| matches!(task, Task::Open { .. })) {
            *task = Task::Cancelled;
        }
    }

    fn change(&mut self, who: &str, id: &str, command: &Command, shown: &Value) {
        let place = self.tasks.iter().position(|(known, _)| known == id);
        let Some(place) = place else { return };
        let Task::Open { owner, chain } = &mut self.tasks[place].1 else {
            return;
        };
        match command {
            Command::Claim(_) => *owner = Some(who.to_owned()),
            Command::Release(_) | Command::Reset(_) => {
                *owner = None;
                chain.clear();
            }
            Command::Delegate(_, to) => {
                chain.extend(owner.replace((*to).to_owned()));
            }
            Command::Resolve(_) => *owner = chain.pop(),
            Command::Reassign(_, to) => {
                *owner = Some((*to).to_owned());
                chain.clear();
            }
            Command::Decide(_, outcome) => {
                let first = chain.iter().find(|from| *from != who).cloned();
                self.spent.extend(first);
                self.spent.insert(who.to_owned());
                self.tasks[place].1 = Task::Decided {
                    by: who.to_owned(),
                    outcome,
                };
                self.decided(shown);
            }
            Command::Cancel | Command::Suspend | Command::Resume | Command::Signal(..) => {}
        }
    }

    /// Where a decision leads.
    fn decided(&mut self, shown: &Value) {
        match self.flow {
            Flow::Errands { .. } => self.begin_wait(shown),
            Flow::Committee { needed } => {
                let tasks = self.tasks.iter().map(|(_, task)| task);
                let yes = tasks.clone().filter(
                    |task| matches!(task, Task::Decided { outcome, .. } if *outcome == "YES"),
                );
                let yes = yes.count();
                let open = tasks
                    .filter(|task| matches!(task, Task::Open { .. }))
                    .count();
                if yes >= needed {
                    self.end(Life::Completed("APPROVED"));
                } else if yes + open < needed {
                    self.end(Life::Completed("REJECTED"));
                }
            }
        }
    }

    fn hear(&mut self, trigger: &'static str, shown: &Value) {
        match trigger {
            "WITHDRAW" if !self.waits => self.end(Life::Completed("DROPPED")),
            "PAID" | "LEAVE" if self.waits => self.moved(trigger, shown),
            _ => self.early.push(trigger),
        }
    }

    /// Signals from before count, or are over.
    fn begin_wait(&mut self, shown: &Value) {
        let Flow::Errands { keep_early, .. } = self.flow else {
            return;
        };
        self.waits = true;
        self.stay = self.tasks.len();
        if !keep_early {
            self.early.retain(|trigger| *trigger == "WITHDRAW");
        }
        while self.waits && !self.is_over() {
            let taken = self.early.iter().position(|trigger| *trigger != "WITHDRAW");
            let Some(place) = taken else { return };
            let trigger = self.early.remove(place);
            self.moved(trigger, shown);
        }
    }

    /// A signal moves the wait.
    fn moved(&mut self, trigger: &str, shown: &Value) {
        let Flow::Errands { payments, .. } = self.flow else {
            return;
        };
        if trigger == "LEAVE" {
            return self.begin_work(shown);
        }
        self.paid += 1;
        if self.paid >= payments {
            self.end(Life::Completed("DONE"));
        }
    }

    /// How it must be shown.
    pub(super) fn view(&self) -> Value {
        let outcome = match self.life {
            Life::Completed(outcome) => Some(outcome),
            _ => None,
        };
        let task = |(id, task): &(String, Task)| match task {
            Task::Open { owner: None, .. } => json!([id, "PENDING"]),
            Task::Open { owner, chain } => json!([id, "CLAIMED", owner, chain]),
            Task::Decided { by, outcome } => json!([id, "COMPLETED", by, outcome]),
            Task::Cancelled => json!([id, "CANCELLED"]),
        };
        let active = (!self.is_over()).then(|| {
            let tasks: Vec<_> = self.tasks[self.stay..].iter().map(task).collect();
            json!([self.state(), tasks])
        });
        json!({
            "revision": self.revision, "status": self.status(), "outcome": outcome, "paid": self.paid,
            "state": active,
        })
    }

    fn state(&self) -> &'static str {
        match self.flow {
            Flow::Committee { .. } => "Vote",
            Flow::Errands { .. } if self.waits => "Wait",
            Flow::Errands { .. } => "Work",
        }
    }
}

/// The same of what was shown.
pub(super) fn seen(shown: &Value) -> Value {
    let task = |task: &Value| {
        let (id, status) = (&task["id"], &task["status"]);
        let delegations = task["holding"]["delegations"].as_array();
        let from = delegations.into_iter().flatten().map(|link| &link["from"]);
        let from: Vec<_> = from.collect();
        match status.as_str() {
            Some("CLAIMED") => json!([id, status, task["owner"], from]),
            Some("COMPLETED") => {
                json!([
                    id,
                    status,
                    task["decision"]["actor"],
                    task["decision"]["outcome"]
                ])
            }
            _ => json!([id, status]),
        }
    };
    let state = &shown["states"][0];
    let active = state.is_object().then(|| {
        let tasks = state["tasks"].as_array().into_iter().flatten();
        let tasks: Vec<_> = tasks.map(task).collect();
        json!([state["name"], tasks])
    });
    json!({
        "revision": shown["revision"], "status": shown["status"], "outcome": shown["outcome"],
        "paid": shown["data"]["paid"].as_u64().unwrap_or(0), "state": active,
    })
}
