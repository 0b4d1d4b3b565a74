//! Tenants, with the permissions of their roles.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use sqlx::PgConnection;
use uuid::Builder;

use super::{DIRECTORY, stream};
use crate::load::Caller;
use crate::pool::transacted;
use crate::streams::{Note, append, lock};
use crate::time::Time;
use crate::{Reader, Store, StoreError};
use wrkflw_core::actor::Actor;
use wrkflw_core::audit::sha256;
use wrkflw_core::ids::{CommandId, TenantId};
use wrkflw_core::json::Json;

/// The actor of entries about tenants.
const HOST: &str = wrkflw_core::actor::HOST;

/// The payload of an entry about a tenant and the permissions of its roles.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TenantPayload<'a> {
    tenant: &'a str,
    created_at: Timestamp,
    roles: BTreeMap<String, Vec<String>>,
}

/// The id of the tenant with this name.
pub async fn find(reader: &Reader, name: &str) -> Result<Option<TenantId>, StoreError> {
    let id = sqlx::query_scalar!("select id from tenant where name = $1", name)
        .fetch_optional(&reader.writer)
        .await?;
    Ok(id.map(TenantId))
}

/// The tenant with this name. A new one is created with its roles.
pub async fn ensure_tenant(
    store: &Store,
    name: &str,
    roles: &BTreeMap<&str, &[&str]>,
    at: Timestamp,
) -> Result<TenantId, StoreError> {
    transacted(Box::pin(async move {
        let mut transaction = store.writer.begin().await?;
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
            let kind = "TENANT_CREATED";
            append_entry(&mut transaction, (TenantId(id), name), (kind, at), at).await?;
        }
        transaction.commit().await?;
        match created {
            Some(id) => Ok(TenantId(id)),
            None => find(store, name)
                .await?
                .ok_or_else(|| sqlx::Error::RowNotFound.into()),
        }
    }))
    .await
}

/// Appends an entry for each tenant that has none, because an earlier release created it.
pub async fn record_tenants(store: &Store, at: Timestamp) -> Result<(), StoreError> {
    let unrecorded = sqlx::query_scalar!(
        "select t.id from tenant t where not exists (
             select from audit_entry a
             where a.tenant_id = t.id and a.stream_kind = 'directory' and a.stream_id = $1
               and a.type in ('TENANT_CREATED', 'TENANT_RECORDED')
         ) order by t.id",
        DIRECTORY
    )
    .fetch_all(&store.writer)
    .await?;
    for id in unrecorded {
        record_tenant(store, TenantId(id), at).await?;
    }
    Ok(())
}

async fn record_tenant(store: &Store, tenant: TenantId, at: Timestamp) -> Result<(), StoreError> {
    transacted(Box::pin(async move {
        let mut transaction = store.writer.begin().await?;
        lock(&mut transaction, stream(tenant)).await?;
        // Another host may have appended it while this one waited for the stream.
        let row = sqlx::query!(
            r#"select t.name, t.created_at as "created_at: Time" from tenant t where t.id = $1 and not exists (
                 select from audit_entry a
                 where a.tenant_id = t.id and a.stream_kind = 'directory' and a.stream_id = $2
                   and a.type in ('TENANT_CREATED', 'TENANT_RECORDED')
             )"#,
            tenant.0,
            DIRECTORY
        )
        .fetch_optional(&mut *transaction)
        .await?;
        if let Some(row) = row {
            let subject = (tenant, row.name.as_str());
            append_entry(&mut transaction, subject, ("TENANT_RECORDED", at), row.created_at.0).await?;
            transaction.commit().await?;
        }
        Ok(())
    }))
    .await
}

/// The current groups and permissions of the subject, and whether the tenant may have restricted instances, because some version of a
/// definition restricts its instances.
pub async fn actor(store: &Store, who: &Caller) -> Result<(Actor, bool), StoreError> {
    let row = sqlx::query!(
        r#"select
            array(
                select group_id from membership
                where tenant_id = $1 and person_id = $2 and valid_to is null order by group_id
            ) as "groups!",
            array(
                select distinct permission from role_permission
                where tenant_id = $1 and role = any($3) order by permission
            ) as "permissions!",
            exists(select from definition_version where tenant_id = $1 and restricted) as "restricts!""#,
        who.tenant.0,
        who.subject,
        &who.roles
    )
    .fetch_one(&store.writer)
    .await?;
    let actor = Actor {
        id: who.subject.clone(),
        groups: row.groups,
        permissions: row.permissions,
        on_behalf_of: None,
        stands_in_for: Vec::new(),
    };
    Ok((actor, row.restricts))
}

/// Appends an entry about the tenant and the permissions of its roles.
async fn append_entry(
    connection: &mut PgConnection,
    (tenant, name): (TenantId, &str),
    (kind, at): (&str, Timestamp),
    created_at: Timestamp,
) -> Result<(), StoreError> {
    let permissions = sqlx::query!(
        "select role, permission from role_permission where tenant_id = $1 order by role, permission",
        tenant.0
    )
    .fetch_all(&mut *connection)
    .await?;
    let mut roles: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in permissions {
        roles.entry(row.role).or_default().push(row.permission);
    }
    let content = TenantPayload {
        tenant: name,
        created_at,
        roles,
    };
    let payload = Json::of(&content);
    // The payload has no secret, so the ids and the salt may be derived from it.
    let digest = sha256(format!("{kind} {tenant} {at} {}", payload.as_str()).as_bytes());
    let half = |from: usize| {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[from..from + 16]);
        bytes
    };
    let note = Note {
        id: Builder::from_custom_bytes(half(0)).into_uuid(),
        command: CommandId(Builder::from_custom_bytes(half(16)).into_uuid()),
        actor: HOST,
        at,
        salt: half(0),
    };
    append(
        connection,
        stream(tenant),
        note.draft(kind, 0, &payload.value()),
    )
    .await
}
