//! Lists of tasks: inboxes, and the tasks that somebody has ended.

mod filter;
mod rows;
mod sources;

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use tokio::time::Instant;
use uuid::Uuid;

pub use self::filter::{Status, TaskCursor, TaskFilter, View};
use super::instances::SEARCH_TIME_MAX;
use super::viewer::{Looking, Viewer, visible};
use super::{Reader, StoreError};
use wrkflw_core::actor::Actor;
use wrkflw_core::ids::TenantId;
use wrkflw_core::instance::{Candidate, Suspension};

/// A task with its instance.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskSummary {
    pub id: Uuid,
    pub label: String,
    pub status: String,
    pub owner: Option<String>,
    pub on_behalf_of: Option<String>,
    pub candidates: Vec<Candidate>,
    pub created_at: Timestamp,
    pub claimed_at: Option<Timestamp>,
    /// Who suspended it.
    pub suspended: Option<Suspension>,
    pub state: String,
    /// The state instance.
    pub state_id: Uuid,
    pub priority: i16,
    pub priority_name: Option<String>,
    pub due_at: Option<Timestamp>,
    pub instance_id: Uuid,
    pub definition_key: String,
    pub definition_version: u32,
    pub entity_type: String,
    pub entity_id: String,
    pub initiator: String,
    pub instance_title: Option<String>,
    pub instance_summary: Option<String>,
    pub ended_at: Option<Timestamp>,
    /// Of the decision.
    pub outcome: Option<String>,
}

impl TaskSummary {
    /// Its approximate size in bytes.
    pub fn bytes(&self) -> usize {
        const LINE_BYTES: usize = 600;
        const CANDIDATE_BYTES: usize = 16;
        let candidates = self
            .candidates
            .iter()
            .map(|candidate| CANDIDATE_BYTES + candidate.id().len());
        let labels = [&self.instance_title, &self.instance_summary];
        let labels = labels.into_iter().flatten().map(String::len);
        LINE_BYTES + candidates.sum::<usize>() + labels.sum::<usize>()
    }
}

/// A state with fewer state instances than this is rare. A list with a filter for a rare state reads all tasks of the state at once.
const RARE_MAX: i64 = 4_096;
/// Open tasks that one step reads, at first and at most. The first step fills most pages. Steps grow if few tasks pass the
/// filters.
const STEP_MIN: i64 = 128;
const STEP_MAX: i64 = 16_384;
/// The number of a rare state's tasks to which the filters are applied first.
const PART_MIN: usize = 128;

/// If the viewer sees at most this number of restricted instances, a list of all open tasks reads the tasks of these, and none
/// of other restricted instances.
const SEEN_MAX: i64 = 1_024;

/// A page of an inbox.
#[derive(Debug)]
pub struct Inbox {
    /// At most `limit` tasks: callers ask for one more than they return.
    pub found: Vec<TaskSummary>,
    /// Where the search ended because its time was over. More tasks may follow.
    pub reached: Option<TaskCursor>,
}

/// The absent people of an actor, the definitions for which the actor substitutes them, and the people between them and the actor. The
/// people between are one text with an id on each line: PostgreSQL has no arrays of arrays of different lengths, and ids have no line ends.
struct Absent {
    people: Vec<String>,
    definitions: Vec<Option<String>>,
    between: Vec<String>,
}

impl Absent {
    fn of(actor: &Actor) -> Absent {
        let others = actor.stands_in_for.iter();
        let others = others.filter(|absence| absence.person != actor.id);
        Absent {
            people: others.clone().map(|one| one.person.clone()).collect(),
            definitions: others.clone().map(|one| one.definition.clone()).collect(),
            between: others.map(|one| one.via.join("\n")).collect(),
        }
    }

    /// The actor and these people.
    fn with(&self, actor: &Actor) -> Vec<String> {
        let absent = self.people.iter().cloned();
        std::iter::once(actor.id.clone()).chain(absent).collect()
    }
}

