//! The processing of stored signals: assignment, delivery, release and refusal. Senders read the receipts of their signals.
//!
//! The job that delivers a signal has the signal's id.

use jiff::Timestamp;
use uuid::Uuid;

use super::load::StoredReply;
use super::signals::SIGNALS_KEPT;
use super::time::Time;
use super::viewer::Viewer;
use super::{Reader, Store, StoreError};
use wrkflw_core::answer::Reason;
use wrkflw_core::command::SignalKey;
use wrkflw_core::ids::{InstanceId, StateId, TenantId};
use wrkflw_core::json::Json;

/// The result of a signal so far, for its sender.
#[derive(Debug, Clone)]
pub struct Receipt {
    pub signal: Uuid,
    pub correlation: String,
    /// The sender's id for the signal.
    pub id: String,
    pub trigger: String,
    pub definition: Option<String>,
    pub sender: String,
    pub received_at: Timestamp,
    /// Until when it waits for an instance.
    pub expires_at: Timestamp,
    pub is_expired: bool,
    pub instance: Option<InstanceId>,
    /// If it is for all state instances that subscribe to it: how many have taken and refused it so far.
    pub to_all: Option<BroadcastCounts>,
    pub settled_at: Option<Timestamp>,
    /// Canonical JSON of a [`Reason`].
    pub refusal: Option<Json>,
}

/// How many state instances have taken and refused a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BroadcastCounts {
    pub taken: u32,
    pub refused: u32,
}

/// A signal that an instance has received, as its audit entry has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedSignal {
    /// The event by which the instance received it.
    pub event: Uuid,
    /// The number of its audit entry.
    pub seq: u64,
    pub received_at: Timestamp,
    pub sender: Option<String>,
    /// None if somebody made the entry unreadable.
    pub content: Option<SignalContent>,
}

/// The content of a received signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignalContent {
    /// The sender's id for the signal.
    pub id: String,
    pub trigger: String,
    /// The state instance that took it at once. None if it was buffered.
    pub state: Option<StateId>,
}

/// A page of the signals that an instance has received, newest first: those before the entry with this number. The viewer sees
/// the instance.
pub async fn list(
    reader: &Reader,
    viewer: &Viewer,
    instance: InstanceId,
    before: Option<u64>,
    limit: u32,
) -> Result<Vec<ReceivedSignal>, StoreError> {
    // The input may have 64 KiB, so the query does not return it. An erased payload is not JSON.
    let rows = sqlx::query!(
        r#"select e.id, e.seq, e.actor, e.occurred_at as "at: Time",
            said.id as "signal_id?", said.trigger as "trigger?", said.state as "state?"
        from audit_entry e
        left join lateral json_to_record(case when e.payload like '{%' then e.payload::json end)
            as said (id text, trigger text, state uuid) on true
        where e.tenant_id = $1 and e.stream_kind = 'instance' and e.stream_id = $2 and e.type = 'SIGNAL_RECEIVED' and e.seq < $3
        order by e.seq desc limit $4"#,
        viewer.tenant.0,
        instance.0,
        before.map_or(i64::MAX, u64::cast_signed),
        i64::from(limit)
    )
    .fetch_all(&mut reader.reading(viewer).await?)
    .await?;
    let signals = rows.into_iter().map(|row| ReceivedSignal {
        event: row.id,
        seq: row.seq.cast_unsigned(),
        received_at: row.at.0,
        sender: row.actor,
        content: row
            .signal_id
            .zip(row.trigger)
            .map(|(id, trigger)| SignalContent {
                id,
                trigger,
                state: row.state.map(StateId),
            }),
    });
    Ok(signals.collect())
}

/// The receipt of a signal.
pub async fn get(
    reader: &Reader,
    tenant: TenantId,
    signal: Uuid,
) -> Result<Option<Receipt>, StoreError> {
    let row = sqlx::query_as!(
        Row,
        r#"select id, correlation, signal_id, trigger, definition_key, sender_id as "sender_id!",
            received_at as "received_at: Time",
            received_at + make_interval(secs => $3) as "expires_at!: Time",
            received_at + make_interval(secs => $3) <= now() as "is_expired!",
            instance_id, delivered_at as "delivered_at: Time", refusal, to_all, taken, refused
        from signal_inbox where tenant_id = $1 and id = $2"#,
        tenant.0,
        signal,
        SIGNALS_KEPT.as_secs_f64()
    )
    .fetch_optional(&mut reader.reading(Viewer::all(tenant)).await?)
    .await?;
    Ok(row.map(Row::receipt))
}

