//! Signals from people and other systems: to an instance or by correlation key, their status, and those that an instance received.

use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::App;
use super::commands::{CommandAnswer, CommandResult, render, respond, run, whole_again};
use super::comments::seen;
use super::conditional::conditional;
use super::extract::{Body, Caller, DryRun, Options, Path, Query, malformed};
use super::layers::without_query;
use super::page::{Page, decode, limit, page};
use super::problem::Problem;
use super::shapes::SignalStatusName;
use wrkflw_core::command::Command;
use wrkflw_core::execution::check_signal_id;
use wrkflw_core::ids::InstanceId;
use wrkflw_core::json::Json;
use wrkflw_engine::validation::{check_document, check_id, check_key};
use wrkflw_engine::{Correlated, Done, Rendered, Rendering, SentSignal, SignalStatus};
use wrkflw_runtime::clock;
use wrkflw_store::receipts::{self, ReceivedSignal};

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    let single = OpenApiRouter::new().routes(routes!(show));
    OpenApiRouter::new()
        .routes(routes!(send))
        .routes(routes!(correlate))
        .routes(routes!(list))
        .merge(without_query(conditional(single)))
}

/// The id and input of a signal.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SignalBody {
    /// The same id counts once for each sender, trigger and instance, for 60 days. Without an id, each request is a separate
    /// signal.
    #[schema(format = "name")]
    pub id: Option<String>,
    #[serde(default = "Json::empty")]
    #[schema(value_type = Object)]
    pub input: Json,
}

/// The correlation key, id and input of a signal.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CorrelatedBody {
    /// The correlation key for which a state waits, such as an order number.
    #[schema(format = "name")]
    pub correlation: String,
    /// The same id counts once for each sender, trigger and correlation, for 60 days.
    #[schema(format = "name")]
    pub id: String,
    /// Only for instances of this definition. Others may wait for the same correlation key.
    #[serde(rename = "definitionKey")]
    #[schema(format = "key")]
    pub definition: Option<String>,
    /// `one`: to the state that has waited longest, now or later. `all`: to every state that subscribes to it now; it is not kept.
    #[serde(default)]
    pub deliver: Deliver,
    #[serde(default = "Json::empty")]
    #[schema(value_type = Object)]
    pub input: Json,
}

/// To how many of the states that subscribe to it a signal is delivered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Deliver {
    #[default]
    One,
    All,
}

/// A buffered signal that no instance waits for yet, or a signal that is being delivered to all.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SignalAnswer {
    /// Always `accepted`.
    pub result: CommandResult,
    pub signal: KeptSignal,
    /// Nothing was written.
    pub dry_run: bool,
}

/// A signal that the host keeps.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct KeptSignal {
    /// The id by which its sender may get its status. None on a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal_id: Option<Uuid>,
    pub trigger: String,
    pub correlation: String,
    /// The id that the sender gave it.
    pub id: String,
}

/// Sends a signal to an instance.
///
/// It moves the oldest active state that takes the trigger. A signal that comes too early is buffered for a later state.
#[utoipa::path(post, path = "/v1/instances/{id}/signals/{trigger}", tag = "signals", operation_id = "signalInstance",
    params(("id" = Uuid, Path), ("trigger" = String, Path, format = "name"), DryRun), request_body = SignalBody,
    responses((status = 200, body = CommandAnswer), (status = 202, body = CommandAnswer, description = "buffered for a later state")))]
pub(super) async fn send(
    State(app): State<App>,
    Caller(who): Caller,
    Path((instance, trigger)): Path<(Uuid, String)>,
    options: Options,
    Body { value, canonical }: Body<SignalBody>,
) -> Result<Response, Problem> {
    if let Some(id) = &value.id {
        signal_id(id)?;
    }
    check_document("/input", &value.input)?;
    let command = Command::Signal {
        instance: InstanceId(instance),
        trigger,
        id: value.id.unwrap_or_else(|| clock::new_id().to_string()),
        input: value.input,
        correlation: None,
        state: None,
    };
    run(&app, &who, command, options, &canonical).await
}

