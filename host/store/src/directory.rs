//! The directory: tenants, people, groups, memberships, managers, absences and roles.
//!
//! Every write after the creation of a tenant is one [`Change`]. Its first statement locks the tenant's directory stream, so changes run
//! one after the other. Its last statement appends an entry. Only permissions of roles are deleted. Ended memberships, managers and
//! absences keep their period, and [`moment`] reads the directory of any time.

pub mod absences;
pub mod lists;
pub mod managers;
pub mod memberships;
pub mod moment;
pub mod people;
mod reassessments;
pub mod roles;
pub mod tenants;

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

/// The id of a tenant's directory stream.
const DIRECTORY: Uuid = Uuid::nil();

/// Whether a change is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Run {
    Real,
    /// Checked completely, then rolled back.
    Dry,
}

/// The result of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Put {
    Done,
    /// The person, group or absence does not exist.
    Missing,
    /// The id belongs to another absence.
    Taken,
    Refused(Refusal),
}

/// A change of a tenant's directory, whose stream it has locked.
struct Change<'a> {
    transaction: Transaction<'static, Postgres>,
    tenant: TenantId,
    note: &'a Note<'a>,
    run: Run,
    /// The time of its entry. It is never before the previous change, even if the host's clock is behind. The present state and
    /// due times use the time of the note instead, because a clock that was once ahead would delay them.
    at: Timestamp,
}

/// Locks the directory stream of the tenant and begins a change.
async fn change<'a>(
    store: &Store,
    tenant: TenantId,
    note: &'a Note<'a>,
    run: Run,
) -> Result<Change<'a>, StoreError> {
    let mut transaction = store.writer.begin().await?;
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

impl Change<'_> {
    fn connection(&mut self) -> &mut PgConnection {
        &mut self.transaction
    }

    /// Appends the entry, and commits or rolls back.
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
