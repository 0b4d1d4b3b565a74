//! Claims of deliveries. A first query reads the number of due deliveries of each subscription, so that the caller can share its
//! free places. Then one statement claims the chosen number of each, and reads the content of their messages.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use crate::described::Undescribed;
use crate::time::Time;
use crate::{Store, StoreError};
use wrkflw_core::cloudevent::PublicEntry;
use wrkflw_core::event::EventContext;
use wrkflw_core::ids::{InstanceId, TenantId, VersionRef};
use wrkflw_core::instance::Entity;
use wrkflw_core::notification::{Kind, Notification, Recipient};
use wrkflw_core::template::Labels;

/// Deliveries of a version that one claim postpones, for each subscription.
const POSTPONED_MAX: i64 = 1_000;
/// For how long. This only lets other deliveries come first here, and another host may be able to read the version.
const POSTPONED_FOR: Duration = Duration::from_secs(3);

/// A claimed delivery with the content of its message.
#[derive(Debug)]
pub struct Claimed {
    pub queue: DeliveryQueue,
    pub message: Uuid,
    /// The number of earlier attempts.
    pub attempts: i32,
    pub url: String,
    pub secret: Vec<u8>,
    /// Whether the subscription is active.
    pub active: bool,
    /// None if the message is a test.
    pub entry: Option<PublicEntry>,
    pub tenant: String,
    pub created_at: Timestamp,
    /// Whether the message is a notification and not the event itself.
    pub notifies: bool,
    /// None if the message is the event itself, or a notification that was deleted because of its age.
    pub notification: Option<Notification>,
    /// The entry's number in the stream of its instance.
    seq: i64,
}

/// A delivery with its subscription, its entry, and its notification if it has one.
struct ClaimRow {
    tenant_id: i32,
    subscription_id: Uuid,
    message_id: Uuid,
    notifies: bool,
    attempts: i32,
    url: String,
    secret: Vec<u8>,
    active: bool,
    created_at: Time,
    seq: i64,
    id: Option<Uuid>,
    entry_kind: Option<String>,
    payload: Option<String>,
    event_seq: Option<i64>,
    at: Option<Time>,
    actor: Option<String>,
    traceparent: Option<String>,
    revision: Option<i32>,
    instance_id: Uuid,
    tenant: String,
    definition_key: Option<String>,
    definition_version: Option<i32>,
    entity_type: Option<String>,
    entity_id: Option<String>,
    kind: Option<String>,
    recipient_kind: Option<String>,
    recipient: Option<String>,
    state_id: Option<Uuid>,
    task_id: Option<Uuid>,
    due_at: Option<Time>,
    title: Option<String>,
    summary: Option<String>,
}

/// The deliveries to one subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeliveryQueue {
    pub tenant: TenantId,
    pub subscription: Uuid,
}

impl DeliveryQueue {
    /// A key before all others.
    pub const FIRST: DeliveryQueue = DeliveryQueue {
        tenant: TenantId(i32::MIN),
        subscription: Uuid::nil(),
    };
}

/// The next queues after this one that have pending deliveries, in order, at most `limit`. For each, the number of deliveries that
/// are due and not claimed, counted up to `count_max`.
pub async fn queues(
    store: &Store,
    now: Timestamp,
    after: DeliveryQueue,
    limit: i64,
    count_max: i64,
) -> Result<Vec<(DeliveryQueue, usize)>, StoreError> {
    // The query reads queue by queue along the index, so the cost does not grow with the pending deliveries of a queue.
    let rows = sqlx::query!(
        r#"with recursive queue as (
            (
                select tenant_id, subscription_id from webhook_delivery
                where state = 'pending' and (tenant_id, subscription_id) > ($2::int, $3::uuid)
                order by tenant_id, subscription_id limit 1
            )
            union all
            select n.tenant_id, n.subscription_id from queue q cross join lateral (
                select tenant_id, subscription_id from webhook_delivery
                where state = 'pending' and (tenant_id, subscription_id) > (q.tenant_id, q.subscription_id)
                order by tenant_id, subscription_id limit 1
            ) n
        )
        select q.tenant_id as "tenant_id!", q.subscription_id as "subscription_id!", (
            select count(*) from (
                select from webhook_delivery d
                where d.tenant_id = q.tenant_id and d.subscription_id = q.subscription_id and d.state = 'pending'
                  and d.due_at <= $1 and (d.lease_until is null or d.lease_until <= $1)
                limit $5
            ) due
        ) as "due!"
        from queue q limit $4"#,
        Time(now) as _,
        after.tenant.0,
        after.subscription,
        limit,
        count_max
    )
    .fetch_all(&store.writer)
    .await?;
    let queues = rows.into_iter().map(|row| {
        let queue = DeliveryQueue {
            tenant: TenantId(row.tenant_id),
            subscription: row.subscription_id,
        };
        (queue, usize::try_from(row.due).unwrap_or(0))
    });
    Ok(queues.collect())
}