/// Sends a signal to an instance that waits for a correlation key.
///
/// Of several instances, the one that has waited longest gets the signal; suspended ones are skipped. If no instance waits,
/// the signal is buffered for 30 days, for a state that subscribes to buffered signals. With `"deliver": "all"`, every state that
/// subscribes to it now gets it, soon after the answer. `GET /v1/signals/{id}` shows its status.
#[utoipa::path(post, path = "/v1/signals/{signal}", tag = "signals", operation_id = "sendSignal",
    params(("signal" = String, Path, format = "name", description = "The trigger."), DryRun), request_body = CorrelatedBody,
    responses((status = 200, body = CommandAnswer), (status = 202, body = SignalAnswer, description = "buffered until a state subscribes to it, or being delivered to all")))]
pub(super) async fn correlate(
    State(app): State<App>,
    Caller(who): Caller,
    Path(trigger): Path<String>,
    options: Options,
    Body { value, canonical }: Body<CorrelatedBody>,
) -> Result<Response, Problem> {
    check_id("/signal", &trigger)?;
    check_id("/correlation", &value.correlation)?;
    if let Some(definition) = &value.definition {
        check_key("/definitionKey", definition)?;
    }
    signal_id(&value.id)?;
    check_document("/input", &value.input)?;
    let (sent, correlation, id) = (trigger.clone(), value.correlation.clone(), value.id.clone());
    let dry_run = options.dry_run;
    let kept = |signal: Option<Uuid>| {
        let body = SignalAnswer {
            result: CommandResult::Accepted,
            signal: KeptSignal {
                signal_id: signal,
                trigger: sent.clone(),
                correlation: correlation.clone(),
                id: id.clone(),
            },
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
        to_all: value.deliver == Deliver::All,
        idempotency: options.idempotency(&canonical),
        dry_run,
        trace: options.trace,
    };
    let prefer = options.prefer;
    let taken = |done: &Done<'_>, signal: Option<Uuid>| {
        if !done.is_seen {
            // A sender who does not see the instance must not learn which instance takes the signal. So the answer is that
            // the signal is kept.
            return kept(signal);
        }
        let mut rendered = render(&app, &who, prefer, done);
        rendered.headers = format!("{}\n{}", rendered.headers, location(signal));
        rendered
    };
    let rendering = Rendering {
        taken: &taken,
        kept: &kept,
    };
    let reply = Box::pin(app.engine.signals().send(&who, signal, &rendering)).await?;
    whole_again(&app, &who, &reply).await?;
    Ok(respond(reply))
}

/// The `location` header with the path of the signal's status.
fn location(signal: Option<Uuid>) -> String {
    signal.map_or_else(String::new, |signal| {
        format!("location: /v1/signals/{signal}")
    })
}

/// The status of a signal that was sent by correlation key.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SignalView {
    /// The id that the host gave it.
    #[serde(rename = "signalId")]
    pub signal: Uuid,
    pub trigger: String,
    pub correlation: String,
    /// The id that the sender gave it.
    pub id: String,
    pub sender: String,
    /// The definition that it is for. None if it is for any.
    #[serde(rename = "definitionKey", skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    pub received_at: Timestamp,
    #[schema(value_type = SignalStatusName)]
    pub status: &'static str,
    pub deliver: Deliver,
    /// Of a signal to all: how many states have taken it so far. Left out for a sender who may not see every instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken: Option<u32>,
    /// Of a signal to all: how many states have refused it so far. Left out for a sender who may not see every instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<u32>,
    /// Until when it is buffered. None for a signal to all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    /// The instance that has received it, or will receive it.
    #[serde(rename = "instanceId", skip_serializing_if = "Option::is_none")]
    pub instance: Option<Uuid>,
    /// The event by which the instance received it.
    #[serde(rename = "eventId", skip_serializing_if = "Option::is_none")]
    pub event: Option<Uuid>,
    /// When it was delivered or refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub settled_at: Option<Timestamp>,
    /// Why the instance refused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<RefusedSignal>,
}

/// Why an instance refused a buffered signal.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RefusedSignal {
    pub code: String,
    pub message: String,
}

