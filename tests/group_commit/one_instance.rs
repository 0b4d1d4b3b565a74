//! Joined changes of one instance write what the single changes would have written one after the other.

use wrkflw_core::command::Command;
use wrkflw_core::instance::Instance;
use wrkflw_store::commit::{self, Change, CommitResult};
use wrkflw_store::load::Stored;

use super::fixture::{Fixture, counts, decision, keyed, task_of};

/// A claim, a release, a claim and the decision, each computed from the state that the one before leaves.
fn steps(fixture: &Fixture, mut stored: Stored) -> Vec<Change> {
    let task = task_of(&stored.instance);
    let commands = [
        Command::Claim { task },
        Command::Release { task },
        Command::Claim { task },
        decision(task, "GO"),
    ];
    let mut changes = Vec::new();
    for command in &commands {
        let change = fixture.change(Some(stored), "rob", command);
        stored = change.leaves();
        changes.push(change);
    }
    changes
}

fn joined(changes: Vec<Change>) -> Change {
    let joined = changes.into_iter().reduce(|mut one, next| {
        one.join(next);
        one
    });
    joined.expect("a change")
}

async fn pending(fixture: &Fixture, entity: &str) -> Stored {
    let start = fixture.start(entity);
    fixture.apply(&[&start]).await;
    fixture.load(start.after.id).await
}

#[tokio::test]
async fn joined_commands_write_what_single_ones_would() {
    let fixture = Fixture::new().await;
    let (apart, together) = (
        pending(&fixture, "apart").await,
        pending(&fixture, "together").await,
    );
    let (one_by_one, at_once) = (apart.instance.id, together.instance.id);
    for change in steps(&fixture, apart) {
        let leaves = change.leaves();
        fixture.apply(&[&change]).await;
        assert_eq!(fixture.load(one_by_one).await, leaves);
    }
    let group = joined(steps(&fixture, together));
    let leaves = group.leaves();
    fixture.apply(&[&group]).await;
    assert_eq!(fixture.load(at_once).await, leaves);
    assert_eq!(
        counts(&fixture.rows(at_once).await),
        counts(&fixture.rows(one_by_one).await)
    );
    // Each entry names its command and the revision of that command.
    let per_command =
        "select count(distinct (command_id, revision)) from audit_entry group by stream_id";
    let counts = sqlx::query_scalar::<_, i64>(per_command).fetch_all(fixture.database.admin_pool());
    assert_eq!(counts.await.expect("counts"), [5, 5]);
}

#[tokio::test]
async fn a_joined_change_on_another_state_is_stale_as_a_whole() {
    let fixture = Fixture::new().await;
    let stored = pending(&fixture, "moved on").await;
    let group = joined(steps(&fixture, stored.clone()));
    let task = task_of(&stored.instance);
    fixture
        .apply(&[&fixture.change(Some(stored), "rob", &Command::Claim { task })])
        .await;
    let before = fixture.rows(group.after.id).await;
    assert_eq!(fixture.commit(&[&group]).await, [CommitResult::Stale]);
    assert_eq!(fixture.rows(group.after.id).await, before);
}

#[tokio::test]
async fn all_keys_of_a_change_are_taken_or_none() {
    let fixture = Fixture::new().await;
    let with_keys = async |entity: &str, keys: [&str; 2]| {
        let mut steps = steps(&fixture, pending(&fixture, entity).await).into_iter();
        let mut keyed_steps = Vec::new();
        for key in keys {
            keyed_steps.push(keyed(steps.next().expect("a step"), key));
        }
        joined(keyed_steps)
    };
    fixture
        .apply(&[&with_keys("first", ["a", "b"]).await])
        .await;
    let keys = "select count(*) from idempotency_key";
    assert_eq!(fixture.count(keys).await, 2);

    let both = with_keys("both", ["b", "a"]).await;
    assert_eq!(fixture.commit(&[&both]).await, [CommitResult::Taken]);

    // The statement cannot undo a part, so all of it fails, including the other member.
    let part = with_keys("part", ["c", "a"]).await;
    let neighbour = fixture.decide(&fixture.claimed("neighbour").await, "GO");
    let error = commit::commit(&fixture.store, &[&neighbour, &part]).await;
    let error = error.expect_err("some of its keys are free");
    assert!(error.may_be_of_one(), "{error}");
    assert_eq!(fixture.count(keys).await, 2);
    for change in [&both, &part, &neighbour] {
        let revision = fixture.load(change.after.id).await.instance.revision;
        assert_eq!(
            Some(revision),
            change
                .before
                .as_ref()
                .map(|stored| stored.instance.revision)
        );
    }
}

/// The cache keeps what a commit leaves.
#[tokio::test]
async fn a_commit_leaves_an_instance_without_unused_memory() {
    let fixture = Fixture::new().await;
    let left = fixture
        .decide(&fixture.claimed("one").await, "GO")
        .into_left();
    let Instance { past, active, .. } = &left.instance;
    assert_eq!((past.len(), past.capacity()), (3, 3));
    assert_eq!((active.len(), active.capacity()), (1, 1));
    for state_instance in left.instance.state_instances() {
        let tasks = &state_instance.tasks;
        assert_eq!(tasks.len(), tasks.capacity());
    }
}
