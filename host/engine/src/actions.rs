//! Lists the actions on an instance: whether the actor may do each now, and if not, why. Each answer is the result of an execution
//! whose effect is not stored. Commands that do not fit the instance and its tasks as they are, such as the release of a task
//! without owner, are not listed. `inbox` lists the actions on the tasks of a list, by the host's rules alone.

mod fitting;

use tokio::time::Instant;
use uuid::Uuid;

use self::fitting::{instance_commands, of_tasks, signals};
use super::Engine;
use super::error::Error;
use super::permission::need;
use super::pipeline::executions::{self, DirectoryAt};
use super::pipeline::load::{self, NO_INSTANCE};
use super::pipeline::start_conflict;
use super::request::Identity;
use super::restart::{has_ended, start_after};
use super::visibility::missing;
use wrkflw_core::actor::Actor;
use wrkflw_core::answer::Violation;
use wrkflw_core::command::Command;
use wrkflw_core::execution::Context;
use wrkflw_core::graph::Graph;
use wrkflw_core::ids::{InstanceId, TaskId, VersionRef};
use wrkflw_core::instance::Instance;
use wrkflw_core::json::Json;
use wrkflw_core::rejection::Rejection;
use wrkflw_core::shown::{Omitted, Shown};
use wrkflw_store::load::LoadOptions;
use wrkflw_store::starts::Claim;

pub(super) use self::fitting::of_task;

/// Limit of the commands on tasks and of the signals that one answer tries. The answer has the number of those not tried.
const ACTIONS_MAX: usize = 800;
/// Limit of the size of an answer, in bytes. Beyond it, or when the request's time is over, tasks and signals are not tried.
const BYTES_MAX: usize = 1 << 20;
/// The size of an action without its messages.
const ACTION_BYTES: usize = 200;

/// A possible action.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    pub action: &'static str,
    pub task: Option<TaskId>,
    pub state: Option<String>,
    pub outcome: Option<String>,
    pub trigger: Option<String>,
    /// The title of the outcome or signal, for people.
    pub title: Option<String>,
    pub allowed: bool,
    pub required: Vec<Violation>,
    pub refusal: Option<Refusal>,
}

/// The actions on an instance, allowed and refused, and what is left out.
pub struct Explained {
    /// Of the instance.
    pub revision: u32,
    pub actions: Vec<Action>,
    /// The number of actions that were not tried, because there are too many.
    pub untried: usize,
    /// What was left out of the facts for flow logic.
    pub omitted: Omitted,
}

impl Action {
    /// The approximate size in bytes.
    pub fn bytes(&self) -> usize {
        let required = self.required.iter();
        let required = required.map(|violation| {
            violation.field.len() + violation.code.len() + violation.message.len()
        });
        let refusal = self.refusal.as_ref();
        ACTION_BYTES + required.sum::<usize>() + refusal.map_or(0, |refusal| refusal.message.len())
    }
}

impl Explained {
    /// The approximate size in bytes.
    pub fn bytes(&self) -> usize {
        self.actions.iter().map(Action::bytes).sum()
    }
}

/// Why the actor may not do something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub code: String,
    pub message: String,
}

/// What was loaded about the caller and the tenant.
struct LoadedCaller<'a> {
    actor: &'a Actor,
    /// As of [`Loaded::access_mark`](wrkflw_store::load::Loaded::access_mark).
    mark: Uuid,
    stopped: &'a [VersionRef],
}

impl<'a> LoadedCaller<'a> {
    fn of(actor: &'a Actor, mark: Uuid, stopped: &'a [VersionRef]) -> LoadedCaller<'a> {
        LoadedCaller {
            actor,
            mark,
            stopped,
        }
    }
}

/// What a caller may do, on an instance and on the tasks of a list.
#[derive(Clone, Copy)]
pub struct Actions<'a> {
    pub(super) engine: &'a Engine,
}

