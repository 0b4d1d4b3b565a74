//! Which instances a change of groups or absences affects, and how the worker processes them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::sync::Notify;
use wrkflw_core::ids::{InstanceId, TenantId};
use wrkflw_core::instance::Candidate;
use wrkflw_engine::job_handlers::JobHandlers;
use wrkflw_engine::{Engine, Error};
use wrkflw_store::bulk::{Batch, Outcome};
use wrkflw_store::commit::reassessing;
use wrkflw_store::reassessments::{Concerned, Mark};

use super::*;
use crate::support::app::{TestApp, Timers};
use crate::support::guests::subflows;

const TENANT: TenantId = TenantId(1);

impl Fixture {
    /// An instance of this status.
    async fn instance(&self, status: &str) -> InstanceId {
        instance(&self.database, status).await
    }

    /// Adds a task, offered to a principal or owned by somebody.
    async fn task(&self, of: InstanceId, offered_to: Option<(&str, &str)>, owner: Option<&str>) {
        task(&self.database, of, offered_to, owner).await;
    }

    async fn state_instance(&self, of: InstanceId, unassignable: bool, left: bool) {
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
            .expect("a state instance");
    }

    /// All affected instances, read in pages of `limit` rows.
    async fn concerned(&self, principal: &Candidate, limit: i64) -> BTreeSet<InstanceId> {
        let (mut found, mut mark) = (BTreeSet::new(), Some(Mark::BEGINNING));
        while let Some(from) = mark {
            let page = self
                .store
                .instances_concerned(TENANT, principal, from, limit);
            let Concerned {
                instances,
                stopped,
                next,
            } = page.await.expect("a page");
            assert_eq!(stopped, []);
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
            entity_id, initiator, requesters, data, started_at, updated_at, audit_seq, audit_head, event_seq, state_instances)
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
    let sql = "insert into reassessment (tenant_id, id, kind, principal, created_at, due_at) values (1, $1, $2, $3, now(), $4::text::timestamptz)";
    sqlx::query(sql)
        .bind(clock::new_id())
        .bind(kind)
        .bind(principal)
        .bind(due_at.to_string())
        .execute(database.admin_pool())
        .await
        .expect("a reassessment");
}

#[tokio::test]
async fn open_work_of_the_principal_is_found_and_no_other() {
    let fixture = Fixture::new().await;
    let crew = ("group", "crew");
    let (offered, suspended) = (
        fixture.instance("RUNNING").await,
        fixture.instance("SUSPENDED").await,
    );
    // Several tasks of one instance.
    for _ in 0..3 {
        fixture.task(offered, Some(crew), None).await;
        fixture.task(suspended, Some(crew), None).await;
    }
    let namesake = fixture.instance("RUNNING").await;
    fixture.task(namesake, Some(("user", "crew")), None).await;
    let owned = fixture.instance("RUNNING").await;
    fixture
        .task(owned, Some(("group", "others")), Some("rob"))
        .await;
    fixture.task(owned, Some(("user", "rob")), None).await;
    let (stranded, healed, left) = (
        fixture.instance("RUNNING").await,
        fixture.instance("RUNNING").await,
        fixture.instance("RUNNING").await,
    );
    fixture.state_instance(stranded, true, false).await;
    fixture.state_instance(stranded, true, false).await;
    fixture.state_instance(healed, false, false).await;
    fixture.state_instance(left, true, true).await;

    for limit in [1, 2, 100] {
        let found = fixture
            .concerned(&Candidate::Group("crew".into()), limit)
            .await;
        assert_eq!(found, BTreeSet::from([offered, stranded]), "{limit}");
        let found = fixture
            .concerned(&Candidate::User("rob".into()), limit)
            .await;
        assert_eq!(found, BTreeSet::from([owned, stranded]), "{limit}");
        let found = fixture
            .concerned(&Candidate::User("crew".into()), limit)
            .await;
        assert_eq!(found, BTreeSet::from([namesake, stranded]), "{limit}");
    }
}

#[tokio::test]
async fn a_reassessment_is_claimed_by_one_and_goes_on_where_it_stopped() {
    let fixture = Fixture::new().await;
    change(&fixture.database, "group", "crew", noon()).await;
    change(&fixture.database, "user", "rob", noon() + seconds(3600)).await;
    let claim = async |now: Timestamp| {
        let claimed = fixture
            .store
            .claim_reassessments(now, now + seconds(60), 5, TenantId(0))
            .await;
        claimed.expect("a claim")
    };
    let lost = claim(noon()).await;
    assert_eq!(lost.len(), 1);
    assert_eq!(
        (&lost[0].principal, lost[0].mark),
        (&Candidate::Group("crew".into()), Mark::BEGINNING)
    );
    assert_eq!(claim(noon()).await, []);
    let mark = Mark {
        after: clock::new_id(),
        ..Mark::BEGINNING
    };
    let advance = async |reassessment, until| {
        let advanced = fixture
            .store
            .advance_reassessment(reassessment, mark, until)
            .await;
        advanced.expect("an update")
    };
    assert!(advance(&lost[0], noon() + seconds(90)).await);
    assert_eq!(claim(noon() + seconds(60)).await, []);

    let again = claim(noon() + seconds(90)).await;
    assert_eq!((again[0].mark, again[0].attempts), (mark, 2));
    assert!(!advance(&lost[0], noon()).await, "another host has it");
    fixture
        .store
        .finish_reassessment(&lost[0])
        .await
        .expect("nothing");
    assert!(advance(&again[0], noon() + seconds(180)).await);
    fixture
        .store
        .finish_reassessment(&again[0])
        .await
        .expect("an end");
    let next = fixture.store.next_reassessment().await.expect("a look");
    assert_eq!(next, Some(noon() + seconds(3600)));
}

#[tokio::test]
async fn tenants_take_turns_with_their_reassessments() {
    let fixture = Fixture::new().await;
    fixture.run(
        "insert into reassessment (tenant_id, id, kind, principal, created_at, due_at)
            select t, gen_random_uuid(), 'group', 'crew', now(), timestamptz '2026-10-05 11:00Z' + t * interval '1 minute'
            from (values (1), (1), (1), (2), (3)) as tenants (t)",
    )
    .await;
    let (mut after, mut turns) = (TenantId(0), Vec::new());
    for _ in 0..5 {
        let lease = noon() + seconds(60);
        let claimed = fixture
            .store
            .claim_reassessments(noon(), lease, 1, after)
            .await;
        let claimed = claimed.expect("a claim");
        after = claimed[0].tenant;
        turns.push(after.0);
    }
    assert_eq!(turns, [1, 2, 3, 1, 1]);
}

/// Counts the reassessments of each instance. Some fail a number of times.
#[derive(Default)]
struct CountingHandlers {
    seen: Mutex<BTreeMap<InstanceId, u32>>,
    order: Mutex<Vec<InstanceId>>,
    refuses: Mutex<BTreeMap<InstanceId, u32>>,
    changed: Notify,
}

impl JobHandlers for CountingHandlers {
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

