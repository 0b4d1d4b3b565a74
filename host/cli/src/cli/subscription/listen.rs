//! `wrkflw subscription listen`: a receiver of webhooks on this machine, which verifies signatures and prints the events.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;

use crate::cli::digits;
use crate::cli::failure::{Exit, Failure};
use crate::cli::output::{Column, Output};
use wrkflw_runtime::clock::Clock;
use wrkflw_runtime::signature::is_signed;

/// Connections that are served at a time.
const CONNECTIONS_MAX: usize = 16;
/// The largest body that is read.
const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How old or new a message may be, in seconds. An older one may be a replay by somebody who recorded it.
const AGE_SECONDS_MAX: i64 = 300;
/// How long the last responses may take.
const END_WITHIN: Duration = Duration::from_secs(2);
/// The prefix of secrets.
const SECRET_PREFIX: &str = "whsec_";

const EVENT: &[Column] = &[
    ("", "/time"),
    ("", "/type"),
    ("", "/subject"),
    ("", "/data"),
];

#[derive(Debug, Args)]
pub(in crate::cli) struct ListenArgs {
    /// Port on this machine; 0 takes any free port
    #[arg(long, default_value_t = 9000)]
    port: u16,
    /// File with the secret of the subscription, `whsec_...`
    #[arg(long, value_name = "FILE")]
    secret_file: PathBuf,
    /// Stop after this number of events
    #[arg(long, value_name = "COUNT")]
    limit: Option<u64>,
}

/// An event, or why a request was refused.
type ReceivedEvent = Result<Value, String>;

pub(in crate::cli) fn run(args: &ListenArgs, output: Output) -> Result<()> {
    let file = args.secret_file.display();
    let text = std::fs::read_to_string(&args.secret_file)
        .with_context(|| format!("the secret cannot be read from {file}"))?;
    let secret = text.trim().strip_prefix(SECRET_PREFIX);
    let secret = secret.and_then(|secret| STANDARD.decode(secret).ok());
    let Some(secret) = secret else {
        let detail = format!("{file} has no secret: it is `{SECRET_PREFIX}` and base64");
        return Err(Failure::new(Exit::Failed, detail).into());
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(listen(args, secret.into(), output))
}

async fn listen(args: &ListenArgs, secret: Arc<[u8]>, output: Output) -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).await;
    let listener = listener.with_context(|| format!("port {} is not free", args.port))?;
    output.hint(&format!("listening on http://{}/", listener.local_addr()?));
    let (sender, mut events) = mpsc::channel::<ReceivedEvent>(CONNECTIONS_MAX);
    let (places, mut connections) = (Arc::new(Semaphore::new(CONNECTIONS_MAX)), JoinSet::new());
    let mut remaining = args.limit.unwrap_or(u64::MAX);
    while remaining > 0 {
        tokio::select! {
            Some(event) = events.recv() => match event {
                Ok(event) => {
                    output.line(&event, EVENT)?;
                    remaining -= 1;
                }
                Err(reason) => Output::warn(&reason),
            },
            Some(_) = connections.join_next() => {}
            accepted = accept(&listener, &places) => {
                let (stream, place) = accepted?;
                connections.spawn(serve(stream, secret.clone(), sender.clone(), seconds, place));
            }
        }
    }
    // The senders get their responses.
    let ended = async { while connections.join_next().await.is_some() {} };
    tokio::time::timeout(END_WITHIN, ended).await.ok();
    Ok(())
}

fn seconds() -> i64 {
    Clock::System.now().as_second()
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> std::io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await;
    let place = place.expect("the semaphore is never closed");
    Ok((listener.accept().await?.0, place))
}

/// Answers one request.
async fn serve(
    stream: TcpStream,
    secret: Arc<[u8]>,
    sender: mpsc::Sender<ReceivedEvent>,
    now: fn() -> i64,
    _place: OwnedSemaphorePermit,
) {
    let service = service_fn(|request| {
        let (secret, sender) = (secret.clone(), sender.clone());
        async move {
            let received = received(request, &secret, now()).await;
            let status = received
                .as_ref()
                .err()
                .map_or(StatusCode::NO_CONTENT, |(status, _)| *status);
            let received =
                received.map_err(|(status, reason)| format!("answered {status}: {reason}"));
            // After the last event, nothing reads the channel any more.
            sender.send(received).await.ok();
            let mut response = Response::new(Empty::<Bytes>::new());
            *response.status_mut() = status;
            Ok::<_, Infallible>(response)
        }
    });
    let connection = http1::Builder::new()
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    // The sender ended the connection.
    connection.await.ok();
}

