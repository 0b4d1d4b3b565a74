//! The shutdown of a host: probes report it, requests in flight are answered, new ones are refused, and the host ends.

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::program::{Folder, Program, exchange, serve};
use super::*;

#[tokio::test]
async fn a_draining_host_answers_probes_and_requests_in_flight() {
    let (folder, app) = (Folder::new(), TestApp::start().await);
    let mut host =
        Program::start(&folder, serve(&folder, &app, "--roles api,timers,notifier")).await;
    let token = app.host().token("author");
    host.started(&token, &start_of("loaded")).await;
    host.metric_reaches("wrkflw_requests_in_flight", |figure| figure < 0.5)
        .await;
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
    let mut in_flight = tokio::task::JoinSet::new();
    in_flight.spawn(async move {
        let body = start_of("in-hand").to_string();
        super::program::ask(&address, &author, "POST", "/v1/instances", &body).await
    });
    host.metric_reaches("wrkflw_requests_in_flight", |figure| figure > 0.5)
        .await;
    host.terminate();
    let deadline = tokio::time::Instant::now() + TIMEOUT;
    loop {
        let response = host.get("", "/readyz").await.expect("the port is open");
        if response.status == 503 {
            assert_eq!(response.body.trim(), "shutting down");
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
    let response = in_flight
        .join_next()
        .await
        .expect("a caller")
        .expect("no panic");
    assert_eq!(response.expect("its answer").status, 201);
    let status = host.ended().await;
    assert!(status.success(), "{status}: {}", host.log());
    assert!(host.get("", "/livez").await.is_none(), "the port is closed");
    let stored: i64 = sqlx::query_scalar("select count(*) from instance")
        .fetch_one(app.database.admin_pool())
        .await
        .expect("a count");
    assert_eq!(stored, 2, "the first, and the one in flight");
}

/// A page calls the API of its own process, also after the shutdown has begun.
#[tokio::test]
async fn a_page_in_flight_is_shown_in_full() {
    let (folder, app) = (Folder::new(), TestApp::start().await);
    let mut host = Program::start(&folder, serve(&folder, &app, "--roles api")).await;
    let token = app.host().token("author");
    let form = format!("bearer={token}");
    let form = format!(
        "POST /console/sign-in HTTP/1.1\r\nhost: localhost\r\norigin: http://localhost\r\nconnection: close\r\n\
         content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{form}",
        form.len()
    );
    let signed_in = exchange(&host.address, &form).await.expect("an answer");
    let cookie = signed_in.header("set-cookie").expect("a session");
    let cookie = cookie.split(';').next().expect("a cookie");
    let request = format!(
        "GET /console/notifications HTTP/1.1\r\nhost: localhost\r\ncookie: {cookie}\r\nconnection: close\r\n\r\n"
    );

    let mut stuck = app.database.admin_pool().begin().await.expect("begun");
    sqlx::raw_sql("lock table session in access exclusive mode")
        .execute(&mut *stuck)
        .await
        .expect("locked");
    let address = host.address.clone();
    let mut page = tokio::task::JoinSet::new();
    page.spawn(async move { exchange(&address, &request).await });
    let waits =
        "select exists (select from pg_locks where relation = 'session'::regclass and not granted)";
    let begun = async {
        while !sqlx::query_scalar::<_, bool>(waits)
            .fetch_one(&mut *stuck)
            .await
            .expect("a look")
        {
            crate::support::pause().await;
        }
    };
    tokio::time::timeout(TIMEOUT, begun).await.expect("in time");
    host.terminate();
    let refused = async {
        while host.get(&token, "/v1/me").await.expect("it is open").status != 503 {
            crate::support::pause().await;
        }
    };
    tokio::time::timeout(TIMEOUT, refused)
        .await
        .expect("in time");

    stuck.rollback().await.expect("released");
    let page = page.join_next().await.expect("a page").expect("no panic");
    let page = page.expect("an answer");
    assert_eq!(page.status, 200, "{page:?}");
    let status = host.ended().await;
    assert!(status.success(), "{status}: {}", host.log());
}

#[tokio::test]
async fn a_load_balancer_has_time_to_notice() {
    let (folder, app) = (Folder::new(), TestApp::start().await);
    let line = "--roles api --drain-notice-seconds 2";
    let mut host = Program::start(&folder, serve(&folder, &app, line)).await;
    let token = app.host().token("author");
    host.started(&token, &start_of("loaded")).await;
    host.terminate();
    let deadline = tokio::time::Instant::now() + TIMEOUT;
    while host
        .get("", "/readyz")
        .await
        .expect("the port is open")
        .status
        == 200
    {
        assert!(tokio::time::Instant::now() < deadline, "it stays ready");
    }
    let response = host
        .post(&token, "/v1/instances", &start_of("noticed"))
        .await;
    assert_eq!(
        response.expect("an answer").status,
        201,
        "it works on meanwhile"
    );
    assert!(host.ended().await.success(), "{}", host.log());
}

/// The body of a request may take twenty seconds to arrive. A shutdown waits for two timeouts of a request only.
#[tokio::test]
async fn a_shutdown_takes_at_most_two_timeouts_of_a_request() {
    let (folder, app) = (Folder::new(), TestApp::start().await);
    let line = "--roles api --request-seconds-max 1";
    let mut host = Program::start(&folder, serve(&folder, &app, line)).await;
    let half = format!(
        "POST /v1/instances HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: 100\r\n\r\n{{",
        app.host().token("author")
    );
    let mut stream = TcpStream::connect(&host.address)
        .await
        .expect("a connection");
    stream.write_all(half.as_bytes()).await.expect("sent");
    host.metric_reaches("wrkflw_requests_in_flight", |figure| figure > 0.5)
        .await;
    host.terminate();
    assert!(!host.ended().await.success());
    let log = host.log();
    assert!(
        log.contains("stopped after 2 s with requests still in flight"),
        "{log}"
    );
}
