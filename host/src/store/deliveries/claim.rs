//! Taking deliveries to work on: one statement leases them and reads all that their messages are made of.

use jiff::Timestamp;
use uuid::Uuid;

use crate::domain::cloudevent::PublicEntry;
use crate::domain::ids::{InstanceId, TenantId};
use crate::domain::notification::{Kind, Notification, Recipient};
use crate::store::feed::EntryRow;
use crate::store::time::Time;
use crate::store::{Store, StoreError};

/// A delivery under lease, with all that its message is made of.
#[derive(Debug)]
pub struct Claimed {
    pub tenant: TenantId,
    pub subscription: Uuid,
    pub message: Uuid,
    /// How often it was tried before.
    pub attempts: i32,
    pub url: String,
    pub secret: Vec<u8>,
    /// Whether the subscription still is.
    pub active: bool,
    pub entry: PublicEntry,
    /// None where the message is the event itself.
    pub notification: Option<Notification>,
}

/// A delivery with its subscription, its entry, and the notification if it is one.
struct ClaimRow {
    tenant_id: i32,
    subscription_id: Uuid,
    message_id: Uuid,
    attempts: i32,
    url: String,
    secret: Vec<u8>,
    active: bool,
    xid: i64,
    pos: i64,
    id: Uuid,
    seq: i64,
    entry_kind: String,
    payload: String,
    event_seq: i64,
    at: Time,
    actor: Option<String>,
    traceparent: Option<String>,
    revision: i32,
    stream_id: Uuid,
    tenant: String,
    definition_key: String,
    definition_version: i32,
    entity_type: String,
    entity_id: String,
    requesters: Vec<String>,
    kind: Option<String>,
    recipient_kind: Option<String>,
    recipient: Option<String>,
    state_id: Option<Uuid>,
    task_id: Option<Uuid>,
    due_at: Option<Time>,
}

impl Store {
    /// Takes up to `limit` deliveries that are due, until `lease_until`; none of the subscriptions that are `busy`.
    pub async fn claim_deliveries(
        &self,
        now: Timestamp,
        lease_until: Timestamp,
        limit: i64,
        busy: &[Uuid],
    ) -> Result<Vec<Claimed>, StoreError> {
        let rows = sqlx::query_as!(
            ClaimRow,
            r#"with due as (
                select tenant_id, subscription_id, message_id from webhook_delivery
                where state = 'pending' and due_at <= $1 and (lease_until is null or lease_until <= $1)
                  and subscription_id <> all($4::uuid[])
                order by due_at limit $3 for update skip locked
            ), claimed as (
                update webhook_delivery d set lease_until = $2 from due
                where d.tenant_id = due.tenant_id and d.subscription_id = due.subscription_id and d.message_id = due.message_id
                returning d.tenant_id, d.subscription_id, d.message_id, d.notifies, d.instance_id, d.seq, d.attempts
            )
            select c.tenant_id, c.subscription_id, c.message_id, c.attempts, s.url, s.secret, s.active,
                e.xid::text::bigint as "xid!", e.pos, e.id, e.seq, e.type as entry_kind, e.payload,
                e.event_seq as "event_seq!", e.occurred_at as "at: Time", e.actor, e.traceparent, e.revision, e.stream_id,
                t.name as tenant, i.definition_key, i.definition_version, i.entity_type, i.entity_id, i.requesters,
                n.kind as "kind?", n.recipient_kind as "recipient_kind?", n.recipient as "recipient?", n.state_id,
                n.task_id, n.due_at as "due_at: Time"
            from claimed c
            join subscription s on s.tenant_id = c.tenant_id and s.id = c.subscription_id
            join audit_entry e on e.tenant_id = c.tenant_id and e.stream_kind = 'instance' and e.stream_id = c.instance_id
              and e.seq = c.seq
            join instance i on i.tenant_id = c.tenant_id and i.id = c.instance_id
            join tenant t on t.id = c.tenant_id
            left join notification n on c.notifies and n.tenant_id = c.tenant_id and n.id = c.message_id"#,
            Time(now) as _,
            Time(lease_until) as _,
            limit,
            busy
        )
        .fetch_all(&self.writer)
        .await?;
        rows.into_iter().map(ClaimRow::claimed).collect()
    }
}

impl ClaimRow {
    fn claimed(mut self) -> Result<Claimed, StoreError> {
        Ok(Claimed {
            tenant: TenantId(self.tenant_id),
            subscription: self.subscription_id,
            message: self.message_id,
            attempts: self.attempts,
            url: std::mem::take(&mut self.url),
            secret: std::mem::take(&mut self.secret),
            active: self.active,
            notification: self.notification()?,
            entry: self.entry(),
        })
    }

    fn notification(&mut self) -> Result<Option<Notification>, StoreError> {
        let (Some(kind), Some(recipient_kind), Some(recipient)) =
            (&self.kind, &self.recipient_kind, self.recipient.take())
        else {
            return Ok(None);
        };
        let unknown =
            || StoreError::inconsistent("notification", self.message_id, "an unknown kind");
        Ok(Some(Notification {
            id: self.message_id,
            kind: Kind::named(kind).ok_or_else(unknown)?,
            recipient: match recipient_kind.as_str() {
                "group" => Recipient::Group(recipient),
                _ => Recipient::User(recipient),
            },
            instance: InstanceId(self.stream_id),
            state: self.state_id,
            task: self.task_id,
            event: self.id,
            due_at: self.due_at.map(|time| time.0),
            at: self.at.0,
        }))
    }

    fn entry(self) -> PublicEntry {
        let row = EntryRow {
            xid: self.xid,
            pos: self.pos,
            id: self.id,
            seq: self.seq,
            kind: self.entry_kind,
            payload: self.payload,
            event_seq: self.event_seq,
            at: self.at,
            actor: self.actor,
            traceparent: self.traceparent,
            revision: self.revision,
            stream_id: self.stream_id,
            tenant: self.tenant,
            definition_key: self.definition_key,
            definition_version: self.definition_version,
            entity_type: self.entity_type,
            entity_id: self.entity_id,
            requesters: self.requesters,
        };
        row.entry()
    }
}
