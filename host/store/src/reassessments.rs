//! Reassessments: a row for each change of a group, a manager or an absence, or for several changes of one principal. A worker
//! claims a row by lease and walks, page by page, through the instances that the change concerns. There are four stages: tasks
//! offered to the principal, tasks that it owns, tasks that substitutes claimed during its absence, and unassignable state
//! instances of its own requests, for which its new manager may become a candidate. The first stage includes all other
//! unassignable state instances that a change may provide with people: each of them has offered a task to every group that counts,
//! the fallback group included.
//!
//! The row stores a mark of the walk's progress, so that another host continues there if this host fails. To reassess an
//! instance twice is harmless.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::commit::reassessing;
use super::time::Time;
use super::{Store, StoreError};
use wrkflw_core::absence::LINKS_MAX;
use wrkflw_core::ids::{InstanceId, TenantId};
use wrkflw_core::instance::Candidate;

/// A reassessment that this host has claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reassessment {
    pub tenant: TenantId,
    pub id: Uuid,
    /// A user or a group.
    pub principal: Candidate,
    pub due_at: Timestamp,
    /// The time from the last change to the claim, by the database's clock. Negative if the change is still to come: a host
    /// whose clock is ahead claims the row of the end of an absence early.
    pub age: SignedDuration,
    /// The number of claims with this one, without those that ended by [`give_back`].
    pub attempts: u32,
    pub mark: WalkProgress,
    /// Whether the walk in progress is the last one.
    pub closing: bool,
}

/// The progress of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalkProgress {
    pub stage: Stage,
    /// The last task or instance of the stage that is done.
    pub after: Uuid,
}

/// The stages of a walk, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Offered,
    Owned,
    Substituted,
    Unassignable,
}

impl Stage {
    fn name(self) -> &'static str {
        match self {
            Stage::Offered => "offered",
            Stage::Owned => "owned",
            Stage::Substituted => "substituted",
            Stage::Unassignable => "unassignable",
        }
    }

    fn parse(name: &str) -> Option<Stage> {
        let stages = [
            Stage::Offered,
            Stage::Owned,
            Stage::Substituted,
            Stage::Unassignable,
        ];
        stages.into_iter().find(|stage| stage.name() == name)
    }

    fn next(self) -> Option<Stage> {
        match self {
            Stage::Offered => Some(Stage::Owned),
            Stage::Owned => Some(Stage::Substituted),
            Stage::Substituted => Some(Stage::Unassignable),
            Stage::Unassignable => None,
        }
    }
}

impl WalkProgress {
    /// Where a walk begins.
    pub const BEGINNING: WalkProgress = WalkProgress {
        stage: Stage::Offered,
        after: Uuid::nil(),
    };
}

/// One page of the running instances that a change concerns, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Concerned {
    /// In the order of the walk, each with the mark of a walk that has passed it.
    pub instances: Vec<(InstanceId, WalkProgress)>,
    /// The instances of stopped versions, which execute no commands.
    pub stopped: Vec<InstanceId>,
    /// Where the next page begins. None after the last page.
    pub next: Option<WalkProgress>,
}

/// A row of a page, and its instance.
struct ConcernedRow {
    /// The id of the task or instance, for [`WalkProgress::after`].
    place: Uuid,
    instance: Uuid,
    /// Whether it runs and the change may concern it.
    is_running: bool,
    is_stopped: bool,
}