/// The audit entry by which an instance received a signal of this sender. None if it has not received the signal, or
/// if the record was purged.
pub async fn reception(
    reader: &Reader,
    tenant: TenantId,
    instance: InstanceId,
    sender: &str,
    key: &SignalKey,
) -> Result<Option<Option<Uuid>>, StoreError> {
    let identity = key.identity(sender);
    let found = sqlx::query_scalar!(
        "select entry_id from signal
        where tenant_id = $1 and instance_id = $2 and signal_id = $3 and identity in ($4, '')
        order by identity desc limit 1",
        tenant.0,
        instance.0,
        key.id,
        identity.as_slice()
    )
    .fetch_optional(&mut reader.reading(Viewer::all(tenant)).await?)
    .await?;
    Ok(found)
}

/// Assigns a signal to an instance, and inserts a job that delivers it from `later` on. False if it is assigned already.
pub async fn assign(
    store: &Store,
    tenant: TenantId,
    signal: Uuid,
    instance: InstanceId,
    later: Timestamp,
) -> Result<bool, StoreError> {
    let assigned = sqlx::query!(
        "with assigned as (
            update signal_inbox set instance_id = $3
            where tenant_id = $1 and id = $2 and instance_id is null and delivered_at is null
            returning tenant_id
        )
        insert into job (tenant_id, id, kind, instance_id, due_at, payload)
        select tenant_id, $2, 'deliver_signal', $3, $4, '{}' from assigned
        on conflict (tenant_id, id) do update
        set kind = excluded.kind, instance_id = excluded.instance_id, due_at = excluded.due_at,
            payload = excluded.payload, lease_until = null, attempts = 0, last_error = null",
        tenant.0,
        signal,
        instance.0,
        Time(later) as _
    )
    .execute(&store.writer)
    .await?;
    Ok(assigned.rows_affected() == 1)
}

/// Marks a signal as received or permanently refused, and deletes its job.
pub async fn settle(
    store: &Store,
    tenant: TenantId,
    signal: Uuid,
    refusal: Option<&Reason>,
) -> Result<(), StoreError> {
    let refusal = refusal.map(Json::of);
    sqlx::query!(
        "with settled as (
            update signal_inbox set delivered_at = now(), refusal = $3
            where tenant_id = $1 and id = $2 and delivered_at is null
            returning id
        )
        -- The signal first, then its job, as everywhere.
        delete from job where tenant_id = $1 and id = $2 and (select count(*) from settled) >= 0",
        tenant.0,
        signal,
        refusal.as_ref().map(Json::as_str)
    )
    .execute(&store.writer)
    .await?;
    Ok(())
}

/// Releases a signal from an instance. Its job stays, and finds another instance if this host fails.
pub async fn release(
    store: &Store,
    tenant: TenantId,
    signal: Uuid,
    from: InstanceId,
) -> Result<(), StoreError> {
    sqlx::query!(
        "update signal_inbox set instance_id = null
        where tenant_id = $1 and id = $2 and instance_id = $3 and delivered_at is null",
        tenant.0,
        signal,
        from.0
    )
    .execute(&store.writer)
    .await?;
    Ok(())
}

/// Deletes the job of a signal that no instance takes now. State instances that wait later find the signal. Changes
/// nothing if it is assigned meanwhile.
pub async fn leave(store: &Store, tenant: TenantId, signal: Uuid) -> Result<(), StoreError> {
    sqlx::query!(
        "with idle as (
            select tenant_id, id from signal_inbox
            where tenant_id = $1 and id = $2 and instance_id is null
            for update
        )
        delete from job j using idle where j.tenant_id = idle.tenant_id and j.id = idle.id",
        tenant.0,
        signal
    )
    .execute(&store.writer)
    .await?;
    Ok(())
}

