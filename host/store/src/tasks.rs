//! Inboxes: lists of open tasks.

use jiff::Timestamp;
use sqlx::PgConnection;
use tokio::time::Instant;
use uuid::Uuid;

use super::instances::SEARCH_TIME_MAX;
use super::time::Time;
use super::{Reader, StoreError};
use wrkflw_core::actor::Actor;

use wrkflw_core::ids::TenantId;
use wrkflw_core::instance::{Candidate, Ownership, Suspension};

/// Whose tasks a list has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Tasks that the actor owns, or an absent person for whom the actor stands in.
    Mine,
    /// Tasks that the actor may claim, also on behalf of such a person.
    Available,
    /// All open tasks.
    All,
}

/// The filter of a list.
#[derive(Debug, Clone)]
pub struct TaskFilter {
    pub view: View,
    /// With the current groups, permissions and absences.
    pub actor: Actor,
    pub definition: Option<String>,
    pub state: Option<String>,
    pub owner: Option<String>,
    pub label: Option<String>,
    pub min_priority: Option<i16>,
    /// Only tasks that are due before this moment.
    pub due_before: Option<Timestamp>,
    /// Only suspended tasks, or only others.
    pub suspended: Option<bool>,
    pub after: Option<Uuid>,
    pub limit: i64,
}

/// An open task with its instance.
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

/// A state with fewer state instances than this is rare. A list that is filtered by a rare state reads all tasks of the state
/// at once.
const RARE_MAX: i64 = 4_096;
/// Open tasks that one step reads, at first and at most. The first step fills most pages. Steps grow if few tasks pass the
/// filters.
const STEP_MIN: i64 = 128;
const STEP_MAX: i64 = 16_384;
/// The number of a rare state's tasks to which the filters are applied first.
const PART_MIN: usize = 128;

/// A page of an inbox.
#[derive(Debug)]
pub struct Inbox {
    /// At most `limit` tasks: callers ask for one more than they return.
    pub found: Vec<TaskSummary>,
    /// Where the search ended because its time was over. More tasks may follow.
    pub reached: Option<Uuid>,
}

impl Reader {
    /// A page of tasks, oldest first.
    ///
    /// The tasks of a view are read from an index in the order of the list, step by step until the page is full: the planner
    /// of a single statement would have to choose between that order and the filters. If the first step does not fill the
    /// page and the filter names a rare state, the tasks of that state are read instead. The search ends after
    /// [`SEARCH_TIME_MAX`], but not before the first step.
    pub async fn tasks(&self, tenant: TenantId, filter: &TaskFilter) -> Result<Inbox, StoreError> {
        let until = Instant::now() + SEARCH_TIME_MAX;
        let absences = filter.actor.stands_in_for.iter();
        let (absent, definitions): (Vec<_>, Vec<_>) = absences
            .filter(|absence| absence.person != filter.actor.id)
            .map(|absence| (absence.person.clone(), absence.definition.clone()))
            .unzip();
        let people: Vec<String> = std::iter::once(filter.actor.id.clone())
            .chain(absent.iter().cloned())
            .collect();
        let mut connection = self.reading(tenant).await?;
        let mut found = Vec::new();
        let (mut after, mut step) = (filter.after.unwrap_or_default(), STEP_MIN);
        let mut rare: Option<&str> = None;
        loop {
            let connection = &mut *connection;
            let open = match rare {
                Some(state) => open_in(connection, tenant, state, after).await?,
                None => open(connection, tenant, filter.view, &people, after, step).await?,
            };
            let absent = (absent.as_slice(), definitions.as_slice());
            // All tasks of a rare state are read at once, but the first of them mostly fill the page.
            let mut part = if rare.is_some() { PART_MIN } else { open.len() };
            let mut rest = open.as_slice();
            let is_full = loop {
                let wanted = filter.limit - i64::try_from(found.len()).unwrap_or(filter.limit);
                if wanted <= 0 || rest.is_empty() {
                    break wanted <= 0;
                }
                let (these, later) = rest.split_at(part.min(rest.len()));
                for row in rows(connection, tenant, filter, these, wanted, absent).await? {
                    found.push(row.into_summary(filter)?);
                }
                (rest, part) = (later, part * 4);
            };
            let reached = match open.last() {
                Some(last) if !is_full && i64::try_from(open.len()) == Ok(step) => *last,
                _ => {
                    let reached = None;
                    return Ok(Inbox { found, reached });
                }
            };
            if Instant::now() >= until {
                let reached = Some(reached);
                return Ok(Inbox { found, reached });
            }
            after = reached;
            let is_first = step == STEP_MIN;
            step = (step * 4).min(STEP_MAX);
            if is_first
                && let Some(state) = &filter.state
                && is_rare(connection, tenant, state).await?
            {
                rare = Some(state);
                step = STEP_MAX;
            }
        }
    }
}

