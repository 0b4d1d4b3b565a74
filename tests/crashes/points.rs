//! A host dies at every point between two effects. It is started again, commands in doubt are repeated, and in the end the same
//! must hold as after any crash.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use std::{fs, io};

use serde_json::{Value, json};
use wrkflw_fault::POINTS;

use super::client::{Order, Reply};
use super::fixture::{Death, Fixture, Kafka, TIMEOUT};
use super::load::{Settled, Shared};
use super::random::Random;
use super::{checker, setting};
use crate::support::guests::{another, subflows};
use crate::support::length::at_length;
use crate::support::machine::Machine;
use crate::support::receiver::{Received, Receiver};
use crate::support::until_on_thread;

/// The signal of `abort`.
const SIGABRT: i32 = 6;

/// Does work that reaches a point.
struct Walker {
    shared: Arc<Shared>,
    random: Random,
    /// A prefix that makes the names of this run unique.
    name: String,
    /// The active version of the sub-flows.
    version: u32,
    /// Whether the host has died.
    has_died: Arc<AtomicBool>,
}

impl Walker {
    /// Does work that reaches points of this kind. Returns the active version of the sub-flows.
    fn work(mut self, point: &str) -> u32 {
        match point.split('.').next().expect("a kind") {
            "job" | "child" => self.subflow_with_child(),
            "reassessment" | "directory" => self.move_people(),
            "call" => self.asks(),
            "batch" => self.migrate(),
            "signal" if point == "signal.broadcast" => self.broadcast(),
            "signal" => self.correlate(),
            "artifact" | "publish" => {
                let version = self.version + 1;
                self.publish(version);
                self.version = version;
            }
            "relay" => self.approvals(),
            _ => self.approval(),
        }
        self.version
    }

    fn order(&mut self, user: &'static str, path: String, body: Value) -> Value {
        let key = self.shared.key();
        let order = Order {
            user,
            path,
            body,
            key,
        };
        let reply = self.shared.clone().settle(&mut self.random, order.clone());
        assert!(reply.is_accepted(), "{order:?}: {}", reply.text);
        reply.body()
    }

    fn start(&mut self, key: &str, entity: &str, data: &Value) -> Value {
        let body = json!({ "definitionKey": key, "entityType": "thing", "entityId": entity, "data": data });
        self.order("author", "/v1/instances".to_owned(), body)["instance"].clone()
    }

    /// Claims the only open task and decides it.
    fn decide(&mut self, user: &'static str, instance: &Value, decision: Value) -> Value {
        let task = instance["states"][0]["tasks"][0]["id"]
            .as_str()
            .expect("a task")
            .to_owned();
        self.order(user, format!("/v1/tasks/{task}/claim"), json!({}));
        self.order(user, format!("/v1/tasks/{task}/decide"), decision)["instance"].clone()
    }

    fn approval(&mut self) {
        let entity = self.name.clone();
        let begun = self.start("document-approval", &entity, &json!({ "title": "A plan" }));
        let reviewed = self.decide("rob", &begun, json!({ "outcome": "APPROVE" }));
        let approved = self.decide("amy", &reviewed, json!({ "outcome": "APPROVE" }));
        assert_eq!(approved["outcome"], "APPROVED");
    }

    /// Several instances, because the relay may send all events of one together.
    fn approvals(&mut self) {
        let (name, begun) = (self.name.clone(), Instant::now());
        for number in 1.. {
            self.name = format!("{name}-{number}");
            self.approval();
            if self.has_died.load(Ordering::SeqCst) || begun.elapsed() > TIMEOUT {
                return;
            }
        }
    }

    /// A parent that ends with its child.
    fn subflow_with_child(&mut self) {
        let entity = self.name.clone();
        let child = json!({ "key": "subflows", "entity": format!("{entity}-child"), "data": { "first": "Wait" }, "onEnd": "ENDED" });
        let parent = self.start(
            "subflows",
            &entity,
            &json!({ "wait": { "children": [child] } }),
        );
        let parent = id(&parent);
        let child = self.read_until(&format!("/v1/instances?parentId={parent}"), |page| {
            page["data"][0]["id"].is_string()
        });
        let child = id(&child["data"][0]);
        self.order(
            "author",
            format!("/v1/instances/{child}/signals/PAID"),
            json!({}),
        );
        self.read_until(&format!("/v1/instances/{parent}"), |shown| {
            shown["status"] == "COMPLETED"
        });
    }

    /// A service fails once and answers then.
    fn asks(&mut self) {
        let entity = self.name.clone();
        let data = json!({ "first": "Ask", "ask": { "retries": [1, 1, 1] } });
        let asking = id(&self.start("subflows", &entity, &data));
        let shown = self.read_until(&format!("/v1/instances/{asking}"), |shown| {
            shown["status"] == "COMPLETED"
        });
        assert_eq!(shown["data"]["asked"]["attempts"], 2, "{shown}");
    }

