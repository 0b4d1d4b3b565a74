//! Lists of instances by filters.
//!
//! A search by attributes has three methods. If the index of an attribute leaves few instances, it examines only these. Otherwise
//! it examines all instances from the newest on. If that finds too few, it examines those that an index returns, newest first.
//! Bounded probes decide, not the planner's estimates. No method examines many more than [`EXAMINED_MAX`] instances, or takes much
//! longer than [`SEARCH_TIME_MAX`]. A page whose search ends at one of these limits is short, and says where the next page begins.

pub(crate) mod narrow;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use uuid::Uuid;

use super::attributes::{Columns, Probe, common};
use super::time::Time;
use super::viewer::visible::{self, Order};
use super::viewer::{Looking, Viewer};
use super::{Reader, StoreError};
use wrkflw_core::actor::Actor;
use wrkflw_core::answer::AttributeValue;
use wrkflw_core::ids::TenantId;
use wrkflw_core::search::Condition;

/// If an index leaves at most this number of instances, a search examines only these.
const NARROW_MAX: i32 = 5_000;
/// With at most this number, no other index is probed.
const NARROW_ENOUGH: usize = 1_000;
/// The statuses of most instances.
const FREQUENT: [&str; 2] = ["RUNNING", "COMPLETED"];
/// Instances that one request examines.
const EXAMINED_MAX: usize = 20_000;
/// The time limit of a search. The statement that runs then is still finished.
pub(super) const SEARCH_TIME_MAX: Duration = Duration::from_secs(2);
/// Instances that a walk examines before it changes to an index. If these do not fill a page, few instances match, or only
/// old instances match, and an index costs less.
const WALKED_MAX: usize = 1_000;
/// The newest instances that a search for words examines before it reads the index of words.
const GLANCED: usize = 64;
/// Instances that a statement examines, at first and at most. The number doubles until the page is full.
const WINDOW_MIN: usize = 256;
const WINDOW_MAX: usize = 4_096;

/// The filter of a list.
#[derive(Debug, Clone, Default)]
pub struct InstanceFilter {
    pub definition: Option<String>,
    pub status: Option<String>,
    /// The name of an active state.
    pub state: Option<String>,
    pub entity_type: Option<String>,
    pub entity_id: Option<String>,
    pub initiator: Option<String>,
    /// The parent of the instance.
    pub parent: Option<Uuid>,
    /// Whether a state of the instance is unassignable; none for all.
    pub unassignable: Option<bool>,
    /// Started at or after.
    pub from: Option<Timestamp>,
    /// Started before.
    pub to: Option<Timestamp>,
    /// The owner of an open task.
    pub owner: Option<String>,
    /// The owner, or the last one, of any task.
    pub ever_owner: Option<String>,
    /// Whether that person asks. Other people do not find a blind decision before its state ends.
    pub ever_owner_asks: bool,
    /// Words of its title, summary, entity or of a text attribute.
    pub words: Option<String>,
    /// Not changed since.
    pub updated_before: Option<Timestamp>,
    /// An active state or an open task of it is due before.
    pub due_before: Option<Timestamp>,
    /// Conditions on attributes, which must all hold.
    pub conditions: Vec<Condition>,
    /// From the oldest on, instead of from the newest.
    pub oldest_first: bool,
    /// The last instance of the page before.
    pub after: Option<Uuid>,
    pub limit: u32,
}

/// An instance in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct InstanceSummary {
    pub id: Uuid,
    pub definition_key: String,
    pub definition_version: u32,
    pub status: String,
    pub outcome: Option<String>,
    pub revision: u32,
    pub entity_type: String,
    pub entity_id: String,
    pub initiator: String,
    pub started_at: Timestamp,
    pub updated_at: Timestamp,
    pub title: Option<String>,
    pub summary: Option<String>,
    pub states: Vec<String>,
    /// The highest priority of its active states; none without one.
    pub priority: Option<i16>,
    pub priority_name: Option<String>,
    /// When the next of its deadlines passes. None while they are paused.
    pub next_due_at: Option<Timestamp>,
    pub attributes: Option<BTreeMap<String, AttributeValue>>,
}

