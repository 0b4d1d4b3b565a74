//! Open tasks by candidate or owner, with the data that decides who may act on them.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::pool::Limited;
use super::viewer::Viewer;
use super::{Reader, StoreError};
use wrkflw_core::eligibility::{Owner, Work};
use wrkflw_core::ids::VersionRef;
use wrkflw_core::instance::{Candidate, Ownership};

/// An open task with its instance and state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenWork {
    pub task: Uuid,
    pub instance: Uuid,
    pub definition: VersionRef,
    pub state: String,
    pub label: String,
    /// `own_work` is false here, because only the definition knows it.
    pub work: Work,
}

/// A page of open tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkPage {
    pub work: Vec<OpenWork>,
    /// The task after which the next page begins; none if this page is the last. The viewer may not see it.
    pub next: Option<Uuid>,
}

/// Open tasks that are offered to these people or groups, or owned by these people, in the order of their ids. A page is read from
/// the indexes of each person and group. So its cost grows with the number of people and groups, not with the tasks on other pages.
pub async fn work_of(
    reader: &Reader,
    viewer: &Viewer,
    people: &BTreeSet<String>,
    groups: &BTreeSet<String>,
    after: Option<Uuid>,
    limit: i64,
) -> Result<WorkPage, StoreError> {
    let mut reading = reader.reading(viewer).await?;
    let tasks = page(&mut reading, viewer, (people, groups), after, limit).await?;
    let is_last = i64::try_from(tasks.len()).is_ok_and(|read| read < limit);
    let rows = sqlx::query!(
        r#"select t.id, t.label, t.owner, t.candidates, t.ownership, s.name as state, s.exclude,
            t.instance_id, i.definition_key, i.definition_version, i.requesters, i.initiator,
            array(
                select v.person
                from task o join decision d on d.tenant_id = o.tenant_id and d.task_id = o.id
                cross join lateral (values (d.actor), (d.on_behalf_of), (o.owner)) v (person)
                where o.tenant_id = $1 and o.instance_id = t.instance_id and o.state_id = t.state_id
                  and v.person is not null
            ) as "decided!"
        from task t
        join state_instance s on s.tenant_id = t.tenant_id and s.instance_id = t.instance_id and s.id = t.state_id
        join instance i on i.tenant_id = t.tenant_id and i.id = t.instance_id
        where t.tenant_id = $1 and t.id = any($2) and t.status in ('PENDING', 'CLAIMED')
        order by t.id"#,
        viewer.tenant.0,
        &tasks
    );
    let rows = rows.fetch_all(&mut reading).await?;
    let next = tasks.last().copied().filter(|_| !is_last);
    let work: Result<_, StoreError> = rows
        .into_iter()
        .map(|row| {
            let wrong = |error| StoreError::inconsistent("task", row.id, error);
            let candidates: Vec<Candidate> =
                serde_json::from_str(&row.candidates).map_err(wrong)?;
            let ownership = row.ownership.as_deref().map(serde_json::from_str);
            let ownership: Ownership = ownership.transpose().map_err(wrong)?.unwrap_or_default();
            Ok(OpenWork {
                task: row.id,
                instance: row.instance_id,
                definition: VersionRef {
                    key: row.definition_key.clone(),
                    version: row.definition_version.cast_unsigned(),
                },
                state: row.state,
                label: row.label,
                work: Work {
                    definition: row.definition_key,
                    candidates,
                    owner: row.owner.map(|owner| Owner::with(&owner, &ownership)),
                    exclude: row.exclude,
                    requesters: row.requesters,
                    initiator: row.initiator,
                    own_work: false,
                    decided: row.decided,
                },
            })
        })
        .collect();
    Ok(WorkPage { work: work?, next })
}

/// The tasks of a page, in the order of their ids.
async fn page(
    reading: &mut Limited,
    viewer: &Viewer,
    (people, groups): (&BTreeSet<String>, &BTreeSet<String>),
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<Uuid>, StoreError> {
    let list = |names: &BTreeSet<String>| -> Vec<String> { names.iter().cloned().collect() };
    let tasks = sqlx::query_scalar!(
        r#"select c.task_id as "task_id!" from (
            select 'user' as kind, unnest($2::text[]) as principal
            union all select 'group', unnest($3::text[])
        ) p cross join lateral (
            select c.task_id from task_candidate c
            where c.tenant_id = $1 and c.kind = p.kind and c.principal = p.principal
              and c.task_id > coalesce($4::uuid, '00000000-0000-0000-0000-000000000000')
            order by c.task_id limit $5
        ) c
        union
        select o.id from unnest($2::text[]) p (owner) cross join lateral (
            select o.id from task o
            where o.tenant_id = $1 and o.status = 'CLAIMED' and o.owner = p.owner
              and o.id > coalesce($4::uuid, '00000000-0000-0000-0000-000000000000')
            order by o.id limit $5
        ) o
        order by 1 limit $5"#,
        viewer.tenant.0,
        &list(people),
        &list(groups),
        after,
        limit
    );
    Ok(tasks.fetch_all(reading).await?)
}
