//! Random commands by many actors, through several hosts. For every interleaving there must be an order in which a small model of
//! the rules gives every answer that was given (linearizability).
//!
//! `walk` sends the commands, `history` finds the order, `rules` and `effects` are the model. A failure prints the seed;
//! `WRKFLW_SEED` sets it.

mod effects;
mod history;
mod rules;
mod walk;

use std::sync::Arc;

use serde_json::json;
use tokio::task::JoinSet;

use super::three_hosts;
use crate::audit::commands::prove_all;
use crate::support::length::at_length;
use history::{Asked, Call, History};
use rules::Command;
use walk::{Fixture, Random};

const ACTORS: usize = 12;

#[expect(
    clippy::disallowed_methods,
    reason = "the environment sets the seed of a failure to repeat"
)]
fn seed() -> u64 {
    let given = std::env::var("WRKFLW_SEED").ok();
    let given = given.map(|seed| seed.parse().expect("WRKFLW_SEED is a number"));
    given.unwrap_or_else(|| uuid::Uuid::now_v7().as_u64_pair().1)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_is_right_in_one_order() {
    let seed = seed();
    // Printed with a failure of the test or of an actor.
    eprintln!("WRKFLW_SEED={seed}");
    let (app, hosts) = three_hosts().await;
    let fixture = Fixture::new(&app, hosts, seed).await;
    let mut actors = JoinSet::new();
    for actor in 0..ACTORS {
        let random = Random(seed.wrapping_add(1 + actor as u64));
        actors.spawn(Arc::clone(&fixture).act(random, at_length(100, 5_000)));
    }
    actors.join_all().await;
    let histories = fixture.histories();
    let (mut changes, mut refused) = (0, 0);
    for history in &histories {
        let (of_changes, of_refusals) = history.check().unwrap_or_else(|why| {
            let calls = &history.calls;
            panic!(
                "WRKFLW_SEED={seed}: {why}\nof {} calls of {:?}",
                calls.len(),
                history.flow
            )
        });
        changes += of_changes;
        refused += of_refusals;
    }
    // Histories without changes prove nothing.
    assert!(
        changes > 200 && refused > 200,
        "{changes} changes, {refused} refusals"
    );
    falsified_histories_are_found(&histories);
    prove_all(&app).await;
}

/// Falsifies a history. Returns whether it could.
type Falsification = fn(&mut History) -> bool;

/// Falsified answers must fit no order. This shows that the search would find them.
fn falsified_histories_are_found(histories: &[History]) {
    let falsifications: [(&str, Falsification); 5] = [
        ("a change is done twice", |history| {
            // A call that changed nothing may be repeated or left out.
            let changes = places(history, |call| call.is_change() && call.status == 200);
            let Some(place) = changes.first() else {
                return false;
            };
            let again = history.calls[*place].clone();
            history.calls.push(again);
            true
        }),
        ("a change is lost", |history| {
            let mut changes = places(history, |call| call.is_change() && call.status == 200);
            // Calls are stored in the order of their answers. A history without the very last change may be valid.
            changes.sort_by_key(|place| history.calls[*place].revision());
            let Some(place) = changes.first() else {
                return false;
            };
            history.calls.remove(*place);
            changes.len() > 1
        }),
        ("a read shows an outdated state", |history| {
            let first = history.calls[0].clone();
            let last = history
                .calls
                .iter()
                .map(|call| call.ended)
                .max()
                .unwrap_or(0);
            history.calls.push(Call {
                asked: Asked::Look,
                begun: last + 1,
                ended: last + 2,
                status: 200,
                ..first
            });
            history.calls.len() > 20
        }),
        ("the wrong one is named as the winner", |history| {
            let lost = places(history, |call| call.body["conflict"]["action"] == "claimed");
            let Some(place) = lost.first() else {
                return false;
            };
            history.calls[*place].body["conflict"]["by"] = json!("approver 2");
            true
        }),
        ("an outsider claims", |history| {
            let claims = places(history, |call| {
                call.status == 200 && matches!(call.asked, Asked::Do(Command::Claim(_)))
            });
            let Some(place) = claims.first() else {
                return false;
            };
            history.calls[*place].who = rules::OUTSIDER;
            true
        }),
    ];
    for (what, falsify) in falsifications {
        let mut count = 0;
        for history in histories {
            let mut falsified = history.clone();
            if falsify(&mut falsified) {
                count += 1;
                assert!(falsified.check().is_err(), "{what}, and it fits");
            }
        }
        assert!(count > 0, "{what}: never tried");
    }
}

fn places(history: &History, is_meant: impl Fn(&Call) -> bool) -> Vec<usize> {
    let calls = history.calls.iter().enumerate();
    let meant = calls.filter(|(_, call)| is_meant(call));
    meant.map(|(place, _)| place).collect()
}
