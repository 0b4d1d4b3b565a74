//! An actor: one of many who start flows, claim, vote, decide, delegate, withdraw and cancel at random. Some of their commands
//! are refused.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};

use super::client::{Order, PEOPLE};
use super::fixture::TIMEOUT;
use super::load::Shared;
use super::random::Random;

/// From this number of running instances on, few new ones are started.
const RUNNING_MANY: usize = 30;
/// The members of each group.
pub(super) const GROUPS: [(&str, &[&str]); 3] = [
    ("authors", &["author", "ann"]),
    ("reviewers", &["rob", "rita", "ron"]),
    ("approvers", &["amy", "alf"]),
];
const VOTERS: [&str; 3] = ["vera", "vito", "viola"];
/// The people to whom tasks are delegated.
const DELEGATES: [&str; 3] = ["dee", "eli", "fay"];

pub(super) struct Actor {
    shared: Arc<Shared>,
    number: usize,
    random: Random,
    begun: usize,
    /// Instances that were running in the last list, and were not acted on since.
    known: Vec<String>,
    /// The number of instances in that list.
    running: usize,
}

impl Actor {
    pub(super) fn new(shared: Arc<Shared>, number: usize, seed: u64) -> Actor {
        Actor {
            shared,
            number,
            random: Random::new(seed.wrapping_add(number as u64 + 1)),
            begun: 0,
            known: Vec::new(),
            running: 0,
        }
    }

    /// Acts until all instances have ended.
    pub(super) fn work(mut self) {
        let mut closing_until = None;
        loop {
            let is_closing = self.shared.is_closing();
            let few = self.running < RUNNING_MANY;
            if !is_closing && self.random.percent(if few { 25 } else { 3 }) {
                self.begin();
                continue;
            }
            if let Some(instance) = self.look() {
                self.act(&instance);
                continue;
            }
            if is_closing {
                if self.running == 0 {
                    return;
                }
                // A query got no answer, and has waited already.
                let until = closing_until.get_or_insert_with(|| Instant::now() + TIMEOUT);
                let running = self.running;
                assert!(Instant::now() < *until, "{running} instances never end");
            }
        }
    }

    /// A running instance in its present state. None if nothing runs, or nothing could be read.
    fn look(&mut self) -> Option<Value> {
        if self.known.is_empty() {
            let found = self.read("/v1/instances?status=RUNNING&limit=100")?;
            let lines = found["data"].as_array().expect("lines");
            self.known = lines.iter().map(|line| text(&line["id"])).collect();
            self.running = self.known.len();
        }
        let place = self.random.below(self.known.len().max(1));
        if self.known.is_empty() {
            return None;
        }
        let id = self.known.swap_remove(place);
        self.read(&format!("/v1/instances/{id}"))
    }

    fn read(&mut self, path: &str) -> Option<Value> {
        let host = self.random.below(self.shared.hosts);
        let result = self.shared.client.get(host, "admin", path);
        if let Ok(reply) = &result {
            if reply.status == 200 {
                return Some(reply.body());
            }
            assert_eq!(reply.status, 503, "{path}: {}", reply.text);
        }
        self.shared.wait_to_repeat(&result);
        None
    }

    fn begin(&mut self) {
        self.begun += 1;
        let entity = format!("{}-{}", self.number, self.begun);
        let user = *self.random.pick(GROUPS[0].1);
        let child = json!({ "key": "subflows", "entity": format!("child-{entity}"), "data": { "first": "Work" }, "onEnd": "ENDED" });
        let offers = VOTERS.map(|voter| json!({ "users": [voter] }));
        let reminder = json!([{ "after": 1, "do": "remind" }]);
        let (key, data) = match self.random.below(10) {
            0..4 => ("document-approval", json!({ "title": "A plan" })),
            4..7 => (
                "committee",
                json!({ "assign": { "offers": offers, "needed": 2, "deadlines": reminder } }),
            ),
            7..9 => ("subflows", json!({ "first": "Work" })),
            _ => (
                "subflows",
                json!({ "first": "Wait", "wait": { "children": [child] } }),
            ),
        };
        let body = json!({ "definitionKey": key, "entityType": "thing", "entityId": entity, "data": data });
        self.order(user, "/v1/instances".to_owned(), body);
    }

    fn order(&mut self, user: &str, path: String, body: Value) {
        let user = PEOPLE.into_iter().find(|person| *person == user);
        let order = Order {
            user: user.expect("one of the people"),
            path,
            body,
            key: self.shared.key(),
        };
        let reply = self.shared.clone().settle(&mut self.random, order.clone());
        assert!(reply.status < 500, "{order:?}: {}", reply.text);
        assert!(
            !matches!(reply.status, 400 | 401 | 404 | 405 | 415),
            "{order:?}: {}",
            reply.text
        );
    }

