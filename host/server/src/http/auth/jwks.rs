//! The cached keys of the identity provider.
//!
//! A token with an unknown key causes a fetch, because providers rotate keys. Many such tokens at once cause one fetch.
//! Invented key ids cause at most one fetch per interval. A request with a key that is no longer fresh waits for a fetch, so
//! a withdrawn key is not accepted again. While the provider does not answer, the last valid set is used for a limited time.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{Request, Uri};
use jiff::Timestamp;
use jsonwebtoken::{Algorithm, AlgorithmFamily};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio_util::task::TaskTracker;

use super::Key;
use super::error::AuthError;
use super::keys::KeySet;
use super::settings::KeyAges;
use wrkflw_runtime::clock::Clock;
use wrkflw_runtime::http_client::{HttpClient, Route, is_loopback};

/// The timeout of a fetch, from the name's resolution to the last byte.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a request waits for a fetch. After that, the host uses the known keys, so that a provider that does not answer slows
/// down few requests.
const WAIT_MAX: Duration = Duration::from_secs(2);
/// The largest response that is read.
const ANSWER_BYTES_MAX: usize = 256 * 1024;

/// The key set at a URL.
pub(super) struct Jwks {
    url: Uri,
    route: Route,
    ages: KeyAges,
    client: HttpClient,
    clock: Clock,
    cached: RwLock<CachedKeys>,
    /// The task that holds it fetches. The others wait for the result.
    fetching: Arc<Mutex<()>>,
}

/// The keys with the time of their request, and the last attempt to fetch them.
#[derive(Default)]
struct CachedKeys {
    keys: Option<(Arc<KeySet>, Timestamp)>,
    attempt: Option<FetchAttempt>,
}

#[derive(Clone, Copy)]
struct FetchAttempt {
    at: Timestamp,
    succeeded: bool,
}

/// The key for a token, as the cache has it.
enum KeyLookup {
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
            cached: RwLock::default(),
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
        if let KeyLookup::Fresh(key) = self.look(id, algorithm) {
            return Ok(key);
        }
        let renewing = tokio::time::timeout(WAIT_MAX, self.renew(id, algorithm));
        let is_over = renewing.await.is_ok();
        match self.look(id, algorithm) {
            KeyLookup::Fresh(key) | KeyLookup::Stale(key) => Ok(key),
            KeyLookup::Missing if is_over && self.has_failed() == Some(false) => {
                Err(AuthError::Untrusted)
            }
            KeyLookup::Missing => Err(AuthError::Unavailable),
        }
    }

    /// Fetches the keys, or waits for the task that fetches them. After a failure, only the task that tries again waits.
    async fn renew(self: &Arc<Jwks>, id: Option<&str>, algorithm: Algorithm) {
        let turn = match Arc::clone(&self.fetching).try_lock_owned() {
            Ok(turn) => turn,
            Err(_) if self.has_failed() == Some(true) => return,
            Err(_) => Arc::clone(&self.fetching).lock_owned().await,
        };
        if matches!(self.look(id, algorithm), KeyLookup::Fresh(_)) {
            return;
        }
        // If the task panicked, the keys are unchanged.
        if let Some(fetch) = self.fetch(turn) {
            fetch.await.ok();
        }
    }

    /// Whether the last fetch failed. None if there was none.
    fn has_failed(&self) -> Option<bool> {
        self.last_attempt().map(|attempt| !attempt.succeeded)
    }

    fn look(&self, id: Option<&str>, algorithm: Algorithm) -> KeyLookup {
        let cached = self.cached.read().unwrap_or_else(PoisonError::into_inner);
        let Some((keys, fetched_at)) = &cached.keys else {
            return KeyLookup::Missing;
        };
        let age = self.since(*fetched_at);
        match keys.find(id, algorithm) {
            Some(key) if age <= self.ages.fresh => KeyLookup::Fresh(Arc::clone(key)),
            Some(key) if age <= self.ages.kept_max => KeyLookup::Stale(Arc::clone(key)),
            _ => KeyLookup::Missing,
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
        let mut cached = self.cached.write().unwrap_or_else(PoisonError::into_inner);
        cached.attempt = Some(FetchAttempt {
            at: begun,
            succeeded: fetched.is_ok(),
        });
        match fetched {
            Ok(keys) => cached.keys = Some((Arc::new(keys), begun)),
            Err(error) => tracing::warn!(
                url = %self.url,
                error,
                "the keys of the identity provider could not be fetched"
            ),
        }
    }

    fn last_attempt(&self) -> Option<FetchAttempt> {
        self.cached
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .attempt
    }

    /// The absolute difference: if the clock is set back, keys must not stay fresh until it has caught up.
    fn since(&self, then: Timestamp) -> Duration {
        self.clock.now().duration_since(then).unsigned_abs()
    }
}
