//! Reading an audit of millions of entries: by cursor, actor, type and time. Each request reads a limited number of entries by an
//! existing index.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, PgPool};

use super::checkpoints::{keys, sign};
use super::verify::{approved, behind};
use crate::support::app::{TestApp, task_of};
use crate::support::plans::{explained_query, pages};

/// All pages of a list.
async fn all(app: &TestApp, path: &str, limit: u32) -> Vec<Value> {
    let sign = if path.contains('?') { '&' } else { '?' };
    let (mut rows, mut after) = (Vec::new(), String::new());
    for _ in 0..200 {
        let page = format!("{path}{sign}limit={limit}{after}");
        let page = app.get("admin", &page).await.expect(200);
        rows.extend(page["data"].as_array().expect("data").clone());
        match page["page"]["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return rows,
        }
    }
    panic!("{path} does not end");
}

#[tokio::test]
async fn entries_are_found_by_actor_type_and_time() {
    let app = TestApp::start().await;
    let id = approved(&app, "doc-1").await;
    let other = app.started("doc-2").await;
    let of_one = format!("/v1/instances/{id}/audit");
    let everything = all(&app, &of_one, 100).await;
    assert_eq!(all(&app, &of_one, 3).await, everything, "page by page");
    let check = async |path: &str, query: &str, keep: &dyn Fn(&Value) -> bool| {
        let base = all(&app, path, 100).await;
        let mut expected: Vec<_> = base.into_iter().filter(|row| keep(row)).collect();
        assert!(!expected.is_empty(), "{path}?{query}");
        let path = format!("{path}?{query}");
        assert_eq!(all(&app, &path, 2).await, expected, "{path}");
        let sorted = all(&app, &format!("{path}&sort=occurredAt"), 2).await;
        assert_eq!(sorted, expected, "{path}");
        expected.reverse();
        let newest_first = all(&app, &format!("{path}&sort=-occurredAt"), 2).await;
        assert_eq!(newest_first, expected, "{path}");
    };
    let middle = everything[9]["occurredAt"]
        .as_str()
        .expect("a time")
        .to_owned();
    let at = |row: &Value| {
        row["occurredAt"]
            .as_str()
            .expect("a time")
            .parse::<jiff::Timestamp>()
            .expect("a time")
    };
    let limit: jiff::Timestamp = middle.parse().expect("a time");
    // Entries appear only when a checkpoint covers them. Then all are listed.
    assert_eq!(all(&app, "/v1/audit", 100).await, Vec::<Value>::new());
    sign(&app.engine, &keys(&[("one", 1)])).await;
    for path in [of_one.as_str(), "/v1/audit"] {
        check(path, "actor=reviewer", &|row| row["actor"] == "reviewer").await;
        check(path, "type=DECISION_RECORDED", &|row| {
            row["type"] == "DECISION_RECORDED"
        })
        .await;
        check(path, &format!("from={middle}"), &|row| at(row) >= limit).await;
        check(path, &format!("until={middle}"), &|row| at(row) < limit).await;
        check(
            path,
            &format!("actor=reviewer2&type=TASK_CLAIMED&from={middle}"),
            &|row| row["actor"] == "reviewer2" && row["type"] == "TASK_CLAIMED" && at(row) >= limit,
        )
        .await;
    }
    let placed = all(&app, "/v1/audit", 100).await;
    let streams: BTreeSet<_> = placed
        .iter()
        .filter_map(|row| row["stream"].as_str())
        .collect();
    assert_eq!(streams, ["definition", "directory", "instance"].into());
    let seen = placed
        .iter()
        .filter(|row| row["streamId"] == other["id"])
        .count();
    assert!(seen > 0 && task_of(&other).len() == 36);
    for path in ["/v1/audit", &of_one] {
        app.get("reviewer", path)
            .await
            .problem(403, "permission_missing");
        app.get("admin", &format!("{path}?from={middle}&until={middle}"))
            .await
            .problem(400, "malformed_request");
        app.get("admin", &format!("{path}?after=LTE"))
            .await
            .problem(400, "invalid_cursor");
    }
}

#[tokio::test]
async fn a_list_has_the_time_of_its_last_checkpoint() {
    let app = TestApp::start().await;
    approved(&app, "doc-1").await;
    let list = app.get("admin", "/v1/audit").await.expect(200);
    assert_eq!(list["data"], json!([]));
    assert_eq!(list.get("lastCheckpointAt"), Some(&Value::Null), "none is");
    sign(&app.engine, &keys(&[("one", 1)])).await;
    let list = app.get("admin", "/v1/audit?limit=1").await.expect(200);
    let checkpoints = app.get("admin", "/v1/checkpoints").await.expect(200);
    assert!(list["lastCheckpointAt"].is_string(), "{list}");
    assert_eq!(list["lastCheckpointAt"], checkpoints["data"][0]["signedAt"]);
}