impl InstanceSummary {
    /// Its approximate size in bytes.
    pub fn bytes(&self) -> usize {
        const LINE_BYTES: usize = 500;
        const WORD_BYTES: usize = 40;
        let states = self.states.iter().map(|name| WORD_BYTES + name.len());
        let attributes = self.attributes.iter().flatten();
        let attributes = attributes.map(|(name, value)| WORD_BYTES + name.len() + value.bytes());
        let labels = [&self.title, &self.summary].into_iter().flatten();
        LINE_BYTES
            + states.sum::<usize>()
            + attributes.sum::<usize>()
            + labels.map(String::len).sum::<usize>()
    }
}

/// A page of instances.
#[derive(Debug)]
pub struct Listed {
    pub lines: Vec<InstanceSummary>,
    /// The instance behind which the next page begins, if there may be one.
    pub next: Option<Uuid>,
}

/// An instance that was examined.
struct ExaminedInstance {
    line: InstanceSummary,
    fits: bool,
    /// Its number within the statement, from 1.
    place: usize,
}

/// A page of instances.
pub async fn list(
    reader: &Reader,
    viewer: &Viewer,
    filter: &InstanceFilter,
) -> Result<Listed, StoreError> {
    let mut search = Search {
        connection: reader.looking(viewer).await?,
        tenant: viewer.tenant,
        viewer,
        filter,
        probes: Probe::all(&filter.conditions),
        page: Page::new(filter.limit),
        after: filter.after,
        examined: 0,
        until: Instant::now() + SEARCH_TIME_MAX,
        looked: false,
    };
    // If nearly all instances have the word, the newest ones fill the page. Reading them is then faster than the index of words.
    if filter.words.is_some() {
        let more = search.walk(GLANCED, GLANCED).await?;
        if !more || search.page.wanted() == 0 {
            let reached = search.after.filter(|_| more);
            return Ok(search.page.end(reached));
        }
    }
    if let Some(ids) = search.narrowed().await? {
        let more = !search.among(&ids).await?;
        let reached = search.after.filter(|_| more);
        return Ok(search.page.end(reached));
    }
    let leading = search
        .probes
        .iter()
        .position(Probe::is_ordered)
        .or_else(|| search.probes.iter().position(Probe::is_range))
        .or((!search.probes.is_empty()).then_some(0));
    let more = match leading {
        // The indexes of attributes are read from the newest instance on, so they do not serve this order.
        _ if filter.oldest_first => search.walk(EXAMINED_MAX, WINDOW_MIN).await?,
        None => search.walk(EXAMINED_MAX, WINDOW_MIN).await?,
        Some(probe) => search.walk(WALKED_MAX, WINDOW_MIN).await? && search.led(probe).await?,
    };
    let reached = search.after.filter(|_| more);
    Ok(search.page.end(reached))
}

/// A search in progress.
struct Search<'a> {
    connection: Looking<'a>,
    tenant: TenantId,
    viewer: &'a Viewer,
    filter: &'a InstanceFilter,
    probes: Vec<Probe<'a>>,
    page: Page,
    /// The last instance that was examined. The search goes on behind it.
    after: Option<Uuid>,
    examined: usize,
    /// When the search ends.
    until: Instant,
    /// Whether it has examined any instance. It does so at least once, to make progress.
    looked: bool,
}