/// Claims up to `limit` due reassessments until `lease_end`. The tenants after `after` come first.
pub async fn claim(
    store: &Store,
    now: Timestamp,
    lease_end: Timestamp,
    limit: i64,
    after: TenantId,
) -> Result<Vec<Reassessment>, StoreError> {
    let rows = sqlx::query!(
        r#"with due as materialized (
            (select c.tenant_id, c.id from reassessment c where c.tenant_id > $4 and greatest(c.due_at, c.lease_until) <= $1
             order by c.tenant_id, greatest(c.due_at, c.lease_until) limit $3)
            union all
            (select c.tenant_id, c.id from reassessment c where c.tenant_id <= $4 and greatest(c.due_at, c.lease_until) <= $1
             order by c.tenant_id, greatest(c.due_at, c.lease_until) limit $3)
            limit $3
        ),
        ready as (
            select c.tenant_id, c.id from due join reassessment c on c.tenant_id = due.tenant_id and c.id = due.id
            where greatest(c.due_at, c.lease_until) <= $1
            for update of c skip locked
        )
        update reassessment r set lease_until = $2, attempts = r.attempts + 1
        from ready where r.tenant_id = ready.tenant_id and r.id = ready.id
        returning r.tenant_id, r.id, r.kind, r.principal, r.due_at as "due_at: Time",
            extract(epoch from now() - greatest(r.created_at, r.due_at))::float8 as "age!", r.attempts, r.stage, r.after, r.closing"#,
        Time(now) as _,
        Time(lease_end) as _,
        limit,
        after.0
    )
    .fetch_all(&store.writer)
    .await?;
    rows.into_iter()
        .map(|row| {
            let stage = Stage::parse(&row.stage).ok_or_else(|| {
                StoreError::inconsistent("reassessment", row.id, format!("stage {}", row.stage))
            })?;
            let principal = match row.kind.as_str() {
                "group" => Candidate::Group(row.principal),
                _ => Candidate::User(row.principal),
            };
            Ok(Reassessment {
                tenant: TenantId(row.tenant_id),
                id: row.id,
                principal,
                due_at: row.due_at.0,
                age: SignedDuration::try_from_secs_f64(row.age).unwrap_or_default(),
                attempts: row.attempts.cast_unsigned(),
                mark: WalkProgress {
                    stage,
                    after: row.after,
                },
                closing: row.closing,
            })
        })
        .collect()
}

/// Stores the mark. Nobody else claims the row until `until`. False if another host has claimed it meanwhile.
pub async fn advance(
    store: &Store,
    reassessment: &Reassessment,
    mark: WalkProgress,
    until: Timestamp,
) -> Result<bool, StoreError> {
    keep(store, reassessment, mark, until, reassessment.attempts).await
}

/// Ends the claim so that others go first: the reassessment can be claimed again from `next` on. This claim is not counted.
pub async fn give_back(
    store: &Store,
    reassessment: &Reassessment,
    mark: WalkProgress,
    next: Timestamp,
) -> Result<bool, StoreError> {
    let attempts = reassessment.attempts.saturating_sub(1);
    keep(store, reassessment, mark, next, attempts).await
}

async fn keep(
    store: &Store,
    reassessment: &Reassessment,
    mark: WalkProgress,
    until: Timestamp,
    attempts: u32,
) -> Result<bool, StoreError> {
    let done = sqlx::query!(
        "update reassessment set stage = $4, after = $5, lease_until = $6, closing = $7, attempts = $8
        where tenant_id = $1 and id = $2 and attempts = $3",
        reassessment.tenant.0,
        reassessment.id,
        reassessment.attempts.cast_signed(),
        mark.stage.name(),
        mark.after,
        Time(until) as _,
        reassessment.closing,
        attempts.cast_signed()
    )
    .execute(&store.writer)
    .await?;
    Ok(done.rows_affected() > 0)
}

/// Deletes a reassessment that is done, unless another host has claimed it meanwhile.
pub async fn finish(store: &Store, reassessment: &Reassessment) -> Result<(), StoreError> {
    sqlx::query!(
        "delete from reassessment where tenant_id = $1 and id = $2 and attempts = $3",
        reassessment.tenant.0,
        reassessment.id,
        reassessment.attempts.cast_signed()
    )
    .execute(&store.writer)
    .await?;
    Ok(())
}

/// When the next reassessment can be claimed. None if there is no reassessment.
pub async fn next(store: &Store) -> Result<Option<Timestamp>, StoreError> {
    let next = sqlx::query_scalar!(
        r#"select greatest(due_at, lease_until) as "ready_at!: Time" from reassessment
        order by greatest(due_at, lease_until) limit 1"#
    )
    .fetch_optional(&store.writer)
    .await?;
    Ok(next.map(|time| time.0))
}

