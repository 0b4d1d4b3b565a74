//! What an actor may do with an instance now, and why not the rest: each answer is that of the very command, run dry.

use std::collections::BTreeSet;

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::Engine;
use super::error::Error;
use super::request::Identity;
use super::restart::{has_ended, start_after};
use super::turns::Directory;
use crate::domain::actor::Actor;
use crate::domain::answer::Violation;
use crate::domain::command::Command;
use crate::domain::graph::FiredBy;
use crate::domain::ids::{InstanceId, TaskId, VersionRef};
use crate::domain::instance::{Entity, Instance, StateInstance};
use crate::domain::json::Json;
use crate::domain::rejection::Rejection;
use crate::domain::shown::{Omitted, Shown};
use crate::domain::turn::Context;
use crate::domain::version::Version;
use crate::store::load::Asked;

/// The most commands that one answer tries. An instance with more open tasks is cut there, and the answer says so.
const ACTIONS_MAX: usize = 800;

/// One thing that might be done.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Action {
    /// Of a task `claim`, `release`, `decide`, `delegate`, `resolve`, `reassign` or `reset`; of the instance `cancel`,
    /// `suspend`, `resume`, `restart` or `signal`.
    pub action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<uuid::Uuid>)]
    pub task: Option<TaskId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// Of a signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<String>,
    pub allowed: bool,
    /// What the input must still supply.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    pub required: Vec<Violation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<Refusal>,
}

/// All that is open to an actor, and what it does not tell.
pub struct Explained {
    /// Of the instance.
    pub revision: u32,
    pub actions: Vec<Action>,
    /// Actions that were not tried, for there are too many.
    pub untried: usize,
    /// What flow logic was not told.
    pub omitted: Omitted,
}

/// Why an action is not open to this actor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Refusal {
    pub code: String,
    pub message: String,
}

/// What is known of the caller and the tenant.
struct Known<'a> {
    actor: &'a Actor,
    /// As of [`Loaded::standing`](crate::store::load::Loaded::standing).
    mark: Uuid,
    stopped: &'a [VersionRef],
}

impl<'a> Known<'a> {
    fn of(actor: &'a Actor, mark: Uuid, stopped: &'a [VersionRef]) -> Known<'a> {
        Known {
            actor,
            mark,
            stopped,
        }
    }
}

impl Engine {
    /// All actions on the instance, allowed and refused.
    pub async fn actions(&self, who: &Identity, id: InstanceId) -> Result<Explained, Error> {
        let loaded = {
            let asked = Asked::at(self.0.clock.now());
            self.0.store.load(&who.principalship(), id, asked).await?
        };
        let stored = loaded.found.ok_or_else(|| Error::NotFound {
            what: "instance",
            id: id.to_string(),
        })?;
        let revision = stored.instance.revision;
        let omitted = Shown::of(&stored.instance).omitted;
        let known = Known::of(&loaded.actor, loaded.standing, &loaded.stopped);
        let explained = self.explain_all(who, known, &stored.instance);
        let (actions, untried) = explained.await?;
        Ok(Explained {
            revision,
            actions,
            untried,
            omitted,
        })
    }

    /// All actions on the instance as it stands here, whether or not it is the one that is kept.
    pub(super) async fn actions_on(
        &self,
        who: &Identity,
        instance: &Instance,
    ) -> Result<Vec<Action>, Error> {
        let asked = Asked::at(self.0.clock.now());
        let store = &self.0.store;
        let loaded = store.load(&who.principalship(), instance.id, asked).await?;
        let known = Known::of(&loaded.actor, loaded.standing, &loaded.stopped);
        let explained = self.explain_all(who, known, instance);
        Ok(explained.await?.0)
    }

    async fn explain_all(
        &self,
        who: &Identity,
        Known {
            actor,
            mark,
            stopped,
        }: Known<'_>,
        instance: &Instance,
    ) -> Result<(Vec<Action>, usize), Error> {
        let version = self.version(who.tenant, &instance.definition).await?;
        let now = self.0.clock.now().max(instance.updated_at);
        let context = Context {
            version: &version,
            previous: None,
            tenant: &who.tenant_name,
            actor,
            now,
        };
        let directory = Directory {
            tenant: who.tenant,
            mark,
            now,
        };
        let mut actions = Vec::new();
        let mut commands = of_tasks(&version, instance);
        commands.extend(signals(&version, instance));
        let untried = commands.len().saturating_sub(ACTIONS_MAX);
        commands.truncate(ACTIONS_MAX);
        commands.extend(of_the_whole(instance).map(|command| (command, None)));
        for (command, state) in commands {
            // Many of them never wait for anything: others have their turn between two.
            tokio::task::yield_now().await;
            if stopped.contains(&instance.definition) && !command.passes_a_stop() {
                let permitted = permitted(actor, &command);
                let refused =
                    permitted.and_then(|()| Err(Error::stopped(instance.definition.clone())));
                actions.push(explained(&command, state, refused)?);
                continue;
            }
            actions.push(
                self.explain(directory, context, instance, command, state)
                    .await?,
            );
        }
        actions.push(self.explain_restart(who, context, instance).await?);
        Ok((actions, untried))
    }

    /// Of a restart, too, the answer is that of the command: a start under the version that is active now.
    async fn explain_restart(
        &self,
        who: &Identity,
        context: Context<'_>,
        instance: &Instance,
    ) -> Result<Action, Error> {
        let command = start_after(instance, None);
        let result = match permitted(context.actor, &command) {
            Ok(()) => self.try_restart(who, context, instance, &command).await,
            Err(error) => Err(error),
        };
        explained(&command, None, result)
    }

