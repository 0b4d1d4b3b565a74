//! The effect of a permitted command, and how the instance is shown afterwards.

use serde_json::{Value, json};

use super::rules::{Command, Flow, Instance, Life, Task};

impl Instance {
    /// Adds new tasks, with the ids in `shown`.
    pub(super) fn begin_work(&mut self, shown: &Value) {
        self.waits = false;
        self.state_instance = self.tasks.len();
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

    /// The instance after a permitted command. New tasks have the ids in `shown`.
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
                next.receive(trigger, shown);
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
                self.release_to_others();
            }
            Command::Cancel | Command::Suspend | Command::Resume | Command::Signal(..) => {}
        }
    }

    /// A person who has decided in the present state instance owns no other task of it. Neither does anybody on their behalf.
    fn release_to_others(&mut self) {
        for (_, task) in &mut self.tasks {
            let Task::Open { owner, chain } = task else {
                continue;
            };
            let mut people = owner.iter().chain(chain.iter());
            if people.any(|person| self.spent.contains(person)) {
                *owner = None;
                chain.clear();
            }
        }
    }

    /// The transition of a decision.
    fn decided(&mut self, shown: &Value) {
        match self.flow {
            Flow::Subflows { .. } => self.begin_wait(shown),
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

    fn receive(&mut self, trigger: &'static str, shown: &Value) {
        match trigger {
            "WITHDRAW" if !self.waits => self.end(Life::Completed("DROPPED")),
            "PAID" | "LEAVE" if self.waits => self.moved(trigger, shown),
            _ => self.buffered.push(trigger),
        }
    }

    /// Takes buffered signals, or drops them.
    fn begin_wait(&mut self, shown: &Value) {
        let Flow::Subflows { buffered, .. } = self.flow else {
            return;
        };
        self.waits = true;
        self.state_instance = self.tasks.len();
        if !buffered {
            self.buffered.retain(|trigger| *trigger == "WITHDRAW");
        }
        while self.waits && !self.is_over() {
            let taken = self
                .buffered
                .iter()
                .position(|trigger| *trigger != "WITHDRAW");
            let Some(place) = taken else { return };
            let trigger = self.buffered.remove(place);
            self.moved(trigger, shown);
        }
    }

    /// A signal ends the wait or a part of it.
    fn moved(&mut self, trigger: &str, shown: &Value) {
        let Flow::Subflows { payments, .. } = self.flow else {
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

    /// The expected response.
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
            let tasks: Vec<_> = self.tasks[self.state_instance..].iter().map(task).collect();
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
            Flow::Subflows { .. } if self.waits => "Wait",
            Flow::Subflows { .. } => "Work",
        }
    }
}

/// The same part of an actual response.
pub(super) fn seen(shown: &Value) -> Value {
    let task = |task: &Value| {
        let (id, status) = (&task["id"], &task["status"]);
        let delegations = task["ownership"]["delegations"].as_array();
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
