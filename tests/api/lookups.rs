//! What an execution reads of the directory: the present state, no more than requested, and only of its tenant.

use std::collections::BTreeSet;

use wrkflw_core::ids::{InstanceId, TenantId};
use wrkflw_core::json::Json;
use wrkflw_core::lookup::{Findings, Lookup, Workload, WorkloadsOf};

use super::*;
use crate::support::plans;
use wrkflw_store::directory::tenants;
use wrkflw_store::lookups;

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn a_lookup_finds_the_present_state() {
    let app = TestApp::empty().await;
    let manager = |person: &str| format!("/v1/people/{person}/manager");
    for (person, above) in [("author", "reviewer"), ("reviewer", "approver")] {
        let body = json!({ "manager": above });
        app.put("admin", &manager(person), body).await.expect(200);
    }
    delete(&app, "admin", &manager("reviewer"))
        .await
        .expect(200);
    delete(&app, "admin", "/v1/groups/reviewers/members/reviewer")
        .await
        .expect(200);
    sql(&app, "insert into calendar select id, 'office', '{\"zone\":\"UTC\",\"n\":1.50}', now() from tenant").await;
    let store = app.store();
    let tenant = tenants::find(store, "default").await.expect("a tenant");
    let tenant = tenant.expect("a tenant");
    let lookup = Lookup {
        managers_of: names(&["author", "reviewer", "nobody"]),
        groups: names(&["reviewers", "approvers", "nothing"]),
        members_max: 1,
        calendars: names(&["office", "moon"]),
        people: names(&["approver", "nobody"]),
        memberships_of: names(&["author", "nobody"]),
        stand_ins_of: names(&["author", "nobody"]),
        workloads: None,
    };
    let now = app.engine.clock().now();
    let found = lookups::look_up(store, tenant, &lookup, now)
        .await
        .expect("findings");
    let map = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
    let expected = Findings {
        managers: map("author", "reviewer"),
        // The first by id, who is not the former member.
        members: BTreeMap::from([
            ("approvers".to_owned(), vec!["approver".to_owned()]),
            ("reviewers".to_owned(), vec!["author".to_owned()]),
        ]),
        calendars: BTreeMap::from([(
            "office".to_owned(),
            Json::parse("{\"n\":1.50,\"zone\":\"UTC\"}").expect("JSON"),
        )]),
        people: names(&["approver"]),
        groups: BTreeMap::from([(
            "author".to_owned(),
            vec!["authors".to_owned(), "reviewers".to_owned()],
        )]),
        ..Findings::default()
    };
    assert_eq!(found.groups, expected.groups);
    assert_eq!(found.stand_ins, expected.stand_ins);
    assert_eq!(found.managers, expected.managers);
    assert_eq!(found.members, expected.members);
    assert_eq!(found.people, expected.people);
    // The stored text, unchanged.
    assert_eq!(
        found.calendars["office"].as_str(),
        "{\"zone\":\"UTC\",\"n\":1.50}"
    );
    assert_eq!(found.calendars.len(), expected.calendars.len());
    let all = Lookup {
        members_max: 10,
        ..lookup.clone()
    };
    let found = lookups::look_up(store, tenant, &all, now)
        .await
        .expect("findings");
    assert_eq!(found.members["reviewers"], ["author", "reviewer2"]);
    let elsewhere = lookups::look_up(store, TenantId(tenant.0 + 1), &all, now).await;
    assert_eq!(elsewhere.expect("findings"), Findings::default());
    let nothing = lookups::look_up(store, tenant, &Lookup::default(), now).await;
    assert_eq!(nothing.expect("findings"), Findings::default());
}

#[tokio::test]
async fn a_lookup_finds_the_absences_of_a_moment() {
    let app = TestApp::empty().await;
    for (absent, substitute) in [("reviewer2", "approver"), ("approver", "author")] {
        let path = format!("/v1/people/{absent}/absences");
        let body = json!({
            "substitute": substitute, "from": "2100-01-01T00:00:00Z", "until": "2100-02-01T00:00:00Z",
        });
        app.post("admin", &path, body).await.expect(201);
    }
    let store = app.store();
    let tenant = tenants::find(store, "default").await.expect("an answer");
    let tenant = tenant.expect("a tenant");
    let lookup = Lookup {
        stand_ins_of: names(&["author", "approver", "reviewer"]),
        ..Lookup::default()
    };
    let at = |moment: &str| moment.parse::<jiff::Timestamp>().expect("a moment");
    let before = lookups::look_up(store, tenant, &lookup, at("2099-12-31T23:59:59Z"));
    assert_eq!(before.await.expect("findings"), Findings::default());
    let meanwhile = lookups::look_up(store, tenant, &lookup, at("2100-01-01T00:00:00Z"));
    let found = meanwhile.await.expect("findings").stand_ins;
    let listed: Vec<_> = found
        .iter()
        .flat_map(|(person, stand_ins)| stand_ins.iter().map(move |one| (person.as_str(), one)))
        .map(|(person, one)| {
            (
                person,
                one.person.as_str(),
                one.groups.join(","),
                one.via.join(","),
            )
        })
        .collect();
    let expected = [
        ("approver", "reviewer2", "reviewers", ""),
        ("author", "approver", "approvers", ""),
        ("author", "reviewer2", "reviewers", "approver"),
    ];
    let expected =
        expected.map(|(one, of, groups, via)| (one, of, groups.to_owned(), via.to_owned()));
    assert_eq!(listed, expected);
}

