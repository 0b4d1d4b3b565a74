//! Which jobs are claimed, and what a claim costs.

use std::collections::BTreeSet;

use tokio::task::JoinSet;

use super::*;
use crate::support::plans::{explained, nodes, pages};
use wrkflw_store::jobs::{self, failing};

#[tokio::test]
async fn due_jobs_are_claimed_once_and_in_order() {
    let fixture = Fixture::new().await;
    let late = fixture.job(clock::new_id(), noon() - seconds(30)).await;
    let later = fixture.job(clock::new_id(), noon() - seconds(10)).await;
    let now = fixture.job(clock::new_id(), noon()).await;
    fixture.job(clock::new_id(), noon() + seconds(1)).await;

    let first = fixture.claim(noon(), 2).await;
    assert_eq!(ids(&first), [late, later]);
    assert_eq!((first[0].kind.as_str(), first[0].attempts), ("deadline", 1));
    assert_eq!(first[0].due_at, noon() - seconds(30));
    assert_eq!(ids(&fixture.claim(noon(), 2).await), [now]);
    assert_eq!(fixture.claim(noon(), 2).await, []);
}

/// A suspension deletes the job, and resuming inserts it again: due at the same time, without attempts.
#[tokio::test]
async fn a_job_inserted_again_is_not_ended_by_its_former_worker() {
    let fixture = Fixture::new().await;
    let instance = clock::new_id();
    let id = fixture.job(instance, noon()).await;
    let old = fixture.claim(noon(), 1).await;
    let again = format!(
        "delete from job; insert into job (tenant_id, id, kind, instance_id, due_at, payload)
        values (1, '{id}', 'deadline', '{instance}', '{}', '{{}}')",
        noon()
    );
    fixture.run(&again).await;
    let new = fixture.claim(noon(), 1).await;
    assert_eq!(ids(&new), [id]);
    assert_eq!(
        (new[0].due_at, new[0].attempts),
        (old[0].due_at, old[0].attempts)
    );
    let later = noon() + seconds(5);
    let store = &fixture.store;
    jobs::put_off(store, &old[0], later).await.expect("nothing");
    jobs::fail(store, &old[0], "late", later)
        .await
        .expect("nothing");
    jobs::finish(store, &old[0]).await.expect("nothing");
    let next = jobs::next_due(store).await.expect("a look");
    assert_eq!(
        next,
        Some(noon() + seconds(60)),
        "it is in flight as before"
    );
    jobs::finish(store, &new[0]).await.expect("an end");
    assert_eq!(jobs::next_due(store).await.expect("a look"), None);
}

/// Jobs that work in portions have made progress, so their earlier failures do not add up.
#[tokio::test]
async fn the_attempts_of_a_postponed_job_are_counted_anew() {
    let fixture = Fixture::new().await;
    let (id, store) = (fixture.job(clock::new_id(), noon()).await, &fixture.store);
    for attempt in 1..=3 {
        let claimed = fixture.claim(noon(), 1).await;
        assert_eq!(claimed[0].attempts, attempt);
        let failed = jobs::fail(store, &claimed[0], "no", noon()).await;
        failed.expect("a failure");
    }
    let claimed = fixture.claim(noon(), 1).await;
    let later = noon() + seconds(5);
    jobs::put_off(store, &claimed[0], later)
        .await
        .expect("later");
    assert_eq!(failing::count(store).await.expect("a count"), 0);
    let again = fixture.claim(later, 1).await;
    assert_eq!((again[0].id, again[0].attempts), (id, 1));
}

