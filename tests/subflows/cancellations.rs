//! How fast the instances of a stopped version are cancelled, with all their jobs, and how long another tenant waits meanwhile.
//!
//! The machine may be busy, so the time is compared with that of starting the instances, a few concurrently, and the best of a
//! few trials counts. The long run has an absolute limit, too.

use std::time::Instant;

use futures_util::StreamExt as _;

use super::waits::{Took, Waits, fair};
use super::*;
use crate::support::length::at_length;

const TRIALS: usize = 3;
/// Concurrent starts.
const STARTS: usize = 16;
/// The number of instances in the long run, and their time limit.
const LONG: (usize, Duration) = (20_000, Duration::from_mins(1));
/// The timeout of an operation on a busy machine.
const MINUTES: Duration = Duration::from_mins(10);

/// Starts instances with three or four due jobs each.
async fn swarm(other: &Other, instances: usize) {
    futures_util::stream::iter(0..instances)
        .for_each_concurrent(STARTS, |number| async move {
            let wait =
                json!({ "swarm": 1 + number % 2, "late": 0, "correlation": number.to_string() });
            other
                .start(&number.to_string(), json!({ "wait": wait }))
                .await;
        })
        .await;
}

/// Stops the version, and begins to cancel its instances. Returns the operation.
async fn cancelled(other: &Other) -> String {
    let path = "/v1/definitions/subflows/versions/1/stop";
    let body = json!({ "reason": "a circle" });
    other.post(&other.admin, path, body).await.expect(200);
    let body = json!({ "definitionKey": "subflows", "version": 1, "reason": "a circle" });
    let begun = other.post(&other.admin, "/v1/cancellations", body).await;
    id(&begun.expect(201))
}

async fn operation(other: &Other, id: &str) -> Value {
    let headers = [("authorization", other.admin.as_str())];
    let path = format!("/v1/operations/{id}");
    let found = other.host.send("", "GET", &path, &headers, None).await;
    found.expect(200)
}

/// The latencies of another tenant until the operation has ended.
async fn beside(waits: &Waits<'_>, other: &Other, operation_id: &str) -> Took {
    let mut took = Took::new();
    while operation(other, operation_id).await["status"] == "RUNNING" {
        let decided = waits.decision().await;
        took.entry("decisions").or_default().push(decided);
    }
    took
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::print_stdout, reason = "the figures of a run")]
async fn the_instances_of_a_stopped_version_are_cancelled_soon_and_delay_nobody() {
    let (instances, most) = at_length((2_000, MINUTES), LONG);
    let mut seen = Vec::new();
    for _ in 0..TRIALS {
        let app = fixture().await;
        let other = Other::of(&app).await;
        let waits = Waits::of(&app).await;
        let begun = Instant::now();
        swarm(&other, instances).await;
        let started = begun.elapsed();
        let due = "select count(*) from job where due_at <= now()";
        println!(
            "{instances} instances with {} jobs in {started:?}",
            counted(&app, due).await
        );
        let mut quiet = Took::new();
        for _ in 0..100 {
            let decided = waits.decision().await;
            quiet.entry("decisions").or_default().push(decided);
        }
        let begun = Instant::now();
        let id = cancelled(&other).await;
        println!("stopped and chosen in {:?}", begun.elapsed());
        let timers = app.timers();
        let loud = beside(&waits, &other, &id);
        let loud = tokio::time::timeout(MINUTES, loud).await.expect("in time");
        let took = begun.elapsed();
        let ended = operation(&other, &id).await;
        assert_eq!(ended["done"], instances, "{ended}");
        #[expect(
            clippy::cast_precision_loss,
            reason = "far below the limit of a double"
        )]
        let rate = instances as f64 / took.as_secs_f64();
        println!("{instances} instances cancelled in {took:?}: {rate:.0} a second");
        settled(&app).await;
        timers.stop().await;
        match fair(&quiet, &loud) {
            Ok(()) if took < started && took <= most => return,
            Ok(()) => seen.push(format!("cancelled in {took:?}, started in {started:?}")),
            Err(unfair) => seen.push(unfair),
        }
    }
    panic!("in none of the trials: {seen:#?}");
}
