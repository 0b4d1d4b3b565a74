//! A service for flows, on this machine: an HTTP server that responds by a script and records the requests.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use wrkflw_engine::services::{Service, Services};
use wrkflw_runtime::http_client::HttpClient;

use super::receiver::Received;

/// How long a test waits for a request on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(30);
/// A chunk of an endless body.
const CHUNK: &str = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
/// The secrets of the service.
pub(crate) const TOKEN: &str = "s3cret";
pub(crate) const KEY: &[u8] = b"a key of sixteen";

/// How the service answers.
#[derive(Debug, Clone)]
pub(crate) enum Says {
    /// 200 with this body.
    Reply(Value),
    /// 200 with this body, once the test opens the gate.
    Gated(Value),
    /// This status, with these headers and this body.
    Status(u16, &'static [(&'static str, &'static str)], String),
    /// 200 and an endless body.
    Endless,
    /// 200 and a body that is sent slowly, byte by byte.
    Slow,
    Nothing,
}

impl Says {
    pub(crate) fn status(code: u16) -> Says {
        Says::Status(code, &[], String::new())
    }

    /// A good reply.
    pub(crate) fn score(score: f64) -> Says {
        let output = json!({ "score": score });
        Says::Reply(json!({ "output": output, "model": "scorer", "modelVersion": "7" }))
    }
}

#[derive(Clone)]
struct Shared {
    script: Arc<Mutex<VecDeque<Says>>>,
    /// Whether every first attempt fails.
    fails_first: Arc<AtomicBool>,
    gate: Arc<Semaphore>,
    received: mpsc::UnboundedSender<Received>,
}

/// Responds by its script, then with a good reply.
pub(crate) struct Machine {
    pub(crate) url: String,
    shared: Shared,
    received: mpsc::UnboundedReceiver<Received>,
    _server: JoinSet<()>,
}

impl Machine {
    pub(crate) async fn start() -> Machine {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!(
            "http://{}/score",
            listener.local_addr().expect("an address")
        );
        let (sender, received) = mpsc::unbounded_channel();
        let shared = Shared {
            script: Arc::default(),
            fails_first: Arc::default(),
            gate: Arc::new(Semaphore::new(0)),
            received: sender,
        };
        let router = Router::new()
            .fallback(any(answer))
            .with_state(shared.clone());
        let mut server = JoinSet::new();
        server.spawn(async move {
            axum::serve(listener, router).await.expect("a server");
        });
        Machine {
            url,
            shared,
            received,
            _server: server,
        }
    }

    /// Sets the next answers.
    pub(crate) fn says(&self, answers: impl IntoIterator<Item = Says>) {
        *self.shared.script.lock().expect("a script") = answers.into_iter().collect();
    }

    /// Lets every first attempt fail.
    pub(crate) fn fails_first(&self) {
        self.shared.fails_first.store(true, Ordering::Relaxed);
    }

    /// Lets so many gated answers pass.
    pub(crate) fn open(&self, count: usize) {
        self.shared.gate.add_permits(count);
    }

    pub(crate) async fn next(&mut self) -> Received {
        tokio::time::timeout(TIMEOUT, self.received.recv())
            .await
            .expect("a request in time")
            .expect("a server")
    }

    /// The recorded requests that were not taken yet.
    pub(crate) fn rest(&mut self) -> Vec<Received> {
        std::iter::from_fn(|| self.received.try_recv().ok()).collect()
    }

    /// The settings of a host with this service as `machine`.
    pub(crate) fn services(&self, calls_max: usize) -> Services {
        let machine = Service::new(&self.url, Some(TOKEN.to_owned()), Some(KEY.to_vec()));
        let machine = machine.expect("a service");
        let by_name = BTreeMap::from([("machine".to_owned(), machine)]);
        Services::new(by_name, HttpClient::new(), calls_max)
    }
}

async fn answer(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    let scripted = shared.script.lock().expect("a script").pop_front();
    let received = Received::new(headers, &body);
    if shared.fails_first.load(Ordering::Relaxed) && received.body["attempt"] == 1 {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    // The test may have ended.
    drop(shared.received.send(received));
    let chunk = |text: &'static str| Ok::<_, Infallible>(Bytes::from_static(text.as_bytes()));
    match scripted.unwrap_or_else(|| Says::score(0.5)) {
        Says::Reply(body) => axum::Json(body).into_response(),
        Says::Gated(body) => {
            let permit = shared.gate.acquire().await;
            permit.expect("the gate is never closed").forget();
            axum::Json(body).into_response()
        }
        Says::Status(code, headers, body) => {
            let status = StatusCode::from_u16(code).expect("a status");
            let mut response = (status, body).into_response();
            for (name, value) in headers {
                let value = value.parse().expect("a value");
                response.headers_mut().insert(*name, value);
            }
            response
        }
        Says::Endless => {
            let chunks = futures_util::stream::repeat_with(move || chunk(CHUNK));
            Body::from_stream(chunks).into_response()
        }
        Says::Slow => {
            let chunks = futures_util::stream::unfold((), move |()| async move {
                tokio::time::sleep(Duration::from_millis(50)).await;
                Some((chunk(" "), ()))
            });
            Body::from_stream(chunks).into_response()
        }
        Says::Nothing => std::future::pending().await,
    }
}
