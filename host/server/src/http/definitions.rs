//! Definitions: publish, list, activate, retire, reinstate, stop, draw.

mod list;
mod overview;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::extract::multipart::{MultipartError, MultipartRejection};
use axum::extract::{Multipart, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::conditional::conditional;
use super::extract::{BODY_BYTES_MAX, Body, Caller, DryRun, Path, Query, parse_body};
use super::large::rendered;
use super::layers::without_query;
use super::pace;
use super::problem::Problem;
use super::svg;
use super::task_commands::ReasonBody;
use super::tasks::Empty;
use super::uploads::{UPLOAD_TIME_MAX, UploadPlace};
use super::versions::{Activation, Published, Retirement, Stopping, VersionSummary};
use wrkflw_core::graph::Graph;
use wrkflw_core::ids::VersionRef;
use wrkflw_core::json::{Json, escaped};
use wrkflw_engine::{Error, Identity};
use wrkflw_store::definitions;
use wrkflw_store::definitions::list::VersionFilter;

/// The largest upload, in bytes: a component and its config.
pub(super) const UPLOAD_BYTES_MAX: usize = 26 * 1024 * 1024;
/// Maximum length of a field's name in a problem.
const FIELD_NAME_CHARS_SHOWN: usize = 64;

/// The routes of this file and of those below it.
pub(super) fn routes() -> OpenApiRouter<App> {
    let upload = OpenApiRouter::new()
        .routes(routes!(publish))
        .layer(DefaultBodyLimit::max(UPLOAD_BYTES_MAX));
    let single = OpenApiRouter::new()
        .routes(routes!(show))
        .routes(routes!(retire))
        .routes(routes!(reinstate))
        .routes(routes!(stop))
        .routes(routes!(resume))
        .routes(routes!(diagram));
    OpenApiRouter::new()
        .routes(routes!(activate))
        .merge(without_query(upload))
        .merge(without_query(conditional(single)))
        .merge(list::routes())
        .merge(overview::routes())
}

/// The form that publishes a version.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "documents the form that `publish` reads")]
pub(super) struct PublishForm {
    /// The WebAssembly component.
    #[schema(value_type = Option<String>, format = Binary)]
    component: Option<Vec<u8>>,
    /// Instead of `component`: the number of a published version of the definition whose component is used again, with another
    /// config.
    #[serde(rename = "componentVersion")]
    component_version: Option<u32>,
    /// JSON settings of the flow; `{}` when absent.
    #[schema(value_type = Option<Object>)]
    config: Option<String>,
    /// Why the version is published. Content that had been published before keeps its note.
    #[schema(min_length = 1, max_length = 500)]
    note: Option<String>,
}

/// A published version with its graph.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct VersionDetail {
    #[serde(flatten)]
    pub summary: VersionSummary,
    #[schema(value_type = Object)]
    pub config: Json,
    #[schema(value_type = Object)]
    pub graph: Graph,
}

/// Publishes a component with its config as the definition's next version. Identical content keeps its version.
#[utoipa::path(post, path = "/v1/definitions/{key}/versions", tag = "definitions", operation_id = "publishVersion", params(("key" = String, Path, format = "key")),
    request_body(content = PublishForm, content_type = "multipart/form-data"),
    responses((status = 201, body = Published), (status = 200, body = Published, description = "had been published before")))]
