//! Reads of one instance with as long a history as possible: its history, its decisions, its entries, itself.

use super::*;
use crate::api::{hostile_start, with_hostile};

/// Nearly the most entries with which an instance's history is shown.
const ENTRIES: usize = 19_900;
/// Decisions of one page of custody, and one more.
const DECISIONS: usize = 101;
/// Left states with a decision each, a few fewer than flow logic can be given.
const STATES: usize = 600;

/// Statements that insert this many entries of an instance, with the given payload and evidence.
fn entries(instance: &str, count: usize, kind: &str, payload: &str, evidence: &str) -> String {
    format!(
        "insert into audit_entry (tenant_id, stream_kind, stream_id, seq, id, type, revision, command_id, actor, task_id,
            payload, evidence, salt, occurred_at, hash, event_seq)
         select e.tenant_id, 'instance', e.stream_id, e.seq + n, gen_random_uuid(), '{kind}', e.revision,
            gen_random_uuid(), e.actor, e.task_id, {payload}, {evidence}, e.salt, e.occurred_at, e.hash, e.event_seq + n
         from (
            select * from audit_entry where stream_id = '{instance}' order by seq desc limit 1
         ) e, generate_series(1, {count}) n;"
    )
}

/// Canonical JSON of about so many bytes, with many small members.
fn filling(bytes: usize) -> String {
    format!(
        "(select '{{' || string_agg('\"member ' || lpad(n::text, 6, '0') || '\":' || n, ',' order by n) || '}}'
         from generate_series(1, {}) n)",
        bytes / 22
    )
}

fn id(instance: &Value) -> String {
    instance["id"].as_str().expect("an id").to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_longest_history_of_an_instance_delays_nobody() {
    let fixture = Fixture::open().await;
    let app = &fixture.app;
    with_hostile(app).await;
    for (what, count, bytes) in [
        ("many entries", ENTRIES, 2_000),
        ("large entries", 160, 240_000),
    ] {
        let body = hostile_start(what, json!({}));
        let instance = id(&app.post("author", "/v1/instances", body).await.started());
        let payload = format!(
            "'{{\"data\":' || {} || ',\"name\":\"thing\",\"type\":\"CUSTOM\"}}'",
            filling(bytes)
        );
        sql(app, &entries(&instance, count, "CUSTOM", &payload, "null")).await;
        let standing = format!("/v1/instances/{instance}/eligibility");
        fixture
            .delays_nobody(CostlyRequest::get(what, "author", standing))
            .await;
    }
}

/// An instance with so many large decisions.
async fn decided_often(app: &TestApp, count: usize) -> String {
    with_hostile(app).await;
    let instance = app
        .post("author", "/v1/instances", hostile_start("t-1", json!({})))
        .await
        .started();
    let (instance, task, state) = (
        id(&instance),
        task_of(&instance),
        instance["states"][0]["id"].clone(),
    );
    let payload = format!(
        "'{{\"comment\":\"' || repeat('a \\n', 4000) || '\",\"input\":' || {} || ',\"onBehalfOf\":null,\"outcome\":\"GO\",\
         \"state\":{state},\"stateName\":\"Work\",\"task\":\"{task}\",\"type\":\"DECISION_RECORDED\"}}'",
        filling(60_000)
    );
    let evidence = format!(
        "'{{\"definition\":\"hostile\",\"answers\":' || {} || ',\"version\":1}}'",
        filling(500_000)
    );
    let decisions = entries(&instance, count, "DECISION_RECORDED", &payload, &evidence);
    sql(app, &decisions).await;
    instance
}

/// The records of a large page are made on another thread, and so is what `fields` leaves of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_members_of_a_large_page_are_picked_on_another_thread() {
    let fixture = Fixture::open().await;
    let (app, host) = (&fixture.app, &fixture.host);
    let instance = decided_often(app, 3).await;
    let token = app.host().token("admin");
    let offloaded = async |query: &str| {
        let before = host.metric("wrkflw_offloaded_total").await;
        let path = format!("/v1/instances/{instance}/custody{query}");
        let page = host.get(&token, &path).await.expect("an answer");
        assert_eq!(page.status, 200, "{}", page.body);
        (
            host.metric("wrkflw_offloaded_total").await - before,
            page.body,
        )
    };
    let (whole, page) = offloaded("").await;
    assert!(page.len() > 128 * 1024, "{}", page.len());
    let (picked, page) = offloaded("?fields=action").await;
    let page: Value = serde_json::from_str(&page).expect("JSON");
    assert_eq!(page["data"][2], json!({ "action": "decide" }));
    assert!(picked > whole, "{picked} with fields, {whole} without");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_longest_pages_of_decisions_entries_and_events_delay_nobody() {
    let fixture = Fixture::open().await;
    let app = &fixture.app;
    let instance = decided_often(app, DECISIONS).await;
    for (what, path) in [
        (
            "custody",
            format!("/v1/instances/{instance}/custody?limit=100"),
        ),
        (
            "custody as one file",
            format!("/v1/instances/{instance}/custody?format=csv"),
        ),
        (
            "entries",
            format!("/v1/instances/{instance}/audit?limit=100"),
        ),
        ("events", "/v1/events?limit=100".to_owned()),
    ] {
        fixture
            .delays_nobody(CostlyRequest::get(what, "admin", path))
            .await;
    }
}

/// Inserts as many left states as an instance may have into one of document approval, which was sent back once. Each has a
/// decision with a long comment.
fn grown(instance: &str) -> String {
    let state_instance = "('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid";
    format!(
        "set session_replication_role = replica;
         insert into state_instance
         select (jsonb_populate_record(s, jsonb_build_object('id', {state_instance}, 'ordinal', 10 + n))).*
         from state_instance s, generate_series(1, {STATES}) n where s.instance_id = '{instance}' and s.left_at is not null;
         insert into task
         select (jsonb_populate_record(t, jsonb_build_object('id', {state_instance}, 'state_id', {state_instance},
            'label', repeat('late work ', 1300)))).*
         from task t, generate_series(1, {STATES}) n where t.instance_id = '{instance}' and t.status = 'COMPLETED';
         insert into decision
         select (jsonb_populate_record(d, jsonb_build_object('task_id', {state_instance}, 'input', {}))).*
         from decision d, generate_series(1, {STATES}) n where d.instance_id = '{instance}';
         set session_replication_role = origin; analyze",
        filling(6_400)
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_with_the_most_states_delays_nobody() {
    let fixture = Fixture::open().await;
    let app = &fixture.app;
    app.with_approval().await;
    let started = app.started("long").await;
    let rejection = json!({ "outcome": "REJECT", "comment": "not yet" });
    let rework = app.decided("reviewer", &started, rejection).await;
    let (instance, task) = (id(&rework), task_of(&rework));
    sql(app, &grown(&instance)).await;
    for (what, path) in [
        ("a history", format!("/v1/instances/{instance}/history")),
        (
            "the actions of a long history",
            format!("/v1/instances/{instance}/actions"),
        ),
        ("an instance", format!("/v1/instances/{instance}")),
    ] {
        fixture
            .delays_nobody(CostlyRequest::get(what, "author", path))
            .await;
    }
    let claim = format!("/v1/tasks/{task}/claim?dryRun=true");
    fixture
        .delays_nobody(CostlyRequest::send(
            "a command",
            "author",
            ("POST", &claim),
            &json!({}),
        ))
        .await;
}
