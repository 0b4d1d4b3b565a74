//! Who could act: on an instance's open tasks at any moment of its past, and on the tenant's after a change of the
//! directory that is only considered. Reads alone; what is judged stands in [`standing`](crate::domain::standing).

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::Engine;
use super::error::Error;
use super::request::Identity;
use crate::domain::answer::Principal;
use crate::domain::ids::{InstanceId, TenantId, VersionRef};
use crate::domain::instance::Instance;
use crate::domain::rejection::Rejection;
use crate::domain::standing::directory::Change;
use crate::domain::standing::{Bar, Standing, Way, Work, judge};
use crate::store::directory::moment::Asked;
use crate::store::past::{ENTRIES_MAX, Past};
use crate::store::work::OpenWork;

/// How many tasks one answer shows.
const TASKS_MAX: usize = 200;
/// How many people an answer shows for one task, of those able and of those barred.
const PEOPLE_MAX: usize = 200;
/// How many open tasks are read at a time for a change that is considered.
const BATCH: i64 = 500;
/// How many batches are looked at.
const BATCHES_MAX: usize = 20;

/// Who could act on an instance's open tasks at a moment.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StandingAt {
    pub instance: Uuid,
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// The instance's revision at that moment.
    pub revision: u32,
    pub status: String,
    pub tasks: Vec<TaskStanding>,
    /// There were more open tasks.
    pub more: bool,
}

/// Who could act on one task.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskStanding {
    pub task: Uuid,
    pub state: String,
    pub label: String,
    pub status: String,
    pub owner: Option<String>,
    pub able: Vec<AblePerson>,
    pub barred: Vec<BarredPerson>,
    /// There were more people, or a group had more members than are read.
    pub more: bool,
}

/// Somebody who could act.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct AblePerson {
    pub person: String,
    /// `{how}`: `candidate`, `group` with the group, `manager` and `substitute` with whose (`of`), `owner`.
    #[schema(value_type = Vec<Object>)]
    pub ways: Vec<Way>,
}

/// Somebody who could not, though they seem to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct BarredPerson {
    pub person: String,
    /// `{why}`: such as `requester`, `excluded`, `already_decided`, or `for_requester` with whose work it is (`of`).
    #[schema(value_type = Vec<Object>)]
    pub bars: Vec<Bar>,
}

/// What a change of the directory would leave undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// Always true: nothing was written.
    pub dry_run: bool,
    pub orphans: Vec<Orphan>,
    /// There are more, or there may be.
    pub more: bool,
}

/// An open task that somebody can act on, and nobody could after the change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Orphan {
    pub task: Uuid,
    pub instance: Uuid,
    #[schema(value_type = Object)]
    pub definition: VersionRef,
    pub state: String,
    pub label: String,
    /// What would keep everybody from it.
    pub why: String,
}

impl Engine {
    /// Who could have acted on the instance at the moment, by the record.
    pub async fn standing_at(
        &self,
        who: &Identity,
        id: InstanceId,
        at: Timestamp,
    ) -> Result<StandingAt, Error> {
        let instance = match self.0.store.instance_at(who.tenant, id, at).await? {
            Past::Instance(instance) => instance,
            Past::NotBegun => {
                return Err(Error::NotFound {
                    what: "instance that had begun by then:",
                    id: format!("{id} at {at}"),
                });
            }
            Past::TooLong => {
                let message = format!(
                    "the instance had more than {ENTRIES_MAX} audit entries by then; ask for an earlier moment"
                );
                return Err(Rejection::invalid("/at", "too_long", message).into());
            }
        };
        let open = self.open_work(who.tenant, &instance).await?;
        let works = open.iter().map(|(_, work)| work);
        let asked = asked(works, BTreeSet::new());
        let directory = self.0.store.directory_at(who.tenant, at, &asked).await?;
        let more = open.len() > TASKS_MAX;
        let tasks = open.into_iter().take(TASKS_MAX);
        Ok(StandingAt {
            instance: id.0,
            at,
            revision: instance.revision,
            status: instance.status.name().to_owned(),
            tasks: tasks
                .map(|(task, work)| task.with(judge(&work, &directory)))
                .collect(),
            more,
        })
    }

    /// The open tasks of an instance, one more than are shown at the most.
    async fn open_work(
        &self,
        tenant: TenantId,
        instance: &Instance,
    ) -> Result<Vec<(TaskStanding, Work)>, Error> {
        let version = self.version(tenant, &instance.definition).await?;
        let stays = instance.active.iter();
        let tasks = stays.flat_map(|stay| stay.tasks.iter().map(move |task| (stay, task)));
        let open = tasks.filter(|(_, task)| task.status.is_open());
        let shown = open.take(TASKS_MAX + 1).map(|(stay, task)| {
            let state = version.graph.state(&stay.name);
            let own_work = state.is_some_and(|state| state.own_work);
            let shown = TaskStanding {
                task: task.id.0,
                state: stay.name.clone(),
                label: task.label.clone(),
                status: task.status.name().to_owned(),
                owner: task.owner().map(str::to_owned),
                able: Vec::new(),
                barred: Vec::new(),
                more: false,
            };
            (shown, Work::of(instance, stay, task, own_work))
        });
        Ok(shown.collect())
    }

