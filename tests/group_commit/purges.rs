//! Deletion of old replies beside commits: neither blocks the other.

use std::time::Duration;

use wrkflw_core::command::Command;
use wrkflw_store::commit::{Change, CommitResult};
use wrkflw_store::load::Stored;
use wrkflw_store::{PoolSizes, Store};

use super::fixture::{Fixture, keyed, task_of};
use wrkflw_store::purge;

const DAY: Duration = Duration::from_hours(24);
const INSTANCES: usize = 64;
const ROUNDS: usize = 30;

/// `rob` releases the task, or claims it again, under the key that the instance used in earlier rounds.
fn next(fixture: &Fixture, stored: &Stored) -> Change {
    let task = task_of(&stored.instance);
    let command = match stored.instance.task(task).and_then(|task| task.owner()) {
        Some(_) => Command::Release { task },
        None => Command::Claim { task },
    };
    let change = fixture.change(Some(stored.clone()), "rob", &command);
    let key = stored.instance.entity.id.clone();
    keyed(change, &key)
}

/// Deletes until nothing is left.
async fn sweep(store: &Store) {
    while purge::replies(store, DAY).await.expect("no deadlock") {}
}

/// All replies are a day old, also those of starts. They are deleted while commits of two instances use their keys again. Both
/// instances may be anywhere among the rows that are being deleted.
#[tokio::test(flavor = "multi_thread")]
async fn deletions_and_batches_do_not_deadlock() {
    let fixture = Fixture::new().await;
    let sizes = PoolSizes {
        writer: 2,
        reader: 1,
        relay: 1,
    };
    let other = Store::connect(fixture.database.url(), sizes).expect("a URL");
    let mut all = Vec::new();
    for number in 0..INSTANCES {
        let key = format!("entity-{number}");
        let start = keyed(fixture.start(&key), &key);
        fixture.apply(&[&start]).await;
        all.push(fixture.load(start.after.id).await);
    }
    let mut applied = 0;
    for round in 0..ROUNDS {
        let older = "update idempotency_key set created_at = now() - interval '25 hours'";
        let older = sqlx::query(older).execute(fixture.database.admin_pool());
        older.await.expect("older");
        let pairs = (0..INSTANCES / 2).map(|number| {
            // Instances that are committed together in one round are far apart in the next.
            let second = (number + round) % (INSTANCES / 2) + INSTANCES / 2;
            let pair = [next(&fixture, &all[number]), next(&fixture, &all[second])];
            let fixture = &fixture;
            async move { fixture.commit(&[&pair[1], &pair[0]]).await }
        });
        let (results, (), ()) = tokio::join!(
            futures_util::future::join_all(pairs),
            sweep(&fixture.store),
            sweep(&other)
        );
        for result in results.into_iter().flatten() {
            // Its key was still there, or is deleted.
            assert!(
                matches!(result, CommitResult::Applied | CommitResult::Taken),
                "{result:?}"
            );
            applied += usize::from(result == CommitResult::Applied);
        }
        sweep(&fixture.store).await;
        for stored in &mut all {
            *stored = fixture.load(stored.instance.id).await;
        }
    }
    let revisions: u32 = all.iter().map(|stored| stored.instance.revision - 1).sum();
    assert_eq!(usize::try_from(revisions), Ok(applied), "a commit is lost");
    assert!(applied > INSTANCES, "{applied} commits met forgotten keys");
    // Sessions report their statistics when they end.
    other.close().await;
    fixture.store.close().await;
    let deadlocks = "select deadlocks from pg_stat_database where datname = current_database()";
    assert_eq!(fixture.count(deadlocks).await, 0);
}
