//! Instances at a past moment, folded from their audit entries and not read from the current tables.

use jiff::Timestamp;

use super::Engine;
use super::error::Error;
use wrkflw_core::apply::{Stamp, apply};
use wrkflw_core::event::Event;
use wrkflw_core::execution::effort;
use wrkflw_core::ids::InstanceId;
use wrkflw_core::instance::Instance;
use wrkflw_store::StoreError;
use wrkflw_store::past::PastEntry;
use wrkflw_store::viewer::Viewer;

/// Limits of the entries to fold: their number and their bytes.
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

impl Engine {
    /// The instance after its entries up to and including the moment.
    pub(super) async fn instance_at(
        &self,
        viewer: &Viewer,
        id: InstanceId,
        at: Timestamp,
    ) -> Result<Past, Error> {
        let (mut instance, mut seq) = (None, 0);
        let (mut entries, mut bytes) = (0, 0);
        loop {
            let mut page = self.0.store.past_entries(viewer, id, seq).await?;
            seq = page.last().map_or(seq, |last| last.seq);
            let read = page.len();
            page.truncate(page.iter().take_while(|entry| entry.at <= at).count());
            let is_last = page.is_empty() || page.len() < read;
            let size: usize = page.iter().map(|entry| entry.payload.len()).sum();
            (entries, bytes) = (entries + page.len(), bytes + size);
            if entries > ENTRIES_MAX || bytes > BYTES_MAX {
                return Ok(Past::TooLong);
            }
            let effort = effort::replaying(page.len(), size);
            let fold = move || folded(instance, id, &page);
            instance = self
                .0
                .offload
                .in_place(viewer.tenant, effort, fold)
                .await??;
            if is_last {
                let past = instance.map(|instance| Past::Instance(Box::new(instance)));
                return Ok(past.unwrap_or(Past::NotBegun));
            }
        }
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