/// Claims that number of due deliveries of each queue until `lease_end`. Deliveries that this release cannot read stay
/// leased and are not returned. The other deliveries of their versions are postponed, so that they delay no other delivery.
pub async fn claim(
    store: &Store,
    now: Timestamp,
    lease_end: Timestamp,
    shares: &[(DeliveryQueue, usize)],
) -> Result<Vec<Claimed>, StoreError> {
    let mut claimed = lease_deliveries(store, now, lease_end, shares).await?;
    let undescribed = claimed.iter_mut().filter_map(|delivery| {
        Some(Undescribed {
            tenant: delivery.queue.tenant,
            seq: delivery.seq,
            entry: delivery.entry.as_mut()?,
        })
    });
    let mut undescribed: Vec<_> = undescribed.collect();
    let mut connection = store.writer.acquire().await?;
    let unreadable = connection
        .within(|connection| store.texts.describe(connection, &mut undescribed))
        .await?;
    drop(connection);
    let mut versions = BTreeSet::new();
    claimed.retain(|delivery| {
        let queue = delivery.queue;
        let Some(entry) = &delivery.entry else {
            return true;
        };
        let Some(reason) = unreadable.reason(queue.tenant, entry) else {
            return true;
        };
        tracing::warn!(subscription.id = %queue.subscription, message.id = %delivery.message, "a webhook waits until its lease ends: {reason}");
        let VersionRef { key, version } = &entry.definition;
        versions.insert((queue, key.clone(), version.cast_signed()));
        false
    });
    if !versions.is_empty() {
        postpone(store, now, now + POSTPONED_FOR, versions).await?;
    }
    Ok(claimed)
}

async fn lease_deliveries(
    store: &Store,
    now: Timestamp,
    lease_end: Timestamp,
    shares: &[(DeliveryQueue, usize)],
) -> Result<Vec<Claimed>, StoreError> {
    let tenants: Vec<i32> = shares.iter().map(|(queue, _)| queue.tenant.0).collect();
    let subscriptions: Vec<Uuid> = shares.iter().map(|(queue, _)| queue.subscription).collect();
    let count = |(_, count): &(DeliveryQueue, usize)| i64::try_from(*count).unwrap_or(i64::MAX);
    let counts: Vec<i64> = shares.iter().map(count).collect();
    let rows = sqlx::query_as!(
        ClaimRow,
        r#"with due as (
            select d.tenant_id, d.subscription_id, d.message_id
            from unnest($3::int[], $4::uuid[], $5::bigint[]) s (tenant_id, subscription_id, count)
            cross join lateral (
                select w.tenant_id, w.subscription_id, w.message_id from webhook_delivery w
                where w.tenant_id = s.tenant_id and w.subscription_id = s.subscription_id and w.state = 'pending'
                  and w.due_at <= $1 and (w.lease_until is null or w.lease_until <= $1)
                order by w.due_at limit s.count for update skip locked
            ) d
        ), claimed as (
            update webhook_delivery d set lease_until = $2 from due
            where d.tenant_id = due.tenant_id and d.subscription_id = due.subscription_id and d.message_id = due.message_id
            returning d.tenant_id, d.subscription_id, d.message_id, d.notifies, d.instance_id, d.seq, d.attempts,
                d.definition_version, d.created_at, d.test
        )
        select c.tenant_id, c.subscription_id, c.message_id, c.notifies, c.attempts, s.url, s.secret, s.active,
            c.created_at as "created_at: Time", c.seq, e.id as "id?", e.type as "entry_kind?", e.payload as "payload?",
            e.event_seq as "event_seq?", e.occurred_at as "at?: Time", e.actor as "actor?", e.traceparent as "traceparent?",
            e.revision as "revision?", c.instance_id, t.name as tenant, i.definition_key as "definition_key?",
            coalesce(c.definition_version, i.definition_version) as "definition_version?", i.entity_type as "entity_type?",
            i.entity_id as "entity_id?", n.kind as "kind?", n.recipient_kind as "recipient_kind?", n.recipient as "recipient?",
            n.state_id as "state_id?", n.task_id as "task_id?", n.due_at as "due_at?: Time", i.title as "title?",
            i.summary as "summary?"
        from claimed c
        join subscription s on s.tenant_id = c.tenant_id and s.id = c.subscription_id
        left join audit_entry e on e.tenant_id = c.tenant_id and e.stream_kind = 'instance' and e.stream_id = c.instance_id
          and e.seq = c.seq
        left join instance i on i.tenant_id = c.tenant_id and i.id = c.instance_id
        join tenant t on t.id = c.tenant_id
        left join notification n on c.notifies and n.tenant_id = c.tenant_id and n.id = c.message_id
        where c.test or e.id is not null and i.id is not null"#,
        Time(now) as _,
        Time(lease_end) as _,
        &tenants,
        &subscriptions,
        &counts
    )
    .fetch_all(&store.writer)
    .await?;
    rows.into_iter().map(ClaimRow::claimed).collect()
}