/// A deadline that is inserted when the instance is resumed does not overtake earlier jobs.
#[tokio::test]
async fn a_job_of_a_suspended_instance_keeps_its_place() {
    let fixture = Fixture::new().await;
    let (instance, store) = (clock::new_id(), &fixture.store);
    let first = fixture.job(instance, noon()).await;
    for (rests, attempts) in [(0, 1), (15, 2), (30, 2)] {
        let claimed = fixture.claim(noon() + seconds(rests), 10).await;
        assert_eq!(
            (ids(&claimed), claimed[0].attempts),
            (vec![first], attempts)
        );
        let next = noon() + seconds(rests + 15);
        jobs::rest(store, &claimed[0], next).await.expect("a rest");
        // The worker assumes that the job is done.
        jobs::finish(store, &claimed[0]).await.expect("nothing");
        assert_eq!(failing::count(store).await.expect("a count"), 0);
    }
    let second = fixture.job(instance, noon() + seconds(40)).await;
    let signal = fixture.job(instance, noon() + seconds(41)).await;
    let kind = format!("update job set kind = 'deliver_signal' where id = '{signal}'");
    fixture.run(&kind).await;
    // Another instance may take the signal.
    let claimed = fixture.claim(noon() + seconds(44), 10).await;
    assert_eq!(ids(&claimed), [signal]);
    jobs::finish(store, &claimed[0]).await.expect("an end");
    let next = jobs::next_due(store).await.expect("a look");
    assert_eq!(next, Some(noon() + seconds(45)));
    for expected in [first, second] {
        let claimed = fixture.claim(noon() + seconds(45), 10).await;
        assert_eq!(ids(&claimed), [expected]);
        jobs::finish(store, &claimed[0]).await.expect("an end");
    }
}

/// A start of a child and one other job of a suspended instance may rest at the same time. The end of one attempt does not make
/// the other one due.
#[tokio::test]
async fn two_jobs_of_a_suspended_instance_do_not_wake_each_other() {
    let fixture = Fixture::new().await;
    let (instance, store) = (clock::new_id(), &fixture.store);
    let start = fixture.job(instance, noon()).await;
    fixture.run("update job set kind = 'start_child'").await;
    let other = fixture.job(instance, noon() + seconds(1)).await;
    let claimed = fixture.claim(noon() + seconds(1), 10).await;
    assert_eq!(ids(&claimed), [start, other]);
    let until = noon() + seconds(15);
    for job in &claimed {
        jobs::rest(store, job, until).await.expect("a rest");
        jobs::finish(store, job).await.expect("nothing");
    }
    assert_eq!(fixture.claim(until - seconds(1), 10).await, []);
}

#[tokio::test]
async fn only_the_earliest_job_of_an_instance_is_claimed() {
    let fixture = Fixture::new().await;
    let (busy, other) = (clock::new_id(), clock::new_id());
    let third = fixture.job(busy, noon() - seconds(1)).await;
    let first = fixture.job(busy, noon() - seconds(3)).await;
    let second = fixture.job(busy, noon() - seconds(2)).await;
    let of_other = fixture.job(other, noon()).await;

    let claimed = fixture.claim(noon(), 10).await;
    assert_eq!(ids(&claimed), [first, of_other]);
    assert_eq!(fixture.claim(noon(), 10).await, []);
    // As long as the job exists, in flight or failed, the instance's next one waits. Other instances do not.
    let again = noon() + seconds(300);
    let failed = jobs::fail(&fixture.store, &claimed[0], "no\0", again).await;
    failed.expect("a failure");
    jobs::finish(&fixture.store, &claimed[1])
        .await
        .expect("an end");
    let next_of_other = fixture.job(other, noon()).await;
    let claimed = fixture.claim(again - seconds(1), 10).await;
    assert_eq!(ids(&claimed), [next_of_other]);
    jobs::finish(&fixture.store, &claimed[0])
        .await
        .expect("an end");
    for (expected, attempts) in [(first, 2), (second, 1), (third, 1)] {
        let claimed = fixture.claim(again, 10).await;
        assert_eq!(
            (ids(&claimed), claimed[0].attempts),
            (vec![expected], attempts)
        );
        jobs::finish(&fixture.store, &claimed[0])
            .await
            .expect("an end");
    }
}

