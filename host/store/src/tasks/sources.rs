//! The indexes that give the ids of a list's tasks: of a view, of a rare state, of an entity, by time.

use jiff::Timestamp;
use uuid::Uuid;

use super::{RARE_MAX, TaskCursor, TaskFilter, View};
use crate::StoreError;
use crate::instances::narrow::worded;
use crate::pool::Limited;
use crate::time::Time;
use crate::viewer::{Looking, Viewer};
use wrkflw_core::ids::TenantId;

/// Limit of the instances about an entity whose tasks are read at once.
const ABOUT_MAX: i64 = 4_096;

/// The ids of the next open tasks that may belong to the view, in the order of creation.
pub(super) async fn open(
    connection: &mut Limited,
    viewer: &Viewer,
    view: View,
    people: &[String],
    after: Uuid,
    most: i64,
) -> Result<Vec<Uuid>, StoreError> {
    let tenant = viewer.tenant.0;
    let open = match view {
        View::All if !viewer.may_read_restricted() => {
            let all = sqlx::query_scalar!(
                "select id from task where tenant_id = $1 and status in ('PENDING', 'CLAIMED') and not restricted and id > $2
                order by id limit $3",
                tenant,
                after,
                most
            );
            all.fetch_all(connection).await?
        }
        View::Mine => {
            let mine = sqlx::query_scalar!(
                "select id from task where tenant_id = $1 and status = 'CLAIMED' and owner = any($2) and id > $3
                order by id limit $4",
                tenant,
                people,
                after,
                most
            );
            mine.fetch_all(connection).await?
        }
        View::Available | View::Groups => {
            let offered = sqlx::query_scalar!(
                r#"with place (kind, principal) as (
                    select 'user', person from unnest($2::text[]) person where not $5
                    union
                    select 'group', group_id from membership
                    where tenant_id = $1 and person_id = any($2) and valid_to is null
                )
                select distinct next.task_id as "id!" from place cross join lateral (
                    select c.task_id from task_candidate c
                    where c.tenant_id = $1 and c.kind = place.kind and c.principal = place.principal and c.task_id > $3
                    order by c.task_id limit $4
                ) next order by next.task_id limit $4"#,
                tenant,
                people,
                after,
                most,
                view == View::Groups
            );
            offered.fetch_all(connection).await?
        }
        View::All => {
            let all = sqlx::query_scalar!(
                r#"select id as "id!" from (
                    (select id from task where tenant_id = $1 and status in ('PENDING', 'CLAIMED') and not restricted and id > $2
                     order by id limit $3)
                    union all
                    (select id from task where tenant_id = $1 and status in ('PENDING', 'CLAIMED') and restricted and id > $2
                     order by id limit $3)
                ) t order by id limit $3"#,
                tenant,
                after,
                most
            );
            all.fetch_all(connection).await?
        }
    };
    Ok(open)
}

pub(super) async fn is_rare(
    connection: &mut Limited,
    tenant: TenantId,
    state: &str,
) -> Result<bool, StoreError> {
    let state_instances = sqlx::query_scalar!(
        r#"select count(*) as "state_instances!" from (
            select from state_instance where tenant_id = $1 and name = $2 and left_at is null limit $3
        ) found"#,
        tenant.0,
        state,
        RARE_MAX
    );
    Ok(state_instances.fetch_one(connection).await? < RARE_MAX)
}

/// The tasks among these that are in the state, in no order.
pub(super) async fn in_state(
    connection: &mut Limited,
    tenant: TenantId,
    state: &str,
    ids: &[Uuid],
) -> Result<Vec<Uuid>, StoreError> {
    let found = sqlx::query_scalar!(
        "select t.id from task t
        join state_instance s on s.tenant_id = $1 and s.instance_id = t.instance_id and s.id = t.state_id
        where t.tenant_id = $1 and t.id = any($2) and s.name = $3",
        tenant.0,
        ids,
        state
    );
    Ok(found.fetch_all(connection).await?)
}

