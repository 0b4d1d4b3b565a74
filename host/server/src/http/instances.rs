//! Instances: start, list, search, show, and their actions.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::App;
use super::actions::ActionView;
use super::commands::{CommandAnswer, run};
use super::conditional::{Changing, conditional};
use super::extract::{Body, Caller, DryRun, Options, Path};
use super::include::{commas, words};
use super::instance_detail::{self, InstanceDetail, InstanceLine};
use super::large::rendered;
use super::layers::without_query;
use super::page::{Page, decode, limit};
use super::problem::Problem;
use super::search::{AttributeCondition, Origin, Search, conditions, of_body};
use super::shapes::InstanceStatus;
use super::started::add_progress;
use super::view::{each, view};
use wrkflw_core::answer::AttributeValue;
use wrkflw_core::command::Command;
use wrkflw_core::ids::InstanceId;
use wrkflw_core::instance::Entity;
use wrkflw_core::json::Json;
use wrkflw_core::moment;
use wrkflw_core::search::UntypedCondition;
use wrkflw_engine::Identity;
use wrkflw_engine::validation::{check_document, check_id};
use wrkflw_store::instances::InstanceFilter;
use wrkflw_store::jobs::calls;
use wrkflw_store::load::Stored;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    let single = OpenApiRouter::new()
        .routes(routes!(show))
        .routes(routes!(actions));
    OpenApiRouter::new()
        .routes(routes!(start, list))
        .merge(without_query(conditional(single)))
        .merge(without_query(OpenApiRouter::new().routes(routes!(search))))
}

view! {
    of wrkflw_store::instances::InstanceSummary;
    /// An instance in a list.
    pub(super) struct InstanceSummary {
        pub id: Uuid,
        pub definition_key: String,
        pub definition_version: u32,
        #[schema(value_type = InstanceStatus)]
        pub status: String,
        pub outcome: Option<String>,
        pub revision: u32,
        pub entity_type: String,
        pub entity_id: String,
        pub initiator: String,
        #[schema(value_type = String, format = DateTime)]
        pub started_at: Timestamp,
        #[schema(value_type = String, format = DateTime)]
        pub updated_at: Timestamp,
        /// By the template of the definition.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub title: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub summary: Option<String>,
        /// Names of the active states.
        pub states: Vec<String>,
        /// The highest priority of its active states. None without one.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub priority: Option<i16>,
        /// As the definition names it.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub priority_name: Option<String>,
        /// When the next deadline of the instance passes. None while its deadlines are paused.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<String>, format = DateTime)]
        pub next_due_at: Option<Timestamp>,
        /// Only with `include=attributes`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<Object>)]
        pub attributes: Option<BTreeMap<String, AttributeValue>>,
    }
}

/// The definition, entity and data of a new instance.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct StartBody {
    /// Key of the definition. The instance runs its active version.
    #[schema(format = "key")]
    pub definition_key: String,
    #[schema(format = "name")]
    pub entity_type: String,
    #[schema(format = "name")]
    pub entity_id: String,
    /// Must match the flow's data schema.
    #[serde(default = "Json::empty")]
    #[schema(value_type = Object)]
    pub data: Json,
}

/// The order of a list of instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
pub(super) enum InstanceSort {
    #[serde(rename = "startedAt")]
    Oldest,
    #[serde(rename = "-startedAt")]
    Newest,
}

/// Optional parts of an instance in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum InstancePart {
    Attributes,
    Ahead,
    People,
}