    /// Sends a command about an instance.
    fn act(&mut self, instance: &Value) {
        let id = text(&instance["id"]);
        let is_closing = self.shared.is_closing();
        if !is_closing && self.random.percent(3) {
            let reason = json!({ "reason": "not needed any more" });
            return self.order("admin", format!("/v1/instances/{id}/cancel"), reason);
        }
        let states = instance["states"].as_array().expect("states");
        if states.is_empty() {
            return;
        }
        let state = self.random.pick(states).clone();
        let open = |task: &&Value| {
            ["PENDING", "CLAIMED"].contains(&task["status"].as_str().unwrap_or_default())
        };
        let tasks = state["tasks"].as_array().into_iter().flatten();
        let open: Vec<Value> = tasks.filter(open).cloned().collect();
        if open.is_empty() {
            return self.wait_over(&id, instance);
        }
        let task = self.random.pick(&open).clone();
        if task["status"] == "PENDING" {
            self.claim(&task);
        } else {
            self.go_on(instance, &state, &task);
        }
    }

    /// Sends a signal to a waiting instance, but rarely to one whose child will end the wait.
    fn wait_over(&mut self, id: &str, instance: &Value) {
        if instance["data"]["wait"]["children"].is_array() && !self.random.percent(5) {
            return;
        }
        let leave = !self.shared.is_closing() && self.random.percent(20);
        let trigger = if leave { "LEAVE" } else { "PAID" };
        self.order(
            "author",
            format!("/v1/instances/{id}/signals/{trigger}"),
            json!({}),
        );
    }

    fn claim(&mut self, task: &Value) {
        let candidates = task["candidates"].as_array().expect("candidates");
        let candidate = self.random.pick(candidates).clone();
        let named = text(&candidate["id"]);
        let group = GROUPS.iter().find(|(group, _)| *group == named);
        let user = match group {
            _ if self.random.percent(4) => (*self.random.pick(&PEOPLE)).to_owned(),
            Some((_, members)) => (*self.random.pick(members)).to_owned(),
            None => named,
        };
        let path = format!("/v1/tasks/{}/claim", text(&task["id"]));
        self.order(&user, path, json!({}));
    }

    /// Decides, releases or delegates a claimed task.
    fn go_on(&mut self, instance: &Value, state: &Value, task: &Value) {
        let (id, owner) = (text(&task["id"]), text(&task["owner"]));
        let is_closing = self.shared.is_closing();
        match self.random.below(if is_closing { 88 } else { 100 }) {
            0..80 => {
                let body = self.decision(&text(&instance["definitionKey"]), &text(&state["name"]));
                self.order(&owner, format!("/v1/tasks/{id}/decide"), body);
            }
            // Nobody votes twice: of two tasks delegated to the same person, one must go back before the end.
            80..88 if is_closing => {
                self.order(&owner, format!("/v1/tasks/{id}/resolve"), json!({}));
            }
            80..88 => {
                let body = json!({ "to": *self.random.pick(&DELEGATES), "reason": "on a journey" });
                self.order(&owner, format!("/v1/tasks/{id}/delegate"), body);
            }
            88..94 => self.order(&owner, format!("/v1/tasks/{id}/release"), json!({})),
            94..97 => self.order(&owner, format!("/v1/tasks/{id}/resolve"), json!({})),
            // A withdrawal, if the flow knows it. Other flows refuse it.
            _ => {
                let path = format!("/v1/instances/{}/signals/WITHDRAW", text(&instance["id"]));
                self.order("author", path, json!({}));
            }
        }
    }

    fn decision(&mut self, definition: &str, state: &str) -> Value {
        let is_closing = self.shared.is_closing();
        let often = is_closing || self.random.percent(75);
        match (definition, state) {
            ("document-approval", "ReworkRequested") if often && !is_closing => {
                json!({ "outcome": "SUBMIT" })
            }
            ("document-approval", "ReworkRequested") => json!({ "outcome": "ABANDON" }),
            ("document-approval", _) if often => json!({ "outcome": "APPROVE" }),
            ("document-approval", _) => json!({ "outcome": "REJECT", "comment": "Too dear." }),
            ("committee", _) if often => json!({ "outcome": "YES" }),
            ("committee", _) => json!({ "outcome": "NO" }),
            _ => json!({ "outcome": "GO" }),
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
