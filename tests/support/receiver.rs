//! A webhook receiver on this machine: an HTTP server that responds by a script and records the requests.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// How long a message may take on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    headers: HeaderMap,
    text: String,
    pub(crate) body: Value,
}

impl Received {
    pub(crate) fn new(headers: HeaderMap, body: &[u8]) -> Received {
        let text = String::from_utf8(body.to_vec()).expect("text");
        Received {
            headers,
            body: serde_json::from_str(&text).expect("JSON"),
            text,
        }
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().expect("text")
    }

    pub(crate) fn id(&self) -> &str {
        self.header("webhook-id")
    }

    /// Whether the request is signed with the secret that the host returned.
    pub(crate) fn is_signed_with(&self, secret: &str) -> bool {
        let key = STANDARD
            .decode(secret.strip_prefix("whsec_").expect("a secret"))
            .expect("base64");
        self.is_signed_by(&key)
    }

    pub(crate) fn is_signed_by(&self, key: &[u8]) -> bool {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key");
        for part in [
            self.id(),
            ".",
            self.header("webhook-timestamp"),
            ".",
            &self.text,
        ] {
            mac.update(part.as_bytes());
        }
        let signature = STANDARD
            .decode(
                self.header("webhook-signature")
                    .strip_prefix("v1,")
                    .expect("version 1"),
            )
            .expect("base64");
        mac.verify_slice(&signature).is_ok()
    }
}

#[derive(Clone)]
struct Shared {
    script: Arc<Mutex<VecDeque<u16>>>,
    received: mpsc::UnboundedSender<Received>,
}

/// Answers with the statuses of its script, then with 200.
pub(crate) struct Receiver {
    pub(crate) url: String,
    script: Arc<Mutex<VecDeque<u16>>>,
    received: mpsc::UnboundedReceiver<Received>,
    _server: JoinSet<()>,
}

impl Receiver {
    pub(crate) async fn start() -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
        let (sender, received) = mpsc::unbounded_channel();
        let script = Arc::new(Mutex::new(VecDeque::new()));
        let shared = Shared {
            script: Arc::clone(&script),
            received: sender,
        };
        let router = Router::new()
            .route("/hook", post(answer))
            .with_state(shared);
        let mut server = JoinSet::new();
        server.spawn(async move {
            axum::serve(listener, router).await.expect("a server");
        });
        Receiver {
            url,
            script,
            received,
            _server: server,
        }
    }

    /// Sets the statuses of the next answers.
    pub(crate) fn answers(&self, statuses: &[u16]) {
        *self.script.lock().expect("a script") = statuses.iter().copied().collect();
    }

    pub(crate) async fn next(&mut self) -> Received {
        tokio::time::timeout(TIMEOUT, self.received.recv())
            .await
            .expect("a message in time")
            .expect("a server")
    }

    /// The recorded requests that were not taken yet.
    pub(crate) fn rest(&mut self) -> Vec<Received> {
        std::iter::from_fn(|| self.received.try_recv().ok()).collect()
    }
}

async fn answer(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let received = Received::new(headers, &body);
    let status = shared.script.lock().expect("a script").pop_front();
    shared
        .received
        .send(received)
        .expect("the test still uses the receiver");
    StatusCode::from_u16(status.unwrap_or(200)).expect("a status")
}
