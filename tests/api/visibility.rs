//! Who sees a restricted instance. `routes` calls every route as a person who must not see one.

mod lists;
mod operations;
mod resumed;
mod routes;

use super::*;
use crate::support::guests::{committee, subflows};

/// A host on which only participants and auditors see instances of the active version of `committee`. Everybody sees those of its
/// second version, and participants and the board those of its third. There are no participants yet.
async fn chambers() -> TestApp {
    let app = TestApp::empty().await;
    // Forces generic plans for the statements of lists, as for a large table.
    let large = "update pg_class set reltuples = 20000 where oid = 'task'::regclass";
    sql(&app, large).await;
    for config in [
        json!({ "observers": ["auditors"] }),
        json!({}),
        json!({ "observers": ["board"] }),
    ] {
        let published = app.publish("committee", committee(), &config).await;
        published.expect(201);
    }
    for person in ["ada", "mara", "boss", "sue", "stranger", "bea", "olaf"] {
        let path = format!("/v1/people/{person}");
        let put = app.put("admin", &path, json!({ "name": person }));
        put.await.expect(200);
    }
    for (group, member) in [("auditors", "ada"), ("board", "bea"), ("office", "olaf")] {
        let path = format!("/v1/groups/{group}");
        let put = app.put("admin", &path, json!({ "name": group }));
        put.await.expect(200);
        join(&app, group, member).await;
    }
    let path = "/v1/definitions/committee/versions/1/activate";
    app.post("admin", path, json!({})).await.expect(200);
    app
}

async fn join(app: &TestApp, group: &str, person: &str) {
    let path = format!("/v1/groups/{group}/members/{person}");
    app.put("admin", &path, json!({})).await.expect(200);
}

async fn leave(app: &TestApp, group: &str, person: &str) {
    let path = format!("/v1/groups/{group}/members/{person}");
    super::delete(app, "admin", &path).await.expect(200);
}

/// A vote by `author`, offered to `mara` and to the office.
async fn vote(app: &TestApp, entity: &str) -> Value {
    let offers =
        json!([{ "users": ["mara"], "label": "one" }, { "groups": ["office"], "label": "two" }]);
    let body = json!({
        "definitionKey": "committee", "entityType": "motion", "entityId": entity,
        "data": { "assign": { "offers": offers, "needed": 2 } },
    });
    app.post("author", "/v1/instances", body).await.expect(201)["instance"].clone()
}

fn id(instance: &Value) -> String {
    instance["id"].as_str().expect("an id").to_owned()
}

fn task(instance: &Value, number: usize) -> String {
    let tasks = instance["states"][0]["tasks"].as_array().expect("tasks");
    tasks[number]["id"].as_str().expect("an id").to_owned()
}

/// Whether this person sees the instance. All ways of reading must agree.
async fn sees(app: &TestApp, person: &str, instance: &Value) -> bool {
    let id = id(instance);
    let shown = app.get(person, &format!("/v1/instances/{id}")).await;
    let is_seen = shown.status == 200;
    if !is_seen {
        shown.problem(404, "not_found");
    }
    let entity = instance["entityId"].as_str().expect("an id");
    let all = app
        .get("admin", &format!("/v1/instances/{id}"))
        .await
        .expect(200);
    let is_open = all["status"] == "RUNNING";
    for list in [
        "/v1/instances".to_owned(),
        "/v1/instances?definitionKey=committee".to_owned(),
        "/v1/instances?initiator=author".to_owned(),
        format!("/v1/instances?entityType=motion&entityId={entity}"),
        "/v1/instances?state=Vote".to_owned(),
        format!("/v1/entities/motion/{entity}/history"),
        "/v1/tasks?view=all".to_owned(),
        "/v1/tasks?view=all&state=Vote".to_owned(),
    ] {
        let page = app.get(person, &list).await.expect(200);
        let is_listed = page.to_string().contains(&id);
        let is_of_work = list.contains("/tasks") || list.contains("state=");
        let expected = is_seen && (is_open || !is_of_work);
        assert_eq!(is_listed, expected, "{list} for {person}: {page}");
    }
    let events = read_events(app, person).await;
    assert_eq!(events.contains(&id), is_seen, "events for {person}");
    is_seen
}

