//! Inserts reassessments when somebody's groups, manager or absences change now or later.

use jiff::Timestamp;

use super::Change;
use crate::StoreError;
use crate::time::Time;

/// The person or group that a change concerns.
#[derive(Debug, Clone, Copy)]
pub(super) enum Whose<'a> {
    User(&'a str),
    Group(&'a str),
}

impl Change<'_> {
    /// Inserts one row for each, due at the given moment. A change has two ids, its entry's and its command's, so there are
    /// at most two rows.
    pub(super) async fn reassessment(
        &mut self,
        whose: &[(Whose<'_>, Timestamp)],
    ) -> Result<(), StoreError> {
        let ids = [self.note.id, self.note.command.0];
        assert!(whose.len() <= ids.len());
        for (id, (whose, due)) in ids.into_iter().zip(whose) {
            let (kind, principal) = match whose {
                Whose::User(id) => ("user", id),
                Whose::Group(id) => ("group", id),
            };
            sqlx::query!(
                "insert into reassessment (tenant_id, id, kind, principal, created_at, due_at) values ($1, $2, $3, $4, now(), $5)",
                self.tenant.0,
                id,
                kind,
                principal,
                Time(*due) as _
            )
            .execute(self.connection())
            .await?;
        }
        Ok(())
    }
}
