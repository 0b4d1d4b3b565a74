//! Measures latencies of decisions, webhooks and event streams in the tenant of the test.

use std::collections::BTreeMap;
use std::time::Instant;

use super::*;
use crate::api::events::Stream;
use crate::api::notifications::{Working, notifier, settings};
use crate::support::app::task_of;
use crate::support::receiver::Receiver;

/// The largest permitted ratio of the 99th percentile beside other work to that without.
const RATIO_MAX: f64 = 3.0;
/// A difference that is permitted at any ratio: a few time slices of a shared machine with two cores.
const NOTHING: Duration = Duration::from_millis(40);

/// Times by the kind of work.
pub(super) type Took = BTreeMap<&'static str, Vec<Duration>>;

/// The 99th percentile: the slowest, without the slowest hundredth, which is at least one.
fn p99(took: &[Duration]) -> Duration {
    let mut took = took.to_vec();
    took.sort_unstable();
    took[(took.len() - 1).saturating_sub((took.len() / 100).max(1))]
}

fn p50(took: &[Duration]) -> Duration {
    let mut took = took.to_vec();
    took.sort_unstable();
    took[took.len() / 2]
}

/// Prints the times, and returns those that are too long beside others.
pub(super) fn fair(quiet: &Took, loud: &Took) -> Result<(), String> {
    assert_eq!(
        quiet.keys().collect::<Vec<_>>(),
        loud.keys().collect::<Vec<_>>()
    );
    let mut unfair = Vec::new();
    for (what, quiet) in quiet {
        let loud = &loud[what];
        let line = format!(
            "{what}: p50 {:?} and p99 {:?} alone ({}), p50 {:?} and p99 {:?} beside the others ({})",
            p50(quiet),
            p99(quiet),
            quiet.len(),
            p50(loud),
            p99(loud),
            loud.len()
        );
        eprintln!("{line}");
        if p99(loud) > p99(quiet).mul_f64(RATIO_MAX) + NOTHING {
            unfair.push(line);
        }
    }
    if unfair.is_empty() {
        return Ok(());
    }
    Err(unfair.join("\n"))
}

/// A task, a receiver and a stream.
pub(super) struct Waits<'a> {
    app: &'a TestApp,
    /// An instance in `Work`.
    subflow: String,
    hook: Receiver,
    stream: Stream,
    _notifier: Working,
}

impl Waits<'_> {
    pub(super) async fn of(app: &TestApp) -> Waits<'_> {
        let hook = Receiver::start().await;
        let body = json!({ "url": hook.url, "types": ["decision.recorded"] });
        let subscribed = app.post("admin", "/v1/subscriptions", body).await;
        subscribed.expect(201);
        let host = app.host();
        let authorization = format!("Bearer {}", host.token("author"));
        let stream = Stream::of(&host, &authorization, None).await;
        let subflow = begin(app, "desk", json!({ "first": "Work", "wait": {} })).await;
        Waits {
            subflow,
            hook,
            stream,
            _notifier: notifier(app, settings(&[Duration::ZERO; 20])),
            app,
        }
    }

    /// The times of each kind of work, repeated so many times one after the other.
    pub(super) async fn measured(&mut self, name: &str, rounds: usize) -> Took {
        let mut took = Took::new();
        let mut note = |what, time| took.entry(what).or_default().push(time);
        for round in 0..rounds {
            let [decided, posted, streamed] = self.messages().await;
            note("decisions", decided);
            note("webhooks", posted);
            note("streams", streamed);
            note("jobs", self.child(&format!("{name} {round}")).await);
            note("signals", self.signal(&format!("{name} {round}")).await);
        }
        took
    }

    /// A decision, which claims its task.
    pub(super) async fn decision(&self) -> Duration {
        let task = task_of(&shown(self.app, &self.subflow).await);
        let begun = Instant::now();
        self.decide(&task).await;
        let decided = begun.elapsed();
        self.back_to_work().await;
        decided
    }

    async fn decide(&self, task: &str) {
        let (path, body) = (
            format!("/v1/tasks/{task}/decide"),
            json!({ "outcome": "GO" }),
        );
        self.app.post("reviewer", &path, body).await.expect(200);
    }

    async fn claim(&self, task: &str) {
        let path = format!("/v1/tasks/{task}/claim");
        self.app
            .post("reviewer", &path, json!({}))
            .await
            .expect(200);
    }

    async fn back_to_work(&self) {
        let left = signal(self.app, &self.subflow, "LEAVE", json!({})).await;
        left.expect(200);
    }

    /// A claim and a decision, until the event of the decision is posted and streamed.
    async fn messages(&mut self) -> [Duration; 3] {
        let task = task_of(&shown(self.app, &self.subflow).await);
        let begun = Instant::now();
        self.claim(&task).await;
        self.decide(&task).await;
        let decided = begun.elapsed();
        let posted = async {
            self.hook.next().await;
            begun.elapsed()
        };
        let streamed = async {
            // Nobody else of this tenant decides anything.
            while self.stream.next().await.1["type"] != "dev.wrkflw.decision.recorded" {}
            begun.elapsed()
        };
        let (posted, streamed) = tokio::join!(posted, streamed);
        self.back_to_work().await;
        [decided, posted, streamed]
    }

    /// A job: until a child has been started.
    async fn child(&self, name: &str) -> Duration {
        let begun = Instant::now();
        let child = json!({ "entity": format!("{name} child"), "data": {}, "onEnd": "ENDED" });
        let data = json!({ "wait": { "children": [child] } });
        let parent = begin(self.app, &format!("{name} parent"), data).await;
        children(self.app, &parent, 1).await;
        begun.elapsed()
    }

    /// Until a state has taken a signal that was sent before.
    async fn signal(&self, name: &str) -> Duration {
        let body = json!({ "correlation": name, "id": "early" });
        let sent = self.app.post("author", "/v1/signals/PAID", body).await;
        sent.expect(202);
        let begun = Instant::now();
        let data = json!({ "wait": { "correlation": name, "bufferSignals": true } });
        let waits = begin(self.app, &format!("{name} waits"), data).await;
        until_status(self.app, &waits, "COMPLETED").await;
        begun.elapsed()
    }
}
