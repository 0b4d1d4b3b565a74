//! Tenants take turns, instances take turns, and waiting jobs cost other claims nothing.

use std::collections::BTreeMap;

use wrkflw_core::ids::TenantId;
use wrkflw_store::jobs::{self, CallTurn};

use super::*;
use crate::support::plans::{explained, pages};
use wrkflw_store::bulk;
use wrkflw_store::jobs::calls;

/// Inserts a job of this kind for an instance of a tenant. Returns its id.
async fn leave_of(
    fixture: &Fixture,
    tenant: i32,
    kind: &str,
    instance: Uuid,
    due_at: Timestamp,
) -> Uuid {
    let id = clock::new_id();
    sqlx::query("insert into job (tenant_id, id, kind, instance_id, due_at, payload) values ($1, $2, $3, $4, $5::text::timestamptz, '{}')")
        .bind(tenant)
        .bind(id)
        .bind(kind)
        .bind(instance)
        .bind(due_at.to_string())
        .execute(fixture.database.admin_pool())
        .await
        .expect("a job");
    id
}

/// The jobs of a flow that starts children in a circle: 3 500 instances of tenant 1, each with 20 starts that are due.
async fn flood(fixture: &Fixture) {
    fixture.run(
        "insert into job select 1, gen_random_uuid(), 'start_child', md5((n / 20)::text)::uuid,
            timestamptz '2026-10-05 11:00Z' + n * interval '1 millisecond', '{}' from generate_series(0, 69999) n",
    )
    .await;
}

fn tenants(jobs: &[Job]) -> Vec<i32> {
    jobs.iter().map(|job| job.tenant.0).collect()
}

#[tokio::test]
async fn a_flood_of_one_tenant_delays_no_other() {
    let fixture = Fixture::new().await;
    flood(&fixture).await;
    let late = leave_of(&fixture, 2, "match_signals", clock::new_id(), noon()).await;
    let claimed = fixture.claim(noon(), 2).await;
    let mut of = tenants(&claimed);
    of.sort_unstable();
    assert_eq!(of, [1, 2], "each has a half");
    assert!(ids(&claimed).contains(&late));
}

#[tokio::test]
async fn tenants_take_turns_however_many_they_are() {
    const TENANTS: i32 = 200;
    let fixture = Fixture::new().await;
    flood(&fixture).await;
    fixture.run(
        "insert into job select t, gen_random_uuid(), 'deadline', gen_random_uuid(), timestamptz '2026-10-05 11:59Z', '{}'
            from generate_series(2, 200) t, generate_series(1, 3)",
    )
    .await;
    let mut slots = TenantSlots::new(i64::MAX);
    for round in 1..=3 {
        let mut turns: BTreeMap<i32, u32> = BTreeMap::new();
        for _ in 0..TENANTS {
            for tenant in tenants(&fixture.claim_by(&mut slots, noon(), 1).await) {
                *turns.entry(tenant).or_default() += 1;
            }
        }
        assert_eq!(
            turns,
            (1..=TENANTS).map(|tenant| (tenant, 1)).collect(),
            "round {round}"
        );
    }
}

/// The tenants between the two have calls that are not due. A claim reads fewer tenants than these are.
#[tokio::test]
async fn a_flood_of_calls_delays_no_other_tenant() {
    let fixture = Fixture::new().await;
    fixture.run(
        "insert into job (tenant_id, id, kind, instance_id, due_at, payload, service)
            select case when n <= 1000 then 1 else 41 end, gen_random_uuid(), 'call_service', gen_random_uuid(),
                timestamptz '2026-10-05 11:00Z' + n * interval '1 second', '{}', 'oracle' from generate_series(1, 1001) n;
        insert into job (tenant_id, id, kind, instance_id, due_at, payload, service)
            select t, gen_random_uuid(), 'call_service', gen_random_uuid(), timestamptz '2026-10-05 13:00Z', '{}', 'oracle'
            from generate_series(2, 40) t",
    )
    .await;
    for full in [Vec::new(), vec![TenantId(1)]] {
        let (mut after, mut claimed) = (TenantId(0), Vec::new());
        for _ in 0..3 {
            let turn = CallTurn {
                service: "oracle",
                after,
                full: &full,
                limit: 1,
            };
            let claim = calls::claim(&fixture.store, &turn, noon(), noon() + seconds(60));
            let (jobs, last) = claim.await.expect("a claim");
            claimed.extend(tenants(&jobs));
            after = last;
        }
        assert!(claimed.contains(&41), "{claimed:?} beside {full:?}");
        fixture.run("update job set lease_until = null").await;
    }
}

#[tokio::test]
async fn no_tenant_has_all_slots() {
    let fixture = Fixture::new().await;
    for _ in 0..5 {
        fixture.job(clock::new_id(), noon()).await;
    }
    let mut slots = TenantSlots::new(3);
    assert_eq!(fixture.claim_by(&mut slots, noon(), 10).await.len(), 3);
    assert!(slots.is_full());
    assert_eq!(fixture.claim_by(&mut slots, noon(), 10).await, []);
    let other = leave_of(&fixture, 2, "deadline", clock::new_id(), noon()).await;
    assert_eq!(
        ids(&fixture.claim_by(&mut slots, noon(), 10).await),
        [other]
    );
    slots.ended(TenantId(1));
    assert_eq!(
        tenants(&fixture.claim_by(&mut slots, noon(), 10).await),
        [1]
    );
    assert_eq!(fixture.claim_by(&mut slots, noon(), 10).await, []);
}

