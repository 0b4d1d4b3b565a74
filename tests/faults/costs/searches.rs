//! Searches with conditions that each match many instances and together none, and lists with filters that match nothing.

use super::*;
use crate::api::with_hostile;

/// More than one request reads.
const INSTANCES: usize = 50_000;
/// The longest time of the costliest search, including the statement that runs at its timeout.
const SEARCHED_MAX: Duration = Duration::from_secs(15);

/// Inserts instances: half of them have the region EU, the others are urgent, and all have an amount. Each has an open task.
async fn filled(app: &TestApp) {
    with_hostile(app).await;
    let id = "('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid";
    let attribute = |name: &str, kind: &str, column: &str, value: &str, which: &str| {
        format!(
            "insert into attribute (tenant_id, instance_id, name, type, {column})
             select t.id, {id}, '{name}', '{kind}', {value}
             from tenant t, generate_series(1, {INSTANCES}) n where t.name = 'default' and {which};"
        )
    };
    sql(
        app,
        &format!(
            "insert into instance (tenant_id, id, definition_key, definition_version, revision, status, entity_type,
                entity_id, initiator, requesters, data, started_at, updated_at, audit_seq, audit_head, event_seq, state_instances)
             select t.id, {id}, 'hostile', 1, 1, 'RUNNING', 'thing', n::text, 'author', '{{author}}', '{{}}', now(), now(),
                1, '\\x00', 1, 1
             from tenant t, generate_series(1, {INSTANCES}) n where t.name = 'default';
             insert into state_instance (tenant_id, instance_id, id, ordinal, name, entered_at, predecessors, needed, exclude,
                priority)
             select t.id, {id}, {id}, 0, 'Work', now(), '{{}}', 1, '{{}}', 0
             from tenant t, generate_series(1, {INSTANCES}) n where t.name = 'default';
             insert into task (tenant_id, id, instance_id, state_id, ordinal, label, status, candidates, created_at)
             select t.id, {id}, {id}, {id}, 0, 'work', 'PENDING', '[]', now()
             from tenant t, generate_series(1, {INSTANCES}) n where t.name = 'default';
             {}{}{}
             analyze",
            attribute("region", "text", "text_value", "'EU'", "n % 2 = 0"),
            attribute("urgent", "boolean", "boolean_value", "true", "n % 2 = 1"),
            attribute("amount", "decimal", "decimal_value", "n", "true"),
        ),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn searches_and_lists_with_the_worst_filters_delay_nobody() {
    let fixture = Fixture::open().await;
    filled(&fixture.app).await;
    let conditions = "attribute.amount=gte:0&attribute.amount=lt:1000000000&attribute.region=EU&attribute.urgent=ne:false\
                      &attribute.score=exists:false";
    let range = "attribute.amount=gte:0&attribute.amount=lt:1000000000&attribute.region=exists:true&attribute.urgent=ne:false";
    for (what, path) in [
        (
            "a search by equal values",
            format!("/v1/instances?{conditions}&include=attributes&limit=100"),
        ),
        (
            "a search by a range",
            format!("/v1/instances?{range}&state=Work&limit=100"),
        ),
        (
            "a list that nothing passes",
            "/v1/instances?state=Nowhere&initiator=author&limit=100".to_owned(),
        ),
        (
            "a list of tasks that nothing passes",
            "/v1/tasks?view=all&label=nothing&limit=100".to_owned(),
        ),
    ] {
        let request = CostlyRequest::get(what, "author", path);
        let took = fixture.once(&request).await;
        assert!(took < SEARCHED_MAX, "{what} took {took:?}");
        fixture.delays_nobody(request).await;
    }
    // The response says that there is more to read.
    let page = fixture
        .app
        .get("author", &format!("/v1/instances?{conditions}&limit=100"))
        .await;
    let page = page.expect(200);
    assert_eq!(page["data"], json!([]));
    assert!(page["page"]["next"].is_string(), "{page}");
}
