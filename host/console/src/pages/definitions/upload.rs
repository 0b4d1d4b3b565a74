//! Publishing a version: a component, or the component of a published version with another config. A table shows the
//! findings of the checker, and the form keeps its content.

use askama::Template;
use axum::body::Bytes;
use axum::extract::{FromRequest as _, Multipart, Query, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect};
use serde::Deserialize;
use serde_json::value::RawValue;

use wrkflw_runtime::clock;
use wrkflw_server::http::uploads::UPLOAD_TIME_MAX;

use super::{address, overview};
use crate::Console;
use crate::api::{Trouble, segment, with_query};
use crate::data::pretty;
use crate::list::{Cell, Link, Table};
use crate::posted::{Fields, TOKEN, is_own, refused, same};
use crate::session::{Answer, Halt, Visitor};
use crate::shell::{Shell, page};

pub(super) const PERMISSION: &str = "definition:publish";
/// The largest form. The API has a limit of its own for the parts that it gets.
pub(super) const FORM_BYTES_MAX: usize = 26 * 1024 * 1024;
/// Fields of a form besides the file.
const FIELDS_MAX: usize = 8;

/// The parameters of the address.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct UploadQuery {
    key: String,
    /// The version whose component and config the form begins with.
    from: String,
}

#[derive(Template)]
#[template(path = "upload.html")]
struct Page {
    shell: Shell,
    trail: Vec<Link>,
    key: String,
    note: String,
    config: String,
    from: String,
    /// Versions whose component may be used again.
    versions: Vec<String>,
    refusal: Option<String>,
    /// The findings of the checker.
    problems: Table,
}

#[derive(Deserialize)]
struct Detail {
    config: Box<RawValue>,
}

/// A form that was sent: its fields, and the file.
#[derive(Default)]
struct Form {
    fields: Fields,
    component: Bytes,
}

pub(super) async fn show(Query(query): Query<UploadQuery>, visitor: Visitor) -> Answer {
    visitor.require(PERMISSION).await?;
    let mut config = String::new();
    if let Ok(version) = query.from.parse::<u32>() {
        let path = format!("/v1/definitions/{}/versions/{version}", segment(&query.key));
        let detail: Detail = visitor.get(&path).await?;
        config = pretty(&detail.config);
    }
    let fields = [
        ("key", query.key),
        ("componentVersion", query.from),
        ("config", config),
    ];
    let fields = fields.map(|(name, value)| (name.to_owned(), value));
    render(&visitor, &Fields(fields.into()), None).await
}

async fn render(visitor: &Visitor, filled: &Fields, trouble: Option<&Trouble>) -> Answer {
    let w = visitor.w;
    let key = filled.get("key");
    let versions = match key {
        "" => Vec::new(),
        key => overview(visitor, key)
            .await
            .map_or_else(|_| Vec::new(), |found| found.versions),
    };
    let mut trail = vec![Link::to("/console/definitions", w.t("definitions"))];
    if !versions.is_empty() {
        let to = format!("/console/definitions/{}", segment(key));
        trail.push(Link::to(to, key));
    }
    let row = |one: &crate::api::FieldTrouble| {
        vec![
            Cell::text(one.pointer.as_str()),
            Cell::text(one.detail.as_str()).below(one.code.as_str()),
        ]
    };
    let problems =
        trouble.map_or_else(Vec::new, |trouble| trouble.errors.iter().map(row).collect());
    let columns = ["column-place", "column-problem"];
    let template = Page {
        shell: Shell::of(visitor, "definitions", w.t("upload").into_owned()).await,
        trail,
        key: key.to_owned(),
        note: filled.get("note").to_owned(),
        config: filled.get("config").to_owned(),
        from: filled.get("componentVersion").to_owned(),
        versions: versions.iter().map(|one| one.version.to_string()).collect(),
        refusal: trouble.map(|trouble| trouble.detail.clone()),
        problems: Table::new(w, &w.t("upload-problems"), &columns, problems),
    };
    let status = trouble.map_or(StatusCode::OK, Trouble::status);
    Ok(page(status, &template))
}

