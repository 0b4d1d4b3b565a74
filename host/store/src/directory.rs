//! Tenants, people, groups, who is in which, who manages whom and who stands in for whom.
//!
//! Every change is one [`Change`]: it holds the tenant's directory stream from its first statement on, so that two
//! changes never judge the same state, and it leaves an entry there. Nothing is deleted: what ended keeps its period,
//! and [`moment`] tells what held at any time.

pub mod absences;
pub mod managers;
pub mod memberships;
pub mod moment;
pub mod people;
mod reassessments;
mod tenants;

use jiff::Timestamp;
use sqlx::{PgConnection, Postgres, Transaction};
use uuid::Uuid;

use super::streams::{Note, append, lock};
use super::time::Time;
use super::{Store, StoreError};
use wrkflw_core::audit::{Stream, StreamKind};
use wrkflw_core::ids::TenantId;
use wrkflw_core::refusal::Refusal;

pub use memberships::Membership;

/// The one directory stream of a tenant.
const DIRECTORY: Uuid = Uuid::nil();

/// Whether a change is to stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Run {
    Real,
    /// Judged in full, then taken back.
    Dry,
}

/// What became of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Put {
    Done,
    /// What it is about is not there.
    Missing,
    /// Its id stands for something else.
    Taken,
    Refused(Refusal),
}

/// One change of a tenant's directory, which no other one overtakes.
struct Change<'a> {
    transaction: Transaction<'static, Postgres>,
    tenant: TenantId,
    note: &'a Note<'a>,
    run: Run,
    /// Never before the change that came before it, whatever a host's clock says.
    at: Timestamp,
}

impl Store {
    async fn change<'a>(
        &self,
        tenant: TenantId,
        note: &'a Note<'a>,
        run: Run,
    ) -> Result<Change<'a>, StoreError> {
        let mut transaction = self.writer.begin().await?;
        let stream = stream(tenant);
        let head = lock(&mut transaction, stream).await?;
        let last = sqlx::query_scalar!(
            r#"select occurred_at as "at: Time" from audit_entry
            where tenant_id = $1 and stream_kind = $2 and stream_id = $3 and seq = $4"#,
            tenant.0,
            stream.kind.name(),
            stream.id,
            head.seq.cast_signed()
        )
        .fetch_optional(&mut *transaction)
        .await?;
        Ok(Change {
            transaction,
            tenant,
            note,
            run,
            at: last.map_or(note.at, |last| note.at.max(last.0)),
        })
    }
}

impl Change<'_> {
    fn connection(&mut self) -> &mut PgConnection {
        &mut self.transaction
    }

    /// Leaves the entry and ends the change.
    async fn finish(mut self, kind: &str, payload: &serde_json::Value) -> Result<(), StoreError> {
        let note = Note {
            at: self.at,
            ..*self.note
        };
        wrkflw_fault::point("directory.changed");
        let draft = note.draft(kind, 0, payload);
        append(&mut self.transaction, stream(self.tenant), draft).await?;
        wrkflw_fault::point("directory.noted");
        match self.run {
            Run::Real => self.transaction.commit().await?,
            Run::Dry => self.transaction.rollback().await?,
        }
        Ok(())
    }
}

fn stream(tenant: TenantId) -> Stream {
    Stream {
        tenant,
        kind: StreamKind::Directory,
        id: DIRECTORY,
    }
}
