//! Which instances a change of groups or absences affects, and how its row is claimed.

use std::collections::BTreeSet;

use wrkflw_core::ids::{InstanceId, TenantId};
use wrkflw_core::instance::Candidate;
use wrkflw_store::reassessments::{self, Concerned, WalkProgress};

use super::*;
use crate::support::app::TestApp;
use crate::support::plans;

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
        let (mut found, mut mark) = (BTreeSet::new(), Some(WalkProgress::BEGINNING));
        while let Some(from) = mark {
            let Concerned {
                instances,
                stopped,
                next,
            } = self.page(principal, from, limit).await;
            assert_eq!(stopped, []);
            assert!(i64::try_from(instances.len()).expect("few") <= limit);
            assert!(instances.is_sorted_by_key(|(_, passed)| passed.after));
            // A pass that ends at one of these instances finds the later ones.
            for (number, (_, passed)) in instances.iter().enumerate() {
                let rest = self.page(principal, *passed, limit).await.instances;
                let rest: BTreeSet<_> = rest.into_iter().map(|(one, _)| one).collect();
                let after = &instances[number + 1..];
                assert!(after.iter().all(|(one, _)| rest.contains(one)), "{rest:?}");
            }
            let ids: BTreeSet<_> = instances.iter().map(|(one, _)| *one).collect();
            assert_eq!(ids.len(), instances.len(), "each once");
            found.extend(ids);
            mark = next;
        }
        found
    }

    async fn page(&self, principal: &Candidate, from: WalkProgress, limit: i64) -> Concerned {
        let page =
            reassessments::instances_concerned(&self.store, TENANT, principal, from, limit, noon());
        page.await.expect("a page")
    }
}

