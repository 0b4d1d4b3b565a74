//! The members of one batch do not affect each other.

use std::collections::BTreeSet;

use jiff::Timestamp;
use wrkflw_core::command::Command;
use wrkflw_core::ids::InstanceId;
use wrkflw_core::instance::{ChildInstance, Entity};
use wrkflw_core::json::Json;
use wrkflw_runtime::clock;
use wrkflw_store::commit::{self, Allocated, Change, CommitResult};
use wrkflw_store::load::Stored;

use super::fixture::{Fixture, counts, keyed, task_of};

#[tokio::test]
async fn each_member_gets_its_own_result() {
    let fixture = Fixture::new().await;
    let (stale, replayed) = (
        fixture.claimed("stale").await,
        fixture.claimed("replayed").await,
    );
    let (keyless, good) = (
        fixture.claimed("keyless").await,
        fixture.claimed("good").await,
    );
    let earlier = keyed(
        fixture.decide(&fixture.claimed("earlier").await, "GO"),
        "taken",
    );
    fixture.apply(&[&earlier]).await;
    let release = Command::Release {
        task: task_of(&stale.instance),
    };
    fixture
        .apply(&[&fixture.change(Some(stale.clone()), "rob", &release)])
        .await;
    let (stale_before, replayed_before) = (
        fixture.rows(stale.instance.id).await,
        fixture.rows(replayed.instance.id).await,
    );

    let batch = [
        keyed(fixture.decide(&stale, "GO"), "of the stale one"),
        keyed(fixture.decide(&replayed, "GO"), "taken"),
        fixture.decide(&keyless, "GO"),
        keyed(fixture.decide(&good, "GO"), "free"),
    ];
    let results = fixture.commit(&batch.each_ref()).await;
    assert_eq!(
        results,
        [
            CommitResult::Stale,
            CommitResult::Taken,
            CommitResult::Applied,
            CommitResult::Applied
        ]
    );

    assert_eq!(fixture.rows(stale.instance.id).await, stale_before);
    assert_eq!(fixture.rows(replayed.instance.id).await, replayed_before);
    // A start, a claim and a decision through two routers, with the number of their rows.
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
        let counts = counts(&fixture.rows(change.after.id).await);
        assert_eq!(counts[..8], expected);
        assert_eq!(counts[8], ("idempotency_key", keys));
        assert_eq!(fixture.load(change.after.id).await.instance, change.after);
    }
    assert_eq!(
        fixture.count("select count(*) from idempotency_key").await,
        2
    );
}

#[tokio::test]
async fn a_stale_command_leaves_its_key_free() {
    let fixture = Fixture::new().await;
    let before = fixture.claimed("one").await;
    let lost = keyed(fixture.decide(&before, "GO"), "k");
    let release = Command::Release {
        task: task_of(&before.instance),
    };
    fixture
        .apply(&[&fixture.change(Some(before.clone()), "rob", &release)])
        .await;
    assert_eq!(fixture.commit(&[&lost]).await, [CommitResult::Stale]);
    assert_eq!(
        fixture.count("select count(*) from idempotency_key").await,
        0
    );

    let task = task_of(&before.instance);
    let again = fixture.change(
        Some(fixture.load(before.instance.id).await),
        "rob",
        &Command::Claim { task },
    );
    fixture.apply(&[&keyed(again, "k")]).await;
}

#[tokio::test]
async fn one_key_stands_for_one_effect() {
    let fixture = Fixture::new().await;
    for round in 0..10 {
        let key = format!("k-{round}");
        let mut changes = Vec::new();
        for name in ["a", "b", "c"] {
            let before = fixture.claimed(&format!("{name}-{round}")).await;
            changes.push(keyed(fixture.decide(&before, "GO"), &key));
        }
        // Two in one batch, the third concurrently in another batch.
        let (two, one) = (&[&changes[0], &changes[1]], &[&changes[2]]);
        let (mut results, beside) = tokio::join!(fixture.commit(two), fixture.commit(one));
        results.extend(beside);
        assert_eq!(
            results
                .iter()
                .filter(|result| **result == CommitResult::Applied)
                .count(),
            1,
            "{results:?}"
        );
        assert_eq!(
            results
                .iter()
                .filter(|result| **result == CommitResult::Taken)
                .count(),
            2,
            "{results:?}"
        );
        for (change, result) in changes.iter().zip(results) {
            let revision = fixture.load(change.after.id).await.instance.revision;
            assert_eq!(
                revision == change.after.revision,
                result == CommitResult::Applied
            );
        }
    }
    assert_eq!(fixture.count("select count(*) from decision").await, 10);
    assert_eq!(
        fixture.count("select count(*) from idempotency_key").await,
        10
    );
}

