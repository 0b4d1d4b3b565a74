//! Who could act on an instance's open tasks at a past moment, and which open tasks nobody could act on after a planned change of
//! the directory. This module only reads. The rules are in [`eligibility`](wrkflw_core::eligibility).

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use uuid::Uuid;

use super::Engine;
use super::error::Error;
use super::offload::Offload;
use super::past::{self, BYTES_MAX, ENTRIES_MAX, Past};
use super::request::Identity;
use wrkflw_core::eligibility::directory::{Change, Directory};
use wrkflw_core::eligibility::{
    EXAMINED_IN_ALL_MAX, EXAMINED_MAX, Eligibility, Exclusion, Judge, Way, Work,
};
use wrkflw_core::ids::{InstanceId, TenantId, VersionRef};
use wrkflw_core::instance::{Candidate, Instance, StateInstance};
use wrkflw_core::rejection::Rejection;
use wrkflw_core::version::Version;
use wrkflw_store::directory::moment::{self, MomentQuery};
use wrkflw_store::work::{self, OpenWork};
use wrkflw_store::{Store, names};

/// Limit of the tasks in an answer.
const TASKS_MAX: usize = 200;
/// Limit of the people in an answer for one task: of the eligible, and of the excluded.
const PEOPLE_MAX: usize = 200;
/// The estimated time to copy the name of an excluded person.
const NAMED: Duration = Duration::from_nanos(50);
/// The estimated time to examine whether a person may act on a task.
const LOOKED: Duration = Duration::from_micros(2);
/// The estimated time to read a byte of the directory.
const READ_BYTE: Duration = Duration::from_nanos(20);
/// Open tasks that a preview reads at a time.
const BATCH: i64 = 500;
/// Limit of the batches that a preview reads.
const BATCHES_MAX: usize = 20;

/// Who could act on an instance's open tasks at a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct EligibilityAt {
    pub instance: Uuid,
    pub at: Timestamp,
    pub revision: u32,
    pub status: String,
    pub tasks: Vec<TaskEligibility>,
    pub more: bool,
}

impl EligibilityAt {
    /// The approximate size in bytes.
    pub fn bytes(&self) -> usize {
        const TASK_BYTES: usize = 300;
        const PERSON_BYTES: usize = 60;
        let words = |task: &TaskEligibility| {
            let eligible = task.eligible.iter().map(|able| 2 + able.ways.len());
            let excluded = task.excluded.iter();
            let excluded = excluded.map(|excluded| 1 + excluded.exclusions.len());
            TASK_BYTES + PERSON_BYTES * eligible.chain(excluded).sum::<usize>()
        };
        self.tasks.iter().map(words).sum()
    }
}

/// Who could act on one task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskEligibility {
    pub task: Uuid,
    pub state: String,
    pub label: String,
    pub status: String,
    pub owner: Option<String>,
    pub eligible: Vec<AblePerson>,
    pub excluded: Vec<ExcludedPerson>,
    /// The eligible people who are not in the directory now.
    pub unknown: Vec<String>,
    pub more: bool,
}

/// Somebody who could act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AblePerson {
    pub person: String,
    pub ways: Vec<Way>,
}

/// A candidate or owner who could not act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExcludedPerson {
    pub person: String,
    pub exclusions: Vec<Exclusion>,
}

/// The open tasks that a change of the directory would leave to nobody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    pub dry_run: bool,
    pub orphans: Vec<Orphan>,
    pub more: bool,
}

impl Default for Preview {
    /// The preview of a change that affects no task.
    fn default() -> Preview {
        Preview {
            dry_run: true,
            orphans: Vec::new(),
            more: false,
        }
    }
}

/// An open task on which somebody can act now, and nobody after the change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphan {
    pub task: Uuid,
    pub instance: Uuid,
    pub definition: VersionRef,
    pub state: String,
    pub label: String,
    pub why: String,
}

