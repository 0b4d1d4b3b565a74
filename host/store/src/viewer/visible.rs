//! The restricted instances that a viewer sees, from an index of participants, and the unrestricted instances. Lists examine
//! only these. To filter all instances instead, a list may have to read a million others for the few that a participant sees.
//!
//! The policies of the database still decide. The result may include instances that the caller does not see: a version may no
//! longer name an observer group, and a substitute may act for one definition only.

use jiff::Timestamp;
use uuid::Uuid;

use crate::StoreError;
use crate::pool::Limited;
use crate::tasks::TaskCursor;
use crate::time::Time;
use wrkflw_core::actor::Actor;
use wrkflw_core::ids::TenantId;
use wrkflw_core::participant::Kind;

/// The kinds and ids of the principals as which the actor may be a participant or observer. The queries look up the people
/// whom the actor manages.
fn places(actor: &Actor) -> (Vec<String>, Vec<String>) {
    let mut places = vec![(Kind::User, actor.id.clone())];
    let own = actor.groups.iter();
    places.extend(own.clone().map(|id| (Kind::Group, id.clone())));
    places.extend(own.map(|id| (Kind::Observer, id.clone())));
    for absent in &actor.stands_in_for {
        places.push((Kind::User, absent.person.clone()));
        places.extend(absent.groups.iter().map(|id| (Kind::Group, id.clone())));
    }
    places.sort();
    places.dedup();
    places
        .into_iter()
        .map(|(kind, id)| (kind.name().to_owned(), id))
        .unzip()
}

/// The place where a list goes on, and its limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Order {
    /// From the oldest on, instead of from the newest.
    pub(crate) oldest_first: bool,
    pub(crate) after: Option<Uuid>,
    pub(crate) most: i64,
}

/// The next instances in this order: those that the actor may see, and the unrestricted ones, of this definition if one is given.
pub(crate) async fn instances(
    connection: &mut Limited,
    (tenant, actor): (TenantId, &Actor),
    definition: Option<&str>,
    order: Order,
) -> Result<Vec<Uuid>, StoreError> {
    let (kinds, ids) = places(actor);
    let first = if order.oldest_first {
        Uuid::nil()
    } else {
        Uuid::max()
    };
    // The planner knows the value of $8, so the other order is a constant for it.
    let found = sqlx::query_scalar!(
        r#"with place (kind, principal) as (
            select * from unnest($2::text[], $3::text[])
            union
            select 'user', person_id from manager where tenant_id = $1 and manager_id = $4 and valid_to is null
        )
        select next.id as "id!" from (
            select p.instance_id as id from place cross join lateral (
                select p.instance_id from participant p
                where p.tenant_id = $1 and p.kind = place.kind and p.principal = place.principal
                  and case when $8::boolean then p.instance_id > $6 else p.instance_id < $6 end
                -- In the order of the index of principals. The planner would take the primary key for the order of instances alone.
                order by case when $8 then p.kind end, case when $8 then p.principal end, case when $8 then p.instance_id end,
                    case when not $8 then p.kind end desc, case when not $8 then p.principal end desc,
                    case when not $8 then p.instance_id end desc
                limit $7
            ) p
            union
            select i.id from definition d cross join lateral (
                select i.id from instance i
                where i.tenant_id = $1 and i.definition_key = d.key and i.observers is null
                  and case when $8 then i.id > $6 else i.id < $6 end
                order by case when $8 then i.id end, case when not $8 then i.id end desc limit $7
            ) i
            where d.tenant_id = $1 and ($5::text is null or d.key = $5) and exists (
                select from definition_version v where v.tenant_id = $1 and v.key = d.key and not v.restricted
            )
        ) next
        order by case when $8 then next.id end, case when not $8 then next.id end desc limit $7"#,
        tenant.0,
        &kinds,
        &ids,
        actor.id,
        definition,
        order.after.unwrap_or(first),
        order.most,
        order.oldest_first
    );
    Ok(found.fetch_all(connection).await?)
}

/// Whether the actor is a participant or observer of at most this number of instances, or their people are.
pub(crate) async fn sees_few(
    connection: &mut Limited,
    (tenant, actor): (TenantId, &Actor),
    most: i64,
) -> Result<bool, StoreError> {
    let (kinds, ids) = places(actor);
    let found = sqlx::query_scalar!(
        r#"with place (kind, principal) as (
            select * from unnest($2::text[], $3::text[])
            union
            select 'user', person_id from manager where tenant_id = $1 and manager_id = $4 and valid_to is null
        )
        select count(*) as "count!" from (
            select from place cross join lateral (
                select from participant p
                where p.tenant_id = $1 and p.kind = place.kind and p.principal = place.principal
                limit $5
            ) next
            limit $5
        ) found"#,
        tenant.0,
        &kinds,
        &ids,
        actor.id,
        most + 1
    );
    Ok(found.fetch_one(connection).await? <= most)
}

