//! The documents that describe this API and its events.
//!
//! [`text`] makes the document from the descriptions of the routes. [`contract`] adds the parts that all routes share, [`examples`] the
//! recordings of a test.

mod contract;
mod examples;
mod problems;

use axum::extract::State;
use axum::response::Response;
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::Type;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Components, Info, ObjectBuilder, OpenApi, RefOr, Server, Tag};
use utoipa::{PartialSchema as _, ToSchema as _};

use super::fields::{self, Lists};
use super::layers::{self, Taken};
use super::problem::{CODES, FieldError, Problem};
use super::{App, json};
use crate::asyncapi;

/// The tags of operations in the order of the document, each with the subject of its operations.
const TAGS: [(&str, &str); 12] = [
    (
        "definitions",
        "Flows in their versions: publish, activate, compare, retire.",
    ),
    (
        "instances",
        "Start a flow about an entity, find instances, see what is possible now and what was done.",
    ),
    ("entities", "All that flows did about one entity of yours."),
    (
        "signals",
        "Messages from other systems that instances wait for.",
    ),
    (
        "tasks",
        "The work of people: inboxes, claims, decisions, delegation.",
    ),
    ("events", "What happened, page by page or as a stream."),
    ("compliance", "Reports and evidence for auditors."),
    (
        "notifications",
        "What people are told, and what they do not want to be told.",
    ),
    (
        "subscriptions",
        "Webhooks, and what became of each delivery.",
    ),
    (
        "directory",
        "People, groups, absences, roles and calendars, and the caller.",
    ),
    (
        "operations",
        "One change of many instances or tasks, and the jobs of the host.",
    ),
    ("operation", "Probes and metrics of a host."),
];

/// The document of these routes as it is served, the parameters `fields` of their lists, and the headers that they take.
pub(super) fn text(document: OpenApi) -> (String, Lists, Taken) {
    let document = serde_json::to_value(complete(document));
    let mut document = document.expect("the document serialises");
    let lists = fields::declare(&mut document);
    contract::tighten(&mut document);
    examples::add(&mut document);
    let taken = layers::taken(&document);
    (format!("{document:#}"), lists, taken)
}

/// Adds the parts that the routes do not describe: security, problems, tags.
fn complete(mut document: OpenApi) -> OpenApi {
    document.info = Info::new("wrkflw", env!("CARGO_PKG_VERSION"));
    document.info.description = Some(description());
    let components = document.components.get_or_insert_with(Components::new);
    components.add_security_scheme(
        "bearer",
        SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)),
    );
    components
        .schemas
        .insert(Problem::name().into_owned(), Problem::schema());
    components
        .schemas
        .insert(FieldError::name().into_owned(), FieldError::schema());
    document.tags = Some(TAGS.map(tag).to_vec());
    let mut server = Server::new("/");
    server.description = Some("The host that serves this document".to_owned());
    document.servers = Some(vec![server]);
    document.security = Some(vec![SecurityRequirement::new(
        "bearer",
        Vec::<String>::new(),
    )]);
    for (path, item) in &mut document.paths.paths {
        let open = !path.starts_with("/v1/");
        let operations = [
            &mut item.get,
            &mut item.put,
            &mut item.post,
            &mut item.delete,
        ];
        for operation in operations.into_iter().flatten() {
            describe_headers(path, operation);
            if open {
                operation.security = Some(vec![SecurityRequirement::default()]);
            }
        }
    }
    document
}

fn tag((name, description): (&str, &str)) -> Tag {
    let mut tag = Tag::new(name);
    tag.description = Some(description.to_owned());
    tag
}

/// The headers that are read outside of handlers.
fn describe_headers(path: &str, operation: &mut Operation) {
    let parameters = operation.parameters.get_or_insert_default();
    let is_command = parameters
        .iter()
        .any(|one| matches!(one, RefOr::T(one) if one.name == "dryRun"));
    let mut header = |name: &str, description: &str| {
        let text = ObjectBuilder::new().schema_type(Type::String);
        let header = ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Header)
            .description(Some(description))
            .schema(Some(text));
        parameters.push(RefOr::T(header.build()));
    };
    if is_command && let Some(description) = repetition(path) {
        header("Idempotency-Key", description);
    }
    // Only a command on one existing instance has a revision to match.
    let is_about_one =
        path.starts_with("/v1/instances/{id}/") || path.starts_with("/v1/tasks/{id}/");
    if is_command && is_about_one {
        header(
            "If-Match",
            "The instance's `ETag`; 412 if it has changed since",
        );
    }
    // `commands::render` renders these responses.
    if is_command && (is_about_one || path == "/v1/instances" || path == "/v1/signals/{signal}") {
        header(
            "Prefer",
            "`return=representation` returns the whole instance and the events; `return=minimal` returns ids, status, \
             revision, outcome and open tasks. The default is minimal, and representation for a dry run. Any other \
             preference is ignored (RFC 7240)",
        );
    }
    if path.ends_with("/events/stream") {
        header(
            "Last-Event-ID",
            "The id of the last event received; the stream continues after it",
        );
    }
}

/// The answer to a repetition of a command with the same key. None if the command takes no key, because it is idempotent without one.
fn repetition(path: &str) -> Option<&'static str> {
    if path.ends_with("/absences") || ["/v1/migrations", "/v1/cancellations"].contains(&path) {
        return Some(
            "A repeated request with the same key gets what the first one made, as it is then. The key makes the id, so it counts for good",
        );
    }
    if path == "/v1/tasks/bulk" {
        return Some(
            "For 24 hours, a repeated request with the same key gets the same result for each task whose command succeeded, and \
             repeats the others",
        );
    }
    let without_key = ["/v1/people", "/v1/groups", "/v1/roles", "/v1/definitions"];
    let takes_key = !without_key.iter().any(|place| path.starts_with(place));
    takes_key.then_some("A repeated request with the same key gets the same response for 24 hours")
}

fn description() -> String {
    let mut text = String::from(
        "A workflow engine for work that people decide.\n\nRequests below `/v1/` need a bearer token: one of your identity \
         provider, or what `wrkflw token NAME` prints for a person of `wrkflw dev`.\n\nCommands on instances and tasks, and new \
         absences, take `Idempotency-Key` and `?dryRun=true`, those on a started instance `If-Match` too. Other changes refuse these two \
         headers. Problem codes:\n\n",
    );
    let lines = CODES
        .iter()
        .map(|(code, status, title)| format!("- `{code}` ({status}): {title}\n"));
    text.extend(lines);
    text
}

/// The channels and messages of the event topic.
pub(super) async fn asyncapi(State(app): State<App>) -> Response {
    json(asyncapi::document(&app.naming, &app.topics).to_string())
}
