//! What instances start: each child has a place below its root, from before its start to its end, so that what runs and what
//! was ever started can be bounded.

use super::jobs::Job;
use super::pool::transacted;
use super::{Store, StoreError};
use wrkflw_core::ids::{InstanceId, TenantId};

/// How many instances there may be below one that has no parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// At a time.
    pub running_max: u32,
    /// Ever.
    pub started_max: u32,
}

/// What became of the wish for a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Taken,
    /// As many run as may at a time.
    TooManyRun,
    /// As many were started as ever may be.
    TooManyStarted,
}

/// The instances above each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// The foremost that was looked at.
    pub root: InstanceId,
    /// How many there are, the first and the last included.
    pub depth: u32,
}

impl Store {
    /// The line from this instance up to the first, which has no parent; looked at up to `most`.
    pub async fn line(
        &self,
        tenant: TenantId,
        instance: InstanceId,
        most: u32,
    ) -> Result<Line, StoreError> {
        let line = sqlx::query!(
            r#"with recursive line (id, parent, depth) as (
                select i.id, i.parent, 1 from instance i where i.tenant_id = $1 and i.id = $2
                union all
                select i.id, i.parent, l.depth + 1
                from line l join instance i on i.tenant_id = $1 and i.id = l.parent
                where l.depth < $3
            )
            select id as "id!", depth as "depth!" from line order by depth desc limit 1"#,
            tenant.0,
            instance.0,
            most.cast_signed()
        );
        let line = line.fetch_optional(&self.writer).await?;
        Ok(line.map_or(
            Line {
                root: instance,
                depth: 0,
            },
            |line| Line {
                root: InstanceId(line.id),
                depth: line.depth.cast_unsigned(),
            },
        ))
    }

    /// Takes a place among the descendants of a root for the child that the job starts, unless it has one. The place is
    /// given back by the commit that ends the child, or by [`Store::free_place`].
    pub async fn take_place(
        &self,
        job: &Job,
        root: InstanceId,
        bounds: Bounds,
    ) -> Result<Place, StoreError> {
        transacted(Box::pin(async move {
            let mut transaction = self.writer.begin().await?;
            // Those who start at the same moment count one after the other.
            let started = sqlx::query_scalar!(
                "insert into descendant_count (tenant_id, root_id, started) values ($1, $2, 0)
                on conflict (tenant_id, root_id) do update set started = descendant_count.started
                returning started",
                job.tenant.0,
                root.0
            )
            .fetch_one(&mut *transaction)
            .await?;
            let found = sqlx::query!(
                r#"select exists(select from descendant_place where tenant_id = $1 and instance_id = $3) as "has_place!",
                    (select count(*) from (
                        select from descendant_place where tenant_id = $1 and root_id = $2 limit $4
                    ) as running) as "running!""#,
                job.tenant.0,
                root.0,
                job.id,
                i64::from(bounds.running_max)
            )
            .fetch_one(&mut *transaction)
            .await?;
            if found.has_place {
                return Ok(Place::Taken);
            }
            if found.running >= i64::from(bounds.running_max) {
                return Ok(Place::TooManyRun);
            }
            if started.cast_unsigned() >= bounds.started_max {
                return Ok(Place::TooManyStarted);
            }
            sqlx::query!(
                "with placed as (
                    insert into descendant_place (tenant_id, instance_id, root_id) values ($1, $3, $2)
                )
                update descendant_count set started = started + 1 where tenant_id = $1 and root_id = $2",
                job.tenant.0,
                root.0,
                job.id
            )
            .execute(&mut *transaction)
            .await?;
            transaction.commit().await?;
            Ok(Place::Taken)
        }))
        .await
    }

    /// Gives the place back of a child that has not been started and is not going to be.
    pub async fn free_place(&self, job: &Job) -> Result<(), StoreError> {
        sqlx::query!(
            "delete from descendant_place p where p.tenant_id = $1 and p.instance_id = $2
              and not exists (select from instance i where i.tenant_id = $1 and i.id = $2)",
            job.tenant.0,
            job.id
        )
        .execute(&self.writer)
        .await?;
        Ok(())
    }
}
