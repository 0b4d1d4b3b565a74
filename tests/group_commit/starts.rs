//! A start has no row to lock. One insert decides which instance runs about an entity, and who has the key.

use wrkflw_store::commit::CommitResult;

use super::fixture::{Fixture, counts, keyed};

#[tokio::test]
async fn an_entity_started_twice_in_one_batch_starts_once() {
    let fixture = Fixture::new().await;
    let (first, second, other) = (
        fixture.start("one"),
        fixture.start("one"),
        fixture.start("two"),
    );
    let results = fixture.commit(&[&first, &second, &other]).await;
    assert_eq!(results[2], CommitResult::Applied);
    let mut twins = [results[0], results[1]];
    twins.sort_unstable_by_key(|result| *result == CommitResult::Taken);
    assert_eq!(twins, [CommitResult::Applied, CommitResult::Taken]);
    let (won, lost) = if results[0] == CommitResult::Applied {
        (&first, &second)
    } else {
        (&second, &first)
    };
    assert_eq!(fixture.load(won.after.id).await.instance, won.after);
    assert!(
        counts(&fixture.rows(lost.after.id).await)
            .iter()
            .all(|(_, rows)| *rows == 0)
    );
}

#[tokio::test]
async fn a_key_used_twice_in_one_batch_starts_once() {
    let fixture = Fixture::new().await;
    let (first, second) = (
        keyed(fixture.start("one"), "k"),
        keyed(fixture.start("two"), "k"),
    );
    let results = fixture.commit(&[&first, &second]).await;
    assert_eq!(
        results
            .iter()
            .filter(|result| **result == CommitResult::Applied)
            .count(),
        1,
        "{results:?}"
    );
    assert_eq!(fixture.count("select count(*) from instance").await, 1);
    assert_eq!(
        fixture.count("select count(*) from idempotency_key").await,
        1
    );
    // And once more after it.
    assert_eq!(
        fixture.commit(&[&keyed(fixture.start("three"), "k")]).await,
        [CommitResult::Taken]
    );
    assert_eq!(
        fixture
            .count("select count(*) from audit_entry where type = 'FLOW_STARTED'")
            .await,
        1
    );
}

#[tokio::test]
async fn a_running_entity_is_not_started_again_and_an_ended_one_is() {
    let fixture = Fixture::new().await;
    let running = fixture.claimed("one").await;
    let again = keyed(fixture.start("one"), "k");
    assert_eq!(fixture.commit(&[&again]).await, [CommitResult::Taken]);
    assert!(
        counts(&fixture.rows(again.after.id).await)
            .iter()
            .all(|(_, rows)| *rows == 0)
    );
    assert_eq!(
        fixture.count("select count(*) from idempotency_key").await,
        0
    );
    fixture.apply(&[&fixture.decide(&running, "END")]).await;
    fixture.apply(&[&keyed(fixture.start("one"), "k")]).await;
}

#[tokio::test]
async fn a_start_does_not_take_the_key_of_another_command() {
    let fixture = Fixture::new().await;
    let earlier = keyed(
        fixture.decide(&fixture.claimed("one").await, "GO"),
        "earlier",
    );
    fixture.apply(&[&earlier]).await;
    assert_eq!(
        fixture
            .commit(&[&keyed(fixture.start("two"), "earlier")])
            .await,
        [CommitResult::Taken]
    );

    let beside = keyed(
        fixture.decide(&fixture.claimed("three").await, "GO"),
        "beside",
    );
    let results = fixture
        .commit(&[&keyed(fixture.start("four"), "beside"), &beside])
        .await;
    assert_eq!(results, [CommitResult::Taken, CommitResult::Applied]);
    assert_eq!(
        fixture
            .count("select count(*) from instance where entity_id in ('two', 'four')")
            .await,
        0
    );
}

/// The start was executed with a cached caller and active version, which may be outdated.
#[tokio::test]
async fn a_start_with_an_old_access_mark_is_stale() {
    let fixture = Fixture::new().await;
    let run = async |sql: &'static str| {
        let done = sqlx::raw_sql(sql).execute(fixture.database.admin_pool());
        done.await.expect(sql);
    };
    let access_mark = async || {
        let mark = sqlx::query_scalar("select access_mark from tenant");
        let mark = mark.fetch_one(fixture.database.admin_pool()).await;
        Some(mark.expect("a mark"))
    };
    run("insert into tenant (id, name, created_at) overriding system value values (7, 'acme', now())").await;
    run("insert into definition values (7, 'flow', gen_random_uuid(), 1, 1, now())").await;
    let (mut late, mut current) = (
        keyed(fixture.start("late"), "kept for nobody"),
        keyed(fixture.start("current"), "kept"),
    );
    late.access_mark = access_mark().await;
    run("update definition set active_version = 2").await;
    current.access_mark = access_mark().await;
    let results = fixture.commit(&[&late, &current]).await;
    assert_eq!(results, [CommitResult::Stale, CommitResult::Applied]);
    let rows = counts(&fixture.rows(late.after.id).await);
    assert!(rows.iter().all(|(_, rows)| *rows == 0), "{rows:?}");
}
