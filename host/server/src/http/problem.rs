//! Problems: every response that is not a success (RFC 9457). Only this module maps errors to codes.

use axum::Json as Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::view::each;
use wrkflw_core::answer::Violation;
use wrkflw_core::graph::NameUse;
use wrkflw_core::json::{Json, escaped};
use wrkflw_core::rejection::Rejection;
use wrkflw_engine::Error;
use wrkflw_fault as fault;
use wrkflw_store::StoreError;
use wrkflw_store::error::Outage;

/// Why a request did not succeed, for programs (`code`) and people (`detail`).
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// Identifies the kind of problem; ends in its code.
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    pub status: u16,
    pub detail: String,
    /// A stable code. `/docs` lists all.
    pub code: String,
    /// The path of the request.
    pub instance: String,
    pub request_id: String,
    /// The fields that are wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// The host's or the flow's own reason for a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What the request conflicts with: the earlier action, `{taskId, action, by, at, outcome, revision}`; the owner of the
    /// task, `{taskId, owner, at, revision}`; the running instance, `{instanceId, by, at}`; or the earlier signal with the id,
    /// `{signalId, instanceId, eventId, at}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub conflict: Option<serde_json::Value>,
    /// Seconds after which to try again; sent as `Retry-After`.
    #[serde(skip)]
    pub retry_after: Option<u32>,
    /// Sent as `WWW-Authenticate`.
    #[serde(skip)]
    pub challenge: Option<String>,
    /// The outage of the database that caused it, if any.
    #[serde(skip)]
    pub outage: Option<Outage>,
}

/// One field that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FieldError {
    /// JSON Pointer (RFC 6901) into the body of the request. Of a parameter or header, a slash and its name.
    pub pointer: String,
    pub code: String,
    pub detail: String,
    /// What the JSON Schema says with its keyword `code`, such as `5` with `maxLength`: `true` of a keyword that is about other schemas
    /// and of a field that is required, `false` of a field that is not allowed. Absent if it is longer than 4096 bytes, and where flow
    /// logic or another rule of the host refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub expected: Option<Json>,
}

/// Every code of this API: code, status, title. A test checks the list.
pub const CODES: &[(&str, u16, &str)] = &[
    ("malformed_json", 400, "The body is not JSON"),
    ("malformed_request", 400, "The request cannot be read"),
    (
        "invalid_cursor",
        400,
        "The cursor does not belong to this list",
    ),
    ("token_missing", 401, "A bearer token is needed"),
    ("token_malformed", 401, "The token cannot be read"),
    ("token_expired", 401, "The token has expired"),
    ("token_not_yet_valid", 401, "The token is not valid yet"),
    ("token_untrusted", 401, "The token is not trusted"),
    (
        "token_claim_invalid",
        401,
        "A claim of the token is invalid",
    ),
    (
        "token_keys_unavailable",
        503,
        "The keys that verify tokens are unavailable",
    ),
    ("unknown_tenant", 403, "The tenant is not known here"),
    ("forbidden", 403, "You may not do this"),
    ("permission_missing", 403, "You lack a permission"),
    ("not_found", 404, "Not found"),
    (
        "method_not_allowed",
        405,
        "The resource does not take this method",
    ),
    ("request_timeout", 408, "The request came too slowly"),
    ("task_taken", 409, "The task is taken"),
    ("refused_now", 409, "The flow does not allow it now"),
    ("instance_ended", 409, "The instance has ended"),
    ("instance_suspended", 409, "The instance is suspended"),
    ("task_suspended", 409, "The task is suspended"),
    ("instance_running", 409, "The instance has not ended"),
    ("not_suspended", 409, "It is not suspended"),
    ("not_claimed", 409, "Nobody owns the task"),
    ("not_delegated", 409, "The task was not delegated"),
    (
        "delegations_exhausted",
        409,
        "The task has reached its limit of delegations",
    ),
    ("already_running", 409, "The entity has a running instance"),
    (
        "signal_id_reused",
        409,
        "The id belongs to a signal with other content",
    ),
    (
        "too_many_operations",
        409,
        "Too many operations are running",
    ),
    ("no_active_version", 409, "No version is active"),
    ("version_retired", 409, "The version is retired"),
    ("version_stopped", 409, "The version is stopped"),
    (
        "unknown_names",
        409,
        "The version uses names that do not exist",
    ),
    ("calendar_used", 409, "The calendar is in use"),
    ("limit_reached", 409, "A limit is reached"),
    ("not_first", 409, "Another event of the instance is first"),
    ("delivery_ended", 409, "The delivery has ended"),
    (
        "cursor_expired",
        410,
        "The cursor is from an earlier database",
    ),
    ("stale_revision", 412, "The instance has another revision"),
    ("too_large", 413, "The request is too large"),
    (
        "unsupported_media_type",
        415,
        "The media type is not supported",
    ),
    (
        "unsupported_encoding",
        415,
        "The encoding of the body is not supported",
    ),
    ("invalid_request", 422, "The request has invalid fields"),
    ("invalid_input", 422, "The input is not accepted"),
    ("nobody_left", 422, "Nobody could do the remaining work"),
    (
        "idempotency_key_reused",
        422,
        "The idempotency key belongs to another request",
    ),
    ("unpublishable", 422, "The version cannot be published"),
    (
        "logic_budget_exceeded",
        424,
        "The flow's logic used up its budget",
    ),
    ("logic_fault", 424, "The flow's logic failed"),
    (
        "logic_output_too_large",
        424,
        "The answer of the flow's logic is too large",
    ),
    ("too_many_streams", 429, "Too many event streams are open"),
    ("headers_too_large", 431, "The headers are too large"),
    ("internal", 500, "Something failed here"),
    ("busy", 503, "The instance is busy"),
    ("overloaded", 503, "The host is overloaded"),
    ("unavailable", 503, "The service is not available now"),
];

