//! Signals to all: reads the subscribed state instances in portions, and records the progress of the delivery.

use uuid::Uuid;

use super::signals::{StoredSignal, SubscriberPosition};
use super::time::Time;
use super::{Store, StoreError};
use wrkflw_core::ids::{InstanceId, StateId, TenantId};

/// A state instance that subscribes to a signal to all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recipient {
    pub instance: InstanceId,
    pub place: SubscriberPosition,
}

/// The results of one portion.
#[derive(Debug, Clone, Copy, Default)]
pub struct Portion {
    /// The last state instance that is done; none if none of this portion is.
    pub last: Option<SubscriberPosition>,
    pub taken: u32,
    pub refused: u32,
    /// No state instance is left.
    pub is_last: bool,
}

/// The next state instances, after the place `after`, that subscribed to the signal before it came.
pub async fn recipients(
    store: &Store,
    tenant: TenantId,
    signal: &StoredSignal,
    after: SubscriberPosition,
    limit: i64,
) -> Result<Vec<Recipient>, StoreError> {
    let rows = sqlx::query!(
        r#"select s.instance_id, s.entered_at as "entered_at: Time", s.state_id from signal_subscription s
        where s.tenant_id = $1 and s.correlation = $2 and s.trigger = $3 and (s.entered_at, s.state_id) > ($4, $5)
          and s.subscribed_at <= $6 and ($7::text is null or exists (
              select from instance i
              where i.tenant_id = s.tenant_id and i.id = s.instance_id and i.definition_key = $7
          ))
        order by s.entered_at, s.state_id
        limit $8"#,
        tenant.0,
        signal.correlation,
        signal.trigger,
        Time(after.entered_at) as _,
        after.state.0,
        Time(signal.received_at) as _,
        signal.definition.as_deref(),
        limit
    )
    .fetch_all(&store.writer)
    .await?;
    let recipients = rows.into_iter().map(|row| Recipient {
        instance: InstanceId(row.instance_id),
        place: SubscriberPosition {
            entered_at: row.entered_at.0,
            state: StateId(row.state_id),
        },
    });
    Ok(recipients.collect())
}

/// Records a portion that began after the place `after`. Changes nothing if another host has recorded it meanwhile.
pub async fn record_portion(
    store: &Store,
    tenant: TenantId,
    signal: Uuid,
    after: SubscriberPosition,
    portion: Portion,
) -> Result<(), StoreError> {
    let last = portion.last.unwrap_or(after);
    sqlx::query!(
        "update signal_inbox
        set after_at = $5, after_state = $6, taken = taken + $7, refused = refused + $8,
            delivered_at = case when $9 then now() end
        where tenant_id = $1 and id = $2 and to_all and delivered_at is null and after_at = $3 and after_state = $4",
        tenant.0,
        signal,
        Time(after.entered_at) as _,
        after.state.0,
        Time(last.entered_at) as _,
        last.state.0,
        portion.taken.cast_signed(),
        portion.refused.cast_signed(),
        portion.is_last
    )
    .execute(&store.writer)
    .await?;
    Ok(())
}