/// Who could act on tasks: at a past moment, and after a planned change of the directory.
#[derive(Clone, Copy)]
pub struct EligibilityQueries<'a> {
    pub(super) engine: &'a Engine,
}

impl EligibilityQueries<'_> {
    /// Who could have acted on the instance at the moment, according to the recorded history. Checks no permission.
    pub async fn at(
        self,
        who: &Identity,
        id: InstanceId,
        at: Timestamp,
    ) -> Result<EligibilityAt, Error> {
        let (store, offload) = (&self.engine.0.store, &self.engine.0.offload);
        let viewer = self.engine.viewer(who).await?;
        let instance = match past::instance_at(store, offload, &viewer, id, at).await? {
            Past::Instance(instance) => instance,
            Past::NotBegun => {
                return Err(Error::NotFound {
                    what: "instance that had begun by then:",
                    id: format!("{id} at {at}"),
                });
            }
            Past::TooLong => {
                let message = format!(
                    "the instance had more than {ENTRIES_MAX} audit entries besides comments, or {BYTES_MAX} bytes of them, by then; \
                     ask for an earlier moment"
                );
                return Err(Rejection::invalid("/at", "too_long", message).into());
            }
        };
        let tenant = who.tenant;
        let version = self
            .engine
            .versions()
            .get(tenant, &instance.definition)
            .await?;
        let (revision, status) = (instance.revision, instance.status.name().to_owned());
        let effort = listing(&instance);
        let look = || {
            let open = open_work(&version, &instance);
            let query = query_for(open.iter().map(|(_, work)| work), BTreeSet::new());
            (open, query)
        };
        let (open, query) = offload.in_place(tenant, effort, look).await?;
        let directory = directory_at(store, offload, (tenant, at), query).await?;
        let more = open.len() > TASKS_MAX;
        let effort = judging(open.len(), &directory);
        let judge_all = || {
            let mut judge = Judge::of(&directory);
            let tasks = open.into_iter().take(TASKS_MAX);
            let judged = tasks.map(|(task, work)| task.with(judge.judge(&work)));
            judged.collect()
        };
        let mut tasks: Vec<TaskEligibility> = offload.in_place(tenant, effort, judge_all).await?;
        mark_unknown(store, tenant, &mut tasks).await?;
        Ok(EligibilityAt {
            instance: id.0,
            at,
            revision,
            status,
            tasks,
            more,
        })
    }

    /// The open tasks on which somebody can act now, and nobody after the change. Only those that the caller sees. Checks no
    /// permission.
    pub async fn preview(self, who: &Identity, change: &Change) -> Result<Preview, Error> {
        let store = &self.engine.0.store;
        let at = self.engine.0.clock.now();
        let until = Instant::now() + self.engine.0.timeout;
        let concerned = concerned(store, who.tenant, at, change).await?;
        let viewer = self.engine.viewer(who).await?;
        let mut preview = Preview::default();
        let mut after = None;
        for _ in 0..BATCHES_MAX {
            let Concerned { people, groups } = &concerned;
            let page = work::work_of(store, &viewer, people, groups, after, BATCH).await?;
            let (orphans, cut) = self.orphans(who.tenant, at, change, page.work).await?;
            preview.orphans.extend(orphans);
            preview.more |= cut || preview.orphans.len() > TASKS_MAX;
            preview.orphans.truncate(TASKS_MAX);
            after = page.next;
            if after.is_none() || preview.orphans.len() == TASKS_MAX || Instant::now() >= until {
                break;
            }
        }
        preview.more |= after.is_some();
        Ok(preview)
    }

    /// The orphans among these tasks, and whether there may be more.
    async fn orphans(
        self,
        tenant: TenantId,
        at: Timestamp,
        change: &Change,
        mut batch: Vec<OpenWork>,
    ) -> Result<(Vec<Orphan>, bool), Error> {
        for open in &mut batch {
            let version = self.engine.versions().get(tenant, &open.definition).await?;
            let state = version.graph.state(&open.state);
            open.work.own_work = state.is_some_and(|state| state.own_work);
        }
        let named = match change {
            Change::Joins { person, .. }
            | Change::Leaves { person, .. }
            | Change::Back { person, .. } => vec![person],
            Change::Absent(absence) => vec![&absence.person, &absence.substitute],
        };
        let query = query_for(
            batch.iter().map(|open| &open.work),
            named.into_iter().cloned().collect(),
        );
        let (store, offload) = (&self.engine.0.store, &self.engine.0.offload);
        let directory = directory_at(store, offload, (tenant, at), query).await?;
        let effort = judging(2 * batch.len(), &directory);
        let find = || orphaned(batch, &directory, change);
        offload.in_place(tenant, effort, find).await
    }
}

