//! The preferences of the caller: wanted notifications, and the language, time zone and colours of pages.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::conditional::conditional;
use super::extract::{Body, Caller};
use super::layers::without_query;
use super::problem::Problem;
use super::shapes::NotificationKind;
use wrkflw_core::notification::Kind;
use wrkflw_core::zone;
use wrkflw_engine::{Error, Preference};
use wrkflw_store::notifications;
use wrkflw_store::sessions;

/// The number of kinds of notifications.
const KINDS_MAX: usize = 5;

/// The longest tag of a language that is kept (RFC 5646 advises 35).
const LANGUAGE_CHARS_MAX: usize = 35;

/// The routes of this file.
pub(super) fn routes() -> OpenApiRouter<App> {
    let single = OpenApiRouter::new().routes(routes!(show, put));
    without_query(conditional(single))
}

/// The colours of pages.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Theme {
    Light,
    Dark,
}

/// The preferences of a person. Without any, all notifications are on.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Preferences {
    /// The kinds of notifications that are off. The person is not notified of them, also not by webhook, and does not see those
    /// of their groups.
    #[schema(max_items = 5)]
    pub muted_notifications: Vec<NotificationKind>,
    /// The language of pages, such as `de`. Without it, that of the browser.
    #[serde(default)]
    #[schema(max_length = 35, pattern = "^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$")]
    pub language: Option<String>,
    /// The time zone in which pages show dates, such as `Asia/Bangkok`. Without it, that of the browser.
    #[serde(default)]
    #[schema(max_length = 64)]
    pub time_zone: Option<String>,
    /// The colours of pages. Without it, those of the device.
    #[serde(default)]
    pub theme: Option<Theme>,
}

impl Preferences {
    fn check(&self) -> Result<(), Error> {
        if self.muted_notifications.len() > KINDS_MAX {
            let detail = format!("there are {KINDS_MAX} kinds of notifications");
            return Err(Error::malformed("/mutedNotifications", detail));
        }
        if self
            .language
            .as_deref()
            .is_some_and(|tag| !is_language(tag))
        {
            let detail = "write the tag of a language, such as de or de-CH";
            return Err(Error::malformed("/language", detail));
        }
        let zone = self.time_zone.as_deref();
        if zone.is_some_and(|name| zone::named(name).is_none()) {
            let detail = "this is no time zone of the IANA database; one is Asia/Bangkok";
            return Err(Error::invalid("/timeZone", "unknown_time_zone", detail));
        }
        Ok(())
    }

    fn preference(&self) -> Preference {
        let theme = self.theme.map(|theme| match theme {
            Theme::Light => "light",
            Theme::Dark => "dark",
        });
        Preference {
            language: self.language.clone(),
            time_zone: self.time_zone.clone(),
            theme: theme.map(str::to_owned),
        }
    }
}

/// Whether a text is formed like the tag of a language: letters, then parts of letters and digits.
fn is_language(tag: &str) -> bool {
    let mut parts = tag.split('-');
    let first = parts.next().unwrap_or_default();
    let letters = first.bytes().all(|byte| byte.is_ascii_alphabetic());
    let rest = |part: &str| {
        (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    tag.len() <= LANGUAGE_CHARS_MAX && (2..=8).contains(&first.len()) && letters && parts.all(rest)
}

/// The preferences of the caller. It needs no permission.
#[utoipa::path(get, path = "/v1/me/preferences", tag = "notifications", operation_id = "getPreferences",
    responses((status = 200, body = Preferences)))]
pub(super) async fn show(
    State(app): State<App>,
    Caller(who): Caller,
) -> Result<axum::Json<Preferences>, Problem> {
    let (reader, tenant, person) = (app.engine.reader(), who.tenant, who.subject.as_str());
    let muted = notifications::muted(reader, tenant, person).await?;
    let preference = sessions::preference(reader, tenant, person).await?;
    Ok(axum::Json(Preferences {
        muted_notifications: muted.into_iter().map(NotificationKind::from).collect(),
        language: preference.language,
        time_zone: preference.time_zone,
        theme: match preference.theme.as_deref() {
            Some("light") => Some(Theme::Light),
            Some("dark") => Some(Theme::Dark),
            _ => None,
        },
    }))
}

/// Replaces the preferences of the caller; a language, time zone or theme that the body lacks is reset. Notifications that exist stay. It needs no
/// permission.
#[utoipa::path(put, path = "/v1/me/preferences", tag = "notifications", operation_id = "putPreferences",
    request_body = Preferences, responses((status = 200, body = Preferences)))]
pub(super) async fn put(
    State(app): State<App>,
    Caller(who): Caller,
    Body { value, .. }: Body<Preferences>,
) -> Result<axum::Json<Preferences>, Problem> {
    value.check()?;
    let muted = value.muted_notifications.iter();
    let kinds: Vec<Kind> = muted.map(|one| one.kind()).collect();
    app.engine
        .notifications()
        .prefer(&who, &kinds, &value.preference())
        .await?;
    show(State(app), Caller(who)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_languages_are_told_from_other_texts() {
        for tag in ["de", "de-CH", "zh-Hant-TW", "sr-Latn"] {
            assert!(is_language(tag), "{tag}");
        }
        for text in [
            "",
            "d",
            "de_CH",
            "de-",
            "-de",
            "d3",
            "<b>",
            "deutsch-sprachige",
            &format!("de{}", "-abcdefg".repeat(5)),
        ] {
            assert!(!is_language(text), "{text}");
        }
    }
}