#[derive(Deserialize)]
struct Published {
    version: u32,
    created: bool,
}

pub(super) async fn publish(
    State(console): State<Console>,
    visitor: Visitor,
    request: Request,
) -> Answer {
    let headers = request.headers().clone();
    if !is_own(&headers) {
        return Err(refused(&headers));
    }
    visitor.require(PERMISSION).await?;
    let Ok(place) = console.app.uploads.place(visitor.session.who.tenant) else {
        let trouble = Trouble {
            status: StatusCode::SERVICE_UNAVAILABLE.as_u16(),
            detail: visitor.w.t("upload-busy").into_owned(),
            ..Trouble::default()
        };
        return Err(visitor.halt(&trouble));
    };
    let reading = tokio::time::timeout(UPLOAD_TIME_MAX, read(&visitor, request)).await;
    let Form { fields, component } = match reading {
        Ok(form) => form?,
        Err(_) => return Err(StatusCode::REQUEST_TIMEOUT.into_response().into()),
    };
    let key = fields.get("key").trim();
    let text = |name: &'static str| (name, fields.get(name).trim().as_bytes());
    let mut parts = vec![text("config"), text("note")];
    // A file takes precedence over the version with which the form began.
    if component.is_empty() {
        parts.push((
            "componentVersion",
            fields.get("componentVersion").as_bytes(),
        ));
    } else {
        parts.push(("component", &component));
    }
    parts.retain(|(_, content)| !content.is_empty());
    let form = multipart(&parts);
    drop(component);
    let path = format!("/v1/definitions/{}/versions", segment(key));
    match visitor.api.upload::<Published>(&path, form, place).await {
        Ok(published) => {
            let done = if published.created {
                "publish"
            } else {
                "publish-again"
            };
            let to = with_query(&address(key, published.version), &[("done", done)]);
            Ok(Redirect::to(&to).into_response())
        }
        Err(trouble) => render(&visitor, &fields, Some(&trouble)).await,
    }
}

/// Reads a form. The token comes first, so that without a token nothing else is read.
async fn read(visitor: &Visitor, request: Request) -> Result<Form, Halt> {
    let headers = request.headers().clone();
    let broken = |status: StatusCode| Halt::from(status.into_response());
    let mut multipart = Multipart::from_request(request, &())
        .await
        .map_err(|error| broken(error.status()))?;
    let mut form = Form::default();
    let mut is_trusted = false;
    while let Some(field) = multipart
        .next_field()
        .await
        .map_err(|error| broken(error.status()))?
    {
        let name = field.name().unwrap_or_default().to_owned();
        let content = field
            .bytes()
            .await
            .map_err(|error| broken(error.status()))?;
        let text = || String::from_utf8_lossy(&content).replace("\r\n", "\n");
        match name.as_str() {
            TOKEN if same(&text(), &visitor.token) => is_trusted = true,
            _ if !is_trusted => return Err(refused(&headers)),
            "component" => form.component = content,
            _ if form.fields.0.len() < FIELDS_MAX => form.fields.0.push((name, text())),
            _ => return Err(broken(StatusCode::BAD_REQUEST)),
        }
    }
    if is_trusted {
        Ok(form)
    } else {
        Err(refused(&headers))
    }
}

/// A form for the API: its type and content. No part contains the boundary, which is new and random.
fn multipart(parts: &[(&str, &[u8])]) -> (String, Vec<u8>) {
    let boundary = format!("wrkflw-{}", clock::new_id());
    let mut body = Vec::new();
    for (name, content) in parts {
        let head = format!(
            "--{boundary}\r\ncontent-disposition: form-data; name=\"{name}\"; filename=\"{name}\"\r\n\r\n"
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    (format!("multipart/form-data; boundary={boundary}"), body)
}
