//! One POST against receivers of its own: over TLS, with redirects, without answers, at forbidden addresses.

use std::path::PathBuf;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

use super::*;

const TIMEOUT: Duration = Duration::from_secs(10);

fn message() -> Message {
    Message {
        id: "m-1".into(),
        timestamp: "1".into(),
        signature: "v1,x".into(),
        body: "{}".into(),
    }
}

fn settings(reach: AllowedAddresses) -> Settings {
    Settings {
        reach,
        timeout: TIMEOUT,
        ..Settings::default()
    }
}

/// Reads the head and the two bytes of the body, and sends `answer`.
async fn serve<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, answer: &str) -> String {
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\n{}") {
        let mut buffer = [0; 1024];
        let count = stream.read(&mut buffer).await.expect("a request");
        assert!(count > 0, "the request ends early");
        read.extend_from_slice(&buffer[..count]);
    }
    stream
        .write_all(answer.as_bytes())
        .await
        .expect("an answer");
    stream.shutdown().await.expect("an end");
    String::from_utf8(read).expect("text")
}

/// A receiver that answers one request with `answer`: its port, and the request.
async fn receiver(answer: &'static str) -> (u16, JoinSet<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let mut requests = JoinSet::new();
    requests.spawn(async move {
        let (stream, _) = listener.accept().await.expect("a connection");
        serve(stream, answer).await
    });
    (port, requests)
}

fn url(text: &str) -> Url {
    Url::parse(text).expect("a URL")
}

#[tokio::test]
async fn a_post_has_the_documented_form_and_redirects_are_not_followed() {
    let (port, mut requests) =
        receiver("HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n").await;
    let client = Post::new(&settings(AllowedAddresses::Private)).expect("settings");
    let status = client
        .send(
            &url(&format!("http://127.0.0.1:{port}/hook?key=1")),
            message(),
        )
        .await;
    assert_eq!(status.expect("a status"), 302);
    let request = requests.join_next().await.expect("one").expect("a request");
    assert!(
        request.starts_with("POST /hook?key=1 HTTP/1.1\r\n"),
        "{request}"
    );
    for header in [
        &*format!("host: 127.0.0.1:{port}"),
        "content-type: application/cloudevents+json; charset=UTF-8",
        "webhook-id: m-1",
        "webhook-timestamp: 1",
        "webhook-signature: v1,x",
        "content-length: 2",
    ] {
        assert!(
            request.lines().any(|line| line == header),
            "{header} in {request}"
        );
    }
}

#[tokio::test]
async fn names_are_looked_up_and_their_addresses_checked() {
    let (port, mut requests) = receiver("HTTP/1.1 204 No Content\r\n\r\n").await;
    let inside = url(&format!("https://localhost:{port}/"));
    let client = Post::new(&settings(AllowedAddresses::Public)).expect("settings");
    let refused = client
        .send(&inside, message())
        .await
        .expect_err("a refusal");
    assert!(matches!(refused, PostError::Forbidden(_)), "{refused}");
    let inside = url(&format!("http://localhost:{port}/"));
    let refused = client
        .send(&inside, message())
        .await
        .expect_err("a refusal");
    assert!(matches!(refused, PostError::Forbidden(_)), "{refused}");
    let client = Post::new(&settings(AllowedAddresses::Private)).expect("settings");
    assert_eq!(
        client.send(&inside, message()).await.expect("a status"),
        204
    );
    requests.join_next().await.expect("one").expect("a request");
}

#[tokio::test]
async fn a_response_is_awaited_only_until_the_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let hasty = Settings {
        timeout: Duration::from_millis(50),
        ..settings(AllowedAddresses::Private)
    };
    let client = Post::new(&hasty).expect("settings");
    let silent = client
        .send(&url(&format!("http://127.0.0.1:{port}/")), message())
        .await;
    assert!(
        matches!(silent, Err(PostError::Client(ClientError::Timeout(_)))),
        "{silent:?}"
    );
    drop(listener);
    let closed = Post::new(&settings(AllowedAddresses::Private)).expect("settings");
    let refused = closed
        .send(&url(&format!("http://127.0.0.1:{port}/")), message())
        .await;
    assert!(
        matches!(refused, Err(PostError::Client(ClientError::Connect(_)))),
        "{refused:?}"
    );
}

#[tokio::test]
async fn an_endless_response_head_is_cut_off() {
    let endless: &'static str = format!("HTTP/1.1 200 OK\r\nx: {}", "x".repeat(64 * 1024)).leak();
    let (port, _asked) = receiver(endless).await;
    let client = Post::new(&settings(AllowedAddresses::Private)).expect("settings");
    let cut = client
        .send(&url(&format!("http://127.0.0.1:{port}/")), message())
        .await;
    assert!(
        matches!(cut, Err(PostError::Client(ClientError::Http(_)))),
        "{cut:?}"
    );
}

/// A receiver over TLS that answers one request, and the file with its self-signed certificate.
async fn receiver_over_tls() -> (u16, PathBuf, JoinSet<Option<String>>) {
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let file = std::env::temp_dir().join(format!("{}.pem", wrkflw_runtime::clock::new_id()));
    std::fs::write(&file, cert.pem()).expect("a file");
    let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key.into())
        .expect("a certificate with its key");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let mut requests = JoinSet::new();
    requests.spawn(async move {
        let (stream, _) = listener.accept().await.expect("a connection");
        let stream = TlsAcceptor::from(Arc::new(config))
            .accept(stream)
            .await
            .ok()?;
        Some(serve(stream, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await)
    });
    (port, file, requests)
}

#[tokio::test]
async fn tls_requires_a_trusted_certificate_for_the_host_name() {
    for (host, is_trusted, is_accepted) in [
        ("localhost", true, true),
        ("localhost", false, false),
        ("127.0.0.1", true, false),
    ] {
        let (port, file, mut requests) = receiver_over_tls().await;
        let settings = Settings {
            ca_file: is_trusted.then(|| file.clone()),
            ..settings(AllowedAddresses::Private)
        };
        let client = Post::new(&settings).expect("settings");
        let target = url(&format!("https://{host}:{port}/"));
        let sent = client.send(&target, message()).await;
        let request = requests.join_next().await.expect("one").expect("an end");
        assert_eq!(request.is_some(), is_accepted, "{host}");
        match sent {
            Ok(status) => assert!(is_accepted && status == 200, "{host}: {status}"),
            Err(error) => assert!(
                !is_accepted && matches!(error, PostError::Client(ClientError::Tls(_))),
                "{error}"
            ),
        }
        std::fs::remove_file(file).expect("a file");
    }
}

#[test]
fn a_file_without_certificates_is_refused() {
    for path in ["/nowhere/ca.pem", "/dev/null"] {
        let wrong = Settings {
            ca_file: Some(path.into()),
            ..Settings::default()
        };
        let error = Post::new(&wrong).expect_err("no certificates").to_string();
        assert!(
            error.starts_with(&format!("webhook_ca_file {path}: ")),
            "{error}"
        );
    }
}
