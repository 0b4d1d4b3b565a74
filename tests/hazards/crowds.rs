//! Batches that meet the same rows in opposite orders. PostgreSQL ends a deadlock by failing one side, so a statement
//! that fails is a finding.

use std::sync::Arc;

use tokio::sync::{Barrier, Mutex};
use tokio::task::JoinSet;
use wrkflw::domain::command::Command;
use wrkflw::store::commit::{Change, Verdict};
use wrkflw::store::load::Stored;

use super::desk::{Desk, keyed, task_of};

const CONNECTIONS: usize = 8;
/// With so many connections, 320 statements.
const ROUNDS: usize = 40;
const MEMBERS: usize = 24;

/// Every other connection goes backwards.
fn in_order_of<T>(connection: usize, mut items: Vec<T>) -> Vec<T> {
    if connection % 2 == 1 {
        items.reverse();
    }
    items
}

/// Runs one worker per connection; each says how many of its changes were applied.
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

async fn commit(desk: &Desk, changes: &[Change]) -> Vec<Verdict> {
    desk.commit(&changes.iter().collect::<Vec<_>>()).await
}

fn applied(verdicts: &[Verdict]) -> usize {
    verdicts
        .iter()
        .filter(|verdict| **verdict == Verdict::Applied)
        .count()
}

/// A claim of what is pending, a release of what is claimed.
fn touch(desk: &Desk, stored: &Stored) -> Change {
    let task = task_of(&stored.instance);
    let command = match stored.instance.active[0].tasks[0].owner() {
        None => Command::Claim { task },
        Some(_) => Command::Release { task },
    };
    desk.change(Some(stored.clone()), "rob", &command)
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_in_opposite_orders() {
    let desk = Arc::new(Desk::new().await);
    let mut stored = Vec::new();
    for member in 0..MEMBERS {
        stored.push(desk.claimed(&format!("entity-{member}")).await);
    }
    let shared = Arc::new(Mutex::new(stored));
    let total = workers(|connection, barrier| {
        let (desk, shared) = (desk.clone(), shared.clone());
        async move {
            let mut total = 0;
            for _ in 0..ROUNDS {
                let stored = in_order_of(connection, shared.lock().await.clone());
                let changes: Vec<_> = stored.iter().map(|stored| touch(&desk, stored)).collect();
                barrier.wait().await;
                total += applied(&commit(&desk, &changes).await);
                if barrier.wait().await.is_leader() {
                    for stored in shared.lock().await.iter_mut() {
                        *stored = desk.load(stored.instance.id).await;
                    }
                }
                barrier.wait().await;
            }
            total
        }
    })
    .await;
    // In each round each instance went to exactly one of the connections.
    assert_eq!(total, ROUNDS * MEMBERS);
    let revisions = desk
        .count("select sum(revision)::bigint from instance")
        .await;
    assert_eq!(usize::try_from(revisions), Ok(MEMBERS * 2 + total));
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_in_opposite_orders() {
    let desk = Arc::new(Desk::new().await);
    let total = workers(|connection, barrier| {
        let desk = desk.clone();
        async move {
            let mut mine = Vec::new();
            for member in 0..MEMBERS {
                mine.push(desk.claimed(&format!("entity-{connection}-{member}")).await);
            }
            let keys = in_order_of(connection, (0..MEMBERS).collect());
            let mut total = 0;
            for round in 0..ROUNDS {
                let change = |(key, stored): (&usize, &Stored)| {
                    keyed(touch(&desk, stored), &format!("k-{round}-{key}"))
                };
                let changes: Vec<_> = keys.iter().zip(&mine).map(change).collect();
                barrier.wait().await;
                let verdicts = commit(&desk, &changes).await;
                total += applied(&verdicts);
                for ((stored, change), verdict) in mine.iter_mut().zip(changes).zip(verdicts) {
                    if verdict == Verdict::Applied {
                        *stored = Desk::applied(change);
                    }
                }
            }
            total
        }
    })
    .await;
    assert_eq!(total, ROUNDS * MEMBERS);
    let keys = desk.count("select count(*) from idempotency_key").await;
    assert_eq!(usize::try_from(keys), Ok(total));
}

#[tokio::test(flavor = "multi_thread")]
async fn starts_in_opposite_orders() {
    let desk = Arc::new(Desk::new().await);
    let total = workers(|connection, barrier| {
        let desk = desk.clone();
        async move {
            let mut total = 0;
            for round in 0..ROUNDS {
                let entities = in_order_of(connection, (0..MEMBERS).collect());
                let start = |entity| {
                    keyed(
                        desk.start(&format!("e-{round}-{entity}")),
                        &format!("k-{round}-{entity}"),
                    )
                };
                let changes: Vec<_> = entities.into_iter().map(start).collect();
                barrier.wait().await;
                total += applied(&commit(&desk, &changes).await);
            }
            total
        }
    })
    .await;
    assert_eq!(total, ROUNDS * MEMBERS);
    let started = desk.count("select count(*) from instance").await;
    assert_eq!(usize::try_from(started), Ok(total));
}