/// When to try again after a temporary problem without a known duration.
const RETRY_AFTER_SECONDS: u32 = 1;

impl Problem {
    /// A problem of this code, which must be in [`CODES`].
    pub fn new(code: &str, detail: impl Into<String>) -> Problem {
        let known = CODES.iter().find(|(known, ..)| *known == code);
        fault::invariant!(
            || known.is_some(),
            format_args!("{code} is not in the list"),
        );
        let (code, status, title) =
            known
                .copied()
                .unwrap_or(("internal", 500, "Something failed here"));
        Problem {
            kind: format!("https://wrkflw.dev/problems/{code}"),
            title: title.to_owned(),
            status,
            detail: detail.into(),
            code: code.to_owned(),
            instance: String::new(),
            request_id: String::new(),
            errors: Vec::new(),
            reason: None,
            conflict: None,
            retry_after: (status == 503).then_some(RETRY_AFTER_SECONDS),
            challenge: None,
            outage: None,
        }
    }

    #[must_use]
    pub fn at(mut self, pointer: &str, code: &str, detail: impl Into<String>) -> Problem {
        self.errors.push(FieldError {
            pointer: pointer.to_owned(),
            code: code.to_owned(),
            detail: detail.into(),
            expected: None,
        });
        self
    }

    /// The response, once the request's path and id are known.
    pub fn render(mut self, path: &str, request_id: &str) -> Response {
        path.clone_into(&mut self.instance);
        request_id.clone_into(&mut self.request_id);
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut headers = HeaderMap::new();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(challenge) = self
            .challenge
            .as_deref()
            .and_then(|text| HeaderValue::from_str(text).ok())
        {
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        (status, headers, Body(self)).into_response()
    }
}

impl IntoResponse for Problem {
    /// Leaves the body to the outermost layer, which knows the path and the request's id.
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        if let Error::Store(error) = &error {
            return stored(error);
        }
        let code = error.code();
        let code = code.expect("only a failure of the database has no code of its own");
        let problem = Problem::new(code, error.to_string());
        match error {
            Error::Rejected(rejection) => rejected(problem, rejection),
            Error::Invalid { violations, .. } => Problem {
                errors: each(violations),
                ..problem
            },
            Error::Permission(permission) => Problem {
                reason: Some(permission.to_owned()),
                ..problem
            },
            Error::UnknownNames(unknown) => unknown.iter().fold(problem, |problem, used| {
                let code = format!("unknown_{}", used.kind());
                problem.at("/force", &code, unknown_name(used))
            }),
            Error::CalendarUsed(by) => by.iter().fold(problem, |problem, reference| {
                let (key, version) = (&reference.key, reference.version);
                let detail = format!("version {version} of {key} uses it");
                problem.at("/force", "used_by_version", detail)
            }),
            Error::Logic(_) => {
                tracing::warn!(error = problem.detail, "flow logic failed");
                problem
            }
            Error::Unpublishable(problems) => {
                let errors = problems.into_iter().map(|found| FieldError {
                    pointer: found.at,
                    code: found.code.to_owned(),
                    detail: found.message,
                    expected: None,
                });
                Problem {
                    errors: errors.collect(),
                    ..problem
                }
            }
            _ => problem,
        }
    }
}