/// The tasks among these whose instances the actor may see, in no order. The policies need more queries for each task, so they need not
/// read the tasks that are left out here.
pub(crate) async fn tasks(
    connection: &mut Limited,
    (tenant, actor): (TenantId, &Actor),
    ids: &[Uuid],
) -> Result<Vec<Uuid>, StoreError> {
    let (kinds, principals) = places(actor);
    let seen = sqlx::query_scalar!(
        r#"select t.id from task t
        where t.tenant_id = $1 and t.id = any($5) and (not t.restricted or (
            select true from participant p
            where p.tenant_id = $1 and p.instance_id = t.instance_id and (p.kind || E'\n' || p.principal) = any(array(
                select kind || E'\n' || principal from unnest($2::text[], $3::text[]) as place (kind, principal)
                union
                select E'user\n' || person_id from manager where tenant_id = $1 and manager_id = $4 and valid_to is null
            ))
            limit 1
        ))"#,
        tenant.0,
        &kinds,
        &principals,
        actor.id,
        ids
    );
    Ok(seen.fetch_all(connection).await?)
}

/// The next open tasks by the time of their deadlines, of instances that the actor may see, and the place up to which all were looked at;
/// none if there are no more.
///
/// It reads at most `most` states with a deadline, from an index that also has their instances. It reads a task only if the actor may see
/// its instance. If it reaches that limit, it leaves the tasks that are due at the last moment to the next call, because it may have read
/// only a part of them. If everything that was read is due at the moment of `after`, the returned place is then not behind `after`.
pub(crate) async fn due(
    connection: &mut Limited,
    (tenant, actor): (TenantId, &Actor),
    (after, before): (TaskCursor, Option<Timestamp>),
    most: i64,
) -> Result<(Vec<TaskCursor>, Option<TaskCursor>), StoreError> {
    let (kinds, ids) = places(actor);
    let rows = sqlx::query_file!(
        "src/viewer/due.sql",
        tenant.0,
        &kinds,
        &ids,
        actor.id,
        after.at.map(Time) as _,
        after.id,
        before.map(Time) as _,
        most
    );
    let rows = rows.fetch_all(connection).await?;
    let reached = rows.first().and_then(|row| row.reached.as_ref());
    let reached = reached.map(|at| TaskCursor::at(at.0, Uuid::nil()));
    let due = rows
        .iter()
        .filter_map(|row| Some(TaskCursor::at(row.at.as_ref()?.0, row.id?)));
    Ok((due.collect(), reached))
}

/// The ids of the next open tasks of instances that the actor may see, in the order of lists. It reads the tasks of all restricted
/// ones: see [`sees_few`].
pub(crate) async fn open(
    connection: &mut Limited,
    (tenant, actor): (TenantId, &Actor),
    after: Uuid,
    most: i64,
) -> Result<Vec<Uuid>, StoreError> {
    let (kinds, ids) = places(actor);
    let open = sqlx::query_scalar!(
        r#"with place (kind, principal) as (
            select * from unnest($2::text[], $3::text[])
            union
            select 'user', person_id from manager where tenant_id = $1 and manager_id = $4 and valid_to is null
        )
        select next.id as "id!" from (
            (
                select t.id from task t
                where t.tenant_id = $1 and t.status in ('PENDING', 'CLAIMED') and not t.restricted and t.id > $5
                order by t.id limit $6
            )
            union
            (
                select t.id from place cross join lateral (
                    select p.instance_id from participant p
                    where p.tenant_id = $1 and p.kind = place.kind and p.principal = place.principal
                    offset 0
                ) seen cross join lateral (
                    select t.id from task t
                    where t.tenant_id = $1 and t.instance_id = seen.instance_id and t.status in ('PENDING', 'CLAIMED')
                      and t.id > $5
                    offset 0
                ) t
                order by t.id limit $6
            )
        ) next
        order by next.id limit $6"#,
        tenant.0,
        &kinds,
        &ids,
        actor.id,
        after,
        most
    );
    Ok(open.fetch_all(connection).await?)
}
