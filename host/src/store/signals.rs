//! Signals sent by correlation: kept from their arrival, given to one instance each.
//!
//! A signal is assigned before it is delivered, so that two hosts never give it to two instances; the job put beside the
//! assignment delivers it when the host that assigned it dies. That the instance counts it once is the commit's to see.

use jiff::Timestamp;
use uuid::Uuid;

use super::time::Time;
use super::{Store, StoreError};
use crate::domain::ids::{InstanceId, TenantId, VersionRef};
use crate::domain::json::Json;

/// The stays that are looked at for one that takes a signal.
const STAYS_MAX: i64 = 100;

/// A signal as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub correlation: String,
    pub id: String,
    pub trigger: String,
    /// For instances of this definition alone.
    pub definition: Option<String>,
    pub input: Json,
    /// Who sent it, in the words of the engine.
    pub sender: Json,
    /// To whom it is given.
    pub instance: Option<InstanceId>,
    pub is_delivered: bool,
}

/// A stay that has the correlation of a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correlating {
    pub instance: InstanceId,
    pub definition: VersionRef,
    pub state: String,
}

impl Store {
    /// Keeps a signal, unless one of its id is kept: then that one is what counts. None where `most` are undelivered.
    pub async fn keep_signal(
        &self,
        tenant: TenantId,
        signal: &Kept,
        now: Timestamp,
        most: i64,
    ) -> Result<Option<Kept>, StoreError> {
        sqlx::query!(
            "insert into signal_inbox
                (tenant_id, correlation, signal_id, trigger, definition_key, input, sender, received_at)
             select $1, $2, $3, $4, $5, $6, $7, $8
             where (select count(*) from (
                 select from signal_inbox o where o.tenant_id = $1 and o.correlation = $2 and o.delivered_at is null limit $9
             ) as undelivered) < $9
             on conflict do nothing",
            tenant.0,
            signal.correlation,
            signal.id,
            signal.trigger,
            signal.definition,
            signal.input.as_str(),
            signal.sender.as_str(),
            Time(now) as _,
            most
        )
        .execute(&self.writer)
        .await?;
        self.kept_signal(tenant, &signal.correlation, &signal.id)
            .await
    }

    /// The signal of this id that was sent for this correlation.
    pub async fn kept_signal(
        &self,
        tenant: TenantId,
        correlation: &str,
        id: &str,
    ) -> Result<Option<Kept>, StoreError> {
        let row = sqlx::query_as!(
            Row,
            "select signal_id, trigger, definition_key, input, sender, instance_id, delivered_at is not null as \"is_delivered!\"
             from signal_inbox where tenant_id = $1 and correlation = $2 and signal_id = $3",
            tenant.0,
            correlation,
            id
        )
        .fetch_optional(&self.writer)
        .await?;
        Ok(row.map(|row| row.kept(correlation)))
    }

    /// Those that nobody has been given yet, for instances of this definition, the oldest first; since a moment, or all.
    pub async fn unclaimed_signals(
        &self,
        tenant: TenantId,
        correlation: &str,
        definition: &str,
        since: Option<Timestamp>,
        limit: i64,
    ) -> Result<Vec<Kept>, StoreError> {
        let rows = sqlx::query_as!(
            Row,
            "select signal_id, trigger, definition_key, input, sender, instance_id, delivered_at is not null as \"is_delivered!\"
             from signal_inbox
             where tenant_id = $1 and correlation = $2 and delivered_at is null and instance_id is null
               and (definition_key is null or definition_key = $3)
               and ($4::timestamptz is null or received_at >= $4)
             order by received_at, signal_id
             limit $5",
            tenant.0,
            correlation,
            definition,
            since.map(Time) as _,
            limit
        )
        .fetch_all(&self.writer)
        .await?;
        Ok(rows.into_iter().map(|row| row.kept(correlation)).collect())
    }

