//! Pages for a person who sees few of very many instances.

use super::*;

/// See [`crowd`].
const CROWD: &str = "insert into instance select (jsonb_populate_record(i, jsonb_build_object(
        'id', case when n % 2 = 0 then '00000000-0000-7000-8000-' else 'ffffffff-0000-7000-8000-' end || lpad(n::text, 12, '0'),
        'entity_id', 'crowd ' || n))).*
    from instance i, generate_series(1, NUMBER) n;
    insert into state_instance select (jsonb_populate_record(s, jsonb_build_object('id', c.id, 'instance_id', c.id))).*
    from state_instance s, instance c where c.entity_id like 'crowd %';
    insert into task select (jsonb_populate_record(t, jsonb_build_object('id', c.id, 'instance_id', c.id, 'state_id', c.id))).*
    from task t, instance c where t.ordinal = 0 and c.entity_id like 'crowd %';
    analyze";

/// This many other restricted instances with an open task each, half of them older and half newer than the first one. Nobody in the
/// test sees them.
async fn crowd(app: &TestApp, number: u32) {
    let statements = CROWD.replace("NUMBER", &number.to_string());
    for statement in statements.split(';') {
        sql(app, Box::leak(statement.to_owned().into_boxed_str())).await;
    }
}

/// All ids of a list, and the number of pages.
async fn all(app: &TestApp, person: &str, list: &str) -> (Vec<Value>, usize) {
    let (mut ids, mut pages, mut path) = (Vec::new(), 0, list.to_owned());
    loop {
        let page = app.get(person, &path).await.expect(200);
        ids.extend(
            page["data"]
                .as_array()
                .expect("data")
                .iter()
                .map(|one| one["id"].clone()),
        );
        pages += 1;
        match page["page"]["next"].as_str() {
            Some(next) => path = format!("{list}&after={next}"),
            None => return (ids, pages),
        }
    }
}

/// Counts include only what the person sees.
async fn counted(app: &TestApp) {
    for (person, instances, tasks) in [("olaf", 2, 4), ("stranger", 0, 0)] {
        let get = async |path: &str| app.get(person, path).await.expect(200);
        let page = get("/v1/instances?count=true&limit=1").await;
        assert_eq!(page["page"]["count"], instances, "{page}");
        assert_eq!(page["page"]["capped"], false, "{page}");
        let page = get("/v1/tasks?view=all&count=true&limit=1").await;
        assert_eq!(page["page"]["count"], tasks, "{page}");
        let definition = get("/v1/definitions/committee").await;
        assert_eq!(definition["running"], instances, "{definition}");
        assert_eq!(definition["more"], false, "{definition}");
    }
    let all = app.get("admin", "/v1/definitions/committee").await;
    let all = all.expect(200);
    assert!(
        all["more"] == true && all["running"].as_u64() > Some(10_000),
        "{all}"
    );
}

/// A lookup by the beginning of an id reads a limited number of unseen ids, and says when there may be more.
#[tokio::test]
async fn a_lookup_of_an_id_does_not_read_all_unseen_ids() {
    let app = chambers().await;
    let seen = vote(&app, "m-1").await;
    crowd(&app, 1_100).await;
    let find = async |prefix: &str| app.get("olaf", &format!("/v1/ids/{prefix}")).await;
    let found = find("00000000").await.expect(200);
    assert_eq!(found, json!({ "data": [], "more": true }));
    // Five ids begin so, and all are read.
    find("00000000-0000-7000-8000-00000000100")
        .await
        .problem(404, "not_found");
    let found = find(&id(&seen)).await.expect(200);
    assert_eq!(found["data"][0]["id"], seen["id"], "{found}");
    assert_eq!(found["more"], false, "{found}");
}