/// A job that always fails, such as a deadline whose flow logic fails, does not block the others for ever.
#[tokio::test]
async fn a_failing_job_blocks_no_other() {
    let fixture = Fixture::new().await;
    let (instance, store) = (clock::new_id(), &fixture.store);
    let first = fixture.job(instance, noon() - seconds(3)).await;
    let start = fixture.job(instance, noon() - seconds(2)).await;
    let kind = format!("update job set kind = 'start_child' where id = '{start}'");
    fixture.run(&kind).await;
    let second = fixture.job(instance, noon() - seconds(1)).await;
    let third = fixture.job(instance, noon()).await;
    let again = noon() + seconds(600);
    for attempt in 1..=10 {
        let claimed = fixture.claim(noon(), 10).await;
        assert_eq!((ids(&claimed), claimed[0].attempts), (vec![first], attempt));
        let next = if attempt < 10 { noon() } else { again };
        let failed = jobs::fail(store, &claimed[0], "no", next).await;
        failed.expect("a failure");
    }
    assert_eq!(jobs::next_due(store).await.expect("a look"), Some(noon()));
    // The third waits for the second as before.
    let claimed = fixture.claim(noon(), 10).await;
    assert_eq!(ids(&claimed), [start, second]);
    for job in &claimed {
        jobs::finish(store, job).await.expect("an end");
    }
    let claimed = fixture.claim(noon(), 10).await;
    assert_eq!(ids(&claimed), [third]);
    jobs::finish(store, &claimed[0]).await.expect("an end");
    assert_eq!(fixture.claim(again - seconds(1), 10).await, []);
    let claimed = fixture.claim(again, 10).await;
    assert_eq!((ids(&claimed), claimed[0].attempts), (vec![first], 11));
}

#[tokio::test]
async fn a_job_with_an_expired_lease_is_claimed_again() {
    let fixture = Fixture::new().await;
    let job = fixture.job(clock::new_id(), noon()).await;
    let lost = fixture.claim(noon(), 1).await;
    assert_eq!(fixture.claim(noon() + seconds(59), 1).await, []);
    let again = fixture.claim(noon() + seconds(60), 1).await;
    assert_eq!((ids(&again), again[0].attempts), (vec![job], 2));

    // The worker that lost the lease can neither put the job off nor end it.
    let soon = noon() + seconds(61);
    jobs::fail(&fixture.store, &lost[0], "too late", soon)
        .await
        .expect("nothing");
    jobs::finish(&fixture.store, &lost[0])
        .await
        .expect("nothing");
    assert_eq!(fixture.claim(soon, 1).await, []);
    let next = jobs::next_due(&fixture.store).await.expect("a look");
    assert_eq!(next, Some(noon() + seconds(120)));
    jobs::finish(&fixture.store, &again[0])
        .await
        .expect("an end");
    assert_eq!(jobs::next_due(&fixture.store).await.expect("a look"), None);
}

#[tokio::test]
async fn a_job_that_its_commit_postponed_is_not_ended() {
    let fixture = Fixture::new().await;
    fixture.job(clock::new_id(), noon()).await;
    let claimed = fixture.claim(noon(), 1).await;
    fixture
        .run("update job set due_at = due_at + interval '1 day', lease_until = null, attempts = 0")
        .await;
    jobs::finish(&fixture.store, &claimed[0])
        .await
        .expect("nothing");
    let next = jobs::next_due(&fixture.store).await.expect("a look");
    assert_eq!(next, Some(noon() + seconds(24 * 60 * 60)));
}

#[tokio::test]
async fn the_next_wake_up_is_for_a_job_that_can_be_claimed() {
    let fixture = Fixture::new().await;
    let busy = clock::new_id();
    fixture.job(busy, noon()).await;
    fixture.job(busy, noon() + seconds(1)).await;
    fixture.job(clock::new_id(), noon() + seconds(40)).await;
    let next = async || jobs::next_due(&fixture.store).await.expect("a look");
    assert_eq!(next().await, Some(noon()));
    let claimed = fixture.claim(noon(), 1).await;
    // The second one of the instance waits for the first, whose lease ends later than the third one is due.
    assert_eq!(next().await, Some(noon() + seconds(40)));
    jobs::finish(&fixture.store, &claimed[0])
        .await
        .expect("an end");
    assert_eq!(next().await, Some(noon() + seconds(1)));
}