/// The text of all events that this person receives.
async fn read_events(app: &TestApp, person: &str) -> String {
    let (mut text, mut path) = (String::new(), "/v1/events?limit=100".to_owned());
    // The feed waits for older transactions of the whole server.
    app.events().await;
    for _ in 0..10 {
        let page = app.get(person, &path).await.expect(200);
        text += &page["data"].to_string();
        let next = page["page"]["next"].as_str().expect("a cursor");
        path = format!("/v1/events?limit=100&after={next}");
    }
    text
}

async fn act(app: &TestApp, person: &str, task: &str, action: &str, body: Value) -> Answer {
    app.post(person, &format!("/v1/tasks/{task}/{action}"), body)
        .await
}

#[tokio::test]
async fn participants_observers_and_a_permission_see_an_instance() {
    let app = chambers().await;
    let instance = vote(&app, "m-1").await;
    for person in ["author", "mara", "olaf", "ada", "admin"] {
        assert!(sees(&app, person, &instance).await, "{person}");
    }
    for person in ["stranger", "boss", "bea", "sue", "reviewer"] {
        assert!(!sees(&app, person, &instance).await, "{person}");
    }
    // Everybody sees an instance of a definition without restrictions.
    app.with_approval().await;
    let open = app.started("doc-1").await;
    let listed = app.get("stranger", "/v1/instances").await.expect(200);
    assert_eq!(listed["data"].as_array().map(Vec::len), Some(1), "{listed}");
    assert_eq!(listed["data"][0]["id"], open["id"]);
}

#[tokio::test]
async fn members_see_offers_to_their_group_while_they_are_members() {
    let app = chambers().await;
    let instance = vote(&app, "m-1").await;
    join(&app, "office", "stranger").await;
    assert!(sees(&app, "stranger", &instance).await);
    leave(&app, "office", "stranger").await;
    assert!(!sees(&app, "stranger", &instance).await);
    leave(&app, "auditors", "ada").await;
    assert!(!sees(&app, "ada", &instance).await);
    join(&app, "auditors", "sue").await;
    assert!(sees(&app, "sue", &instance).await);
}

#[tokio::test]
async fn owners_and_deciders_see_the_instance_for_ever() {
    let app = chambers().await;
    let instance = vote(&app, "m-1").await;
    let two = task(&instance, 1);
    act(&app, "olaf", &two, "claim", json!({}))
        .await
        .expect(200);
    act(&app, "olaf", &two, "release", json!({}))
        .await
        .expect(200);
    leave(&app, "office", "olaf").await;
    assert!(sees(&app, "olaf", &instance).await, "a past owner");
    let one = task(&instance, 0);
    act(&app, "mara", &one, "claim", json!({}))
        .await
        .expect(200);
    assert!(!sees(&app, "stranger", &instance).await);
    let to = json!({ "to": "stranger", "reason": "knows it" });
    act(&app, "mara", &one, "delegate", to).await.expect(200);
    assert!(sees(&app, "stranger", &instance).await, "a delegate");
    let to = json!({ "to": "sue", "reason": "ill" });
    act(&app, "admin", &two, "reassign", to).await.expect(200);
    assert!(
        sees(&app, "sue", &instance).await,
        "whom an operator gave a task"
    );
    act(&app, "sue", &two, "decide", json!({ "outcome": "NO" }))
        .await
        .expect(200);
    assert!(
        sees(&app, "stranger", &instance).await,
        "also after the end"
    );
    assert!(sees(&app, "sue", &instance).await, "who decided");
}

#[tokio::test]
async fn managers_see_the_instances_of_their_people() {
    let app = chambers().await;
    let instance = vote(&app, "m-1").await;
    let path = "/v1/people/mara/manager";
    let put = app.put("admin", path, json!({ "manager": "boss" }));
    put.await.expect(200);
    assert!(sees(&app, "boss", &instance).await);
    // A manager who sees an instance for this reason may act on it as usual.
    let refused = act(&app, "boss", &task(&instance, 0), "claim", json!({})).await;
    refused.problem(403, "forbidden");
    super::delete(&app, "admin", path).await.expect(200);
    assert!(!sees(&app, "boss", &instance).await, "the present manager");
    // Managers of the members of a group do not see it, until the member takes the task.
    let put = app.put(
        "admin",
        "/v1/people/olaf/manager",
        json!({ "manager": "boss" }),
    );
    put.await.expect(200);
    assert!(!sees(&app, "boss", &instance).await);
    act(&app, "olaf", &task(&instance, 1), "claim", json!({}))
        .await
        .expect(200);
    assert!(sees(&app, "boss", &instance).await);
}

