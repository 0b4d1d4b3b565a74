//! Each filter of a list is answered from an index. The tests count the pages that its statement reads among many rows that do
//! not match.

use super::*;
use crate::support::plans::{explained_once, explained_to_reader, index_searches, nodes, pages};

/// Copies of an instance, nine tenths of which have ended, and a few that are late, old or owned by a person.
const COPIES: &str = "
    create temporary table copy as
    select n, lpad(to_hex(n), 32, '0')::uuid as id, n % 10 > 0 as ended, n % 4000 = 10 as odd from generate_series(1, 30000) n;
    insert into instance
    select (jsonb_populate_record(i, jsonb_build_object('id', c.id, 'entity_id', c.n, 'status', case
        when c.ended then 'COMPLETED' when c.odd then 'SUSPENDED' else 'RUNNING' end))).*
    from instance i, copy c where i.id not in (select id from copy);
    insert into state_instance
    select (jsonb_populate_record(s, jsonb_build_object('id', c.id, 'instance_id', c.id, 'left_at', case when c.ended then s.entered_at end,
        'entered_at', case when c.odd then timestamptz '2020-01-01' else s.entered_at end,
        'due_at', case when c.odd then timestamptz '2021-01-01' when c.n % 3 = 0 then timestamptz '2100-01-01' + c.n * interval '1 minute' end))).*
    from state_instance s, copy c where s.id not in (select id from copy);
    insert into task
    select (jsonb_populate_record(t, jsonb_build_object('id', c.id, 'instance_id', c.id, 'state_id', c.id,
        'status', case when c.ended then 'COMPLETED' else 'PENDING' end, 'ended_at', case when c.ended then t.created_at end,
        'owner', case when c.n % 4000 = 11 then 'odd' when c.ended then 'somebody' end,
        'due_at', case when c.n % 4000 = 20 then timestamptz '2021-01-01' when c.n % 3 = 1 then timestamptz '2100-01-01' + c.n * interval '1 minute' end))).*
    from task t, copy c where t.id not in (select id from copy);
    analyze instance; analyze state_instance; analyze task;
    -- Entries that the tree of the index does not have yet are read one by one, at most 4 MB.
    select gin_clean_pending_list('instance_by_word')";
/// A scan of the tables would read more than a thousand.
const PAGES_MAX: i64 = 250;