impl Search<'_> {
    /// Whether the page has room and the search has time.
    fn goes_on(&self) -> bool {
        self.page.wanted() > 0 && (!self.looked || Instant::now() < self.until)
    }

    /// The instances behind the cursor that indexes leave, in the order of the list. None if there are many.
    async fn narrowed(&mut self) -> Result<Option<Vec<Uuid>>, StoreError> {
        let mut narrowed = None;
        let (tenant, filter) = (self.tenant, self.filter);
        let connection = self.connection.places().await?;
        if let Some(owner) = &filter.owner {
            narrowed = both(narrowed, narrow::owned(connection, tenant, owner).await?);
        }
        if let Some(owner) = &filter.ever_owner {
            narrowed = both(
                narrowed,
                narrow::ever_owned(connection, tenant, owner).await?,
            );
        }
        if let Some(parent) = filter.parent {
            narrowed = both(
                narrowed,
                narrow::children(connection, tenant, parent).await?,
            );
        }
        if let Some(words) = &filter.words {
            narrowed = both(narrowed, narrow::worded(connection, words).await?);
        }
        if let Some(before) = filter.due_before {
            narrowed = both(narrowed, narrow::due(connection, tenant, before).await?);
        }
        if let Some(before) = filter.updated_before
            && filter
                .status
                .as_ref()
                .is_some_and(|status| status == "RUNNING")
        {
            narrowed = both(narrowed, narrow::lasting(connection, tenant, before).await?);
        }
        // For a viewer who sees all, the walk reads these indexes in the order of the list instead.
        if self.viewer.is_restricted() {
            narrowed = both(narrowed, narrow::about(connection, tenant, filter).await?);
            let status = filter.status.as_ref();
            if let Some(status) = status.filter(|status| !FREQUENT.contains(&status.as_str())) {
                narrowed = both(
                    narrowed,
                    narrow::with_status(connection, tenant, status).await?,
                );
            }
        }
        for probe in &self.probes {
            if narrowed
                .as_ref()
                .is_some_and(|ids| ids.len() <= NARROW_ENOUGH)
            {
                break;
            }
            narrowed = both(narrowed, probe.whole(connection, NARROW_MAX).await?);
        }
        Ok(narrowed.map(|mut ids| {
            if let Some(after) = self.after {
                if self.filter.oldest_first {
                    ids.drain(..ids.partition_point(|id| *id <= after));
                } else {
                    ids.truncate(ids.partition_point(|id| *id < after));
                }
            }
            if !self.filter.oldest_first {
                ids.reverse();
            }
            ids
        }))
    }

    /// Examines these instances, in the order of the list, until the page is full. True if it has examined all of them.
    async fn among(&mut self, ids: &[Uuid]) -> Result<bool, StoreError> {
        let (mut rest, mut size) = (ids, WINDOW_MIN);
        while !rest.is_empty() && self.goes_on() {
            let (next, later) = rest.split_at(size.min(rest.len()));
            let looked = self.look(Some(next), next.len()).await?;
            self.page.take(looked);
            self.after = next.last().copied();
            (rest, size) = (later, grown(size));
        }
        Ok(rest.is_empty())
    }

    /// Examines the instances that an index returns, newest first. True if there may be more.
    async fn led(&mut self, probe: usize) -> Result<bool, StoreError> {
        // Without an order, each call reads the whole range, so it returns more at once.
        let mut size = if self.probes[probe].is_ordered() {
            WINDOW_MIN
        } else {
            WINDOW_MAX
        };
        while self.goes_on() && self.examined < EXAMINED_MAX {
            let (before, most) = (self.after.unwrap_or(Uuid::max()), bounded(size));
            let connection = self.connection.places().await?;
            let named = self.probes[probe].newest(connection, before, most).await?;
            if !self.among(&named).await? {
                return Ok(true);
            }
            self.examined += named.len();
            match named.last() {
                Some(last) if named.len() == size => self.after = Some(*last),
                _ => return Ok(false),
            }
            size = grown(size);
        }
        Ok(true)
    }

    /// Examines the instances that the actor may see, in the order of the list. True if there may be more.
    async fn seen(
        &mut self,
        actor: &Actor,
        most: usize,
        mut size: usize,
    ) -> Result<bool, StoreError> {
        let filter = self.filter;
        while self.goes_on() && self.examined < most {
            let order = Order {
                oldest_first: filter.oldest_first,
                after: self.after,
                most: i64::from(bounded(size)),
            };
            let (connection, of) = (self.connection.places().await?, (self.tenant, actor));
            let seen = visible::instances(connection, of, filter.definition.as_deref(), order);
            let seen = seen.await?;
            if !self.among(&seen).await? {
                return Ok(true);
            }
            self.examined += seen.len();
            match seen.last() {
                Some(last) if seen.len() == size => self.after = Some(*last),
                _ => return Ok(false),
            }
            size = grown(size);
        }
        Ok(true)
    }

    /// Examines one instance after the other, in the order of the list. True if there may be more.
    async fn walk(&mut self, most: usize, first: usize) -> Result<bool, StoreError> {
        let filter = self.filter;
        let texts = [&filter.owner, &filter.ever_owner, &filter.words];
        let is_timed = filter.updated_before.or(filter.due_before).is_some();
        let is_worded = texts.iter().any(|one| one.is_some());
        let searches = is_timed || is_worded || !filter.conditions.is_empty();
        let mut size = if searches { first } else { self.page.wanted() };
        if let Some(actor) = self.viewer.restricted() {
            return self.seen(actor, most, size).await;
        }
        while self.goes_on() && self.examined < most {
            let looked = self.look(None, size).await?;
            let last = looked.last().filter(|last| last.place == size);
            let last = last.map(|last| last.line.id);
            self.page.take(looked);
            self.examined += size;
            // Without a last instance, the statement reached the end of the list, or the page was full before.
            match last {
                Some(last) => self.after = Some(last),
                None => return Ok(false),
            }
            size = grown(size);
        }
        Ok(true)
    }

    /// Examines the next instances, or those in `among`, and returns which of them match.
    async fn look(
        &mut self,
        among: Option<&[Uuid]>,
        size: usize,
    ) -> Result<Vec<ExaminedInstance>, StoreError> {
        let filter = self.filter;
        let conditions = Columns::of(&filter.conditions);
        let rows = sqlx::query_file!(
            "src/instances.sql",
            self.tenant.0,
            filter.definition,
            filter.status,
            filter.state,
            filter.entity_type,
            filter.entity_id,
            filter.initiator,
            filter.from.map(Time) as _,
            filter.to.map(Time) as _,
            self.after,
            filter.owner,
            &conditions.names,
            &conditions.kinds,
            &conditions.operators,
            &conditions.bounds,
            among as _,
            i64::from(bounded(size)),
            i64::from(bounded(self.page.wanted())),
            filter.unassignable,
            filter.parent,
            filter.updated_before.map(Time) as _,
            filter.due_before.map(Time) as _,
            filter.ever_owner,
            filter.words,
            filter.oldest_first,
            filter.ever_owner_asks
        )
        .fetch_all(self.connection.seen().await?)
        .await?;
        self.looked = true;
        let looked = rows.into_iter().map(|row| ExaminedInstance {
            fits: row.fits,
            place: usize::try_from(row.place).unwrap_or(usize::MAX),
            line: InstanceSummary {
                id: row.id,
                definition_key: row.definition_key,
                definition_version: row.definition_version.cast_unsigned(),
                status: row.status,
                outcome: row.outcome,
                revision: row.revision.cast_unsigned(),
                entity_type: row.entity_type,
                entity_id: row.entity_id,
                initiator: row.initiator,
                started_at: row.started_at.0,
                updated_at: row.updated_at.0,
                title: row.title,
                summary: row.summary,
                states: row.states,
                priority: row.priority,
                priority_name: row.priority_name,
                next_due_at: row.next_due_at.map(|time| time.0),
                attributes: None,
            },
        });
        Ok(looked.collect())
    }
}

