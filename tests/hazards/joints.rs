//! Changes of one instance that are made one of: what is written is what writing one after the other would have left.

use wrkflw::domain::command::Command;
use wrkflw::store::commit::{Change, Verdict};
use wrkflw::store::load::Stored;

use super::desk::{Desk, counts, decision, keyed, task_of};

/// A claim, a release, a claim and the decision, each computed from what the one before leaves.
fn steps(desk: &Desk, mut stored: Stored) -> Vec<Change> {
    let task = task_of(&stored.instance);
    let commands = [
        Command::Claim { task },
        Command::Release { task },
        Command::Claim { task },
        decision(task, "GO"),
    ];
    let mut changes = Vec::new();
    for command in &commands {
        let change = desk.change(Some(stored), "rob", command);
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

async fn pending(desk: &Desk, entity: &str) -> Stored {
    let start = desk.start(entity);
    desk.apply(&[&start]).await;
    desk.load(start.after.id).await
}

#[tokio::test]
async fn several_commands_leave_what_each_by_itself_would() {
    let desk = Desk::new().await;
    let (apart, together) = (
        pending(&desk, "apart").await,
        pending(&desk, "together").await,
    );
    let (one_by_one, at_once) = (apart.instance.id, together.instance.id);
    for change in steps(&desk, apart) {
        let leaves = change.leaves();
        desk.apply(&[&change]).await;
        assert_eq!(desk.load(one_by_one).await, leaves);
    }
    let joint = joined(steps(&desk, together));
    let leaves = joint.leaves();
    desk.apply(&[&joint]).await;
    assert_eq!(desk.load(at_once).await, leaves);
    assert_eq!(
        counts(&desk.rows(at_once).await),
        counts(&desk.rows(one_by_one).await)
    );
    // Each entry names the command that it is of, and the revision that this one led to.
    let per_command =
        "select count(distinct (command_id, revision)) from audit_entry group by stream_id";
    let counts = sqlx::query_scalar::<_, i64>(per_command).fetch_all(desk.database.admin_pool());
    assert_eq!(counts.await.expect("counts"), [5, 5]);
}

#[tokio::test]
async fn what_was_computed_from_something_else_is_stale_as_a_whole() {
    let desk = Desk::new().await;
    let stored = pending(&desk, "moved on").await;
    let joint = joined(steps(&desk, stored.clone()));
    let task = task_of(&stored.instance);
    desk.apply(&[&desk.change(Some(stored), "rob", &Command::Claim { task })])
        .await;
    let before = desk.rows(joint.after.id).await;
    assert_eq!(desk.commit(&[&joint]).await, [Verdict::Stale]);
    assert_eq!(desk.rows(joint.after.id).await, before);
}

#[tokio::test]
async fn all_keys_of_a_change_are_taken_or_none() {
    let desk = Desk::new().await;
    let with_keys = async |entity: &str, keys: [&str; 2]| {
        let mut steps = steps(&desk, pending(&desk, entity).await).into_iter();
        let mut keyed_steps = Vec::new();
        for key in keys {
            keyed_steps.push(keyed(steps.next().expect("a step"), key));
        }
        joined(keyed_steps)
    };
    desk.apply(&[&with_keys("first", ["a", "b"]).await]).await;
    let keys = "select count(*) from idempotency_key";
    assert_eq!(desk.count(keys).await, 2);

    let both = with_keys("both", ["b", "a"]).await;
    assert_eq!(desk.commit(&[&both]).await, [Verdict::Taken]);

    // A part cannot be undone inside the statement: all of it fails, the neighbour too.
    let part = with_keys("part", ["c", "a"]).await;
    let neighbour = desk.decide(&desk.claimed("neighbour").await, "GO");
    let error = desk.store.commit(&[&neighbour, &part]).await;
    let error = error.expect_err("some of its keys are free");
    assert!(error.may_be_of_one(), "{error}");
    assert_eq!(desk.count(keys).await, 2);
    for change in [&both, &part, &neighbour] {
        let revision = desk.load(change.after.id).await.instance.revision;
        assert_eq!(
            Some(revision),
            change
                .before
                .as_ref()
                .map(|stored| stored.instance.revision)
        );
    }
}