/// The next instances that a change of this person or group may concern. Reads at most `limit` rows of tasks or states.
/// Chains of absences are those that hold at `now`.
pub async fn instances_concerned(
    store: &Store,
    tenant: TenantId,
    candidate: &Candidate,
    mark: WalkProgress,
    limit: i64,
    now: Timestamp,
) -> Result<Concerned, StoreError> {
    let found = match (mark.stage, candidate) {
        (Stage::Offered, Candidate::User(id) | Candidate::Member { person: id, .. }) => {
            offered(store, tenant, "user", id, mark.after, limit).await?
        }
        (Stage::Offered, Candidate::Group(id)) => {
            offered(store, tenant, "group", id, mark.after, limit).await?
        }
        (Stage::Owned, Candidate::User(id) | Candidate::Member { person: id, .. }) => {
            owned(store, tenant, id, mark.after, limit).await?
        }
        (Stage::Substituted, Candidate::User(id) | Candidate::Member { person: id, .. }) => {
            substituted(store, tenant, id, now, mark.after, limit).await?
        }
        (Stage::Unassignable, Candidate::User(id) | Candidate::Member { person: id, .. }) => {
            unassignable(store, tenant, id, mark.after, limit).await?
        }
        // Groups own nothing, are never absent, and start nothing.
        (Stage::Owned | Stage::Substituted | Stage::Unassignable, Candidate::Group(_)) => {
            Vec::new()
        }
    };
    let next = match found.last() {
        Some(last) if i64::try_from(found.len()).is_ok_and(|count| count >= limit) => {
            Some(WalkProgress {
                stage: mark.stage,
                after: last.place,
            })
        }
        _ => mark.stage.next().map(|stage| WalkProgress {
            stage,
            after: Uuid::nil(),
        }),
    };
    let (mut seen, mut instances, mut stopped) = (BTreeSet::new(), Vec::new(), Vec::new());
    for row in found {
        let instance = InstanceId(row.instance);
        let passed = WalkProgress {
            stage: mark.stage,
            after: row.place,
        };
        let is_new = row.is_running && seen.insert(instance);
        if is_new && !row.is_stopped {
            instances.push((instance, passed));
        } else if let Some((_, last)) = instances.last_mut() {
            // This row needs no work once the rows before it are done.
            *last = passed;
        }
        if is_new && row.is_stopped {
            stopped.push(instance);
        }
    }
    Ok(Concerned {
        instances,
        stopped,
        next,
    })
}

/// Inserts a job for each of these instances that reassesses it. It is due `now`, also if the host's clock is ahead. If its version is
/// stopped, the job waits until the version is resumed, or until the instance has been migrated to another one. An instance that has
/// such a job gets no second one. A host may be running that job and may have read the directory before the change. Then the last walk
/// reassesses the instance, because it begins after such commands have ended.
pub async fn leave(
    store: &Store,
    tenant: TenantId,
    instances: &[InstanceId],
    now: Timestamp,
) -> Result<(), StoreError> {
    let ids: Vec<_> = instances.iter().map(|id| reassessing(*id)).collect();
    let instances: Vec<_> = instances.iter().map(|id| id.0).collect();
    sqlx::query!(
        "insert into job (tenant_id, id, kind, instance_id, due_at, payload)
        select $1, r.id, 'reassess_instance', r.instance_id, least($4, now()), '{}'
        from unnest($2::uuid[], $3::uuid[]) as r (id, instance_id)
        on conflict do nothing",
        tenant.0,
        &ids,
        &instances,
        Time(now) as _
    )
    .execute(&store.writer)
    .await?;
    Ok(())
}

async fn offered(
    store: &Store,
    tenant: TenantId,
    kind: &str,
    principal: &str,
    after: Uuid,
    limit: i64,
) -> Result<Vec<ConcernedRow>, StoreError> {
    Ok(sqlx::query_as!(
        ConcernedRow,
        r#"select c.task_id as place, t.instance_id as instance, i.status = 'RUNNING' as "is_running!",
            v.stopped_at is not null as "is_stopped!"
        from task_candidate c
        join task t on t.tenant_id = c.tenant_id and t.id = c.task_id
        join instance i on i.tenant_id = t.tenant_id and i.id = t.instance_id
        left join definition_version v on v.tenant_id = i.tenant_id and v.key = i.definition_key and v.version = i.definition_version
        where c.tenant_id = $1 and c.kind = $2 and c.principal = $3 and c.task_id > $4
        order by c.task_id limit $5"#,
        tenant.0,
        kind,
        principal,
        after,
        limit
    )
    .fetch_all(&store.writer)
    .await?)
}