#[tokio::test]
async fn a_substitute_sees_instances_that_they_may_act_on() {
    let app = chambers().await;
    let instance = vote(&app, "m-1").await;
    let absence = |definition: Value| {
        let mut absence = json!({
            "substitute": "sue", "from": "2020-01-01T00:00:00Z", "until": "2020-12-01T00:00:00Z",
        });
        let now = app.engine.clock().now();
        absence["from"] = json!((now - jiff::Span::new().hours(1)).to_string());
        absence["until"] = json!((now + jiff::Span::new().hours(1)).to_string());
        if !definition.is_null() {
            absence["definitionKey"] = definition;
        }
        absence
    };
    app.with_approval().await;
    let other = app.post(
        "mara",
        "/v1/people/mara/absences",
        absence(json!("document-approval")),
    );
    let other = other.await.expect(201);
    assert!(
        !sees(&app, "sue", &instance).await,
        "it is for another definition"
    );
    let path = format!("/v1/people/mara/absences/{}", id(&other["absence"]));
    super::delete(&app, "mara", &path).await;
    let here = app.post(
        "mara",
        "/v1/people/mara/absences",
        absence(json!("committee")),
    );
    let here = here.await.expect(201);
    assert!(sees(&app, "sue", &instance).await);
    let path = format!("/v1/people/mara/absences/{}", id(&here["absence"]));
    super::delete(&app, "mara", &path).await;
    assert!(!sees(&app, "sue", &instance).await, "the absence has ended");
}

#[tokio::test]
async fn a_migration_changes_who_sees_it() {
    let app = chambers().await;
    let instance = vote(&app, "m-1").await;
    let path = format!("/v1/instances/{}/migrate", id(&instance));
    let to = async |version: u32| {
        let moved = app.post("admin", &path, json!({ "version": version }));
        moved.await.expect(200);
    };
    to(2).await;
    for person in ["stranger", "bea", "mara", "ada"] {
        assert!(sees(&app, person, &instance).await, "{person}");
    }
    to(3).await;
    for person in ["author", "mara", "olaf", "bea"] {
        assert!(sees(&app, person, &instance).await, "{person}");
    }
    for person in ["stranger", "ada"] {
        assert!(!sees(&app, person, &instance).await, "{person}");
    }
    to(1).await;
    assert!(sees(&app, "ada", &instance).await && !sees(&app, "bea", &instance).await);
}

#[tokio::test]
async fn a_mentioned_person_is_a_participant_from_then_on() {
    let app = chambers().await;
    let instance = vote(&app, "m-1").await;
    app.with_approval().await;
    let open = app.started("doc-1").await;
    assert!(!sees(&app, "stranger", &instance).await);
    for about in [&instance, &open] {
        let path = format!("/v1/instances/{}/comment", id(about));
        let comment = json!({ "comment": "What do you say?", "mentions": ["stranger", "mara"] });
        app.post("author", &path, comment).await.expect(200);
    }
    assert!(sees(&app, "stranger", &instance).await);
    assert!(!sees(&app, "sue", &instance).await);
    let rows: i64 =
        sqlx::query_scalar("select count(*) from participant where instance_id = $1::text::uuid")
            .bind(id(&open))
            .fetch_one(app.database.admin_pool())
            .await
            .expect("a number");
    assert_eq!(rows, 0, "everybody sees it");
}

#[tokio::test]
async fn people_who_mention_themselves_see_it_no_longer_than_before() {
    let app = chambers().await;
    let instance = vote(&app, "m-1").await;
    join(&app, "office", "sue").await;
    let path = format!("/v1/instances/{}/comment", id(&instance));
    let comment = json!({ "comment": "A note to myself.", "mentions": ["sue"] });
    app.post("sue", &path, comment).await.expect(200);
    leave(&app, "office", "sue").await;
    assert!(!sees(&app, "sue", &instance).await);
}

/// The entity is occupied for everybody. Only those who see the instance learn by which one.
#[tokio::test]
async fn a_start_conflict_does_not_name_an_unseen_instance() {
    let app = chambers().await;
    let instance = vote(&app, "m-1").await;
    let body = json!({ "definitionKey": "committee", "entityType": "motion", "entityId": "m-1", "data": { "assign": {} } });
    for path in ["/v1/instances", "/v1/instances?dryRun=true"] {
        let problem = app
            .post("mara", path, body.clone())
            .await
            .problem(409, "already_running");
        assert_eq!(problem["conflict"]["instanceId"], instance["id"]);
        let hidden = app
            .post("stranger", path, body.clone())
            .await
            .problem(409, "already_running");
        assert_eq!(hidden["conflict"], json!({}), "{hidden}");
        assert!(!hidden.to_string().contains(&id(&instance)), "{hidden}");
    }
}