    /// A person joins the reviewers, which affects an open task.
    fn move_people(&mut self) {
        let entity = self.name.clone();
        let open = self.start("subflows", &entity, &json!({ "first": "Work" }));
        let person = format!("new-{entity}");
        self.put(&format!("/v1/people/{person}"), &json!({ "name": person }));
        self.put(
            &format!("/v1/groups/reviewers/members/{person}"),
            &json!({}),
        );
        self.cancel(&id(&open));
    }

    /// Running sub-flows are migrated to another version.
    fn migrate(&mut self) {
        let entity = self.name.clone();
        let begun: Vec<String> = (0..3)
            .map(|number| {
                id(&self.start(
                    "subflows",
                    &format!("{entity}-{number}"),
                    &json!({ "first": "Work" }),
                ))
            })
            .collect();
        let (from, to) = (self.version, self.version + 1);
        self.publish(to);
        let body = json!({ "definitionKey": "subflows", "fromVersion": from, "version": to });
        let key = self.shared.key();
        let headers = [
            ("content-type", "application/json"),
            ("idempotency-key", key.as_str()),
        ];
        let begins = self.sent(
            ("admin", "POST", "/v1/migrations"),
            &headers,
            body.to_string().as_bytes(),
        );
        assert_eq!(begins.status, 201, "{}", begins.text);
        for instance in begun {
            self.read_until(&format!("/v1/instances/{instance}"), |shown| {
                shown["definitionVersion"] == to
            });
            self.cancel(&instance);
        }
        self.version = to;
    }

    fn correlate(&mut self) {
        let entity = self.name.clone();
        let waits = self.start(
            "subflows",
            &entity,
            &json!({ "first": "Wait", "wait": { "correlation": entity } }),
        );
        let body = json!({ "correlation": entity, "id": entity });
        let headers = [("content-type", "application/json")];
        let sent = self.sent(
            ("author", "POST", "/v1/signals/PAID"),
            &headers,
            body.to_string().as_bytes(),
        );
        assert!(sent.is_accepted(), "{}", sent.text);
        let shown = self.read_until(&format!("/v1/instances/{}", id(&waits)), |shown| {
            shown["status"] == "COMPLETED"
        });
        assert_eq!(shown["data"]["paid"], 1, "{shown}");
    }

    /// Two instances wait under one key, and each gets the signal once.
    fn broadcast(&mut self) {
        let entity = self.name.clone();
        let data = json!({ "first": "Wait", "payments": 9, "wait": { "correlation": entity } });
        let waiting =
            ["a", "b"].map(|one| id(&self.start("subflows", &format!("{entity}-{one}"), &data)));
        let body = json!({ "correlation": entity, "id": entity, "deliver": "all" });
        let headers = [("content-type", "application/json")];
        let to = ("author", "POST", "/v1/signals/PAID");
        let sent = self.sent(to, &headers, body.to_string().as_bytes());
        assert!(sent.is_accepted(), "{}", sent.text);
        let signal = sent.body()["signal"]["signalId"]
            .as_str()
            .expect("an id")
            .to_owned();
        let path = format!("/v1/signals/{signal}");
        let receipt = self.read_until(&path, |receipt| receipt["status"] == "DELIVERED");
        assert_eq!(
            (&receipt["taken"], &receipt["refused"]),
            (&json!(2), &json!(0)),
            "{receipt}"
        );
        for instance in waiting {
            let shown = self.read_until(&format!("/v1/instances/{instance}"), |_| true);
            assert_eq!(shown["data"]["paid"], 1, "{shown}");
            self.cancel(&instance);
        }
    }

    /// Publishes the sub-flows under another digest as this version, and activates it.
    fn publish(&mut self, version: u32) {
        let component = another(subflows(), &version.to_string());
        let (kind, body) = setting::upload(&component);
        let path = "/v1/definitions/subflows/versions";
        let reply = self.sent(("admin", "POST", path), &[("content-type", &kind)], &body);
        assert!(reply.is_accepted(), "{}", reply.text);
        assert_eq!(reply.body()["version"], version, "{}", reply.text);
        let path = format!("{path}/{version}/activate");
        let reply = self.sent(
            ("admin", "POST", &path),
            &[("content-type", "application/json")],
            b"{}",
        );
        assert!(reply.is_accepted(), "{}", reply.text);
    }

    fn cancel(&mut self, instance: &str) {
        let path = format!("/v1/instances/{instance}/cancel");
        self.order("admin", path, json!({ "reason": "it was a trial" }));
    }

    fn put(&mut self, path: &str, body: &Value) {
        let headers = [("content-type", "application/json")];
        let reply = self.sent(
            ("admin", "PUT", path),
            &headers,
            body.to_string().as_bytes(),
        );
        assert_eq!(reply.status, 200, "{path}: {}", reply.text);
    }

