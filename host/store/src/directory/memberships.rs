//! Memberships in groups, with their periods.

use super::reassessments::{self, Whose};
use super::{Change, Put, Run};
use crate::pool::transacted;
use crate::streams::Note;
use crate::time::Time;
use crate::{Store, StoreError};
use wrkflw_core::ids::TenantId;

/// A change of a membership.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    Begins,
    Ends,
}

/// Begins or ends a membership. Writes nothing if this changes nothing.
pub async fn put(
    store: &Store,
    tenant: TenantId,
    (group, person): (&str, &str),
    membership: Membership,
    run: Run,
    note: &Note<'_>,
) -> Result<Put, StoreError> {
    transacted(Box::pin(async move {
        let mut change = super::change(store, tenant, note, run).await?;
        let known = sqlx::query_scalar!(
            r#"select exists(select from person where tenant_id = $1 and id = $2)
            and exists(select from "group" where tenant_id = $1 and id = $3) as "known!""#,
            tenant.0,
            person,
            group
        )
        .fetch_one(change.connection())
        .await?;
        if !known {
            return Ok(Put::Missing);
        }
        let (changed, kind) = match membership {
            Membership::Begins => (begin(&mut change, group, person).await?, "MEMBER_ADDED"),
            Membership::Ends => (end(&mut change, group, person).await?, "MEMBER_REMOVED"),
        };
        if changed {
            let at = note.at;
            let whose = [(Whose::Group(group), at), (Whose::User(person), at)];
            reassessments::reassessment(&mut change, &whose).await?;
            let payload = serde_json::json!({ "group": group, "person": person });
            change.finish(kind, &payload).await?;
        }
        Ok(Put::Done)
    }))
    .await
}

async fn begin(change: &mut Change<'_>, group: &str, person: &str) -> Result<bool, StoreError> {
    // A membership that began and ended at this time continues, because its key has the time of its beginning.
    let done = sqlx::query!(
        "insert into membership (tenant_id, person_id, group_id, valid_from)
         select $1, $2, $3, $4
         where not exists (
             select from membership where tenant_id = $1 and person_id = $2 and group_id = $3 and valid_to is null
         )
         on conflict (tenant_id, person_id, group_id, valid_from) do update set valid_to = null",
        change.tenant.0,
        person,
        group,
        Time(change.at) as _
    )
    .execute(change.connection())
    .await?;
    Ok(done.rows_affected() > 0)
}

async fn end(change: &mut Change<'_>, group: &str, person: &str) -> Result<bool, StoreError> {
    let done = sqlx::query!(
        "update membership set valid_to = $4 where tenant_id = $1 and person_id = $2 and group_id = $3 and valid_to is null",
        change.tenant.0,
        person,
        group,
        Time(change.at) as _
    )
    .execute(change.connection())
    .await?;
    Ok(done.rows_affected() > 0)
}
