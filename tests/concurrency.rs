//! Concurrent commands through two or three hosts on one database: exactly one wins, and the others get the winner and the present
//! state.
//!
//! `crowds` sends the same command fifty times. `competing` sends a decision together with every other command, `deadlines`
//! together with a due deadline. `queued` lets commands queue for one instance. `cache` outdates the caches of hosts, `setbacks`
//! sets the database back. `sole` starts instances that are the only ones about their entity. `linear` sends random commands, and
//! finds an order in which every answer was right.

mod cache;
mod competing;
mod crowds;
mod deadlines;
mod linear;
mod queued;
mod setbacks;
mod sole;

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::support::app::{Answer, Host, TestApp};
use crate::support::guests::committee;

/// Numbers of hosts on the same database.
const HOSTS: [usize; 2] = [2, 3];

/// One request.
struct HostRequest {
    user: String,
    path: String,
    body: Value,
}

impl HostRequest {
    fn new(user: &str, path: impl Into<String>, body: Value) -> HostRequest {
        HostRequest {
            user: user.into(),
            path: path.into(),
            body,
        }
    }
}

/// Three hosts on one database.
async fn three_hosts() -> (TestApp, Vec<Host>) {
    let app = TestApp::start().await;
    let hosts = vec![app.host(), app.beside().await, app.beside().await];
    (app, hosts)
}

/// Publishes these versions of the committee and activates the first.
async fn vote_on(app: &TestApp, configs: &[Value]) {
    for config in configs {
        let published = app.publish("committee", committee(), config).await;
        published.expect(201);
    }
    let path = "/v1/definitions/committee/versions/1/activate";
    app.post("admin", path, json!({})).await.expect(200);
}

/// Starts a vote as `author`, about an entity of this id.
async fn vote(app: &TestApp, entity: &str, data: Value) -> Value {
    let body = json!({
        "definitionKey": "committee", "entityType": "motion", "entityId": entity, "data": data,
    });
    app.post("author", "/v1/instances", body).await.started()
}

fn id(of: &Value) -> &str {
    of["id"].as_str().expect("an id")
}

async fn shown(app: &TestApp, instance: &Value) -> Value {
    let path = format!("/v1/instances/{}", id(instance));
    app.get("admin", &path).await.expect(200)
}

/// Sends all requests concurrently, in turn to each of the hosts. The answers are in the order of the requests.
async fn at_once(hosts: &[Host], requests: Vec<HostRequest>) -> Vec<Answer> {
    let start = Arc::new(Barrier::new(requests.len()));
    let mut callers = JoinSet::new();
    for (number, request) in requests.into_iter().enumerate() {
        let (host, start) = (hosts[number % hosts.len()].clone(), start.clone());
        callers.spawn(async move {
            let HostRequest { user, path, body } = request;
            start.wait().await;
            let answer = host.send(&user, "POST", &path, &[], Some(body)).await;
            (number, answer)
        });
    }
    let mut answers = callers.join_all().await;
    answers.sort_by_key(|(number, _)| *number);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// The winner's answer, and the others.
#[track_caller]
fn winner(answers: Vec<Answer>, won: u16) -> (Value, Vec<Answer>) {
    let (mut winners, others): (Vec<_>, Vec<_>) =
        answers.into_iter().partition(|answer| answer.status == won);
    assert_eq!(winners.len(), 1, "{} won", winners.len());
    (winners.remove(0).body, others)
}

/// The number of audit entries of this type of an instance.
async fn recorded(app: &TestApp, instance: &Value, kind: &str) -> usize {
    let path = format!("/v1/instances/{}/audit?limit=100", id(instance));
    let page = app.get("admin", &path).await.expect(200);
    let entries = page["data"].as_array().expect("entries").iter();
    entries.filter(|entry| entry["type"] == kind).count()
}
