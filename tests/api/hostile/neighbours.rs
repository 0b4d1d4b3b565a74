//! How hostile flows delay others: the same requests of neighbours, measured in turn with and without the attack.
//!
//! The machine may be busy with other work. That slows both measurements equally, because they alternate within seconds. Only the
//! ratio counts, and one of a few trials must pass.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use super::*;

const SLICES: usize = 6;
const NEIGHBOURS: usize = 2;
/// Documents of one neighbour in one slice, with three requests each.
const DOCUMENTS: usize = 12;
const ATTACKERS: usize = 6;
const TRIALS: usize = 3;
/// The permitted ratios of the slowest hundredth and of the median. With slow guests on the shared threads, the median was 1.8 to
/// 3.1 times as slow here. With threads of their own, it was 1.2 to 1.4 times.
const P99_RATIO_MAX: f64 = 3.0;
const P50_RATIO_MAX: f64 = 1.6;

/// Starts, claims and approves documents. Returns the time of each request.
async fn served(app: &TestApp, name: &str) -> Vec<Duration> {
    let mut took = Vec::new();
    for document in 0..DOCUMENTS {
        let mut post = async |user: &str, path: &str, body: Value, status: u16| {
            let begun = Instant::now();
            let answer = app.post(user, path, body).await.expect(status);
            took.push(begun.elapsed());
            answer
        };
        let body = approval_start(&format!("{name}-{document}"));
        let instance = post("author", "/v1/instances", body, 201).await;
        let task = task_of(&instance["instance"]);
        post(
            "reviewer",
            &format!("/v1/tasks/{task}/claim"),
            json!({}),
            200,
        )
        .await;
        let approve = json!({ "outcome": "APPROVE" });
        let decided = post(
            "reviewer",
            &format!("/v1/tasks/{task}/decide"),
            approve,
            200,
        )
        .await;
        assert_eq!(decided["instance"]["states"][0]["name"], "FinalReview");
    }
    took
}

async fn neighbours(app: &TestApp, slice: &str) -> Vec<Duration> {
    let names: Vec<_> = (0..NEIGHBOURS).map(|n| format!("{slice}-{n}")).collect();
    join_all(names.iter().map(|name| served(app, name)))
        .await
        .concat()
}

pub(in crate::api) fn percentile(took: &[Duration], percent: usize) -> Duration {
    let mut took = took.to_vec();
    took.sort();
    took[(took.len() - 1) * percent / 100]
}

/// Runs `attack` repeatedly by several attackers, in every other slice. Compares the times of the neighbours.
async fn compare(app: &TestApp, name: &str, attack: impl AsyncFn(usize, usize)) {
    let mut report = String::new();
    for trial in 0..TRIALS {
        let (quiet, attacked, attacks) = trial_of(app, &format!("{name}-{trial}"), &attack).await;
        assert!(attacks >= ATTACKERS * SLICES, "too few attacks: {attacks}");
        let [p50, p99] = [50, 99].map(|percent| {
            let (quiet, attacked) = (percentile(&quiet, percent), percentile(&attacked, percent));
            let ratio = attacked.as_secs_f64() / quiet.as_secs_f64();
            let figures = format!(
                "{name} p{percent}: {quiet:?} without, {attacked:?} with {attacks} attacks, {ratio:.2} times"
            );
            bombs::print(&figures);
            report.push_str(&figures);
            report.push('\n');
            ratio
        });
        if p50 < P50_RATIO_MAX && p99 < P99_RATIO_MAX {
            return;
        }
    }
    panic!("slower in each of {TRIALS} trials:\n{report}");
}

/// The times of requests without and with the attack, and the number of attacks.
async fn trial_of(
    app: &TestApp,
    name: &str,
    attack: &impl AsyncFn(usize, usize),
) -> (Vec<Duration>, Vec<Duration>, usize) {
    let (mut quiet, mut attacked) = (Vec::new(), Vec::new());
    neighbours(app, &format!("{name}-warm")).await;
    let attacks = AtomicUsize::new(0);
    for slice in 0..SLICES {
        quiet.extend(neighbours(app, &format!("{name}-quiet-{slice}")).await);
        let under_way = tokio::sync::Semaphore::new(0);
        let round_after_round = async |number: usize| -> Infallible {
            let mut round = slice;
            loop {
                under_way.add_permits(1);
                attacks.fetch_add(1, Ordering::Relaxed);
                attack(number, round).await;
                round += 1;
            }
        };
        let measuring = async {
            let all = u32::try_from(ATTACKERS).expect("few");
            drop(under_way.acquire_many(all).await.expect("never closed"));
            neighbours(app, &format!("{name}-attacked-{slice}")).await
        };
        // The attackers of a slice end with it.
        tokio::select! {
            took = measuring => attacked.extend(took),
            _ = join_all((0..ATTACKERS).map(round_after_round)) => unreachable!("attackers never end"),
        }
    }
    (quiet, attacked, attacks.into_inner())
}

#[tokio::test(flavor = "multi_thread")]
async fn guests_that_use_all_their_fuel_slow_nobody_else() {
    const BEHAVIOURS: [&str; 12] = [
        "spin",
        "crawl",
        "grow",
        "allocate",
        "touch",
        "fill",
        "backtrack",
        "nested",
        "recurse",
        "huge",
        "million_notes",
        "trap",
    ];
    let app = TestApp::empty_in(bombs::sandbox()).await;
    app.with_approval().await;
    with_hostile(&app).await;
    let mut desks = Vec::new();
    for number in 0..ATTACKERS {
        let body = hostile_start(&format!("t-{number}"), json!({}));
        let instance = app.post("author", "/v1/instances", body).await.started();
        let task = claimed(&app, "reviewer", &instance).await;
        // The attack must have no effect even if the guest survives.
        desks.push(format!("/v1/tasks/{task}/decide?dryRun=true"));
    }
    let attack = async |number: usize, round: usize| {
        let behaviour = BEHAVIOURS[(number + round) % BEHAVIOURS.len()];
        let body = json!({ "outcome": "GO", "input": { "behaviour": behaviour } });
        let answer = app.post("reviewer", &desks[number], body).await;
        let expected = if behaviour == "touch" {
            [200, 503]
        } else {
            [424, 503]
        };
        assert!(
            expected.contains(&answer.status),
            "{behaviour}: {}",
            answer.text
        );
    };
    compare(&app, "guests", attack).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn compiler_bombs_slow_nobody_else() {
    let app = TestApp::empty_in(bombs::sandbox()).await;
    app.with_approval().await;
    let bombs = [
        bombs::loops(3_000),
        bombs::live(60_000),
        bombs::calls(100_000),
    ];
    let attack = async |number: usize, round: usize| {
        let bytes = guests::another(
            &bombs[(number + round) % bombs.len()],
            &format!("{number}-{round}"),
        );
        let answer = app.publish("bomb", &bytes, &json!({})).await;
        assert!(matches!(answer.status, 422 | 503), "{}", answer.text);
    };
    compare(&app, "bombs", attack).await;
}