impl Actions<'_> {
    /// The actions that fit the instance as it is, allowed and refused. Checks no permission to read it.
    pub async fn on_instance(self, who: &Identity, id: InstanceId) -> Result<Explained, Error> {
        let options = LoadOptions::at(self.engine.0.clock.now());
        let loaded = load::loaded(self.engine, &who.caller(), id, options).await?;
        let stored = loaded.found.ok_or_else(|| missing(id))?;
        self.engine
            .check_seen(who.tenant, &loaded.actor, &stored.instance)
            .await?;
        let revision = stored.instance.revision;
        let omitted = Shown::of(&stored.instance).omitted;
        let known = LoadedCaller::of(&loaded.actor, loaded.access_mark, &loaded.stopped);
        let explained = self.explain_all(who, known, &stored.instance);
        let (actions, untried) = explained.await?;
        Ok(Explained {
            revision,
            actions,
            untried,
            omitted,
        })
    }

    /// All actions on this instance, which may differ from the stored one.
    pub(super) async fn on_loaded(
        self,
        who: &Identity,
        instance: &Instance,
    ) -> Result<Vec<Action>, Error> {
        let options = LoadOptions::at(self.engine.0.clock.now());
        let loaded = load::loaded(self.engine, &who.caller(), NO_INSTANCE, options).await?;
        let known = LoadedCaller::of(&loaded.actor, loaded.access_mark, &loaded.stopped);
        let explained = self.explain_all(who, known, instance);
        Ok(explained.await?.0)
    }

    async fn explain_all(
        self,
        who: &Identity,
        LoadedCaller {
            actor,
            mark,
            stopped,
        }: LoadedCaller<'_>,
        instance: &Instance,
    ) -> Result<(Vec<Action>, usize), Error> {
        let version = self
            .engine
            .versions()
            .get(who.tenant, &instance.definition)
            .await?;
        let now = self.engine.0.clock.now().max(instance.updated_at);
        let context = Context {
            version: &version,
            previous: None,
            tenant: &who.tenant_name,
            actor,
            now,
        };
        let directory = DirectoryAt {
            tenant: who.tenant,
            mark,
            now,
        };
        let mut actions = Vec::new();
        let mut commands = of_tasks(&version, instance, &actor.id);
        commands.extend(signals(&version, instance));
        let (until, mut bytes) = (Instant::now() + self.engine.0.timeout, 0);
        let (mut tried, mut untried) = (0, 0);
        let whole = instance_commands(instance).map(|command| (command, None));
        let of_parts = commands.len();
        for (number, (command, state)) in commands.into_iter().chain(whole).enumerate() {
            let is_full = tried >= ACTIONS_MAX || bytes > BYTES_MAX || Instant::now() >= until;
            if number < of_parts && is_full {
                untried += 1;
                continue;
            }
            // Many commands never wait for anything, so other tasks of the runtime get a turn between two of them.
            tokio::task::yield_now().await;
            tried += 1;
            let open = open_to(actor, stopped, &instance.definition, &command);
            let explained = self.explain(directory, context, instance, (command, state, open));
            let action = explained.await?;
            let action = titled(&version.graph, action);
            bytes += action.bytes();
            actions.push(action);
        }
        if has_ended(instance).is_ok() {
            actions.push(self.explain_restart(who, context, instance).await?);
        }
        Ok((actions, untried))
    }

    /// Explains a restart by a dry run of a start in the active version.
    async fn explain_restart(
        self,
        who: &Identity,
        context: Context<'_>,
        instance: &Instance,
    ) -> Result<Action, Error> {
        let command = start_after(instance, None);
        let result = match need(context.actor, command.permission()) {
            Ok(()) => self.try_restart(who, context, instance, &command).await,
            Err(error) => Err(error),
        };
        explained(&command, None, result)
    }

    async fn try_restart(
        self,
        who: &Identity,
        context: Context<'_>,
        instance: &Instance,
        command: &Command,
    ) -> Result<(), Error> {
        let (tenant, key) = (who.tenant, &instance.definition.key);
        let options = LoadOptions {
            definition: Some(key),
            ..LoadOptions::at(context.now)
        };
        let loaded = load::loaded(self.engine, &who.caller(), NO_INSTANCE, options).await?;
        let active = loaded.definition.and_then(|found| found.active_version);
        let active = active.zip(loaded.content.as_deref());
        let (version, digests) = active.ok_or_else(|| Error::NoActiveVersion(key.clone()))?;
        let reference = VersionRef {
            key: key.clone(),
            version,
        };
        if loaded.stopped.contains(&reference) {
            return Err(Error::stopped(reference));
        }
        let version = self
            .engine
            .versions()
            .with_content(tenant, &reference, Some(digests))
            .await?;
        let context = Context {
            version: &version,
            ..context
        };
        let directory = DirectoryAt {
            tenant,
            mark: loaded.access_mark,
            now: context.now,
        };
        self.try_once(directory, context, None, command).await?;
        let claim = Claim {
            sole: version.graph.sole_per_entity,
            ..Claim::of(instance)
        };
        start_conflict::check_entity_is_free(self.engine, who, &claim).await
    }

    async fn explain(
        self,
        directory: DirectoryAt,
        context: Context<'_>,
        instance: &Instance,
        (command, state, open): (Command, Option<String>, Result<(), Error>),
    ) -> Result<Action, Error> {
        let result = match open {
            Ok(()) => {
                self.try_once(directory, context, Some(instance), &command)
                    .await
            }
            Err(error) => Err(error),
        };
        explained(&command, state, result)
    }

    /// Executes the command without effect, within the limits of the host.
    async fn try_once(
        self,
        directory: DirectoryAt,
        context: Context<'_>,
        before: Option<&Instance>,
        command: &Command,
    ) -> Result<(), Error> {
        let executing = executions::execute_once(self.engine, directory, context, before, command);
        let after = executing.await?.outcome.instance;
        let is_host = context.actor.is_host();
        Ok(self.engine.0.budgets.check(before, &after, is_host)?)
    }
}

