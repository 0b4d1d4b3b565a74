//! A caller over HTTP. If a host does not answer, the caller does not know whether the command took effect.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::Value;
use wrkflw_runtime::clock::Clock;
use wrkflw_server::http::auth::{AuthSettings, Claims, Secret};
use wrkflw_server::http::token;

use super::fixture::TIMEOUT;

/// The secret that signs tokens.
pub(super) const SECRET: &str = "a secret of crashes, long enough for HS256";
/// All people. `admin` has the role of that name, all others are users.
pub(super) const PEOPLE: [&str; 14] = [
    "admin", "author", "ann", "rob", "rita", "ron", "amy", "alf", "vera", "vito", "viola", "dee",
    "eli", "fay",
];
/// The error of a request that was not sent.
pub(super) const DOWN: &str = "the host is down";
/// How long an actor waits for an answer before it treats the connection as lost.
const ANSWER_MAX: Duration = Duration::from_secs(12);
const TOKEN_LIFETIME: Duration = Duration::from_hours(12);

/// The addresses of the hosts.
#[derive(Debug, Clone)]
pub(super) struct Urls(Arc<Addresses>);

#[derive(Debug)]
struct Addresses {
    /// None while a host is down.
    of_hosts: Mutex<Vec<Option<String>>>,
    changed: Condvar,
}

impl Urls {
    pub(super) fn new(count: usize) -> Urls {
        Urls(Arc::new(Addresses {
            of_hosts: Mutex::new(vec![None; count]),
            changed: Condvar::new(),
        }))
    }

    pub(super) fn set(&self, host: usize, url: Option<String>) {
        self.0.of_hosts.lock().expect("a lock")[host] = url;
        self.0.changed.notify_all();
    }

    fn of(&self, host: usize) -> Option<String> {
        let urls = self.0.of_hosts.lock().expect("a lock");
        urls[host % urls.len()].clone()
    }

    fn wait_for_one(&self) {
        let urls = self.0.of_hosts.lock().expect("a lock");
        let all_down = |urls: &mut Vec<Option<String>>| urls.iter().all(Option::is_none);
        let waited = self.0.changed.wait_timeout_while(urls, TIMEOUT, all_down);
        let is_late = waited.expect("a lock").1.timed_out();
        assert!(!is_late, "no host is up in time");
    }
}

/// One request. It is the same each time it is sent.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Order {
    pub(super) user: &'static str,
    pub(super) path: String,
    pub(super) body: Value,
    /// The idempotency key. It is also the request id, which the audit stores.
    pub(super) key: String,
}

/// The answer of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) text: String,
    /// Whether it is marked as a repetition of a stored reply.
    pub(super) is_replay: bool,
}

impl Reply {
    pub(super) fn is_accepted(&self) -> bool {
        self.status < 300
    }

    pub(super) fn body(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or(Value::Null)
    }
}

/// Sends each request to the given host.
pub(super) struct Client {
    agent: ureq::Agent,
    tokens: BTreeMap<&'static str, String>,
    urls: Urls,
}

impl Client {
    pub(super) fn new(urls: Urls) -> Client {
        let settings = AuthSettings {
            hs256_secret: Some(Secret::new(SECRET.as_bytes())),
            ..AuthSettings::default()
        };
        let token = |person: &'static str| {
            let role = if person == "admin" { "admin" } else { "user" };
            let claims = Claims {
                subject: person.to_owned(),
                tenant: "default".to_owned(),
                roles: vec![role.to_owned()],
            };
            let now = Clock::System.now();
            let minted = token::mint(&settings, &claims, TOKEN_LIFETIME, now);
            (person, minted.expect("a token"))
        };
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .build();
        Client {
            agent: ureq::Agent::new_with_config(config),
            tokens: PEOPLE.map(token).into(),
            urls,
        }
    }

    /// Waits until a host is up.
    pub(super) fn wait_for_a_host(&self) {
        self.urls.wait_for_one();
    }

    /// Sends a command. After an error, it may or may not have taken effect.
    pub(super) fn post(&self, host: usize, order: &Order) -> Result<Reply, String> {
        let headers = [
            ("content-type", "application/json"),
            ("idempotency-key", order.key.as_str()),
            ("x-request-id", order.key.as_str()),
        ];
        let body = order.body.to_string();
        let line = (order.user, "POST", order.path.as_str());
        self.ask(host, line, &headers, body.as_bytes(), ANSWER_MAX)
    }

    pub(super) fn get(&self, host: usize, user: &str, path: &str) -> Result<Reply, String> {
        self.ask(host, (user, "GET", path), &[], &[], ANSWER_MAX)
    }

    /// Sends a request that may take long: a component is compiled at low priority, beside whatever else the machine does.
    pub(super) fn send(
        &self,
        host: usize,
        line: (&str, &str, &str),
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Reply, String> {
        self.ask(host, line, headers, body, TIMEOUT)
    }

    fn ask(
        &self,
        host: usize,
        (user, method, path): (&str, &str, &str),
        headers: &[(&str, &str)],
        body: &[u8],
        timeout: Duration,
    ) -> Result<Reply, String> {
        let url = self.urls.of(host).ok_or(DOWN)?;
        let mut request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{url}{path}"))
            .header("authorization", format!("Bearer {}", self.tokens[user]))
            .header("prefer", "return=representation");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answered = if body.is_empty() {
            self.run(request.body(()).expect("a request"), timeout)
        } else {
            self.run(request.body(body).expect("a request"), timeout)
        };
        let mut response = answered.map_err(|error| error.to_string())?;
        let text = response.body_mut().read_to_string();
        Ok(Reply {
            status: response.status().as_u16(),
            is_replay: response.headers().contains_key("idempotency-replayed"),
            text: text.map_err(|error| error.to_string())?,
        })
    }

    fn run(
        &self,
        request: ureq::http::Request<impl ureq::AsSendBody>,
        timeout: Duration,
    ) -> Result<ureq::http::Response<ureq::Body>, ureq::Error> {
        let configured = self.agent.configure_request(request);
        let request = configured.timeout_global(Some(timeout)).build();
        self.agent.run(request)
    }
}