/// The ids of the next open tasks that may belong to the view, in the order of lists.
async fn open(
    connection: &mut PgConnection,
    tenant: TenantId,
    view: View,
    people: &[String],
    after: Uuid,
    most: i64,
) -> Result<Vec<Uuid>, StoreError> {
    let open = match view {
        View::Mine => {
            let mine = sqlx::query_scalar!(
                "select id from task where tenant_id = $1 and status = 'CLAIMED' and owner = any($2) and id > $3
                order by id limit $4",
                tenant.0,
                people,
                after,
                most
            );
            mine.fetch_all(connection).await?
        }
        View::Available => {
            let offered = sqlx::query_scalar!(
                r#"with place (kind, principal) as (
                    select 'user', person from unnest($2::text[]) person
                    union
                    select 'group', group_id from membership
                    where tenant_id = $1 and person_id = any($2) and valid_to is null
                )
                select distinct next.task_id as "id!" from place cross join lateral (
                    select c.task_id from task_candidate c
                    where c.tenant_id = $1 and c.kind = place.kind and c.principal = place.principal and c.task_id > $3
                    order by c.task_id limit $4
                ) next order by next.task_id limit $4"#,
                tenant.0,
                people,
                after,
                most
            );
            offered.fetch_all(connection).await?
        }
        View::All => {
            let all = sqlx::query_scalar!(
                "select id from task where tenant_id = $1 and status in ('PENDING', 'CLAIMED') and id > $2
                order by id limit $3",
                tenant.0,
                after,
                most
            );
            all.fetch_all(connection).await?
        }
    };
    Ok(open)
}

async fn is_rare(
    connection: &mut PgConnection,
    tenant: TenantId,
    state: &str,
) -> Result<bool, StoreError> {
    let state_instances = sqlx::query_scalar!(
        r#"select count(*) as "state_instances!" from (
            select from state_instance where tenant_id = $1 and name = $2 and left_at is null limit $3
        ) stay"#,
        tenant.0,
        state,
        RARE_MAX
    );
    Ok(state_instances.fetch_one(connection).await? < RARE_MAX)
}

/// The ids of the next open tasks of a rare state, in the order of lists, at most [`STEP_MAX`].
async fn open_in(
    connection: &mut PgConnection,
    tenant: TenantId,
    state: &str,
    after: Uuid,
) -> Result<Vec<Uuid>, StoreError> {
    let open = sqlx::query_scalar!(
        r#"with stay as materialized (
            select instance_id, id from state_instance where tenant_id = $1 and name = $2 and left_at is null
        )
        select t.id as "id!" from stay s cross join lateral (
            select t.id from task t
            where t.tenant_id = $1 and t.instance_id = s.instance_id and t.state_id = s.id
              and t.status in ('PENDING', 'CLAIMED') and t.id > $3
            offset 0
        ) t order by t.id limit $4"#,
        tenant.0,
        state,
        after,
        STEP_MAX
    );
    Ok(open.fetch_all(connection).await?)
}

