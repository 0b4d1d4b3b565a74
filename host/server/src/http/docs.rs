//! The page at `/docs`: reads `/openapi.json` in the browser and shows it, with a form to try each operation.
//!
//! All assets are embedded in this binary, and the content security policy forbids the page to load anything else. The page
//! and the document are public. A token that somebody types into the page stays in the page's memory.

use axum::Router;
use axum::http::header;
use axum::routing::get;

use super::conditional;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

struct Asset {
    path: &'static str,
    media_type: &'static str,
    content: &'static str,
}

const fn script(path: &'static str, content: &'static str) -> Asset {
    Asset {
        path,
        media_type: "text/javascript; charset=utf-8",
        content,
    }
}

const ASSETS: [Asset; 8] = [
    Asset {
        path: "/docs",
        media_type: "text/html; charset=utf-8",
        content: include_str!("docs/index.html"),
    },
    Asset {
        path: "/docs/page.css",
        media_type: "text/css; charset=utf-8",
        content: include_str!("docs/page.css"),
    },
    script("/docs/page.js", include_str!("docs/page.js")),
    script("/docs/operation.js", include_str!("docs/operation.js")),
    script("/docs/schema.js", include_str!("docs/schema.js")),
    script("/docs/sample.js", include_str!("docs/sample.js")),
    script("/docs/attempt.js", include_str!("docs/attempt.js")),
    script("/docs/element.js", include_str!("docs/element.js")),
];

/// The page and its assets. Browsers revalidate an asset at each use, so that a page never mixes assets of two versions.
pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let route = |router: Router<S>, asset: &'static Asset| {
        let tag = conditional::tag_of(asset.content.as_bytes());
        let fixed = [
            (header::CONTENT_TYPE, asset.media_type),
            (header::CACHE_CONTROL, "no-cache"),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
        ];
        let answer = (fixed, [(header::ETAG, tag)], asset.content);
        router.route(asset.path, get(move || async move { answer }))
    };
    ASSETS.iter().fold(Router::new(), route)
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::http::{HeaderMap, Request, StatusCode};
    use axum::middleware::from_fn;
    use tower::ServiceExt as _;

    use super::*;

    async fn fetch(path: &str, held: Option<&str>) -> (StatusCode, HeaderMap, String) {
        let mut request = Request::get(path);
        if let Some(held) = held {
            request = request.header(header::IF_NONE_MATCH, held);
        }
        let response = routes::<()>()
            .layer(from_fn(conditional::answer))
            .oneshot(request.body(Body::empty()).unwrap())
            .await
            .unwrap();
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, 1 << 20).await.unwrap();
        (
            parts.status,
            parts.headers,
            String::from_utf8(body.to_vec()).unwrap(),
        )
    }

    #[tokio::test]
    async fn the_page_needs_nothing_but_this_host() {
        for asset in &ASSETS {
            let (status, headers, body) = fetch(asset.path, None).await;
            assert_eq!(status, StatusCode::OK, "{}", asset.path);
            assert_eq!(headers[header::CONTENT_TYPE], asset.media_type);
            assert!(
                headers[header::CONTENT_SECURITY_POLICY]
                    .to_str()
                    .unwrap()
                    .starts_with("default-src 'none'")
            );
            for foreign in ["http://", "https://", "innerHTML"] {
                assert!(!body.contains(foreign), "{} holds {foreign}", asset.path);
            }
        }
    }

    #[tokio::test]
    async fn every_part_that_the_page_names_is_served() {
        let (_, _, page) = fetch("/docs", None).await;
        let quoted = |text: &str, before: &str| -> Vec<String> {
            text.split(before)
                .skip(1)
                .filter_map(|rest| rest.split('"').next())
                .map(str::to_owned)
                .collect()
        };
        let mut named = quoted(&page, "src=\"");
        named.extend(
            quoted(&page, "href=\"docs/")
                .into_iter()
                .map(|path| format!("docs/{path}")),
        );
        for asset in &ASSETS {
            named.extend(
                quoted(asset.content, "from \"./")
                    .into_iter()
                    .map(|path| format!("docs/{path}")),
            );
        }
        assert!(named.len() >= 6, "{named:?}");
        for path in named {
            assert!(
                ASSETS.iter().any(|asset| asset.path == format!("/{path}")),
                "{path}"
            );
        }
    }

    #[tokio::test]
    async fn unchanged_parts_are_not_sent_again() {
        let (_, headers, _) = fetch("/docs", None).await;
        let tag = headers[header::ETAG].to_str().unwrap().to_owned();
        for held in [
            tag.clone(),
            tag.trim_start_matches("W/").to_owned(),
            format!("\"other\", {tag}"),
            "*".to_owned(),
        ] {
            let (status, again, body) = fetch("/docs", Some(&held)).await;
            assert_eq!(
                (status, body.as_str()),
                (StatusCode::NOT_MODIFIED, ""),
                "{held}"
            );
            assert_eq!(again[header::ETAG], tag.as_str());
        }
        assert_eq!(fetch("/docs", Some("\"other\"")).await.0, StatusCode::OK);
        assert_ne!(
            fetch("/docs/page.js", None).await.1[header::ETAG],
            tag.as_str()
        );
    }
}