/// Finds the eligible people who are not in the directory. Members of groups are in it, so only people who are named singly are
/// looked up.
async fn mark_unknown(
    store: &Store,
    tenant: TenantId,
    tasks: &mut [TaskEligibility],
) -> Result<(), Error> {
    let is_named = |able: &&AblePerson| {
        let mut ways = able.ways.iter();
        ways.any(|way| matches!(way, Way::Candidate | Way::Owner))
    };
    let named = |task: &TaskEligibility| -> Vec<String> {
        let named = task.eligible.iter().filter(is_named);
        named.map(|able| able.person.clone()).collect()
    };
    let people: BTreeSet<String> = tasks.iter().flat_map(&named).collect();
    let people: Vec<String> = people.into_iter().collect();
    let known = names::display(store, tenant, &people, &[]).await?;
    for task in tasks {
        let unknown = named(task).into_iter();
        task.unknown = unknown
            .filter(|person| !known.people.contains_key(person))
            .collect();
    }
    Ok(())
}

/// The requested part of the tenant's directory, as of the moment.
async fn directory_at(
    store: &Store,
    offload: &Offload,
    (tenant, at): (TenantId, Timestamp),
    query: MomentQuery,
) -> Result<Directory, Error> {
    let written = moment::directory_at(store, tenant, at, query).await?;
    let effort = READ_BYTE * u32::try_from(written.bytes()).unwrap_or(u32::MAX);
    let read = offload.in_place(tenant, effort, || written.read());
    Ok(read.await??)
}

/// People and groups.
struct Concerned {
    people: BTreeSet<String>,
    groups: BTreeSet<String>,
}

/// The principals whose work the change may affect: the person, the people whom the person substitutes, and the groups of all of them.
async fn concerned(
    store: &Store,
    tenant: TenantId,
    at: Timestamp,
    change: &Change,
) -> Result<Concerned, Error> {
    let person = match change {
        Change::Joins { group, person } | Change::Leaves { group, person } => {
            // The change does not affect the person's other groups.
            let people = BTreeSet::from([person.clone()]);
            let groups = BTreeSet::from([group.clone()]);
            return Ok(Concerned { people, groups });
        }
        Change::Back { person, .. } => person,
        Change::Absent(absence) => &absence.person,
    };
    let people = moment::represented_at(store, tenant, at, person).await?;
    let groups = moment::groups_at(store, tenant, at, &people).await?;
    Ok(Concerned { people, groups })
}

/// The tasks on which somebody can act by this directory, and nobody after the change. Also whether there may be more such
/// tasks, because not everybody could be examined.
fn orphaned(batch: Vec<OpenWork>, directory: &Directory, change: &Change) -> (Vec<Orphan>, bool) {
    let changed = directory.after(change);
    let (mut before, mut after) = (Judge::of(directory), Judge::of(&changed));
    let mut cut = false;
    let mut is_nobody = |eligibility: &Eligibility| {
        cut |= eligibility.eligible.is_empty() && eligibility.cut;
        eligibility.is_nobody()
    };
    let mut orphans = Vec::new();
    for open in batch {
        let eligibility = after.judge(&open.work);
        if !eligibility.eligible.is_empty() || is_nobody(&before.judge(&open.work)) {
            continue;
        }
        if is_nobody(&eligibility) {
            orphans.push(Orphan {
                task: open.task,
                instance: open.instance,
                definition: open.definition,
                state: open.state,
                label: open.label,
                why: eligibility.why_nobody(),
            });
        }
    }
    (orphans, cut)
}

