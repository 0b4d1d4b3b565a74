//! What the members of one batch do to each other: nothing.

use std::collections::BTreeSet;

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

/// A change that rests on what somebody was names the mark of all that decides that. Only the member that names an old
/// one fails.
#[tokio::test]
async fn what_rests_on_an_old_standing_is_stale() {
    let desk = Desk::new().await;
    let tenant = "insert into tenant (id, name, created_at) overriding system value values (7, 'acme', now())";
    let tenant = sqlx::raw_sql(tenant).execute(desk.database.admin_pool());
    tenant.await.expect("a tenant");
    let standing = async || {
        let mark = "select standing_mark from tenant";
        let mark = sqlx::query_scalar::<_, uuid::Uuid>(mark).fetch_one(desk.database.admin_pool());
        Some(mark.await.expect("a mark"))
    };
    let (first, second) = (desk.claimed("first").await, desk.claimed("second").await);
    let (third, fourth) = (desk.claimed("third").await, desk.claimed("fourth").await);
    let old = standing().await;
    let mut resting = desk.decide(&first, "GO");
    resting.standing = old;
    desk.apply(&[&resting]).await;

    let kinds = [
        "insert into role_permission values (7, 'user', 'more')",
        "update role_permission set permission = 'other' where permission = 'more'",
        "delete from role_permission where permission = 'other'",
        "insert into membership values (7, 'rob', 'more', now())",
        "update membership set valid_to = now() where group_id = 'more'",
        "insert into absence values (7, gen_random_uuid(), 'ann', 'rob', null, now(), now() + interval '1 day', now(), 'ann')",
        "update absence set ended_at = now()",
        // What turns look up besides.
        "insert into manager values (7, 'rob', 'ann', now())",
        "update manager set valid_to = now()",
        "insert into calendar values (7, 'office', '{}', now())",
        "delete from calendar",
        "insert into person values (7, 'rob', 'Rob', now())",
    ];
    let mut marks = BTreeSet::from([old]);
    for sql in kinds {
        sqlx::raw_sql(sql)
            .execute(desk.database.admin_pool())
            .await
            .expect(sql);
        assert!(marks.insert(standing().await), "{sql} counts");
    }
    let rows = desk.rows(second.instance.id).await;
    let mut batch = [
        keyed(desk.decide(&second, "GO"), "kept for nobody"),
        desk.decide(&third, "GO"),
        desk.decide(&fourth, "GO"),
    ];
    batch[0].standing = old;
    batch[1].standing = standing().await;
    let verdicts = desk.commit(&batch.each_ref()).await;
    assert_eq!(
        verdicts,
        [Verdict::Stale, Verdict::Applied, Verdict::Applied]
    );
    assert_eq!(desk.rows(second.instance.id).await, rows);
}

/// A database that fell back behind a commit, and went another way from there: the revision is the same, the instance is not.
#[tokio::test]
async fn what_rests_on_a_lost_commit_is_stale() {
    let desk = Desk::new().await;
    let stored = desk.claimed("lost").await;
    let release = Command::Release {
        task: task_of(&stored.instance),
    };
    let lost = desk.change(Some(stored.clone()), "rob", &release);
    let remembered = Desk::applied(lost);
    desk.apply(&[&desk.change(Some(stored), "rob", &release)])
        .await;
    let task = task_of(&remembered.instance);
    let mut next = desk.change(Some(remembered), "rob", &Command::Claim { task });
    // No tenant, nothing marked.
    next.standing = Some(uuid::Uuid::nil());
    assert_eq!(desk.commit(&[&next]).await, [Verdict::Stale]);
    let stands = desk.load(next.after.id).await;
    let mut again = desk.change(Some(stands), "rob", &Command::Claim { task });
    again.standing = Some(uuid::Uuid::nil());
    desk.apply(&[&again]).await;
}
