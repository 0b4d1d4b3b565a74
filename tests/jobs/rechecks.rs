//! Which instances a change of groups or absences leads to, and how the worker goes through them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::Notify;
use wrkflw::domain::answer::Principal;
use wrkflw::domain::ids::{InstanceId, TenantId};
use wrkflw::engine::Error;
use wrkflw::engine::perform::Perform;
use wrkflw::store::bulk::{Batch, Outcome};
use wrkflw::store::rechecks::{Concerned, Mark};

use super::*;
use crate::support::app::{TestApp, Timers};

const TENANT: TenantId = TenantId(1);

impl Shop {
    /// An instance of this status.
    async fn instance(&self, status: &str) -> InstanceId {
        instance(&self.database, status).await
    }

    /// A task on it, offered to a principal or owned by somebody.
    async fn task(&self, of: InstanceId, offered_to: Option<(&str, &str)>, owner: Option<&str>) {
        task(&self.database, of, offered_to, owner).await;
    }

    async fn stay(&self, of: InstanceId, unassignable: bool, left: bool) {
        let sql = "insert into state_instance (tenant_id, instance_id, id, ordinal, name, entered_at, predecessors, needed,
                exclude, priority, unassignable_since, left_at)
            values (1, $1, $2, 0, 'S', now(), '{}', 1, '{}', 50, case when $3 then now() end, case when $4 then now() end)";
        sqlx::query(sql)
            .bind(of.0)
            .bind(clock::new_id())
            .bind(unassignable)
            .bind(left)
            .execute(self.database.admin_pool())
            .await
            .expect("a stay");
    }

    /// All instances concerned, in pages of `limit` rows.
    async fn concerned(&self, principal: &Principal, limit: i64) -> BTreeSet<InstanceId> {
        let (mut found, mut mark) = (BTreeSet::new(), Some(Mark::BEGINNING));
        while let Some(from) = mark {
            let page = self
                .store
                .instances_concerned(TENANT, principal, from, limit);
            let Concerned { instances, next } = page.await.expect("a page");
            assert!(i64::try_from(instances.len()).expect("few") <= limit);
            assert!(instances.is_sorted());
            found.extend(instances);
            mark = next;
        }
        found
    }
}

async fn instance(database: &TestDatabase, status: &str) -> InstanceId {
    let id = clock::new_id();
    let sql = "insert into instance (tenant_id, id, definition_key, definition_version, revision, status, entity_type,
            entity_id, initiator, requesters, data, started_at, updated_at, audit_seq, audit_head, event_seq, stays)
        values (1, $1, 'd', 1, 1, $2, 'e', $1::text, 'ann', '{}', '{}', now(), now(), 1, '', 1, 1)";
    let inserted = sqlx::query(sql).bind(id).bind(status);
    inserted
        .execute(database.admin_pool())
        .await
        .expect("an instance");
    InstanceId(id)
}

async fn task(
    database: &TestDatabase,
    of: InstanceId,
    offered_to: Option<(&str, &str)>,
    owner: Option<&str>,
) {
    let id = clock::new_id();
    let sql = "insert into task (tenant_id, id, instance_id, state_id, ordinal, label, status, owner, candidates, created_at)
        values (1, $1, $2, $2, 0, 'l', case when $3::text is null then 'PENDING' else 'CLAIMED' end, $3, '[]', now())";
    let inserted = sqlx::query(sql).bind(id).bind(of.0).bind(owner);
    inserted
        .execute(database.admin_pool())
        .await
        .expect("a task");
    if let Some((kind, principal)) = offered_to {
        sqlx::query("insert into task_candidate values (1, $1, $2, $3)")
            .bind(kind)
            .bind(principal)
            .bind(id)
            .execute(database.admin_pool())
            .await
            .expect("a candidate");
    }
}

async fn change(database: &TestDatabase, kind: &str, principal: &str, due_at: Timestamp) {
    let sql = "insert into recheck (tenant_id, id, kind, principal, created_at, due_at) values (1, $1, $2, $3, now(), $4::text::timestamptz)";
    sqlx::query(sql)
        .bind(clock::new_id())
        .bind(kind)
        .bind(principal)
        .bind(due_at.to_string())
        .execute(database.admin_pool())
        .await
        .expect("a recheck");
}

#[tokio::test]
async fn open_work_of_the_principal_is_found_and_no_other() {
    let shop = Shop::new().await;
    let crew = ("group", "crew");
    let (offered, suspended) = (
        shop.instance("RUNNING").await,
        shop.instance("SUSPENDED").await,
    );
    // Several tasks lead to one instance.
    for _ in 0..3 {
        shop.task(offered, Some(crew), None).await;
        shop.task(suspended, Some(crew), None).await;
    }
    let namesake = shop.instance("RUNNING").await;
    shop.task(namesake, Some(("user", "crew")), None).await;
    let owned = shop.instance("RUNNING").await;
    shop.task(owned, Some(("group", "others")), Some("rob"))
        .await;
    shop.task(owned, Some(("user", "rob")), None).await;
    let (stranded, healed, left) = (
        shop.instance("RUNNING").await,
        shop.instance("RUNNING").await,
        shop.instance("RUNNING").await,
    );
    shop.stay(stranded, true, false).await;
    shop.stay(stranded, true, false).await;
    shop.stay(healed, false, false).await;
    shop.stay(left, true, true).await;

    for limit in [1, 2, 100] {
        let found = shop
            .concerned(&Principal::Group("crew".into()), limit)
            .await;
        assert_eq!(found, BTreeSet::from([offered, stranded]), "{limit}");
        let found = shop.concerned(&Principal::User("rob".into()), limit).await;
        assert_eq!(found, BTreeSet::from([owned, stranded]), "{limit}");
        let found = shop.concerned(&Principal::User("crew".into()), limit).await;
        assert_eq!(found, BTreeSet::from([namesake, stranded]), "{limit}");
    }
}

