//! How a tenant that floods its jobs, within its limits, delays another one: its decisions, children, buffered signals, webhooks
//! and event streams, measured with and without the flood.
//!
//! The machine may be busy, so only the ratio within a trial counts, and the best of a few trials.

use std::time::Instant;

use super::waits::{Waits, fair};
use super::*;
use crate::support::length::at_length;

const TRIALS: usize = 3;
/// Starts of the flood. Each makes as many instances as its limit permits.
const ROOTS: usize = 40;

async fn flood(other: &Other) {
    for root in 0..ROOTS {
        let wait = json!({ "wait": { "swarm": 20 } });
        other.start(&format!("flood {root}"), wait).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_floods_its_jobs_delays_no_other() {
    let rounds = at_length(20, 200);
    let mut seen = Vec::new();
    for _ in 0..TRIALS {
        let app = fixture().await;
        let other = Other::of(&app).await;
        let mut waits = Waits::of(&app).await;
        let timers = app.timers();
        waits.measured("warm", 3).await;
        let quiet = waits.measured("quiet", rounds).await;
        flood(&other).await;
        let begun = Instant::now();
        let loud = waits.measured("loud", rounds).await;
        // The flood must last through the whole measurement.
        let due =
            "select count(*) from job j join tenant t on t.id = j.tenant_id where t.name = 'other'";
        let due = counted(&app, due).await;
        eprintln!("{due} jobs due after {:?} of the flood", begun.elapsed());
        assert!(due > 500, "the flood is over");
        timers.kill().await;
        match fair(&quiet, &loud) {
            Ok(()) => return,
            Err(unfair) => seen.push(unfair),
        }
    }
    panic!("in none of the trials: {seen:#?}");
}
