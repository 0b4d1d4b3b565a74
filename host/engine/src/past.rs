//! Instances at a past moment, folded from their audit entries and not read from the current tables.

use jiff::Timestamp;

use super::error::Error;
use super::offload::Offload;
use wrkflw_core::apply::{Stamp, apply};
use wrkflw_core::event::Event;
use wrkflw_core::execution::effort;
use wrkflw_core::ids::InstanceId;
use wrkflw_core::instance::Instance;
use wrkflw_store::past::{self, PastEntry};
use wrkflw_store::viewer::Viewer;
use wrkflw_store::{Store, StoreError};

/// Limits of the entries to fold: their number and their bytes. Comments are not folded.
pub(super) const ENTRIES_MAX: usize = 20_000;
pub(super) const BYTES_MAX: usize = 64 << 20;

/// An instance at a moment.
pub(super) enum Past {
    /// It had not begun, does not exist, or the viewer does not see it.
    NotBegun,
    Instance(Box<Instance>),
    /// It has more entries than the limits allow.
    TooLong,
}

/// The instance after its entries up to and including the moment.
pub(super) async fn instance_at(
    store: &Store,
    offload: &Offload,
    viewer: &Viewer,
    id: InstanceId,
    at: Timestamp,
) -> Result<Past, Error> {
    // Read before the fold, so that the fold has all entries before that comment.
    let commented = past::commented_revision(store, viewer, id, at).await?;
    let fold = move |instance, mut page: Vec<PastEntry>| {
        let read = page.len();
        page.truncate(page.iter().take_while(|entry| entry.at <= at).count());
        Ok((folded(instance, id, &page)?, page.len() == read))
    };
    Ok(
        match fold_entries(store, offload, viewer, id, None, fold).await? {
            None => Past::TooLong,
            Some(None) => Past::NotBegun,
            Some(Some(mut instance)) => {
                instance.revision = instance.revision.max(commented);
                Past::Instance(Box::new(instance))
            }
        },
    )
}

/// Folds the audit entries of an instance page by page, oldest first, until `fold` ends it. None if there are more entries
/// than the limits allow. A viewer who does not see the instance gets the fold of no entries.
pub(super) async fn fold_entries<T, F>(
    store: &Store,
    offload: &Offload,
    viewer: &Viewer,
    id: InstanceId,
    mut folded: T,
    fold: F,
) -> Result<Option<T>, Error>
where
    T: Send + 'static,
    F: Fn(T, Vec<PastEntry>) -> Result<(T, bool), StoreError> + Clone + Send + 'static,
{
    let (mut seq, mut entries, mut bytes) = (0, 0, 0);
    loop {
        let page = past::past_entries(store, viewer, id, seq).await?;
        let Some(last) = page.last() else {
            return Ok(Some(folded));
        };
        seq = last.seq;
        let size: usize = page.iter().map(|entry| entry.payload.len()).sum();
        (entries, bytes) = (entries + page.len(), bytes + size);
        let effort = effort::replaying(page.len(), size);
        let fold = fold.clone();
        let folding = move || fold(folded, page);
        let (next, goes_on) = offload.in_place(viewer.tenant, effort, folding).await??;
        if !goes_on {
            return Ok(Some(next));
        }
        // Checked after the fold, because the fold may have ended within the page.
        if entries > ENTRIES_MAX || bytes > BYTES_MAX {
            return Ok(None);
        }
        folded = next;
    }
}

/// The instance after these entries.
fn folded(
    mut instance: Option<Instance>,
    id: InstanceId,
    entries: &[PastEntry],
) -> Result<Option<Instance>, StoreError> {
    let wrong = |error: &dyn std::fmt::Display| StoreError::inconsistent("audit_entry", id, error);
    for entry in entries {
        let event: Event = serde_json::from_str(&entry.payload).map_err(|error| wrong(&error))?;
        let stamp = Stamp {
            instance: id,
            revision: entry.revision,
            at: entry.at,
            actor: entry.actor.as_deref(),
        };
        instance = Some(apply(instance, &event, stamp).map_err(|error| wrong(&error))?);
    }
    Ok(instance)
}
