//! Changes of groups, managers and absences whose open work is to be looked at again: each row is claimed by lease, and
//! gone through in pages of key look-ups, in three stages - tasks offered to the principal, tasks that it owns, and
//! states that nobody was able to work on, which the change may heal.
//!
//! The rows say where the work stands, so that another host goes on where one died. To look at an instance twice does
//! no harm.

use jiff::Timestamp;
use uuid::Uuid;

use super::time::Time;
use super::{Store, StoreError};
use crate::domain::answer::Principal;
use crate::domain::ids::{InstanceId, TenantId};

/// A change, claimed by this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recheck {
    pub tenant: TenantId,
    pub id: Uuid,
    /// A user or a group.
    pub principal: Principal,
    pub due_at: Timestamp,
    /// How often it was claimed, this time included.
    pub attempts: u32,
    pub mark: Mark,
    /// The walk under way is the last one.
    pub closing: bool,
}

/// How far the work has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    pub stage: Stage,
    /// Everything up to this task or instance is done.
    pub after: Uuid,
}

/// What is gone through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Offered,
    Owned,
    Unassignable,
}

impl Stage {
    fn name(self) -> &'static str {
        match self {
            Stage::Offered => "offered",
            Stage::Owned => "owned",
            Stage::Unassignable => "unassignable",
        }
    }

    fn parse(name: &str) -> Option<Stage> {
        [Stage::Offered, Stage::Owned, Stage::Unassignable]
            .into_iter()
            .find(|stage| stage.name() == name)
    }

    fn next(self) -> Option<Stage> {
        match self {
            Stage::Offered => Some(Stage::Owned),
            Stage::Owned => Some(Stage::Unassignable),
            Stage::Unassignable => None,
        }
    }
}

impl Mark {
    /// Before anything is looked at.
    pub const BEGINNING: Mark = Mark {
        stage: Stage::Offered,
        after: Uuid::nil(),
    };
}

/// Some of the running instances concerned, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Concerned {
    pub instances: Vec<InstanceId>,
    /// Where the next page begins; none after the last one.
    pub next: Option<Mark>,
}

/// A task or an instance, and the running instance that it leads to.
struct Found {
    place: Uuid,
    instance: Uuid,
    is_running: bool,
}

