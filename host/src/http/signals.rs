//! Signals: what people and systems outside tell an instance, or whoever waits under a name of the flow's own.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::App;
use super::commands::{Changed, render, respond, run};
use super::extract::{Body, Caller, DryRun, Options, Path, check_document, check_name};
use super::problem::Problem;
use crate::clock;
use crate::domain::command::Command;
use crate::domain::ids::InstanceId;
use crate::domain::json::Json;
use crate::engine::{Correlated, Done};

/// What a signal says.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SignalBody {
    /// The same id counts once for an instance. Without it each request is a signal of its own.
    #[schema(max_length = 200)]
    pub id: Option<String>,
    #[serde(default = "Json::empty")]
    #[schema(value_type = Object)]
    pub input: Json,
}

/// What a signal says to whoever waits for it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CorrelatedBody {
    /// The name of the flow's own under which a state waits, such as an order number.
    #[schema(max_length = 200)]
    pub correlation: String,
    /// The same id counts once for a correlation.
    #[schema(max_length = 200)]
    pub id: String,
    /// Key of a definition, where instances of others may wait under the same name.
    pub definition: Option<String>,
    #[serde(default = "Json::empty")]
    #[schema(value_type = Object)]
    pub input: Json,
}

/// A signal for which nobody waits yet.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct KeptSignal {
    pub correlation: String,
    pub id: String,
    /// Nothing was written.
    pub dry_run: bool,
}

/// Sends a signal to an instance.
///
/// The oldest active state that takes the trigger is moved by it. A signal that comes too early is kept for a state to come.
#[utoipa::path(post, path = "/v1/instances/{id}/signals/{trigger}", tag = "signals",
    params(("id" = Uuid, Path), ("trigger" = String, Path), DryRun), request_body = SignalBody,
    responses((status = 200, body = Changed), (status = 202, body = Changed, description = "kept for a state to come")))]
pub(super) async fn send(
    State(app): State<App>,
    Caller(who): Caller,
    Path((instance, trigger)): Path<(Uuid, String)>,
    options: Options,
    Body { value, canonical }: Body<SignalBody>,
) -> Result<Response, Problem> {
    if let Some(id) = &value.id {
        check_id(id)?;
    }
    check_document("/input", &value.input)?;
    let command = Command::Signal {
        instance: InstanceId(instance),
        trigger,
        id: value.id.unwrap_or_else(|| clock::new_id().to_string()),
        input: value.input,
    };
    run(&app, &who, command, options, &canonical).await
}

/// Sends a signal to whoever waits under a name.
///
/// Of several instances, the one that has waited longest is given the signal. When nobody waits, it is kept for 30 days, for a
/// state that counts signals from before it was entered.
#[utoipa::path(post, path = "/v1/signals/{trigger}", tag = "signals",
    params(("trigger" = String, Path), DryRun), request_body = CorrelatedBody,
    responses((status = 200, body = Changed), (status = 202, body = KeptSignal, description = "kept until somebody waits for it")))]
pub(super) async fn correlate(
    State(app): State<App>,
    Caller(who): Caller,
    Path(trigger): Path<String>,
    options: Options,
    Body { value, .. }: Body<CorrelatedBody>,
) -> Result<Response, Problem> {
    if options.if_match.is_some() {
        let detail = "which instance takes the signal is not known before; leave If-Match out";
        return Err(Problem::new("malformed_request", detail));
    }
    check_name("/trigger", &trigger)?;
    check_name("/correlation", &value.correlation)?;
    if let Some(definition) = &value.definition {
        check_name("/definition", definition)?;
    }
    check_id(&value.id)?;
    check_document("/input", &value.input)?;
    let kept = KeptSignal {
        correlation: value.correlation.clone(),
        id: value.id.clone(),
        dry_run: options.dry_run,
    };
    let signal = Correlated {
        correlation: value.correlation,
        trigger,
        id: value.id,
        definition: value.definition,
        input: value.input,
        dry_run: options.dry_run,
        trace: options.trace,
    };
    let render = |done: &Done<'_>| render(&app, &who, done);
    let reply = app.engine.signal(&who, signal, &render).await?;
    Ok(match reply {
        Some(reply) => respond(reply),
        None => (StatusCode::ACCEPTED, axum::Json(kept)).into_response(),
    })
}

fn check_id(id: &str) -> Result<(), Problem> {
    let bytes_max = crate::domain::turn::SIGNAL_ID_BYTES_MAX;
    if (1..=bytes_max).contains(&id.len()) && !id.chars().any(char::is_control) {
        return Ok(());
    }
    let detail = format!("1 to {bytes_max} bytes, none of them a control character");
    let problem = Problem::new("invalid_request", format!("/id: {detail}"));
    Err(problem.at("/id", "malformed", detail))
}
