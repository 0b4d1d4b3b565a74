//! What a command comes to that the rules permit, and how the instance is shown afterwards.

use serde_json::{Value, json};

use super::rules::{Command, Flow, Instance, Life, Task};

impl Instance {
    /// Work is offered: new tasks, which bear the ids that are shown.
    pub(super) fn begin_work(&mut self, shown: &Value) {
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

    /// What it comes to, where it is permitted. New tasks bear the ids that are shown.
    pub(super) fn after(&self, who: &str, command: &Command, shown: &Value) -> Instance {
        let mut next = self.clone();
        next.revision += 1;
        match command {
            Command::Cancel => next.end(Life::Cancelled(who.to_owned())),
            Command::Suspend => next.life = Life::Suspended(who.to_owned()),
            Command::Resume => next.life = Life::Running,
            Command::Signal(trigger, id) => {
                next.signals
                    .insert((who.to_owned(), trigger.to_string(), id.clone()));
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