/// An operator who does not see every instance gets a page that skips the jobs of unseen ones.
#[tokio::test]
async fn jobs_of_unseen_instances_are_skipped_a_page_at_a_time() {
    let app = chambers().await;
    let seen = vote(&app, "m-1").await;
    crowd(&app, 30_000).await;
    let jobs = "insert into job (tenant_id, id, kind, instance_id, due_at, payload, last_error)
        select tenant_id, id, 'deadline', id, now() + interval '1 day', '{}', 'no' from instance
        where entity_id in ('m-1', 'crowd 1', 'crowd 2', 'crowd 3', 'crowd 4')";
    sql(&app, jobs).await;
    super::grant(&app, "operator", &["dead-letter:read"]).await;
    join(&app, "office", "sue").await;
    let (_, token) = super::bearer(&app.host(), "sue", "default", &["operator"]);
    for state in ["failing", "due"] {
        let (mut found, mut path) = (Vec::new(), format!("/v1/jobs?state={state}&limit=1"));
        for _ in 0..10 {
            let headers = [("authorization", token.as_str())];
            let page = app.host().send("", "GET", &path, &headers, None).await;
            let page = page.expect(200);
            found.extend(page["data"].as_array().expect("data").clone());
            let Some(next) = page["page"]["next"].as_str() else {
                break;
            };
            path = format!("/v1/jobs?state={state}&limit=1&after={next}");
        }
        let found: Vec<_> = found.iter().map(|job| &job["instanceId"]).collect();
        assert_eq!(found, [&seen["id"]], "{state}");
    }
}

/// An operator who does not see every instance gets the refusals about the seen ones, by the instance or its task.
#[tokio::test]
async fn refusals_about_unseen_instances_are_left_out() {
    let app = chambers().await;
    let seen = vote(&app, "m-1").await;
    join(&app, "office", "sue").await;
    let hidden = vote(&app, "m-2").await;
    sql(
        &app,
        "delete from participant p using instance i where i.id = p.instance_id and i.entity_id = 'm-2' and p.kind = 'group'",
    )
    .await;
    for instance in [&seen, &hidden] {
        let claim = format!("/v1/tasks/{}/claim", task(instance, 0));
        let refused = app.post("ada", &claim, json!({})).await;
        assert!(refused.status >= 400, "{}", refused.text);
    }
    let noted = "insert into refused_attempt (tenant_id, id, occurred_at, actor, action, task_id, code, detail)
        select tenant_id, gen_random_uuid(), now(), 'ada', 'claim', id, 'not_eligible', 'no' from task where ordinal = 0";
    sql(&app, noted).await;
    super::grant(&app, "operator", &["dead-letter:read"]).await;
    let (_, token) = super::bearer(&app.host(), "sue", "default", &["operator"]);
    let headers = [("authorization", token.as_str())];
    let (host, path) = (app.host(), "/v1/refusals?limit=100");
    let page = host.send("", "GET", path, &headers, None).await.expect(200);
    let found = page["data"].as_array().expect("data");
    assert!(!found.is_empty(), "{page}");
    for one in found {
        assert_eq!(one["instanceId"], seen["id"], "{page}");
    }
    let all = app.get("admin", "/v1/refusals?limit=100").await.expect(200);
    let all = all["data"].as_array().expect("data");
    assert!(
        all.iter().any(|one| one["instanceId"] == hidden["id"]),
        "{all:?}"
    );
}

/// A refused start belongs to no instance. So operators who do not see every instance get it, too.
#[tokio::test]
async fn refused_starts_are_listed() {
    let app = chambers().await;
    vote(&app, "m-1").await;
    super::grant(&app, "operator", &["dead-letter:read"]).await;
    let (_, token) = super::bearer(&app.host(), "sue", "default", &["operator"]);
    let headers = [("authorization", token.as_str())];
    let (host, path) = (app.host(), "/v1/instances");
    let start = json!({
        "definitionKey": "committee", "entityType": "motion", "entityId": "m-2", "data": { "assign": {} },
    });
    let refused = host.send("", "POST", path, &headers, Some(start)).await;
    refused.problem(403, "permission_missing");
    for limit in [1, 100] {
        let path = format!("/v1/refusals?limit={limit}");
        let page = host.send("", "GET", &path, &headers, None).await;
        let page = page.expect(200);
        let found = page["data"].as_array().expect("data");
        assert_eq!(found.len(), 1, "{page}");
        assert_eq!(found[0]["action"], "start", "{page}");
        assert_eq!(found[0]["instanceId"], Value::Null, "{page}");
    }
}

