//! People and groups.

use super::Run;
use crate::pool::transacted;
use crate::streams::Note;
use crate::time::Time;
use crate::{Reader, Store, StoreError};
use wrkflw_core::ids::TenantId;

/// A person of the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    pub id: String,
    pub name: String,
    pub groups: Vec<String>,
    pub manager: Option<String>,
}

/// Limit of the members in a [`Group`]. [`lists::members`](super::lists::members) has all.
pub(crate) const MEMBERS_NAMED: usize = 100;

/// A group with its first members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    pub id: String,
    pub name: String,
    pub members: Vec<String>,
    /// Whether it has more members than these.
    pub more: bool,
}

pub async fn person(
    reader: &Reader,
    tenant: TenantId,
    id: &str,
) -> Result<Option<Person>, StoreError> {
    let row = sqlx::query!(
        r#"select p.id, p.name, array(
            select group_id from membership m where m.tenant_id = $1 and m.person_id = $2 and m.valid_to is null order by group_id
        ) as "groups!", (
            select manager_id from manager m where m.tenant_id = $1 and m.person_id = $2 and m.valid_to is null
        ) as manager
        from person p where p.tenant_id = $1 and p.id = $2"#,
        tenant.0,
        id
    )
    .fetch_optional(&mut reader.reading(tenant).await?)
    .await?;
    Ok(row.map(|row| Person {
        id: row.id,
        name: row.name,
        groups: row.groups,
        manager: row.manager,
    }))
}

pub async fn group(
    reader: &Reader,
    tenant: TenantId,
    id: &str,
) -> Result<Option<Group>, StoreError> {
    let row = sqlx::query!(
        r#"select g.id, g.name, array(
            select person_id from membership m where m.tenant_id = $1 and m.group_id = $2 and m.valid_to is null
            order by person_id limit $3
        ) as "members!" from "group" g where g.tenant_id = $1 and g.id = $2"#,
        tenant.0,
        id,
        i64::try_from(MEMBERS_NAMED + 1).expect("a small number")
    )
    .fetch_optional(&mut reader.reading(tenant).await?)
    .await?;
    Ok(row.map(|row| {
        let mut members = row.members;
        let more = members.len() > MEMBERS_NAMED;
        members.truncate(MEMBERS_NAMED);
        Group {
            id: row.id,
            name: row.name,
            members,
            more,
        }
    }))
}

/// Adds the person, or renames them.
pub async fn put_person(
    store: &Store,
    tenant: TenantId,
    id: &str,
    name: &str,
    note: &Note<'_>,
) -> Result<(), StoreError> {
    transacted(Box::pin(async move {
        let mut change = super::change(store, tenant, note, Run::Real).await?;
        sqlx::query!(
            "insert into person (tenant_id, id, name, created_at) values ($1, $2, $3, $4)
         on conflict (tenant_id, id) do update set name = excluded.name",
            tenant.0,
            id,
            name,
            Time(change.at) as _
        )
        .execute(change.connection())
        .await?;
        let payload = serde_json::json!({ "person": id, "name": name });
        change.finish("PERSON_PUT", &payload).await
    }))
    .await
}

/// Adds the group, or renames it.
pub async fn put_group(
    store: &Store,
    tenant: TenantId,
    id: &str,
    name: &str,
    note: &Note<'_>,
) -> Result<(), StoreError> {
    transacted(Box::pin(async move {
        let mut change = super::change(store, tenant, note, Run::Real).await?;
        sqlx::query!(
            r#"insert into "group" (tenant_id, id, name, created_at) values ($1, $2, $3, $4)
         on conflict (tenant_id, id) do update set name = excluded.name"#,
            tenant.0,
            id,
            name,
            Time(change.at) as _
        )
        .execute(change.connection())
        .await?;
        let payload = serde_json::json!({ "group": id, "name": name });
        change.finish("GROUP_PUT", &payload).await
    }))
    .await
}
