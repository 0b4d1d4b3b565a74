//! Saved views: a person's own names of queries of the list of tasks.

use uuid::Uuid;

use super::error::Error;
use super::request::Identity;
use wrkflw_core::ids;
use wrkflw_core::rejection::Rejection;
use wrkflw_store::Store;
use wrkflw_store::saved_views::{self, KeptView, SavedView, VIEWS_MAX};

/// The longest name of a view, in characters: it is a tab.
const NAME_CHARS_MAX: usize = 60;
/// The longest query, in bytes.
const QUERY_BYTES_MAX: usize = 1_000;

/// The saved views of the caller. They need no permission.
#[derive(Clone, Copy)]
pub struct SavedViews<'a> {
    pub(super) store: &'a Store,
}

impl SavedViews<'_> {
    /// Creates or replaces a view of the caller.
    pub async fn put(self, who: &Identity, view: &SavedView) -> Result<(), Error> {
        ids::check_name(&view.name, NAME_CHARS_MAX)
            .map_err(|detail| Error::malformed("/name", detail))?;
        if view.name.trim() != view.name {
            return Err(Error::malformed("/name", "no blanks at its ends"));
        }
        let fits = view.query.len() <= QUERY_BYTES_MAX
            && !view.query.starts_with('?')
            && view.query.bytes().all(|byte| byte.is_ascii_graphic());
        if !fits {
            let detail = format!(
                "the query of a list without its question mark, encoded, at most {QUERY_BYTES_MAX} bytes"
            );
            return Err(Error::malformed("/query", detail));
        }
        match saved_views::put(self.store, who.tenant, &who.subject, view).await? {
            KeptView::Yes => Ok(()),
            KeptView::TooMany => {
                let detail = format!("a person has at most {VIEWS_MAX} saved views: delete one");
                Err(Rejection::not_now("limit_reached", detail).into())
            }
            KeptView::NameTaken => {
                let detail = "another of your saved views has this name";
                Err(Error::invalid("/name", "taken", detail))
            }
        }
    }

    /// Deletes a view of the caller.
    pub async fn delete(self, who: &Identity, id: Uuid) -> Result<(), Error> {
        if saved_views::delete(self.store, who.tenant, &who.subject, id).await? {
            Ok(())
        } else {
            Err(Error::missing("saved view of yours", id))
        }
    }
}
