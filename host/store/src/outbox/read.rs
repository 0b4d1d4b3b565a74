//! Reads the events of a claim, with the content of their records.

use jiff::Timestamp;
use sqlx::{Postgres, Transaction};

use super::{BATCH_BYTES_MAX, BATCH_EVENTS_MAX, OutboxError, Waiting};
use wrkflw_core::checkpoint::Checkpoint;
use wrkflw_core::cloudevent::{Public, PublicEntry};
use wrkflw_core::event::EventContext;
use wrkflw_core::ids::{InstanceId, TenantId, VersionRef};
use wrkflw_core::instance::Entity;
use wrkflw_core::template::Labels;

/// An event with the columns of its entry, instance, tenant and checkpoint that exist.
struct Row {
    pos: i64,
    tenant_id: i32,
    instance_id: uuid::Uuid,
    follows_parked: bool,
    follows_waiting: bool,
    replayed: bool,
    /// The number of rows before the limit of bytes is applied.
    taken: i64,
    tenant: Option<String>,
    id: Option<uuid::Uuid>,
    kind: Option<String>,
    payload: Option<String>,
    event_seq: Option<i64>,
    occurred_at_us: Option<i64>,
    actor: Option<String>,
    definition_key: Option<String>,
    definition_version: Option<i32>,
    entity_type: Option<String>,
    entity_id: Option<String>,
    title: Option<String>,
    summary: Option<String>,
    traceparent: Option<String>,
    revision: Option<i32>,
    seq: i64,
    checkpoint: Option<i64>,
    size: Option<i64>,
    root: Option<Vec<u8>>,
    previous_root: Option<Vec<u8>>,
    key_id: Option<String>,
    signature: Option<Vec<u8>>,
}

/// Reads the events behind `after`. Those up to `passed` wait.
pub(super) async fn read(
    transaction: &mut Transaction<'static, Postgres>,
    partition: i16,
    after: i64,
    passed: bool,
) -> Result<(Vec<Waiting>, bool), OutboxError> {
    let rows = sqlx::query_as!(
        Row,
        r#"
        select e.pos as "pos!", e.tenant_id as "tenant_id!", e.instance_id as "instance_id!", e.taken as "taken!",
            exists (
                select from dead_letter d
                where d.tenant_id = e.tenant_id and d.instance_id = e.instance_id and d.seq < e.seq
            ) as "follows_parked!",
            ($5 and exists (
                select from (
                    select p.pos from audit_entry p
                    where p.tenant_id = e.tenant_id and p.stream_kind = 'instance' and p.stream_id = e.instance_id
                      and p.seq < e.seq and p.event_seq is not null
                    order by p.seq desc limit 1
                ) previous
                join outbox_event w on w.partition = $1 and w.pos = previous.pos and w.pos <= $2
            )) as "follows_waiting!", e.replayed as "replayed!",
            t.name as "tenant?", e.id as "id?", e.type as "kind?", e.payload as "payload?", e.event_seq as "event_seq?",
            (extract(epoch from coalesce(e.occurred_at, c.signed_at)) * 1000000)::bigint as occurred_at_us, e.actor as "actor?",
            i.definition_key as "definition_key?", coalesce((
                select (case when m.payload like '{%' then m.payload::json end -> 'previous' ->> 'version')::int from audit_entry m
                where m.tenant_id = e.tenant_id and m.stream_kind = 'instance' and m.stream_id = e.instance_id
                  and m.type = 'FLOW_MIGRATED' and m.seq > e.seq
                order by m.seq limit 1
            ), i.definition_version) as "definition_version?",
            i.entity_type as "entity_type?", i.entity_id as "entity_id?", i.title as "title?", i.summary as "summary?", e.traceparent as "traceparent?",
            e.revision as "revision?", e.seq as "seq!",
            c.number as "checkpoint?", c.size as "size?", c.root as "root?", c.previous_root as "previous_root?",
            c.key_id as "key_id?", c.signature as "signature?"
        from (
            select o.partition, o.pos, o.tenant_id, o.instance_id, o.seq, o.replayed, a.id, a.type, a.payload, a.event_seq, a.occurred_at, a.actor,
                a.traceparent, a.revision, count(*) over () as taken,
                coalesce(sum(octet_length(a.payload)) over (
                    order by o.pos rows between unbounded preceding and 1 preceding), 0) as bytes_before
            from (select * from outbox_event where partition = $1 and pos > $2 order by pos limit $3) o
            left join audit_entry a on a.tenant_id = o.tenant_id and a.stream_kind = 'instance'
                and a.stream_id = o.instance_id and a.seq = o.seq
        ) e
        left join instance i on i.tenant_id = e.tenant_id and i.id = e.instance_id
        left join tenant t on t.id = e.tenant_id
        left join checkpoint c on c.tenant_id = e.tenant_id and c.number = e.seq
            and e.instance_id = '00000000-0000-0000-0000-000000000000'
        where e.bytes_before <= $4
        order by e.pos
        "#,
        partition,
        after,
        BATCH_EVENTS_MAX,
        BATCH_BYTES_MAX,
        passed,
    )
    .fetch_all(&mut **transaction)
    .await?;
    let taken = rows.first().map_or(0, |row| row.taken);
    let is_cut =
        taken == BATCH_EVENTS_MAX || i64::try_from(rows.len()).is_ok_and(|read| read < taken);
    let events = rows.into_iter().map(Waiting::from).collect();
    Ok((events, is_cut))
}