/// The sentence about a name that a version uses and that the tenant does not have.
pub(super) fn unknown_name(used: &NameUse) -> String {
    let (kind, name) = (used.kind(), used.name());
    match used {
        NameUse::Service(_) => format!("this host has no service {name}"),
        NameUse::Permission(_) => format!("no role gives the permission {name}"),
        NameUse::Group(_) | NameUse::Person(_) | NameUse::Calendar(_) => {
            format!("there is no {kind} {name}")
        }
    }
}

/// The problem for a failure of the database: a temporary outage, or an internal error.
fn stored(error: &StoreError) -> Problem {
    let Some(outage) = error.outage() else {
        tracing::error!(%error, "the database failed");
        return Problem::new("internal", "the request failed; the host's log has its id");
    };
    tracing::error!(%error, outage = outage.name(), "the database is not available");
    Problem {
        retry_after: Some(outage.retry_seconds()),
        outage: Some(outage),
        ..Problem::new("unavailable", outage.words())
    }
}

impl From<Violation> for FieldError {
    fn from(violation: Violation) -> FieldError {
        FieldError {
            pointer: violation.field,
            code: violation.code,
            detail: violation.message,
            expected: violation.expected,
        }
    }
}

fn rejected(mut problem: Problem, rejection: Rejection) -> Problem {
    match rejection {
        Rejection::Forbidden(reason) | Rejection::RefusedNow(reason) => {
            problem.reason = Some(reason.code);
        }
        Rejection::Invalid(violations) => {
            problem.errors = each(violations);
        }
        Rejection::NotOwner { owned, .. } => {
            problem.reason = Some("not_owner".to_owned());
            problem.conflict = serde_json::to_value(owned).ok();
        }
        Rejection::Taken(winner) => problem.conflict = serde_json::to_value(winner).ok(),
        Rejection::Stale { current, .. } => {
            problem.conflict = Some(serde_json::json!({ "revision": current }));
        }
        Rejection::NobodyLeft { states } => {
            for state in states {
                let pointer = format!("/states/{}", escaped(&state));
                let detail = "nobody would be able to do its work";
                problem = problem.at(&pointer, "nobody_left", detail);
            }
        }
        Rejection::SignalIdReused { first, .. } => {
            problem.conflict = serde_json::to_value(first).ok();
        }
        Rejection::AlreadyRunning { running, started } => {
            let named = |id| serde_json::json!({ "instanceId": id });
            let mut conflict = running.map_or_else(|| serde_json::json!({}), named);
            if let Some(started) = started {
                conflict["by"] = started.by.into();
                conflict["at"] = started.at.to_string().into();
            }
            problem.conflict = Some(conflict);
        }
        Rejection::Suspended {
            reason,
            by,
            at,
            revision,
            ..
        } => {
            problem.conflict = Some(serde_json::json!({
                "reason": reason, "by": by, "at": at, "revision": revision,
            }));
        }
        Rejection::TaskSuspended {
            suspension,
            revision,
            ..
        } => {
            problem.conflict = Some(serde_json::json!({
                "reason": suspension.reason, "by": suspension.by, "at": suspension.at, "until": suspension.until,
                "revision": revision,
            }));
        }
        Rejection::NotNow { .. } => {}
        Rejection::Ended {
            status,
            at,
            by,
            revision,
            ..
        } => {
            problem.conflict = Some(serde_json::json!({
                "status": status, "at": at, "by": by, "revision": revision,
            }));
        }
    }
    problem
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        Error::Store(error).into()
    }
}