/// Otherwise nobody would run them before their leases expire, and their slots would stay occupied.
#[tokio::test]
async fn jobs_claimed_before_a_failure_are_returned() {
    let fixture = Fixture::new().await;
    let claimable = leave_of(&fixture, 1, "deadline", clock::new_id(), noon()).await;
    leave_of(&fixture, 2, "deadline", clock::new_id(), noon()).await;
    fixture
        .run(
            "create function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$;
            create trigger refuse before update on job for each row when (new.tenant_id = 2) execute function refuse()",
        )
        .await;
    let mut slots = TenantSlots::new(2);
    let claimed = fixture.claim_by(&mut slots, noon(), 2).await;
    assert_eq!(ids(&claimed), [claimable]);
    let lease = noon() + seconds(60);
    let failed = jobs::claim(&fixture.store, noon(), lease, 2, &mut slots).await;
    assert!(failed.is_err(), "{failed:?}");
}

#[tokio::test]
async fn cancels_and_ends_come_before_starts() {
    let fixture = Fixture::new().await;
    let (parent, other) = (clock::new_id(), clock::new_id());
    let mut starts = Vec::new();
    for early in [60, 50, 40] {
        starts.push(leave_of(&fixture, 1, "start_child", parent, noon() - seconds(early)).await);
    }
    let ended = leave_of(&fixture, 1, "child_ended", parent, noon() - seconds(20)).await;
    let deadline = leave_of(&fixture, 1, "deadline", parent, noon() - seconds(10)).await;
    // The parent itself is cancelled, and does not wait for its other jobs.
    let cancel = leave_of(&fixture, 1, "cancel_child", parent, noon()).await;
    let elsewhere = leave_of(&fixture, 1, "deadline", other, noon()).await;

    let first = fixture.claim(noon(), 10).await;
    let mut claimed = ids(&first);
    claimed.sort_unstable();
    let mut expected = vec![ended, cancel, elsewhere, starts[0]];
    expected.sort_unstable();
    assert_eq!(claimed, expected);
    // Ends and deadlines of one instance still run one after the other, and so do its starts.
    assert_eq!(fixture.claim(noon(), 10).await, []);
    for job in &first {
        jobs::finish(&fixture.store, job).await.expect("an end");
    }
    let mut claimed = ids(&fixture.claim(noon(), 10).await);
    claimed.sort_unstable();
    let mut expected = vec![deadline, starts[1]];
    expected.sort_unstable();
    assert_eq!(claimed, expected);
}

#[tokio::test]
async fn instances_take_turns() {
    let fixture = Fixture::new().await;
    let (busy, quiet) = (clock::new_id(), clock::new_id());
    let mut of_busy = Vec::new();
    for early in [60, 50, 40] {
        of_busy.push(fixture.job(busy, noon() - seconds(early)).await);
    }
    let of_quiet = fixture.job(quiet, noon() - seconds(1)).await;
    for (second, expected) in [of_busy[0], of_quiet, of_busy[1], of_busy[2]]
        .into_iter()
        .enumerate()
    {
        let now = noon() + seconds(i64::try_from(second).expect("few"));
        let claimed = fixture.claim(now, 1).await;
        assert_eq!(ids(&claimed), [expected], "{second}");
        jobs::finish(&fixture.store, &claimed[0])
            .await
            .expect("an end");
    }
}

/// The next job of an instance may be added while the first is in flight: its turn comes after the jobs that were due by then.
#[tokio::test]
async fn a_job_added_while_the_first_is_in_flight_waits_its_turn() {
    let fixture = Fixture::new().await;
    let (busy, quiet) = (clock::new_id(), clock::new_id());
    let first = fixture.job(busy, noon() - seconds(60)).await;
    let claimed = fixture.claim(noon(), 1).await;
    assert_eq!(ids(&claimed), [first]);
    let next = fixture.job(busy, noon() - seconds(50)).await;
    let of_quiet = fixture.job(quiet, noon() - seconds(1)).await;
    jobs::finish(&fixture.store, &claimed[0])
        .await
        .expect("an end");
    for expected in [of_quiet, next] {
        let claimed = fixture.claim(noon() + seconds(1), 1).await;
        assert_eq!(ids(&claimed), [expected]);
    }
}

