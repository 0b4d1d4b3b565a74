//! Pages that say why something is not possible.

use askama::Template;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use crate::api::Trouble;
use crate::assets::PATHS;
use crate::language::Words;
use crate::session::Visitor;
use crate::shell::{Shell, page as render};

#[derive(Template)]
#[template(path = "trouble.html")]
struct TroublePage<'a> {
    shell: Shell,
    heading: String,
    detail: &'a str,
    request_id: &'a str,
}

#[derive(Template)]
#[template(path = "embed_trouble.html")]
struct TroubleFragment<'a> {
    detail: &'a str,
    style: &'a str,
}

/// The same inside of a page of a product.
pub(crate) fn fragment(status: StatusCode, detail: &str) -> Response {
    let style = &PATHS.embed_style;
    render(status, &TroubleFragment { detail, style })
}

/// The page for a refusal or a failure of the API.
pub(crate) fn page(visitor: &Visitor, trouble: &Trouble) -> Response {
    let status = trouble.status();
    let w = visitor.w;
    if visitor.is_embedded {
        return fragment(status, &trouble.detail);
    }
    let heading = heading(w, status);
    let shell = Shell::bare(visitor, heading.clone());
    let request_id = if status.is_server_error() {
        trouble.request_id.as_str()
    } else {
        ""
    };
    let template = TroublePage {
        shell,
        heading,
        detail: &trouble.detail,
        request_id,
    };
    render(status, &template)
}

/// The page for a form that another site sent, or that is older than the session.
pub(crate) fn foreign(w: Words) -> Response {
    let heading = w.t("trouble-foreign").into_owned();
    let detail = w.t("trouble-foreign-detail");
    let template = TroublePage {
        shell: Shell::plain(w, heading.clone()),
        heading,
        detail: &detail,
        request_id: "",
    };
    render(StatusCode::FORBIDDEN, &template)
}

/// The page for a path that is no page.
pub(crate) async fn missing(headers: HeaderMap) -> Response {
    nothing(Words::of(&headers))
}

/// The page for a missing page or thing.
pub(crate) fn nothing(w: Words) -> Response {
    let heading = heading(w, StatusCode::NOT_FOUND);
    let detail = w.t("trouble-missing-detail");
    let template = TroublePage {
        shell: Shell::plain(w, heading.clone()),
        heading,
        detail: &detail,
        request_id: "",
    };
    render(StatusCode::NOT_FOUND, &template)
}

fn heading(w: Words, status: StatusCode) -> String {
    let id = match status {
        StatusCode::NOT_FOUND => "trouble-missing",
        StatusCode::FORBIDDEN => "trouble-forbidden",
        status if status.is_server_error() => "trouble-failed",
        _ => "trouble-refused",
    };
    w.t(id).into_owned()
}