    async fn try_restart(
        &self,
        who: &Identity,
        context: Context<'_>,
        instance: &Instance,
        command: &Command,
    ) -> Result<(), Error> {
        has_ended(instance)?;
        let (tenant, key) = (who.tenant, &instance.definition.key);
        let principal = who.principalship();
        let startable = self.0.store.load_start(&principal, key, None).await?;
        let definition = startable.definition.as_ref();
        let is_stopped = definition.is_some_and(|found| found.stopped);
        let active = startable.definition.and_then(|found| found.version);
        let (version, digests) = active.ok_or_else(|| Error::NoActiveVersion(key.clone()))?;
        let reference = VersionRef {
            key: key.clone(),
            version,
        };
        if is_stopped {
            return Err(Error::stopped(reference));
        }
        let version = self.version_of(tenant, &reference, Some(&digests)).await?;
        let context = Context {
            version: &version,
            ..context
        };
        let directory = Directory {
            tenant,
            mark: startable.standing,
            now: context.now,
        };
        self.turn(directory, context, None, command).await?;
        let Entity { kind, id } = &instance.entity;
        match self.0.store.running(tenant, key, kind, id).await? {
            Some(running) => Err(self.already_running(who, running).await?),
            None => Ok(()),
        }
    }

    async fn explain(
        &self,
        directory: Directory,
        context: Context<'_>,
        instance: &Instance,
        command: Command,
        state: Option<String>,
    ) -> Result<Action, Error> {
        let result = match permitted(context.actor, &command) {
            Ok(()) => self
                .turn(directory, context, Some(instance.clone()), &command)
                .await
                .map(drop),
            Err(error) => Err(error),
        };
        explained(&command, state, result)
    }
}

/// The answer to a command that was tried, unless it could not be tried now.
fn explained(
    command: &Command,
    state: Option<String>,
    result: Result<(), Error>,
) -> Result<Action, Error> {
    let (required, refusal) = match result {
        Ok(()) => (unsaid(command), None),
        Err(Error::Rejected(Rejection::Invalid(violations))) => (violations, None),
        // The guard let the actor pass. What refused the empty input may take another.
        Err(Error::Rejected(Rejection::Refused(reason))) => {
            (vec![violation("/input", reason.code, reason.message)], None)
        }
        Err(error @ (Error::Store(_) | Error::Unavailable(_))) => return Err(error),
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
        action: command.action(),
        task: command.task(),
        state,
        outcome,
        trigger,
        allowed: refusal.is_none(),
        required,
        refusal,
    })
}

/// Every command that the graph knows for the open tasks. What it must say besides is left empty.
fn of_tasks(version: &Version, instance: &Instance) -> Vec<(Command, Option<String>)> {
    let mut commands = Vec::new();
    for state in &instance.active {
        for task in state
            .tasks
            .iter()
            .filter(|task| task.status.is_open())
            .map(|task| task.id)
        {
            let mut add = |command| commands.push((command, Some(state.name.clone())));
            add(Command::Claim { task });
            add(Command::Release { task });
            let (to, reason) = (String::new(), String::new());
            add(Command::Delegate {
                task,
                to: to.clone(),
                reason: reason.clone(),
            });
            add(Command::Resolve { task });
            add(Command::Reassign {
                task,
                to,
                reason: reason.clone(),
            });
            add(Command::Reset { task, reason });
            for way in version
                .graph
                .leaving(&state.name)
                .filter(|way| way.by.contains(&FiredBy::Decision))
            {
                add(Command::Decide {
                    task,
                    outcome: way.trigger.clone(),
                    comment: None,
                    input: Json::empty(),
                });
            }
        }
    }
    commands
}

/// The signals that move a state now, each for the oldest state that takes it.
fn signals(version: &Version, instance: &Instance) -> Vec<(Command, Option<String>)> {
    let mut seen = BTreeSet::new();
    let of = |state: &StateInstance| -> Vec<(Command, Option<String>)> {
        let ways = version.graph.leaving(&state.name);
        let ways = ways.filter(|way| way.by.contains(&FiredBy::Signal));
        ways.filter(|way| seen.insert(way.trigger.clone()))
            .map(|way| {
                let signal = Command::Signal {
                    instance: instance.id,
                    trigger: way.trigger.clone(),
                    id: "explain".to_owned(),
                    input: Json::empty(),
                    correlation: None,
                };
                (signal, Some(state.name.clone()))
            })
            .collect()
    };
    instance.active.iter().flat_map(of).collect()
}

fn of_the_whole(instance: &Instance) -> impl Iterator<Item = Command> {
    let (instance, reason) = (instance.id, String::new());
    let cancel = Command::Cancel {
        instance,
        reason: reason.clone(),
    };
    let suspend = Command::Suspend { instance, reason };
    [cancel, suspend, Command::Resume { instance }].into_iter()
}

/// What a command must say beyond what was tried.
fn unsaid(command: &Command) -> Vec<Violation> {
    match command {
        Command::Cancel { .. } | Command::Suspend { .. } => {
            vec![violation("/reason", "required".into(), "say why".into())]
        }
        _ => Vec::new(),
    }
}

fn violation(field: &str, code: String, message: String) -> Violation {
    Violation {
        field: field.to_owned(),
        code,
        message,
    }
}

fn permitted(actor: &Actor, command: &Command) -> Result<(), Error> {
    let permission = command.permission();
    if actor.may(permission) {
        Ok(())
    } else {
        Err(Error::Permission(permission))
    }
}

pub(super) fn refusal(error: &Error) -> Refusal {
    let code = match error {
        Error::Rejected(rejection) => rejection.forbids().unwrap_or(rejection.code()),
        Error::Permission(_) => "permission_missing",
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
