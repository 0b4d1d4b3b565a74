//! Tenants, people, groups and memberships. Every change leaves an entry in the tenant's directory stream.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use sqlx::PgConnection;
use utoipa::ToSchema;
use uuid::Uuid;

use super::load::Principalship;
use super::streams::{Note, append};
use super::time::Time;
use super::{Store, StoreError};
use crate::domain::actor::Actor;
use crate::domain::audit::{Stream, StreamKind};
use crate::domain::ids::TenantId;

/// The one directory stream of a tenant.
const DIRECTORY: Uuid = Uuid::nil();

/// Somebody who may act.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Person {
    pub id: String,
    pub name: String,
    pub groups: Vec<String>,
}

/// People who may act alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Group {
    pub id: String,
    pub name: String,
    pub members: Vec<String>,
}

/// Whether a membership is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    Begins,
    Ends,
}

impl Store {
    /// The tenant of this name, made with its roles when it is new.
    pub async fn ensure_tenant(
        &self,
        name: &str,
        roles: &BTreeMap<&str, &[&str]>,
        at: Timestamp,
    ) -> Result<TenantId, StoreError> {
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

    pub async fn person(&self, tenant: TenantId, id: &str) -> Result<Option<Person>, StoreError> {
        let row = sqlx::query!(
            r#"select p.id, p.name, array(
                select group_id from membership m where m.tenant_id = $1 and m.person_id = $2 and m.valid_to is null order by group_id
            ) as "groups!" from person p where p.tenant_id = $1 and p.id = $2"#,
            tenant.0,
            id
        )
        .fetch_optional(&mut *self.reading(tenant).await?)
        .await?;
        Ok(row.map(|row| Person {
            id: row.id,
            name: row.name,
            groups: row.groups,
        }))
    }

    pub async fn group(&self, tenant: TenantId, id: &str) -> Result<Option<Group>, StoreError> {
        let row = sqlx::query!(
            r#"select g.id, g.name, array(
                select person_id from membership m where m.tenant_id = $1 and m.group_id = $2 and m.valid_to is null order by person_id
            ) as "members!" from "group" g where g.tenant_id = $1 and g.id = $2"#,
            tenant.0,
            id
        )
        .fetch_optional(&mut *self.reading(tenant).await?)
        .await?;
        Ok(row.map(|row| Group {
            id: row.id,
            name: row.name,
            members: row.members,
        }))
    }

    /// Adds the person, or renames them.
    pub async fn put_person(
        &self,
        tenant: TenantId,
        id: &str,
        name: &str,
        note: &Note<'_>,
    ) -> Result<(), StoreError> {
        let mut transaction = self.writer.begin().await?;
        sqlx::query!(
            "insert into person (tenant_id, id, name, created_at) values ($1, $2, $3, $4)
             on conflict (tenant_id, id) do update set name = excluded.name",
            tenant.0,
            id,
            name,
            Time(note.at) as _
        )
        .execute(&mut *transaction)
        .await?;
        record(
            &mut transaction,
            tenant,
            note,
            "PERSON_PUT",
            &serde_json::json!({ "person": id, "name": name }),
        )
        .await?;
        Ok(transaction.commit().await?)
    }

    /// Adds the group, or renames it.
    pub async fn put_group(
        &self,
        tenant: TenantId,
        id: &str,
        name: &str,
        note: &Note<'_>,
    ) -> Result<(), StoreError> {
        let mut transaction = self.writer.begin().await?;
        sqlx::query!(
            r#"insert into "group" (tenant_id, id, name, created_at) values ($1, $2, $3, $4)
             on conflict (tenant_id, id) do update set name = excluded.name"#,
            tenant.0,
            id,
            name,
            Time(note.at) as _
        )
        .execute(&mut *transaction)
        .await?;
        record(
            &mut transaction,
            tenant,
            note,
            "GROUP_PUT",
            &serde_json::json!({ "group": id, "name": name }),
        )
        .await?;
        Ok(transaction.commit().await?)
    }

    /// Begins or ends a membership. What holds already stays as it is; false when person or group is missing.
    pub async fn put_membership(
        &self,
        tenant: TenantId,
        group: &str,
        person: &str,
        membership: Membership,
        note: &Note<'_>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.writer.begin().await?;
        let known = sqlx::query_scalar!(
            r#"select exists(select from person where tenant_id = $1 and id = $2)
                and exists(select from "group" where tenant_id = $1 and id = $3) as "known!""#,
            tenant.0,
            person,
            group
        )
        .fetch_one(&mut *transaction)
        .await?;
        if !known {
            return Ok(false);
        }
        let (changed, kind) = match membership {
            Membership::Begins => (
                begin(&mut transaction, tenant, group, person, note.at).await?,
                "MEMBER_ADDED",
            ),
            Membership::Ends => (
                end(&mut transaction, tenant, group, person, note.at).await?,
                "MEMBER_REMOVED",
            ),
        };
        if changed {
            record(
                &mut transaction,
                tenant,
                note,
                kind,
                &serde_json::json!({ "group": group, "person": person }),
            )
            .await?;
        }
        transaction.commit().await?;
        Ok(true)
    }
}

async fn begin(
    connection: &mut PgConnection,
    tenant: TenantId,
    group: &str,
    person: &str,
    at: Timestamp,
) -> Result<bool, StoreError> {
    let done = sqlx::query!(
        "insert into membership (tenant_id, person_id, group_id, valid_from) values ($1, $2, $3, $4) on conflict do nothing",
        tenant.0,
        person,
        group,
        Time(at) as _
    )
    .execute(connection)
    .await?;
    Ok(done.rows_affected() > 0)
}

async fn end(
    connection: &mut PgConnection,
    tenant: TenantId,
    group: &str,
    person: &str,
    at: Timestamp,
) -> Result<bool, StoreError> {
    let done = sqlx::query!(
        "update membership set valid_to = $4 where tenant_id = $1 and person_id = $2 and group_id = $3 and valid_to is null",
        tenant.0,
        person,
        group,
        Time(at) as _
    )
    .execute(connection)
    .await?;
    Ok(done.rows_affected() > 0)
}

async fn record(
    connection: &mut PgConnection,
    tenant: TenantId,
    note: &Note<'_>,
    kind: &str,
    payload: &serde_json::Value,
) -> Result<(), StoreError> {
    let stream = Stream {
        tenant,
        kind: StreamKind::Directory,
        id: DIRECTORY,
    };
    append(connection, stream, note.draft(kind, 0, payload)).await
}