impl Store {
    /// Claims up to `limit` rechecks that are due until `lease`, of the tenant whose turn comes behind that of `after`.
    pub async fn claim_rechecks(
        &self,
        now: Timestamp,
        lease: Timestamp,
        limit: i64,
        after: TenantId,
    ) -> Result<Vec<Recheck>, StoreError> {
        let rows = sqlx::query!(
            r#"with due as materialized (
                (select c.tenant_id, c.id from recheck c where c.tenant_id > $4 and greatest(c.due_at, c.lease_until) <= $1
                 order by c.tenant_id, greatest(c.due_at, c.lease_until) limit $3)
                union all
                (select c.tenant_id, c.id from recheck c where c.tenant_id <= $4 and greatest(c.due_at, c.lease_until) <= $1
                 order by c.tenant_id, greatest(c.due_at, c.lease_until) limit $3)
                limit $3
            ),
            ready as (
                select c.tenant_id, c.id from due join recheck c on c.tenant_id = due.tenant_id and c.id = due.id
                where greatest(c.due_at, c.lease_until) <= $1
                for update of c skip locked
            )
            update recheck r set lease_until = $2, attempts = r.attempts + 1
            from ready where r.tenant_id = ready.tenant_id and r.id = ready.id
            returning r.tenant_id, r.id, r.kind, r.principal, r.due_at as "due_at: Time", r.attempts, r.stage, r.after, r.closing"#,
            Time(now) as _,
            Time(lease) as _,
            limit,
            after.0
        )
        .fetch_all(&self.writer)
        .await?;
        rows.into_iter()
            .map(|row| {
                let stage = Stage::parse(&row.stage).ok_or_else(|| {
                    StoreError::inconsistent("recheck", row.id, format!("stage {}", row.stage))
                })?;
                let principal = match row.kind.as_str() {
                    "group" => Principal::Group(row.principal),
                    _ => Principal::User(row.principal),
                };
                Ok(Recheck {
                    tenant: TenantId(row.tenant_id),
                    id: row.id,
                    principal,
                    due_at: row.due_at.0,
                    attempts: row.attempts.cast_unsigned(),
                    mark: Mark {
                        stage,
                        after: row.after,
                    },
                    closing: row.closing,
                })
            })
            .collect()
    }

    /// Keeps how far the work has come, and the row in hand until `lease`; false when another host has it by now.
    pub async fn advance_recheck(
        &self,
        recheck: &Recheck,
        mark: Mark,
        lease: Timestamp,
    ) -> Result<bool, StoreError> {
        self.keep_recheck(recheck, mark, lease, recheck.attempts)
            .await
    }

    /// Lets others go first: the recheck can be claimed again from `next` on, and that it was in hand does not count.
    pub async fn yield_recheck(
        &self,
        recheck: &Recheck,
        mark: Mark,
        next: Timestamp,
    ) -> Result<bool, StoreError> {
        let attempts = recheck.attempts.saturating_sub(1);
        self.keep_recheck(recheck, mark, next, attempts).await
    }

    async fn keep_recheck(
        &self,
        recheck: &Recheck,
        mark: Mark,
        lease: Timestamp,
        attempts: u32,
    ) -> Result<bool, StoreError> {
        let done = sqlx::query!(
            "update recheck set stage = $4, after = $5, lease_until = $6, closing = $7, attempts = $8
            where tenant_id = $1 and id = $2 and attempts = $3",
            recheck.tenant.0,
            recheck.id,
            recheck.attempts.cast_signed(),
            mark.stage.name(),
            mark.after,
            Time(lease) as _,
            recheck.closing,
            attempts.cast_signed()
        )
        .execute(&self.writer)
        .await?;
        Ok(done.rows_affected() > 0)
    }

    /// Deletes a recheck that is done, unless another host has it by now.
    pub async fn finish_recheck(&self, recheck: &Recheck) -> Result<(), StoreError> {
        sqlx::query!(
            "delete from recheck where tenant_id = $1 and id = $2 and attempts = $3",
            recheck.tenant.0,
            recheck.id,
            recheck.attempts.cast_signed()
        )
        .execute(&self.writer)
        .await?;
        Ok(())
    }

    /// When the next recheck can be claimed; none when there is none.
    pub async fn next_recheck(&self) -> Result<Option<Timestamp>, StoreError> {
        let next = sqlx::query_scalar!(
            r#"select greatest(due_at, lease_until) as "ready_at!: Time" from recheck
            order by greatest(due_at, lease_until) limit 1"#
        )
        .fetch_optional(&self.writer)
        .await?;
        Ok(next.map(|time| time.0))
    }

    /// The next instances that a change of `principal` may concern, after looking at `limit` rows at most.
    pub async fn instances_concerned(
        &self,
        tenant: TenantId,
        principal: &Principal,
        mark: Mark,
        limit: i64,
    ) -> Result<Concerned, StoreError> {
        let found = match (mark.stage, principal) {
            (Stage::Offered, Principal::User(id)) => {
                self.offered(tenant, "user", id, mark.after, limit).await?
            }
            (Stage::Offered, Principal::Group(id)) => {
                self.offered(tenant, "group", id, mark.after, limit).await?
            }
            (Stage::Owned, Principal::User(id)) => {
                self.owned(tenant, id, mark.after, limit).await?
            }
            (Stage::Unassignable, _) => self.unassignable(tenant, mark.after, limit).await?,
            // Groups own nothing, and offers to a manager were made to the person.
            (Stage::Owned, _) | (Stage::Offered, Principal::ManagerOf(_)) => Vec::new(),
        };
        let next = match found.last() {
            Some(last) if i64::try_from(found.len()).is_ok_and(|count| count >= limit) => {
                Some(Mark {
                    stage: mark.stage,
                    after: last.place,
                })
            }
            _ => mark.stage.next().map(|stage| Mark {
                stage,
                after: Uuid::nil(),
            }),
        };
        let mut instances: Vec<_> = found
            .into_iter()
            .filter(|found| found.is_running)
            .map(|found| InstanceId(found.instance))
            .collect();
        instances.sort_unstable();
        instances.dedup();
        Ok(Concerned { instances, next })
    }

    async fn offered(
        &self,
        tenant: TenantId,
        kind: &str,
        principal: &str,
        after: Uuid,
        limit: i64,
    ) -> Result<Vec<Found>, StoreError> {
        Ok(sqlx::query_as!(
            Found,
            r#"select c.task_id as place, t.instance_id as instance, i.status = 'RUNNING' as "is_running!"
            from task_candidate c
            join task t on t.tenant_id = c.tenant_id and t.id = c.task_id
            join instance i on i.tenant_id = t.tenant_id and i.id = t.instance_id
            where c.tenant_id = $1 and c.kind = $2 and c.principal = $3 and c.task_id > $4
            order by c.task_id limit $5"#,
            tenant.0,
            kind,
            principal,
            after,
            limit
        )
        .fetch_all(&self.writer)
        .await?)
    }

    async fn owned(
        &self,
        tenant: TenantId,
        owner: &str,
        after: Uuid,
        limit: i64,
    ) -> Result<Vec<Found>, StoreError> {
        Ok(sqlx::query_as!(
            Found,
            r#"select t.id as place, t.instance_id as instance, i.status = 'RUNNING' as "is_running!"
            from task t
            join instance i on i.tenant_id = t.tenant_id and i.id = t.instance_id
            where t.tenant_id = $1 and t.owner = $2 and t.status = 'CLAIMED' and t.id > $3
            order by t.id limit $4"#,
            tenant.0,
            owner,
            after,
            limit
        )
        .fetch_all(&self.writer)
        .await?)
    }

    async fn unassignable(
        &self,
        tenant: TenantId,
        after: Uuid,
        limit: i64,
    ) -> Result<Vec<Found>, StoreError> {
        Ok(sqlx::query_as!(
            Found,
            r#"select s.instance_id as place, s.instance_id as instance, i.status = 'RUNNING' as "is_running!"
            from state_instance s
            join instance i on i.tenant_id = s.tenant_id and i.id = s.instance_id
            where s.tenant_id = $1 and s.unassignable_since is not null and s.left_at is null and s.instance_id > $2
            order by s.instance_id limit $3"#,
            tenant.0,
            after,
            limit
        )
        .fetch_all(&self.writer)
        .await?)
    }
}
