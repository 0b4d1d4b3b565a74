//! Styles, scripts and the icon. Each has the digest of its content in its path, so browsers keep it for good and never mix
//! the files of two versions.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
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

/// The element that shows an instance inside of a page of a product.
const ELEMENT: Asset = Asset {
    name: "wrkflw-instance.js",
    media_type: "text/javascript; charset=utf-8",
    content: include_str!("../assets/wrkflw-instance.js"),
};
/// Its styles: those of the console, for a shadow tree.
static EMBED_STYLE: LazyLock<Asset> = LazyLock::new(|| Asset {
    name: "embed.css",
    media_type: "text/css; charset=utf-8",
    content: embed_style().leak(),
});

/// In a shadow tree the host element is the root. Its width counts, not the width of the window.
fn embed_style() -> String {
    let style = STYLE.content;
    let style = style.replace(":root[data-theme=", ":host([theme=");
    let style = style.replace("\"] { color-scheme", "\"]) { color-scheme");
    let style = style.replace(":root", ":host");
    let style = style.replace("@media (max-width:", "@container (max-width:");
    style + include_str!("../assets/embed.css")
}

/// The styles of diagrams. A diagram by itself follows the setting of the device. In the console, it also follows the choice of the reader.
static DIAGRAM: LazyLock<Asset> = LazyLock::new(|| Asset {
    name: "diagram.css",
    media_type: "text/css; charset=utf-8",
    content: diagram_style(wrkflw_server::diagram::STYLE).leak(),
});

fn diagram_style(style: &str) -> String {
    const DARK: &str = "@media (prefers-color-scheme:dark){";
    let (light, dark) = style.split_once(DARK).unwrap_or((style, ""));
    let dark = dark.trim_end();
    let dark = dark.strip_suffix('}').unwrap_or(dark);
    format!(
        "{light}{DARK}:root:not([data-theme=\"light\"]){{{dark}}}}}\n:root[data-theme=\"dark\"]{{{dark}}}\n"
    )
}

/// The paths that pages link to.
pub(crate) struct Paths {
    pub(crate) style: String,
    pub(crate) script: String,
    pub(crate) htmx: String,
    pub(crate) icon: String,
    pub(crate) embed_style: String,
    pub(crate) diagram: String,
}

impl Asset {
    fn digest(&self) -> String {
        let digest = Sha256::digest(self.content);
        BASE64_URL_SAFE_NO_PAD.encode(&digest[..DIGEST_BYTES])
    }

    fn path(&self) -> String {
        format!("{}/assets/{}/{}", super::ROOT, self.digest(), self.name)
    }
}

pub(crate) static PATHS: LazyLock<Paths> = LazyLock::new(|| Paths {
    style: STYLE.path(),
    script: SCRIPT.path(),
    htmx: HTMX.path(),
    icon: ICON.path(),
    embed_style: EMBED_STYLE.path(),
    diagram: DIAGRAM.path(),
});

static BY_PATH: LazyLock<BTreeMap<String, &Asset>> = LazyLock::new(|| {
    let all = [
        &STYLE,
        &SCRIPT,
        &HTMX,
        &ICON,
        &ELEMENT,
        &*EMBED_STYLE,
        &*DIAGRAM,
    ];
    all.into_iter().map(|one| (one.path(), one)).collect()
});

/// The address from which products load the element. It never changes; its content is that of this host's version.
pub(crate) const ELEMENT_PATH: &str = "/embed/wrkflw-instance.js";

pub(crate) fn routes() -> Router<Console> {
    Router::new()
        .route("/console/assets/{digest}/{name}", get(serve))
        .route(ELEMENT_PATH, get(element))
}

/// Pages of products load the element and its styles, and nothing in them is secret.
const SHARED: [(HeaderName, &str); 2] = [
    (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "cross-origin",
    ),
];

async fn serve(Path((digest, name)): Path<(String, String)>) -> Response {
    let path = format!("{}/assets/{digest}/{name}", super::ROOT);
    let Some(asset) = BY_PATH.get(&path) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let headers = [
        (header::CONTENT_TYPE, asset.media_type),
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
    ];
    let is_shared = asset.name == EMBED_STYLE.name;
    let shared = SHARED.into_iter().filter(|_| is_shared);
    let headers = headers.into_iter().chain(shared);
    let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
    (headers.collect::<HeaderMap>(), asset.content).into_response()
}

/// The element. Browsers ask each time whether it has changed.
async fn element(headers: HeaderMap) -> Response {
    let tag = format!("\"{}\"", ELEMENT.digest());
    let known = headers.get(header::IF_NONE_MATCH);
    // Compression makes a tag a weak one.
    let is_known = known.is_some_and(|value| {
        let value = value.to_str().unwrap_or_default();
        value.strip_prefix("W/").unwrap_or(value) == tag
    });
    let own = [
        (header::CONTENT_TYPE, ELEMENT.media_type),
        (header::CACHE_CONTROL, "public, no-cache"),
    ];
    let own = own.into_iter().chain(SHARED);
    let own = own.map(|(name, value)| (name, HeaderValue::from_static(value)));
    let mut own: HeaderMap = own.collect();
    let tag = HeaderValue::try_from(tag).expect("a digest is plain");
    own.insert(header::ETAG, tag);
    if is_known {
        return (StatusCode::NOT_MODIFIED, own).into_response();
    }
    (own, ELEMENT.content).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_styles_of_the_element_are_for_a_shadow_tree() {
        let style = embed_style();
        for wrong in [":root", "[data-theme", "@media (max-width"] {
            assert!(!style.contains(wrong), "{wrong}");
        }
        for needed in [
            ":host([theme=\"dark\"]) { color-scheme: dark; }",
            "@container (max-width: 48rem)",
            "container-type: inline-size",
        ] {
            assert!(style.contains(needed), "{needed}");
        }
    }
}