/// Postpones due deliveries of these versions that nobody has claimed.
async fn postpone(
    store: &Store,
    now: Timestamp,
    until: Timestamp,
    versions: BTreeSet<(DeliveryQueue, String, i32)>,
) -> Result<(), StoreError> {
    let tenants: Vec<i32> = versions.iter().map(|one| one.0.tenant.0).collect();
    let subscriptions: Vec<Uuid> = versions.iter().map(|one| one.0.subscription).collect();
    let numbers: Vec<i32> = versions.iter().map(|one| one.2).collect();
    let keys: Vec<String> = versions.into_iter().map(|one| one.1).collect();
    sqlx::query!(
        "update webhook_delivery d set due_at = $2
        from (
            select w.tenant_id, w.subscription_id, w.message_id
            from unnest($3::int[], $4::uuid[], $5::text[], $6::int[]) s (tenant_id, subscription_id, key, version)
            cross join lateral (
                select p.* from webhook_delivery p
                where p.tenant_id = s.tenant_id and p.subscription_id = s.subscription_id and p.state = 'pending'
                  and p.due_at <= $1 and (p.lease_until is null or p.lease_until <= $1)
                order by p.due_at limit $7 for update skip locked
            ) w
            join instance i on i.tenant_id = w.tenant_id and i.id = w.instance_id and i.definition_key = s.key
            where coalesce(w.definition_version, i.definition_version) = s.version
        ) later
        where d.tenant_id = later.tenant_id and d.subscription_id = later.subscription_id and d.message_id = later.message_id",
        Time(now) as _,
        Time(until) as _,
        &tenants,
        &subscriptions,
        &keys,
        &numbers,
        POSTPONED_MAX
    )
    .execute(&store.writer)
    .await?;
    Ok(())
}

impl ClaimRow {
    fn claimed(mut self) -> Result<Claimed, StoreError> {
        Ok(Claimed {
            queue: DeliveryQueue {
                tenant: TenantId(self.tenant_id),
                subscription: self.subscription_id,
            },
            message: self.message_id,
            attempts: self.attempts,
            url: std::mem::take(&mut self.url),
            secret: std::mem::take(&mut self.secret),
            active: self.active,
            tenant: self.tenant.clone(),
            created_at: self.created_at.0,
            notifies: self.notifies,
            notification: self.notification()?,
            seq: self.seq,
            entry: self.entry(),
        })
    }

    fn notification(&mut self) -> Result<Option<Notification>, StoreError> {
        let (Some(kind), Some(recipient_kind), Some(recipient)) =
            (&self.kind, &self.recipient_kind, self.recipient.take())
        else {
            return Ok(None);
        };
        let damaged = || {
            StoreError::inconsistent("notification", self.message_id, "an unknown kind or event")
        };
        Ok(Some(Notification {
            id: self.message_id,
            kind: Kind::named(kind).ok_or_else(damaged)?,
            recipient: match recipient_kind.as_str() {
                "group" => Recipient::Group(recipient),
                _ => Recipient::User(recipient),
            },
            instance: InstanceId(self.instance_id),
            state: self.state_id,
            task: self.task_id,
            event: self.id.ok_or_else(damaged)?,
            due_at: self.due_at.map(|time| time.0),
            at: self.at.ok_or_else(damaged)?.0,
        }))
    }

    /// None for a test, which has no entry.
    fn entry(self) -> Option<PublicEntry> {
        Some(PublicEntry {
            tenant: self.tenant,
            instance: InstanceId(self.instance_id),
            id: self.id?,
            kind: self.entry_kind?,
            payload: self.payload?,
            event_seq: self.event_seq?.cast_unsigned(),
            occurred_at: self.at?.0,
            actor: self.actor,
            definition: VersionRef {
                key: self.definition_key?,
                version: self.definition_version?.cast_unsigned(),
            },
            entity: Entity {
                kind: self.entity_type?,
                id: self.entity_id?,
            },
            traceparent: self.traceparent,
            revision: self.revision?.cast_unsigned(),
            context: EventContext {
                labels: Labels {
                    title: self.title,
                    summary: self.summary,
                },
                ..EventContext::default()
            },
        })
    }
}