/// Which instances are listed. All that is given must hold.
#[derive(Debug, Deserialize, IntoParams, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct InstanceQuery {
    /// Conditions on attributes, at most five. In a query: `attribute.NAME`.
    #[serde(default)]
    #[param(ignore)]
    #[schema(max_items = 5)]
    pub attributes: Vec<AttributeCondition>,
    #[serde(rename = "definitionKey")]
    #[schema(format = "key")]
    pub definition: Option<String>,
    #[param(inline)]
    pub status: Option<InstanceStatus>,
    /// Name of an active state.
    #[schema(format = "key")]
    pub state: Option<String>,
    #[schema(format = "name")]
    pub entity_type: Option<String>,
    #[schema(format = "name")]
    pub entity_id: Option<String>,
    pub initiator: Option<String>,
    /// A person who owns an open task of the instance now.
    pub owner: Option<String>,
    /// A person who owns a task of the instance, or was the last owner of one that ended.
    pub ever_owner: Option<String>,
    /// Words in the title, summary and entity id of the instance, or in one of its text attributes. The last one may be the beginning of a
    /// word.
    #[param(min_length = 1, max_length = 200)]
    pub q: Option<String>,
    /// Nothing has changed in the instance since this moment.
    #[param(value_type = Option<String>, format = DateTime)]
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(default, deserialize_with = "moment::read_optional")]
    pub updated_before: Option<Timestamp>,
    /// An active state or an open task of the instance is due before this moment.
    #[param(value_type = Option<String>, format = DateTime)]
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(default, deserialize_with = "moment::read_optional")]
    pub due_before: Option<Timestamp>,
    /// The instance whose child it is.
    #[serde(rename = "parentId")]
    pub parent: Option<Uuid>,
    /// Whether one of its states is unassignable: too few people are eligible for its work.
    pub unassignable: Option<bool>,
    /// Started at or after.
    #[param(value_type = Option<String>, format = DateTime)]
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(default, deserialize_with = "moment::read_optional")]
    pub from: Option<Timestamp>,
    /// Started before.
    #[param(value_type = Option<String>, format = DateTime)]
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(default, deserialize_with = "moment::read_optional")]
    pub until: Option<Timestamp>,
    /// `-startedAt` (default): the newest first. `startedAt`: the oldest first.
    #[param(inline)]
    pub sort: Option<InstanceSort>,
    /// The members that each instance of the answer has, separated by commas. Without it, all.
    #[serde(default, deserialize_with = "commas")]
    #[param(value_type = Vec<String>, inline, required = false, style = Form, explode = false)]
    #[schema(value_type = Vec<String>)]
    pub fields: Vec<String>,
    /// Whether the answer has the count of all instances that match, at most 1000.
    #[serde(default)]
    #[param(default = false)]
    pub count: bool,
    /// Further members of each instance, separated by commas. `attributes`. `ahead`: the states that it may still reach. `people`: who owns and may
    /// claim its open tasks, and the answer has the display names of people and groups.
    #[serde(default, deserialize_with = "commas")]
    #[param(value_type = Vec<InstancePart>, inline, required = false, style = Form, explode = false)]
    #[schema(value_type = Vec<InstancePart>)]
    pub include: Vec<InstancePart>,
    pub after: Option<String>,
    #[param(minimum = 1, maximum = 100)]
    #[schema(minimum = 1, maximum = 100)]
    pub limit: Option<u32>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(super) struct PageQuery {
    pub after: Option<String>,
    #[param(minimum = 1, maximum = 100)]
    pub limit: Option<u32>,
}

/// Starts an instance of the definition's active version.
#[utoipa::path(post, path = "/v1/instances", tag = "instances", operation_id = "startInstance", params(DryRun), request_body = StartBody,
    responses((status = 201, body = CommandAnswer), (status = 200, body = CommandAnswer, description = "dry run")))]
pub(super) async fn start(
    State(app): State<App>,
    Caller(who): Caller,
    options: Options,
    Body { value, canonical }: Body<StartBody>,
) -> Result<Response, Problem> {
    check_id("/entityType", &value.entity_type)?;
    check_id("/entityId", &value.entity_id)?;
    check_document("/data", &value.data)?;
    let entity = Entity {
        kind: value.entity_type,
        id: value.entity_id,
    };
    let command = Command::Start {
        lineage: None,
        definition: value.definition_key,
        entity,
        data: value.data,
    };
    run(&app, &who, command, options, &canonical).await
}

/// Lists instances, newest first if nothing else is said.
///
/// A page of a search by attributes, words, owners or times may not be full. There may be more as long as `page.next` is present.
#[utoipa::path(get, path = "/v1/instances", tag = "instances", operation_id = "listInstances",
    params(InstanceQuery, ("attribute.NAME" = Option<String>, Query,
        description = "`[TYPE:][OPERATOR:]VALUE`, up to five times: what the attribute NAME is like. OPERATOR: eq (default), ne, gt, \
            gte, lt, lte, in (a list with commas), prefix, exists (true or false). TYPE, where definitions disagree: text, boolean, \
            decimal, float, timestamp, bytes (base64). Example: `attribute.amount=gt:1000`")),
    responses((status = 200, body = Page<InstanceLine>)))]
pub(super) async fn list(
    State(app): State<App>,
    Caller(who): Caller,
    Search { untyped, query }: Search<InstanceQuery>,
) -> Result<Response, Problem> {
    found(&app, &who, (untyped, Origin::Query), query).await
}

/// Lists instances like `GET /v1/instances`, with the filters in a body; `fields` and `include` are lists there. A value that begins
/// like an operator needs no prefix here.
///
/// A page of a search by attributes, words, owners or times may not be full. There may be more as long as `page.next` is present.
#[utoipa::path(post, path = "/v1/instances/search", tag = "instances", operation_id = "searchInstances", request_body = Option<InstanceQuery>,
    responses((status = 200, body = Page<InstanceLine>)))]
