//! What a verifier reads, as it stood at one moment: a [`Snapshot`] sees each instance with all that the same commits
//! wrote. It judges nothing, and a row that no host would have written is handed on as it is.

use futures_util::stream::{BoxStream, StreamExt as _, TryStreamExt as _};
use sqlx::{Postgres, Transaction};
use uuid::Uuid;

use super::time::Time;
use super::{Store, StoreError};
use crate::domain::audit::{Draft, Entry, Stream, StreamKind};
use crate::domain::ids::{CommandId, InstanceId, StateId, TaskId, TenantId, VersionRef};
use crate::domain::instance::{Decision, Entity};
use crate::domain::json::Json;

/// One tenant at one moment.
pub struct Snapshot {
    tenant: TenantId,
    pub(super) transaction: Transaction<'static, Postgres>,
}

/// Which instances are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    All,
    One(InstanceId),
    About(Entity),
}

/// An instance as its own row has it.
#[derive(Debug, Clone)]
pub struct InstanceRow {
    pub id: InstanceId,
    pub definition: VersionRef,
    pub revision: u32,
    pub status: String,
    pub outcome: Option<String>,
    pub end_reason: Option<String>,
    pub ended_by: Option<String>,
    pub suspend_reason: Option<String>,
    pub suspended_by: Option<String>,
    pub entity: Entity,
    pub initiator: String,
    pub requesters: Vec<String>,
    pub predecessor: Option<InstanceId>,
    pub parent: Option<InstanceId>,
    pub data: String,
    pub head: HeadRow,
}

/// Where a stream ends, as it is kept beside the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadRow {
    pub seq: u64,
    pub hash: Vec<u8>,
    /// None where public entries are not counted.
    pub event_seq: Option<u64>,
}

/// A task, with its decision if there is a row of one.
#[derive(Debug, Clone)]
pub struct TaskRow {
    pub id: TaskId,
    pub instance: InstanceId,
    pub state: StateId,
    pub status: String,
    pub owner: Option<String>,
    pub decision: Option<DecisionRow>,
}

/// A decision with its seal.
#[derive(Debug, Clone)]
pub struct DecisionRow {
    pub instance: InstanceId,
    pub decision: Decision,
    pub key_id: String,
    pub mac_version: i16,
    pub mac: Vec<u8>,
}

/// An entry as it is stored.
#[derive(Debug)]
pub struct EntryRow {
    pub stream: Uuid,
    pub seq: u64,
    /// Or why it is no entry.
    pub entry: Result<Entry, &'static str>,
}

/// A stream by its kind and id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamRow {
    pub kind: String,
    pub id: Uuid,
    /// Whether anything says where it ends.
    pub has_head: bool,
}

impl Store {
    /// Tenants after `after` by their number, with their names.
    pub async fn tenants(
        &self,
        after: Option<TenantId>,
        limit: i64,
    ) -> Result<Vec<(TenantId, String)>, StoreError> {
        let rows = sqlx::query!(
            "select id, name from tenant where id > $1 order by id limit $2",
            after.map_or(0, |after| after.0),
            limit
        )
        .fetch_all(&self.reader)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| (TenantId(row.id), row.name))
            .collect())
    }

    /// What the tenant's tables hold at this moment, for as long as the snapshot is kept.
    pub async fn snapshot(&self, tenant: TenantId) -> Result<Snapshot, StoreError> {
        let begin = "begin isolation level repeatable read read only";
        let mut transaction = self.reader.begin_with(begin).await?;
        sqlx::query_scalar!(
            "select set_config('wrkflw.tenant', $1, true)",
            tenant.to_string()
        )
        .fetch_one(&mut *transaction)
        .await?;
        Ok(Snapshot {
            tenant,
            transaction,
        })
    }
}