pub(super) async fn publish(
    State(app): State<App>,
    Caller(who): Caller,
    Path(key): Path<String>,
    place: Option<Extension<UploadPlace>>,
    form: Result<Multipart, MultipartRejection>,
) -> Result<Response, Problem> {
    app.engine.permit(&who, "definition:publish").await?;
    let form = form.map_err(|_| {
        Problem::new(
            "unsupported_media_type",
            "send multipart/form-data with `component` or `componentVersion`, and optionally `config` and `note`",
        )
    })?;
    // It waits for the compiler in this place, too.
    let _place = match place {
        Some(Extension(place)) => place,
        None => app.uploads.place(who.tenant)?,
    };
    let reading = tokio::time::timeout(UPLOAD_TIME_MAX, read(form)).await;
    let Upload {
        component,
        version,
        config,
        note,
    } = reading.map_err(|_| {
        let seconds = UPLOAD_TIME_MAX.as_secs();
        let detail = format!("the upload did not arrive within {seconds} s");
        Problem::new("request_timeout", detail)
    })??;
    let component = match (component, version) {
        (Some(bytes), _) => bytes,
        (None, version) => again(&app, &who, &key, version).await?,
    };
    let config = match config {
        Some(bytes) => parse_body(&app, who.tenant, bytes, read_config).await?,
        None => Json::empty(),
    };
    let note = note.map(|bytes| text("note", &bytes)).transpose()?;
    let content = (&*component, &config);
    let published = app
        .engine
        .definitions()
        .publish(&who, &key, content, note.as_deref());
    let published = published.await?;
    let status = if published.created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((status, axum::Json(Published::from(published))).into_response())
}

/// The parts of a form, with either the component or the version.
struct Upload {
    component: Option<Bytes>,
    version: Option<Bytes>,
    config: Option<Bytes>,
    note: Option<Bytes>,
}

/// The text of a field.
fn text(field: &str, bytes: &[u8]) -> Result<String, Problem> {
    let text = str::from_utf8(bytes);
    let malformed = |_| unfit(field, "malformed", "text in UTF-8".into());
    text.map(str::to_owned).map_err(malformed)
}

/// The component of a published version of the definition.
async fn again(
    app: &App,
    who: &Identity,
    key: &str,
    version: Option<Bytes>,
) -> Result<Bytes, Problem> {
    let version = version.and_then(|bytes| str::from_utf8(&bytes).ok()?.parse().ok());
    let version = version.ok_or_else(|| {
        let detail = "the number of a version, such as 1";
        unfit("componentVersion", "malformed", detail.into())
    })?;
    let reference = VersionRef {
        key: key.to_owned(),
        version,
    };
    Ok(app
        .engine
        .definitions()
        .component(who, &reference)
        .await?
        .into())
}

async fn read(mut form: Multipart) -> Result<Upload, Problem> {
    let (mut component, mut config, mut version, mut note) = (None, None, None, None);
    while let Some(field) = form.next_field().await.map_err(broken)? {
        let name = field.name().unwrap_or_default().to_owned();
        let place = match name.as_str() {
            "component" => &mut component,
            "config" => &mut config,
            "componentVersion" => &mut version,
            "note" => &mut note,
            _ => {
                let name: String = name.chars().take(FIELD_NAME_CHARS_SHOWN).collect();
                let detail = format!(
                    "the form has the fields component, componentVersion, config and note, not {name:?}"
                );
                return Err(unfit(&name, "unknown_field", detail));
            }
        };
        // For some clients and proxies the first part counts, for others the last. So neither is accepted.
        if place
            .replace(field.bytes().await.map_err(broken)?)
            .is_some()
        {
            let detail = format!("the form has the field {name} more than once");
            return Err(unfit(&name, "repeated", detail));
        }
    }
    if component.is_some() == version.is_some() {
        let detail = "send exactly one of component and componentVersion";
        return Err(unfit("component", "required", detail.into()));
    }
    if config
        .as_ref()
        .is_some_and(|config| config.len() > BODY_BYTES_MAX)
    {
        let detail = format!("a config has at most {BODY_BYTES_MAX} bytes");
        return Err(Problem::new("too_large", detail));
    }
    Ok(Upload {
        component,
        version,
        config,
        note,
    })
}

fn read_config(bytes: &[u8]) -> Result<Json, Problem> {
    let malformed = |pointer: &str, detail: String| {
        Problem::new("malformed_json", format!("the config has {detail}")).at(
            &format!("/config{pointer}"),
            "malformed",
            detail,
        )
    };
    let text = str::from_utf8(bytes).map_err(|_| malformed("", "text that is not UTF-8".into()))?;
    Json::parse(text).map_err(|error| malformed(&error.pointer, error.located()))
}