async fn owned(
    store: &Store,
    tenant: TenantId,
    owner: &str,
    after: Uuid,
    limit: i64,
) -> Result<Vec<ConcernedRow>, StoreError> {
    Ok(sqlx::query_as!(
        ConcernedRow,
        r#"select t.id as place, t.instance_id as instance, i.status = 'RUNNING' as "is_running!",
            v.stopped_at is not null as "is_stopped!"
        from task t
        join instance i on i.tenant_id = t.tenant_id and i.id = t.instance_id
        left join definition_version v on v.tenant_id = i.tenant_id and v.key = i.definition_key and v.version = i.definition_version
        where t.tenant_id = $1 and t.owner = $2 and t.status = 'CLAIMED' and t.id > $3
        order by t.id limit $4"#,
        tenant.0,
        owner,
        after,
        limit
    )
    .fetch_all(&store.writer)
    .await?)
}

/// Tasks that substitutes claimed for this person, or for somebody whose chain of absences leads through this person. An ended
/// link of such a chain had a reassessment of its own.
async fn substituted(
    store: &Store,
    tenant: TenantId,
    person: &str,
    now: Timestamp,
    after: Uuid,
    limit: i64,
) -> Result<Vec<ConcernedRow>, StoreError> {
    Ok(sqlx::query_as!(
        ConcernedRow,
        r#"with recursive absent (person, links) as (
            select $2::text, 1
            union
            select a.person_id, b.links + 1
            from absent b cross join lateral (
                select o.person_id from absence o
                where o.tenant_id = $1 and o.substitute_id = b.person and o.active_until > $3::timestamptz
                  and o.active_from <= $3::timestamptz and o.ended_at is null
                -- A look by the key for each person, whatever the planner expects.
                offset 0
            ) a
            where b.links < $4::int
        )
        select t.id as "place!", t.instance_id as "instance!", i.status = 'RUNNING' as "is_running!",
            v.stopped_at is not null as "is_stopped!"
        from (select distinct person from absent) b cross join lateral (
            select o.id, o.tenant_id, o.instance_id from task o
            where o.tenant_id = $1 and o.status = 'CLAIMED' and o.ownership like '{"onBehalfOf":%'
              and o.ownership::jsonb ->> 'onBehalfOf' = b.person and o.id > $5
            order by o.id limit $6
        ) t
        join instance i on i.tenant_id = t.tenant_id and i.id = t.instance_id
        left join definition_version v on v.tenant_id = i.tenant_id and v.key = i.definition_key and v.version = i.definition_version
        order by t.id limit $6"#,
        tenant.0,
        person,
        Time(now) as _,
        i32::try_from(LINKS_MAX).expect("a small number"),
        after,
        limit
    )
    .fetch_all(&store.writer)
    .await?)
}

/// A page of all unassignable state instances of the tenant. The change concerns only those that this person has initiated.
async fn unassignable(
    store: &Store,
    tenant: TenantId,
    initiator: &str,
    after: Uuid,
    limit: i64,
) -> Result<Vec<ConcernedRow>, StoreError> {
    Ok(sqlx::query_as!(
        ConcernedRow,
        r#"select s.instance_id as place, s.instance_id as instance, i.status = 'RUNNING' and i.initiator = $4 as "is_running!",
            v.stopped_at is not null as "is_stopped!"
        from state_instance s
        join instance i on i.tenant_id = s.tenant_id and i.id = s.instance_id
        left join definition_version v on v.tenant_id = i.tenant_id and v.key = i.definition_key and v.version = i.definition_version
        where s.tenant_id = $1 and s.unassignable_since is not null and s.left_at is null and s.instance_id > $2
        order by s.instance_id limit $3"#,
        tenant.0,
        after,
        limit,
        initiator
    )
    .fetch_all(&store.writer)
    .await?)
}
