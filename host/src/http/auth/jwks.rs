//! The identity provider's keys: fetched when needed, kept while they are good.
//!
//! A token whose key is unknown causes a fetch, since providers rotate keys; many at once cause one, and a stream of
//! invented key ids no more than one per interval. While the provider is silent the last good set goes on serving, for
//! a bounded time: a key that was withdrawn must not live for ever.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::http::Uri;
use jiff::Timestamp;
use jsonwebtoken::{Algorithm, AlgorithmFamily};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::error::AuthError;
use super::keys::{Key, KeySet};
use super::settings::{KeyAges, is_loopback};
use crate::clock::Clock;

/// One fetch, from the name's resolution to the last byte.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
/// The largest answer that is read.
const ANSWER_BYTES_MAX: u64 = 256 * 1024;

/// The key set at a URL.
pub(super) struct Jwks {
    url: String,
    ages: KeyAges,
    agent: ureq::Agent,
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
        let on_this_machine = url
            .parse::<Uri>()
            .is_ok_and(|url| url.host().is_some_and(is_loopback));
        let mut config = ureq::Agent::config_builder()
            .timeout_global(Some(FETCH_TIMEOUT))
            .https_only(!on_this_machine)
            .max_redirects(0)
            .max_idle_connections(0);
        if on_this_machine {
            config = config.proxy(None);
        }
        Arc::new(Jwks {
            url: url.to_owned(),
            ages,
            agent: config.build().new_agent(),
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
        Some(tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let fetched = jwks.download().and_then(|answer| KeySet::parse(&answer));
            jwks.keep(fetched, begun);
        }))
    }

    fn download(&self) -> Result<Vec<u8>, String> {
        let mut response = self
            .agent
            .get(&self.url)
            .call()
            .map_err(|error| error.to_string())?;
        let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX);
        body.read_to_vec().map_err(|error| error.to_string())
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
                url = self.url,
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
