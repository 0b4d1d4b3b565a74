//! What a verifier reads, as it stood at one moment: a [`Snapshot`] sees each instance with all that the same commits
//! wrote. It judges nothing, and a row that no host would have written is handed on as it is.
//!
//! `instances` reads instances with their tasks and decisions, `replies` what is kept for repetitions, `rows` all else that entries are held against, `streams`
//! entries and heads, `tree` leaves and checkpoints, `versions` what evaluations ran on.

pub mod instances;
pub mod replies;
pub mod rows;
pub mod streams;
pub mod tree;
pub mod versions;

use sqlx::{Postgres, Transaction};

use super::{Store, StoreError};
use crate::domain::ids::{InstanceId, TenantId};
use crate::domain::instance::Entity;

pub use instances::{DecisionRow, InstanceRow, TaskRow};
pub use streams::{EntryRow, HeadRow, StreamRow};

/// One tenant at one moment.
pub struct Snapshot {
    tenant: TenantId,
    pub(super) transaction: Transaction<'static, Postgres>,
}

/// Which instances are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    All,
    One(InstanceId),
    About(Entity),
}

impl Store {
    /// Tenants after `after` by their number, with their names.
    pub async fn tenants(
        &self,
        after: Option<TenantId>,
        limit: i64,
    ) -> Result<Vec<(TenantId, String)>, StoreError> {
        let rows = sqlx::query!(
            "select id, name from tenant where id > $1 order by id limit $2",
            after.map_or(0, |after| after.0),
            limit
        )
        .fetch_all(&self.reader)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| (TenantId(row.id), row.name))
            .collect())
    }

    /// What the tenant's tables hold at this moment, for as long as the snapshot is kept.
    pub async fn snapshot(&self, tenant: TenantId) -> Result<Snapshot, StoreError> {
        let begin = "begin isolation level repeatable read read only";
        let mut transaction = self.reader.begin_with(begin).await?;
        sqlx::query_scalar!(
            "select set_config('wrkflw.tenant', $1, true) || set_config('timezone', 'UTC', true)",
            tenant.to_string()
        )
        .fetch_one(&mut *transaction)
        .await?;
        Ok(Snapshot {
            tenant,
            transaction,
        })
    }
}