impl From<Row> for Waiting {
    fn from(row: Row) -> Waiting {
        Waiting {
            pos: row.pos,
            tenant: TenantId(row.tenant_id),
            instance: InstanceId(row.instance_id),
            seq: row.seq,
            follows_parked: row.follows_parked,
            follows_waiting: row.follows_waiting,
            replayed: row.replayed,
            unreadable: None,
            entry: match row.checkpoint {
                Some(_) => signed(row).map(Public::Checkpoint),
                None => public_entry(row).map(Public::Entry),
            },
        }
    }
}

fn signed(row: Row) -> Result<Checkpoint, String> {
    Ok(Checkpoint {
        tenant: present("tenant.name", row.tenant)?,
        number: whole("outbox_event.seq", Some(row.seq))?,
        size: whole("checkpoint.size", row.size)?,
        root: present("checkpoint.root", row.root)?,
        previous_root: present("checkpoint.previous_root", row.previous_root)?,
        signed_at: at("checkpoint.signed_at", row.occurred_at_us)?,
        key_id: present("checkpoint.key_id", row.key_id)?,
        signature: present("checkpoint.signature", row.signature)?,
    })
}

fn at(column: &str, microseconds: Option<i64>) -> Result<Timestamp, String> {
    present(column, microseconds)
        .and_then(|at| Timestamp::from_microsecond(at).map_err(|error| error.to_string()))
}

/// Each row is checked by itself, so that a damaged row does not block its partition.
fn public_entry(row: Row) -> Result<PublicEntry, String> {
    Ok(PublicEntry {
        instance: InstanceId(row.instance_id),
        tenant: present("tenant.name", row.tenant)?,
        id: present("audit_entry.id", row.id)?,
        kind: present("audit_entry.type", row.kind)?,
        payload: present("audit_entry.payload", row.payload)?,
        event_seq: whole("audit_entry.event_seq", row.event_seq)?,
        occurred_at: at("audit_entry.occurred_at", row.occurred_at_us)?,
        actor: row.actor,
        definition: VersionRef {
            key: present("instance.definition_key", row.definition_key)?,
            version: whole("instance.definition_version", row.definition_version)?,
        },
        entity: Entity {
            kind: present("instance.entity_type", row.entity_type)?,
            id: present("instance.entity_id", row.entity_id)?,
        },
        traceparent: row.traceparent,
        revision: whole("audit_entry.revision", row.revision)?,
        context: EventContext {
            labels: Labels {
                title: row.title,
                summary: row.summary,
            },
            ..EventContext::default()
        },
    })
}

fn present<T>(column: &str, value: Option<T>) -> Result<T, String> {
    value.ok_or_else(|| format!("{column} is missing"))
}

fn whole<T: Copy + std::fmt::Display, U: TryFrom<T>>(
    column: &str,
    value: Option<T>,
) -> Result<U, String> {
    let value = present(column, value)?;
    U::try_from(value).map_err(|_| format!("{column} is {value}"))
}