fn broken(error: MultipartError) -> Problem {
    if let Some(problem) = pace::problem(&error) {
        return problem;
    }
    let code = if error.status() == StatusCode::PAYLOAD_TOO_LARGE {
        "too_large"
    } else {
        "malformed_request"
    };
    Problem::new(code, error.body_text())
}

fn unfit(field: &str, code: &str, detail: String) -> Problem {
    let pointer = format!("/{}", escaped(field));
    Problem::new("invalid_request", &*detail).at(&pointer, code, detail)
}

/// A version with its config and graph.
#[utoipa::path(get, path = "/v1/definitions/{key}/versions/{version}", tag = "definitions", operation_id = "getVersion",
    params(("key" = String, Path, format = "key"), ("version" = u32, Path)), responses((status = 200, body = VersionDetail)))]
pub(super) async fn show(
    State(app): State<App>,
    Caller(who): Caller,
    Path((key, version)): Path<(String, u32)>,
) -> Result<Response, Problem> {
    app.engine.permit(&who, "definition:read").await?;
    let (detail, bytes) = detail(&app, &who, &VersionRef { key, version }).await?;
    rendered(&app, who.tenant, bytes, detail).await
}

/// Makes the view of a version, and says how large it is.
async fn detail(
    app: &App,
    who: &Identity,
    reference: &VersionRef,
) -> Result<(impl FnOnce() -> VersionDetail + Send + use<>, usize), Problem> {
    let found = app.engine.versions().get(who.tenant, reference).await?;
    let above = reference
        .version
        .checked_add(1)
        .map(|above| (reference.key.as_str(), above));
    let filter = VersionFilter {
        key: Some(&reference.key),
        after: above,
        limit: 1,
        ..VersionFilter::default()
    };
    let versions = definitions::versions(app.engine.reader(), who.tenant, filter);
    // After a restore, the cache may have a version that the database lacks. Then an earlier version comes first.
    let mut versions = versions.await?.into_iter();
    let summary = versions.find(|one| one.version == reference.version);
    let summary = summary.ok_or_else(|| Error::no_version(reference))?;
    let bytes = found.config.json().as_str().len() + found.graph.bytes();
    let detail = move || VersionDetail {
        summary: summary.into(),
        config: found.config.json().clone(),
        graph: found.graph.clone(),
    };
    Ok((detail, bytes))
}

/// How a version is activated.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ActivateBody {
    /// Activate it although names that it uses do not exist; the audit keeps them.
    #[serde(default)]
    force: bool,
}

/// Uses this version for new instances. Running instances keep theirs. Refused if groups, people, calendars or services that it
/// uses do not exist, unless it is forced. A dry run says what it affects.
#[utoipa::path(post, path = "/v1/definitions/{key}/versions/{version}/activate", tag = "definitions", operation_id = "activateVersion",
    params(("key" = String, Path, format = "key"), ("version" = u32, Path), DryRun), request_body = ActivateBody, responses((status = 200, body = Activation)))]
pub(super) async fn activate(
    State(app): State<App>,
    Caller(who): Caller,
    Path((key, version)): Path<(String, u32)>,
    Query(dry): Query<DryRun>,
    Body { value, .. }: Body<ActivateBody>,
) -> Result<axum::Json<Activation>, Problem> {
    let reference = VersionRef { key, version };
    if dry.dry_run {
        let effects = app
            .engine
            .definitions()
            .activation_effects(&who, &reference)
            .await?;
        return Ok(axum::Json(Activation::tried(reference, effects)));
    }
    let activation = app
        .engine
        .definitions()
        .activate(&who, &reference, value.force);
    Ok(axum::Json(activation.await?.into()))
}

