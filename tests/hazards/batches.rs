//! What the members of one batch do to each other: nothing.

use wrkflw::domain::command::Command;
use wrkflw::store::commit::Verdict;

use super::desk::{Desk, counts, keyed, task_of};

#[tokio::test]
async fn each_member_gets_its_own_verdict() {
    let desk = Desk::new().await;
    let (stale, replayed) = (desk.claimed("stale").await, desk.claimed("replayed").await);
    let (keyless, good) = (desk.claimed("keyless").await, desk.claimed("good").await);
    let earlier = keyed(desk.decide(&desk.claimed("earlier").await, "GO"), "taken");
    desk.apply(&[&earlier]).await;
    let release = Command::Release {
        task: task_of(&stale.instance),
    };
    desk.apply(&[&desk.change(Some(stale.clone()), "rob", &release)])
        .await;
    let (stale_before, replayed_before) = (
        desk.rows(stale.instance.id).await,
        desk.rows(replayed.instance.id).await,
    );

    let batch = [
        keyed(desk.decide(&stale, "GO"), "of the stale one"),
        keyed(desk.decide(&replayed, "GO"), "taken"),
        desk.decide(&keyless, "GO"),
        keyed(desk.decide(&good, "GO"), "free"),
    ];
    let verdicts = desk.commit(&batch.each_ref()).await;
    assert_eq!(
        verdicts,
        [
            Verdict::Stale,
            Verdict::Taken,
            Verdict::Applied,
            Verdict::Applied
        ]
    );

    assert_eq!(desk.rows(stale.instance.id).await, stale_before);
    assert_eq!(desk.rows(replayed.instance.id).await, replayed_before);
    // A start, a claim and a decision through two routers, with the rows of each.
    let expected = [
        ("instance", 1),
        ("state_instance", 4),
        ("task", 2),
        ("task_candidate", 2),
        ("decision", 1),
        ("attribute", 1),
        ("audit_entry", 12),
        ("outbox_event", 12),
    ];
    for (change, keys) in [(&batch[2], 0), (&batch[3], 1)] {
        let counts = counts(&desk.rows(change.after.id).await);
        assert_eq!(counts[..8], expected);
        assert_eq!(counts[8], ("idempotency_key", keys));
        assert_eq!(desk.load(change.after.id).await.instance, change.after);
    }
    assert_eq!(desk.count("select count(*) from idempotency_key").await, 2);
}

#[tokio::test]
async fn a_command_that_lost_leaves_its_key_free() {
    let desk = Desk::new().await;
    let before = desk.claimed("one").await;
    let lost = keyed(desk.decide(&before, "GO"), "k");
    let release = Command::Release {
        task: task_of(&before.instance),
    };
    desk.apply(&[&desk.change(Some(before.clone()), "rob", &release)])
        .await;
    assert_eq!(desk.commit(&[&lost]).await, [Verdict::Stale]);
    assert_eq!(desk.count("select count(*) from idempotency_key").await, 0);

    let task = task_of(&before.instance);
    let again = desk.change(
        Some(desk.load(before.instance.id).await),
        "rob",
        &Command::Claim { task },
    );
    desk.apply(&[&keyed(again, "k")]).await;
}

#[tokio::test]
async fn one_key_stands_for_one_effect() {
    let desk = Desk::new().await;
    for round in 0..10 {
        let key = format!("k-{round}");
        let mut changes = Vec::new();
        for name in ["a", "b", "c"] {
            let before = desk.claimed(&format!("{name}-{round}")).await;
            changes.push(keyed(desk.decide(&before, "GO"), &key));
        }
        // Two in one batch, the third in a batch of its own at the same moment.
        let (two, one) = (&[&changes[0], &changes[1]], &[&changes[2]]);
        let (mut verdicts, beside) = tokio::join!(desk.commit(two), desk.commit(one));
        verdicts.extend(beside);
        assert_eq!(
            verdicts
                .iter()
                .filter(|verdict| **verdict == Verdict::Applied)
                .count(),
            1,
            "{verdicts:?}"
        );
        assert_eq!(
            verdicts
                .iter()
                .filter(|verdict| **verdict == Verdict::Taken)
                .count(),
            2,
            "{verdicts:?}"
        );
        for (change, verdict) in changes.iter().zip(verdicts) {
            let revision = desk.load(change.after.id).await.instance.revision;
            assert_eq!(
                revision == change.after.revision,
                verdict == Verdict::Applied
            );
        }
    }
    assert_eq!(desk.count("select count(*) from decision").await, 10);
    assert_eq!(desk.count("select count(*) from idempotency_key").await, 10);
}