    /// Sends a repeatable request until it is answered.
    fn sent(&mut self, line: (&str, &str, &str), headers: &[(&str, &str)], body: &[u8]) -> Reply {
        self.shared
            .persist(|client| client.send(0, line, headers, body))
    }

    fn read_until(&mut self, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let look = || {
            let reply = self.shared.persist(|client| client.get(0, "admin", path));
            reply.body()
        };
        let what = format!("{path} shows what the test waits for");
        until_on_thread(&what, look, is_so)
    }
}

fn id(shown: &Value) -> String {
    shown["id"].as_str().expect("an id").to_owned()
}

/// At which times a point is reached the host dies there: each of the first few in the long run, else one of them.
fn passings(number: usize, point: &str) -> Vec<usize> {
    // An approval has five commands. Other points may be reached only once.
    let often = point.starts_with("command.") || point.starts_with("relay.");
    match (often, at_length(1, 3)) {
        (true, 1) => vec![1 + number % 3],
        (true, all) => (1..=all).collect(),
        (false, _) => vec![1],
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_dies_at_every_point() {
    let fixture = Fixture::open(1, Kafka::Shared).await;
    setting::make(&fixture).await;
    let mut receiver = Receiver::start().await;
    setting::subscribe(&fixture, &receiver.url).await;
    let machine = Machine::start().await;
    machine.fails_first();
    fixture.has_service("machine", &machine.url);
    let shared = Shared::new(&fixture);
    let (mut version, mut deaths) = (1, 0);
    for (number, point) in POINTS.into_iter().enumerate() {
        for passing in passings(number, point) {
            fixture.kill(0);
            let armed = fixture.start_doomed(0, &format!("{point}:{passing}")).await;
            let has_died = Arc::new(AtomicBool::new(false));
            let walker = Walker {
                has_died: Arc::clone(&has_died),
                shared: shared.clone(),
                // It chooses among the hosts, and there is one.
                random: Random::new(0),
                name: format!("{point}-{passing}"),
                version,
            };
            let working = tokio::task::spawn_blocking(move || walker.work(point));
            let place = format!("{point}, passing {passing}");
            let death = match armed {
                Death::Already(signal) => signal,
                Death::ToCome => fixture.death(0, &place).await,
            };
            assert_eq!(death, SIGABRT, "{place}");
            has_died.store(true, Ordering::SeqCst);
            fixture.forget_leases().await;
            fixture.start(0).await;
            version = working
                .await
                .unwrap_or_else(|error| panic!("{point}: {error}"));
            deaths += 1;
        }
    }
    fixture.forget_leases().await;
    let journal: Vec<Settled> = shared.journal();
    let counts = checker::check(&fixture, &shared.client, &journal).await;
    let (posted, repeated) = delivered(&fixture, &receiver.rest()).await;
    eprintln!(
        "hosts that died at {deaths} places, {} points:\n{counts}",
        POINTS.len()
    );
    eprintln!("  {posted} webhooks delivered, {repeated} of them equal repetitions");
    assert!(counts.in_doubt > 0, "no command was in doubt");
}

/// Every event since the subscription was posted. Repetitions have equal ids and equal content.
async fn delivered(fixture: &Fixture, received: &[Received]) -> (usize, usize) {
    let mut posted: BTreeMap<&str, &Value> = BTreeMap::new();
    let mut repeated = 0;
    for message in received {
        if let Some(earlier) = posted.insert(message.id(), &message.body) {
            assert_eq!(earlier, &message.body, "{}", message.id());
            repeated += 1;
        }
    }
    let sql = "select e.id::text from audit_entry e where e.event_seq is not null
        and e.occurred_at >= (select min(created_at) from subscription)";
    let events: Vec<String> = sqlx::query_scalar(sql)
        .fetch_all(fixture.postgres.pool())
        .await
        .expect("events");
    let missing: Vec<&String> = events
        .iter()
        .filter(|id| !posted.contains_key(id.as_str()))
        .collect();
    assert!(missing.is_empty(), "never posted: {missing:?}");
    (received.len(), repeated)
}

#[test]
fn every_point_is_in_the_code_once() {
    let host = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host");
    let mut standing = Vec::new();
    points_below(&host, &mut standing).expect("the host's sources");
    let once: BTreeSet<&str> = standing.iter().map(String::as_str).collect();
    assert_eq!(standing.len(), once.len(), "{standing:?}");
    assert_eq!(
        once,
        BTreeSet::from(POINTS),
        "places in the code, and names in fault::POINTS"
    );
}

fn points_below(folder: &Path, found: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            points_below(&path, found)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = fs::read_to_string(&path)?;
            let calls = text.split("fault::point(\"").skip(1);
            found.extend(calls.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
        }
    }
    Ok(())
}
