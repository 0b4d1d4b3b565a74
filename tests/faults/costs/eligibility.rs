//! Eligibility for as many tasks as possible, offered to as many large groups as possible, with substitutes.

use super::*;

const TASKS: usize = 200;
/// More members than are read.
const GROUPS: usize = 21;
const MEMBERS: usize = 1_000;

/// Large groups of the same people, half of whom are absent.
async fn crowd(app: &TestApp) {
    sql(
        app,
        &format!(
            "insert into person (tenant_id, id, name, created_at)
             select t.id, 'member ' || n, 'somebody', now() from tenant t, generate_series(1, {MEMBERS}) n
             where t.name = 'default';
             insert into \"group\" (tenant_id, id, name, created_at)
             select t.id, 'crowd ' || g, 'a crowd', now() from tenant t, generate_series(1, {GROUPS}) g
             where t.name = 'default';
             insert into membership (tenant_id, person_id, group_id, valid_from)
             select t.id, 'member ' || n, 'crowd ' || g, now() - interval '1 hour'
             from tenant t, generate_series(1, {MEMBERS}) n, generate_series(1, {GROUPS}) g where t.name = 'default';
             insert into absence
                (tenant_id, id, person_id, substitute_id, active_from, active_until, created_at, created_by)
             select t.id, gen_random_uuid(), 'member ' || n, 'member ' || n + 1, now() - interval '1 hour',
                now() + interval '1 day', now() - interval '1 hour', 'admin'
             from tenant t, generate_series(1, {MEMBERS} - 1) n where t.name = 'default' and n % 4 <> 0;
             analyze"
        ),
    )
    .await;
}

/// An instance that offers all of its tasks to all of the groups.
async fn offered(fixture: &Fixture) -> String {
    fixture.with_committee().await;
    let groups: Vec<_> = (1..=GROUPS).map(|group| format!("crowd {group}")).collect();
    let offers = vec![json!({ "groups": groups }); TASKS];
    let start = json!({
        "definitionKey": "committee", "entityType": "thing", "entityId": "all",
        "data": { "assign": { "offers": offers, "needed": 1 } },
    });
    let instance = fixture
        .app
        .post("author", "/v1/instances", start)
        .await
        .started();
    instance["id"].as_str().expect("an id").to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eligibility_for_the_most_work_delays_nobody() {
    let fixture = Fixture::open().await;
    crowd(&fixture.app).await;
    let instance = offered(&fixture).await;
    let path = format!("/v1/instances/{instance}/eligibility");
    let shown = fixture.app.get("author", &path).await.expect(200);
    let tasks = shown["tasks"].as_array().expect("tasks");
    assert_eq!(tasks.len(), TASKS);
    let shows_more =
        |task: &Value| task["more"] == true && task["eligible"][0]["person"].is_string();
    assert!(tasks.iter().all(shows_more), "{}", tasks[TASKS - 1]);
    fixture
        .delays_nobody(CostlyRequest::get("eligibility", "author", path))
        .await;
    // A preview of what happens to all open work if somebody leaves: each task is checked twice.
    let leaving = "/v1/people/member%201/manager?dryRun=true";
    let body = json!({ "manager": "reviewer" });
    fixture
        .delays_nobody(CostlyRequest::send(
            "a preview",
            "admin",
            ("PUT", leaving),
            &body,
        ))
        .await;
}
