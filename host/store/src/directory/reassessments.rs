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

/// Inserts one row for each, due at the given moment. A change has two ids, its entry's and its command's, so there are at
/// most two rows. A row that is due at once has the time of the note. The time of the change may be far ahead, because an
/// earlier host's clock was ahead.
///
/// If this change is due, a due row that was never claimed serves it, too: the lock keeps workers from the row until the
/// commit, so the walk begins after that. The age of the row is that of its last change, because the last walk must begin
/// after all commands that read the directory before the change. The due time stays, so the row keeps its turn.
pub(super) async fn reassessment(
    change: &mut Change<'_>,
    whose: &[(Whose<'_>, Timestamp)],
) -> Result<(), StoreError> {
    let ids = [change.note.id, change.note.command.0];
    assert!(whose.len() <= ids.len());
    for (id, (whose, due)) in ids.into_iter().zip(whose) {
        let (kind, principal) = match whose {
            Whose::User(id) => ("user", id),
            Whose::Group(id) => ("group", id),
        };
        sqlx::query!(
            "with unclaimed as (
                select r.tenant_id, r.id from reassessment r
                where r.tenant_id = $1 and r.kind = $3 and r.principal = $4 and r.lease_until is null
                  and r.due_at <= $6::timestamptz and $5::timestamptz <= $6::timestamptz
                order by r.id limit 1
                for update skip locked
            ),
            renewed as (
                update reassessment r set created_at = now() from unclaimed u
                where r.tenant_id = u.tenant_id and r.id = u.id
                returning r.id
            )
            insert into reassessment (tenant_id, id, kind, principal, created_at, due_at)
            select $1::int, $2::uuid, $3::text, $4::text, now(), $5::timestamptz where not exists (select from renewed)",
            change.tenant.0,
            id,
            kind,
            principal,
            Time(*due) as _,
            Time(change.note.at) as _
        )
        .execute(change.connection())
        .await?;
    }
    Ok(())
}
