//! The places of child instances. A child has a place below its root from before its start to its end. The number of places
//! limits the children that run at a time. A counter limits the children that are ever started.

use super::jobs::Job;
use super::pool::transacted;
use super::{Store, StoreError};
use wrkflw_core::ids::{InstanceId, TenantId};

/// The limits for the instances below one root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Instances that run at a time.
    pub running_max: u32,
    /// Instances that are ever started.
    pub started_max: u32,
}

/// The result of taking a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceResult {
    Taken,
    /// [`Bounds::running_max`] instances run already.
    TooManyRun,
    /// [`Bounds::started_max`] instances were started already.
    TooManyStarted,
}

/// An instance and its ancestors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ancestry {
    /// The highest ancestor that was read.
    pub root: InstanceId,
    /// The number of instances in the line, the first and the last included.
    pub depth: u32,
}

/// Reads the line from this instance up to its root, at most `most` instances.
pub async fn ancestry(
    store: &Store,
    tenant: TenantId,
    instance: InstanceId,
    most: u32,
) -> Result<Ancestry, StoreError> {
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
    let line = line.fetch_optional(&store.writer).await?;
    Ok(line.map_or(
        Ancestry {
            root: instance,
            depth: 0,
        },
        |line| Ancestry {
            root: InstanceId(line.id),
            depth: line.depth.cast_unsigned(),
        },
    ))
}

/// Takes a place below a root for the child that the job starts, unless the child has one. The commit that ends the child
/// frees the place, or [`free_place`] does. A child that exists without a place has ended, so it gets none again.
pub async fn take_place(
    store: &Store,
    job: &Job,
    root: InstanceId,
    bounds: Bounds,
) -> Result<PlaceResult, StoreError> {
    transacted(Box::pin(async move {
        let mut transaction = store.writer.begin().await?;
        // The row lock makes concurrent starts count one after the other.
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
            r#"select exists(select from descendant_place where tenant_id = $1 and instance_id = $3)
                    or exists(select from instance where tenant_id = $1 and id = $3) as "needs_none!",
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
        if found.needs_none {
            return Ok(PlaceResult::Taken);
        }
        if found.running >= i64::from(bounds.running_max) {
            return Ok(PlaceResult::TooManyRun);
        }
        if started.cast_unsigned() >= bounds.started_max {
            return Ok(PlaceResult::TooManyStarted);
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
        Ok(PlaceResult::Taken)
    }))
    .await
}

/// Frees the place of a child that was not started and will not be.
pub async fn free_place(store: &Store, job: &Job) -> Result<(), StoreError> {
    sqlx::query!(
        "delete from descendant_place p where p.tenant_id = $1 and p.instance_id = $2
          and not exists (select from instance i where i.tenant_id = $1 and i.id = $2)",
        job.tenant.0,
        job.id
    )
    .execute(&store.writer)
    .await?;
    Ok(())
}