/// A page of tasks: open ones in the order of creation or of their deadlines, ended ones the last one first.
pub async fn list(
    reader: &Reader,
    viewer: &Viewer,
    filter: &TaskFilter,
) -> Result<Inbox, StoreError> {
    let mut search = Search {
        connection: reader.looking(viewer).await?,
        viewer,
        tenant: viewer.tenant,
        filter,
        absent: Absent::of(&filter.actor),
        found: Vec::new(),
        until: Instant::now() + SEARCH_TIME_MAX,
    };
    let reached = if filter.ended() || filter.by_due {
        search.by_time().await?
    } else {
        search.by_creation().await?
    };
    let found = search.found;
    Ok(Inbox { found, reached })
}

/// A search in progress. Its steps return where it ended before the last task.
struct Search<'a> {
    connection: Looking<'a>,
    viewer: &'a Viewer,
    tenant: TenantId,
    filter: &'a TaskFilter,
    absent: Absent,
    found: Vec<TaskSummary>,
    /// When it ends, but not before the first step.
    until: Instant,
}

impl<'a> Search<'a> {
    fn wanted(&self) -> usize {
        let limit = usize::try_from(self.filter.limit).unwrap_or_default();
        limit.saturating_sub(self.found.len())
    }

    /// In the order of creation.
    ///
    /// The search reads the tasks of a view from an index in the order of the list, step by step until the page is full. With a single
    /// statement, the planner would have to choose between that order and the filters. If a filter leaves few tasks, the search examines
    /// these. If the first step does not fill the page and the filter names a rare state, the search reads the tasks of that state instead.
    async fn by_creation(&mut self) -> Result<Option<TaskCursor>, StoreError> {
        let (tenant, filter) = (self.tenant, self.filter);
        let people = self.absent.with(&filter.actor);
        let mut after = filter.after.map(|place| place.id).unwrap_or_default();
        if let Some(few) = sources::few(&mut self.connection, tenant, filter, after).await? {
            self.take(&few, PART_MIN).await?;
            return Ok(None);
        }
        let seen = self.who_sees_few().await?;
        let (mut step, mut read, mut is_first) = (STEP_MIN, 0, true);
        let mut rare: Option<&str> = None;
        let mut ready = Vec::new();
        loop {
            // A rare state has few tasks, and each step reads all its state instances.
            let limit = if rare.is_some() { STEP_MAX } else { step };
            let from = (rare, seen, &*people);
            let open = self.next_by_creation(from, after, limit).await?;
            let reached = open.last().copied().filter(|_| is_full(&open, limit));
            read += open.len();
            let state = filter.state.as_deref().filter(|_| rare.is_none());
            ready.append(&mut self.may_show(open, state).await?);
            let is_over = Instant::now() >= self.until;
            // The first step decides whether the index of words or that of a rare state is read instead.
            let is_narrowed = is_first && (filter.words.is_some() || filter.state.is_some());
            if let Some(reached) = reached
                && !is_narrowed
                && self.gathers(ready.len(), is_over)
            {
                (after, step) = (reached, self.expected(step, read, ready.len()));
                continue;
            }
            read = 0;
            // All tasks of a rare state are read at once, but usually the first of them fill the page.
            let part = if rare.is_some() {
                PART_MIN
            } else {
                ready.len()
            };
            self.take(&std::mem::take(&mut ready), part).await?;
            let Some(reached) = reached.filter(|_| self.wanted() > 0) else {
                return Ok(None);
            };
            if is_over {
                return Ok(Some(TaskCursor::of(reached)));
            }
            (after, step) = (reached, grown(step));
            if !is_first {
                continue;
            }
            is_first = false;
            // The index of words is slow if nearly all tasks have a word, but then the first step fills the page.
            if let Some(words) = &filter.words {
                let places = self.connection.places().await?;
                if let Some(few) = sources::worded_tasks(places, tenant, words, after).await? {
                    self.take(&few, PART_MIN).await?;
                    return Ok(None);
                }
            }
            if let Some(state) = &filter.state {
                let places = self.connection.places().await?;
                if sources::is_rare(places, tenant, state).await? {
                    rare = Some(state);
                }
            }
        }
    }

