//! Clients that are slow, that stop half-way, or that send malformed requests. Each gets a clear response or a closed connection,
//! in bounded time, and the host is not affected.

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

use super::TIMEOUT;
use super::client::{Reply, exchange, request, rest};
use super::console::sign_in;
use super::host::Host;
use crate::support::app::neighbour::Neighbour;
use crate::support::app::{SECRET, TestApp};
use crate::support::until;

/// The most memory that a test may add to the host.
const GROWTH_KIB_MAX: u64 = 96 * 1024;

/// A host with short timeouts.
async fn impatient(app: &TestApp, further: &[(&str, &str)]) -> Host {
    let secret = String::from_utf8(SECRET.to_vec()).expect("text");
    let mut settings = vec![
        ("jwt_secret", secret.as_str()),
        ("head_max", "1"),
        ("body_max", "1"),
        ("unread_max", "2"),
        ("idle_max", "2"),
    ];
    settings.retain(|(name, _)| !further.iter().any(|(own, _)| own == name));
    settings.extend(further);
    Host::start(app.database.url(), &settings).await
}

fn bearer(app: &TestApp) -> String {
    format!("Bearer {}", app.host().token("admin"))
}

async fn connect(host: &Host) -> TcpStream {
    TcpStream::connect(host.address)
        .await
        .expect("a connection")
}