#[tokio::test]
async fn two_claimers_never_get_the_same_job() {
    const JOBS: usize = 400;
    let fixture = Fixture::new().await;
    fixture.run("insert into job select 1, gen_random_uuid(), 'deadline', gen_random_uuid(), timestamptz '2026-10-05 11:00Z' + n * interval '1 second', '{}' from generate_series(1, 400) n").await;
    let mut claimers = JoinSet::new();
    for _ in 0..6 {
        let store = fixture.store.clone();
        claimers.spawn(async move {
            let mut mine = Vec::new();
            loop {
                let mut slots = TenantSlots::new(i64::MAX);
                let claimed =
                    jobs::claim(&store, noon(), noon() + seconds(60), 7, &mut slots).await;
                let claimed = claimed.expect("a claim");
                if claimed.is_empty() {
                    return mine;
                }
                mine.extend(ids(&claimed));
            }
        });
    }
    let claimed: Vec<_> = claimers.join_all().await.into_iter().flatten().collect();
    let distinct: BTreeSet<_> = claimed.iter().collect();
    assert!(distinct.len() == claimed.len(), "a job was claimed twice");
    // A claimer that finds all remaining jobs locked stops. The next claim takes the jobs that are due then.
    let rest = fixture.claim(noon(), 500).await;
    assert_eq!(claimed.len() + rest.len(), JOBS);
}

#[tokio::test]
async fn stuck_jobs_are_counted() {
    let fixture = Fixture::new().await;
    fixture.job(clock::new_id(), noon()).await;
    fixture.job(clock::new_id(), noon()).await;
    let count = async |now| failing::stuck(&fixture.store, now).await.expect("a count");
    fixture.run("update job set attempts = 9").await;
    assert_eq!(count(noon()).await, 0);
    fixture.claim(noon(), 1).await;
    assert_eq!(count(noon()).await, 1);
    // The other job has never failed, and no worker claims it.
    assert_eq!(count(noon() + seconds(299)).await, 1);
    assert_eq!(count(noon() + seconds(300)).await, 2);
    let failing = async || failing::count(&fixture.store).await.expect("a count");
    assert_eq!(failing().await, 0);
    fixture
        .run("update job set last_error = 'no' where attempts > 9")
        .await;
    assert_eq!(failing().await, 1);
}

#[tokio::test]
async fn future_jobs_and_jobs_in_flight_do_not_slow_a_claim() {
    let fixture = Fixture::new().await;
    let around = "('2026-10-05 12:00Z', 0, 32)";
    let look = "(1, '2026-10-05 12:00Z', '2026-10-05 12:01Z', 32, 10, '2026-10-05 12:01Z', '2026-10-05 12:05Z', '2026-10-05 12:01Z')";
    fixture.run(
        "insert into job select 1, gen_random_uuid(), 'deadline', gen_random_uuid(), timestamptz '2026-10-06Z' + n * interval '1 second', '{}' from generate_series(1, 100000) n;
        insert into job select 1, gen_random_uuid(), 'deadline', gen_random_uuid(), timestamptz '2026-10-05Z', '{}', timestamptz '2026-10-05 13:00Z' from generate_series(1, 5000) n",
    )
    .await;
    // Neither with the statistics of an empty table, nor with those of a full one.
    for round in ["fresh", "analysed"] {
        for (statement, arguments) in [("with recursive circle", around), ("with looked as", look)]
        {
            let plan = explained(&fixture.database, statement, arguments).await;
            let nodes = nodes(&plan);
            assert!(
                nodes.contains(&"Index Scan job_share".to_owned())
                    || nodes.contains(&"Index Only Scan job_share".to_owned()),
                "{round}: {nodes:?}"
            );
            assert!(
                nodes.iter().all(|node| !node.starts_with("Seq")),
                "{round}: {nodes:?}"
            );
            assert!(pages(&plan) <= 40, "{round}: {} pages", pages(&plan));
        }
        let plan = explained(&fixture.database, "select coalesce(min(l.ready_at)", "").await;
        assert!(pages(&plan) <= 200, "{round}: {} pages", pages(&plan));
        fixture.run("analyze job").await;
    }
    for _ in 0..10 {
        fixture.job(clock::new_id(), noon()).await;
    }
    let plan = explained(&fixture.database, "with looked as", look).await;
    assert_eq!(plan["Actual Rows"].as_f64(), Some(10.0), "{plan}");
    assert!(pages(&plan) <= 300, "{} pages", pages(&plan));
}