    /// The open tasks that nobody could act on any more after the change, though somebody can now.
    pub async fn preview(&self, who: &Identity, change: &Change) -> Result<Preview, Error> {
        let at = self.0.clock.now();
        let concerned = self.concerned(who.tenant, at, change).await?;
        let mut preview = Preview {
            dry_run: true,
            orphans: Vec::new(),
            more: false,
        };
        let mut after = None;
        for _ in 0..BATCHES_MAX {
            let Concerned { people, groups } = &concerned;
            let store = &self.0.store;
            let batch = store
                .work_of(who.tenant, people, groups, after, BATCH)
                .await?;
            after = batch.last().map(|open| open.task);
            let is_last = i64::try_from(batch.len()).is_ok_and(|read| read < BATCH);
            let orphans = self.orphans(who.tenant, at, change, batch).await?;
            preview.orphans.extend(orphans);
            if preview.orphans.len() > TASKS_MAX {
                preview.orphans.truncate(TASKS_MAX);
                preview.more = true;
                return Ok(preview);
            }
            if is_last {
                return Ok(preview);
            }
        }
        preview.more = true;
        Ok(preview)
    }

    async fn orphans(
        &self,
        tenant: TenantId,
        at: Timestamp,
        change: &Change,
        mut batch: Vec<OpenWork>,
    ) -> Result<Vec<Orphan>, Error> {
        for open in &mut batch {
            let version = self.version(tenant, &open.definition).await?;
            let state = version.graph.state(&open.state);
            open.work.own_work = state.is_some_and(|state| state.own_work);
        }
        let named = match change {
            Change::Joins { person, .. }
            | Change::Leaves { person, .. }
            | Change::Managed { person, .. }
            | Change::Back { person, .. } => vec![person],
            Change::Absent(one) => vec![&one.person, &one.substitute],
        };
        let asked = asked(
            batch.iter().map(|open| &open.work),
            named.into_iter().cloned().collect(),
        );
        let before = self.0.store.directory_at(tenant, at, &asked).await?;
        let after = before.after(change);
        let orphan = |open: OpenWork| {
            let standing = judge(&open.work, &after);
            let lost = standing.is_nobody() && !judge(&open.work, &before).is_nobody();
            lost.then(|| Orphan {
                task: open.task,
                instance: open.instance,
                definition: open.definition,
                state: open.state,
                label: open.label,
                why: standing.why_nobody(),
            })
        };
        Ok(batch.into_iter().filter_map(orphan).collect())
    }

    /// Whose work the change may touch: that of the person, of those they stand in for, and of all their groups.
    async fn concerned(
        &self,
        tenant: TenantId,
        at: Timestamp,
        change: &Change,
    ) -> Result<Concerned, Error> {
        let store = &self.0.store;
        let person = match change {
            Change::Joins { group, person } | Change::Leaves { group, person } => {
                // Their other groups are theirs before and after.
                let people = BTreeSet::from([person.clone()]);
                let groups = BTreeSet::from([group.clone()]);
                return Ok(Concerned { people, groups });
            }
            Change::Managed { person, .. } | Change::Back { person, .. } => person,
            Change::Absent(one) => &one.person,
        };
        let mut people = store.represented_at(tenant, at, person).await?;
        if let Change::Managed { person, .. } = change {
            let asked = Asked {
                managed: BTreeSet::from([person.clone()]),
                ..Asked::default()
            };
            let directory = store.directory_at(tenant, at, &asked).await?;
            people.extend(directory.managers.into_values());
        }
        let groups = store.groups_at(tenant, at, &people).await?;
        Ok(Concerned { people, groups })
    }
}

struct Concerned {
    people: BTreeSet<String>,
    groups: BTreeSet<String>,
}

/// What the directory is asked about these tasks, and about these people.
fn asked<'a>(works: impl Iterator<Item = &'a Work>, people: BTreeSet<String>) -> Asked {
    let mut asked = Asked {
        people,
        ..Asked::default()
    };
    for work in works {
        asked
            .people
            .extend(work.owner.iter().map(|owner| owner.id.clone()));
        for candidate in &work.candidates {
            match candidate {
                Principal::User(id) => asked.people.insert(id.clone()),
                Principal::Group(id) => asked.groups.insert(id.clone()),
                Principal::ManagerOf(id) => asked.managed.insert(id.clone()),
            };
        }
    }
    asked
}

impl TaskStanding {
    fn with(self, standing: Standing) -> TaskStanding {
        let Standing { able, barred, cut } = standing;
        let more = cut || able.len() > PEOPLE_MAX || barred.len() > PEOPLE_MAX;
        let able = able.into_iter().take(PEOPLE_MAX);
        let barred = barred.into_iter().take(PEOPLE_MAX);
        TaskStanding {
            able: able
                .map(|(person, ways)| AblePerson { person, ways })
                .collect(),
            barred: barred
                .map(|(person, bars)| BarredPerson { person, bars })
                .collect(),
            more,
            ..self
        }
    }
}
