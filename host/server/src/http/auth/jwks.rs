//! The identity provider's keys: fetched when needed, kept while they are good.
//!
//! A token whose key is unknown causes a fetch, since providers rotate keys; many at once cause one, and a stream of
//! invented key ids no more than one per interval. While the provider is silent the last good set goes on serving, for
//! a bounded time: a key that was withdrawn must not live for ever.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{Request, Uri};
use jiff::Timestamp;
use jsonwebtoken::{Algorithm, AlgorithmFamily};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio_util::task::TaskTracker;

use super::error::AuthError;
use super::keys::{Key, KeySet};
use super::settings::{KeyAges, is_loopback};
use wrkflw_runtime::clock::Clock;
use wrkflw_runtime::http_client::{HttpClient, Route};

/// One fetch, from the name's resolution to the last byte.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
/// The largest answer that is read.
const ANSWER_BYTES_MAX: usize = 256 * 1024;

/// The key set at a URL.
pub(super) struct Jwks {
    url: Uri,
    route: Route,
    ages: KeyAges,
    client: HttpClient,
    clock: Clock,
    held: RwLock<Held>,
    /// Whoever holds it fetches; the others wait for the outcome.
    fetching: Arc<Mutex<()>>,
}

#[derive(Default)]
struct Held {
    keys: Option<(Arc<KeySet>, Timestamp)>,
    attempt: Option<Attempt>,
}

#[derive(Clone, Copy)]
struct Attempt {
    at: Timestamp,
    succeeded: bool,
}

enum Found {
    Fresh(Arc<Key>),
    Stale(Arc<Key>),
    Missing,
}

impl Jwks {
    /// `url` has been checked.
    pub(super) fn new(url: &str, ages: KeyAges, clock: Clock) -> Arc<Jwks> {
        let url: Uri = url.parse().expect("a URL that was checked");
        let route = if url.host().is_some_and(is_loopback) {
            Route::Direct
        } else {
            Route::Proxied
        };
        Arc::new(Jwks {
            url,
            route,
            ages,
            client: HttpClient::new(),
            clock,
            held: RwLock::default(),
            fetching: Arc::default(),
        })
    }

    /// The key to verify a token with that names `id` and `algorithm`.
    pub(super) async fn key(
        self: &Arc<Jwks>,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<Arc<Key>, AuthError> {
        // No public set holds a secret, so there is nothing to ask the provider for.
        if algorithm.family() == AlgorithmFamily::Hmac {
            return Err(AuthError::Untrusted);
        }
        match self.look(id, algorithm) {
            Found::Fresh(key) => return Ok(key),
            Found::Stale(key) => {
                if let Ok(turn) = Arc::clone(&self.fetching).try_lock_owned() {
                    drop(self.fetch(turn));
                }
                return Ok(key);
            }
            Found::Missing => {}
        }
        let turn = Arc::clone(&self.fetching).lock_owned().await;
        if let Found::Fresh(key) | Found::Stale(key) = self.look(id, algorithm) {
            return Ok(key);
        }
        // A task that panicked has kept nothing: what is held answers.
        if let Some(fetch) = self.fetch(turn) {
            fetch.await.ok();
        }
        match self.look(id, algorithm) {
            Found::Fresh(key) | Found::Stale(key) => Ok(key),
            Found::Missing if self.last_attempt().is_some_and(|attempt| attempt.succeeded) => {
                Err(AuthError::Untrusted)
            }
            Found::Missing => Err(AuthError::Unavailable),
        }
    }

    fn look(&self, id: Option<&str>, algorithm: Algorithm) -> Found {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        let Some((keys, fetched_at)) = &held.keys else {
            return Found::Missing;
        };
        let age = self.since(*fetched_at);
        match keys.find(id, algorithm) {
            Some(key) if age <= self.ages.fresh => Found::Fresh(Arc::clone(key)),
            Some(key) if age <= self.ages.kept_max => Found::Stale(Arc::clone(key)),
            _ => Found::Missing,
        }
    }

    /// Fetches unless the last attempt is too young. The turn ends with the fetch, even if the caller has left.
    fn fetch(self: &Arc<Jwks>, turn: OwnedMutexGuard<()>) -> Option<tokio::task::JoinHandle<()>> {
        if self
            .last_attempt()
            .is_some_and(|attempt| self.since(attempt.at) < self.ages.interval_min)
        {
            return None;
        }
        let (jwks, begun) = (Arc::clone(self), self.clock.now());
        Some(TaskTracker::new().spawn(async move {
            let _turn = turn;
            let downloaded = jwks.download().await;
            jwks.keep(downloaded.and_then(|answer| KeySet::parse(&answer)), begun);
        }))
    }

    async fn download(&self) -> Result<Bytes, String> {
        let request = Request::get(&self.url).body(Vec::new());
        let request = request.map_err(|error| error.to_string())?;
        let route = self.route.clone();
        let fetched = self
            .client
            .fetch(request, route, FETCH_TIMEOUT, ANSWER_BYTES_MAX)
            .await;
        let response = fetched.map_err(|error| error.to_string())?;
        match response.status() {
            status if status.is_success() => Ok(response.into_body()),
            status => Err(format!("the answer is {status}")),
        }
    }

    /// The keys are as old as the question that they answer, however long the answer took.
    fn keep(&self, fetched: Result<KeySet, String>, begun: Timestamp) {
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        held.attempt = Some(Attempt {
            at: begun,
            succeeded: fetched.is_ok(),
        });
        match fetched {
            Ok(keys) => held.keys = Some((Arc::new(keys), begun)),
            Err(error) => tracing::warn!(
                url = %self.url,
                error,
                "the keys of the identity provider could not be fetched"
            ),
        }
    }

    fn last_attempt(&self) -> Option<Attempt> {
        self.held
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .attempt
    }

    /// Absolute, so that a clock set back cannot make keys young for as long as it was wrong.
    fn since(&self, then: Timestamp) -> Duration {
        self.clock.now().duration_since(then).unsigned_abs()
    }
}
