//! Calls the API in this process, as the person who is signed in.

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use axum::response::Response;
use http_body_util::{BodyExt as _, Limited};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tower::ServiceExt as _;

use wrkflw_server::http::extract::Vouched;

/// The largest answer that is read. The API bounds its answers, too.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The API for one request of a browser.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) router: Router,
    pub(crate) caller: Vouched,
}

/// Why the API refused or failed: its problem.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Trouble {
    pub(crate) status: u16,
    pub(crate) detail: String,
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
    pub(crate) detail: String,
}

impl Trouble {
    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn internal(detail: impl ToString) -> Trouble {
        Trouble {
            status: 500,
            detail: detail.to_string(),
            ..Trouble::default()
        }
    }
}

impl Api {
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Trouble> {
        self.read(self.send(Method::GET, path, None, None).await)
            .await
    }

    /// Sends a command or another change. `key` makes a repetition harmless.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &Value,
        key: Option<&str>,
    ) -> Result<T, Trouble> {
        let response = self.send(Method::POST, path, Some(body), key).await;
        self.read(response).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Result<Value, Trouble> {
        let response = self.send(Method::PUT, path, Some(body), None).await;
        self.read(response).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<(), Trouble> {
        let response = self.send(Method::DELETE, path, None, None).await;
        self.read::<Option<Value>>(response).await.map(drop)
    }

    /// The response as it comes, such as a stream or a drawing.
    pub(crate) async fn raw(&self, path: &str) -> Response {
        self.send(Method::GET, path, None, None).await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
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
                Body::from(body.to_string())
            }
            None => Body::empty(),
        };
        let request = request.extension(self.caller.clone()).body(body);
        let request = request.expect("paths of the API are encoded");
        match self.router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    async fn read<T: DeserializeOwned>(&self, response: Response) -> Result<T, Trouble> {
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX);
        let bytes = body.collect().await.map_err(Trouble::internal)?.to_bytes();
        if !status.is_success() {
            let trouble = serde_json::from_slice(&bytes);
            return Err(trouble.unwrap_or_else(Trouble::internal));
        }
        let text: &[u8] = if bytes.is_empty() { b"null" } else { &bytes };
        serde_json::from_slice(text).map_err(|error| {
            tracing::error!(%error, "the console could not read an answer of the API");
            Trouble::internal("the answer of the API could not be read")
        })
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