/// Refuses a command for which the actor lacks the permission, or that a stop of the version forbids.
pub(super) fn open_to(
    actor: &Actor,
    stopped: &[VersionRef],
    version: &VersionRef,
    command: &Command,
) -> Result<(), Error> {
    need(actor, command.permission())?;
    if stopped.contains(version) && !command.passes_a_stop() {
        return Err(Error::stopped(version.clone()));
    }
    Ok(())
}

/// The action for the result of a dry run. A transient failure is returned as an error.
pub(super) fn explained(
    command: &Command,
    state: Option<String>,
    result: Result<(), Error>,
) -> Result<Action, Error> {
    let (required, refusal) = match result {
        Ok(()) => (missing_fields(command), None),
        Err(Error::Rejected(Rejection::Invalid(mut violations))) => {
            violations.extend(missing_fields(command));
            (violations, None)
        }
        Err(error @ (Error::Store(_) | Error::Unavailable(_) | Error::Busy)) => return Err(error),
        Err(error) => (Vec::new(), Some(refusal(&error))),
    };
    let outcome = match command {
        Command::Decide { outcome, .. } => Some(outcome.clone()),
        _ => None,
    };
    let trigger = match command {
        Command::Signal { trigger, .. } => Some(trigger.clone()),
        _ => None,
    };
    Ok(Action {
        action: verb(command),
        task: command.task(),
        state,
        outcome,
        trigger,
        title: None,
        allowed: refusal.is_none(),
        required,
        refusal,
    })
}

/// The last segment of the path of its route.
fn verb(command: &Command) -> &'static str {
    match command {
        Command::SuspendTask { .. } => "suspend",
        Command::ResumeTask { .. } => "resume",
        other => other.action(),
    }
}

/// The required fields that a dry run does not check.
fn missing_fields(command: &Command) -> Vec<Violation> {
    match command {
        Command::Cancel { .. } | Command::Suspend { .. } => {
            vec![required("/reason", "say why".into())]
        }
        Command::Decide {
            outcome,
            comment: Some(_),
            ..
        } => {
            let message = format!("{outcome} needs a comment");
            vec![required("/comment", message)]
        }
        _ => Vec::new(),
    }
}

/// The action with the title that the graph gives to its outcome or signal.
pub(super) fn titled(graph: &Graph, action: Action) -> Action {
    let trigger = action.outcome.as_ref().or(action.trigger.as_ref());
    let way = action.state.as_ref().zip(trigger);
    let way = way.and_then(|(state, trigger)| graph.transition(state, trigger));
    Action {
        title: way.map(|way| way.shown_title().to_owned()),
        ..action
    }
}

fn required(field: &str, message: String) -> Violation {
    Violation {
        expected: Some(Json::of(&true)),
        field: field.to_owned(),
        code: "required".to_owned(),
        message,
    }
}

pub(super) fn refusal(error: &Error) -> Refusal {
    let code = match error {
        Error::Rejected(rejection) => rejection.forbids().unwrap_or(rejection.code()),
        Error::Permission(_) => "permission_missing",
        Error::NotFound { .. } => "not_found",
        Error::Logic(logic) => logic.code,
        Error::NoActiveVersion(_) => "no_active_version",
        Error::Stopped { .. } => "version_stopped",
        _ => "unavailable",
    };
    Refusal {
        code: code.to_owned(),
        message: error.to_string(),
    }
}
