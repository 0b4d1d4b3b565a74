//! Services that flows call: the configured services, and one attempt to call one.
//!
//! A service is called outside of any transaction and queue. [`queue`] claims due calls and shares the places, [`calls`] makes the
//! attempts of a call and reports the result by a command.

mod calls;
pub(crate) mod queue;

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use hyper::{HeaderMap, Request};
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use serde::Deserialize;
use serde_json::json;
use url::Url;

use wrkflw_core::ids::check_name;
use wrkflw_core::instance::OpenCall;
use wrkflw_core::json::Json;
use wrkflw_core::subscription::{AllowedAddresses, may_connect, target};
use wrkflw_runtime::http_client::{ClientError, HttpClient, Route, read};
use wrkflw_runtime::signature::sign;

/// The largest body of a reply, in bytes. The output alone has a limit of its own in the core.
const REPLY_BYTES_MAX: usize = 128 * 1024;
/// The longest name or version of a model, in characters.
const MODEL_CHARS_MAX: usize = 200;
/// The longest stored error, in characters.
const ERROR_CHARS_MAX: usize = 300;
/// The longest pause that a service may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_hours(1);
/// Statuses of the range 400 to 499 after which another attempt may succeed: timeout, conflict, too early, too many requests.
const TRIED_AGAIN: [u16; 4] = [408, 409, 425, 429];

/// A service as the operator has configured it.
#[derive(Clone, PartialEq, Eq)]
pub struct Service {
    url: Url,
    /// Sent as a bearer token.
    token: Option<String>,
    /// Signs the requests.
    key: Option<Vec<u8>>,
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Service({})", self.url)
    }
}

impl Service {
    /// A service at this URL. Without TLS, its address must be private. The error says what is wrong with the URL.
    pub fn new(
        url: &str,
        token: Option<String>,
        key: Option<Vec<u8>>,
    ) -> Result<Service, &'static str> {
        let url = target(url, AllowedAddresses::Private)?;
        Ok(Service { url, token, key })
    }
}

/// All services of a host.
#[derive(Debug, Clone)]
pub struct Services {
    by_name: BTreeMap<String, Service>,
    client: HttpClient,
    /// How many calls of one service may be in flight in this process.
    calls_max: usize,
}

impl Default for Services {
    fn default() -> Services {
        Services::new(BTreeMap::new(), HttpClient::new(), Services::CALLS_MAX)
    }
}

/// The request to a service, and its context.
struct ServiceRequest<'a> {
    tenant: &'a str,
    instance: String,
    /// The id of the state instance, which is the idempotency key of all attempts.
    state: String,
    attempt: u32,
    call: &'a OpenCall,
    traceparent: &'a str,
}

/// The reply of a service.
#[derive(Debug, Clone, PartialEq)]
struct Replied {
    output: Json,
    model: Option<String>,
    model_version: Option<String>,
}

/// An attempt that failed.
#[derive(Debug, Clone, PartialEq)]
struct Failed {
    error: String,
    /// Another attempt would fail, too.
    is_final: bool,
    /// How long the service asks to wait.
    pause: Option<Duration>,
}

impl Failed {
    fn new(error: impl fmt::Display) -> Failed {
        let plain = error.to_string();
        let plain = plain.chars().filter(|character| !character.is_control());
        Failed {
            error: plain.take(ERROR_CHARS_MAX).collect(),
            is_final: false,
            pause: None,
        }
    }
}

impl Services {
    /// How many calls of one service are in flight at a time, unless the operator says otherwise.
    pub const CALLS_MAX: usize = 8;

    pub fn new(
        by_name: BTreeMap<String, Service>,
        client: HttpClient,
        calls_max: usize,
    ) -> Services {
        Services {
            by_name,
            client,
            calls_max,
        }
    }