/// The ids of the next open tasks of a rare state, in the order of creation.
pub(super) async fn open_in(
    connection: &mut Limited,
    tenant: TenantId,
    state: &str,
    after: Uuid,
    most: i64,
) -> Result<Vec<Uuid>, StoreError> {
    let open = sqlx::query_scalar!(
        r#"with active as materialized (
            select instance_id, id from state_instance where tenant_id = $1 and name = $2 and left_at is null
        )
        select t.id as "id!" from active s cross join lateral (
            select t.id from task t
            where t.tenant_id = $1 and t.instance_id = s.instance_id and t.state_id = s.id
              and t.status in ('PENDING', 'CLAIMED') and t.id > $3
            offset 0
        ) t order by t.id limit $4"#,
        tenant.0,
        state,
        after,
        most
    );
    Ok(open.fetch_all(connection).await?)
}

/// All open tasks after the place that may pass a selective filter, in the order of creation. None if there are many, or if
/// no filter is selective.
pub(super) async fn few(
    connection: &mut Looking<'_>,
    tenant: TenantId,
    filter: &TaskFilter,
    after: Uuid,
) -> Result<Option<Vec<Uuid>>, StoreError> {
    if let (Some(kind), Some(id)) = (&filter.entity_type, &filter.entity_id) {
        let places = connection.places().await?;
        let about = sqlx::query_scalar!(
            r#"select id as "id!" from instance where tenant_id = $1 and entity_type = $2 and entity_id = $3 limit $4"#,
            tenant.0,
            kind,
            id,
            ABOUT_MAX + 1
        );
        let about = about.fetch_all(&mut *places).await?;
        if i64::try_from(about.len()).is_ok_and(|found| found <= ABOUT_MAX) {
            return open_of(places, tenant, &about, after).await.map(Some);
        }
    }
    let Some(before) = filter.due_before else {
        return Ok(None);
    };
    // States without tasks have deadlines, too. If there are many such deadlines, tasks may be due behind them.
    let read = sqlx::query!(
        r#"with state as materialized (
            select s.instance_id, s.id from state_instance s
            where s.tenant_id = $1 and s.left_at is null and s.due_at < $2 order by s.due_at limit $3
        )
        select array((
            select t.id from task t
            where t.tenant_id = $1 and t.status in ('PENDING', 'CLAIMED') and t.due_at < $2 order by t.due_at limit $3
        ) union all (
            select t.id from state s cross join lateral (
                select t.id from task t
                where t.tenant_id = $1 and t.instance_id = s.instance_id and t.state_id = s.id
                  and t.status in ('PENDING', 'CLAIMED')
                offset 0
            ) t limit $3
        )) as "tasks!", (select count(*) from state) as "states!""#,
        tenant.0,
        Time(before) as _,
        RARE_MAX
    );
    let read = read.fetch_one(connection.places().await?).await?;
    let mut due: Vec<Uuid> = read.tasks;
    let is_cut = i64::try_from(due.len()).is_ok_and(|found| found >= RARE_MAX);
    if is_cut || read.states >= RARE_MAX {
        return Ok(None);
    }
    due.retain(|id| *id > after);
    due.sort_unstable();
    due.dedup();
    Ok(Some(due))
}

/// All open tasks after the place of the instances with these words, in the order of creation. None if the instances are many.
pub(super) async fn worded_tasks(
    connection: &mut Limited,
    tenant: TenantId,
    words: &str,
    after: Uuid,
) -> Result<Option<Vec<Uuid>>, StoreError> {
    let Some(instances) = worded(&mut *connection, words).await? else {
        return Ok(None);
    };
    open_of(connection, tenant, &instances, after)
        .await
        .map(Some)
}

/// All open tasks of these instances after the place, in the order of creation.
async fn open_of(
    connection: &mut Limited,
    tenant: TenantId,
    instances: &[Uuid],
    after: Uuid,
) -> Result<Vec<Uuid>, StoreError> {
    let open = sqlx::query_scalar!(
        r#"select t.id as "id!" from unnest($2::uuid[]) as i (id)
        join task t on t.tenant_id = $1 and t.instance_id = i.id
        where t.status in ('PENDING', 'CLAIMED') and t.id > $3
        order by t.id"#,
        tenant.0,
        instances,
        after
    );
    Ok(open.fetch_all(connection).await?)
}

