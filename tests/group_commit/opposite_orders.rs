//! Batches that touch the same rows in opposite orders. PostgreSQL resolves a deadlock by failing one side, so every failed
//! statement is an error of the test.

use std::sync::Arc;

use tokio::sync::{Barrier, Mutex};
use tokio::task::JoinSet;
use wrkflw_core::command::Command;
use wrkflw_store::commit::{Change, CommitResult};
use wrkflw_store::load::Stored;

use super::fixture::{Fixture, keyed, task_of};

const CONNECTIONS: usize = 8;
/// With these connections, 320 statements.
const ROUNDS: usize = 40;
const MEMBERS: usize = 24;

/// Every other connection uses the reverse order.
fn in_order_of<T>(connection: usize, mut items: Vec<T>) -> Vec<T> {
    if connection % 2 == 1 {
        items.reverse();
    }
    items
}

/// Runs one worker per connection. Each returns how many of its changes were applied.
async fn workers<F: Future<Output = usize> + Send + 'static>(
    work: impl Fn(usize, Arc<Barrier>) -> F,
) -> usize {
    let barrier = Arc::new(Barrier::new(CONNECTIONS));
    let mut workers = JoinSet::new();
    for connection in 0..CONNECTIONS {
        workers.spawn(work(connection, barrier.clone()));
    }
    workers.join_all().await.into_iter().sum()
}

async fn commit(fixture: &Fixture, changes: &[Change]) -> Vec<CommitResult> {
    fixture.commit(&changes.iter().collect::<Vec<_>>()).await
}

fn applied(results: &[CommitResult]) -> usize {
    results
        .iter()
        .filter(|result| **result == CommitResult::Applied)
        .count()
}

/// A claim of an open task, or a release of a claimed one.
fn touch(fixture: &Fixture, stored: &Stored) -> Change {
    let task = task_of(&stored.instance);
    let command = match stored.instance.active[0].tasks[0].owner() {
        None => Command::Claim { task },
        Some(_) => Command::Release { task },
    };
    fixture.change(Some(stored.clone()), "rob", &command)
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_in_opposite_orders() {
    let fixture = Arc::new(Fixture::new().await);
    let mut stored = Vec::new();
    for member in 0..MEMBERS {
        stored.push(fixture.claimed(&format!("entity-{member}")).await);
    }
    let shared = Arc::new(Mutex::new(stored));
    let total = workers(|connection, barrier| {
        let (fixture, shared) = (fixture.clone(), shared.clone());
        async move {
            let mut total = 0;
            for _ in 0..ROUNDS {
                let stored = in_order_of(connection, shared.lock().await.clone());
                let changes: Vec<_> = stored
                    .iter()
                    .map(|stored| touch(&fixture, stored))
                    .collect();
                barrier.wait().await;
                total += applied(&commit(&fixture, &changes).await);
                if barrier.wait().await.is_leader() {
                    for stored in shared.lock().await.iter_mut() {
                        *stored = fixture.load(stored.instance.id).await;
                    }
                }
                barrier.wait().await;
            }
            total
        }
    })
    .await;
    // In each round exactly one connection changed each instance.
    assert_eq!(total, ROUNDS * MEMBERS);
    let revisions = fixture
        .count("select sum(revision)::bigint from instance")
        .await;
    assert_eq!(usize::try_from(revisions), Ok(MEMBERS * 2 + total));
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_in_opposite_orders() {
    let fixture = Arc::new(Fixture::new().await);
    let total = workers(|connection, barrier| {
        let fixture = fixture.clone();
        async move {
            let mut mine = Vec::new();
            for member in 0..MEMBERS {
                mine.push(
                    fixture
                        .claimed(&format!("entity-{connection}-{member}"))
                        .await,
                );
            }
            let keys = in_order_of(connection, (0..MEMBERS).collect());
            let mut total = 0;
            for round in 0..ROUNDS {
                let change = |(key, stored): (&usize, &Stored)| {
                    keyed(touch(&fixture, stored), &format!("k-{round}-{key}"))
                };
                let changes: Vec<_> = keys.iter().zip(&mine).map(change).collect();
                barrier.wait().await;
                let results = commit(&fixture, &changes).await;
                total += applied(&results);
                for ((stored, change), result) in mine.iter_mut().zip(changes).zip(results) {
                    if result == CommitResult::Applied {
                        *stored = Fixture::applied(change);
                    }
                }
            }
            total
        }
    })
    .await;
    assert_eq!(total, ROUNDS * MEMBERS);
    let keys = fixture.count("select count(*) from idempotency_key").await;
    assert_eq!(usize::try_from(keys), Ok(total));
}

#[tokio::test(flavor = "multi_thread")]
async fn starts_in_opposite_orders() {
    let fixture = Arc::new(Fixture::new().await);
    let total = workers(|connection, barrier| {
        let fixture = fixture.clone();
        async move {
            let mut total = 0;
            for round in 0..ROUNDS {
                let entities = in_order_of(connection, (0..MEMBERS).collect());
                let start = |entity| {
                    keyed(
                        fixture.start(&format!("e-{round}-{entity}")),
                        &format!("k-{round}-{entity}"),
                    )
                };
                let changes: Vec<_> = entities.into_iter().map(start).collect();
                barrier.wait().await;
                total += applied(&commit(&fixture, &changes).await);
            }
            total
        }
    })
    .await;
    assert_eq!(total, ROUNDS * MEMBERS);
    let started = fixture.count("select count(*) from instance").await;
    assert_eq!(usize::try_from(started), Ok(total));
}