#[tokio::test]
async fn a_recheck_is_claimed_by_one_and_goes_on_where_it_stopped() {
    let shop = Shop::new().await;
    change(&shop.database, "group", "crew", noon()).await;
    change(&shop.database, "user", "rob", noon() + seconds(3600)).await;
    let claim = async |now: Timestamp| {
        let claimed = shop
            .store
            .claim_rechecks(now, now + seconds(60), 5, TenantId(0))
            .await;
        claimed.expect("a claim")
    };
    let lost = claim(noon()).await;
    assert_eq!(lost.len(), 1);
    assert_eq!(
        (&lost[0].principal, lost[0].mark),
        (&Principal::Group("crew".into()), Mark::BEGINNING)
    );
    assert_eq!(claim(noon()).await, []);
    let mark = Mark {
        after: clock::new_id(),
        ..Mark::BEGINNING
    };
    let advance = async |recheck, until| {
        let advanced = shop.store.advance_recheck(recheck, mark, until).await;
        advanced.expect("an update")
    };
    assert!(advance(&lost[0], noon() + seconds(90)).await);
    assert_eq!(claim(noon() + seconds(60)).await, []);

    let again = claim(noon() + seconds(90)).await;
    assert_eq!((again[0].mark, again[0].attempts), (mark, 2));
    assert!(!advance(&lost[0], noon()).await, "another host has it");
    shop.store.finish_recheck(&lost[0]).await.expect("nothing");
    assert!(advance(&again[0], noon() + seconds(180)).await);
    shop.store.finish_recheck(&again[0]).await.expect("an end");
    let next = shop.store.next_recheck().await.expect("a look");
    assert_eq!(next, Some(noon() + seconds(3600)));
}

#[tokio::test]
async fn tenants_take_turns_with_their_rechecks() {
    let shop = Shop::new().await;
    shop.run(
        "insert into recheck (tenant_id, id, kind, principal, created_at, due_at)
            select t, gen_random_uuid(), 'group', 'crew', now(), timestamptz '2026-10-05 11:00Z' + t * interval '1 minute'
            from (values (1), (1), (1), (2), (3)) as tenants (t)",
    )
    .await;
    let (mut after, mut turns) = (TenantId(0), Vec::new());
    for _ in 0..5 {
        let lease = noon() + seconds(60);
        let claimed = shop.store.claim_rechecks(noon(), lease, 1, after).await;
        let claimed = claimed.expect("a claim");
        after = claimed[0].tenant;
        turns.push(after.0);
    }
    assert_eq!(turns, [1, 2, 3, 1, 1]);
}

/// Counts how often each instance is looked at; some refuse a number of times.
#[derive(Default)]
struct Looks {
    seen: Mutex<BTreeMap<InstanceId, u32>>,
    refuses: Mutex<BTreeMap<InstanceId, u32>>,
    changed: Notify,
}

impl Perform for Looks {
    fn job<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Result<(), Error>> {
        panic!("there is no job, and here is {job:?}");
    }

    fn item<'a>(
        &'a self,
        batch: &'a Batch,
        _: InstanceId,
    ) -> BoxFuture<'a, Result<Outcome, Error>> {
        panic!("there is no operation, and here is {batch:?}");
    }

    fn recheck(&self, _: TenantId, instance: InstanceId) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            *self
                .seen
                .lock()
                .expect("a lock")
                .entry(instance)
                .or_default() += 1;
            self.changed.notify_one();
            let mut refuses = self.refuses.lock().expect("a lock");
            match refuses.get_mut(&instance) {
                Some(times) if *times > 0 => {
                    *times -= 1;
                    Err(Error::Busy)
                }
                _ => Ok(()),
            }
        })
    }
}

#[tokio::test]
async fn every_instance_is_looked_at_though_one_refuses() {
    // More than one page, and more than a host goes through before it lets others go first.
    const INSTANCES: usize = 1_230;
    let app = TestApp::empty().await;
    let mut all = BTreeSet::new();
    for _ in 0..INSTANCES {
        let one = instance(&app.database, "RUNNING").await;
        task(&app.database, one, Some(("group", "crew")), None).await;
        all.insert(one);
    }
    let looks = Arc::new(Looks::default());
    let refusing = *all.first().expect("instances");
    looks.refuses.lock().expect("a lock").insert(refusing, 1);
    change(&app.database, "group", "crew", app.engine.clock().now()).await;

    // A host whose commands take a second at most, so that the second walk is not long in coming.
    let patience = Duration::from_secs(1);
    let (_host, engine) = app.beside_with_engine(app.database.url(), patience).await;
    let timers = Timers::start(&engine, looks.clone());
    let twice = async {
        while looks.seen.lock().expect("a lock").get(&refusing) < Some(&2) {
            looks.changed.notified().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), twice)
        .await
        .expect("in time");
    // All others had been looked at before it was tried again.
    let seen = looks.seen.lock().expect("a lock").clone();
    assert_eq!(seen.keys().copied().collect::<BTreeSet<_>>(), all);
    // Nothing is left to do once a worker finds nothing.
    let done = async {
        while app
            .engine
            .store()
            .next_recheck()
            .await
            .expect("a look")
            .is_some()
        {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), done)
        .await
        .expect("in time");
    timers.stop().await;
    let seen = looks.seen.lock().expect("a lock").clone();
    assert!(
        seen.values().all(|times| *times >= 2),
        "there is a second walk"
    );
}
