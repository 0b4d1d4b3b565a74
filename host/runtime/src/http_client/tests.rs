//! Requests to servers on this machine. TLS and allowed addresses are tested with the posts of webhooks.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::*;

const TIMEOUT: Duration = Duration::from_secs(10);

/// Starts a server that answers one request with `answer`. Returns its port and the head of the request.
async fn server(answer: String) -> (u16, JoinSet<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let mut requests = JoinSet::new();
    requests.spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let read = head(&mut stream).await;
        stream.write_all(answer.as_bytes()).await.expect("sent");
        stream.shutdown().await.expect("an end");
        read
    });
    (port, requests)
}

async fn head(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\n") {
        read.push(stream.read_u8().await.expect("a request"));
    }
    String::from_utf8(read).expect("text")
}

fn get(url: &str) -> Request<Vec<u8>> {
    Request::get(url).body(Vec::new()).expect("a request")
}

/// The body of an answer, of at most ten bytes.
async fn fetched(answer: String) -> Result<Bytes, ClientError> {
    let (port, _asked) = server(answer).await;
    let url = get(&format!("http://127.0.0.1:{port}/"));
    let fetched = HttpClient::new()
        .fetch(url, Route::Direct, TIMEOUT, 10)
        .await;
    fetched.map(Response::into_body)
}

#[tokio::test]
async fn the_head_and_the_body_of_an_answer_are_limited() {
    let of = |head: usize, body: usize| {
        let (head, text) = ("x".repeat(head), "x".repeat(body));
        format!("HTTP/1.1 200 OK\r\nx: {head}\r\ncontent-length: {body}\r\n\r\n{text}")
    };
    assert_eq!(fetched(of(8 * 1024, 10)).await.expect("it fits").len(), 10);
    let large = fetched(of(1, 11)).await;
    assert!(matches!(large, Err(ClientError::TooLarge(10))), "{large:?}");
    let long = fetched(of(HEAD_BYTES_MAX, 1)).await;
    assert!(matches!(long, Err(ClientError::Http(_))), "{long:?}");
}

#[tokio::test]
async fn the_body_counts_within_the_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let half = async {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        head(&mut stream).await;
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf";
        stream.write_all(head).await.expect("sent");
        std::future::pending::<()>().await;
    };
    let client = HttpClient::new();
    let url = get(&format!("http://127.0.0.1:{port}/"));
    let timeout = Duration::from_millis(200);
    tokio::select! {
        () = half => {}
        fetched = client.fetch(url, Route::Direct, timeout, 10) => {
            assert!(matches!(fetched, Err(ClientError::Timeout(_))), "{fetched:?}");
        }
    }
}

#[tokio::test]
async fn a_proxy_is_used_only_where_the_route_says_so() {
    let (port, mut requests) = server("HTTP/1.1 403 Forbidden\r\n\r\n".to_owned()).await;
    let proxies = Matcher::builder()
        .all(format!("http://127.0.0.1:{port}"))
        .build();
    let client = HttpClient {
        proxies: Arc::new(proxies),
        ..HttpClient::new()
    };
    let inside = get("https://nowhere.invalid/keys");
    let direct = client.send(inside.clone(), Route::Direct, TIMEOUT).await;
    assert!(matches!(direct, Err(ClientError::Connect(_))), "{direct:?}");
    let through = client.send(inside, Route::Proxied, TIMEOUT).await;
    assert!(
        matches!(through, Err(ClientError::Connect(_))),
        "{through:?}"
    );
    let request = requests.join_next().await.expect("one").expect("a request");
    assert!(
        request.starts_with("CONNECT nowhere.invalid:443 HTTP/1.1\r\n"),
        "{request}"
    );
}

#[tokio::test]
async fn an_address_that_is_not_allowed_gets_no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let none: Allowed = Arc::new(|_| false);
    for host in ["127.0.0.1", "localhost", "[::1]"] {
        let url = get(&format!("http://{host}:{port}/"));
        let sent = HttpClient::new()
            .send(url, Route::To(none.clone()), TIMEOUT)
            .await;
        assert!(
            matches!(&sent, Err(ClientError::Forbidden(name)) if name == host),
            "{sent:?}"
        );
    }
    let accepted = tokio::time::timeout(Duration::ZERO, listener.accept()).await;
    assert!(accepted.is_err(), "nobody came");
}

#[test]
fn a_host_is_this_machine_by_its_whole_name_or_address() {
    for host in ["localhost", "127.0.0.1", "127.8.0.1", "[::1]", "::1"] {
        assert!(is_loopback(host), "{host}");
    }
    for host in [
        "localhost.example.com",
        "127.0.0.1.example.com",
        "127.example.com",
        "10.0.0.1",
        "[::2]",
        "",
    ] {
        assert!(!is_loopback(host), "{host}");
    }
}