/// The event of a request that arrived at `now`, in seconds of the Unix epoch.
async fn received(
    request: Request<Incoming>,
    secret: &[u8],
    now: i64,
) -> Result<Value, (StatusCode, String)> {
    let refused = |status, reason: &str| Err((status, reason.to_owned()));
    if request.method() != Method::POST {
        return refused(StatusCode::METHOD_NOT_ALLOWED, "webhooks are posted");
    }
    let header = |name: &str| {
        let value = request.headers().get(name)?;
        value.to_str().ok().map(str::to_owned)
    };
    let signed = (
        header("webhook-id"),
        header("webhook-timestamp"),
        header("webhook-signature"),
    );
    let (Some(id), Some(timestamp), Some(signature)) = signed else {
        return refused(StatusCode::UNAUTHORIZED, "the request is not signed");
    };
    let body = Limited::new(request.into_body(), BODY_BYTES_MAX)
        .collect()
        .await;
    let Ok(body) = body else {
        return refused(
            StatusCode::PAYLOAD_TOO_LARGE,
            "the body is too large, or broke off",
        );
    };
    let body = body.to_bytes();
    if !is_signed(secret, &id, &timestamp, &body, &signature) {
        return refused(
            StatusCode::UNAUTHORIZED,
            "the signature is wrong: is it the secret of this subscription?",
        );
    }
    let is_recent = |sent: i64| sent.abs_diff(now) <= AGE_SECONDS_MAX.unsigned_abs();
    if !timestamp.parse().is_ok_and(is_recent) {
        return refused(
            StatusCode::UNAUTHORIZED,
            "the message is older than five minutes",
        );
    }
    digits::parse(&body).or_else(|_| refused(StatusCode::BAD_REQUEST, "the body is no JSON"))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Signed at that time with the key `key`.
    const SENT: i64 = 1_700_000_000;
    const SIGNATURE: &str = "v1,KSgv0SSgWzG5LPnm9tfWJRfBlWqAqHz+OlObgspQi/g=";

    /// The first line of the response, and the received event.
    async fn answered(request: String, now: fn() -> i64) -> (String, ReceivedEvent) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("a port");
        let address = listener.local_addr().expect("an address");
        let (sender, mut events) = mpsc::channel(1);
        let places = Arc::new(Semaphore::new(1));
        let mut client = TcpStream::connect(address).await.expect("a connection");
        client.write_all(request.as_bytes()).await.expect("sent");
        let (stream, place) = accept(&listener, &places).await.expect("a connection");
        serve(stream, b"key"[..].into(), sender, now, place).await;
        let mut response = String::new();
        client
            .read_to_string(&mut response)
            .await
            .expect("a response");
        let status = response.lines().next().unwrap_or_default().to_owned();
        (status, events.recv().await.expect("something is received"))
    }

    fn posted(signature: &str, body: &str) -> String {
        let length = body.len();
        format!(
            "POST / HTTP/1.1\r\nhost: x\r\nwebhook-id: msg_1\r\nwebhook-timestamp: {SENT}\r\nwebhook-signature: {signature}\r\n\
             content-length: {length}\r\n\r\n{body}"
        )
    }

    #[tokio::test]
    async fn a_signed_event_is_accepted_and_nothing_else() {
        let body = r#"{"a":1}"#;
        let (status, event) = answered(posted(SIGNATURE, body), || SENT + 10).await;
        assert_eq!(status, "HTTP/1.1 204 No Content");
        assert_eq!(event, Ok(serde_json::json!({"a": 1})));
        for (request, now, expected, words) in [
            (posted("v1,AAAA", body), SENT, 401, "the signature is wrong"),
            (
                posted(SIGNATURE, r#"{"a":2}"#),
                SENT,
                401,
                "the signature is wrong",
            ),
            (
                posted(SIGNATURE, body),
                SENT + 301,
                401,
                "older than five minutes",
            ),
            (
                "GET / HTTP/1.1\r\nhost: x\r\n\r\n".into(),
                SENT,
                405,
                "are posted",
            ),
            (
                "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n".into(),
                SENT,
                401,
                "not signed",
            ),
        ] {
            let now: fn() -> i64 = if now == SENT { || SENT } else { || SENT + 301 };
            let (status, event) = answered(request, now).await;
            assert!(status.contains(&expected.to_string()), "{status}");
            let reason = event.expect_err("refused");
            assert!(reason.contains(words), "{reason}");
        }
    }
}
