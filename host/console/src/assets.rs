//! Styles, scripts and the icon. Each has the digest of its content in its path, so browsers keep it for good and never mix
//! the files of two versions.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use sha2::{Digest as _, Sha256};

use super::Console;

/// Bytes of a digest that are in a path.
const DIGEST_BYTES: usize = 9;

struct Asset {
    name: &'static str,
    media_type: &'static str,
    content: &'static str,
}

const STYLE: Asset = Asset {
    name: "console.css",
    media_type: "text/css; charset=utf-8",
    content: include_str!("../assets/console.css"),
};
const SCRIPT: Asset = Asset {
    name: "console.js",
    media_type: "text/javascript; charset=utf-8",
    content: include_str!("../assets/console.js"),
};
/// `assets/htmx/README.md` says where it comes from.
const HTMX: Asset = Asset {
    name: "htmx.js",
    media_type: "text/javascript; charset=utf-8",
    content: include_str!("../assets/htmx/htmx.min.js"),
};
const ICON: Asset = Asset {
    name: "icon.svg",
    media_type: "image/svg+xml",
    content: include_str!("../assets/icon.svg"),
};

/// The paths that pages link to.
pub(crate) struct Paths {
    pub(crate) style: String,
    pub(crate) script: String,
    pub(crate) htmx: String,
    pub(crate) icon: String,
}

impl Asset {
    fn path(&self) -> String {
        let digest = Sha256::digest(self.content);
        let digest = BASE64_URL_SAFE_NO_PAD.encode(&digest[..DIGEST_BYTES]);
        format!("{}/assets/{digest}/{}", super::ROOT, self.name)
    }
}

pub(crate) static PATHS: LazyLock<Paths> = LazyLock::new(|| Paths {
    style: STYLE.path(),
    script: SCRIPT.path(),
    htmx: HTMX.path(),
    icon: ICON.path(),
});

static BY_PATH: LazyLock<BTreeMap<String, &Asset>> = LazyLock::new(|| {
    let all = [&STYLE, &SCRIPT, &HTMX, &ICON];
    all.into_iter().map(|one| (one.path(), one)).collect()
});

pub(crate) fn routes() -> Router<Console> {
    Router::new().route("/console/assets/{digest}/{name}", get(serve))
}

async fn serve(Path((digest, name)): Path<(String, String)>) -> Response {
    let path = format!("{}/assets/{digest}/{name}", super::ROOT);
    let Some(asset) = BY_PATH.get(&path) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let headers = [
        (header::CONTENT_TYPE, asset.media_type),
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
    ];
    let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
    (headers, asset.content).into_response()
}
