//! The instances that an index leaves, sorted. None if there are many: then the index does not help.

use jiff::Timestamp;
use uuid::Uuid;

use super::{InstanceFilter, NARROW_MAX, bounded};
use crate::StoreError;
use crate::pool::Limited;
use crate::time::Time;
use wrkflw_core::ids::TenantId;

type Narrowed = Result<Option<Vec<Uuid>>, StoreError>;

/// The children of an instance.
pub(super) async fn children(connection: &mut Limited, tenant: TenantId, parent: Uuid) -> Narrowed {
    let ids = sqlx::query_scalar!(
        "select id from instance where tenant_id = $1 and parent = $2 order by id limit $3",
        tenant.0,
        parent,
        read_max()
    );
    Ok(sorted(ids.fetch_all(connection).await?))
}

/// The instances in which this person owns an open task.
pub(super) async fn owned(connection: &mut Limited, tenant: TenantId, owner: &str) -> Narrowed {
    let ids = sqlx::query_scalar!(
        "select instance_id from task where tenant_id = $1 and owner = $2 and status = 'CLAIMED' limit $3",
        tenant.0,
        owner,
        read_max()
    );
    Ok(sorted(ids.fetch_all(connection).await?))
}

/// The instances in which this person owns a task, or was its last owner.
pub(super) async fn ever_owned(
    connection: &mut Limited,
    tenant: TenantId,
    owner: &str,
) -> Narrowed {
    let ids = sqlx::query_scalar!(
        r#"(
            select instance_id as "id!" from task where tenant_id = $1 and owner = $2 and status = 'CLAIMED' limit $3
        ) union all (
            select instance_id from task
            where tenant_id = $1 and owner = $2 and ended_at is not null order by ended_at desc limit $3
        )"#,
        tenant.0,
        owner,
        read_max()
    );
    Ok(sorted(ids.fetch_all(connection).await?))
}

/// The instances of which an active state or an open task is due before this moment.
pub(super) async fn due(connection: &mut Limited, tenant: TenantId, before: Timestamp) -> Narrowed {
    let ids = sqlx::query_scalar!(
        r#"(
            select instance_id as "id!" from state_instance
            where tenant_id = $1 and left_at is null and due_at < $2 order by due_at limit $3
        ) union all (
            select instance_id from task
            where tenant_id = $1 and status in ('PENDING', 'CLAIMED') and due_at < $2 order by due_at limit $3
        )"#,
        tenant.0,
        Time(before) as _,
        read_max()
    );
    Ok(sorted(ids.fetch_all(connection).await?))
}

/// The instances with an active state that was entered before this moment. All running instances that have not changed since are
/// among them.
pub(super) async fn lasting(
    connection: &mut Limited,
    tenant: TenantId,
    before: Timestamp,
) -> Narrowed {
    let ids = sqlx::query_scalar!(
        r#"select instance_id as "id!" from state_instance
        where tenant_id = $1 and left_at is null and entered_at < $2 order by entered_at limit $3"#,
        tenant.0,
        Time(before) as _,
        read_max()
    );
    Ok(sorted(ids.fetch_all(connection).await?))
}

/// The instances with this status.
pub(super) async fn with_status(
    connection: &mut Limited,
    tenant: TenantId,
    status: &str,
) -> Narrowed {
    let ids = sqlx::query_scalar!(
        "select id from instance where tenant_id = $1 and status = $2 order by id limit $3",
        tenant.0,
        status,
        read_max()
    );
    Ok(sorted(ids.fetch_all(connection).await?))
}

/// The instances about the entity, or else by the initiator, that the filter names. None if it names neither.
pub(super) async fn about(
    connection: &mut Limited,
    tenant: TenantId,
    filter: &InstanceFilter,
) -> Narrowed {
    let entity = filter.entity_type.as_ref().zip(filter.entity_id.as_ref());
    let ids = if let Some((kind, id)) = entity {
        let ids = sqlx::query_scalar!(
            "select id from instance where tenant_id = $1 and entity_type = $2 and entity_id = $3 order by id limit $4",
            tenant.0,
            kind,
            id,
            read_max()
        );
        ids.fetch_all(connection).await?
    } else if let Some(initiator) = &filter.initiator {
        let ids = sqlx::query_scalar!(
            "select id from instance where tenant_id = $1 and initiator = $2 order by id limit $3",
            tenant.0,
            initiator,
            read_max()
        );
        ids.fetch_all(connection).await?
    } else {
        return Ok(None);
    };
    Ok(sorted(ids))
}

/// The instances with these words.
pub(crate) async fn worded(connection: &mut Limited, words: &str) -> Narrowed {
    let ids = sqlx::query_scalar!(r#"select word_holders($1, $2) as "ids""#, words, NARROW_MAX);
    Ok(ids.fetch_one(connection).await?.and_then(sorted))
}

/// One row more than an index may leave.
fn read_max() -> i64 {
    i64::from(NARROW_MAX) + 1
}

fn sorted(mut ids: Vec<Uuid>) -> Option<Vec<Uuid>> {
    if bounded(ids.len()) > NARROW_MAX {
        return None;
    }
    ids.sort_unstable();
    ids.dedup();
    Some(ids)
}
