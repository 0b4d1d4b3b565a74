//! The views that a person saved of the list of tasks: a name with the query of the list.

use uuid::Uuid;

use super::pool::{LimitLock, lock, transacted};
use super::{Reader, Store, StoreError};
use wrkflw_core::ids::TenantId;

/// Saved views of one person.
pub const VIEWS_MAX: i64 = 30;

/// A saved view of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedView {
    pub id: Uuid,
    pub name: String,
    /// The query of the list of tasks, without the question mark.
    pub query: String,
    /// Whether the person sees it first. At most one view is the default.
    pub is_default: bool,
}

/// The result of saving a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptView {
    Yes,
    /// The person has [`VIEWS_MAX`] others.
    TooMany,
    /// Another view of the person has this name.
    NameTaken,
}

/// The saved views of a person, by name.
pub async fn list(
    reader: &Reader,
    tenant: TenantId,
    person: &str,
) -> Result<Vec<SavedView>, StoreError> {
    let views = sqlx::query_as!(
        SavedView,
        "select id, name, query, is_default from saved_view where tenant_id = $1 and person = $2 order by name limit $3",
        tenant.0,
        person,
        VIEWS_MAX
    )
    .fetch_all(&mut reader.reading(tenant).await?)
    .await?;
    Ok(views)
}

/// Creates or replaces a view of a person. A default takes the place of the one before.
pub async fn put(
    store: &Store,
    tenant: TenantId,
    person: &str,
    view: &SavedView,
) -> Result<KeptView, StoreError> {
    transacted(Box::pin(async move {
        let mut transaction = store.writer.begin().await?;
        lock(&mut transaction, LimitLock::SavedViews(person), tenant).await?;
        let others = sqlx::query!(
            r#"select count(*) as "count!", coalesce(bool_or(name = $4), false) as "is_taken!"
            from saved_view where tenant_id = $1 and person = $2 and id <> $3"#,
            tenant.0,
            person,
            view.id,
            view.name
        )
        .fetch_one(&mut *transaction)
        .await?;
        if others.is_taken {
            return Ok(KeptView::NameTaken);
        }
        if others.count >= VIEWS_MAX {
            return Ok(KeptView::TooMany);
        }
        sqlx::query!(
            "with others as (
                 update saved_view set is_default = false
                 where tenant_id = $1 and person = $2 and id <> $3 and is_default and $6
             )
             insert into saved_view (tenant_id, person, id, name, query, is_default) values ($1, $2, $3, $4, $5, $6)
             on conflict (tenant_id, person, id) do update set name = $4, query = $5, is_default = $6",
            tenant.0,
            person,
            view.id,
            view.name,
            view.query,
            view.is_default
        )
        .execute(&mut *transaction)
        .await?;
        transaction.commit().await?;
        Ok(KeptView::Yes)
    }))
    .await
}

/// Deletes a view of this person. False if they have none with this id.
pub async fn delete(
    store: &Store,
    tenant: TenantId,
    person: &str,
    id: Uuid,
) -> Result<bool, StoreError> {
    let deleted = sqlx::query!(
        "delete from saved_view where tenant_id = $1 and person = $2 and id = $3",
        tenant.0,
        person,
        id
    )
    .execute(&store.writer)
    .await?;
    Ok(deleted.rows_affected() > 0)
}
