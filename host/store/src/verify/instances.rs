//! The rows of instances, with their tasks and decisions.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::{Snapshot, first_id};
use crate::StoreError;
use crate::time::Time;
use wrkflw_audit::record::Instances;
use wrkflw_audit::record::rows::{
    DecisionRow, DelegationSealRow, HeadRow, InstanceRow, TaskRow, Which,
};
use wrkflw_core::ids::{InstanceId, StateId, TaskId, VersionRef};
use wrkflw_core::instance::{Decision, Entity};
use wrkflw_core::json::Json;

async fn ids(
    snapshot: &mut Snapshot,
    after: Option<InstanceId>,
    limit: i64,
) -> Result<Vec<Uuid>, StoreError> {
    let Some(first) = first_id(after.map(|after| after.0)) else {
        return Ok(Vec::new());
    };
    Ok(sqlx::query_scalar!(
        "select id from instance where tenant_id = $1 and id >= $2 order by id limit $3",
        snapshot.tenant.0,
        first,
        limit
    )
    .fetch_all(&mut *snapshot.transaction)
    .await?)
}

async fn ids_about(
    snapshot: &mut Snapshot,
    entity: &Entity,
    after: Option<InstanceId>,
    limit: i64,
) -> Result<Vec<Uuid>, StoreError> {
    let Some(first) = first_id(after.map(|after| after.0)) else {
        return Ok(Vec::new());
    };
    Ok(sqlx::query_scalar!(
        "select id from instance where tenant_id = $1 and entity_type = $2 and entity_id = $3 and id >= $4 order by id limit $5",
        snapshot.tenant.0,
        entity.kind,
        entity.id,
        first,
        limit
    )
    .fetch_all(&mut *snapshot.transaction)
    .await?)
}

/// The seals of the delegations in these instances.
async fn delegation_seals(
    snapshot: &mut Snapshot,
    instances: &[Uuid],
) -> Result<BTreeMap<Uuid, Vec<DelegationSealRow>>, StoreError> {
    let rows = sqlx::query!(
        "select instance_id, seq, key_id, mac_version, mac from delegation_seal
        where tenant_id = $1 and instance_id = any($2) order by instance_id, seq",
        snapshot.tenant.0,
        instances
    )
    .fetch_all(&mut *snapshot.transaction)
    .await?;
    let mut seals: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for row in rows {
        let of_instance = seals.entry(row.instance_id).or_default();
        of_instance.push(DelegationSealRow {
            seq: row.seq.cast_unsigned(),
            key_id: row.key_id,
            mac_version: row.mac_version,
            mac: row.mac,
        });
    }
    Ok(seals)
}

impl Instances for Snapshot {
    async fn instances(
        &mut self,
        which: &Which,
        after: Option<InstanceId>,
        limit: i64,
    ) -> Result<Vec<InstanceRow>, StoreError> {
        let ids = match which {
            Which::One(id) => vec![id.0],
            Which::About(entity) => ids_about(self, entity, after, limit).await?,
            Which::All => ids(self, after, limit).await?,
        };
        let rows = sqlx::query!(
            "select id, definition_key, definition_version, revision, status, outcome, end_reason, ended_by, suspend_reason, suspended_by,
                entity_type, entity_id,                initiator, requesters, predecessor, parent, data, audit_seq, audit_head, event_seq
            from instance where tenant_id = $1 and id = any($2) order by id",
            self.tenant.0,
            &ids
        )
        .fetch_all(&mut *self.transaction)
        .await?;
        let mut seals = delegation_seals(self, &ids).await?;
        Ok(rows
            .into_iter()
            .map(|row| InstanceRow {
                delegation_seals: seals.remove(&row.id).unwrap_or_default(),
                id: InstanceId(row.id),
                definition: VersionRef {
                    key: row.definition_key,
                    version: row.definition_version.cast_unsigned(),
                },
                revision: row.revision.cast_unsigned(),
                status: row.status,
                outcome: row.outcome,
                end_reason: row.end_reason,
                ended_by: row.ended_by,
                suspend_reason: row.suspend_reason,
                suspended_by: row.suspended_by,
                entity: Entity {
                    kind: row.entity_type,
                    id: row.entity_id,
                },
                initiator: row.initiator,
                requesters: row.requesters,
                predecessor: row.predecessor.map(InstanceId),
                parent: row.parent.map(InstanceId),
                data: row.data,
                head: HeadRow {
                    seq: row.audit_seq.cast_unsigned(),
                    hash: row.audit_head,
                    event_seq: Some(row.event_seq.cast_unsigned()),
                },
            })
            .collect())
    }

    async fn tasks(&mut self, instances: &[Uuid]) -> Result<Vec<TaskRow>, StoreError> {
        let rows = sqlx::query!(
            r#"select t.id, t.instance_id, t.state_id, t.status, t.owner, d.instance_id as "decided_in?", d.outcome as "outcome?",
                d.actor as "actor?", d.on_behalf_of, d.comment, d.input as "input?", d.decided_at as "decided_at?: Time",
                d.key_id as "key_id?", d.mac_version as "mac_version?", d.mac as "mac?"
            from task t
            left join decision d on d.tenant_id = t.tenant_id and d.task_id = t.id
            where t.tenant_id = $1 and t.instance_id = any($2)
            order by t.instance_id, t.id"#,
            self.tenant.0,
            instances
        )
        .fetch_all(&mut *self.transaction)
        .await?;
        let decision = |row: DecisionColumns| {
            Some(DecisionRow {
                instance: InstanceId(row.0?),
                decision: row.1?,
                key_id: row.2?,
                mac_version: row.3?,
                mac: row.4?,
            })
        };
        Ok(rows
            .into_iter()
            .map(|row| TaskRow {
                id: TaskId(row.id),
                instance: InstanceId(row.instance_id),
                state: StateId(row.state_id),
                status: row.status,
                owner: row.owner,
                decision: decision((
                    row.decided_in,
                    row.outcome
                        .zip(row.actor)
                        .zip(row.input)
                        .zip(row.decided_at)
                        .map(|(((outcome, actor), input), at)| Decision {
                            outcome,
                            actor,
                            on_behalf_of: row.on_behalf_of,
                            comment: row.comment,
                            input: Json::from_canonical(input),
                            decided_at: at.0,
                        }),
                    row.key_id,
                    row.mac_version,
                    row.mac,
                )),
            })
            .collect())
    }

    async fn decisions(
        &mut self,
        after: Option<TaskId>,
        limit: i64,
    ) -> Result<Vec<(TaskId, InstanceId, bool)>, StoreError> {
        let Some(first) = first_id(after.map(|after| after.0)) else {
            return Ok(Vec::new());
        };
        let rows = sqlx::query!(
            r#"select d.task_id, d.instance_id, exists (
                select from task t join instance i on i.tenant_id = t.tenant_id and i.id = t.instance_id
                where t.tenant_id = d.tenant_id and t.id = d.task_id and t.instance_id = d.instance_id
            ) as "known!"
            from decision d
            where d.tenant_id = $1 and d.task_id >= $2
            order by d.task_id limit $3"#,
            self.tenant.0,
            first,
            limit
        )
        .fetch_all(&mut *self.transaction)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| (TaskId(row.task_id), InstanceId(row.instance_id), row.known))
            .collect())
    }
}

type DecisionColumns = (
    Option<Uuid>,
    Option<Decision>,
    Option<String>,
    Option<i16>,
    Option<Vec<u8>>,
);
