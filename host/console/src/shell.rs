//! The frame of every page: its head, the navigation, and the footer.

use askama::Template;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse as _, Response};
use serde::Deserialize;

use crate::assets::{PATHS, Paths};
use crate::language::{self, Language, Words};
use crate::session::Visitor;
use crate::sitemap::{self, SitemapEntry};

/// Unread notifications that are counted; more are shown as `9+`.
const UNREAD_MAX: usize = 9;

/// The content of the frame.
pub(crate) struct Shell {
    pub(crate) w: Words,
    pub(crate) title: String,
    /// The entry of the navigation that this page belongs to.
    pub(crate) section: &'static str,
    /// Path and query of the page, to come back to.
    pub(crate) here: String,
    /// `light` or `dark`, if the reader chose one.
    pub(crate) theme: String,
    /// The signed-in person.
    pub(crate) reader: Option<Reader>,
}

/// Somebody who is signed in, as the frame shows them.
pub(crate) struct Reader {
    pub(crate) name: String,
    pub(crate) token: String,
    /// The number of unread notifications; empty for none.
    pub(crate) unread: String,
    /// The permissions of their roles.
    pub(crate) permissions: Vec<String>,
}

impl Reader {
    pub(crate) fn may(&self, permission: &str) -> bool {
        self.permissions.iter().any(|one| one == permission)
    }

    /// The pages of the navigation.
    pub(crate) fn navigation(&self) -> impl Iterator<Item = &'static SitemapEntry> {
        sitemap::navigation(self)
    }
}

#[derive(Deserialize)]
struct Notifications {
    data: Vec<serde::de::IgnoredAny>,
}

impl Shell {
    /// The frame for a reader who is not signed in.
    pub(crate) fn plain(w: Words, title: String) -> Shell {
        Shell {
            w,
            title,
            section: "",
            here: crate::ROOT.to_owned(),
            theme: String::new(),
            reader: None,
        }
    }

    /// The frame for a visitor. If notifications cannot be read, they are not counted, because the page is more important.
    pub(crate) async fn of(visitor: &Visitor, section: &'static str, title: String) -> Shell {
        let unread = format!("/v1/notifications?unread=true&limit={}", UNREAD_MAX + 1);
        let (me, unread) =
            tokio::join!(visitor.myself(), visitor.api.get::<Notifications>(&unread));
        let (name, permissions) = me.map_or_else(
            |_| (None, Vec::new()),
            |me| (me.name.clone(), me.permissions.clone()),
        );
        let unread = unread.map_or(0, |unread| unread.data.len());
        Shell {
            reader: Some(Reader {
                name: name.unwrap_or_else(|| visitor.id().to_owned()),
                token: visitor.token.clone(),
                permissions,
                unread: match unread {
                    0 => String::new(),
                    1..=UNREAD_MAX => unread.to_string(),
                    _ => format!("{UNREAD_MAX}+"),
                },
            }),
            w: visitor.w,
            title,
            section,
            here: visitor.here.clone(),
            theme: theme(visitor),
        }
    }

    /// The same without the parts that need the API, for pages about its failures.
    pub(crate) fn bare(visitor: &Visitor, title: String) -> Shell {
        Shell {
            reader: Some(Reader {
                name: visitor.id().to_owned(),
                token: visitor.token.clone(),
                unread: String::new(),
                permissions: Vec::new(),
            }),
            w: visitor.w,
            title,
            section: "",
            here: crate::ROOT.to_owned(),
            theme: theme(visitor),
        }
    }

    #[expect(clippy::unused_self, reason = "templates reach it through the frame")]
    pub(crate) fn assets(&self) -> &'static Paths {
        &PATHS
    }

    #[expect(clippy::unused_self, reason = "templates reach it through the frame")]
    pub(crate) fn languages(&self) -> &'static [Language] {
        language::all()
    }

    pub(crate) fn is_at(&self, section: &str) -> bool {
        self.section == section
    }
}

fn theme(visitor: &Visitor) -> String {
    visitor.session.preference.theme.clone().unwrap_or_default()
}

/// The page of a template.
pub(crate) fn page(status: StatusCode, template: &impl Template) -> Response {
    match template.render() {
        Ok(text) => (status, Html(text)).into_response(),
        Err(error) => {
            tracing::error!(%error, "a page could not be rendered");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
