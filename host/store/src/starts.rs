//! Look-ups of instances: by task, by entity for a start, and by command for an in-doubt commit.

use jiff::Timestamp;

use super::time::Time;
use super::{Reader, Store, StoreError};
use wrkflw_core::ids::{CommandId, InstanceId, TaskId, TenantId};
use wrkflw_core::instance::{Entity, Instance};

/// An instance that has not ended, with who started it and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    pub id: InstanceId,
    pub initiator: String,
    pub started_at: Timestamp,
}

/// An instance that is about to run, with its entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub instance: InstanceId,
    pub definition: String,
    pub entity: Entity,
    /// Whether no other instance may run about the entity.
    pub sole: bool,
}

impl Claim {
    /// The claim that this instance makes by running.
    pub fn of(instance: &Instance) -> Claim {
        Claim {
            instance: instance.id,
            definition: instance.definition.key.clone(),
            entity: instance.entity.clone(),
            sole: instance.sole,
        }
    }
}

/// The instance that a task belongs to.
pub async fn instance_of(
    reader: &Reader,
    tenant: TenantId,
    task: TaskId,
) -> Result<Option<InstanceId>, StoreError> {
    let id = sqlx::query_scalar!(
        "select instance_id from task where tenant_id = $1 and id = $2",
        tenant.0,
        task.0
    )
    .fetch_optional(&reader.writer)
    .await?;
    Ok(id.map(InstanceId))
}

/// The running instance that prevents this one: an instance of the same definition, or of any definition if either of the two
/// is sole per entity.
pub async fn in_the_way(
    store: &Store,
    tenant: TenantId,
    of: &Claim,
) -> Result<Option<Running>, StoreError> {
    let found = sqlx::query!(
        r#"select id, initiator, started_at as "started_at: Time" from instance
        where tenant_id = $1 and entity_type = $2 and entity_id = $3 and status in ('RUNNING', 'SUSPENDED') and id <> $4
          and (definition_key = $5 or sole or $6)
        order by (definition_key = $5) desc, id limit 1"#,
        tenant.0,
        of.entity.kind,
        of.entity.id,
        of.instance.0,
        of.definition,
        of.sole
    )
    .fetch_optional(&store.writer)
    .await?;
    Ok(found.map(|row| Running {
        id: InstanceId(row.id),
        initiator: row.initiator,
        started_at: row.started_at.0,
    }))
}

/// Whether a command was committed, after the connection broke before its result arrived.
pub async fn was_committed(
    store: &Store,
    tenant: TenantId,
    instance: InstanceId,
    command: CommandId,
) -> Result<bool, StoreError> {
    let found = sqlx::query_scalar!(
        r#"select exists(
            select from audit_entry
            where tenant_id = $1 and stream_kind = 'instance' and stream_id = $2 and command_id = $3
        ) as "found!""#,
        tenant.0,
        instance.0,
        command.0
    )
    .fetch_one(&store.writer)
    .await?;
    Ok(found)
}
