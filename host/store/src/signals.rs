//! Signals by correlation key: each is stored on its arrival and given to one instance.
//!
//! A signal is assigned to an instance before it is delivered, so that two hosts never give it to two instances. The
//! assignment inserts a job with the signal's id, which delivers the signal if the host fails. The commit ensures that the
//! instance counts it once. Times are the database's: a host's clock may be wrong by more than a signal is kept.

use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use super::time::Time;
use super::{Store, StoreError};
use wrkflw_core::ids::{InstanceId, TenantId, VersionRef};
use wrkflw_core::json::Json;

/// How long a signal waits for an instance that takes it.
pub const SIGNALS_KEPT: Duration = Duration::from_hours(30 * 24);
/// How long a signal is stored, with its id and its result for the sender.
pub const SIGNALS_TOLD: Duration = Duration::from_hours(60 * 24);
/// Limit of the waiting signals of one sender with one correlation key.
pub const INBOX_MAX: i64 = 100;
/// Limit of all waiting signals of one sender.
pub const INBOX_OF_SENDER_MAX: i64 = 10_000;
/// Limit of the states, of all versions, that are read for one correlation key.
const WAITING_MAX: i64 = 1_000;
/// Limit of the versions that are asked whether they take a signal.
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
    pub sender_id: String,
    /// The sender as JSON; its `id` is `sender_id`.
    pub sender: Json,
}

/// A stored signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
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
    /// Whether the instance has received it or refused it permanently.
    pub is_settled: bool,
}

/// The result of storing a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keeping {
    /// It is stored, now or by an earlier request with the same id.
    Kept(Kept),
    /// The sender has [`INBOX_MAX`] waiting signals with this correlation key.
    FullUnderName,
    /// The sender has [`INBOX_OF_SENDER_MAX`] waiting signals.
    Full,
}

/// The oldest open state instance of a state with a signal's correlation key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correlating {
    pub instance: InstanceId,
    pub definition: VersionRef,
    pub state: String,
    /// Its instance is suspended, and so are all others of this state and version.
    pub is_suspended: bool,
}

/// Which signals a state instance takes.
#[derive(Debug, Clone, Copy)]
pub struct Taking<'a> {
    pub correlation: &'a str,
    /// The key of its definition.
    pub definition: &'a str,
    pub triggers: &'a [String],
    /// Signals that were received earlier are skipped.
    pub since: Option<Timestamp>,
}

