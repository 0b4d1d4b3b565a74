//! Signals by correlation key: each is stored on its arrival and given to one instance.
//!
//! A signal is assigned to an instance before it is delivered, so that two hosts never give it to two instances. The assignment
//! inserts a job with the signal's id. This job delivers the signal if the host fails. The commit ensures that the instance counts the
//! signal once. Times come from the database's clock: a host's clock may be wrong by more than the time for which a signal is kept.

use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use super::time::Time;
use super::{Store, StoreError};
use wrkflw_core::ids::{InstanceId, StateId, TenantId, VersionRef};
use wrkflw_core::instance::StateInstance;
use wrkflw_core::json::Json;

/// How long a signal waits for an instance that takes it.
pub(crate) const SIGNALS_KEPT: Duration = Duration::from_hours(30 * 24);
/// How long a signal is stored, with its id and its result for the sender.
pub const SIGNALS_TOLD: Duration = Duration::from_hours(60 * 24);
/// Limit of the waiting signals of one sender with one correlation key.
pub const INBOX_MAX: i64 = 100;
/// Limit of all waiting signals of one sender.
pub const INBOX_OF_SENDER_MAX: i64 = 10_000;
/// Limit of the signals to all of one sender that are being delivered.
pub const TO_ALL_OF_SENDER_MAX: i64 = 20;
/// Limit of the versions that are checked for a trigger.
const VERSIONS_MAX: i64 = 10_000;

/// A signal to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSignal {
    /// The host's id for the signal, used if the sender's id is new.
    pub signal: Uuid,
    pub correlation: String,
    /// The sender's id for the signal.
    pub id: String,
    pub trigger: String,
    /// Only for instances of this definition.
    pub definition: Option<String>,
    pub input: Json,
    /// Whether it is for all state instances that subscribe to it, and not for one.
    pub to_all: bool,
    pub sender_id: String,
    /// The sender as JSON; its `id` is `sender_id`.
    pub sender: Json,
}

/// A stored signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSignal {
    /// The host's id.
    pub signal: Uuid,
    pub correlation: String,
    /// The sender's id for the signal.
    pub id: String,
    pub trigger: String,
    /// Only for instances of this definition.
    pub definition: Option<String>,
    pub input: Json,
    /// The sender as JSON.
    pub sender: Json,
    pub received_at: Timestamp,
    /// The instance that it is assigned to.
    pub instance: Option<InstanceId>,
    /// Whether the instance, or for a signal to all every subscriber, has received it or refused it permanently.
    pub is_settled: bool,
    /// For a signal to all: the last state instance that is done.
    pub to_all: Option<SubscriberPosition>,
}

/// The place of a state instance among those that subscribe to a trigger under a correlation key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubscriberPosition {
    pub entered_at: Timestamp,
    pub state: StateId,
}

/// The result of storing a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keeping {
    /// It is stored, now or by an earlier request with the same id.
    Kept(Box<StoredSignal>),
    /// The sender has [`INBOX_MAX`] waiting signals with this correlation key.
    FullForCorrelation,
    /// The sender has [`INBOX_OF_SENDER_MAX`] waiting signals.
    Full,
    /// The sender has [`TO_ALL_OF_SENDER_MAX`] signals to all that are being delivered.
    FullToAll,
}

/// The instance whose state instance takes a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subscriber {
    pub instance: InstanceId,
    /// It is suspended, and so are all other instances that take the signal.
    pub is_suspended: bool,
}

