//! Comments that people have begun to write for the decision of a task. Only its writer sees a draft, and it ends with the task.

use jiff::Timestamp;

use super::time::Time;
use super::viewer::Viewer;
use super::{Reader, Store, StoreError};
use wrkflw_core::ids::{TaskId, TenantId};

/// Drafts of one person. A further one takes the place of the oldest.
pub(crate) const DRAFTS_MAX: i64 = 200;

/// A comment that is not sent yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    pub comment: String,
    pub updated_at: Timestamp,
}

/// The draft of a person for a task. The outer value is missing if the task is not open, or if the viewer does not see it.
pub async fn get(
    reader: &Reader,
    viewer: &Viewer,
    person: &str,
    task: TaskId,
) -> Result<Option<Option<Draft>>, StoreError> {
    let row = sqlx::query!(
        r#"select d.comment as "comment?", d.updated_at as "at?: Time"
        from task t left join draft d on d.tenant_id = t.tenant_id and d.task_id = t.id and d.person = $3
        where t.tenant_id = $1 and t.id = $2 and t.status in ('PENDING', 'CLAIMED')"#,
        viewer.tenant.0,
        task.0,
        person
    )
    .fetch_optional(&mut reader.reading(viewer).await?)
    .await?;
    let draft = |comment: Option<String>, at: Option<Time>| {
        let (comment, updated_at) = (comment?, at?.0);
        Some(Draft {
            comment,
            updated_at,
        })
    };
    Ok(row.map(|row| draft(row.comment, row.at)))
}

/// Keeps a draft. If the person has [`DRAFTS_MAX`] others, the oldest ones are deleted.
pub async fn put(
    store: &Store,
    tenant: TenantId,
    person: &str,
    task: TaskId,
    draft: &Draft,
) -> Result<(), StoreError> {
    sqlx::query!(
        "with older as (
             delete from draft where tenant_id = $1 and person = $2 and task_id in (
                 select task_id from draft where tenant_id = $1 and person = $2 and task_id <> $3
                 order by updated_at desc, task_id desc offset $6
             )
         )
         insert into draft (tenant_id, person, task_id, comment, updated_at) values ($1, $2, $3, $4, $5)
         on conflict (tenant_id, person, task_id) do update set comment = $4, updated_at = $5",
        tenant.0,
        person,
        task.0,
        draft.comment,
        Time(draft.updated_at) as _,
        DRAFTS_MAX - 1
    )
    .execute(&store.writer)
    .await?;
    Ok(())
}

/// Deletes a draft, if there is one.
pub async fn delete(
    store: &Store,
    tenant: TenantId,
    person: &str,
    task: TaskId,
) -> Result<(), StoreError> {
    sqlx::query!(
        "delete from draft where tenant_id = $1 and person = $2 and task_id = $3",
        tenant.0,
        person,
        task.0
    )
    .execute(&store.writer)
    .await?;
    Ok(())
}