impl Snapshot {
    /// Instances after `after` by their id.
    pub async fn instances(
        &mut self,
        which: &Which,
        after: Option<InstanceId>,
        limit: i64,
    ) -> Result<Vec<InstanceRow>, StoreError> {
        let ids = match which {
            Which::One(id) => vec![id.0],
            Which::About(entity) => self.ids_about(entity, after, limit).await?,
            Which::All => self.ids(after, limit).await?,
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
        Ok(rows
            .into_iter()
            .map(|row| InstanceRow {
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

    async fn ids(
        &mut self,
        after: Option<InstanceId>,
        limit: i64,
    ) -> Result<Vec<Uuid>, StoreError> {
        Ok(sqlx::query_scalar!(
            "select id from instance where tenant_id = $1 and id > $2 order by id limit $3",
            self.tenant.0,
            after.map_or(Uuid::nil(), |after| after.0),
            limit
        )
        .fetch_all(&mut *self.transaction)
        .await?)
    }

    async fn ids_about(
        &mut self,
        entity: &Entity,
        after: Option<InstanceId>,
        limit: i64,
    ) -> Result<Vec<Uuid>, StoreError> {
        Ok(sqlx::query_scalar!(
            "select id from instance where tenant_id = $1 and entity_type = $2 and entity_id = $3 and id > $4 order by id limit $5",
            self.tenant.0,
            entity.kind,
            entity.id,
            after.map_or(Uuid::nil(), |after| after.0),
            limit
        )
        .fetch_all(&mut *self.transaction)
        .await?)
    }

    /// All tasks of these instances.
    pub async fn tasks(&mut self, instances: &[Uuid]) -> Result<Vec<TaskRow>, StoreError> {
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

    /// The entries of these streams, one stream after the other and each in its order. They are handed on as they
    /// arrive, so a stream may be longer than memory.
    pub fn entries<'a>(
        &'a mut self,
        kind: StreamKind,
        streams: &'a [Uuid],
    ) -> BoxStream<'a, Result<EntryRow, StoreError>> {
        let tenant = self.tenant;
        sqlx::query!(
            r#"select stream_id, seq, id, type, revision, command_id, actor, task_id, payload, evidence, salt,
                occurred_at as "at: Time", hash, event_seq
            from audit_entry
            where tenant_id = $1 and stream_kind = $2 and stream_id = any($3)
            order by stream_id, seq"#,
            tenant.0,
            kind.name(),
            streams
        )
        .fetch(&mut *self.transaction)
        .map_ok(move |row| EntryRow {
            stream: row.stream_id,
            seq: row.seq.cast_unsigned(),
            entry: entry(
                Stream {
                    tenant,
                    kind,
                    id: row.stream_id,
                },
                (row.seq, row.event_seq),
                (row.salt, row.hash),
                Draft {
                    id: row.id,
                    kind: row.r#type,
                    revision: row.revision.cast_unsigned(),
                    command: CommandId(row.command_id),
                    actor: row.actor,
                    task: row.task_id.map(TaskId),
                    payload: Json::from_canonical(row.payload),
                    evidence: row.evidence.map(Json::from_canonical),
                    salt: [0; 16],
                    at: row.at.0,
                    public: row.event_seq.is_some(),
                    traceparent: None,
                },
            ),
        })
        .map_err(StoreError::from)
        .boxed()
    }

    /// Heads after (`kind`, `id`) of the streams that have a row for theirs.
    pub async fn heads(
        &mut self,
        after: (&str, Uuid),
        limit: i64,
    ) -> Result<Vec<(StreamRow, HeadRow)>, StoreError> {
        let rows = sqlx::query!(
            "select stream_kind, stream_id, seq, head from audit_stream
            where tenant_id = $1 and (stream_kind, stream_id) > ($2, $3)
            order by stream_kind, stream_id limit $4",
            self.tenant.0,
            after.0,
            after.1,
            limit
        )
        .fetch_all(&mut *self.transaction)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| {
                let stream = StreamRow {
                    kind: row.stream_kind,
                    id: row.stream_id,
                    has_head: true,
                };
                let head = HeadRow {
                    seq: row.seq.cast_unsigned(),
                    hash: row.head,
                    event_seq: None,
                };
                (stream, head)
            })
            .collect())
    }

    /// The streams after (`kind`, `id`) that have entries, found by going from one to the next in the entries' key.
    pub async fn streams(
        &mut self,
        after: (&str, Uuid),
        limit: i64,
    ) -> Result<Vec<StreamRow>, StoreError> {
        let rows = sqlx::query!(
            r#"with recursive found as (
                (select stream_kind, stream_id from audit_entry
                 where tenant_id = $1 and (stream_kind, stream_id) > ($2, $3)
                 order by stream_kind, stream_id limit 1)
                union all
                select n.stream_kind, n.stream_id from found f
                cross join lateral (
                    select a.stream_kind, a.stream_id from audit_entry a
                    where a.tenant_id = $1 and (a.stream_kind, a.stream_id) > (f.stream_kind, f.stream_id)
                    order by a.stream_kind, a.stream_id limit 1
                ) n
            ),
            page as (select stream_kind, stream_id from found limit $4)
            select p.stream_kind as "stream_kind!", p.stream_id as "stream_id!", case p.stream_kind
                when 'instance' then exists (select from instance i where i.tenant_id = $1 and i.id = p.stream_id)
                else exists (
                    select from audit_stream s
                    where s.tenant_id = $1 and s.stream_kind = p.stream_kind and s.stream_id = p.stream_id
                )
            end as "has_head!"
            from page p order by p.stream_kind, p.stream_id"#,
            self.tenant.0,
            after.0,
            after.1,
            limit
        )
        .fetch_all(&mut *self.transaction)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| StreamRow {
                kind: row.stream_kind,
                id: row.stream_id,
                has_head: row.has_head,
            })
            .collect())
    }

    /// Decisions after `after` by their task, each with its instance, and whether that instance has the task.
    pub async fn decisions(
        &mut self,
        after: Option<TaskId>,
        limit: i64,
    ) -> Result<Vec<(TaskId, InstanceId, bool)>, StoreError> {
        let rows = sqlx::query!(
            r#"select d.task_id, d.instance_id, exists (
                select from task t join instance i on i.tenant_id = t.tenant_id and i.id = t.instance_id
                where t.tenant_id = d.tenant_id and t.id = d.task_id and t.instance_id = d.instance_id
            ) as "known!"
            from decision d
            where d.tenant_id = $1 and d.task_id > $2
            order by d.task_id limit $3"#,
            self.tenant.0,
            after.map_or(Uuid::nil(), |after| after.0),
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

fn entry(
    stream: Stream,
    (seq, event_seq): (i64, Option<i64>),
    (salt, hash): (Vec<u8>, Vec<u8>),
    draft: Draft,
) -> Result<Entry, &'static str> {
    Ok(Entry {
        stream,
        seq: seq.cast_unsigned(),
        event_seq: event_seq.map(i64::cast_unsigned),
        draft: Draft {
            salt: salt.try_into().map_err(|_| "its salt has not 16 bytes")?,
            ..draft
        },
        hash: hash.try_into().map_err(|_| "its hash has not 32 bytes")?,
    })
}