#[tokio::test]
async fn a_lookup_counts_the_open_tasks_of_people_who_are_not_absent() {
    let app = TestApp::empty().await;
    let store = app.store();
    let tenant = tenants::find(store, "default").await.expect("an answer");
    let tenant = tenant.expect("a tenant");
    sql(
        &app,
        "insert into task (tenant_id, id, instance_id, state_id, ordinal, label, status, owner, candidates, created_at)
        select tenant.id, gen_random_uuid(), case when n > 4 then '00000000-0000-0000-0000-000000000007' else gen_random_uuid() end::uuid,
            gen_random_uuid(), 0, 'l', case when n = 1 then 'COMPLETED' else 'CLAIMED' end,
            case when n < 4 then 'author' else 'reviewer' end, '[]', now()
        from tenant, generate_series(1, 6) n;
        insert into allocation select id, 'flow', 'Call', 'author', '2026-01-01T00:00:00.123456Z' from tenant;
        insert into allocation select id, 'flow', 'Check', 'reviewer', '2026-01-02Z' from tenant;
        insert into allocation select id, 'other', 'Call', 'reviewer', '2026-01-03Z' from tenant;
        insert into absence select id, gen_random_uuid(), 'approver', 'outsider', null, '2026-01-01Z', '2026-02-01Z', now(), 'admin' from tenant;
        insert into absence select id, gen_random_uuid(), 'outsider', 'author', 'other', '2026-01-01Z', '2026-02-01Z', now(), 'admin' from tenant;
        insert into absence select id, gen_random_uuid(), 'reviewer2', 'author', 'flow', '2026-01-01Z', '2026-02-01Z', now(), 'admin' from tenant",
    )
    .await;
    let of = |open_max| Lookup {
        workloads: Some(WorkloadsOf {
            people: names(&["author", "reviewer", "reviewer2", "approver", "outsider"]),
            definition: "flow".into(),
            state: "Call".into(),
            besides: InstanceId(uuid::Uuid::from_u128(7)),
            open_max,
        }),
        ..Lookup::default()
    };
    let at = |moment: &str| moment.parse::<jiff::Timestamp>().expect("a moment");
    let found = async |open_max, moment| {
        let found = lookups::look_up(store, tenant, &of(open_max), at(moment)).await;
        let work = found.expect("findings").workloads.into_iter();
        let work = work.map(|(person, work)| format!("{person} {} {:?}", work.open, work.given_at));
        work.collect::<Vec<_>>()
    };
    let given = "Some(2026-01-01T00:00:00.123456Z)";
    let during = "2026-01-15T00:00:00Z";
    let expected = |author: u32, reviewer: u32| {
        [
            format!("author {author} {given}"),
            "outsider 0 None".to_owned(),
            format!("reviewer {reviewer} None"),
        ]
    };
    // Two of three are open. Of the other person's three, two belong to the instance itself.
    assert_eq!(found(100, during).await, expected(2, 1));
    assert_eq!(found(1, during).await, expected(1, 1));
    assert_eq!(found(0, during).await, expected(0, 0));
    assert_eq!(found(0, "2026-03-01T00:00:00Z").await.len(), 5);
    let question = of(100);
    let elsewhere = lookups::look_up(store, TenantId(tenant.0 + 1), &question, at(during));
    let elsewhere = elsewhere.await.expect("findings").workloads;
    assert!(elsewhere.values().all(|work| *work == Workload::default()));
}

/// The statement that counts the tasks of people reads no more pages when there are more tasks.
#[tokio::test]
async fn the_tasks_of_people_are_counted_by_bounded_index_scans() {
    const PEOPLE: i64 = 50;
    const TASKS_OF_EACH: i64 = 1_500;
    let app = TestApp::empty().await;
    let more = format!(
        "insert into task (tenant_id, id, instance_id, state_id, ordinal, label, status, owner, candidates, created_at)
        select 1, gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 0, 'l', 'CLAIMED', 'p' || n % {PEOPLE}, '[]', now()
        from generate_series(1, {}) n",
        PEOPLE * TASKS_OF_EACH
    );
    let people: Vec<_> = (0..PEOPLE).map(|number| format!("p{number}")).collect();
    let question = format!(
        "(1, '{{{}}}', '00000000-0000-0000-0000-000000000007', 100, 'flow', 'Call', '2026-01-15Z')",
        people.join(",")
    );
    sql(&app, "insert into allocation select 1, 'flow', 'S' || s, 'p' || n, now() from generate_series(0, 49) n, generate_series(1, 20) s").await;
    let mut read = Vec::new();
    // With the statistics of an empty table, and with those of a full one.
    for round in ["fresh", "analysed"] {
        let added = sqlx::raw_sql(sqlx::AssertSqlSafe(more.clone()));
        added
            .execute(app.database.admin_pool())
            .await
            .expect("tasks");
        let plan = plans::explained(&app.database, "select p.id as \"id!\"", &question).await;
        let nodes = plans::nodes(&plan);
        assert!(
            nodes.iter().all(|node| !node.starts_with("Seq")),
            "{round}: {nodes:?}"
        );
        for index in ["task_by_owner", "allocation_pkey", "absence_by_person"] {
            let reads = |node: &String| node.starts_with("Index") && node.ends_with(index);
            assert!(nodes.iter().any(reads), "{round}, {index}: {nodes:?}");
        }
        let pages = plans::pages(&plan);
        // For each person, a row of the index and of the table for each counted task, and a few other pages.
        assert!(pages <= PEOPLE * (2 * 100 + 20), "{round}: {pages} pages");
        read.push(pages);
        sql(&app, "analyze task; analyze allocation").await;
    }
    assert!(
        read[1] <= read[0] * 5 / 4,
        "it grows with the tasks: {read:?}"
    );
}
