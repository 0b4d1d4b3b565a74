//! The page of a version: its status, its actions, its diagram, and its differences from another version.

use askama::Template;
use axum::extract::{Path, Query};
use axum::http::{StatusCode, header};
use axum::response::Response;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::difference::{self, Difference};
use super::{
    Overview, Version, actions, address, anchor, authors, facts, migrate, overview, upload,
};
use crate::api::{segment, with_query};
use crate::confirm::Confirm;
use crate::data::pretty;
use crate::drawing::Drawing;
use crate::list::Link;
use crate::moment::Moment;
use crate::session::{Answer, Halt, Visitor};
use crate::shell::{Shell, page};

/// The parameters in the address of a version.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct VersionQuery {
    /// The version to compare with. Default: the active one, or else the one before.
    pub(super) against: String,
    /// The chosen action.
    #[serde(rename = "do")]
    pub(super) action: String,
    /// The action that was just done, and the version that was active before.
    pub(super) done: String,
    pub(super) before: String,
    /// The size of the diagram.
    pub(super) zoom: String,
}

/// A state as the author described it.
struct State {
    anchor: String,
    title: String,
    description: String,
    /// The ways out of it.
    ways: String,
}

/// A version with its graph, and the definition that it belongs to.
pub(super) struct LoadedVersion {
    pub(super) version: Version,
    pub(super) overview: Overview,
    graph: Value,
    /// The graph as the API sent it, with the digits of its numbers.
    graph_text: Box<RawValue>,
    config: Box<RawValue>,
    /// What the visitor's roles permit.
    pub(super) permissions: Vec<String>,
}

#[derive(Deserialize)]
struct Detail {
    #[serde(flatten)]
    version: Version,
    graph: Box<RawValue>,
    config: Box<RawValue>,
}