/// Stops using this version for new instances. Running instances continue.
#[utoipa::path(post, path = "/v1/definitions/{key}/versions/{version}/retire", tag = "definitions", operation_id = "retireVersion",
    params(("key" = String, Path, format = "key"), ("version" = u32, Path)), responses((status = 200, body = Retirement)))]
pub(super) async fn retire(
    State(app): State<App>,
    Caller(who): Caller,
    Path((key, version)): Path<(String, u32)>,
    _: Body<Empty>,
) -> Result<axum::Json<Retirement>, Problem> {
    let reference = VersionRef { key, version };
    Ok(axum::Json(
        app.engine
            .definitions()
            .retire(&who, &reference)
            .await?
            .into(),
    ))
}

/// Reinstates a retired version. New instances use it once it is activated again.
#[utoipa::path(post, path = "/v1/definitions/{key}/versions/{version}/reinstate", tag = "definitions", operation_id = "reinstateVersion",
    params(("key" = String, Path, format = "key"), ("version" = u32, Path)), responses((status = 200, body = Retirement)))]
pub(super) async fn reinstate(
    State(app): State<App>,
    Caller(who): Caller,
    Path((key, version)): Path<(String, u32)>,
    _: Body<Empty>,
) -> Result<axum::Json<Retirement>, Problem> {
    let reference = VersionRef { key, version };
    Ok(axum::Json(
        app.engine
            .definitions()
            .reinstate(&who, &reference)
            .await?
            .into(),
    ))
}

/// Stops the instances of this version until it is resumed: no deadline acts, no child starts, and only cancelling,
/// suspending, comments and migration to another version are allowed.
#[utoipa::path(post, path = "/v1/definitions/{key}/versions/{version}/stop", tag = "definitions", operation_id = "stopVersion",
    params(("key" = String, Path, format = "key"), ("version" = u32, Path)), request_body = ReasonBody, responses((status = 200, body = Stopping)))]
pub(super) async fn stop(
    State(app): State<App>,
    Caller(who): Caller,
    Path((key, version)): Path<(String, u32)>,
    Body { value, .. }: Body<ReasonBody>,
) -> Result<axum::Json<Stopping>, Problem> {
    let reference = VersionRef { key, version };
    let stopping = app
        .engine
        .definitions()
        .stop(&who, &reference, &value.reason)
        .await?;
    Ok(axum::Json(stopping.into()))
}

/// Resumes a stopped version. Deadlines and other work that became due meanwhile are done at once; what had failed before, and what
/// waits for it, after its pause.
#[utoipa::path(post, path = "/v1/definitions/{key}/versions/{version}/resume", tag = "definitions", operation_id = "resumeVersion",
    params(("key" = String, Path, format = "key"), ("version" = u32, Path)), responses((status = 200, body = Stopping)))]
pub(super) async fn resume(
    State(app): State<App>,
    Caller(who): Caller,
    Path((key, version)): Path<(String, u32)>,
    _: Body<Empty>,
) -> Result<axum::Json<Stopping>, Problem> {
    let reference = VersionRef { key, version };
    Ok(axum::Json(
        app.engine
            .definitions()
            .resume(&who, &reference)
            .await?
            .into(),
    ))
}

/// The diagram of a version.
#[utoipa::path(get, path = "/v1/definitions/{key}/versions/{version}/diagram.svg", tag = "definitions", operation_id = "getVersionDiagram",
    params(("key" = String, Path, format = "key"), ("version" = u32, Path)), responses((status = 200, content_type = "image/svg+xml", body = String)))]
pub(super) async fn diagram(
    State(app): State<App>,
    Caller(who): Caller,
    Path((key, version)): Path<(String, u32)>,
) -> Result<Response, Problem> {
    app.engine.permit(&who, "definition:read").await?;
    let version = app
        .engine
        .versions()
        .get(who.tenant, &VersionRef { key, version })
        .await?;
    let draw = move || crate::diagram::svg(&version.graph, None);
    Ok(svg(app.engine.offload().run(who.tenant, draw).await?))
}