impl SignalView {
    fn of(sent: SentSignal) -> SignalView {
        let (status, event, refusal) = match sent.status {
            SignalStatus::Kept => ("KEPT", None, None),
            SignalStatus::Assigned => ("ASSIGNED", None, None),
            SignalStatus::Delivered(event) => ("DELIVERED", event, None),
            SignalStatus::Expired => ("EXPIRED", None, None),
            SignalStatus::Refused(reason) => ("REFUSED", None, Some(reason)),
        };
        let receipt = sent.receipt;
        let numbers = receipt.to_all.filter(|_| sent.tells_numbers);
        SignalView {
            signal: receipt.signal,
            trigger: receipt.trigger,
            correlation: receipt.correlation,
            id: receipt.id,
            sender: receipt.sender,
            definition: receipt.definition,
            received_at: receipt.received_at,
            status,
            deliver: match receipt.to_all {
                Some(_) => Deliver::All,
                None => Deliver::One,
            },
            taken: numbers.map(|tally| tally.taken),
            refused: numbers.map(|tally| tally.refused),
            expires_at: receipt.to_all.is_none().then_some(receipt.expires_at),
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

/// Shows the status of a signal that was sent by correlation key.
///
/// Only for its sender, and for people who may read the audit. The status is kept for 60 days.
#[utoipa::path(get, path = "/v1/signals/{signal}", tag = "signals", operation_id = "getSignal",
    params(("signal" = String, Path, format = Uuid, description = "The host's id of the signal.")),
    responses((status = 200, body = SignalView)))]
pub(super) async fn show(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
) -> Result<axum::Json<SignalView>, Problem> {
    let sent = app.engine.signals().status(&who, id).await?;
    Ok(axum::Json(SignalView::of(sent)))
}

/// A signal that an instance has received.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReceivedSignalView {
    /// The event by which the instance received it. It has what the definition makes public of the input.
    event_id: Uuid,
    /// The id that the sender gave it. None if the entry was made unreadable; so are `trigger` and `stateId`.
    id: Option<String>,
    trigger: Option<String>,
    /// The state instance that took it at once. None if it was buffered for a later one.
    state_id: Option<Uuid>,
    /// None for the host.
    sender: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    received_at: Timestamp,
}

impl From<ReceivedSignal> for ReceivedSignalView {
    fn from(row: ReceivedSignal) -> ReceivedSignalView {
        let (mut id, mut trigger, mut state_id) = (None, None, None);
        if let Some(content) = row.content {
            (id, trigger) = (Some(content.id), Some(content.trigger));
            state_id = content.state.map(|state| state.0);
        }
        ReceivedSignalView {
            event_id: row.event,
            id,
            trigger,
            state_id,
            sender: row.sender,
            received_at: row.received_at,
        }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct ReceivedQuery {
    pub after: Option<String>,
    #[param(minimum = 1, maximum = 100)]
    pub limit: Option<u32>,
}

/// Lists the signals that an instance has received, newest first.
///
/// Those sent to it, those by correlation key, and those to all. A refused signal is not received: the audit has it.
#[utoipa::path(get, path = "/v1/instances/{id}/signals", tag = "signals", operation_id = "listSignals",
    params(("id" = Uuid, Path), ReceivedQuery), responses((status = 200, body = Page<ReceivedSignalView>)))]
pub(super) async fn list(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
    Query(query): Query<ReceivedQuery>,
) -> Result<axum::Json<Page<ReceivedSignalView>>, Problem> {
    let viewer = app.engine.viewing(&who, "instance:read").await?;
    let (limit, before) = (limit(query.limit)?, decode(query.after.as_deref())?);
    let instance = InstanceId(id);
    seen(&app, &viewer, instance).await?;
    let reader = app.engine.reader();
    let found = receipts::list(reader, &viewer, instance, before, limit + 1);
    Ok(axum::Json(page(
        found.await?,
        limit,
        |last: &ReceivedSignal| last.seq.to_string(),
    )))
}

fn signal_id(id: &str) -> Result<(), Problem> {
    check_signal_id(id).map_err(|rule| malformed("/id", &rule))
}