    fn reassessment(&self, _: TenantId, instance: InstanceId) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            self.order.lock().expect("a lock").push(instance);
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

/// A host whose time passes only when the test says so: a walk is the last one if it begins long enough after the change, which on
/// a busy machine may be the first one.
struct Standing {
    engine: Engine,
    time: Arc<AtomicI64>,
}

impl Standing {
    async fn begin(app: &TestApp) -> Standing {
        let now = app.engine.clock().now().as_millisecond();
        let time = Arc::new(AtomicI64::new(now));
        let clock = clock::Clock::Manual(time.clone());
        let engine = app.engine_with_clock(clock).await;
        Standing { engine, time }
    }

    /// A change of the group at this moment. By the database's clock it is old, so that only this host's time counts.
    async fn change(&self, database: &TestDatabase, group: &str) {
        let now = self.engine.clock().now();
        change(database, "group", group, now).await;
        let aged = sqlx::query("update reassessment set created_at = now() - interval '1 hour'");
        aged.execute(database.admin_pool()).await.expect("an age");
    }

    /// Lets time pass, and the worker look, until this holds.
    async fn pass_until(&self, holds: impl AsyncFn() -> bool) {
        let passing = async {
            while !holds().await {
                self.time.fetch_add(1_000, Ordering::SeqCst);
                self.engine.wake_workers();
                tokio::task::yield_now().await;
            }
        };
        let passed = tokio::time::timeout(Duration::from_secs(30), passing);
        passed.await.expect("in time");
    }