fn grown(size: usize) -> usize {
    (size * 2).min(WINDOW_MAX)
}

fn bounded(size: usize) -> i32 {
    i32::try_from(size).unwrap_or(i32::MAX)
}

/// The ids that are in both sets. None stands for the set of all ids.
fn both(one: Option<Vec<Uuid>>, other: Option<Vec<Uuid>>) -> Option<Vec<Uuid>> {
    match (one, other) {
        (Some(one), Some(other)) => Some(common(one, &other)),
        (one, other) => one.or(other),
    }
}

/// The lines of a page, and one more as the sign of another page.
struct Page {
    lines: Vec<InstanceSummary>,
    limit: usize,
}

impl Page {
    fn new(limit: u32) -> Page {
        Page {
            lines: Vec::new(),
            limit: limit as usize,
        }
    }

    fn wanted(&self) -> usize {
        (self.limit + 1).saturating_sub(self.lines.len())
    }

    fn take(&mut self, looked: Vec<ExaminedInstance>) {
        let fitting = looked.into_iter().filter(|looked| looked.fits);
        self.lines.extend(fitting.map(|looked| looked.line));
    }

    /// `reached` is where the search stopped although there is more.
    fn end(mut self, reached: Option<Uuid>) -> Listed {
        let more = self.lines.len() > self.limit;
        self.lines.truncate(self.limit);
        let next = if more {
            self.lines.last().map(|line| line.id)
        } else {
            reached
        };
        Listed {
            lines: self.lines,
            next,
        }
    }
}