#[derive(Template)]
#[template(path = "version.html")]
struct Page {
    shell: Shell,
    trail: Vec<Link>,
    title: String,
    status: (String, &'static str),
    about: String,
    /// Why it was published.
    note: Option<String>,
    description: String,
    /// Names and values.
    facts: Vec<(String, String)>,
    actions: Vec<actions::Button>,
    /// Links to other pages that use this version.
    more: Vec<Link>,
    done: Option<String>,
    undo: Option<Link>,
    confirm: Option<Confirm>,
    drawing: Drawing,
    states: Vec<State>,
    here: String,
    others: Vec<Other>,
    against: Option<Compared>,
    config: String,
}

/// A version to compare with.
struct Other {
    number: u32,
    name: String,
    is_chosen: bool,
}

/// The differences from another version.
struct Compared {
    heading: String,
    /// The notes of both versions, each with its version.
    notes: Vec<(String, String)>,
    /// Whether the components differ.
    is_rebuilt: bool,
    difference: Difference,
    /// How many changes are not listed; empty if all are.
    more: String,
}

fn path(key: &str, version: u32) -> String {
    format!("/v1/definitions/{}/versions/{version}", segment(key))
}

pub(super) async fn load(
    visitor: &Visitor,
    key: &str,
    version: u32,
) -> Result<LoadedVersion, Halt> {
    let path = path(key, version);
    let (detail, overview, me) = tokio::join!(
        visitor.get::<Detail>(&path),
        overview(visitor, key),
        visitor.myself()
    );
    let (detail, overview) = (detail?, overview?);
    let me = me.map_err(|trouble| visitor.halt(&trouble))?;
    let mut versions = overview.versions.iter();
    let counted = versions.find(|one| one.version == version);
    let running = counted.and_then(|one| one.running);
    Ok(LoadedVersion {
        version: Version {
            running,
            ..detail.version
        },
        overview,
        graph: serde_json::from_str(detail.graph.get()).unwrap_or_default(),
        graph_text: detail.graph,
        config: detail.config,
        permissions: me.permissions.clone(),
    })
}

pub(super) async fn show(
    Path((key, version)): Path<(String, u32)>,
    Query(query): Query<VersionQuery>,
    visitor: Visitor,
) -> Answer {
    let loaded = load(&visitor, &key, version).await?;
    let confirm = actions::chosen_form(&visitor, &loaded, &query.action).await;
    render(&visitor, loaded, &query, confirm, StatusCode::OK).await
}

/// The page, with a form if an action is chosen.
pub(super) async fn render(
    visitor: &Visitor,
    loaded: LoadedVersion,
    query: &VersionQuery,
    confirm: Option<Confirm>,
    status: StatusCode,
) -> Answer {
    let w = visitor.w;
    let version = &loaded.version;
    let number = |number: u32| w.with("version-number", "number", &number.to_string());
    let names = authors(visitor, std::slice::from_ref(version)).await;
    let title = format!("{} · {}", version.title(), number(version.version));
    let chosen = chosen(&loaded, query);
    let others = loaded.overview.versions.iter();
    let others = others.filter(|one| one.version != version.version);
    let published = [
        ("who", names.person(&version.published_by)),
        ("when", Moment::of(version.published_at, w).relative),
    ];
    let template = Page {
        shell: Shell::of(visitor, "definitions", title.clone()).await,
        trail: vec![
            Link::to("/console/definitions", w.t("definitions")),
            Link::to(
                format!("/console/definitions/{}", segment(&version.key)),
                version.key.as_str(),
            ),
        ],
        status: version.status(w),
        about: w.say("version-published", &published),
        note: version.note.clone(),
        description: loaded.graph["description"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        facts: facts::of(w, version, &loaded.graph),
        actions: actions::buttons(visitor, &loaded),
        more: more(visitor, &loaded),
        done: match query.done.as_str() {
            "" => None,
            done => w
                .known(&format!("action-done-{done}"))
                .map(std::borrow::Cow::into_owned),
        },
        undo: actions::undo(visitor, &loaded, &query.done, query.before.parse().ok()),
        confirm,
        drawing: drawing(visitor, &loaded, query).await,
        states: states(&loaded.graph),
        here: version.address(),
        others: others
            .map(|one| Other {
                number: one.version,
                name: format!("{} · {}", number(one.version), one.status(w).0),
                is_chosen: Some(one.version) == chosen,
            })
            .collect(),
        against: match chosen {
            Some(other) => Some(compared(visitor, &loaded, other).await?),
            None => None,
        },
        config: pretty(&loaded.config),
        title,
    };
    Ok(page(status, &template))
}

/// The drawing, whose states lead to their descriptions below it.
async fn drawing(visitor: &Visitor, loaded: &LoadedVersion, query: &VersionQuery) -> Drawing {
    let version = &loaded.version;
    let path = format!("{}/diagram.svg", path(&version.key, version.version));
    let way = |name: &str| Some(format!("#{}", anchor(name)));
    let page = |size: &str| {
        let parameters = [("against", query.against.as_str()), ("zoom", size)];
        with_query(&version.address(), &parameters)
    };
    let file = format!("{}/diagram.svg", version.address());
    Drawing::of(visitor, &path, file, &query.zoom, page, way).await
}

fn listed<'a>(graph: &'a Value, what: &str) -> impl Iterator<Item = &'a Value> {
    graph[what].as_array().into_iter().flatten()
}

/// The title of a state, or else its name.
fn title<'a>(graph: &'a Value, name: &'a str) -> &'a str {
    let mut states = listed(graph, "states");
    let state = states.find(|state| state["name"] == name);
    let title = state.and_then(|state| state["title"].as_str());
    title.filter(|title| !title.is_empty()).unwrap_or(name)
}

/// The states in the order of the flow.
fn states(graph: &Value) -> Vec<State> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let state = |state: &Value| {
        let name = text(&state["name"]);
        let ways = listed(graph, "transitions").filter(|way| way["source"] == name.as_str());
        let way = |way: &Value| match text(&way["title"]) {
            title if title.is_empty() => text(&way["trigger"]),
            title => title,
        };
        let ways: Vec<_> = ways.map(way).collect();
        State {
            anchor: anchor(&name),
            title: title(graph, &name).to_owned(),
            description: text(&state["description"]),
            ways: ways.join(", "),
        }
    };
    listed(graph, "states").map(state).collect()
}

/// Links to another config of the same component, and to the migration of the instances, for visitors with the permission.
fn more(visitor: &Visitor, loaded: &LoadedVersion) -> Vec<Link> {
    let (w, version) = (visitor.w, &loaded.version);
    let may = |permission: &str| loaded.permissions.iter().any(|one| one == permission);
    let number = version.version.to_string();
    let mut links = Vec::new();
    if may(upload::PERMISSION) {
        let parameters = [("key", version.key.as_str()), ("from", &number)];
        let to = with_query("/console/upload", &parameters);
        links.push(Link::to(to, w.t("upload-again")));
    }
    if may(migrate::PERMISSION) {
        let to = format!("{}/migrate", version.address());
        links.push(Link::to(to, w.t("migrate")));
    }
    links
}