/// Sends the text byte by byte until the host closes the connection. Returns its response.
async fn dripped(host: &Host, begin: &str, drop_by_drop: &str) -> Reply {
    let mut stream = connect(host).await;
    stream.write_all(begin.as_bytes()).await.expect("sent");
    let (mut reading, mut writing) = stream.split();
    let drip = async {
        for byte in drop_by_drop.as_bytes().iter().cycle() {
            // This is how slow the client is, not a wait for a condition.
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            if writing.write_all(&[*byte]).await.is_err() {
                return;
            }
        }
    };
    let mut received = Vec::new();
    tokio::select! {
        () = drip => {}
        read = tokio::time::timeout(TIMEOUT, reading.read_to_end(&mut received)) => {
            drop(read.expect("the host ends the connection"));
        }
    }
    Reply::parse(&received).unwrap_or_else(|| panic!("no answer in {received:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_request_is_ended_with_408() {
    let app = TestApp::empty().await;
    let host = impatient(&app, &[]).await;
    let bearer = bearer(&app);
    let long = "a".repeat(2000);
    let head = "GET /livez HTTP/1.1\r\nhost: localhost\r\n";
    let body = format!(
        "POST /v1/instances HTTP/1.1\r\nhost: localhost\r\nauthorization: {bearer}\r\ncontent-type: application/json\r\ncontent-length: 2000\r\n\r\n{{"
    );
    let chunked = body.replace("content-length: 2000", "transfer-encoding: chunked");
    let chunked = format!("{}1\r\n{{\r\n", chunked.strip_suffix('{').expect("a brace"));
    let upload = format!(
        "POST /v1/definitions/a/versions HTTP/1.1\r\nhost: localhost\r\nauthorization: {bearer}\r\ncontent-type: multipart/form-data; boundary=b\r\ncontent-length: 2000\r\n\r\n--b\r\n"
    );
    let stalled = async |text: &str| {
        let mut stream = connect(&host).await;
        stream.write_all(text.as_bytes()).await.expect("sent");
        let received = rest(&mut stream).await;
        Reply::parse(&received).unwrap_or_else(|| panic!("no answer to {text} in {received:?}"))
    };
    let (of_head, of_body, of_upload, of_chunks, head_drip, body_drip) = tokio::join!(
        stalled(head),
        stalled(&body),
        stalled(&upload),
        stalled(&chunked),
        dripped(&host, head, &long),
        dripped(&host, &body, &long)
    );
    for (name, reply) in [("head", &of_head), ("head, dripping", &head_drip)] {
        assert_eq!(reply.status, 408, "{name}");
        assert_eq!(reply.header("connection"), Some("close"), "{name}");
        let kind = reply.header("content-type");
        assert_eq!(kind, Some("application/problem+json"), "{name}");
        assert_eq!(reply.code(), "request_timeout", "{name}: {}", reply.text);
        let sniffed = reply.header("x-content-type-options");
        let stored = reply.header("cache-control");
        let shut = (Some("nosniff"), Some("no-store"));
        assert_eq!((sniffed, stored), shut, "{name}");
    }
    let bodies = [
        ("body", of_body),
        ("upload", of_upload),
        ("chunks", of_chunks),
        ("body, dripping", body_drip),
    ];
    for (name, reply) in bodies {
        assert_eq!(
            (reply.status, reply.code().as_str()),
            (408, "request_timeout"),
            "{name}: {}",
            reply.text
        );
    }
    let ended = host
        .measure("wrkflw_http_connections_ended_total{reason=\"slow_head\"}")
        .await;
    assert_eq!(ended, Some(2.0));
    assert_eq!(host.ask("GET /readyz", &[], "").await.status, 200);
}

/// An upload with this content length, of which only these bytes are sent.
fn upload(bearer: &str, length: usize, sent: &str) -> String {
    format!(
        "POST /v1/definitions/a/versions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: {bearer}\r\n\
         content-type: multipart/form-data; boundary=b\r\ncontent-length: {length}\r\n\r\n{sent}"
    )
}

/// Uploads are large and held in memory. Unfinished uploads delay other uploads of the same tenant, and nobody else.
#[tokio::test(flavor = "multi_thread")]
async fn unfinished_uploads_take_few_places_and_none_of_another_tenant() {
    const OF_TENANT: usize = 6;
    const REFUSED: usize = 3;
    const BEGUN: &str = "--b\r\ncontent-disposition: form-data; name=\"component\"\r\n\r\nasm";
    const FORM: &str =
        "--b\r\ncontent-disposition: form-data; name=\"other\"\r\n\r\n1\r\n--b--\r\n";
    let app = TestApp::empty().await;
    let neighbour = Neighbour::of(&app).await;
    let host = impatient(&app, &[("body_max", "600")]).await;
    let cookie = sign_in(&host, &app.host().token("admin")).await;
    let bearer = bearer(&app);
    let unfinished = upload(&bearer, BEGUN.len() + 1, BEGUN);
    let sending = (0..OF_TENANT + REFUSED).map(|_| exchange(host.address, unfinished.as_bytes()));
    let mut sending = sending.collect::<FuturesUnordered<_>>();
    for _ in 0..REFUSED {
        let received = sending.next().await.expect("an answer");
        let refused = Reply::parse(&received).expect("an answer");
        let met = (refused.status, refused.code());
        assert_eq!(met, (503, "overloaded".to_owned()), "{}", refused.text);
        assert_eq!(refused.header("retry-after"), Some("1"));
    }
    // Now the host reads the others. A form with a place is refused because of its content.
    let whole = async |bearer: &str| {
        let form = upload(bearer, FORM.len(), FORM);
        let received = exchange(host.address, form.as_bytes()).await;
        Reply::parse(&received).expect("an answer").status
    };
    assert_eq!(whole(&bearer).await, 503);
    assert_eq!(whole(&neighbour.admin).await, 422);
    for bearer in [bearer.as_str(), neighbour.admin.as_str()] {
        let headers = [("authorization", bearer)];
        let listed = host.ask("GET /v1/instances", &headers, "").await;
        assert_eq!(listed.status, 200, "{}", listed.text);
    }
    // An upload by the console needs a place, too.
    let headers = [("cookie", &*cookie), ("origin", "http://localhost")];
    let page = host.ask("POST /console/upload", &headers, "a").await;
    assert_eq!(page.status, 503, "{}", page.text);
    drop(sending);
    let freed = async {
        while whole(&bearer).await != 422 {
            crate::support::pause().await;
        }
    };
    let freed = tokio::time::timeout(TIMEOUT, freed).await;
    freed.expect("closed connections release their places");
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_request_leaves_no_connection_behind() {
    let app = TestApp::empty().await;
    let host = impatient(&app, &[("idle_max", "3600"), ("head_max", "3600")]).await;
    let bearer = bearer(&app);
    let body = r#"{"definitionKey":"document-approval"}"#;
    let whole = request("POST /v1/instances", &[("authorization", &bearer)], body);
    for length in [0, 1, 20, whole.len() - body.len() - 1, whole.len() - 1] {
        let mut stream = connect(&host).await;
        stream
            .write_all(&whole.as_bytes()[..length])
            .await
            .expect("sent");
        stream.shutdown().await.expect("our half is closed");
        let received = rest(&mut stream).await;
        let status = Reply::parse(&received).map(|reply| reply.status);
        assert!(
            matches!(status, None | Some(400)),
            "{length} bytes: {received:?}"
        );
    }
    // The same for a client that vanishes without closing.
    for length in [20, whole.len() - 1] {
        let mut stream = connect(&host).await;
        stream
            .write_all(&whole.as_bytes()[..length])
            .await
            .expect("sent");
        stream.set_zero_linger().expect("a socket");
    }
    let gone = async {
        // The connection of the probe itself is open.
        while host.measure("wrkflw_http_connections").await != Some(1.0) {
            crate::support::pause().await;
        }
    };
    tokio::time::timeout(TIMEOUT, gone)
        .await
        .expect("no connection is left");
}

/// A connection whose client has a small receive buffer and reads nothing.
pub(super) async fn deaf(host: &Host) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4096).expect("a small buffer");
    socket.connect(host.address).await.expect("a connection")
}

/// Fills the feed with twenty thousand events per instance, as if one commit had created them.
pub(super) async fn fill_feed(app: &TestApp) {
    let entries = "insert into audit_entry
        (tenant_id, stream_kind, stream_id, seq, id, type, revision, command_id, actor, payload, evidence, salt, occurred_at, hash, event_seq)
        select tenant_id, stream_kind, stream_id, 1000 + n, gen_random_uuid(), type, revision, command_id, actor, payload, evidence, salt,
            occurred_at, hash, 1000 + n
        from audit_entry, generate_series(1, 20000) n where stream_kind = 'instance' and seq = 1";
    sqlx::raw_sql(entries)
        .execute(app.database.admin_pool())
        .await
        .expect("entries");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_that_nobody_reads_is_aborted() {
    const DEAF: usize = 8;
    let app = TestApp::start().await;
    app.started("doc-1").await;
    fill_feed(&app).await;
    let host = impatient(&app, &[("idle_max", "60")]).await;
    let bearer = bearer(&app);
    let before = host.memory_kib();
    let path = "GET /v1/events/stream?after=earliest";
    let stream = request(path, &[("authorization", &bearer)], "");
    let many = request("GET /openapi.json", &[], "").repeat(100);
    let mut clients = JoinSet::new();
    for (number, text) in [stream, many].into_iter().cycle().take(DEAF).enumerate() {
        let mut client = deaf(&host).await;
        clients.spawn(async move {
            // Once the host stops reading, the client cannot even send all of its requests.
            let sending = tokio::time::timeout(TIMEOUT, client.write_all(text.as_bytes()));
            drop(sending.await.expect("the host aborts the connection"));
            (number, client)
        });
    }
    let wanted = f64::from(u32::try_from(DEAF).expect("a small number"));
    let mut most = before;
    let look = async || {
        most = most.max(host.memory_kib());
        let aborted = host.measure("wrkflw_http_connections_ended_total{reason=\"unread\"}");
        (aborted.await, most)
    };
    let are_all = |(aborted, _): &(Option<f64>, u64)| *aborted == Some(wanted);
    let (_, most) = until("all connections are aborted", look, are_all).await;
    assert!(
        most < before + GROWTH_KIB_MAX,
        "{before} KiB before, {most} KiB at most"
    );
    // Each client finds its connection closed at the next read.
    while let Some(client) = clients.join_next().await {
        let (number, mut client) = client.expect("no panic");
        let received = rest(&mut client).await;
        assert!(
            received.len() < 4 * 1024 * 1024,
            "client {number} was sent {} bytes",
            received.len()
        );
    }
}

/// A request, the expected status, and the expected code if the API itself answers.
struct TooMuch(&'static str, String, u16, &'static str);

fn post(bearer: &str, headers: &str, body: &str) -> String {
    format!(
        "POST /v1/instances HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: {bearer}\r\ncontent-type: application/json\r\n{headers}\r\n{body}"
    )
}

fn bodies(bearer: &str) -> Vec<TooMuch> {
    let sized = |body: &str| {
        let length = format!("content-length: {}\r\n", body.len());
        post(bearer, &length, body)
    };
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(300_000));
    let chunk = format!("{:x}\r\n{}\r\n", 100_000, "x".repeat(100_000));
    let chunked = format!("{}0\r\n\r\n", chunk.repeat(3));
    let chunked = post(bearer, "transfer-encoding: chunked\r\n", &chunked);
    let huge = post(bearer, "content-length: 99999999999\r\n", "{");
    let deep = |open: &str, close: &str, depth: usize| {
        let inner = format!("{}1{}", open.repeat(depth), close.repeat(depth));
        sized(&format!("{{\"data\":{inner}}}"))
    };
    let arrays = deep("[", "]", 50_000);
    let objects = deep("{\"a\":", "}", 20_000);
    let two = post(bearer, "content-length: 2\r\ncontent-length: 3\r\n", "{}");
    let wordy = post(bearer, "content-length: x\r\n", "{}");
    vec![
        TooMuch("a large body", sized(&large), 413, "too_large"),
        TooMuch("large chunks", chunked, 413, "too_large"),
        TooMuch("a body said to be huge", huge, 413, "too_large"),
        TooMuch("deep arrays", arrays, 400, "malformed_json"),
        TooMuch("deep objects", objects, 400, "malformed_json"),
        TooMuch("two lengths", two, 400, ""),
        TooMuch("no length", wordy, 400, ""),
    ]
}

fn heads(bearer: &str) -> Vec<TooMuch> {
    let get = |path: &str, headers: &str| {
        format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: {bearer}\r\n{headers}\r\n"
        )
    };
    let list = "/v1/instances";
    let padded = |length: usize| get(list, &format!("x-padding: {}\r\n", "x".repeat(length)));
    let endless = get(list, &format!("x-padding: {}", "x".repeat(3_000_000)));
    let many: Vec<_> = (0..5_000).map(|number| format!("p{number}=1")).collect();
    let many = get(&format!("{list}?{}", many.join("&")), "");
    let same = get(&format!("{list}?{}", "limit=1&".repeat(3_000)), "");
    let long = get(&format!("{list}/{}", "x".repeat(40_000)), "");
    let longer = get(&format!("/v1/{}", "x".repeat(70_000)), "");
    let later = "GET /livez HTTP/9.9\r\n\r\n".to_owned();
    vec![
        TooMuch("a large header", padded(17_000), 431, "headers_too_large"),
        TooMuch("a larger header", padded(60_000), 431, ""),
        TooMuch("many headers", get(list, &"x: y\r\n".repeat(200)), 431, ""),
        TooMuch("a header without end", endless, 431, ""),
        TooMuch("many parameters", many, 400, "malformed_request"),
        TooMuch("the same parameter", same, 400, "malformed_request"),
        TooMuch("a long path", long, 404, "not_found"),
        TooMuch("a longer path", longer, 431, ""),
        TooMuch("no HTTP", "hello\r\n\r\n".to_owned(), 400, ""),
        TooMuch("another HTTP", later, 400, ""),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_beyond_a_limit_is_refused_with_its_own_code() {
    let app = TestApp::empty().await;
    let host = impatient(&app, &[]).await;
    let bearer = bearer(&app);
    let before = host.memory_kib();
    for TooMuch(name, text, status, code) in bodies(&bearer).into_iter().chain(heads(&bearer)) {
        let received = exchange(host.address, text.as_bytes()).await;
        let reply = Reply::parse(&received);
        let reply = reply.unwrap_or_else(|| panic!("{name}: no answer in {received:?}"));
        let met = (reply.status, reply.code());
        assert_eq!(met, (status, code.to_owned()), "{name}: {}", reply.text);
    }
    let after = host.memory_kib();
    assert!(
        after < before + GROWTH_KIB_MAX,
        "{before} KiB before, {after} KiB after"
    );
    assert_eq!(host.ask("GET /readyz", &[], "").await.status, 200);
}

/// Sent as raw bytes, because no client library would send most of it.
#[tokio::test(flavor = "multi_thread")]
async fn an_ambiguous_request_is_refused() {
    let app = TestApp::empty().await;
    let host = impatient(&app, &[]).await;
    let bearer = bearer(&app);
    let get = |headers: &str| {
        format!(
            "GET /v1/instances HTTP/1.1\r\nconnection: close\r\nauthorization: {bearer}\r\n{headers}\r\n"
        )
    };
    let old = "GET /livez HTTP/1.0\r\n\r\n".to_owned();
    let chunks = "2\r\n{}\r\n0\r\n\r\n";
    let coded = post(&bearer, "transfer-encoding: gzip, chunked\r\n", chunks);
    let twice = "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n";
    let gzip = "content-length: 2\r\ncontent-encoding: gzip\r\n";
    for TooMuch(name, text, status, code) in [
        TooMuch("one host", get("host: a\r\n"), 200, ""),
        TooMuch("no host in HTTP/1.0", old, 200, ""),
        TooMuch("no host", get(""), 400, "malformed_request"),
        TooMuch(
            "two hosts",
            get("host: a\r\nhost: b\r\n"),
            400,
            "malformed_request",
        ),
        TooMuch(
            "no such host",
            get("host: a@b\r\n"),
            400,
            "malformed_request",
        ),
        TooMuch(
            "two tokens",
            get(&format!("host: a\r\nauthorization: {bearer}\r\n")),
            400,
            "malformed_request",
        ),
        TooMuch(
            "a packed body",
            post(&bearer, gzip, "{}"),
            415,
            "unsupported_encoding",
        ),
        TooMuch("a packed transfer", coded, 415, "unsupported_encoding"),
        TooMuch(
            "two transfers",
            post(&bearer, twice, chunks),
            400,
            "malformed_request",
        ),
    ] {
        let received = exchange(host.address, text.as_bytes()).await;
        let reply = Reply::parse(&received);
        let reply = reply.unwrap_or_else(|| panic!("{name}: no answer in {received:?}"));
        let met = (reply.status, reply.code());
        assert_eq!(met, (status, code.to_owned()), "{name}: {}", reply.text);
    }
}