    /// The next step in the order of creation: the tasks of a rare state, of the few instances that the viewer sees, or of the view.
    async fn next_by_creation(
        &mut self,
        (rare, seen, people): (Option<&str>, Option<&Actor>, &[String]),
        after: Uuid,
        most: i64,
    ) -> Result<Vec<Uuid>, StoreError> {
        if let Some(state) = rare {
            let places = self.connection.places().await?;
            return sources::open_in(places, self.tenant, state, after, most).await;
        }
        let places = self.connection.places_once_planned().await?;
        if let Some(actor) = seen {
            return visible::open(places, (self.tenant, actor), after, most).await;
        }
        sources::open(places, self.viewer, self.filter.view, people, after, most).await
    }

    /// The viewer of all open tasks, if the viewer sees so few instances that only their tasks are read.
    async fn who_sees_few(&mut self) -> Result<Option<&'a Actor>, StoreError> {
        let viewer = self.viewer.restricted();
        let Some(actor) = viewer.filter(|_| self.filter.view == View::All) else {
            return Ok(None);
        };
        let places = self.connection.places_once_planned().await?;
        let sees_few = visible::sees_few(places, (self.tenant, actor), SEEN_MAX).await?;
        Ok(sees_few.then_some(actor))
    }

    /// Whether to read another step before the tasks that are ready, because these do not fill the page. A statement of a viewer who does
    /// not see every instance is planned anew each time, and that costs more than a step.
    fn gathers(&self, ready: usize, is_over: bool) -> bool {
        self.viewer.is_restricted() && ready < self.wanted() && !is_over
    }

    /// The size of the next step, if `ready` of the `read` tasks may be shown and do not fill the page. It is the expected need by
    /// the share of tasks that may be shown, and a quarter more, at most sixteen times the last step.
    fn expected(&self, step: i64, read: usize, ready: usize) -> i64 {
        let missing = self.wanted().saturating_sub(ready);
        let needed = (missing * read * 5).checked_div(ready * 4);
        let needed = needed.and_then(|needed| i64::try_from(needed).ok());
        let most = grown(grown(step));
        needed.map_or(most, |needed| needed.clamp(STEP_MIN, most))
    }

    /// The tasks that the viewer may see, in the same order, of this state if one is given. For a viewer who does not see every instance,
    /// the statement with the filters is planned anew each time, so it must not read tasks of other states.
    async fn may_show(
        &mut self,
        open: Vec<Uuid>,
        state: Option<&str>,
    ) -> Result<Vec<Uuid>, StoreError> {
        let mut ids = self.may_see(open).await?;
        if let Some(state) = state
            && self.viewer.is_restricted()
            && !ids.is_empty()
        {
            let places = self.connection.places_once_planned().await?;
            let kept = sources::in_state(places, self.tenant, state, &ids).await?;
            let kept: HashSet<_> = kept.into_iter().collect();
            ids.retain(|id| kept.contains(id));
        }
        Ok(ids)
    }

    /// The tasks that the viewer may see, in the same order. A view other than all finds its tasks by people for whom the viewer acts.
    async fn may_see(&mut self, mut ids: Vec<Uuid>) -> Result<Vec<Uuid>, StoreError> {
        if let Some(actor) = self.viewer.restricted()
            && self.filter.view == View::All
        {
            let places = self.connection.places_once_planned().await?;
            let seen = visible::tasks(places, (self.tenant, actor), &ids).await?;
            let seen: HashSet<_> = seen.into_iter().collect();
            ids.retain(|id| seen.contains(id));
        }
        Ok(ids)
    }

    /// Takes the tasks that pass the filter, in the order of creation, part by part until the page is full.
    async fn take(&mut self, open: &[Uuid], mut part: usize) -> Result<(), StoreError> {
        let mut rest = open;
        while !rest.is_empty() && self.wanted() > 0 {
            let (these, later) = rest.split_at(part.min(rest.len()));
            let rows = self.rows(these, self.wanted()).await?;
            self.found.extend(rows);
            (rest, part) = (later, part * 4);
        }
        Ok(())
    }

    /// In the order of a time, step by step.
    async fn by_time(&mut self) -> Result<Option<TaskCursor>, StoreError> {
        let filter = self.filter;
        let few = if filter.by_due {
            self.few_of_view().await?
        } else {
            None
        };
        let (mut after, mut step, mut read) = (filter.after, STEP_MIN, 0);
        let mut ready = Vec::new();
        loop {
            let (mut next, reached) = self.next_by_time(few.as_deref(), after, step).await?;
            read += usize::try_from(step).unwrap_or(usize::MAX);
            ready.append(&mut next);
            let is_over = Instant::now() >= self.until;
            after = reached;
            if reached.is_some() && self.gathers(ready.len(), is_over) {
                step = self.expected(step, read, ready.len());
                continue;
            }
            (step, read) = (grown(step), 0);
            let rows = self.rows(&ready, ready.len()).await?;
            let mut rows: HashMap<_, _> = rows.into_iter().map(|row| (row.id, row)).collect();
            let ordered = ready.drain(..).filter_map(|id| rows.remove(&id));
            let ordered: Vec<_> = ordered.take(self.wanted()).collect();
            self.found.extend(ordered);
            if reached.is_none() || self.wanted() == 0 {
                return Ok(None);
            }
            if is_over {
                return Ok(reached);
            }
        }
    }

    /// The next step in the order of a time: tasks that may be shown, and the place up to which tasks were examined; none if there are
    /// no more. It may return fewer tasks than it examined.
    async fn next_by_time(
        &mut self,
        few: Option<&[Uuid]>,
        after: Option<TaskCursor>,
        step: i64,
    ) -> Result<(Vec<Uuid>, Option<TaskCursor>), StoreError> {
        let ids = |places: &[TaskCursor]| places.iter().map(|place| place.id).collect();
        let (tenant, filter) = (self.tenant, self.filter);
        let next = if filter.by_due {
            let from = after.unwrap_or(TaskCursor::of(Uuid::nil()));
            let between = (from, filter.due_before);
            if let (None, View::All, Some(actor)) = (few, filter.view, self.viewer.restricted()) {
                let places = self.connection.places_once_planned().await?;
                let (due, reached) = visible::due(places, (tenant, actor), between, step).await?;
                // Otherwise more tasks are due at one moment than a step reads, and only their order in the list leads on.
                if reached.is_none_or(|reached| reached.at > from.at) {
                    return Ok((ids(&due), reached));
                }
            }
            let places = self.connection.places().await?;
            sources::due(places, tenant, few, between, step).await?
        } else {
            let places = self.connection.places().await?;
            let owner = filter.owner.as_ref().unwrap_or(&filter.actor.id);
            sources::ended(places, tenant, filter, owner, after, step).await?
        };
        let reached = next.last().copied().filter(|_| is_full(&next, step));
        Ok((self.may_see(ids(&next)).await?, reached))
    }

    /// All tasks that may belong to the view, or that pass a selective filter. None if there are many.
    async fn few_of_view(&mut self) -> Result<Option<Vec<Uuid>>, StoreError> {
        let (tenant, view, none) = (self.tenant, self.filter.view, Uuid::nil());
        let mut few = sources::few(&mut self.connection, tenant, self.filter, none).await?;
        if let (None, Some(words)) = (&few, &self.filter.words) {
            let places = self.connection.places().await?;
            few = sources::worded_tasks(places, tenant, words, none).await?;
        }
        if few.is_some() || view == View::All {
            return Ok(few);
        }
        let people = self.absent.with(&self.filter.actor);
        let places = self.connection.places_once_planned().await?;
        let open = sources::open(places, self.viewer, view, &people, none, STEP_MAX).await?;
        Ok((!is_full(&open, STEP_MAX)).then_some(open))
    }

    /// The tasks among these that pass the filter, in the order of creation.
    async fn rows(&mut self, ids: &[Uuid], most: usize) -> Result<Vec<TaskSummary>, StoreError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let (filter, absent) = (self.filter, &self.absent);
        let connection = self.connection.seen_once_planned().await?;
        let rows = rows::rows(connection, self.tenant, filter, ids, most, absent).await?;
        rows.into_iter()
            .map(|row| row.into_summary(filter))
            .collect()
    }
}

fn grown(step: i64) -> i64 {
    (step * 4).min(STEP_MAX)
}

/// Whether a step found as many as it asked for, so that there may be more.
fn is_full<T>(found: &[T], limit: i64) -> bool {
    i64::try_from(found.len()) == Ok(limit)
}