/// Each of many instances has a failed job and others behind it. None of these delays a claim.
#[tokio::test]
async fn jobs_behind_a_failed_job_delay_no_others() {
    let fixture = Fixture::new().await;
    flood(&fixture).await;
    fixture.run(
        "analyze job;
        update job set kind = 'deadline', attempts = 3, last_error = 'no', lease_until = timestamptz '2026-10-05 13:00Z'
        where id in (select distinct on (instance_id) id from job order by instance_id, due_at, id)",
    )
    .await;
    let sound = fixture.job(clock::new_id(), noon()).await;
    assert_eq!(ids(&fixture.claim(noon(), 1).await), [sound]);
    let next = fixture.job(clock::new_id(), noon()).await;
    assert_eq!(ids(&fixture.claim(noon(), 1).await), [next]);
    // A start that could begin is queued behind all of those that cannot. Some claims find it, because claims move the others
    // back.
    let start = leave_of(&fixture, 1, "start_child", clock::new_id(), noon()).await;
    let mut claims = 0;
    while fixture.claim(noon(), 1).await.is_empty() {
        claims += 1;
        assert!(claims <= 70_000 / 32 / 16 + 1, "{start} is claimed");
    }
    // From then on claims do not read them, until they are checked again.
    let look = "(1, '2026-10-05 12:00Z', '2026-10-05 12:01Z', 32, 1, '2026-10-05 12:01Z', '2026-10-05 12:05Z', '2026-10-05 12:01Z')";
    fixture.run("vacuum job").await;
    let plan = explained(&fixture.database, "with looked as", look).await;
    assert!(pages(&plan) <= 40, "{} pages", pages(&plan));
}

#[tokio::test]
async fn a_claim_beside_a_flood_is_cheap() {
    let fixture = Fixture::new().await;
    flood(&fixture).await;
    fixture.run(
        "insert into job select t, gen_random_uuid(), 'deadline', gen_random_uuid(), timestamptz '2026-10-06Z', '{}'
            from generate_series(2, 50) t, generate_series(1, 200)",
    )
    .await;
    for round in ["fresh", "analysed"] {
        for (statement, arguments, most) in [
            ("with recursive circle", "('2026-10-05 12:00Z', 0, 32)", 400),
            (
                "with looked as",
                "(1, '2026-10-05 12:00Z', '2026-10-05 12:01Z', 32, 1, '2026-10-05 12:01Z', '2026-10-05 12:05Z', '2026-10-05 12:01Z')",
                900,
            ),
        ] {
            let plan = explained(&fixture.database, statement, arguments).await;
            assert!(
                pages(&plan) <= most,
                "{round}: {} pages: {plan}",
                pages(&plan)
            );
        }
        fixture.run("analyze job").await;
    }
}

/// Outcomes of items are stored beside a hundred thousand other items, without statistics of the table yet.
#[tokio::test]
async fn storing_the_outcomes_of_items_is_cheap() {
    let fixture = Fixture::new().await;
    fixture.run(
        "insert into bulk_operation (tenant_id, id, action, settings, requested_by, roles, created_at, total, more)
            values (1, md5('operation')::uuid, 'cancel', '{}', 'admin', '[]', now(), 100000, false);
        insert into bulk_item (tenant_id, operation_id, instance_id)
            select 1, md5('operation')::uuid, md5(n::text)::uuid from generate_series(1, 100000) n",
    )
    .await;
    let settle = "(1, md5('operation')::uuid, array[md5('1')::uuid, md5('2')::uuid], array['done', 'refused'], array[null, 'c'],
        array[null, 'd'], array[2, null], array[now(), now()])";
    for round in ["fresh", "analysed"] {
        let plan = explained(&fixture.database, "with settled as", settle).await;
        assert!(
            pages(&plan) <= 60,
            "{round}: {} pages: {plan}",
            pages(&plan)
        );
        fixture.run("analyze bulk_item").await;
    }
    let counts = "select done * 10 + refused from bulk_operation";
    let counts: i32 = sqlx::query_scalar(counts)
        .fetch_one(fixture.database.admin_pool())
        .await
        .expect("counts");
    assert_eq!(counts, 11, "each counts once");
}

/// The turns do not depend on the number of operations of a tenant.
#[tokio::test]
async fn tenants_take_turns_with_their_operations() {
    let fixture = Fixture::new().await;
    fixture.run(
        "insert into bulk_operation (tenant_id, id, action, settings, requested_by, roles, created_at, total, more)
            select t, gen_random_uuid(), 'cancel', '{}', 'admin', '[]', now(), 100, false
            from (values (1), (1), (1), (1), (2)) as tenants (t);
        insert into bulk_item (tenant_id, operation_id, instance_id)
            select tenant_id, id, gen_random_uuid() from bulk_operation, generate_series(1, 100)",
    )
    .await;
    let (mut turns, mut operations) = (Vec::new(), BTreeMap::new());
    for second in 0..8 {
        let now = noon() + seconds(second);
        let claimed = bulk::claim_batch(&fixture.store, now, now + seconds(60), 1).await;
        let batch = claimed.expect("a claim").expect("an operation");
        turns.push(batch.tenant.0);
        *operations.entry(batch.operation).or_insert(0) += 1;
    }
    turns.sort_unstable();
    assert_eq!(turns, [1, 1, 1, 1, 2, 2, 2, 2]);
    assert_eq!(
        operations.len(),
        5,
        "each operation of a tenant has its turn"
    );
}
