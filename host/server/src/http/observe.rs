//! Logs and counts every request that changes something, once and for every result.
//!
//! The engine logs the commands that reach it, with all their details. This module logs the other requests: those that were refused
//! earlier (an invalid token or body, too many requests), those whose client disconnected, and those that do not change an instance.

use std::time::Instant;

use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::response::Response;

use super::problem::Problem;
use wrkflw_core::command::{ACTIONS, RESTART};
use wrkflw_engine::Trace;
use wrkflw_runtime::telemetry::COMMAND_TARGET;

/// The actions on versions of a definition. These and the names of commands become labels if they are the last part of the
/// path of a POST. Other requests get their method as the label, because clients must not choose labels.
const OF_VERSIONS: [&str; 4] = ["activate", "retire", "reinstate", "stop"];
/// The POSTs that only read.
const READS: [&str; 2] = ["/v1/instances/search", "/v1/names"];
/// The outcome of a request without a response.
const GIVEN_UP: &str = "system_error";

/// The content of the log line.
pub(super) struct Change {
    begun: Instant,
    action: &'static str,
    path: String,
    trace: Trace,
    /// The status of the response and the code of its problem. None before the response.
    answer: Option<(StatusCode, Option<String>)>,
}

impl Change {
    /// None for a request that changes nothing.
    pub(super) fn begin(request: &Request, trace: &Trace) -> Option<Change> {
        if only_reads(request) {
            return None;
        }
        let path = request.uri().path();
        Some(Change {
            begun: Instant::now(),
            action: action(request.method(), path),
            path: path.to_owned(),
            trace: trace.clone(),
            answer: None,
        })
    }

    pub(super) fn end(mut self, response: &Response) {
        let problem = response.extensions().get::<Problem>();
        let code = problem.map(|problem| problem.code.clone());
        self.answer = Some((response.status(), code));
    }
}

/// Whether requests of this method and path only read.
pub(super) fn only_reads(request: &Request) -> bool {
    request.method().is_safe() || READS.contains(&request.uri().path())
}

/// Logs on drop, because a request is dropped if its client disconnects.
impl Drop for Change {
    fn drop(&mut self) {
        if self.trace.is_told() {
            return;
        }
        let outcome = match &self.answer {
            Some((status, _)) => outcome(*status),
            None => GIVEN_UP,
        };
        let status = self.answer.as_ref().map(|(status, _)| status.as_u16());
        let code = self.answer.as_ref().and_then(|(_, code)| code.clone());
        let elapsed = self.begun.elapsed();
        metrics::counter!("wrkflw_transitions_total",
            "definition" => "", "action" => self.action, "outcome" => outcome)
        .increment(1);
        metrics::histogram!("wrkflw_transition_duration_seconds", "definition" => "", "action" => self.action)
            .record(elapsed.as_secs_f64());
        tracing::info!(
            target: COMMAND_TARGET,
            action = self.action,
            path = self.path,
            status,
            outcome,
            code,
            durationMs = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            requestId = self.trace.request_id,
            traceId = self.trace.id(),
            "{} {outcome}",
            self.action
        );
    }
}

fn action(method: &Method, path: &str) -> &'static str {
    let mut parts = path.rsplit('/');
    let (last, parent) = (parts.next().unwrap_or_default(), parts.next());
    let mut known = ACTIONS.iter().chain(&OF_VERSIONS).chain([&RESTART]);
    match (method.as_str(), last) {
        ("POST", "instances") => "start",
        // The trigger is the last part, or in the body.
        ("POST", "signals") => "signal",
        ("POST", _) if parent == Some("signals") => "signal",
        ("POST", _) => known.find(|known| **known == last).unwrap_or(&"post"),
        ("PUT", _) => "put",
        ("DELETE", _) => "delete",
        _ => "other",
    }
}

/// The outcomes of the engine, and one for an unknown caller.
fn outcome(status: StatusCode) -> &'static str {
    match status.as_u16() {
        200..=399 => "success",
        401 => "unauthenticated",
        403 => "forbidden",
        409 | 412 => "conflict",
        424 => "logic_error",
        503 => "refused",
        408 | 500..=599 => GIVEN_UP,
        _ => "validation_error",
    }
}

#[cfg(test)]
mod tests;