/// Stores a signal, unless one of this sender with the same id, trigger and correlation key is stored already. A signal
/// that was refused permanently, or that has expired unassigned, is replaced. A signal to all gets a job that is due
/// `now`, even if the host's clock is ahead.
pub async fn keep(
    store: &Store,
    tenant: TenantId,
    new: &NewSignal,
    now: Timestamp,
) -> Result<Keeping, StoreError> {
    let waiting = sqlx::query!(
        r#"with waiting as (
            select
                (select count(*) from (
                    select from signal_inbox o
                    where o.tenant_id = $1 and o.sender_id = $9 and o.correlation = $2 and o.delivered_at is null
                      and o.received_at > now() - make_interval(secs => $10) limit $11
                ) as correlated) as of_correlation,
                (select count(*) from (
                    select from signal_inbox o
                    where o.tenant_id = $1 and o.sender_id = $9 and o.delivered_at is null
                      and o.received_at > now() - make_interval(secs => $10) limit $12
                ) as sent) as of_sender,
                case when $13 then (select count(*) from (
                    select from signal_inbox o
                    where o.tenant_id = $1 and o.sender_id = $9 and o.delivered_at is null and o.to_all limit $14
                ) as open) else 0 end as to_all
        ), kept as (
            insert into signal_inbox
                (tenant_id, correlation, signal_id, trigger, definition_key, input, sender, received_at, id, to_all)
            select $1, $2, $3, $4, $5, $6, $7, now(), $8, $13
            from waiting where of_correlation < $11 and of_sender < $12 and to_all < $14
            on conflict (tenant_id, correlation, signal_id, identity) do update
            set id = excluded.id, definition_key = excluded.definition_key, input = excluded.input,
                sender = excluded.sender, received_at = excluded.received_at, instance_id = null,
                delivered_at = null, refusal = null, to_all = excluded.to_all, after_at = excluded.after_at,
                after_state = excluded.after_state, taken = 0, refused = 0, acknowledged = false
            where signal_inbox.tenant_id = $1 and (
                signal_inbox.refusal is not null
                or (signal_inbox.delivered_at is null and signal_inbox.instance_id is null
                    and signal_inbox.received_at <= now() - make_interval(secs => $10))
            )
            returning tenant_id, id, to_all
        ), queued as (
            insert into job (tenant_id, id, kind, instance_id, due_at, payload)
            select tenant_id, id, 'deliver_signal', id, least($15, now()), '{}' from kept where to_all
            on conflict do nothing
        )
        select of_correlation as "of_correlation!", of_sender as "of_sender!", to_all as "to_all!" from waiting"#,
        tenant.0,
        new.correlation,
        new.id,
        new.trigger,
        new.definition,
        new.input.as_str(),
        new.sender.as_str(),
        new.signal,
        new.sender_id,
        SIGNALS_KEPT.as_secs_f64(),
        INBOX_MAX,
        INBOX_OF_SENDER_MAX,
        new.to_all,
        TO_ALL_OF_SENDER_MAX,
        Time(now) as _
    )
    .fetch_one(&store.writer)
    .await?;
    Ok(match sent(store, tenant, new).await? {
        Some(kept) => Keeping::Kept(Box::new(kept)),
        None if waiting.of_correlation >= INBOX_MAX => Keeping::FullForCorrelation,
        None if waiting.of_sender >= INBOX_OF_SENDER_MAX => Keeping::Full,
        None if waiting.to_all >= TO_ALL_OF_SENDER_MAX => Keeping::FullToAll,
        // A concurrent request with the same id has withdrawn the signal meanwhile.
        None => return Err(StoreError::Lost),
    })
}

/// The stored signal of this sender with the same id, trigger and correlation key, unless [`keep`] would replace it.
pub async fn sent(
    store: &Store,
    tenant: TenantId,
    new: &NewSignal,
) -> Result<Option<StoredSignal>, StoreError> {
    let row = sqlx::query_as!(
        Row,
        r#"select id, correlation, signal_id, trigger, definition_key, input, sender, received_at as "received_at: Time",
            instance_id, delivered_at is not null as "is_settled!", to_all, after_at as "after_at: Time", after_state
        from signal_inbox
        where tenant_id = $1 and correlation = $2 and signal_id = $3 and trigger = $4 and sender_id = $5
          and refusal is null
          and (delivered_at is not null or instance_id is not null or received_at > now() - make_interval(secs => $6))"#,
        tenant.0,
        new.correlation,
        new.id,
        new.trigger,
        new.sender_id,
        SIGNALS_KEPT.as_secs_f64()
    )
    .fetch_optional(&store.writer)
    .await?;
    Ok(row.map(Row::kept))
}

/// The signal with this host's id.
pub async fn kept(
    store: &Store,
    tenant: TenantId,
    signal: Uuid,
) -> Result<Option<StoredSignal>, StoreError> {
    let row = sqlx::query_as!(
        Row,
        r#"select id, correlation, signal_id, trigger, definition_key, input, sender, received_at as "received_at: Time",
            instance_id, delivered_at is not null as "is_settled!", to_all, after_at as "after_at: Time", after_state
        from signal_inbox where tenant_id = $1 and id = $2"#,
        tenant.0,
        signal
    )
    .fetch_optional(&store.writer)
    .await?;
    Ok(row.map(Row::kept))
}

