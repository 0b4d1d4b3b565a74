//! Calls the API in this process, as the person who is signed in.

use std::borrow::Cow;
use std::fmt::Display;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Method, Request, StatusCode, header, request};
use axum::response::Response;
use http_body_util::{BodyExt as _, Limited};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tower::ServiceExt as _;

use wrkflw_server::http::extract::Vouched;
use wrkflw_server::http::problem::Problem;
use wrkflw_server::http::uploads::UploadPlace;

use crate::language::Words;

/// The largest answer that is read. The API bounds its answers, too.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// As `If-Match`, the revision that no instance has: the first one is 1.
const NO_REVISION: &str = "\"0\"";
/// Values of an enumeration that a page names.
const VALUES_SHOWN: usize = 10;

/// The API for one request of a browser.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) router: Router,
    pub(crate) caller: Vouched,
    /// The language in which it says why something failed.
    pub(crate) w: Words,
}

/// Why the API refused or failed: its problem.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Trouble {
    pub(crate) status: u16,
    #[serde(default)]
    pub(crate) code: String,
    /// In the reader's language, if the console has a text for the code.
    #[serde(default)]
    pub(crate) detail: String,
    /// The reason of the host or the flow.
    #[serde(default)]
    pub(crate) reason: Option<String>,
    #[serde(default)]
    pub(crate) errors: Vec<FieldTrouble>,
    #[serde(default)]
    pub(crate) conflict: Option<Box<Value>>,
    #[serde(default, rename = "requestId")]
    pub(crate) request_id: String,
}

/// One wrong field of a body.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct FieldTrouble {
    pub(crate) pointer: String,
    #[serde(default)]
    pub(crate) code: String,
    /// In the reader's language, if it is a text of the host and not of a flow.
    pub(crate) detail: String,
    /// The value of the keyword `code` in a schema. Flows do not give it.
    #[serde(default)]
    pub(crate) expected: Option<Value>,
}

impl FieldTrouble {
    pub(crate) fn in_words(self, w: Words) -> FieldTrouble {
        let id = format!("violation-{}", self.code);
        match self.expected.as_ref().filter(|_| w.has(&id)) {
            Some(expected) => FieldTrouble {
                detail: w.with(&id, "value", &expected_text(w, &self.code, expected)),
                ..self
            },
            None => self,
        }
    }

    /// The error with the name of the field, for places without the field itself.
    pub(crate) fn named(&self, w: Words) -> String {
        match self.pointer.as_str() {
            "" => self.detail.clone(),
            "/comment" => format!("{}: {}", w.t("comment"), self.detail),
            pointer => format!("{pointer}: {}", self.detail),
        }
    }
}

/// The expected value of a schema, as the reader writes it.
fn expected_text(w: Words, code: &str, expected: &Value) -> String {
    match expected {
        Value::Array(values) => {
            let texts = values.iter().take(VALUES_SHOWN);
            let texts = texts.map(|value| expected_text(w, code, value));
            let mut texts: Vec<_> = texts.collect();
            if values.len() > VALUES_SHOWN {
                texts.push("…".to_owned());
            }
            texts.join(", ")
        }
        Value::String(name) if code == "type" => {
            let known = w.known(&format!("json-type-{name}"));
            known.map_or_else(|| name.clone(), Cow::into_owned)
        }
        Value::String(text) => text.clone(),
        // Numbers are in the form that a number field takes: without separators of thousands.
        other => other.to_string(),
    }
}

impl Trouble {
    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn internal(error: impl Display) -> Trouble {
        tracing::error!(%error, "the console could not read an answer of the API");
        Trouble {
            status: 500,
            code: "internal".to_owned(),
            ..Trouble::default()
        }
    }

    /// The problem in one sentence. It names the fields, for places without a form.
    pub(crate) fn in_a_sentence(self, w: Words) -> String {
        let trouble = self.in_words(w);
        let fields: Vec<_> = trouble.errors.iter().map(|error| error.named(w)).collect();
        if fields.is_empty() {
            trouble.detail
        } else {
            fields.join(" ")
        }
    }

    fn in_words(self, w: Words) -> Trouble {
        let detail = in_words(w, &self.code, self.reason.as_deref(), &self.detail);
        let errors = self.errors.into_iter();
        Trouble {
            detail,
            errors: errors.map(|one| one.in_words(w)).collect(),
            ..self
        }
    }

    /// Whether somebody else acted first, and the problem names them.
    pub(crate) fn is_race(&self) -> bool {
        self.code == "task_taken" || self.reason.as_deref() == Some("not_owner")
    }
}

/// The text of a problem for people. A refusal of a flow stays in the words of its authors.
fn in_words(w: Words, code: &str, reason: Option<&str>, detail: &str) -> String {
    let texts = match (code, reason) {
        ("forbidden", Some(reason)) => vec![format!("refusal-{reason}")],
        ("forbidden" | "refused_now", _) => Vec::new(),
        (code, _) => vec![format!("problem-{code}"), format!("refusal-{code}")],
    };
    let variables = [("detail", detail), ("reason", reason.unwrap_or_default())];
    let known = texts.iter().find(|text| w.has(text));
    known.map_or_else(|| detail.to_owned(), |text| w.say(text, &variables))
}

