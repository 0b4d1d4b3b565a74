//! Tasks that the host allocates to a candidate: in turn, or to the candidate with the fewest tasks.

use std::collections::BTreeMap;

use super::*;

/// A desk of these people.
async fn desk(app: &TestApp, people: &[&str]) {
    group(app, "desk").await;
    for person in people {
        member(app, "desk", person).await;
    }
}

fn given(allocation: &str) -> Value {
    json!({ "assign": { "offers": [{ "groups": ["desk"], "allocation": allocation }] } })
}

/// The owner of the first task of the only active state.
fn owner(instance: &Value) -> &Value {
    &tasks(instance)[0]["owner"]
}

/// How many open tasks each of these people owns.
async fn owned(app: &TestApp) -> BTreeMap<String, i64> {
    let count = "select owner, count(*) from task where status = 'CLAIMED' group by owner";
    let rows = sqlx::query_as(count).fetch_all(app.database.admin_pool());
    rows.await.expect("counts").into_iter().collect()
}

#[tokio::test]
async fn everybody_has_their_turn() {
    let app = chambers().await;
    desk(&app, &["benny", "betty", "bodo", "author"]).await;
    // The requester has no turn. Other states and versions have turns of their own.
    for (number, person) in (1..).zip(["benny", "betty", "bodo", "benny", "betty"]) {
        let instance = vote(&app, &format!("m-{number}"), given("round-robin")).await;
        assert_eq!(owner(&instance), person, "{instance}");
        assert_eq!(tasks(&instance)[0]["ownership"]["allocated"], true);
    }
    let events = app.get("admin", "/v1/events?limit=100").await.expect(200);
    let events = events["data"].as_array().expect("events").iter();
    let created = events.filter(|event| event["type"] == "dev.wrkflw.task.created");
    for event in created {
        let task = &event["data"]["task"];
        assert_eq!(task["status"], "CLAIMED", "{event}");
        assert!(task["owner"].is_string(), "{event}");
    }
    let mine = app.get("bodo", "/v1/tasks").await.expect(200);
    assert_eq!(mine["data"].as_array().map(Vec::len), Some(1));
    prove_all(&app).await;
}

#[tokio::test]
async fn the_candidate_with_the_fewest_tasks_gets_the_next() {
    let app = chambers().await;
    desk(&app, &["benny", "betty"]).await;
    let named = |owner: &str| json!({ "assign": { "offers": [{ "owner": owner }] } });
    for (entity, owner) in [("1", "benny"), ("2", "benny"), ("3", "betty")] {
        vote(&app, entity, named(owner)).await;
    }
    let mut instances = Vec::new();
    for entity in ["4", "5", "6"] {
        instances.push(vote(&app, entity, given("least-loaded")).await);
    }
    let owners: Vec<_> = instances.iter().map(owner).collect();
    // At the fifth task both own two. The last task of betty is older.
    assert_eq!(owners, ["betty", "benny", "betty"]);

    // It can be released, and is then open to all.
    let task = &tasks(&instances[0])[0];
    let path = |verb: &str| format!("/v1/tasks/{}/{verb}", id(task));
    let yes = json!({ "outcome": "YES" });
    let refused = app.post("benny", &path("decide"), yes.clone()).await;
    refused.problem(403, "forbidden");
    app.post("betty", &path("release"), json!({}))
        .await
        .expect(200);
    app.post("benny", &path("decide"), yes).await.expect(200);
    prove_all(&app).await;
}

#[tokio::test]
async fn absent_people_get_no_task_and_without_others_it_is_open() {
    let (app, time) = chambers_at().await;
    desk(&app, &["benny", "betty"]).await;
    let until = time.now() + Duration::from_hours(24);
    let away = async |person: &str, substitute: &str| {
        let path = format!("/v1/people/{person}/absences");
        let body = json!({
            "substitute": substitute, "from": time.now().to_string(), "until": until.to_string(),
        });
        app.post("admin", &path, body).await.expect(201);
    };
    away("benny", "reviewer").await;
    let one = vote(&app, "1", given("least-loaded")).await;
    assert_eq!(owner(&one), "betty");
    away("betty", "reviewer").await;
    let two = vote(&app, "2", given("round-robin")).await;
    assert_eq!(tasks(&two)[0]["status"], "PENDING");
    // A substitute may act on it as on any other task.
    claim(&app, "reviewer", &tasks(&two)[0]).await;
    prove_all(&app).await;
}

/// Commands that run at the same time do not see each other's allocation. Each task goes to one of the candidates, and later
/// allocations even out the numbers.
#[tokio::test]
async fn allocations_of_concurrent_starts_are_evened_out_later() {
    const PEOPLE: [&str; 4] = ["benny", "betty", "bodo", "bruno"];
    const AT_ONCE: usize = 12;
    let app = chambers().await;
    desk(&app, &PEOPLE).await;
    let entities: Vec<_> = (0..AT_ONCE)
        .map(|number| format!("at-once-{number}"))
        .collect();
    let starts = entities
        .iter()
        .map(|entity| vote(&app, entity, given("least-loaded")));
    for instance in futures_util::future::join_all(starts).await {
        let owner = owner(&instance).as_str().expect("an owner");
        assert!(PEOPLE.contains(&owner), "{owner}");
    }
    let most = owned(&app).await.into_values().max().expect("owners");
    let most = usize::try_from(most).expect("few");
    // One after the other, until all have the same number.
    for number in 0..most * PEOPLE.len() - AT_ONCE {
        vote(&app, &format!("later-{number}"), given("least-loaded")).await;
    }
    let equal = i64::try_from(most).expect("few");
    let expected = PEOPLE.map(|person| (person.to_owned(), equal));
    assert_eq!(owned(&app).await, BTreeMap::from(expected));
    prove_all(&app).await;
}