/// The oldest unassigned signal that the state instance takes.
pub async fn unclaimed(
    store: &Store,
    tenant: TenantId,
    definition: &str,
    state_instance: &StateInstance,
) -> Result<Option<StoredSignal>, StoreError> {
    let (mut keys, mut triggers, mut buffered) = (Vec::new(), Vec::new(), Vec::new());
    for (one, key) in state_instance.correlated() {
        keys.push(key.to_owned());
        triggers.push(one.trigger.clone());
        buffered.push(one.buffered);
    }
    let row = sqlx::query_as!(
        Row,
        r#"select s.id, s.correlation, s.signal_id, s.trigger, s.definition_key, s.input, s.sender,
            s.received_at as "received_at: Time", s.instance_id, s.delivered_at is not null as "is_settled!", s.to_all,
            s.after_at as "after_at: Time", s.after_state
        from unnest($2::text[], $3::text[], $4::boolean[]) as t (correlation, trigger, buffered)
        join signal_inbox s on s.tenant_id = $1 and s.correlation = t.correlation and s.trigger = t.trigger
        where s.delivered_at is null and s.instance_id is null and not s.to_all and (s.definition_key is null or s.definition_key = $5)
          -- Without buffered signals, those that were received before the subscription are skipped.
          and (t.buffered or s.received_at >= (
              select u.subscribed_at from signal_subscription u
              where u.tenant_id = $1 and u.correlation = t.correlation and u.trigger = t.trigger and u.state_id = $6
          ))
          and s.received_at > now() - make_interval(secs => $7)
        order by s.received_at, s.id
        limit 1"#,
        tenant.0,
        &keys,
        &triggers,
        &buffered,
        definition,
        state_instance.id.0,
        SIGNALS_KEPT.as_secs_f64()
    )
    .fetch_optional(&store.writer)
    .await?;
    Ok(row.map(Row::kept))
}

/// The oldest state instance that subscribes to the trigger under the correlation key. It is one of a suspended instance
/// only if there is no other.
pub async fn subscriber(
    store: &Store,
    tenant: TenantId,
    signal: &StoredSignal,
) -> Result<Option<Subscriber>, StoreError> {
    let row = sqlx::query!(
        r#"(select s.instance_id as "instance_id!", false as "is_suspended!"
         from signal_subscription s join instance i on i.tenant_id = s.tenant_id and i.id = s.instance_id
         where s.tenant_id = $1 and s.correlation = $2 and s.trigger = $3 and i.status = 'RUNNING'
           and ($4::text is null or i.definition_key = $4)
         order by s.entered_at, s.state_id limit 1)
        union all
        (select s.instance_id, true
         from signal_subscription s join instance i on i.tenant_id = s.tenant_id and i.id = s.instance_id
         where s.tenant_id = $1 and s.correlation = $2 and s.trigger = $3 and i.status = 'SUSPENDED'
           and ($4::text is null or i.definition_key = $4)
         order by s.entered_at, s.state_id limit 1)
        limit 1"#,
        tenant.0,
        signal.correlation,
        signal.trigger,
        signal.definition.as_deref()
    )
    .fetch_optional(&store.writer)
    .await?;
    Ok(row.map(|row| Subscriber {
        instance: InstanceId(row.instance_id),
        is_suspended: row.is_suspended,
    }))
}

/// The active versions of a definition, or of all definitions; with `active` false, all others. The newest come first.
pub async fn versions_in_use(
    store: &Store,
    tenant: TenantId,
    definition: Option<&str>,
    active: bool,
) -> Result<Vec<VersionRef>, StoreError> {
    let rows = sqlx::query!(
        "select v.key, v.version
        from definition_version v join definition d on d.tenant_id = v.tenant_id and d.key = v.key
        where v.tenant_id = $1 and ($2::text is null or v.key = $2)
          and (v.version is not distinct from d.active_version) = $3
        order by v.version desc, v.key
        limit $4",
        tenant.0,
        definition,
        active,
        VERSIONS_MAX
    )
    .fetch_all(&store.writer)
    .await?;
    let versions = rows.into_iter().map(|row| VersionRef {
        key: row.key,
        version: row.version.cast_unsigned(),
    });
    Ok(versions.collect())
}

/// Whether an instance of the version is running or suspended.
pub async fn is_running(
    store: &Store,
    tenant: TenantId,
    version: &VersionRef,
) -> Result<bool, StoreError> {
    let found = sqlx::query_scalar!(
        r#"select exists(
            select from instance where tenant_id = $1 and definition_key = $2 and definition_version = $3
              and status in ('RUNNING', 'SUSPENDED')
        ) as "found!""#,
        tenant.0,
        version.key,
        version.version.cast_signed()
    );
    Ok(found.fetch_one(&store.writer).await?)
}

struct Row {
    id: Uuid,
    correlation: String,
    signal_id: String,
    trigger: String,
    definition_key: Option<String>,
    input: String,
    sender: String,
    received_at: Time,
    instance_id: Option<Uuid>,
    is_settled: bool,
    to_all: bool,
    after_at: Time,
    after_state: Uuid,
}

impl Row {
    fn kept(self) -> StoredSignal {
        StoredSignal {
            signal: self.id,
            correlation: self.correlation,
            id: self.signal_id,
            trigger: self.trigger,
            definition: self.definition_key,
            input: Json::from_canonical(self.input),
            sender: Json::from_canonical(self.sender),
            received_at: self.received_at.0,
            instance: self.instance_id.map(InstanceId),
            is_settled: self.is_settled,
            to_all: self.to_all.then_some(SubscriberPosition {
                entered_at: self.after_at.0,
                state: StateId(self.after_state),
            }),
        }
    }
}