/// The estimated time to list the open work of an instance: each task with everybody whom it excludes.
fn listing(instance: &Instance) -> Duration {
    let excluded = |state_instance: &StateInstance| {
        let open = state_instance
            .tasks
            .iter()
            .filter(|task| task.status.is_open());
        let names =
            instance.requesters.len() + state_instance.exclude.len() + state_instance.tasks.len();
        open.count().min(TASKS_MAX) * names
    };
    let names: usize = instance.active.iter().map(excluded).sum();
    NAMED * u32::try_from(names).unwrap_or(u32::MAX)
}

/// The estimated time to judge this many tasks by the directory.
fn judging(works: usize, directory: &Directory) -> Duration {
    let members: usize = directory.members.values().map(BTreeSet::len).sum();
    let absences: usize = directory.substitutions.values().map(Vec::len).sum();
    let each = (1 + members + absences).min(EXAMINED_MAX);
    let looks = (works * each).min(EXAMINED_IN_ALL_MAX);
    LOOKED * u32::try_from(looks).unwrap_or(u32::MAX)
}

/// The open tasks of an instance, at most one more than an answer shows.
fn open_work(version: &Version, instance: &Instance) -> Vec<(TaskEligibility, Work)> {
    let state_instances = instance.active.iter();
    let tasks = state_instances.flat_map(|state_instance| {
        state_instance
            .tasks
            .iter()
            .map(move |task| (state_instance, task))
    });
    let open = tasks.filter(|(_, task)| task.status.is_open());
    let shown = open.take(TASKS_MAX + 1).map(|(state_instance, task)| {
        let state = version.graph.state(&state_instance.name);
        let own_work = state.is_some_and(|state| state.own_work);
        let shown = TaskEligibility {
            task: task.id.0,
            state: state_instance.name.clone(),
            label: task.label.clone(),
            status: task.status.name().to_owned(),
            owner: task.owner().map(str::to_owned),
            eligible: Vec::new(),
            excluded: Vec::new(),
            unknown: Vec::new(),
            more: false,
        };
        (shown, Work::of(instance, state_instance, task, own_work))
    });
    shown.collect()
}

/// The part of the directory that these tasks and people need.
fn query_for<'a>(works: impl Iterator<Item = &'a Work>, people: BTreeSet<String>) -> MomentQuery {
    let mut query = MomentQuery {
        people,
        ..MomentQuery::default()
    };
    for work in works {
        query
            .people
            .extend(work.owner.iter().map(|owner| owner.id.clone()));
        for candidate in &work.candidates {
            match candidate {
                Candidate::User(id) => query.people.insert(id.clone()),
                Candidate::Group(id) => query.groups.insert(id.clone()),
                Candidate::Member { person, group } => {
                    query.people.insert(person.clone());
                    query.groups.insert(group.clone())
                }
            };
        }
    }
    query
}

impl TaskEligibility {
    fn with(self, eligibility: Eligibility) -> TaskEligibility {
        let Eligibility {
            eligible,
            excluded,
            cut,
        } = eligibility;
        let more = cut || eligible.len() > PEOPLE_MAX || excluded.len() > PEOPLE_MAX;
        let eligible = eligible.into_iter().take(PEOPLE_MAX);
        let excluded = excluded.into_iter().take(PEOPLE_MAX);
        TaskEligibility {
            eligible: eligible
                .map(|(person, ways)| AblePerson { person, ways })
                .collect(),
            excluded: excluded
                .map(|(person, exclusions)| ExcludedPerson { person, exclusions })
                .collect(),
            more,
            ..self
        }
    }
}

#[cfg(test)]
mod tests;