/// Records that a request that did not store the signal gets the answer that it is kept. From then on the signal is not
/// withdrawn. False if it has been withdrawn already.
pub async fn acknowledge(
    store: &Store,
    tenant: TenantId,
    signal: Uuid,
) -> Result<bool, StoreError> {
    let found = sqlx::query!(
        "update signal_inbox set acknowledged = true where tenant_id = $1 and id = $2",
        tenant.0,
        signal
    );
    let found = found.execute(&store.writer).await?;
    Ok(found.rows_affected() == 1)
}

/// Deletes a signal and its job, because the request that stored it is refused. Returns false if the signal stays, because
/// another request got the answer that it is kept, an instance has taken it, or a worker has claimed its job.
pub async fn withdraw(store: &Store, tenant: TenantId, signal: Uuid) -> Result<bool, StoreError> {
    let stays = sqlx::query_scalar!(
        r#"with open as (
            select tenant_id, id, not to_all and instance_id is null as unassigned from signal_inbox
            where tenant_id = $1 and id = $2 and delivered_at is null and not acknowledged and taken = 0 and refused = 0
            for update
        ), idle as (
            delete from job j using open
            where j.tenant_id = open.tenant_id and j.id = open.id and j.lease_until is null
            returning j.tenant_id, j.id
        ), withdrawn as (
            delete from signal_inbox s using open
            where s.tenant_id = open.tenant_id and s.id = open.id and (
                exists(select from idle)
                or (open.unassigned and not exists(select from job j where j.tenant_id = $1 and j.id = $2))
            )
            returning s.id
        )
        select exists(select from signal_inbox where tenant_id = $1 and id = $2)
            and not exists(select from withdrawn) as "stays!""#,
        tenant.0,
        signal
    );
    Ok(!stays.fetch_one(&store.writer).await?)
}

/// Stores the reply to a request that changed no instance. If the key has a reply already, returns that.
pub async fn keep_reply(
    store: &Store,
    tenant: TenantId,
    principal: &str,
    key: &str,
    reply: &StoredReply,
) -> Result<Option<StoredReply>, StoreError> {
    let kept = sqlx::query!(
        "insert into idempotency_key (tenant_id, principal, key, fingerprint, status, body, headers, created_at, command_id)
        values ($1, $2, $3, $4, $5, $6, $7, now(), gen_random_uuid())
        on conflict do nothing",
        tenant.0,
        principal,
        key,
        reply.fingerprint,
        reply.status.cast_signed(),
        reply.body,
        reply.headers
    )
    .execute(&store.writer)
    .await?;
    if kept.rows_affected() == 1 {
        return Ok(None);
    }
    let known = sqlx::query!(
        "select fingerprint, status, body, headers from idempotency_key
        where tenant_id = $1 and principal = $2 and key = $3",
        tenant.0,
        principal,
        key
    )
    .fetch_optional(&store.writer)
    .await?;
    Ok(known.map(|row| StoredReply {
        fingerprint: row.fingerprint,
        status: row.status.cast_unsigned(),
        body: row.body,
        headers: row.headers,
    }))
}

struct Row {
    id: Uuid,
    correlation: String,
    signal_id: String,
    trigger: String,
    definition_key: Option<String>,
    sender_id: String,
    received_at: Time,
    expires_at: Time,
    is_expired: bool,
    instance_id: Option<Uuid>,
    delivered_at: Option<Time>,
    refusal: Option<String>,
    to_all: bool,
    taken: i32,
    refused: i32,
}

impl Row {
    fn receipt(self) -> Receipt {
        Receipt {
            signal: self.id,
            correlation: self.correlation,
            id: self.signal_id,
            trigger: self.trigger,
            definition: self.definition_key,
            sender: self.sender_id,
            received_at: self.received_at.0,
            expires_at: self.expires_at.0,
            is_expired: self.is_expired,
            instance: self.instance_id.map(InstanceId),
            to_all: self.to_all.then_some(BroadcastCounts {
                taken: self.taken.cast_unsigned(),
                refused: self.refused.cast_unsigned(),
            }),
            settled_at: self.delivered_at.map(|time| time.0),
            refusal: self.refusal.map(Json::from_canonical),
        }
    }
}