pub(super) async fn search(
    State(app): State<App>,
    Caller(who): Caller,
    Body { mut value, .. }: Body<InstanceQuery>,
) -> Result<Response, Problem> {
    let untyped = of_body(std::mem::take(&mut value.attributes))?;
    found(&app, &who, (untyped, Origin::Body), value).await
}

async fn found(
    app: &App,
    who: &Identity,
    untyped: (Vec<UntypedCondition>, Origin),
    query: InstanceQuery,
) -> Result<Response, Problem> {
    let viewer = app.engine.viewing(who, "instance:read").await?;
    let limit = limit(query.limit)?;
    let options = instance_detail::InstanceListOptions {
        include: query.include,
        fields: instance_detail::fields(query.fields)?,
        count: query.count,
    };
    let filter = InstanceFilter {
        conditions: conditions(app, who, query.definition.as_deref(), untyped).await?,
        definition: query.definition,
        status: query.status.map(|status| status.name().to_owned()),
        state: query.state,
        entity_type: query.entity_type,
        entity_id: query.entity_id,
        initiator: query.initiator,
        owner: query.owner,
        ever_owner_asks: query.ever_owner.as_ref() == Some(&who.subject),
        ever_owner: query.ever_owner,
        words: words(query.q)?,
        updated_before: query.updated_before,
        due_before: query.due_before,
        parent: query.parent,
        unassignable: query.unassignable,
        from: query.from,
        to: query.until,
        oldest_first: query.sort == Some(InstanceSort::Oldest),
        after: decode(query.after.as_deref())?,
        limit,
    };
    instance_detail::page(app, (who, &viewer), options, filter).await
}

/// An instance with its active states and their tasks.
#[utoipa::path(get, path = "/v1/instances/{id}", tag = "instances", operation_id = "getInstance", params(("id" = Uuid, Path)),
    responses((status = 200, body = InstanceDetail)))]
pub(super) async fn show(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
) -> Result<Response, Problem> {
    let Stored { instance, .. } = read(&app, &who, id).await?;
    let version = app
        .engine
        .versions()
        .get(who.tenant, &instance.definition)
        .await?;
    let etag = [(header::ETAG, format!("\"{}\"", instance.revision))];
    let names = instance_detail::named(&instance, &who.subject);
    let names = names.names(&app, who.tenant).await?;
    let (bytes, viewer) = (instance.weight() + names.bytes(), who.subject.clone());
    let is_called = instance.active.iter().any(|one| one.open_call().is_some());
    let calls = if is_called {
        let reader = app.engine.reader();
        calls::of_instance(reader, who.tenant, instance.id).await?
    } else {
        Vec::new()
    };
    let view = move || {
        let mut view = InstanceDetail::of(&instance, &version.graph, &viewer, names);
        add_progress(view.states(), &calls);
        view
    };
    let answer = rendered(&app, who.tenant, bytes, view).await?;
    let mut response = (etag, answer).into_response();
    if is_called {
        // The attempts of a call change without a new revision.
        response.extensions_mut().insert(Changing);
    }
    Ok(response)
}

/// What the caller may do now, and why other actions are refused.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ActionList {
    /// The instance's revision to which this applies.
    pub revision: u32,
    pub actions: Vec<ActionView>,
    pub omitted: Omissions,
}

/// What was omitted because the instance is very large. Usually, all are 0.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Omissions {
    /// Decisions in past states whose comment and input flow logic did not get.
    pub texts: usize,
    /// Past states that it did not get. It got who decided in them.
    pub states: usize,
    /// Actions that this answer does not have.
    pub actions: usize,
}

/// Lists what can be done with the instance and its open tasks as they are: allowed to the caller, or refused with the reason.
///
/// What fits nobody now is left out, such as the release of a task without owner, or a restart before the end.
#[utoipa::path(get, path = "/v1/instances/{id}/actions", tag = "instances", operation_id = "getInstanceActions", params(("id" = Uuid, Path)),
    responses((status = 200, body = ActionList)))]
pub(super) async fn actions(
    State(app): State<App>,
    Caller(who): Caller,
    Path(id): Path<Uuid>,
) -> Result<Response, Problem> {
    app.engine.permit(&who, "instance:read").await?;
    let explained = app
        .engine
        .actions()
        .on_instance(&who, InstanceId(id))
        .await?;
    let bytes = explained.bytes();
    let omitted = Omissions {
        texts: explained.omitted.texts,
        states: explained.omitted.states,
        actions: explained.untried,
    };
    let actions = ActionList {
        revision: explained.revision,
        actions: each(explained.actions),
        omitted,
    };
    rendered(&app, who.tenant, bytes, || actions).await
}

pub(super) async fn read(app: &App, who: &Identity, id: Uuid) -> Result<Stored, Problem> {
    app.engine.permit(who, "instance:read").await?;
    Ok(app.engine.read(who, InstanceId(id)).await?)
}
