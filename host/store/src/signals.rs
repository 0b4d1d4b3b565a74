//! Signals sent by correlation: kept from their arrival, given to one instance each.
//!
//! A signal is assigned before it is delivered, so that two hosts never give it to two instances; the job put beside the
//! assignment, which has the signal's id, delivers it when the host that assigned it dies. That the instance counts it
//! once is the commit's to see. Times are the database's: a host's clock may be off by more than a signal is kept.

use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use super::time::Time;
use super::{Store, StoreError};
use wrkflw_core::ids::{InstanceId, TenantId, VersionRef};
use wrkflw_core::json::Json;

/// How long a signal waits for somebody who takes it.
pub const SIGNALS_KEPT: Duration = Duration::from_hours(30 * 24);
/// How long an id stands for a signal, and its sender is told what became of it.
pub const SIGNALS_TOLD: Duration = Duration::from_hours(60 * 24);
/// How many signals of one sender wait at a time: under one name, and under all.
pub const INBOX_MAX: i64 = 100;
pub const INBOX_OF_SENDER_MAX: i64 = 10_000;
/// How many kinds of state instances are told apart that have one name: states of versions of definitions.
const WAITING_MAX: i64 = 1_000;
/// How many versions are asked whether they take a signal.
const VERSIONS_MAX: i64 = 10_000;

/// A signal as it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSignal {
    /// The host's id for it, should it be the first that the sender's id stands for.
    pub signal: Uuid,
    pub correlation: String,
    /// The sender's.
    pub id: String,
    pub trigger: String,
    /// For instances of this definition alone.
    pub definition: Option<String>,
    pub input: Json,
    pub sender_id: String,
    /// Who sent it, in the words of the engine; its `id` is `sender_id`.
    pub sender: Json,
}

/// A signal as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The host's id.
    pub signal: Uuid,
    pub correlation: String,
    /// The sender's.
    pub id: String,
    pub trigger: String,
    /// For instances of this definition alone.
    pub definition: Option<String>,
    pub input: Json,
    /// Who sent it, in the words of the engine.
    pub sender: Json,
    pub received_at: Timestamp,
    /// To whom it is given.
    pub instance: Option<InstanceId>,
    /// The instance has it, or has refused it for good.
    pub is_settled: bool,
}

/// What became of a signal that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keeping {
    /// It is kept; or this is the one that the sender's id stands for already.
    Kept(Kept),
    /// So many of its sender wait under the name.
    FullUnderName,
    /// So many of its sender wait.
    Full,
}

/// The oldest state instance of its kind that has the correlation of a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correlating {
    pub instance: InstanceId,
    pub definition: VersionRef,
    pub state: String,
    /// Its instance rests, and so do all others of the kind.
    pub is_suspended: bool,
}

/// Which signals a state instance takes.
#[derive(Debug, Clone, Copy)]
pub struct Taking<'a> {
    pub correlation: &'a str,
    /// Key of its definition.
    pub definition: &'a str,
    pub triggers: &'a [String],
    /// Those that came before do not count.
    pub since: Option<Timestamp>,
}

impl Store {
    /// Keeps a signal, unless the sender's id stands for one already: then that one is what counts. An id stands for
    /// nothing more once its signal was refused for good, or waited in vain.
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
            // It was there and was refused at the same moment, to somebody who sent the same.
            None => return Err(StoreError::Lost),
        })
    }

    /// The signal that the sender's id stands for.
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

    /// The signal of this id of the host's; or, of a job that a host of an earlier release left, the one of the
    /// sender's id that was given to the instance.
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

    /// The oldest signal that nobody has been given and that the state instance takes.
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

    /// Who waits under this name: of each state of each version the oldest state instance; those of instances that go on first,
    /// and of them the oldest.
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

    /// The versions of a definition, or of all, that new instances take; or the others, the newest first.
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

    /// Whether an instance of the version has not ended.
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