/// The answer "no such task" would be wrong for ever. Here a host fails to read a version that it has not cached yet.
#[tokio::test]
async fn a_failure_of_the_host_is_not_reported_as_a_missing_instance() {
    let app = chambers().await;
    let path = format!("/v1/tasks/{}/claim", task(&vote(&app, "m-1").await, 0));
    let refused = app.post("stranger", &path, json!({})).await;
    refused.problem(404, "not_found");
    super::sql(&app, "update definition_version set graph = ''").await;
    let beside = app.beside().await;
    for person in ["stranger", "mara"] {
        let failed = beside.send(person, "POST", &path, &[], Some(json!({})));
        failed.await.problem(500, "internal");
    }
}

/// A correlated signal reaches the instance, whoever sends it. The response is that to a buffered signal.
#[tokio::test]
async fn a_correlated_signal_does_not_reveal_its_receiver() {
    let app = chambers().await;
    let published = app
        .publish("errand", subflows(), &json!({ "observers": [] }))
        .await;
    published.expect(201);
    let path = "/v1/definitions/errand/versions/1/activate";
    app.post("admin", path, json!({})).await.expect(200);
    let data = json!({ "wait": { "correlation": "order 7" } });
    let body =
        json!({ "definitionKey": "errand", "entityType": "errand", "entityId": "7", "data": data });
    let errand = app.post("author", "/v1/instances", body).await.started();
    assert_eq!(errand["states"][0]["name"], "Wait", "{errand}");
    let direct = format!("/v1/instances/{}/signals/PAID", id(&errand));
    let refused = app.post("stranger", &direct, json!({ "id": "p-0" })).await;
    refused.problem(404, "not_found");
    let sent = app.post(
        "stranger",
        "/v1/signals/PAID",
        json!({ "correlation": "order 7", "id": "p-1" }),
    );
    let sent = sent.await.expect(202);
    assert!(!sent.to_string().contains(&id(&errand)), "{sent}");
    let shown = app
        .get("author", &format!("/v1/instances/{}", id(&errand)))
        .await
        .expect(200);
    assert_eq!(shown["status"], "COMPLETED", "the instance took it");
    let status = format!(
        "/v1/signals/{}",
        sent["signal"]["signalId"].as_str().expect("an id")
    );
    let receipt = app.get("stranger", &status).await.expect(200);
    assert_eq!(receipt["status"], "DELIVERED");
    assert!(
        receipt.get("instanceId").is_none() && receipt.get("eventId").is_none(),
        "{receipt}"
    );
    let receipt = app.get("admin", &status).await.expect(200);
    assert_eq!(receipt["instanceId"], errand["id"]);
}

/// A stream has what its caller sees at the moment. A person who sees an instance later gets its later events.
#[tokio::test]
async fn a_stream_leaves_out_instances_that_its_caller_does_not_see() {
    let app = chambers().await;
    let host = app.host();
    let (_, stranger) = super::bearer(&host, "stranger", "default", &["user"]);
    let mut stream = super::events::Stream::of(&host, &stranger, None).await;
    let hidden = vote(&app, "m-1").await;
    app.with_approval().await;
    let open = app.start_answer("doc-1").await;
    let first = stream.next().await.1;
    assert_eq!(
        first["subject"], open["events"][0]["subject"],
        "{first}, not of {hidden}"
    );
    let one = task(&hidden, 0);
    act(&app, "mara", &one, "claim", json!({}))
        .await
        .expect(200);
    // Once the stream has a later event, it has passed the claim.
    let later = app.start_answer("doc-2").await;
    let events = |started: &Value| started["events"].as_array().expect("events").len();
    for _ in 1..events(&open) + events(&later) {
        let event = stream.next().await.1;
        assert!(!event.to_string().contains(&id(&hidden)), "{event}");
    }
    let to = json!({ "to": "stranger", "reason": "knows it" });
    let delegated = act(&app, "mara", &one, "delegate", to).await.expect(200);
    assert_eq!(stream.next().await.1, delegated["events"][0]);
}
