//! The deliveries of public events: whether Kafka acknowledged an event, and its deliveries to webhooks.
//!
//! The outbox keeps no row of an acknowledged event. So an event that is neither in the outbox nor among the dead letters is
//! published, unless an operator discarded it. The audit has the discards.

use std::collections::BTreeMap;

use jiff::Timestamp;
use uuid::Uuid;

use super::commit::partition;
use super::feed::FeedEntry;
use super::pool::Limited;
use super::time::Time;
use super::viewer::Viewer;
use super::{Reader, StoreError};
use wrkflw_core::ids::TenantId;

/// The newest discards of a tenant among which discarded events are found.
pub(crate) const DISCARDS_MAX: i64 = 1_000;

/// The deliveries of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventDelivery {
    pub kafka: KafkaState,
    /// The deliveries to webhooks of the last 30 days.
    pub webhooks: Vec<WebhookState>,
}

/// An event on its way to Kafka.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KafkaState {
    /// The broker has not acknowledged it yet.
    Waiting,
    /// It is a dead letter.
    Parked {
        error: String,
        attempts: i32,
        at: Timestamp,
    },
    /// An operator discarded it.
    Discarded,
    /// The broker acknowledged it.
    Published,
}

/// A delivery to one subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookState {
    pub subscription_id: Uuid,
    pub url: String,
    pub state: String,
    pub attempts: i32,
    pub last_status: Option<i16>,
    pub last_error: Option<String>,
    /// When it is tried again, or when it ended.
    pub due_at: Timestamp,
}

/// The deliveries of these events of the tenant, by the ids of the events.
pub async fn list(
    reader: &Reader,
    tenant: TenantId,
    events: &[FeedEntry],
) -> Result<BTreeMap<Uuid, EventDelivery>, StoreError> {
    let mut found: BTreeMap<_, _> = events
        .iter()
        .map(|one| {
            let nothing = EventDelivery {
                kafka: KafkaState::Published,
                webhooks: Vec::new(),
            };
            (one.entry.id, nothing)
        })
        .collect();
    if found.is_empty() {
        return Ok(found);
    }
    let mut connection = reader.reading(Viewer::all(tenant)).await?;
    kafka(&mut connection, tenant, events, &mut found).await?;
    webhooks(&mut connection, tenant, &mut found).await?;
    Ok(found)
}

/// Finds those events that Kafka has not acknowledged.
async fn kafka(
    connection: &mut Limited,
    tenant: TenantId,
    events: &[FeedEntry],
    found: &mut BTreeMap<Uuid, EventDelivery>,
) -> Result<(), StoreError> {
    let ids: Vec<_> = events.iter().map(|one| one.entry.id).collect();
    let instances: Vec<_> = events.iter().map(|one| one.entry.instance.0).collect();
    let partitions: Vec<_> = instances.iter().map(|id| partition(*id)).collect();
    let positions: Vec<_> = events.iter().map(|one| one.cursor.pos).collect();
    let numbers: Vec<_> = events.iter().map(FeedEntry::seq).collect();
    let rows = sqlx::query!(
        r#"select a.id as "id!", o.pos is not null as "waits!", d.error as "error?", d.attempts as "attempts?", d.parked_at as "parked_at?: Time"
        from unnest($2::uuid[], $3::uuid[], $4::smallint[], $5::bigint[], $6::bigint[]) as a (id, instance_id, partition, pos, seq)
        left join outbox_event o on o.tenant_id = $1 and o.partition = a.partition and o.pos = a.pos
        left join dead_letter d on d.tenant_id = $1 and d.instance_id = a.instance_id and d.seq = a.seq
        left join (
            -- An erased payload is no JSON.
            select distinct case when g.payload like '{%' then g.payload::json -> 'first' ->> 'event' end as event from (
                select payload from audit_entry
                where tenant_id = $1 and stream_kind = 'operation' and type = 'DEAD_LETTER_DISCARDED'
                order by seq desc limit $7
            ) g
        ) g on g.event = a.id::text
        where o.pos is not null or d.seq is not null or g.event is not null"#,
        tenant.0,
        &ids,
        &instances,
        &partitions,
        &positions,
        &numbers,
        DISCARDS_MAX
    );
    for row in rows.fetch_all(connection).await? {
        let Some(event) = found.get_mut(&row.id) else {
            continue;
        };
        event.kafka = match (row.error, row.attempts, row.parked_at) {
            (Some(error), Some(attempts), Some(at)) => KafkaState::Parked {
                error,
                attempts,
                at: at.0,
            },
            _ if row.waits => KafkaState::Waiting,
            _ => KafkaState::Discarded,
        };
    }
    Ok(())
}

/// Adds the deliveries to webhooks. A subscription has none of an event that the notifier has not read yet.
async fn webhooks(
    connection: &mut Limited,
    tenant: TenantId,
    found: &mut BTreeMap<Uuid, EventDelivery>,
) -> Result<(), StoreError> {
    let ids: Vec<_> = found.keys().copied().collect();
    let rows = sqlx::query!(
        r#"select d.message_id, s.id, s.url, d.state, d.attempts, d.last_status, d.last_error, d.due_at as "due_at: Time"
        from subscription s
        join webhook_delivery d on d.tenant_id = s.tenant_id and d.subscription_id = s.id and d.message_id = any($2)
        where s.tenant_id = $1
        order by s.id"#,
        tenant.0,
        &ids
    );
    for row in rows.fetch_all(connection).await? {
        if let Some(event) = found.get_mut(&row.message_id) {
            event.webhooks.push(WebhookState {
                subscription_id: row.id,
                url: row.url,
                state: row.state,
                attempts: row.attempts,
                last_status: row.last_status,
                last_error: row.last_error,
                due_at: row.due_at.0,
            });
        }
    }
    Ok(())
}
