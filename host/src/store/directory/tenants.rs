//! Tenants, with what their roles permit.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::domain::actor::Actor;
use crate::domain::ids::TenantId;
use crate::store::load::Principalship;
use crate::store::pool::transacted;
use crate::store::time::Time;
use crate::store::{Store, StoreError};

impl Store {
    /// The tenant of this name, made with its roles when it is new.
    pub async fn ensure_tenant(
        &self,
        name: &str,
        roles: &BTreeMap<&str, &[&str]>,
        at: Timestamp,
    ) -> Result<TenantId, StoreError> {
        transacted(Box::pin(async move {
        let mut transaction = self.writer.begin().await?;
        let created = sqlx::query_scalar!(
            "insert into tenant (name, created_at) values ($1, $2) on conflict do nothing returning id",
            name,
            Time(at) as _
        )
        .fetch_optional(&mut *transaction)
        .await?;
        if let Some(id) = created {
            for (role, permissions) in roles {
                let permissions: Vec<String> =
                    permissions.iter().map(ToString::to_string).collect();
                sqlx::query!(
                    "insert into role_permission (tenant_id, role, permission) select $1, $2, unnest($3::text[])",
                    id,
                    role,
                    &permissions
                )
                .execute(&mut *transaction)
                .await?;
            }
        }
        transaction.commit().await?;
        match created {
            Some(id) => Ok(TenantId(id)),
            None => self
                .tenant(name)
                .await?
                .ok_or_else(|| sqlx::Error::RowNotFound.into()),
        }
    })).await
    }

    /// The number of the tenant of this name.
    pub async fn tenant(&self, name: &str) -> Result<Option<TenantId>, StoreError> {
        let id = sqlx::query_scalar!("select id from tenant where name = $1", name)
            .fetch_optional(&self.writer)
            .await?;
        Ok(id.map(TenantId))
    }

    /// What the subject is at this moment.
    pub async fn standing(&self, who: &Principalship) -> Result<Actor, StoreError> {
        let row = sqlx::query!(
            r#"select
                array(
                    select group_id from membership
                    where tenant_id = $1 and person_id = $2 and valid_to is null order by group_id
                ) as "groups!",
                array(
                    select distinct permission from role_permission
                    where tenant_id = $1 and role = any($3) order by permission
                ) as "permissions!""#,
            who.tenant.0,
            who.subject,
            &who.roles
        )
        .fetch_one(&self.writer)
        .await?;
        Ok(Actor {
            id: who.subject.clone(),
            groups: row.groups,
            permissions: row.permissions,
            on_behalf_of: None,
            stands_in_for: Vec::new(),
        })
    }
}