/// A change that depends on permissions and memberships carries the access mark that it was computed with. Only the member with
/// an outdated mark fails.
#[tokio::test]
async fn a_change_with_an_old_access_mark_is_stale() {
    let fixture = Fixture::new().await;
    let tenant = "insert into tenant (id, name, created_at) overriding system value values (7, 'acme', now())";
    let tenant = sqlx::raw_sql(tenant).execute(fixture.database.admin_pool());
    tenant.await.expect("a tenant");
    let access_mark = async || {
        let mark = "select access_mark from tenant";
        let mark =
            sqlx::query_scalar::<_, uuid::Uuid>(mark).fetch_one(fixture.database.admin_pool());
        Some(mark.await.expect("a mark"))
    };
    let (first, second) = (
        fixture.claimed("first").await,
        fixture.claimed("second").await,
    );
    let (third, fourth) = (
        fixture.claimed("third").await,
        fixture.claimed("fourth").await,
    );
    let old = access_mark().await;
    let mut resting = fixture.decide(&first, "GO");
    resting.access_mark = old;
    fixture.apply(&[&resting]).await;

    let kinds = [
        "insert into role_permission values (7, 'user', 'more')",
        "update role_permission set permission = 'other' where permission = 'more'",
        "delete from role_permission where permission = 'other'",
        "insert into membership values (7, 'rob', 'more', now())",
        "update membership set valid_to = now() where group_id = 'more'",
        "insert into absence values (7, gen_random_uuid(), 'ann', 'rob', null, now(), now() + interval '1 day', now(), 'ann')",
        "update absence set ended_at = now()",
        // Other rows that executions look up.
        "insert into manager values (7, 'rob', 'ann', now())",
        "update manager set valid_to = now()",
        "insert into calendar values (7, 'office', '{}', now())",
        "delete from calendar",
        "insert into person values (7, 'rob', 'Rob', now())",
        // The active version of a definition.
        "update definition set active_version = 2",
    ];
    let definition = "insert into definition values (7, 'flow', gen_random_uuid(), 1, 1, now())";
    let definition = sqlx::raw_sql(definition).execute(fixture.database.admin_pool());
    definition.await.expect("a definition");
    let mut marks = BTreeSet::from([old]);
    for sql in kinds {
        sqlx::raw_sql(sql)
            .execute(fixture.database.admin_pool())
            .await
            .expect(sql);
        assert!(marks.insert(access_mark().await), "{sql} counts");
    }
    let rows = fixture.rows(second.instance.id).await;
    let mut batch = [
        keyed(fixture.decide(&second, "GO"), "kept for nobody"),
        fixture.decide(&third, "GO"),
        fixture.decide(&fourth, "GO"),
    ];
    batch[0].access_mark = old;
    batch[1].access_mark = access_mark().await;
    let results = fixture.commit(&batch.each_ref()).await;
    assert_eq!(
        results,
        [
            CommitResult::Stale,
            CommitResult::Applied,
            CommitResult::Applied
        ]
    );
    assert_eq!(fixture.rows(second.instance.id).await, rows);
}