pub(super) async fn instance(database: &TestDatabase, status: &str) -> InstanceId {
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

pub(super) async fn task(
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

pub(super) async fn change(
    database: &TestDatabase,
    kind: &str,
    principal: &str,
    due_at: Timestamp,
) {
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
        assert_eq!(found, BTreeSet::from([offered]), "{limit}");
        let found = fixture
            .concerned(&Candidate::User("rob".into()), limit)
            .await;
        assert_eq!(found, BTreeSet::from([owned]), "{limit}");
        let found = fixture
            .concerned(&Candidate::User("crew".into()), limit)
            .await;
        assert_eq!(found, BTreeSet::from([namesake]), "{limit}");
        // The initiator may have got a manager, who is the first fallback.
        let found = fixture
            .concerned(&Candidate::User("ann".into()), limit)
            .await;
        assert_eq!(found, BTreeSet::from([stranded]), "{limit}");
    }
}

/// The tasks of several instances are created in turn, as those of a quorum and of a later state are.
#[tokio::test]
async fn each_instance_of_a_page_is_found_once_in_order() {
    let fixture = Fixture::new().await;
    let mut all = Vec::new();
    for _ in 0..3 {
        all.push(fixture.instance("RUNNING").await);
    }
    all.reverse();
    for one in all.iter().chain(&all) {
        fixture.task(*one, Some(("group", "crew")), None).await;
    }
    let crew = Candidate::Group("crew".into());
    let each: BTreeSet<_> = all.iter().copied().collect();
    for limit in [2, 4, 100] {
        assert_eq!(fixture.concerned(&crew, limit).await, each, "{limit}");
    }
    let page = fixture.page(&crew, WalkProgress::BEGINNING, 100).await;
    let order: Vec<_> = page.instances.iter().map(|(one, _)| *one).collect();
    assert_eq!(order, all);
    // After the last instance the page has nothing more.
    let (_, passed) = page.instances[2];
    let rest = fixture.page(&crew, passed, 100).await;
    assert_eq!(rest.instances, []);
}

#[tokio::test]
async fn tasks_claimed_for_absent_people_are_found_by_each_link_of_the_chain() {
    let fixture = Fixture::new().await;
    let (for_ann, own) = (
        fixture.instance("RUNNING").await,
        fixture.instance("RUNNING").await,
    );
    for one in [for_ann, own] {
        fixture
            .task(one, Some(("group", "crew")), Some("dot"))
            .await;
    }
    let marks = format!(
        "update task set ownership = '{{\"onBehalfOf\":\"ann\"}}' where instance_id = '{}'",
        for_ann.0
    );
    fixture.run(&marks).await;
    fixture
        .run(
            "insert into absence (tenant_id, id, person_id, substitute_id, active_from, active_until, created_at, created_by)
            select 1, gen_random_uuid(), person, substitute, timestamptz '2026-10-05 11:00Z', timestamptz '2026-10-05 13:00Z', now(), person
            from (values ('ann', 'bob'), ('bob', 'cat'), ('cat', 'dot'), ('dot', 'eve')) as links (person, substitute)",
        )
        .await;
    let found = async |person: &str| fixture.concerned(&Candidate::User(person.into()), 1).await;
    for person in ["ann", "bob", "cat"] {
        assert_eq!(found(person).await, BTreeSet::from([for_ann]), "{person}");
    }
    assert_eq!(found("dot").await, BTreeSet::from([for_ann, own]));
    assert_eq!(found("eve").await, BTreeSet::new());
    // The end of the first link was a change of its own. Its principal is the absent person.
    fixture
        .run("update absence set ended_at = now() where person_id = 'ann'")
        .await;
    assert_eq!(found("ann").await, BTreeSet::from([for_ann]));
    assert_eq!(found("bob").await, BTreeSet::new());
}

/// The statement that finds such tasks reads no tasks of other owners.
#[tokio::test]
async fn tasks_claimed_for_absent_people_are_read_by_keys() {
    let app = TestApp::empty().await;
    let others = "insert into task (tenant_id, id, instance_id, state_id, ordinal, label, status, owner, candidates, created_at)
        select 1, gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 0, 'l', 'CLAIMED', 'p' || n, '[]', now()
        from generate_series(1, 5000) n;
        analyze task";
    let added = sqlx::raw_sql(others).execute(app.database.admin_pool());
    added.await.expect("tasks");
    let nil = "00000000-0000-0000-0000-000000000000";
    let arguments = format!("(1, 'ann', '2026-10-05 12:00Z', 3, '{nil}', 100)");
    let beginning = "with recursive absent";
    let plan = plans::explained(&app.database, beginning, &arguments).await;
    let searches = plans::index_searches(&plan);
    for (index, by) in [
        ("task_substituted", "onBehalfOf"),
        ("absence_by_substitute", "substitute_id ="),
    ] {
        let is_read = |search: &String| search.starts_with(index) && search.contains(by);
        assert!(searches.iter().any(is_read), "{index}: {searches:?}");
    }
}

#[tokio::test]
async fn a_reassessment_is_claimed_by_one_worker_and_continues_where_it_stopped() {
    let fixture = Fixture::new().await;
    change(&fixture.database, "group", "crew", noon()).await;
    change(&fixture.database, "user", "rob", noon() + seconds(3600)).await;
    let claim = async |now: Timestamp| {
        let claimed =
            reassessments::claim(&fixture.store, now, now + seconds(60), 5, TenantId(0)).await;
        claimed.expect("a claim")
    };
    let lost = claim(noon()).await;
    assert_eq!(lost.len(), 1);
    assert_eq!(
        (&lost[0].principal, lost[0].mark),
        (&Candidate::Group("crew".into()), WalkProgress::BEGINNING)
    );
    assert_eq!(claim(noon()).await, []);
    let mark = WalkProgress {
        after: clock::new_id(),
        ..WalkProgress::BEGINNING
    };
    let advance = async |reassessment, until| {
        let advanced = reassessments::advance(&fixture.store, reassessment, mark, until).await;
        advanced.expect("an update")
    };
    assert!(advance(&lost[0], noon() + seconds(90)).await);
    assert_eq!(claim(noon() + seconds(60)).await, []);

    let again = claim(noon() + seconds(90)).await;
    assert_eq!((again[0].mark, again[0].attempts), (mark, 2));
    assert!(!advance(&lost[0], noon()).await, "another host has it");
    reassessments::finish(&fixture.store, &lost[0])
        .await
        .expect("nothing");
    assert!(advance(&again[0], noon() + seconds(180)).await);
    reassessments::finish(&fixture.store, &again[0])
        .await
        .expect("an end");
    let next = reassessments::next(&fixture.store).await.expect("a look");
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
        let claimed = reassessments::claim(&fixture.store, noon(), lease, 1, after).await;
        let claimed = claimed.expect("a claim");
        after = claimed[0].tenant;
        turns.push(after.0);
    }
    assert_eq!(turns, [1, 2, 3, 1, 1]);
}
