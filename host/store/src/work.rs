//! Open tasks by candidate or owner, with the data that decides who may act on them.

use std::collections::BTreeSet;

use uuid::Uuid;

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

impl Reader {
    /// Open tasks that are offered to these people or groups, or owned by these people, in the order of their ids.
    pub async fn work_of(
        &self,
        viewer: &Viewer,
        people: &BTreeSet<String>,
        groups: &BTreeSet<String>,
        after: Option<Uuid>,
        limit: i64,
    ) -> Result<Vec<OpenWork>, StoreError> {
        let list = |names: &BTreeSet<String>| -> Vec<String> { names.iter().cloned().collect() };
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
            where t.tenant_id = $1 and t.status in ('PENDING', 'CLAIMED')
              and t.id in (
                  select c.task_id from task_candidate c
                  where c.tenant_id = $1 and c.kind = 'user' and c.principal = any($2)
                  union
                  select c.task_id from task_candidate c
                  where c.tenant_id = $1 and c.kind = 'group' and c.principal = any($3)
                  union
                  select o.id from task o where o.tenant_id = $1 and o.status = 'CLAIMED' and o.owner = any($2)
              )
              and ($4::uuid is null or t.id > $4)
            order by t.id
            limit $5"#,
            viewer.tenant.0,
            &list(people),
            &list(groups),
            after,
            limit
        )
        .fetch_all(&mut *self.reading(viewer).await?)
        .await?;
        rows.into_iter()
            .map(|row| {
                let wrong = |error| StoreError::inconsistent("task", row.id, error);
                let candidates: Vec<Candidate> =
                    serde_json::from_str(&row.candidates).map_err(wrong)?;
                let ownership = row.ownership.as_deref().map(serde_json::from_str);
                let ownership: Ownership =
                    ownership.transpose().map_err(wrong)?.unwrap_or_default();
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
            .collect()
    }
}