/// The same for a problem before anybody is signed in.
pub(crate) fn problem_text(w: Words, problem: &Problem) -> String {
    in_words(w, &problem.code, problem.reason.as_deref(), &problem.detail)
}

impl Api {
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Trouble> {
        self.read(self.send(Method::GET, path, None, None).await)
            .await
    }

    /// Sends a command or another change. `body` is JSON, with the digits of its numbers. `key` makes a repetition harmless.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Display,
        key: Option<&str>,
    ) -> Result<T, Trouble> {
        let body = Some(body.to_string());
        let response = self.send(Method::POST, path, body, key).await;
        self.read(response).await
    }

    /// Whether a command with this key was done. The request names a revision that no instance has, so it does nothing now. If the key
    /// has an answer, it belongs to the command without that condition.
    pub(crate) async fn was_done(&self, path: &str, body: &impl Display, key: &str) -> bool {
        let request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(header::HOST, "console")
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::IF_MATCH, NO_REVISION)
            .header("idempotency-key", key);
        let response = self.answer(request, Body::from(body.to_string())).await;
        let answer = self.read::<Value>(response).await;
        answer.is_err_and(|trouble| trouble.code == "idempotency_key_reused")
    }

    /// Creates or replaces something.
    pub(crate) async fn put<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &Value,
    ) -> Result<T, Trouble> {
        let response = self
            .send(Method::PUT, path, Some(body.to_string()), None)
            .await;
        self.read(response).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<(), Trouble> {
        let answer = self.change::<Option<Value>>(Method::DELETE, path, None, None);
        answer.await.map(drop)
    }

    /// Sends a change by any method.
    pub(crate) async fn change<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        key: Option<&str>,
    ) -> Result<T, Trouble> {
        let body = body.map(Value::to_string);
        let response = self.send(method, path, body, key).await;
        self.read(response).await
    }

    /// Sends a form with files, in the place that the form has already. `kind` is its type with the boundary.
    pub(crate) async fn upload<T: DeserializeOwned>(
        &self,
        path: &str,
        (kind, body): (String, Vec<u8>),
        place: UploadPlace,
    ) -> Result<T, Trouble> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(header::HOST, "console")
            .header(header::CONTENT_TYPE, kind)
            .extension(place);
        let response = self.answer(request, Body::from(body)).await;
        self.read(response).await
    }

    /// The unchanged response, such as a stream or a drawing.
    pub(crate) async fn raw(&self, path: &str) -> Response {
        self.send(Method::GET, path, None, None).await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
        key: Option<&str>,
    ) -> Response {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "console");
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let body = match body {
            Some(body) => {
                request = request.header(header::CONTENT_TYPE, "application/json");
                Body::from(body)
            }
            None => Body::empty(),
        };
        self.answer(request, body).await
    }

    async fn answer(&self, request: request::Builder, body: Body) -> Response {
        let request = request.extension(self.caller.clone()).body(body);
        let request = request.expect("paths of the API are encoded");
        match self.router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    /// A text, such as a drawing.
    pub(crate) async fn text(&self, path: &str) -> Result<String, Trouble> {
        let response = self.send(Method::GET, path, None, None).await;
        let bytes = self.bytes(response).await?;
        String::from_utf8(bytes.into()).map_err(|error| Trouble::internal(error).in_words(self.w))
    }

    async fn read<T: DeserializeOwned>(&self, response: Response) -> Result<T, Trouble> {
        let bytes = self.bytes(response).await?;
        let text: &[u8] = if bytes.is_empty() { b"null" } else { &bytes };
        serde_json::from_slice(text).map_err(|error| Trouble::internal(error).in_words(self.w))
    }

    /// The body of a success.
    async fn bytes(&self, response: Response) -> Result<Bytes, Trouble> {
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX);
        let failed = |error| Trouble::internal(error).in_words(self.w);
        let bytes = body.collect().await.map_err(failed)?.to_bytes();
        if !status.is_success() {
            let trouble = serde_json::from_slice(&bytes).unwrap_or_else(Trouble::internal);
            return Err(trouble.in_words(self.w));
        }
        Ok(bytes)
    }
}

/// A text as a segment of a path.
pub(crate) fn segment(text: &str) -> String {
    let encoded: String = url::form_urlencoded::byte_serialize(text.as_bytes()).collect();
    encoded.replace('+', "%20")
}

/// A path with these parameters; empty ones are left out.
pub(crate) fn with_query(path: &str, parameters: &[(&str, &str)]) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(parameters.iter().filter(|(_, value)| !value.is_empty()));
    let query = query.finish();
    if query.is_empty() {
        path.to_owned()
    } else {
        format!("{path}?{query}")
    }
}
