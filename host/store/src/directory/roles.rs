//! Roles, and what each permits. Only the table `role_permission` counts. The defaults of a new tenant are written into it once.

use std::collections::BTreeMap;

use super::{Put, Run};
use crate::pool::transacted;
use crate::streams::Note;
use crate::{Reader, Store, StoreError};
use wrkflw_core::ids::TenantId;
use wrkflw_core::refusal::Refusal;

/// Maximum roles of a tenant.
pub(crate) const ROLES_MAX: i64 = 100;
/// The permission to change roles. Some role has it at all times, so that a tenant cannot lock itself out.
pub const ROLE_WRITE: &str = "role:write";

/// A role of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Role {
    pub id: String,
    /// In order.
    pub permissions: Vec<String>,
}

/// All roles of the tenant, by id, or the one with this id.
pub async fn list(
    reader: &Reader,
    tenant: TenantId,
    id: Option<&str>,
) -> Result<Vec<Role>, StoreError> {
    let rows = sqlx::query!(
        "select role, permission from role_permission
         where tenant_id = $1 and ($2::text is null or role = $2) order by role, permission",
        tenant.0,
        id
    )
    .fetch_all(&mut reader.reading(tenant).await?)
    .await?;
    let mut roles: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in rows {
        roles.entry(row.role).or_default().push(row.permission);
    }
    let role = |(id, permissions)| Role { id, permissions };
    Ok(roles.into_iter().map(role).collect())
}

/// Gives the role exactly these permissions. Without any, the role is deleted. Writes nothing if the role has them already.
pub async fn put(
    store: &Store,
    tenant: TenantId,
    role: &str,
    permissions: &[String],
    run: Run,
    note: &Note<'_>,
) -> Result<Put, StoreError> {
    transacted(Box::pin(async move {
        let mut change = super::change(store, tenant, note, run).await?;
        let done = sqlx::query!(
            r#"with gone as (
                delete from role_permission where tenant_id = $1 and role = $2 and not permission = any($3) returning 1
            ), new as (
                insert into role_permission (tenant_id, role, permission)
                select distinct $1::int, $2, unnest($3::text[]) on conflict do nothing returning 1
            ) select (select count(*) from gone) + (select count(*) from new) as "changed!""#,
            tenant.0,
            role,
            permissions
        )
        .fetch_one(change.connection())
        .await?;
        if done.changed == 0 {
            return Ok(Put::Done);
        }
        let after = sqlx::query!(
            r#"select count(distinct role) as "roles!", coalesce(bool_or(permission = $2), false) as "writable!"
            from role_permission where tenant_id = $1"#,
            tenant.0,
            ROLE_WRITE
        )
        .fetch_one(change.connection())
        .await?;
        if !after.writable {
            return Ok(Put::Refused(Refusal::LastRoleWriter));
        }
        if after.roles > ROLES_MAX {
            return Ok(Put::Refused(Refusal::TooManyRoles(ROLES_MAX)));
        }
        let payload = serde_json::json!({ "role": role, "permissions": permissions });
        change.finish("ROLE_PUT", &payload).await?;
        Ok(Put::Done)
    }))
    .await
}
