//! Lists of versions: in pages, by words, and one version of each definition.

use super::definitions::{publish_next, standing};
use super::*;

/// The versions on all pages of a list.
async fn listed(app: &TestApp, path: &str) -> String {
    let (mut found, mut next) = (Vec::new(), path.to_owned());
    loop {
        let page = app.get("author", &next).await.expect(200);
        let versions = page["data"].as_array().expect("versions");
        assert!(versions.len() <= 2 || !path.contains("limit=2"));
        found.extend(
            versions
                .iter()
                .map(|one| format!("{} {}", one["key"].as_str().expect("a key"), one["version"])),
        );
        match page["page"]["next"].as_str() {
            Some(cursor) => next = format!("{path}&after={cursor}"),
            None => return found.join(", "),
        }
    }
}

#[tokio::test]
async fn lists_of_versions_come_in_pages() {
    let app = TestApp::start().await;
    app.publish("a-flow", guests::hostile(), &json!({}))
        .await
        .expect(201);
    for reviewers in ["a", "b", "c"] {
        publish_next(&app, reviewers).await;
    }
    for (path, expected) in [
        (
            "/v1/definitions?limit=2",
            "a-flow 1, document-approval 4, document-approval 3, document-approval 2, document-approval 1",
        ),
        (
            "/v1/definitions/document-approval/versions?limit=2",
            "document-approval 4, document-approval 3, document-approval 2, document-approval 1",
        ),
    ] {
        assert_eq!(listed(&app, path).await, expected);
    }
    // The key of the last one contains a zero byte, which PostgreSQL does not store in texts.
    for cursor in ["***", "bm9uc2Vuc2U", "YQBiIDE"] {
        let path = format!("/v1/definitions?after={cursor}");
        app.get("author", &path)
            .await
            .problem(400, "invalid_cursor");
    }
}

/// Document approval in four versions, the second active, and a vote without an active version.
async fn several() -> TestApp {
    let app = TestApp::start().await;
    let voting = guests::committee();
    let published = app.publish("a-vote", voting, &json!({})).await;
    published.expect(201);
    for reviewers in ["a", "b", "c"] {
        publish_next(&app, reviewers).await;
    }
    let force = json!({ "force": true });
    let activate = "/v1/definitions/document-approval/versions/2/activate";
    app.post("admin", activate, force).await.expect(200);
    app
}

#[tokio::test]
async fn versions_are_found_by_words_of_key_title_and_description() {
    let app = several().await;
    let documents =
        "document-approval 4, document-approval 3, document-approval 2, document-approval 1";
    // Another tenant has the same keys, and its own words.
    let neighbour = "insert into definition select (jsonb_populate_record(d, '{\"tenant_id\": 99}')).* from definition d;
        insert into definition_version select (jsonb_populate_record(v, jsonb_build_object(
            'tenant_id', 99, 'graph', (v.graph::jsonb || '{\"title\": \"Foreign vote\"}')::text
        ))).* from definition_version v";
    sql(&app, neighbour).await;
    for (q, expected) in [
        ("vote", "a-vote 1"),
        ("a-vote", "a-vote 1"),
        ("Committee", "a-vote 1"),
        ("commit%20among", ""),
        ("among%20commit", "a-vote 1"),
        ("among%20PEOPLE%20vote", "a-vote 1"),
        ("foreign", ""),
        ("document", documents),
        ("appro", documents),
        ("pproval", ""),
        ("vote%20approval", ""),
        ("vot%20among", ""),
        ("vote%25", "a-vote 1"),
        ("vo_e", ""),
        ("%27vote%27%20:*", "a-vote 1"),
        ("%27n%20:*%20%7C%20vote", ""),
        ("gr%C3%B6%C3%9Fe", ""),
    ] {
        let path = format!("/v1/definitions?limit=2&q={q}");
        assert_eq!(listed(&app, &path).await, expected, "{q}");
    }
    for wrong in [
        "",
        "%25",
        "%20-%20",
        "%00",
        &"x".repeat(201),
        &"%C3%A4".repeat(201),
    ] {
        let answer = app
            .get("author", &format!("/v1/definitions?q={wrong}"))
            .await;
        answer.problem(400, "malformed_request");
    }
    let longest = format!("/v1/definitions?q={}", "%C3%A4".repeat(200));
    assert_eq!(listed(&app, &longest).await, "");
    // Versions of a single definition are listed without a search.
    let of_one = "/v1/definitions/document-approval/versions?q=document";
    let refused = app.get("author", of_one).await;
    refused.problem(400, "malformed_request");
}

#[tokio::test]
async fn a_list_has_one_version_of_each_definition_on_request() {
    let app = several().await;
    let two = "a-vote 1, document-approval 2";
    for (choice, expected) in [
        ("current", two),
        ("current&q=document", "document-approval 2"),
        ("current&q=vote", "a-vote 1"),
        ("active", "document-approval 2"),
        ("active&q=vote", ""),
        ("all&q=vote", "a-vote 1"),
    ] {
        let path = format!("/v1/definitions?limit=1&versions={choice}");
        assert_eq!(listed(&app, &path).await, expected, "{choice}");
    }
    let path = "/v1/definitions?versions=current&q=document";
    let found = app.get("author", path).await.expect(200);
    assert_eq!(found["data"][0]["newestVersion"], 4, "{found}");
    standing(&app, "retire", 2).await.expect(200);
    let path = "/v1/definitions?versions=active";
    assert_eq!(listed(&app, path).await, "");
    let path = "/v1/definitions?versions=current";
    assert_eq!(
        listed(&app, path).await,
        "a-vote 1, document-approval 4",
        "the newest where none is active"
    );
    let unknown = app.get("author", "/v1/definitions?versions=latest").await;
    unknown.problem(400, "malformed_request");
}

#[tokio::test]
async fn words_of_versions_are_found_by_the_index() {
    const VERSIONS: i64 = 4_000;
    let app = several().await;
    let copies = format!(
        "insert into definition_version select (jsonb_populate_record(v, jsonb_build_object(
            'key', case when n = 7 then 'sought' else 'copy-' || n end, 'config_digest', '\\x' || lpad(to_hex(n), 8, '0')
        ))).* from definition_version v, generate_series(1, {VERSIONS}) n where v.key = 'a-vote';
        insert into definition select (jsonb_populate_record(d, jsonb_build_object('key', v.key, 'id', gen_random_uuid()))).*
        from definition d, definition_version v where d.key = 'a-vote' and (v.key like 'copy-%' or v.key = 'sought');
        analyze definition; analyze definition_version"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(copies))
        .execute(app.database.admin_pool())
        .await
        .expect("copies");
    let mut connection = app.database.admin_pool().acquire().await.expect("one");
    let reader =
        "set role wrkflw_reader; set wrkflw.tenant = 1; select versions_with_words('none')";
    sqlx::raw_sql(reader)
        .execute(&mut *connection)
        .await
        .expect("a reader");
    let plan =
        "explain (analyze, buffers, format json) select * from versions_with_words('sought')";
    let plan: Value = sqlx::query_scalar(plan)
        .fetch_one(&mut *connection)
        .await
        .expect("a plan");
    let read = crate::support::plans::pages(&plan[0]["Plan"]);
    assert!(read < 50, "{read} pages: {plan}");
    assert_eq!(
        listed(&app, "/v1/definitions?q=sought").await,
        "sought 1",
        "among {VERSIONS}"
    );
}
