//! Saved views: tabs of the inbox that a person made. Each is a name for an address.

use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::query::InboxQuery;
use crate::posted::Posted;
use crate::session::{Answer, Visitor};
use wrkflw_runtime::clock;

/// A saved view of the visitor.
#[derive(Clone, Deserialize)]
pub(super) struct SavedView {
    pub(super) id: Uuid,
    pub(super) name: String,
    pub(super) query: String,
    pub(super) default: bool,
}

#[derive(Deserialize)]
struct SavedViews {
    data: Vec<SavedView>,
}

impl SavedView {
    pub(super) fn inbox(&self) -> InboxQuery {
        InboxQuery::parse(&self.query)
    }

    /// The address of its first page.
    pub(super) fn address(&self) -> String {
        let query = self.inbox();
        query.address(query.view(), "")
    }
}

/// The visitor's saved views. If they cannot be read, the inbox is shown without them.
pub(super) async fn all(visitor: &Visitor) -> Vec<SavedView> {
    let views = visitor.api.get::<SavedViews>("/v1/me/views").await;
    views.map_or_else(|_| Vec::new(), |views| views.data)
}

/// The content of the form of a saved view.
pub(super) struct Keep {
    /// The view that is shown, if it is a saved one.
    pub(super) current: Option<SavedView>,
    pub(super) name: String,
    /// Why the typed name was refused; empty if it was not.
    pub(super) refusal: String,
}

/// Keeps, renames or deletes a view. A refusal is shown in the inbox, with the typed name.
pub(super) async fn keep(Posted { visitor, fields }: Posted) -> Answer {
    let query = InboxQuery::of(&fields);
    let address = query.address(query.view(), "");
    let id = Uuid::parse_str(fields.get("id")).ok();
    let path = |id: Uuid| format!("/v1/me/views/{id}");
    if let (Some(id), "delete") = (id, fields.get("step")) {
        return match visitor.api.delete(&path(id)).await {
            Err(trouble) if trouble.status() != StatusCode::NOT_FOUND => {
                Err(visitor.halt(&trouble))
            }
            // Another page may have deleted it before.
            _ => Ok(Redirect::to(&address).into_response()),
        };
    }
    let name = fields.get("name").trim();
    let body = json!({
        "name": name, "query": query.query_string(query.view()), "default": !fields.get("default").is_empty(),
    });
    let path = path(id.unwrap_or_else(clock::new_id));
    match visitor.api.put::<Value>(&path, &body).await {
        Ok(_) => Ok(Redirect::to(&address).into_response()),
        Err(trouble) => super::refused(&visitor, query, name, &trouble).await,
    }
}
