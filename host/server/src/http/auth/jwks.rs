//! The cached keys of the identity provider.
//!
//! A token with an unknown key causes a fetch, because providers rotate keys. Many such tokens at once cause one fetch,
//! and invented key ids at most one per interval. While the provider does not answer, the last good set is used for a
//! limited time: a withdrawn key must not stay valid forever.

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
use super::settings::KeyAges;
use wrkflw_runtime::clock::Clock;
use wrkflw_runtime::http_client::{HttpClient, Route, is_loopback};

/// The timeout of a fetch, from the name's resolution to the last byte.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
/// The largest response that is read.
const ANSWER_BYTES_MAX: usize = 256 * 1024;

/// The key set at a URL.
pub(super) struct Jwks {
    url: Uri,
    route: Route,
    ages: KeyAges,
    client: HttpClient,
    clock: Clock,
    held: RwLock<Held>,
    /// The task that holds it fetches. The others wait for the result.
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
    /// `url` must be valid.
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

    /// The key for tokens with this key id and algorithm.
    pub(super) async fn key(
        self: &Arc<Jwks>,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<Arc<Key>, AuthError> {
        // A public set has no secret keys, so a fetch cannot help.
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
        // If the task panicked, the keys are unchanged.
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

    /// Fetches unless the last attempt is too recent. The fetch holds `turn` to its end, even if the caller is dropped.
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

    /// Stores the keys. Their age counts from the begin of the request.
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

    /// The absolute difference: if the clock is set back, keys must not seem fresh for that long.
    fn since(&self, then: Timestamp) -> Duration {
        self.clock.now().duration_since(then).unsigned_abs()
    }
}