    /// Whether the operator has configured this service.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        self.by_name.keys()
    }

    /// Makes one attempt. The time of the call includes the body of the reply.
    async fn attempt(
        &self,
        request: &ServiceRequest<'_>,
        now: Timestamp,
    ) -> Result<Replied, Failed> {
        let name = &request.call.service;
        let Some(service) = self.by_name.get(name) else {
            return Err(Failed::new(unserved(name)));
        };
        let scheme = service.url.scheme().to_owned();
        let allowed =
            move |address: IpAddr| may_connect(address, &scheme, AllowedAddresses::Private);
        let (route, timeout) = (
            Route::To(Arc::new(allowed)),
            Duration::from_secs(request.call.timeout.into()),
        );
        let http_request = http_request(service, request, now).map_err(Failed::new)?;
        let exchange = async {
            let (head, body) = self
                .client
                .send(http_request, route, timeout)
                .await?
                .into_parts();
            let mut reply = None;
            if head.status.is_success() {
                reply = Some(read(body, REPLY_BYTES_MAX).await?);
            }
            Ok((head, reply))
        };
        let answer = tokio::time::timeout(timeout, exchange).await;
        let (head, reply) = answer
            .unwrap_or(Err(ClientError::Timeout(timeout)))
            .map_err(Failed::new)?;
        match reply {
            Some(reply) => replied(&reply).map_err(Failed::new),
            None => Err(refused(head.status.as_u16(), &head.headers, now)),
        }
    }
}

/// Why a call waits for a host with other settings.
fn unserved(name: &str) -> String {
    format!("this host has no service {name}; add it to the setting `services`")
}

fn http_request(
    service: &Service,
    request: &ServiceRequest<'_>,
    now: Timestamp,
) -> Result<Request<Vec<u8>>, hyper::http::Error> {
    let body = Json::of(&json!({
        "tenant": request.tenant,
        "instanceId": request.instance,
        "stateId": request.state,
        "service": request.call.service,
        "attempt": request.attempt,
        "request": request.call.request,
    }));
    let mut http_request = Request::post(service.url.as_str())
        .header(CONTENT_TYPE, "application/json")
        .header("idempotency-key", &request.state)
        .header("traceparent", request.traceparent);
    if let Some(token) = &service.token {
        http_request = http_request.header(AUTHORIZATION, format!("Bearer {token}"));
    }
    if let Some(key) = &service.key {
        let (id, timestamp) = (&request.state, now.as_second().to_string());
        let signature = sign(key, id, &timestamp, body.as_str());
        http_request = http_request
            .header("webhook-id", id)
            .header("webhook-timestamp", timestamp)
            .header("webhook-signature", signature);
    }
    http_request.body(body.to_string().into_bytes())
}

/// Reads the body of a reply. The error says what is wrong with it.
fn replied(body: &[u8]) -> Result<Replied, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Body {
        output: Json,
        model: Option<String>,
        model_version: Option<String>,
    }
    let text = std::str::from_utf8(body).map_err(|_| "the reply is not UTF-8")?;
    let json = Json::parse(text).map_err(|error| format!("the reply has {error}"))?;
    let body: Body = serde_json::from_str(json.as_str())
        .map_err(|error| format!("the reply is not as agreed: {error}"))?;
    for (what, text) in [
        ("model", &body.model),
        ("modelVersion", &body.model_version),
    ] {
        if let Some(text) = text {
            check_name(text, MODEL_CHARS_MAX)
                .map_err(|rule| format!("the reply has a {what} that is not {rule}"))?;
        }
    }
    Ok(Replied {
        output: body.output,
        model: body.model,
        model_version: body.model_version,
    })
}

/// A response without a reply. Only its status and its `Retry-After` are read.
fn refused(status: u16, headers: &HeaderMap, now: Timestamp) -> Failed {
    let is_final = (400..500).contains(&status) && !TRIED_AGAIN.contains(&status);
    let wish = headers
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok());
    Failed {
        is_final,
        pause: wish.and_then(|wish| pause(wish, now)),
        ..Failed::new(format!("the service answered {status}"))
    }
}

/// The pause that a header `Retry-After` asks for: seconds, or a date. At most [`RETRY_AFTER_MAX`].
fn pause(wish: &str, now: Timestamp) -> Option<Duration> {
    let wish = wish.trim();
    let pause = if let Ok(seconds) = wish.parse::<u64>() {
        Duration::from_secs(seconds)
    } else {
        let until = rfc2822::parse(wish).ok()?.timestamp();
        Duration::try_from(until.duration_since(now)).ok()?
    };
    Some(pause.min(RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests;
