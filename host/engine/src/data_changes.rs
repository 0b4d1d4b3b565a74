//! The changes of each step of an instance to its data, with the values before and after. They are folded from the audit entries.

use jiff::Timestamp;

use super::Engine;
use super::error::Error;
use super::past::{self, BYTES_MAX, ENTRIES_MAX};
use super::request::Identity;
use super::visibility::missing;
use wrkflw_core::data_history::{DataChange, DataHistory};
use wrkflw_core::ids::{InstanceId, StateId};
use wrkflw_core::instance::{Instance, Task};
use wrkflw_core::rejection::Rejection;
use wrkflw_store::StoreError;
use wrkflw_store::past::PastEntry;

/// Bytes of values after which a page has no further step.
const PAGE_BYTES_MAX: usize = 1 << 20;

/// A step that changed the data.
#[derive(Debug, Clone)]
pub struct DataStepAt {
    /// The number of its entry in the instance's audit.
    pub entry: u64,
    pub at: Timestamp,
    /// None for the host itself, and where a decision is hidden.
    pub actor: Option<String>,
    /// None for the start, and where a decision is hidden.
    pub trigger: Option<String>,
    pub state: Option<String>,
    pub changes: Vec<DataChange>,
}

/// A page of steps, oldest first.
#[derive(Debug, Clone, Default)]
pub struct DataChanges {
    pub steps: Vec<DataStepAt>,
    /// The entry behind which the next page begins. None on the last page.
    pub next: Option<u64>,
}

impl DataChanges {
    /// About how large its values are, in bytes.
    pub fn bytes(&self) -> usize {
        self.steps.iter().map(DataStepAt::bytes).sum()
    }
}

impl DataStepAt {
    /// Removes who decided and how, unless this person decided or the state has ended.
    fn hide(&mut self, instance: &Instance, state: StateId, viewer: &str) {
        let Some(blind) = instance.active.iter().find(|active| active.id == state) else {
            return;
        };
        // Several decisions may have the same time: the time of a command is in whole milliseconds, and never before that
        // of the preceding one.
        let decisions = blind.tasks.iter().filter_map(Task::decision);
        let mut decisions = decisions
            .filter(|one| one.decided_at == self.at && self.actor.as_ref() == Some(&one.actor))
            .peekable();
        if decisions.peek().is_none() || !decisions.all(|decision| decision.is_of(viewer)) {
            (self.actor, self.trigger) = (None, None);
        }
    }

    fn bytes(&self) -> usize {
        let bytes = |change: &DataChange| {
            let values = change.before.iter().chain(&change.after);
            change.pointer.len() + values.map(|value| value.as_str().len()).sum::<usize>()
        };
        self.changes.iter().map(bytes).sum()
    }
}

/// The fold, and the page that it fills.
#[derive(Default)]
struct Fold {
    history: DataHistory,
    page: DataChanges,
    /// The steps of the page that follow a blind decision, by their places, and its state.
    blind: Vec<(usize, StateId)>,
    bytes: usize,
    /// Whether there was any entry.
    has_begun: bool,
}

/// The steps behind the entry `after` that changed the data of an instance that the caller sees, at most `limit`. Every page
/// folds the instance from its start.
pub async fn data_changes(
    engine: &Engine,
    who: &Identity,
    id: InstanceId,
    after: u64,
    limit: usize,
) -> Result<DataChanges, Error> {
    let viewer = engine.viewing(who, "instance:read").await?;
    let take = move |fold: Fold, page| fold.take(id, page, after, limit);
    let folded = past::fold_entries(
        &engine.0.store,
        &engine.0.offload,
        &viewer,
        id,
        Fold::default(),
        take,
    )
    .await?;
    let Some(fold) = folded else {
        let message = format!(
            "the instance has more than {ENTRIES_MAX} audit entries besides comments, or {BYTES_MAX} bytes of them"
        );
        return Err(Rejection::invalid("/id", "too_long", message).into());
    };
    if !fold.has_begun {
        return Err(missing(id));
    }
    let mut page = fold.page;
    if !fold.blind.is_empty() {
        // Read after the entries: a state that has ended by now is disclosed.
        let instance = engine.read(who, id).await?.instance;
        for (place, state) in fold.blind {
            page.steps[place].hide(&instance, state, &who.subject);
        }
    }
    Ok(page)
}

impl Fold {
    /// Takes these entries. Returns whether the page still has room. It is full once a step of the next page was found.
    fn take(
        mut self,
        id: InstanceId,
        entries: Vec<PastEntry>,
        after: u64,
        limit: usize,
    ) -> Result<(Fold, bool), StoreError> {
        self.has_begun = true;
        for entry in entries {
            let event = serde_json::from_str(&entry.payload)
                .map_err(|error| StoreError::inconsistent("audit_entry", id, error))?;
            let Some(step) = self.history.take(event) else {
                continue;
            };
            if entry.seq <= after {
                continue;
            }
            if self.page.steps.len() >= limit || self.bytes > PAGE_BYTES_MAX {
                self.page.next = self.page.steps.last().map(|last| last.entry);
                return Ok((self, false));
            }
            let place = self.page.steps.len();
            self.blind.extend(step.blind.map(|state| (place, state)));
            let step = DataStepAt {
                entry: entry.seq,
                at: entry.at,
                actor: entry.actor,
                trigger: step.trigger,
                state: step.state,
                changes: step.changes,
            };
            self.bytes += step.bytes();
            self.page.steps.push(step);
        }
        Ok((self, true))
    }
}
