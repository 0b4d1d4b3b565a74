//! The actions of the actor on the tasks of a list, by the host's rules alone: one query for all tasks, and no call of flow logic.
//!
//! The same rules judge the commands themselves: here, a command begins, and ends before its first question. Flow logic may
//! still refuse it; only a dry run shows that.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use super::actions::{Action, Actions, explained, of_task, open_to, titled};
use super::error::Error;
use super::pipeline::executions::refused;
use super::pipeline::load::{self, NO_INSTANCE};
use super::request::Identity;
use wrkflw_core::actor::Actor;
use wrkflw_core::command::Command;
use wrkflw_core::execution::{Context, Execution};
use wrkflw_core::ids::{TaskId, VersionRef};
use wrkflw_core::instance::Instance;
use wrkflw_core::version::Version;
use wrkflw_runtime::clock;
use wrkflw_store::load::{LoadOptions, parts as load_parts};

/// Limit of the commands that one answer judges. The tasks beyond it get no actions.
const COMMANDS_MAX: usize = 4_000;
/// The estimated time to judge one command, without its input and the copy of its instance.
const JUDGED: Duration = Duration::from_micros(5);
/// The estimated time to read a byte of the parts of instances, and to copy one for a command.
const READ_BYTE: Duration = Duration::from_nanos(20);
const COPIED_BYTE: Duration = Duration::from_nanos(1);

/// An open task of a list.
#[derive(Debug, Clone)]
pub struct OpenTask {
    pub id: Uuid,
    pub instance: Uuid,
    /// Its state instance.
    pub state_id: Uuid,
    /// The name of its state.
    pub state: String,
    /// What its instance runs.
    pub version: Arc<Version>,
}

impl Actions<'_> {
    /// The actions on each of these tasks, by the ids of the tasks. A task that was decided meanwhile may be missing. Checks no
    /// permission to read them.
    pub async fn on_tasks(
        self,
        who: &Identity,
        tasks: &[OpenTask],
    ) -> Result<BTreeMap<Uuid, Vec<Action>>, Error> {
        let options = LoadOptions::at(self.engine.0.clock.now());
        let loaded = load::loaded(self.engine, &who.caller(), NO_INSTANCE, options).await?;
        let ids = |of: fn(&OpenTask) -> Uuid| -> Vec<Uuid> {
            let ids: BTreeSet<_> = tasks.iter().map(of).collect();
            ids.into_iter().collect()
        };
        let separate: BTreeSet<&str> = tasks
            .iter()
            .flat_map(|task| task.version.graph.separate_from(&task.state))
            .collect();
        let separate: Vec<_> = separate.into_iter().map(str::to_owned).collect();
        let (instances, states) = (ids(|task| task.instance), ids(|task| task.state_id));
        let (store, offload) = (&self.engine.0.store, &self.engine.0.offload);
        let parts = load_parts(store, who.tenant, &instances, &states, &separate).await?;
        let bytes = length(parts.bytes());
        let parts = offload.in_place(who.tenant, READ_BYTE * bytes, || parts.read());
        let parts: HashMap<_, _> = parts
            .await??
            .into_iter()
            .map(|one| (one.id.0, one))
            .collect();
        let judging = Judging {
            actor: &loaded.actor,
            stopped: &loaded.stopped,
            tenant: &who.tenant_name,
            now: options.now,
        };
        let (mut judged, mut commands) = (BTreeMap::new(), 0);
        for task in tasks {
            // A migration may have changed the version meanwhile.
            let instance = parts.get(&task.instance);
            let instance = instance.filter(|one| one.definition == task.version.reference);
            let instance = instance.filter(|_| task.version.graph.state(&task.state).is_some());
            let Some(instance) = instance else {
                continue;
            };
            let Some((_, of)) = instance.open_task(TaskId(task.id)) else {
                continue;
            };
            let all: Vec<_> =
                of_task(&task.version.graph, &task.state, of, &loaded.actor.id).collect();
            commands += all.len();
            if commands > COMMANDS_MAX {
                break;
            }
            let effort = judging.effort(task, instance, &all);
            let judge = || judging.judge(task, instance, &all);
            let actions = offload.in_place(who.tenant, effort, judge).await??;
            judged.insert(task.id, actions);
        }
        Ok(judged)
    }
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// The facts by which the commands on all tasks are judged.
struct Judging<'a> {
    actor: &'a Actor,
    stopped: &'a [VersionRef],
    tenant: &'a str,
    now: Timestamp,
}

impl Judging<'_> {
    fn context<'c>(&'c self, task: &'c OpenTask, instance: &Instance) -> Context<'c> {
        Context {
            version: &task.version,
            previous: None,
            tenant: self.tenant,
            actor: self.actor,
            now: self.now.max(instance.updated_at),
        }
    }

    /// The estimated time to judge these commands.
    fn effort(&self, task: &OpenTask, instance: &Instance, commands: &[Command]) -> Duration {
        let context = self.context(task, instance);
        let copy = JUDGED + COPIED_BYTE * length(instance.weight());
        let beginning = |command| copy + Execution::beginning(context, Some(instance), command);
        commands.iter().map(beginning).sum()
    }

    fn judge(
        &self,
        task: &OpenTask,
        instance: &Instance,
        commands: &[Command],
    ) -> Result<Vec<Action>, Error> {
        let context = self.context(task, instance);
        let judge = |command| {
            let open = open_to(self.actor, self.stopped, &instance.definition, command);
            let result = open.and_then(|()| {
                let mut ids = clock::new_id;
                let begun = Execution::begin(context, Some(instance.clone()), command, &mut ids);
                begun
                    .map(drop)
                    .map_err(|error| refused(context.version, error))
            });
            let action = explained(command, Some(task.state.clone()), result)?;
            Ok(Action {
                task: None,
                state: None,
                ..titled(&task.version.graph, action)
            })
        };
        commands.iter().map(judge).collect()
    }
}
