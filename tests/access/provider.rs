//! An identity provider on this machine whose answers a test sets: keys, errors, malformed data, too much data, or nothing.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use futures_util::stream;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::TIMEOUT;
use super::signer::Signer;

/// The present answer of the provider.
#[derive(Clone)]
pub(super) enum Answer {
    Text(String),
    Status(u16),
    Redirect(String),
    /// A body that never ends.
    Endless,
    /// Nothing, as long as the client waits.
    Silence,
}

struct Shared {
    answer: Mutex<Answer>,
    asked: watch::Sender<usize>,
    elsewhere: AtomicUsize,
}

/// Publishes keys on a loopback port until it is dropped.
pub(super) struct Provider {
    shared: Arc<Shared>,
    pub(super) url: String,
    /// The target of redirects.
    pub(super) elsewhere: String,
    _server: JoinSet<()>,
}

impl Provider {
    pub(super) async fn start(signers: &[&Signer]) -> Provider {
        let shared = Arc::new(Shared {
            answer: Mutex::new(Answer::Text(set(signers))),
            asked: watch::Sender::new(0),
            elsewhere: AtomicUsize::new(0),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let router = Router::new()
            .route("/keys", get(keys))
            .route("/elsewhere", get(elsewhere))
            .with_state(Arc::clone(&shared));
        let mut server = JoinSet::new();
        server.spawn(async move { axum::serve(listener, router).await.expect("a server") });
        Provider {
            shared,
            url: format!("http://{address}/keys"),
            elsewhere: format!("http://{address}/elsewhere"),
            _server: server,
        }
    }

    /// Sets the next answers.
    pub(super) fn answer(&self, answer: Answer) {
        *self.shared.answer.lock().expect("no panic") = answer;
    }

    pub(super) fn publish(&self, signers: &[&Signer]) {
        self.answer(Answer::Text(set(signers)));
    }

    /// The number of requests for the keys.
    pub(super) fn hits(&self) -> usize {
        *self.shared.asked.borrow()
    }

    /// The number of requests to the target of redirects.
    pub(super) fn followed(&self) -> usize {
        self.shared.elsewhere.load(Ordering::SeqCst)
    }

    /// Waits until the keys were requested this many times.
    pub(super) async fn asked(&self, times: usize) {
        let mut asked = self.shared.asked.subscribe();
        let asked = asked.wait_for(|count| *count >= times);
        let waited = tokio::time::timeout(TIMEOUT, asked).await;
        waited.expect("the keys are requested").expect("a sender");
    }
}

/// A JWK set.
pub(super) fn set(signers: &[&Signer]) -> String {
    let keys: Vec<_> = signers.iter().map(|signer| signer.jwk.clone()).collect();
    json!({ "keys": keys }).to_string()
}

async fn keys(State(shared): State<Arc<Shared>>) -> Response {
    shared.asked.send_modify(|count| *count += 1);
    let answer = shared.answer.lock().expect("no panic").clone();
    match answer {
        Answer::Text(text) => text.into_response(),
        Answer::Status(status) => StatusCode::from_u16(status)
            .expect("a status")
            .into_response(),
        Answer::Redirect(place) => (StatusCode::FOUND, [(header::LOCATION, place)]).into_response(),
        Answer::Endless => {
            let chunk = || Ok::<_, std::convert::Infallible>(Bytes::from_static(&[b' '; 4096]));
            let endless = stream::unfold((), move |()| async move { Some((chunk(), ())) });
            Body::from_stream(endless).into_response()
        }
        Answer::Silence => std::future::pending().await,
    }
}

async fn elsewhere(State(shared): State<Arc<Shared>>) -> StatusCode {
    shared.elsewhere.fetch_add(1, Ordering::SeqCst);
    StatusCode::OK
}
