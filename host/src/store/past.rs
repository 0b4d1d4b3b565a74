//! Instances as they were: folded from their audit entries up to a moment, never from the tables of the present.

use jiff::Timestamp;

use super::time::Time;
use super::{Store, StoreError};
use crate::domain::apply::{Stamp, apply};
use crate::domain::event::Event;
use crate::domain::ids::{InstanceId, TenantId};
use crate::domain::instance::Instance;

/// How many entries are folded at the most.
pub const ENTRIES_MAX: u64 = 20_000;
/// How many entries are read at a time.
const PAGE: i64 = 500;

/// An instance at a moment.
#[derive(Debug, Clone, PartialEq)]
pub enum Past {
    /// It had not begun, or never did.
    NotBegun,
    Instance(Box<Instance>),
    /// It had more than [`ENTRIES_MAX`] entries by then.
    TooLong,
}

impl Store {
    /// The instance as it was at the moment: with everything that happened until then, and nothing since.
    pub async fn instance_at(
        &self,
        tenant: TenantId,
        id: InstanceId,
        at: Timestamp,
    ) -> Result<Past, StoreError> {
        let mut connection = self.reading(tenant).await?;
        let (mut instance, mut seq) = (None, 0);
        while seq <= ENTRIES_MAX.cast_signed() {
            let rows = sqlx::query!(
                r#"select seq, revision, actor, payload, occurred_at as "at: Time" from audit_entry
                where tenant_id = $1 and stream_kind = 'instance' and stream_id = $2 and seq > $3
                order by seq
                limit $4"#,
                tenant.0,
                id.0,
                seq,
                PAGE
            )
            .fetch_all(&mut *connection)
            .await?;
            let wrong =
                |error: &dyn std::fmt::Display| StoreError::inconsistent("audit_entry", id, error);
            for row in &rows {
                // An entry may be large: others have their turn between two.
                tokio::task::yield_now().await;
                if row.at.0 > at {
                    return Ok(instance.map_or(Past::NotBegun, Past::of));
                }
                let event: Event =
                    serde_json::from_str(&row.payload).map_err(|error| wrong(&error))?;
                let stamp = Stamp {
                    instance: id,
                    revision: row.revision.cast_unsigned(),
                    at: row.at.0,
                    actor: row.actor.as_deref(),
                };
                instance = Some(apply(instance, &event, stamp).map_err(|error| wrong(&error))?);
                seq = row.seq;
            }
            if rows.len() < usize::try_from(PAGE).expect("a small number") {
                return Ok(instance.map_or(Past::NotBegun, Past::of));
            }
        }
        Ok(Past::TooLong)
    }
}

impl Past {
    fn of(instance: Instance) -> Past {
        Past::Instance(Box::new(instance))
    }
}
