//! Filters that match more rows than one step reads. No result is lost.

use super::*;

/// More rows than a search reads from one index, for fewer instances.
#[tokio::test]
async fn a_word_in_two_attributes_of_many_instances_finds_them_all() {
    let app = TestApp::start().await;
    app.started("doc-1").await;
    let instances = "insert into instance select (jsonb_populate_record(i, jsonb_build_object('id', gen_random_uuid(), 'entity_id', 'many-' || n))).*
        from instance i, generate_series(1, 2600) n where i.entity_id = 'doc-1'";
    let attributes = "insert into attribute (tenant_id, instance_id, name, type, text_value)
        select tenant_id, id, name, 'text', 'acme' from instance, unnest(array['buyer', 'payer']) name where entity_id like 'many-%' order by id, name";
    sql(&app, instances).await;
    sql(&app, attributes).await;
    let (mut found, mut after) = (0, String::new());
    loop {
        let path = format!("/v1/instances?q=acme&limit=100&fields=id{after}");
        let page = app.get("author", &path).await.expect(200);
        found += page["data"].as_array().expect("data").len();
        match page["page"]["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(found, 2_600);
}

/// More words than the index stores of one text.
#[tokio::test]
async fn an_entity_behind_a_long_summary_is_found() {
    let app = TestApp::start().await;
    let instance = app.started("doc-1").await;
    let long = "update instance set summary = (select string_agg('word' || n, ' ') from generate_series(1, 70) n)
        where entity_id = 'doc-1'";
    sql(&app, long).await;
    let instances = ids(&app, "author", "/v1/instances?q=doc-1").await;
    assert_eq!(instances, [instance["id"].clone()]);
    let tasks = ids(&app, "reviewer", "/v1/tasks?view=all&q=doc-1").await;
    assert_eq!(tasks, [json!(task_of(&instance))]);
}

/// More states without tasks are due earlier than one step reads.
#[tokio::test]
async fn a_task_is_found_by_its_deadline_behind_many_waits() {
    let app = with_committee().await;
    let deadline = json!([{ "after": 3600, "do": "remind" }]);
    let work =
        json!({ "offers": [{ "groups": ["reviewers"] }], "needed": 1, "deadlines": deadline });
    let instance = committee(&app, "state", work).await;
    let waits = "insert into state_instance select (jsonb_populate_record(s, jsonb_build_object('id', gen_random_uuid(), 'ordinal', 1000 + n,
            'due_at', s.due_at - interval '10 minutes'))).*
        from state_instance s, generate_series(1, 5000) n where s.left_at is null";
    sql(&app, waits).await;
    let soon = app.engine.clock().now() + jiff::SignedDuration::from_hours(2);
    for sort in ["createdAt", "dueAt"] {
        let path = format!("/v1/tasks?view=all&dueBefore={soon}&sort={sort}");
        assert_eq!(
            ids(&app, "admin", &path).await,
            [json!(task_of(&instance))],
            "{sort}"
        );
    }
}