/// After a database lost a commit and another one took its place, the revision is the same, but the instance is not.
#[tokio::test]
async fn a_change_on_a_lost_commit_is_stale() {
    let fixture = Fixture::new().await;
    let stored = fixture.claimed("lost").await;
    let release = Command::Release {
        task: task_of(&stored.instance),
    };
    let lost = fixture.change(Some(stored.clone()), "rob", &release);
    let remembered = Fixture::applied(lost);
    fixture
        .apply(&[&fixture.change(Some(stored), "rob", &release)])
        .await;
    let task = task_of(&remembered.instance);
    let mut next = fixture.change(Some(remembered), "rob", &Command::Claim { task });
    // Without a tenant there is no access mark.
    next.access_mark = Some(uuid::Uuid::nil());
    assert_eq!(fixture.commit(&[&next]).await, [CommitResult::Stale]);
    let stands = fixture.load(next.after.id).await;
    let mut again = fixture.change(Some(stands), "rob", &Command::Claim { task });
    again.access_mark = Some(uuid::Uuid::nil());
    fixture.apply(&[&again]).await;
}

#[tokio::test]
async fn a_turn_is_the_latest_of_those_that_were_applied() {
    let fixture = Fixture::new().await;
    let given = |change: &mut Change, turns: &[(&str, i64)]| {
        change.allocations = turns
            .iter()
            .map(|(person, second)| Allocated {
                definition: "flow".into(),
                state: "Work".into(),
                person: (*person).into(),
                at: Timestamp::from_second(*second).expect("a time"),
            })
            .collect();
    };
    let stale = fixture.claimed("stale").await;
    let release = Command::Release {
        task: task_of(&stale.instance),
    };
    let released = fixture.change(Some(stale.clone()), "rob", &release);
    fixture.apply(&[&released]).await;

    let mut batch = [
        fixture.start("first"),
        fixture.start("second"),
        fixture.decide(&stale, "GO"),
    ];
    given(&mut batch[0], &[("bob", 3), ("ann", 2)]);
    given(&mut batch[1], &[("ann", 5), ("bob", 1)]);
    given(&mut batch[2], &[("ann", 9), ("cid", 9)]);
    let (applied, stale) = (CommitResult::Applied, CommitResult::Stale);
    assert_eq!(
        fixture.commit(&batch.each_ref()).await,
        [applied, applied, stale]
    );
    // A later turn by another host is kept.
    let mut earlier = fixture.start("third");
    given(&mut earlier, &[("ann", 4), ("bob", 4)]);
    fixture.apply(&[&earlier]).await;
    let turns = "select person_id, extract(epoch from given_at)::bigint from allocation
        where definition_key = 'flow' and state = 'Work' order by person_id";
    let turns: Vec<(String, i64)> = sqlx::query_as(turns)
        .fetch_all(fixture.database.admin_pool())
        .await
        .expect("turns");
    assert_eq!(turns, [("ann".to_owned(), 5), ("bob".to_owned(), 4)]);
}

fn child() -> ChildInstance {
    ChildInstance {
        id: InstanceId(clock::new_id()),
        key: "subflows".into(),
        entity: Entity {
            kind: "errand".into(),
            id: "child".into(),
        },
        data: Json::empty(),
        on_end: None,
        detached: false,
        outcome: None,
        version: None,
    }
}

/// The workers look for jobs after such a statement, and after no other.
#[tokio::test]
async fn a_statement_tells_whether_it_added_a_job_that_is_due() {
    let fixture = Fixture::new().await;
    let leaves_work = async |change: &Change| {
        let committed = commit::commit(&fixture.store, &[change])
            .await
            .expect("results");
        assert_eq!(committed.results, [CommitResult::Applied]);
        committed.leaves_work
    };
    assert!(!leaves_work(&fixture.start("alone")).await);

    let mut parents = [fixture.start("idle"), fixture.start("begun")];
    for parent in &mut parents {
        parent.after.active[0].children.push(child());
        assert!(leaves_work(parent).await, "the child is to be started");
    }
    let [idle, begun] = parents.map(Fixture::applied);
    let cancel = |stored: Stored| {
        let instance = stored.instance.id;
        let reason = "no more".to_owned();
        fixture.change(Some(stored), "rob", &Command::Cancel { instance, reason })
    };
    let (idle, begun) = (cancel(idle), cancel(begun));
    assert!(
        !leaves_work(&idle).await,
        "nobody has begun to start the child"
    );
    let sql = "update job set attempts = 1";
    let attempted = sqlx::query(sql).execute(fixture.database.admin_pool());
    attempted.await.expect(sql);
    assert!(leaves_work(&begun).await, "the child is to be cancelled");
}
