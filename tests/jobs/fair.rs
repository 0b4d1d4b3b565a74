//! Tenants take turns, instances take turns, and what has to wait costs nobody else anything.

use std::collections::BTreeMap;

use wrkflw::domain::ids::TenantId;

use super::claims::{explained, pages};
use super::*;

/// Leaves a job of this kind on an instance of a tenant; gives its id.
async fn leave_of(shop: &Shop, tenant: i32, kind: &str, instance: Uuid, due_at: Timestamp) -> Uuid {
    let id = clock::new_id();
    sqlx::query("insert into job (tenant_id, id, kind, instance_id, due_at, payload) values ($1, $2, $3, $4, $5::text::timestamptz, '{}')")
        .bind(tenant)
        .bind(id)
        .bind(kind)
        .bind(instance)
        .bind(due_at.to_string())
        .execute(shop.database.admin_pool())
        .await
        .expect("a job");
    id
}

/// As a flow leaves them that starts children in a circle: 3 500 instances of tenant 1, each with 20 starts that are due.
async fn flood(shop: &Shop) {
    shop.run(
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
    let shop = Shop::new().await;
    flood(&shop).await;
    let late = leave_of(&shop, 2, "match_signals", clock::new_id(), noon()).await;
    let claimed = shop.claim(noon(), 2).await;
    let mut of = tenants(&claimed);
    of.sort_unstable();
    assert_eq!(of, [1, 2], "each has a half");
    assert!(ids(&claimed).contains(&late));
}

#[tokio::test]
async fn tenants_take_turns_however_many_they_are() {
    const TENANTS: i32 = 200;
    let shop = Shop::new().await;
    flood(&shop).await;
    shop.run(
        "insert into job select t, gen_random_uuid(), 'deadline', gen_random_uuid(), timestamptz '2026-10-05 11:59Z', '{}'
            from generate_series(2, 200) t, generate_series(1, 3)",
    )
    .await;
    let mut rota = Rota::new(i64::MAX);
    for round in 1..=3 {
        let mut turns: BTreeMap<i32, u32> = BTreeMap::new();
        for _ in 0..TENANTS {
            for tenant in tenants(&shop.claim_by(&mut rota, noon(), 1).await) {
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

#[tokio::test]
async fn no_tenant_has_all_hands() {
    let shop = Shop::new().await;
    for _ in 0..5 {
        shop.job(clock::new_id(), noon()).await;
    }
    let mut rota = Rota::new(3);
    assert_eq!(shop.claim_by(&mut rota, noon(), 10).await.len(), 3);
    assert!(rota.is_full());
    assert_eq!(shop.claim_by(&mut rota, noon(), 10).await, []);
    let other = leave_of(&shop, 2, "deadline", clock::new_id(), noon()).await;
    assert_eq!(ids(&shop.claim_by(&mut rota, noon(), 10).await), [other]);
    rota.ended(TenantId(1));
    assert_eq!(tenants(&shop.claim_by(&mut rota, noon(), 10).await), [1]);
    assert_eq!(shop.claim_by(&mut rota, noon(), 10).await, []);
}

#[tokio::test]
async fn cancels_and_ends_come_before_starts() {
    let shop = Shop::new().await;
    let (parent, other) = (clock::new_id(), clock::new_id());
    let mut starts = Vec::new();
    for early in [60, 50, 40] {
        starts.push(leave_of(&shop, 1, "start_child", parent, noon() - seconds(early)).await);
    }
    let ended = leave_of(&shop, 1, "child_ended", parent, noon() - seconds(20)).await;
    let deadline = leave_of(&shop, 1, "deadline", parent, noon() - seconds(10)).await;
    // The parent itself is cancelled, and waits for nothing that it has to do.
    let cancel = leave_of(&shop, 1, "cancel_child", parent, noon()).await;
    let elsewhere = leave_of(&shop, 1, "deadline", other, noon()).await;

    let first = shop.claim(noon(), 10).await;
    let mut claimed = ids(&first);
    claimed.sort_unstable();
    let mut expected = vec![ended, cancel, elsewhere, starts[0]];
    expected.sort_unstable();
    assert_eq!(claimed, expected);
    // Ends and deadlines of one instance still come one after the other, and so do its starts.
    assert_eq!(shop.claim(noon(), 10).await, []);
    for job in &first {
        shop.store.finish_job(job).await.expect("an end");
    }
    let mut claimed = ids(&shop.claim(noon(), 10).await);
    claimed.sort_unstable();
    let mut expected = vec![deadline, starts[1]];
    expected.sort_unstable();
    assert_eq!(claimed, expected);
}

#[tokio::test]
async fn instances_take_turns() {
    let shop = Shop::new().await;
    let (busy, quiet) = (clock::new_id(), clock::new_id());
    let mut of_busy = Vec::new();
    for early in [60, 50, 40] {
        of_busy.push(shop.job(busy, noon() - seconds(early)).await);
    }
    let of_quiet = shop.job(quiet, noon() - seconds(1)).await;
    for (second, expected) in [of_busy[0], of_quiet, of_busy[1], of_busy[2]]
        .into_iter()
        .enumerate()
    {
        let now = noon() + seconds(i64::try_from(second).expect("few"));
        let claimed = shop.claim(now, 1).await;
        assert_eq!(ids(&claimed), [expected], "{second}");
        shop.store.finish_job(&claimed[0]).await.expect("an end");
    }
}

/// Each of many instances has a job that failed and others behind it: none of these is in the way.
#[tokio::test]
async fn what_waits_for_a_failed_job_costs_others_nothing() {
    let shop = Shop::new().await;
    flood(&shop).await;
    shop.run(
        "analyze job;
        update job set kind = 'deadline', attempts = 3, last_error = 'no', lease_until = timestamptz '2026-10-05 13:00Z'
        where id in (select distinct on (instance_id) id from job order by instance_id, due_at, id)",
    )
    .await;
    let sound = shop.job(clock::new_id(), noon()).await;
    assert_eq!(ids(&shop.claim(noon(), 1).await), [sound]);
    let next = shop.job(clock::new_id(), noon()).await;
    assert_eq!(ids(&shop.claim(noon(), 1).await), [next]);
    // A start that could begin stands behind all of those that cannot; it is found in some claims, for the claims move them.
    let start = leave_of(&shop, 1, "start_child", clock::new_id(), noon()).await;
    let mut claims = 0;
    while shop.claim(noon(), 1).await.is_empty() {
        claims += 1;
        assert!(claims <= 70_000 / 32 / 16 + 1, "{start} is claimed");
    }
    // From then on they are not come by, until they are looked at again.
    let look = "(1, '2026-10-05 12:00Z', '2026-10-05 12:01Z', 32, 1, '2026-10-05 12:01Z', '2026-10-05 12:05Z', '2026-10-05 12:01Z')";
    shop.run("vacuum job").await;
    let plan = explained(&shop, "with looked as", look).await;
    assert!(pages(&plan) <= 40, "{} pages", pages(&plan));
}

#[tokio::test]
async fn a_claim_beside_a_flood_is_cheap() {
    let shop = Shop::new().await;
    flood(&shop).await;
    shop.run(
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
            let plan = explained(&shop, statement, arguments).await;
            assert!(
                pages(&plan) <= most,
                "{round}: {} pages: {plan}",
                pages(&plan)
            );
        }
        shop.run("analyze job").await;
    }
}

/// However many operations each of them has.
#[tokio::test]
async fn tenants_take_turns_with_their_operations() {
    let shop = Shop::new().await;
    shop.run(
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
        let claimed = shop.store.claim_batch(now, now + seconds(60), 1).await;
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