async fn tenant(app: &TestApp) -> i32 {
    sqlx::query_scalar("select id from tenant where name = 'default'")
        .fetch_one(app.database.admin_pool())
        .await
        .expect("a tenant")
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table of requests and responses")]
async fn each_filter_uses_an_index() {
    let app = TestApp::start().await;
    app.started("doc-1").await;
    let mut connection = app
        .database
        .admin_pool()
        .acquire()
        .await
        .expect("a connection");
    // One after the other, because an open transaction delays the feeds of all tests on the server.
    for statement in COPIES.split(';') {
        let filled = sqlx::raw_sql(statement).execute(&mut *connection).await;
        filled.expect("copies");
    }
    drop(connection);
    let pages_of_all: i64 = sqlx::query_scalar(
        "select sum(pg_relation_size(c.oid) / 8192)::bigint from pg_class c where relname = 'task'",
    )
    .fetch_one(app.database.admin_pool())
    .await
    .expect("a size");
    assert!(pages_of_all > 2 * PAGES_MAX, "{pages_of_all} pages");
    let tenant = tenant(&app).await;
    let nil = "'00000000-0000-0000-0000-000000000000'";
    let ordered = |status: &str, oldest: bool| {
        format!(
            "({tenant}, null, '{status}', null, null, null, null, null, null, null, null, '{{}}', '{{}}', '{{}}', '{{}}', null, 26, 26, null, null, null, null, null, null, {oldest}, false)"
        )
    };
    let instances = |status| ordered(status, false);
    let first = "select\n    n.id as \"id!\"";
    for (beginning, arguments, index) in [
        (first, instances("SUSPENDED"), "instance_by_status"),
        (first, instances("CANCELLED"), "instance_by_status"),
        (first, instances("RUNNING"), ""),
        (first, instances("COMPLETED"), ""),
        (first, ordered("RUNNING", true), ""),
        (first, ordered("SUSPENDED", true), "instance_by_status"),
        (
            "select id as \"id!\" from instance where tenant_id = $1 and entity_type",
            format!("({tenant}, 'document', '4010', 4097)"),
            "instance_by_entity",
        ),
        (
            "with state as materialized",
            format!("({tenant}, '2022-01-01', 4096)"),
            "task_due",
        ),
        (
            "with state as materialized",
            format!("({tenant}, '2022-01-01', 4096)"),
            "state_instance_due",
        ),
        (
            "select d.id as \"id!\", d.at",
            format!("({tenant}, null, {nil}, 20, null)"),
            "task_due",
        ),
        (
            "select d.id as \"id!\", d.at",
            format!("({tenant}, null, {nil}, 20, null)"),
            "state_instance_due",
        ),
        (
            "select id, ended_at as",
            format!("({tenant}, 'odd', null, {nil}, null, null, 26)"),
            "task_ended",
        ),
        (
            "(\n            select instance_id as \"id!\" from task where",
            format!("({tenant}, 'odd', 5001)"),
            "task_ended",
        ),
        (
            "(\n            select instance_id as \"id!\" from state_instance",
            format!("({tenant}, '2022-01-01', 5001)"),
            "state_instance_due",
        ),
        (
            "select instance_id as \"id!\" from state_instance\n        where",
            format!("({tenant}, '2022-01-01', 5001)"),
            "state_instance_since",
        ),
        ("select word_holders", "('4010', 5000)".to_owned(), ""),
    ] {
        let plan = explained_to_reader(&app.database, tenant, beginning, &arguments).await;
        let nodes = nodes(&plan);
        assert!(
            pages(&plan) < PAGES_MAX,
            "{beginning}: {} pages {nodes:?}",
            pages(&plan)
        );
        assert!(
            nodes.iter().any(|node| node.contains(index)),
            "{beginning}: {nodes:?}"
        );
        assert!(
            !nodes.iter().any(|node| node.starts_with("Seq Scan")),
            "{beginning}: {nodes:?}"
        );
    }
    kept_plans_look_up_keys(&app).await;
}

/// Deliveries that are pending since before a receiver was repaired, and newer ones.
const DELIVERIES: &str = "
    insert into webhook_delivery (tenant_id, subscription_id, message_id, notifies, instance_id, seq, state, created_at, due_at)
    select tenant_id, id, lpad(to_hex(n), 32, '0')::uuid, false, id, 0, case when n <= 20000 then 'pending' else 'delivered' end, now(), now()
    from subscription, generate_series(1, 40000) n;
    analyze webhook_delivery";

/// A page of pending deliveries reads neither the others nor all pending ones.
#[tokio::test]
async fn pending_deliveries_are_read_in_order() {
    let app = TestApp::empty().await;
    let body = json!({ "url": "http://127.0.0.1:9/", "types": ["*"] });
    let subscription = app.post("admin", "/v1/subscriptions", body).await;
    let subscription = subscription.expect(201)["id"].clone();
    let id = subscription.as_str().expect("an id");
    sql(&app, DELIVERIES).await;
    let tenant = tenant(&app).await;
    let arguments = format!("({tenant}, '{id}', 'pending', null, 26)");
    let beginning = "select message_id, state, case when not test";
    let plan = explained_to_reader(&app.database, tenant, beginning, &arguments).await;
    let (pages, nodes) = (pages(&plan), nodes(&plan));
    assert_eq!(plan["Actual Rows"].as_f64(), Some(26.0));
    assert!(pages < PAGES_MAX, "{pages} pages {nodes:?}");
    let is_in_order = nodes
        .iter()
        .any(|node| node.contains("webhook_delivery_pending"));
    assert!(is_in_order, "{nodes:?}");
}

/// A statement that is planned once per connection finds rows by keys, for all values.
async fn kept_plans_look_up_keys(app: &TestApp) {
    let nil = "'00000000-0000-0000-0000-000000000000'";
    let nulls = ["null"; 10].join(", ");
    let (reader, viewer) = ("wrkflw_reader", "wrkflw_viewer");
    for (role, beginning, arguments, reads) in [
        (
            reader,
            "with place as materialized (\n    select array(",
            format!("(1, '{{user}}', '{{somebody}}', 'somebody', null, {nil}, null, 128)"),
            &[
                ("state_instance_due", "due_at >="),
                ("task_due", "due_at, id) >"),
                ("participant_pkey", "instance_id = ANY"),
                ("task_by_instance", "instance_id = ANY"),
            ][..],
        ),
        (
            reader,
            "select t.id from task t\n        where t.tenant_id = $1 and t.id = any($5)",
            format!("(1, '{{user}}', '{{somebody}}', 'somebody', array[{nil}]::uuid[])"),
            &[
                ("task_pkey", "id = ANY"),
                ("participant_pkey", "instance_id ="),
            ][..],
        ),
        (
            reader,
            "select id as \"id!\" from (\n                    (select id from task",
            format!("(1, {nil}, 128)"),
            &[("task_open", "id >")][..],
        ),
        (
            viewer,
            "select t.id, t.label, t.status",
            format!(
                "(1, 'all', 'somebody', null, null, array[{nil}]::uuid[], 26, '{{}}', '{{}}', {nulls}, '{{}}')"
            ),
            &[
                ("task_pkey", "id = ANY"),
                ("instance_pkey", "id ="),
                ("participant_pkey", "instance_id ="),
            ][..],
        ),
    ] {
        let plan = explained_once(&app.database, role, beginning, &arguments).await;
        let (nodes, searches) = (nodes(&plan), index_searches(&plan));
        for (index, by) in reads {
            let is_read = |search: &String| search.starts_with(index) && search.contains(by);
            assert!(
                searches.iter().any(is_read),
                "{index} by {by}: {searches:?}"
            );
        }
        assert!(
            !nodes.iter().any(|node| node.starts_with("Seq Scan")),
            "{nodes:?}"
        );
    }
}