/// The rows of the open tasks that pass the filter. `absent` has absent people, and the definitions for which the actor
/// stands in.
async fn rows(
    connection: &mut PgConnection,
    tenant: TenantId,
    filter: &TaskFilter,
    open: &[Uuid],
    most: i64,
    (absent, definitions): (&[String], &[Option<String>]),
) -> Result<Vec<TaskRow>, StoreError> {
    let rows = sqlx::query_file_as!(
        TaskRow,
        "src/tasks.sql",
        tenant.0,
        match filter.view {
            View::Mine => "mine",
            View::Available => "available",
            View::All => "all",
        },
        filter.actor.id,
        filter.definition,
        filter.state,
        open,
        most,
        absent,
        definitions as _,
        filter.owner,
        filter.label,
        filter.min_priority,
        filter.due_before.map(Time) as _,
        filter.suspended
    );
    Ok(rows.fetch_all(connection).await?)
}

/// A row of an inbox.
#[derive(Debug)]
struct TaskRow {
    id: Uuid,
    label: String,
    status: String,
    owner: Option<String>,
    candidates: String,
    created_at: Time,
    claimed_at: Option<Time>,
    ownership: Option<String>,
    suspended: Option<String>,
    state: String,
    priority: i16,
    priority_name: Option<String>,
    due_at: Option<Time>,
    instance_id: Uuid,
    definition_key: String,
    definition_version: i32,
    entity_type: String,
    entity_id: String,
    initiator: String,
    instance_title: Option<String>,
    instance_summary: Option<String>,
    /// Requesters, and people excluded from the state.
    excluded_people: Vec<String>,
}

impl TaskRow {
    fn into_summary(self, filter: &TaskFilter) -> Result<TaskSummary, StoreError> {
        let damaged = |error| StoreError::inconsistent("task", self.id, error);
        let candidates: Vec<Candidate> = serde_json::from_str(&self.candidates).map_err(damaged)?;
        let ownership = self.ownership.as_deref().map(serde_json::from_str);
        let ownership: Option<Ownership> = ownership.transpose().map_err(damaged)?;
        let suspended = self.suspended.as_deref().map(serde_json::from_str);
        let suspended = suspended.transpose().map_err(damaged)?;
        let (actor, owner) = (&filter.actor, self.owner.as_deref());
        let principal = ownership.as_ref().and_then(Ownership::principal).or(owner);
        let on_behalf_of = match filter.view {
            View::Available => claimed_for(
                actor,
                &self.definition_key,
                &candidates,
                &self.excluded_people,
            ),
            View::Mine => principal.filter(|person| *person != actor.id),
            View::All => principal.filter(|person| Some(*person) != owner),
        };
        Ok(TaskSummary {
            id: self.id,
            label: self.label,
            status: self.status,
            on_behalf_of: on_behalf_of.map(str::to_owned),
            owner: self.owner,
            candidates,
            created_at: self.created_at.0,
            claimed_at: self.claimed_at.map(|time| time.0),
            suspended,
            state: self.state,
            priority: self.priority,
            priority_name: self.priority_name,
            due_at: self.due_at.map(|time| time.0),
            instance_id: self.instance_id,
            definition_key: self.definition_key,
            definition_version: self.definition_version.cast_unsigned(),
            entity_type: self.entity_type,
            entity_id: self.entity_id,
            initiator: self.initiator,
            instance_title: self.instance_title,
            instance_summary: self.instance_summary,
        })
    }
}

/// The absent person for whom the actor would claim a task. None if the actor is a candidate.
fn claimed_for<'a>(
    actor: &'a Actor,
    definition: &'a str,
    candidates: &[Candidate],
    excluded_people: &[String],
) -> Option<&'a str> {
    let is_candidate = |person: &str, groups: &[String]| {
        let mut candidates = candidates.iter();
        candidates.any(|candidate| candidate.includes(person, groups))
    };
    if is_candidate(&actor.id, &actor.groups) {
        return None;
    }
    let mut absent = actor.absent(definition);
    absent
        .find(|absent| {
            is_candidate(&absent.person, &absent.groups)
                && !excluded_people.contains(&absent.person)
        })
        .map(|absent| absent.person.as_str())
}