/// Kafka has refused all waiting records: the events of an instance, and a checkpoint.
const PARKED: &str = "insert into outbox_event (partition, pos, tenant_id, instance_id, seq)
    select 0, nextval('event_pos'), id, '00000000-0000-0000-0000-000000000000', 1 from tenant where name = 'default';
    insert into dead_letter (tenant_id, instance_id, seq, partition, pos, error, attempts, parked_at)
    select tenant_id, instance_id, seq, partition, pos, 'too large', 3, now() from outbox_event;
    delete from outbox_event";

/// A checkpoint belongs to no instance. So operators who do not see every instance can retry it.
#[tokio::test]
async fn refused_checkpoints_are_listed() {
    const CHECKPOINTS: &str = "00000000-0000-0000-0000-000000000000";
    let app = chambers().await;
    let hidden = vote(&app, "m-1").await;
    sql(&app, PARKED).await;
    let list = "/v1/dead-letters?limit=1";
    let first = app.get("admin", list).await.expect(200);
    assert_eq!(first["data"][0]["instanceId"], CHECKPOINTS, "{first}");
    let next = first["page"]["next"].as_str().expect("a cursor");
    let second = app.get("admin", &format!("{list}&after={next}")).await;
    let second = second.expect(200);
    assert_eq!(second["data"][0]["instanceId"], hidden["id"], "{second}");

    let permissions = ["dead-letter:read", "dead-letter:write"];
    super::grant(&app, "operator", &permissions).await;
    let (_, token) = super::bearer(&app.host(), "sue", "default", &["operator"]);
    let (host, headers) = (app.host(), [("authorization", token.as_str())]);
    let get = async |path: &str| host.send("", "GET", path, &headers, None).await;
    let page = get("/v1/dead-letters").await.expect(200);
    let found = page["data"].as_array().expect("data");
    assert_eq!(found.len(), 1, "{page}");
    assert_eq!(found[0]["instanceId"], CHECKPOINTS, "{page}");
    let path = format!("/v1/dead-letters/{CHECKPOINTS}");
    let parked = get(&path).await.expect(200);
    assert_eq!(parked["data"][0]["entry"], 1, "{parked}");
    let body = json!({ "reason": "there is room now" });
    let retry = format!("{path}/retry");
    let sent = host.send("", "POST", &retry, &headers, Some(body)).await;
    assert_eq!(sent.expect(200)["released"], 1);
    get(&path).await.problem(404, "not_found");
}

/// Three thousand restricted instances. One in ten has the participants of the first one. A third is due at the same time, and some tasks
/// have a deadline of their own.
const DUE: &str = "insert into instance select (jsonb_populate_record(i, jsonb_build_object(
        'id', md5('due ' || n)::uuid, 'entity_id', 'due ' || n))).*
    from instance i, generate_series(1, 3000) n;
    insert into state_instance select (jsonb_populate_record(s, jsonb_build_object('id', c.id, 'instance_id', c.id,
        'due_at', timestamptz '2030-01-01Z' + case when c.n % 3 = 0 then 0 else c.n % 500 - 250 end * interval '1 hour'))).*
    from state_instance s, (select id, substr(entity_id, 5)::int as n from instance where entity_id like 'due %') c;
    insert into task select (jsonb_populate_record(t, jsonb_build_object('id', c.id, 'instance_id', c.id, 'state_id', c.id,
        'due_at', case when c.n % 11 = 0 then timestamptz '2030-01-01Z' + (c.n % 7 - 3) * interval '1 hour' end))).*
    from task t, (select id, substr(entity_id, 5)::int as n from instance where entity_id like 'due %') c where t.ordinal = 0;
    insert into participant select (jsonb_populate_record(p, jsonb_build_object('instance_id', c.id))).*
    from participant p, (select id, substr(entity_id, 5)::int as n from instance where entity_id like 'due %') c where c.n % 10 = 0;
    analyze";