/// The version to compare with. None if there is no other.
fn chosen(loaded: &LoadedVersion, query: &VersionQuery) -> Option<u32> {
    let own = loaded.version.version;
    let versions = || {
        loaded
            .overview
            .versions
            .iter()
            .filter(|one| one.version != own)
    };
    let wanted: Option<u32> = query.against.parse().ok();
    let wanted = wanted.filter(|number| *number != own);
    let active = loaded.overview.active.as_ref();
    let active = active.filter(|one| one.version != own);
    let before = || versions().find(|one| one.version < own);
    wanted.or_else(|| active.or_else(before).map(|one| one.version))
}

async fn compared(visitor: &Visitor, loaded: &LoadedVersion, other: u32) -> Result<Compared, Halt> {
    let old: Detail = visitor.get(&path(&loaded.version.key, other)).await?;
    let (w, versions) = (visitor.w, [&old.version, &loaded.version]);
    let notes = versions.into_iter().filter_map(|one| {
        let number = one.version.to_string();
        let name = w.with("version-number", "number", &number);
        Some((name, one.note.clone()?))
    });
    let notes = notes.collect();
    let difference = difference::of(
        (old.graph.get(), old.config.get()),
        (loaded.graph_text.get(), loaded.config.get()),
    );
    Ok(Compared {
        more: match difference.more {
            0 => String::new(),
            more => visitor.w.n("difference-more", more),
        },
        heading: visitor.w.say(
            "difference-from",
            &[
                ("old", &other.to_string()),
                ("new", &loaded.version.version.to_string()),
            ],
        ),
        notes,
        is_rebuilt: old.version.digest != loaded.version.digest,
        difference,
    })
}

/// The drawing of the API, as a file.
pub(super) async fn diagram(
    Path((key, version)): Path<(String, u32)>,
    visitor: Visitor,
) -> Response {
    let path = format!("{}/diagram.svg", path(&key, version));
    let mut response = visitor.api.raw(&path).await;
    response.headers_mut().remove(header::CONTENT_ENCODING);
    response
}

/// The address of the page of a version after an action.
pub(super) fn after(loaded: &LoadedVersion, done: &str, before: Option<u32>) -> String {
    let page = address(&loaded.version.key, loaded.version.version);
    let before = before.map(|number| number.to_string()).unwrap_or_default();
    with_query(&page, &[("done", done), ("before", &before)])
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use axum::{Json, Router};
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn graphs_are_compared_by_the_digits_of_their_numbers() {
        let version = |number: u32, limit: &str| {
            let of_all = json!({
                "key": "plan", "version": number, "title": "Plan", "active": false, "digest": "d", "wit": "w",
                "publishedAt": "2030-01-31T08:00:00Z", "publishedBy": "ann",
            });
            let graph = format!(r#"{{"dataSchema":{{"maximum":{limit}}}}}"#);
            let head = of_all.to_string();
            let text = format!(
                r#"{},"graph":{graph},"config":{{}}}}"#,
                head.trim_end_matches('}')
            );
            get(move || async move { ([(header::CONTENT_TYPE, "application/json")], text) })
        };
        let sum = "50000.000000000000000001";
        let overview = json!({ "active": null, "versions": [], "running": 0, "more": false });
        let me = json!({ "name": "Ann", "permissions": [] });
        let api = Router::new()
            .route("/v1/definitions/plan/versions/1", version(1, "50000"))
            .route("/v1/definitions/plan/versions/2", version(2, sum))
            .route(
                "/v1/definitions/plan",
                get(move || async move { Json(overview) }),
            )
            .route("/v1/me", get(move || async move { Json(me) }));
        let visitor = Visitor::of_routes(api);
        let loaded = load(&visitor, "plan", 2).await.ok().expect("a version");
        let compared = compared(&visitor, &loaded, 1).await.ok();
        let groups = compared.expect("both versions").difference.groups;
        let changes = groups.iter().flat_map(|group| &group.changes);
        let fields: Vec<_> = changes.flat_map(|change| &change.fields).collect();
        let values: Vec<_> = fields.iter().map(|one| (&one.before, &one.after)).collect();
        let expected = [(&Some("50000".to_owned()), &Some(sum.to_owned()))];
        assert_eq!(values, expected);
    }
}