/// The next open tasks with a deadline of their own or of their state, by the time of that deadline: after a place and before a time. With
/// `among`, only these.
pub(super) async fn due(
    connection: &mut Limited,
    tenant: TenantId,
    among: Option<&[Uuid]>,
    (after, before): (TaskCursor, Option<Timestamp>),
    most: i64,
) -> Result<Vec<TaskCursor>, StoreError> {
    let after_at = after.at.map(Time);
    if let Some(among) = among {
        let due = sqlx::query!(
            r#"select t.id, coalesce(t.due_at, s.due_at) as "at!: Time" from task t
            join state_instance s on s.tenant_id = $1 and s.instance_id = t.instance_id and s.id = t.state_id
            where t.tenant_id = $1 and t.id = any($2)
              and (coalesce(t.due_at, s.due_at), t.id) > (coalesce($3::timestamptz, '-infinity'), $4)
            order by 2, t.id limit $5"#,
            tenant.0,
            among,
            after_at as _,
            after.id,
            most
        );
        let due = due.fetch_all(connection).await?.into_iter();
        return Ok(due.map(|row| TaskCursor::at(row.at.0, row.id)).collect());
    }
    let due = sqlx::query!(
        r#"select d.id as "id!", d.at as "at!: Time" from (
            (
                select t.id, t.due_at as at from task t
                where t.tenant_id = $1 and t.status in ('PENDING', 'CLAIMED') and t.due_at is not null
                  and (t.due_at, t.id) > (coalesce($2::timestamptz, '-infinity'), $3)
                  and t.due_at < coalesce($5::timestamptz, 'infinity')
                order by t.due_at, t.id limit $4
            ) union all (
                select t.id, s.due_at from state_instance s cross join lateral (
                    select t.id from task t
                    where t.tenant_id = $1 and t.instance_id = s.instance_id and t.state_id = s.id
                      and t.status in ('PENDING', 'CLAIMED') and t.due_at is null
                    offset 0
                ) t
                where s.tenant_id = $1 and s.left_at is null and s.due_at >= coalesce($2::timestamptz, '-infinity')
                  and (s.due_at, t.id) > (coalesce($2::timestamptz, '-infinity'), $3)
                  and s.due_at < coalesce($5::timestamptz, 'infinity')
                order by s.due_at, t.id limit $4
            )
        ) d order by d.at, d.id limit $4"#,
        tenant.0,
        after_at as _,
        after.id,
        most,
        before.map(Time) as _
    );
    let due = due.fetch_all(connection).await?.into_iter();
    Ok(due.map(|row| TaskCursor::at(row.at.0, row.id)).collect())
}

/// The next ended tasks of an owner, the last one first.
pub(super) async fn ended(
    connection: &mut Limited,
    tenant: TenantId,
    filter: &TaskFilter,
    owner: &str,
    after: Option<TaskCursor>,
    most: i64,
) -> Result<Vec<TaskCursor>, StoreError> {
    let before = after.and_then(|place| place.at).map(Time);
    let ended = sqlx::query!(
        r#"select id, ended_at as "at!: Time" from task
        where tenant_id = $1 and owner = $2 and ended_at is not null
          and (ended_at, id) < (coalesce($3::timestamptz, 'infinity'), $4)
          and ended_at >= coalesce($5::timestamptz, '-infinity') and ended_at < coalesce($6::timestamptz, 'infinity')
        order by ended_at desc, id desc limit $7"#,
        tenant.0,
        owner,
        before as _,
        after.map_or(Uuid::max(), |place| place.id),
        filter.ended_from.map(Time) as _,
        filter.ended_until.map(Time) as _,
        most
    );
    let ended = ended.fetch_all(connection).await?.into_iter();
    Ok(ended.map(|row| TaskCursor::at(row.at.0, row.id)).collect())
}
