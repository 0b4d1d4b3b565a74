//! Signals: what people and systems outside tell an instance, or whoever waits under a name of the flow's own; and what
//! became of those.

use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
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
use crate::engine::{Correlated, Done, Fate, Rendered, Rendering, Told};

/// What a signal says.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SignalBody {
    /// The same id counts once for each sender, trigger and instance, for 60 days. Without it each request is a signal of
    /// its own.
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
    /// The same id counts once for each sender, trigger and correlation, for 60 days.
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
    /// By which its sender may ask what became of it; none on a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<Uuid>,
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
        correlation: None,
    };
    run(&app, &who, command, options, &canonical).await
}

/// Sends a signal to whoever waits under a name.
///
/// Of several instances, the one that has waited longest is given the signal; suspended ones are passed over. When nobody
/// waits, it is kept for 30 days, for a state that counts signals from before it was entered. `GET /v1/signals/{id}` tells
/// what became of it.
#[utoipa::path(post, path = "/v1/signals/{signal}", tag = "signals",
    params(("signal" = String, Path, description = "The trigger."), DryRun), request_body = CorrelatedBody,
    responses((status = 200, body = Changed), (status = 202, body = KeptSignal, description = "kept until somebody waits for it")))]
pub(super) async fn correlate(
    State(app): State<App>,
    Caller(who): Caller,
    Path(trigger): Path<String>,
    options: Options,
    Body { value, canonical }: Body<CorrelatedBody>,
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
    let (correlation, id, dry_run) = (value.correlation.clone(), value.id.clone(), options.dry_run);
    let kept = |signal: Option<Uuid>| {
        let body = KeptSignal {
            signal,
            correlation: correlation.clone(),
            id: id.clone(),
            dry_run,
        };
        Rendered {
            status: 202,
            body: serde_json::to_string(&body).expect("views serialise"),
            headers: location(signal),
        }
    };
    let signal = Correlated {
        correlation: value.correlation,
        trigger,
        id: value.id,
        definition: value.definition,
        input: value.input,
        idempotency: options.idempotency(&canonical),
        dry_run,
        trace: options.trace,
    };
    let taken = |done: &Done<'_>, signal: Option<Uuid>| {
        let mut rendered = render(&app, &who, done);
        rendered.headers = format!("{}\n{}", rendered.headers, location(signal));
        rendered
    };
    let rendering = Rendering {
        taken: &taken,
        kept: &kept,
    };
    let reply = Box::pin(app.engine.signal(&who, signal, &rendering)).await?;
    Ok(respond(reply))
}

/// Where its sender may ask what became of it.
fn location(signal: Option<Uuid>) -> String {
    signal.map_or_else(String::new, |signal| {
        format!("location: /v1/signals/{signal}")
    })
}

/// What became of a signal that was sent by correlation.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SignalView {
    pub signal: Uuid,
    pub trigger: String,
    pub correlation: String,
    /// The sender's.
    pub id: String,
    pub sender: String,
    /// Key of the definition that it is for; none where it is for any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    pub received_at: Timestamp,
    /// `kept`, `assigned`, `delivered`, `expired` or `refused`.
    pub status: &'static str,
    /// Until when it is kept for somebody to come.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Timestamp,
    /// The instance that has it, or is given it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<Uuid>,
    /// The event by which the instance received it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<Uuid>,
    /// When it was delivered or refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub settled_at: Option<Timestamp>,
    /// Why the instance refused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<RefusedSignal>,
}

/// Why a signal that was kept came to nothing.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RefusedSignal {
    pub code: String,
    pub message: String,
}

impl SignalView {
    fn of(told: Told) -> SignalView {
        let (status, event, refusal) = match told.fate {
            Fate::Kept => ("kept", None, None),
            Fate::Assigned => ("assigned", None, None),
            Fate::Delivered(event) => ("delivered", event, None),
            Fate::Expired => ("expired", None, None),
            Fate::Refused(reason) => ("refused", None, Some(reason)),
        };
        let receipt = told.receipt;
        SignalView {
            signal: receipt.signal,
            trigger: receipt.trigger,
            correlation: receipt.correlation,
            id: receipt.id,
            sender: receipt.sender,
            definition: receipt.definition,
            received_at: receipt.received_at,
            status,
            expires_at: receipt.expires_at,
            instance: receipt.instance.map(|instance| instance.0),
            event,
            settled_at: receipt.settled_at,
            refusal: refusal.map(|reason| RefusedSignal {
                code: reason.code,
                message: reason.message,
            }),
        }
    }
}

/// Shows what became of a signal that was sent by correlation.
///
/// For whoever sent it, and for those who may read the audit. It is told for 60 days.
#[utoipa::path(get, path = "/v1/signals/{signal}", tag = "signals", operation_id = "signal",
    params(("signal" = String, Path, format = Uuid, description = "The host's id of it.")),
    responses((status = 200, body = SignalView)))]
pub(super) async fn show(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
) -> Result<axum::Json<SignalView>, Problem> {
    let told = app.engine.fate(&who, id).await?;
    Ok(axum::Json(SignalView::of(told)))
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
