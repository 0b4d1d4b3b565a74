//! The API as commands use it: JSON in, JSON or a failure out.

use std::io::Read;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::Value;
use ureq::http::Response;
use ureq::{Agent, Body};

use super::failure::{Exit, Failure};

/// How long an answer may take; publishing compiles on the server.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(3);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The largest answer that is read.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
const JSON: &str = "application/json";

/// One server, as one person.
pub(super) struct Client {
    agent: Agent,
    /// Without a slash at the end.
    server: String,
    token: Option<String>,
}

/// What may go along with a change.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct ChangeArgs {
    /// Show all that would follow, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Only if the instance still has this revision
    #[arg(long, value_name = "REVISION")]
    if_match: Option<u32>,
    /// Makes repeating this command safe: the same key gives the same answer and one effect
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

impl Client {
    pub(super) fn new(server: &str, token: Option<String>) -> Client {
        let server = server.trim_end_matches('/').to_owned();
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_recv_response(Some(ANSWER_TIMEOUT));
        // A proxy knows its own loopback interface, not ours.
        if ["http://127.", "http://localhost", "http://[::1]"]
            .iter()
            .any(|start| server.starts_with(start))
        {
            config = config.proxy(None);
        }
        Client {
            agent: config.build().into(),
            server,
            token,
        }
    }

    pub(super) fn get(&self, path: &str, query: &[(&str, Option<String>)]) -> Result<Value> {
        json(self.answer(self.asking(path, query).call())?)
    }

    /// A document that is no JSON.
    pub(super) fn get_text(&self, path: &str) -> Result<String> {
        Ok(self
            .answer(self.asking(path, &[]).call())?
            .body_mut()
            .with_config()
            .limit(ANSWER_BYTES_MAX)
            .read_to_string()?)
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Result<Value> {
        json(self.answer(self.telling(path).content_type(JSON).send(body.to_string()))?)
    }

    /// A command on an instance or a task.
    pub(super) fn change(&self, path: &str, body: &Value, with: &ChangeArgs) -> Result<Value> {
        let mut request = self.telling(path).content_type(JSON);
        if with.dry_run {
            request = request.query("dryRun", "true");
        }
        if let Some(revision) = with.if_match {
            request = request.header("If-Match", format!("\"{revision}\""));
        }
        if let Some(key) = &with.idempotency_key {
            request = request.header("Idempotency-Key", key);
        }
        json(self.answer(request.send(body.to_string()))?)
    }

    /// Sends a form of two files.
    pub(super) fn publish(&self, path: &str, component: &[u8], config: &str) -> Result<Value> {
        let boundary = format!("wrkflw-{}", crate::clock::new_id().simple());
        let mut form = Vec::with_capacity(component.len() + config.len() + 512);
        for (name, kind, content) in [
            ("component", "application/wasm", component),
            ("config", "application/json", config.as_bytes()),
        ] {
            let head = format!(
                "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{name}\"\r\nContent-Type: {kind}\r\n\r\n"
            );
            form.extend_from_slice(head.as_bytes());
            form.extend_from_slice(content);
            form.extend_from_slice(b"\r\n");
        }
        form.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
        let request = self
            .telling(path)
            .content_type(format!("multipart/form-data; boundary={boundary}"));
        json(self.answer(request.send(&form))?)
    }

    /// A stream that goes on until either side ends it.
    pub(super) fn stream(&self, path: &str, after: Option<&str>) -> Result<impl Read + use<>> {
        let mut request = self.asking(path, &[]).header("Accept", "text/event-stream");
        if let Some(after) = after {
            request = request.header("Last-Event-ID", after);
        }
        Ok(self.answer(request.call())?.into_body().into_reader())
    }

    fn asking(
        &self,
        path: &str,
        query: &[(&str, Option<String>)],
    ) -> ureq::RequestBuilder<ureq::typestate::WithoutBody> {
        let given = query
            .iter()
            .filter_map(|(name, value)| Some((*name, value.as_deref()?)));
        let request = self
            .agent
            .get(format!("{}{path}", self.server))
            .query_pairs(given);
        match &self.token {
            Some(token) => request.header("Authorization", format!("Bearer {token}")),
            None => request,
        }
    }

    fn telling(&self, path: &str) -> ureq::RequestBuilder<ureq::typestate::WithBody> {
        let request = self.agent.post(format!("{}{path}", self.server));
        match &self.token {
            Some(token) => request.header("Authorization", format!("Bearer {token}")),
            None => request,
        }
    }

    fn answer(&self, result: Result<Response<Body>, ureq::Error>) -> Result<Response<Body>> {
        let mut response = result.map_err(|error| {
            Failure::new(
                Exit::Unreachable,
                format!("{} cannot be reached: {error}", self.server),
            )
            .next("start one with `wrkflw dev`, or name another with --server or WRKFLW_SERVER")
        })?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let text = response
            .body_mut()
            .with_config()
            .limit(ANSWER_BYTES_MAX)
            .read_to_string()
            .unwrap_or_default();
        match serde_json::from_str::<Value>(&text) {
            Ok(problem) if problem["code"].is_string() => {
                Err(Failure::of_problem(status.as_u16(), problem).into())
            }
            _ => Err(Failure::new(
                Exit::Failed,
                format!("{} answered {status}, and not as wrkflw does", self.server),
            )
            .next("check the URL of the server")
            .into()),
        }
    }
}

fn json(mut response: Response<Body>) -> Result<Value> {
    let text = response
        .body_mut()
        .with_config()
        .limit(ANSWER_BYTES_MAX)
        .read_to_string()?;
    serde_json::from_str(&text).context("the server's answer is no JSON: is this a wrkflw server?")
}

/// One segment of a path, whatever it holds.
pub(super) fn segment(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::new(), |mut path, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            path.push(char::from(byte));
        } else {
            write!(path, "%{byte:02X}").expect("a String takes every write");
        }
        path
    })
}