impl Store {
    /// Stores a signal, unless one of this sender with the same id, trigger and correlation key is stored already. A signal
    /// that was refused permanently, or that has expired unassigned, is replaced.
    pub async fn keep_signal(
        &self,
        tenant: TenantId,
        new: &NewSignal,
    ) -> Result<Keeping, StoreError> {
        let waiting = sqlx::query!(
            r#"with waiting as (
                select
                    (select count(*) from (
                        select from signal_inbox o
                        where o.tenant_id = $1 and o.sender_id = $9 and o.correlation = $2 and o.delivered_at is null
                          and o.received_at > now() - make_interval(secs => $10) limit $11
                    ) as named) as under_name,
                    (select count(*) from (
                        select from signal_inbox o
                        where o.tenant_id = $1 and o.sender_id = $9 and o.delivered_at is null
                          and o.received_at > now() - make_interval(secs => $10) limit $12
                    ) as sent) as of_sender
            ), kept as (
                insert into signal_inbox
                    (tenant_id, correlation, signal_id, trigger, definition_key, input, sender, received_at, id)
                select $1, $2, $3, $4, $5, $6, $7, now(), $8
                from waiting where under_name < $11 and of_sender < $12
                on conflict (tenant_id, correlation, signal_id, identity) do update
                set id = excluded.id, definition_key = excluded.definition_key, input = excluded.input,
                    sender = excluded.sender, received_at = excluded.received_at, instance_id = null,
                    delivered_at = null, refusal = null
                where signal_inbox.tenant_id = $1 and (
                    signal_inbox.refusal is not null
                    or (signal_inbox.delivered_at is null and signal_inbox.instance_id is null
                        and signal_inbox.received_at <= now() - make_interval(secs => $10))
                )
            )
            select under_name as "under_name!", of_sender as "of_sender!" from waiting"#,
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
            INBOX_OF_SENDER_MAX
        )
        .fetch_one(&self.writer)
        .await?;
        Ok(match self.sent_signal(tenant, new).await? {
            Some(kept) => Keeping::Kept(kept),
            None if waiting.under_name >= INBOX_MAX => Keeping::FullUnderName,
            None if waiting.of_sender >= INBOX_OF_SENDER_MAX => Keeping::Full,
            // A concurrent request with the same id has withdrawn the signal meanwhile.
            None => return Err(StoreError::Lost),
        })
    }

    /// The stored signal of this sender with the same id, trigger and correlation key.
    pub async fn sent_signal(
        &self,
        tenant: TenantId,
        new: &NewSignal,
    ) -> Result<Option<Kept>, StoreError> {
        let row = sqlx::query_as!(
            Row,
            r#"select id, correlation, signal_id, trigger, definition_key, input, sender, received_at as "received_at: Time",
                instance_id, delivered_at is not null as "is_settled!"
            from signal_inbox
            where tenant_id = $1 and correlation = $2 and signal_id = $3 and trigger = $4 and sender_id = $5"#,
            tenant.0,
            new.correlation,
            new.id,
            new.trigger,
            new.sender_id
        )
        .fetch_optional(&self.writer)
        .await?;
        Ok(row.map(Row::kept))
    }

    /// The signal with this host's id. A job of an earlier release lacks that id; then `earlier` has the correlation key, the
    /// sender's id and the instance.
    pub async fn kept_signal(
        &self,
        tenant: TenantId,
        signal: Option<Uuid>,
        earlier: (&str, &str, InstanceId),
    ) -> Result<Option<Kept>, StoreError> {
        let (correlation, id, instance) = earlier;
        let row = sqlx::query_as!(
            Row,
            r#"select id, correlation, signal_id, trigger, definition_key, input, sender, received_at as "received_at: Time",
                instance_id, delivered_at is not null as "is_settled!"
            from signal_inbox
            where tenant_id = $1 and (id = $2 or ($2 is null and correlation = $3 and signal_id = $4 and instance_id = $5))
            order by delivered_at nulls first
            limit 1"#,
            tenant.0,
            signal,
            correlation,
            id,
            instance.0
        )
        .fetch_optional(&self.writer)
        .await?;
        Ok(row.map(Row::kept))
    }

    /// The oldest unassigned signal that the state instance takes.
    pub async fn unclaimed_signal(
        &self,
        tenant: TenantId,
        taking: Taking<'_>,
    ) -> Result<Option<Kept>, StoreError> {
        let row = sqlx::query_as!(
            Row,
            r#"select id, correlation, signal_id, trigger, definition_key, input, sender, received_at as "received_at: Time",
                instance_id, delivered_at is not null as "is_settled!"
            from signal_inbox
            where tenant_id = $1 and correlation = $2 and delivered_at is null and instance_id is null
              and (definition_key is null or definition_key = $3) and trigger = any($4)
              and ($5::timestamptz is null or received_at >= $5)
              and received_at > now() - make_interval(secs => $6)
            order by received_at, id
            limit 1"#,
            tenant.0,
            taking.correlation,
            taking.definition,
            taking.triggers,
            taking.since.map(Time) as _,
            SIGNALS_KEPT.as_secs_f64()
        )
        .fetch_optional(&self.writer)
        .await?;
        Ok(row.map(Row::kept))
    }

    /// The state instances that wait with this correlation key: the oldest one for each state of each version. Those of
    /// running instances come first, then the oldest.
    pub async fn correlating(
        &self,
        tenant: TenantId,
        correlation: &str,
        definition: Option<&str>,
    ) -> Result<Vec<Correlating>, StoreError> {
        let rows = sqlx::query!(
            r#"select w.instance_id as "instance_id!", w.name as "name!", w.definition_key as "definition_key!",
                w.definition_version as "definition_version!", w.is_suspended as "is_suspended!"
            from (
                select distinct on (i.definition_key, i.definition_version, s.name)
                    s.instance_id, s.name, i.definition_key, i.definition_version, i.status = 'SUSPENDED' as is_suspended,
                    s.entered_at, s.id
                from state_instance s join instance i on i.tenant_id = s.tenant_id and i.id = s.instance_id
                where s.tenant_id = $1 and s.correlation = $2 and s.left_at is null and not s.waiting
                  and i.status in ('RUNNING', 'SUSPENDED') and ($3::text is null or i.definition_key = $3)
                order by i.definition_key, i.definition_version, s.name, i.status = 'SUSPENDED', s.entered_at, s.id
            ) as w
            order by w.is_suspended, w.entered_at, w.id
            limit $4"#,
            tenant.0,
            correlation,
            definition,
            WAITING_MAX
        )
        .fetch_all(&self.writer)
        .await?;
        let state_instances = rows.into_iter().map(|row| Correlating {
            instance: InstanceId(row.instance_id),
            definition: VersionRef {
                key: row.definition_key,
                version: row.definition_version.cast_unsigned(),
            },
            state: row.name,
            is_suspended: row.is_suspended,
        });
        Ok(state_instances.collect())
    }

    /// The active versions of a definition, or of all definitions; with `active` false, all others. The newest come first.
    pub async fn versions_in_use(
        &self,
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
        .fetch_all(&self.writer)
        .await?;
        let versions = rows.into_iter().map(|row| VersionRef {
            key: row.key,
            version: row.version.cast_unsigned(),
        });
        Ok(versions.collect())
    }

    /// Whether an instance of the version is running or suspended.
    pub async fn is_running(
        &self,
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
        Ok(found.fetch_one(&self.writer).await?)
    }
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
}

impl Row {
    fn kept(self) -> Kept {
        Kept {
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
        }
    }
}
