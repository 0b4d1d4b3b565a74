//! The end of a host: it says so, answers what it has in hand, refuses what comes, and goes.

use super::program::{Folder, Program, serve};
use super::*;

#[tokio::test]
async fn a_host_that_drains_answers_probes_and_what_it_has_in_hand() {
    let (folder, app) = (Folder::new(), TestApp::start().await);
    let mut host =
        Program::start(&folder, serve(&folder, &app, "--roles api,timers,notifier")).await;
    let token = app.host().token("author");
    assert_eq!(
        host.get("", "/readyz").await.expect("an answer").status,
        200
    );

    let mut stuck = app.database.admin_pool().begin().await.expect("begun");
    sqlx::raw_sql("lock table instance in access exclusive mode")
        .execute(&mut *stuck)
        .await
        .expect("locked");
    let (address, author) = (host.address.clone(), token.clone());
    let mut in_hand = tokio::task::JoinSet::new();
    in_hand.spawn(async move {
        let body = start_of("in-hand").to_string();
        super::program::ask(&address, &author, "POST", "/v1/instances", &body).await
    });
    host.metric_reaches("wrkflw_requests_in_flight", |figure| figure > 0.5)
        .await;
    host.terminate();
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let said = host.get("", "/readyz").await.expect("the port is open");
        if said.status == 503 {
            assert_eq!(said.body.trim(), "shutting down");
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "it stays ready");
    }
    assert_eq!(host.get("", "/livez").await.expect("an answer").status, 200);
    assert_eq!(
        host.get("", "/metrics").await.expect("an answer").status,
        200
    );
    let late = host.post(&token, "/v1/instances", &start_of("late")).await;
    let late = late.expect("an answer");
    assert_eq!(
        (late.status, &*late.code()),
        (503, "unavailable"),
        "{late:?}"
    );
    assert_eq!(late.header("retry-after"), Some("1"));

    stuck.rollback().await.expect("released");
    let said = in_hand
        .join_next()
        .await
        .expect("a caller")
        .expect("no panic");
    assert_eq!(said.expect("its answer").status, 201);
    let status = host.ended().await;
    assert!(status.success(), "{status}: {}", host.said());
    assert!(host.get("", "/livez").await.is_none(), "the port is closed");
    let stored: i64 = sqlx::query_scalar("select count(*) from instance")
        .fetch_one(app.database.admin_pool())
        .await
        .expect("a count");
    assert_eq!(stored, 1, "the one in hand");
}

#[tokio::test]
async fn a_load_balancer_has_time_to_notice() {
    let (folder, app) = (Folder::new(), TestApp::start().await);
    let line = "--roles api --drain-notice-seconds 2";
    let mut host = Program::start(&folder, serve(&folder, &app, line)).await;
    let token = app.host().token("author");
    host.terminate();
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while host
        .get("", "/readyz")
        .await
        .expect("the port is open")
        .status
        == 200
    {
        assert!(tokio::time::Instant::now() < deadline, "it stays ready");
    }
    let said = host
        .post(&token, "/v1/instances", &start_of("noticed"))
        .await;
    assert_eq!(
        said.expect("an answer").status,
        201,
        "it works on meanwhile"
    );
    assert!(host.ended().await.success(), "{}", host.said());
}
