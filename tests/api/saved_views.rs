//! Saved views of the list of tasks: private, limited, and at most one of them the default.

use std::time::Duration;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::app::{Answer, TestApp};
use crate::support::plug::{count, within};

fn path(number: u128) -> String {
    format!("/v1/me/views/{}", Uuid::from_u128(number))
}

async fn put(app: &TestApp, who: &str, number: u128, body: Value) -> Answer {
    app.put(who, &path(number), body).await
}

async fn delete(app: &TestApp, who: &str, number: u128) -> Answer {
    let host = app.host();
    host.send(who, "DELETE", &path(number), &[], None).await
}

/// The names of the views; the default has a star.
async fn names(app: &TestApp, who: &str) -> Vec<String> {
    let listed = app.get(who, "/v1/me/views").await.expect(200);
    let views = listed["data"].as_array().expect("a list").iter();
    let name = |view: &Value| {
        let star = if view["default"] == true { "*" } else { "" };
        format!("{}{star}", view["name"].as_str().expect("a name"))
    };
    views.map(name).collect()
}

#[tokio::test]
async fn people_save_rename_and_delete_their_own_views() {
    let app = TestApp::start().await;
    let urgent = json!({ "name": "Urgent", "query": "minPriority=50" });
    let kept = put(&app, "author", 2, urgent.clone()).await.expect(200);
    assert_eq!(kept["query"], "minPriority=50");
    assert_eq!(kept["default"], false);
    let late = json!({ "name": "Late", "query": "sort=dueAt" });
    put(&app, "author", 1, late).await.expect(200);
    assert_eq!(names(&app, "author").await, ["Late", "Urgent"]);
    assert_eq!(names(&app, "reviewer").await, Vec::<String>::new());

    // The same id of another person is another view.
    let others = json!({ "name": "Urgent", "query": "" });
    put(&app, "reviewer", 2, others).await.expect(200);
    let renamed = json!({ "name": "เร่งด่วน <b>", "query": "minPriority=50" });
    put(&app, "author", 2, renamed).await.expect(200);
    assert_eq!(names(&app, "author").await, ["Late", "เร่งด่วน <b>"]);
    assert_eq!(names(&app, "reviewer").await, ["Urgent"]);

    delete(&app, "author", 2).await.expect(204);
    delete(&app, "author", 2).await.problem(404, "not_found");
    assert_eq!(names(&app, "author").await, ["Late"]);
    assert_eq!(names(&app, "reviewer").await, ["Urgent"]);
}

#[tokio::test]
async fn at_most_one_view_is_the_default() {
    let app = TestApp::start().await;
    let view = |name: &str, default: bool| json!({ "name": name, "query": "", "default": default });
    put(&app, "author", 1, view("A", true)).await.expect(200);
    put(&app, "author", 2, view("B", false)).await.expect(200);
    assert_eq!(names(&app, "author").await, ["A*", "B"]);
    put(&app, "author", 2, view("B", true)).await.expect(200);
    assert_eq!(names(&app, "author").await, ["A", "B*"]);
    put(&app, "author", 2, view("B", false)).await.expect(200);
    assert_eq!(names(&app, "author").await, ["A", "B"]);
    // Concurrent requests leave one default.
    let all = (1..9).map(|number| {
        let body = view(&format!("N{number}"), true);
        put(&app, "author", number, body)
    });
    for answer in futures_util::future::join_all(all).await {
        answer.expect(200);
    }
    let defaults = names(&app, "author").await;
    let defaults = defaults.iter().filter(|name| name.ends_with('*'));
    assert_eq!(defaults.count(), 1);
}

#[tokio::test]
async fn names_and_queries_are_limited_and_names_are_unique() {
    let app = TestApp::start().await;
    let view = |name: &str, query: &str| json!({ "name": name, "query": query });
    put(&app, "author", 1, view("A", "")).await.expect(200);
    put(&app, "author", 1, view(&"ก".repeat(60), &"q".repeat(1000)))
        .await
        .expect(200);
    put(&app, "author", 2, view("B", "")).await.expect(200);
    for (name, query, pointer) in [
        ("", "", "/name"),
        (" A", "", "/name"),
        ("A\n", "", "/name"),
        (&*"A".repeat(61), "", "/name"),
        ("B", "", "/name"),
        ("A", "?q=a", "/query"),
        ("A", "q=a b", "/query"),
        ("A", "q=ä", "/query"),
        ("A", &"q".repeat(1001), "/query"),
    ] {
        let refused = put(&app, "author", 3, view(name, query)).await;
        let problem = refused.problem(422, "invalid_request");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{name} {query}");
    }
    assert_eq!(names(&app, "author").await.len(), 2);
}

#[tokio::test]
async fn a_person_has_at_most_thirty_views_also_with_concurrent_requests() {
    let app = TestApp::start().await;
    let view = |number: u128| json!({ "name": format!("V{number:02}"), "query": "" });
    let all = (0..33).map(|number| put(&app, "author", number, view(number)));
    let answers = futures_util::future::join_all(all).await;
    let refused = answers.iter().filter(|answer| answer.status != 200);
    assert_eq!(refused.count(), 3);
    assert_eq!(names(&app, "author").await.len(), 30);
    put(&app, "author", 99, view(99))
        .await
        .problem(409, "limit_reached");
    // Existing views can still be changed.
    let listed = app.get("author", "/v1/me/views").await.expect(200);
    let one = listed["data"][0]["id"].as_str().expect("an id");
    let changed = json!({ "name": "W", "query": "" });
    app.put("author", &format!("/v1/me/views/{one}"), changed)
        .await
        .expect(200);
}

#[tokio::test]
async fn the_views_of_one_person_do_not_block_those_of_another() {
    let app = TestApp::start().await;
    let view = json!({ "name": "A", "query": "" });
    // A transaction writes a view of the author: the next row of the author waits for it.
    put(&app, "author", 1, view.clone()).await.expect(200);
    let mut under_way = app
        .database
        .admin_pool()
        .begin()
        .await
        .expect("a transaction");
    sqlx::query("select from saved_view where person = 'author' for update")
        .execute(&mut *under_way)
        .await
        .expect("a lock");
    let mut writing = tokio::task::JoinSet::new();
    let host = app.host();
    let changed = view.clone();
    writing.spawn(async move {
        host.send("author", "PUT", &path(1), &[], Some(changed))
            .await
    });
    let waits = "select count(*) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'";
    within(async {
        while count(&app.database, waits).await == 0 {
            crate::support::pause().await;
        }
    })
    .await;
    let others = put(&app, "reviewer", 1, view);
    let others = tokio::time::timeout(Duration::from_secs(5), others).await;
    others.expect("it is not blocked").expect(200);
    under_way.rollback().await.expect("a rollback");
    let written = writing.join_next().await.expect("one").expect("an answer");
    written.expect(200);
}
