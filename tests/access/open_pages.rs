//! Opens as many event streams of the console as a host permits. Measures their memory, and checks that each receives a change.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::TIMEOUT;
use super::client::request;
use super::console::sign_in;
use super::host::Host;
use crate::support::app::neighbour::Neighbour;
use crate::support::app::{SECRET, TestApp};

/// The limits of event streams per person and per tenant.
const OF_PERSON: usize = 20;
const OF_TENANT: usize = 250;
/// The memory that 500 open pages may cost, in KiB.
const COST_KIB_MAX: u64 = 100 * 1000 * 1000 / 1024;

/// Reads until these words come.
async fn read_until(stream: &mut TcpStream, words: &str) {
    let mut received = Vec::new();
    let reading = async {
        loop {
            let text = String::from_utf8_lossy(&received);
            if text.contains(words) {
                return;
            }
            let count = stream.read_buf(&mut received).await.expect("a stream");
            assert!(count > 0, "{words} did not come");
        }
    };
    let read = tokio::time::timeout(TIMEOUT, reading).await;
    read.unwrap_or_else(|_| panic!("{words} did not come in time"));
}

/// A browser with an open page: it has loaded the page, and receives its events.
async fn open(host: &Host, cookie: &str) -> TcpStream {
    let headers = [("cookie", cookie)];
    let mut stream = TcpStream::connect(host.address)
        .await
        .expect("a connection");
    let follow = request("GET /console/live", &headers, "");
    stream.write_all(follow.as_bytes()).await.expect("sent");
    read_until(&mut stream, "HTTP/1.1 200").await;
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_open_pages_cost_less_than_a_hundred_megabytes() {
    let app = TestApp::start().await;
    let neighbour = Neighbour::of(&app).await;
    let secret = String::from_utf8(SECRET.to_vec()).expect("text");
    let host = Host::start(app.database.url(), &[("jwt_secret", &secret)]).await;
    let people = OF_TENANT.div_ceil(OF_PERSON);
    let mut cookies = Vec::new();
    for number in 0..people {
        let id = format!("p{number}");
        for token in [app.host().token(&id), neighbour.token(&id)] {
            let cookie = sign_in(&host, &token).await;
            let page = host.ask("GET /console", &[("cookie", &cookie)], "").await;
            assert_eq!(page.status, 200, "{}", page.text);
            cookies.push(cookie);
        }
    }
    let before = host.memory_kib();
    let mut pages = Vec::new();
    for number in 0..OF_TENANT {
        for tenant in 0..2 {
            let person = number / OF_PERSON;
            pages.push(open(&host, &cookies[2 * person + tenant]).await);
        }
    }
    assert_eq!(pages.len(), 500);
    // One change in each tenant. All pages are notified, and read the change at once.
    let start = json!({
        "definitionKey": "document-approval", "entityType": "document", "entityId": "doc-1", "data": { "title": "A plan" },
    });
    for token in [app.host().token("author"), neighbour.token("admin")] {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str())];
        let line = "POST /v1/instances";
        let started = host.ask(line, &headers, &start.to_string()).await;
        assert_eq!(started.status, 201, "{}", started.text);
    }
    for page in &mut pages {
        read_until(page, "data: changed").await;
    }
    let after = host.memory_kib();
    assert!(
        after < before + COST_KIB_MAX,
        "{before} KiB before, {after} KiB with 500 open pages"
    );
}