    /// The stays of instances that have not ended which signals find by this name, the oldest first.
    pub async fn correlating(
        &self,
        tenant: TenantId,
        correlation: &str,
        definition: Option<&str>,
    ) -> Result<Vec<Correlating>, StoreError> {
        let rows = sqlx::query!(
            "select s.instance_id, s.name, i.definition_key, i.definition_version
             from state_instance s join instance i on i.tenant_id = s.tenant_id and i.id = s.instance_id
             where s.tenant_id = $1 and s.correlation = $2 and s.left_at is null and not s.waiting
               and ($3::text is null or i.definition_key = $3)
             order by s.entered_at, s.id
             limit $4",
            tenant.0,
            correlation,
            definition,
            STAYS_MAX
        )
        .fetch_all(&self.writer)
        .await?;
        let stays = rows.into_iter().map(|row| Correlating {
            instance: InstanceId(row.instance_id),
            definition: VersionRef {
                key: row.definition_key,
                version: row.definition_version.cast_unsigned(),
            },
            state: row.name,
        });
        Ok(stays.collect())
    }

    /// Gives a signal to an instance, with a job that delivers it from `later` on; false where it has been given away.
    pub async fn assign_signal(
        &self,
        tenant: TenantId,
        signal: &Kept,
        instance: InstanceId,
        job: Uuid,
        later: Timestamp,
    ) -> Result<bool, StoreError> {
        let payload = serde_json::json!({ "correlation": signal.correlation, "signal": signal.id });
        let payload = Json::of(&payload);
        let assigned = sqlx::query!(
            "with assigned as (
                 update signal_inbox set instance_id = $4
                 where tenant_id = $1 and correlation = $2 and signal_id = $3 and instance_id is null
                 returning tenant_id
             )
             insert into job (tenant_id, id, kind, instance_id, due_at, payload)
             select tenant_id, $5, 'match_signals', $4, $6, $7 from assigned",
            tenant.0,
            signal.correlation,
            signal.id,
            instance.0,
            job,
            Time(later) as _,
            payload.as_str()
        )
        .execute(&self.writer)
        .await?;
        Ok(assigned.rows_affected() == 1)
    }

    /// The instance has a signal, or has refused it for good.
    pub async fn delivered_signal(
        &self,
        tenant: TenantId,
        signal: &Kept,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        sqlx::query!(
            "update signal_inbox set delivered_at = $4
             where tenant_id = $1 and correlation = $2 and signal_id = $3 and delivered_at is null",
            tenant.0,
            signal.correlation,
            signal.id,
            Time(now) as _
        )
        .execute(&self.writer)
        .await?;
        Ok(())
    }

    /// Takes a signal back from an instance, with the job that would deliver it.
    pub async fn release_signal(
        &self,
        tenant: TenantId,
        signal: &Kept,
        job: Uuid,
    ) -> Result<(), StoreError> {
        sqlx::query!(
            "with released as (
                 update signal_inbox set instance_id = null
                 where tenant_id = $1 and correlation = $2 and signal_id = $3 and delivered_at is null
             )
             delete from job where tenant_id = $1 and id = $4",
            tenant.0,
            signal.correlation,
            signal.id,
            job
        )
        .execute(&self.writer)
        .await?;
        Ok(())
    }

    /// Forgets a signal whose sender was told that it is refused, with the job that would deliver it.
    pub async fn forget_signal(
        &self,
        tenant: TenantId,
        signal: &Kept,
        job: Uuid,
    ) -> Result<(), StoreError> {
        sqlx::query!(
            "with forgotten as (
                 delete from signal_inbox
                 where tenant_id = $1 and correlation = $2 and signal_id = $3 and delivered_at is null
             )
             delete from job where tenant_id = $1 and id = $4",
            tenant.0,
            signal.correlation,
            signal.id,
            job
        )
        .execute(&self.writer)
        .await?;
        Ok(())
    }
}

struct Row {
    signal_id: String,
    trigger: String,
    definition_key: Option<String>,
    input: String,
    sender: String,
    instance_id: Option<Uuid>,
    is_delivered: bool,
}

impl Row {
    fn kept(self, correlation: &str) -> Kept {
        Kept {
            correlation: correlation.to_owned(),
            id: self.signal_id,
            trigger: self.trigger,
            definition: self.definition_key,
            input: Json::from_canonical(self.input),
            sender: Json::from_canonical(self.sender),
            instance: self.instance_id.map(InstanceId),
            is_delivered: self.is_delivered,
        }
    }
}