/// A page may end among tasks with the same deadline. None is left out or repeated, also beside tasks that everybody sees.
#[tokio::test]
async fn a_participant_gets_each_task_once_in_order_of_deadlines() {
    let app = chambers().await;
    vote(&app, "m-1").await;
    for statement in DUE.split(';') {
        sql(&app, Box::leak(statement.to_owned().into_boxed_str())).await;
    }
    for is_mixed in [false, true] {
        if is_mixed {
            app.with_approval().await;
            app.started("doc-1").await;
            let due = "update state_instance s set due_at = '2030-01-01Z' from instance i where i.id = s.instance_id and i.entity_id = 'doc-1'";
            sql(&app, due).await;
        }
        let expected = "select t.id::text from task t join state_instance s on s.id = t.state_id and s.instance_id = t.instance_id
            where coalesce(t.due_at, s.due_at) is not null and (not t.restricted or exists (
                select from participant p where p.instance_id = t.instance_id))
            order by coalesce(t.due_at, s.due_at), t.id";
        let expected: Vec<String> = sqlx::query_scalar(expected)
            .fetch_all(app.database.admin_pool())
            .await
            .expect("tasks");
        assert_eq!(expected.len(), 300 + usize::from(is_mixed));
        for limit in [7, 100] {
            let list = format!("/v1/tasks?view=all&sort=dueAt&limit={limit}");
            let found = all(&app, "mara", &list).await.0;
            assert_eq!(found, expected, "{list}");
        }
        let list = "/v1/tasks?view=all&sort=dueAt&limit=100";
        let found = all(&app, "stranger", list).await.0;
        assert_eq!(found.len(), usize::from(is_mixed));
    }
}

/// Thirty thousand unseen instances lie between the seen ones. Each list ends with its first page, or the second if that was
/// full.
#[tokio::test]
async fn a_participant_of_few_instances_gets_them_in_one_page() {
    let app = chambers().await;
    let first = vote(&app, "m-1").await;
    crowd(&app, 30_000).await;
    let second = vote(&app, "m-2").await;
    let newest = [second["id"].clone(), first["id"].clone()];
    for list in [
        "/v1/instances?limit=100",
        "/v1/instances?limit=100&definitionKey=committee",
        "/v1/instances?limit=100&status=RUNNING",
        "/v1/instances?limit=100&initiator=author",
        "/v1/instances?limit=100&state=Vote",
    ] {
        assert_eq!(
            all(&app, "olaf", list).await,
            (newest.to_vec(), 1),
            "{list}"
        );
        assert_eq!(all(&app, "stranger", list).await, (Vec::new(), 1), "{list}");
    }
    assert_eq!(all(&app, "olaf", "/v1/instances?limit=1").await.0, newest);
    let mut oldest = newest.to_vec();
    oldest.reverse();
    let list = "/v1/instances?limit=100&sort=startedAt";
    assert_eq!(all(&app, "olaf", list).await, (oldest.clone(), 1));
    let list = "/v1/instances?limit=1&sort=startedAt";
    assert_eq!(all(&app, "olaf", list).await.0, oldest);
    counted(&app).await;
    let tasks = [
        task(&first, 0),
        task(&first, 1),
        task(&second, 0),
        task(&second, 1),
    ];
    let tasks = tasks.map(Value::String).to_vec();
    for list in [
        "/v1/tasks?view=all&limit=100",
        "/v1/tasks?view=all&limit=100&state=Vote",
    ] {
        assert_eq!(all(&app, "mara", list).await, (tasks.clone(), 1), "{list}");
        assert_eq!(all(&app, "stranger", list).await, (Vec::new(), 1), "{list}");
    }
    // There are also instances that everybody sees.
    app.with_approval().await;
    let open = app.started("doc-1").await;
    let seen = all(&app, "olaf", "/v1/instances?limit=100").await;
    assert_eq!(seen, ([&[open["id"].clone()], &newest[..]].concat(), 1));
}