    async fn pass_until_done(&self, store: &Store) {
        let done = async || store.next_reassessment().await.expect("a look").is_none();
        self.pass_until(done).await;
    }
}

#[tokio::test]
async fn instances_of_a_stopped_version_get_a_job_and_no_reassessment() {
    let app = TestApp::empty().await;
    let published = app.publish("subflows", subflows(), &json!({})).await;
    published.expect(201);
    let stop = "/v1/definitions/subflows/versions/1/stop";
    let stopped = app.post("admin", stop, json!({ "reason": "harm" })).await;
    stopped.expect(200);
    let (rests, runs) = (
        instance(&app.database, "RUNNING").await,
        instance(&app.database, "RUNNING").await,
    );
    for one in [rests, runs] {
        task(&app.database, one, Some(("group", "crew")), None).await;
    }
    let of_stopped = "update instance set definition_key = 'subflows' where id = $1";
    sqlx::query(of_stopped)
        .bind(rests.0)
        .execute(app.database.admin_pool())
        .await
        .expect("an update");
    let time = Standing::begin(&app).await;
    time.change(&app.database, "crew").await;
    let handlers = Arc::new(CountingHandlers::default());
    let timers = Timers::start(&time.engine, handlers.clone());
    handlers.changed.notified().await;
    time.pass_until_done(app.store()).await;
    timers.stop().await;
    let seen = handlers.seen.lock().expect("a lock").clone();
    assert_eq!(seen, BTreeMap::from([(runs, 2)]), "once in each walk");
    let left: Vec<(Uuid, Uuid, i32)> = sqlx::query_as("select id, instance_id, attempts from job")
        .fetch_all(app.database.admin_pool())
        .await
        .expect("jobs");
    assert_eq!(
        left,
        [(reassessing(rests), rests.0, 0)],
        "one, whatever the walks"
    );
}

#[tokio::test]
async fn every_instance_is_reassessed_although_one_fails() {
    // More than one page, and more than a host processes before others have their turn.
    const INSTANCES: usize = 1_230;
    let app = TestApp::empty().await;
    let mut all = BTreeSet::new();
    for _ in 0..INSTANCES {
        let one = instance(&app.database, "RUNNING").await;
        task(&app.database, one, Some(("group", "crew")), None).await;
        all.insert(one);
    }
    let handlers = Arc::new(CountingHandlers::default());
    let refusing = *all.first().expect("instances");
    handlers.refuses.lock().expect("a lock").insert(refusing, 1);
    let time = Standing::begin(&app).await;
    time.change(&app.database, "crew").await;

    let timers = Timers::start(&time.engine, handlers.clone());
    handlers.changed.notified().await;
    let tries = || {
        handlers
            .seen
            .lock()
            .expect("a lock")
            .get(&refusing)
            .copied()
    };
    time.pass_until(async || tries() >= Some(2)).await;
    // All others were processed before it was tried again.
    let seen = handlers.seen.lock().expect("a lock").clone();
    assert_eq!(seen.keys().copied().collect::<BTreeSet<_>>(), all);
    // After the last one the worker finds nothing.
    time.pass_until_done(app.store()).await;
    timers.stop().await;
    let seen = handlers.seen.lock().expect("a lock").clone();
    assert!(
        seen.values().all(|times| *times >= 2),
        "there is a second walk"
    );
}

/// A host whose clock is ahead sees the change as old, while commands that began before it are still running.
#[tokio::test]
async fn a_fast_clock_does_not_make_the_first_walk_the_last() {
    let app = TestApp::empty().await;
    let one = instance(&app.database, "RUNNING").await;
    task(&app.database, one, Some(("group", "crew")), None).await;
    change(&app.database, "group", "crew", app.engine.clock().now()).await;
    let ahead = app.engine.clock().now() + Duration::from_hours(1);
    let clock = clock::Clock::Manual(Arc::new(AtomicI64::new(ahead.as_millisecond())));
    let engine = app.engine_with_clock(clock).await;
    let handlers = Arc::new(CountingHandlers::default());
    let timers = Timers::start(&engine, handlers.clone());
    handlers.changed.notified().await;
    timers.stop().await;
    let next = app.store().next_reassessment().await.expect("a look");
    assert!(next.is_some_and(|next| next > ahead), "{next:?}");
}

/// A change that affects many instances of one tenant does not delay another tenant's change until its end.
#[tokio::test]
async fn a_change_that_affects_many_instances_lets_others_go_first() {
    const MANY: usize = 1_230;
    let app = TestApp::empty().await;
    let now = app.engine.clock().now();
    for _ in 0..MANY {
        let one = instance(&app.database, "RUNNING").await;
        task(&app.database, one, Some(("group", "crew")), None).await;
    }
    change(&app.database, "group", "crew", now).await;
    let other = instance(&app.database, "RUNNING").await;
    task(&app.database, other, Some(("group", "others")), None).await;
    change(&app.database, "group", "others", now).await;
    let of_another = "update task set tenant_id = 2 where id in (select task_id from task_candidate where principal = 'others');
        update instance set tenant_id = 2 where id in (select instance_id from task where tenant_id = 2);
        update task_candidate set tenant_id = 2 where principal = 'others';
        update reassessment set tenant_id = 2 where principal = 'others'";
    let moved = sqlx::raw_sql(of_another).execute(app.database.admin_pool());
    moved.await.expect("another tenant");

    let handlers = Arc::new(CountingHandlers::default());
    let timers = Timers::start(&app.engine, handlers.clone());
    let place = async {
        loop {
            handlers.changed.notified().await;
            let order = handlers.order.lock().expect("a lock");
            if let Some(place) = order.iter().position(|one| *one == other) {
                return place;
            }
        }
    };
    let place = tokio::time::timeout(Duration::from_secs(30), place).await;
    let place = place.expect("in time");
    timers.stop().await;
    assert!(place < MANY, "{place} were looked at before it");
}