/// Checkpoints and entries have the times of several hosts.
#[tokio::test]
async fn nothing_is_left_out_if_the_clock_of_the_signer_is_slow() {
    let app = TestApp::start().await;
    approved(&app, "doc-1").await;
    sign(&app.engine, &keys(&[("one", 1)])).await;
    let everything = all(&app, "/v1/audit", 100).await;
    let slow = "update checkpoint set signed_at = signed_at - interval '23 hours'";
    behind(&app, slow).await;
    let times = everything.iter().map(|row| {
        let at = row["occurredAt"].as_str().expect("a time");
        at.parse::<jiff::Timestamp>().expect("a time")
    });
    let first = times.min().expect("entries");
    for sort in ["occurredAt", "-occurredAt"] {
        let path = format!("/v1/audit?from={first}&sort={sort}");
        assert_eq!(
            all(&app, &path, 100).await.len(),
            everything.len(),
            "{path}"
        );
    }
}

#[tokio::test]
async fn times_in_unusual_years_are_refused_as_filters() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let of_one = format!(
        "/v1/instances/{}/audit",
        instance["id"].as_str().expect("an id")
    );
    for path in ["/v1/audit", &of_one] {
        let ever = format!("{path}?from=0001-01-01T00:00:00Z&until=9999-12-30T00:00:00Z&limit=1");
        app.get("admin", &ever).await.expect(200);
        let before_years = ever.replace("0001-", "-005000-");
        app.get("admin", &before_years)
            .await
            .problem(400, "malformed_request");
    }
}

const ENTRIES: u64 = 60_000;
/// The leaves of a row.
const RUN: u64 = 4;
/// An upper bound of the pages that one request reads from the table and the index.
const PAGES_MAX: i64 = 900;

/// Adds entries to an instance. The person `rare` made two of them.
async fn fill(pool: &PgPool, id: &str) {
    for sql in [
        format!("insert into audit_entry (tenant_id, stream_kind, stream_id, seq, id, type, revision, command_id, actor, payload,
                salt, occurred_at, hash)
            select 1, 'instance', '{id}', 1000 + n, gen_random_uuid(), 'FILLER', 1, gen_random_uuid(),
                case n % 30000 when 29999 then 'rare' else 'often' end, '{{}}', '', now(), ''
            from generate_series(1, {ENTRIES}) n"),
        format!("insert into audit_leaf (tenant_id, leaf, stream_kind, stream_id, seq, digests)
            select 1, n, 'instance', '{id}', 1001 + n, decode(repeat('00', {RUN} * 32), 'hex')
            from generate_series(0, {ENTRIES} - 1, {RUN}) n"),
        "analyze audit_entry".to_owned(),
        "analyze audit_leaf".to_owned(),
    ] {
        sqlx::raw_sql(AssertSqlSafe(sql.clone())).execute(pool).await.expect(&sql);
    }
}

/// The plans of the host's statements for a filled table, with the settings of the reader.
#[tokio::test]
async fn a_request_reads_a_limited_number_of_entries() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let id = instance["id"].as_str().expect("an id");
    let pool = app.database.admin_pool();
    fill(pool, id).await;
    for path in [format!("/v1/instances/{id}/audit"), "/v1/audit".to_owned()] {
        let first = app
            .get("admin", &format!("{path}?actor=rare&limit=5"))
            .await
            .expect(200);
        assert_eq!(
            first["data"],
            json!([]),
            "nothing is among the first entries"
        );
        assert!(
            first["page"]["next"].is_string(),
            "and there is more: {first}"
        );
        let rare = all(&app, &format!("{path}?actor=rare"), 5).await;
        assert_eq!(rare.len(), 2, "{path}");
        let mut back = all(&app, &format!("{path}?actor=rare&sort=-occurredAt"), 5).await;
        back.reverse();
        assert_eq!(back, rare, "{path}");
        for sort in ["occurredAt", "-occurredAt"] {
            let nobodys = format!("{path}?actor=nobody&sort={sort}");
            assert_eq!(all(&app, &nobodys, 5).await, Vec::<Value>::new());
            let page = format!("{path}?actor=nobody&limit=5&sort={sort}");
            let page = app.get("admin", &page).await.expect(200);
            assert!(
                page["page"]["next"].is_string(),
                "a page reads a part of the entries"
            );
        }
    }
    let size = "select pg_relation_size('audit_entry') / current_setting('block_size')::int";
    let all: i64 = sqlx::query_scalar(size)
        .fetch_one(pool)
        .await
        .expect("a size");
    assert!(all > PAGES_MAX * 5 / 4, "{all} pages of entries");
    let end = 30_000 + wrkflw_store::audit::SCANNED_MAX;
    for newest_first in [false, true] {
        let of_one = format!(
            "(1, '{id}', 30000, {end}, {newest_first}, 'rare', null, null, null, 26, 8388608)"
        );
        let of_all =
            format!("(1, 30000, {end}, {newest_first}, null, null, null, null, 26, 8388608)");
        for (beginning, arguments, index) in [
            ("select seq as \"seq!\"", of_one, "audit_entry_pkey"),
            ("with begin as materialized", of_all, "audit_leaf_pkey"),
        ] {
            let plan = explained_query(&app.database, beginning, &arguments).await;
            assert!(plan.to_string().contains(index), "{plan}");
            // The plan contains the part for the other order, which is not executed.
            let read = pages(&plan);
            assert!(read < PAGES_MAX, "{read} pages: {plan}");
        }
    }
}
