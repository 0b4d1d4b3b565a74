//! Bulk operations: migrations and cancellations of many instances. This module chooses the instances, makes dry runs on some of
//! them, and runs the items of an operation. Each item is one ordinary command in the name of the person who requested the operation.
//!
//! Each item's command has its own idempotency key. If a host dies after the commit and before it records the outcome, the
//! repeated command changes nothing. [`operations`] starts and stops operations, [`items`] runs a batch of items.

pub(super) mod items;
mod operations;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use uuid::Uuid;

use super::actions::refusal;
use super::pipeline::{load, reply};
use super::request::{Done, Idempotency, Identity, Rendered, Reply, Request, Trace};
use super::{Engine, Error};
use wrkflw_core::audit::sha256;
use wrkflw_core::command::Command;
use wrkflw_core::execution::BLIND;
use wrkflw_core::ids::{InstanceId, VersionRef};
use wrkflw_core::instance::{Instance, Status};
use wrkflw_core::json::{Json, whole};
use wrkflw_core::rejection::Rejection;
use wrkflw_store::StoreError;
use wrkflw_store::bulk::{self, AliveFilter, Batch, ITEMS_MAX, Outcome};
use wrkflw_store::load::LoadOptions;

/// The permissions for changes of many instances.
const MIGRATE: &str = "instance:migrate";
const CANCEL: &str = "instance:cancel";
/// Instances read at a time.
const PAGE: usize = 1_000;
/// Limit of the instances that a dry run tries.
const TRIED_MAX: usize = 20;
/// How often an item is tried when others keep changing its instance.
const TRIES_MAX: u32 = 10;

/// The stored settings of a bulk migration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Migrations {
    /// Key of the definition.
    #[serde(rename = "definitionKey")]
    pub definition: String,
    /// The version that the instances have now.
    #[serde(deserialize_with = "whole")]
    pub from_version: u32,
    /// The version that they are migrated to.
    #[serde(deserialize_with = "whole")]
    pub version: u32,
    /// The new name of each state that does not keep its own.
    #[serde(default)]
    pub states: BTreeMap<String, String>,
    #[serde(default)]
    pub filter: AliveFilter,
}

/// The stored settings of a bulk cancellation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cancellations {
    /// Key of the definition.
    #[serde(rename = "definitionKey")]
    pub definition: String,
    /// The version that the instances have.
    #[serde(deserialize_with = "whole")]
    pub version: u32,
    /// The reason. It is stored with each instance.
    pub reason: String,
    #[serde(default)]
    pub filter: AliveFilter,
}

/// A bulk operation.
#[derive(Debug, Clone)]
pub enum Many {
    Migrate(Migrations),
    Cancel(Cancellations),
}

impl Many {
    /// The permission that the requester needs.
    fn permission(&self) -> &'static str {
        match self {
            Many::Migrate(_) => MIGRATE,
            Many::Cancel(_) => CANCEL,
        }
    }

    fn action(&self) -> &'static str {
        match self {
            Many::Migrate(_) => "migrate",
            Many::Cancel(_) => "cancel",
        }
    }

    fn settings(&self) -> Json {
        match self {
            Many::Migrate(migrations) => Json::of(migrations),
            Many::Cancel(cancellations) => Json::of(cancellations),
        }
    }

    fn of(batch: &Batch) -> Result<Many, String> {
        let text = batch.settings.as_str();
        let read = match batch.action.as_str() {
            "migrate" => serde_json::from_str(text).map(Many::Migrate),
            "cancel" => serde_json::from_str(text).map(Many::Cancel),
            unknown => return Err(format!("this release has no bulk operation {unknown:?}")),
        };
        read.map_err(|error| format!("the operation cannot be read: {error}"))
    }

    /// The current version of the instances, and the filter.
    fn about(&self) -> (VersionRef, &AliveFilter) {
        let (key, version, filter) = match self {
            Many::Migrate(many) => (&many.definition, many.from_version, &many.filter),
            Many::Cancel(many) => (&many.definition, many.version, &many.filter),
        };
        let key = key.clone();
        (VersionRef { key, version }, filter)
    }

    /// The command for one instance.
    fn command(&self, instance: &Instance) -> Command {
        match self {
            Many::Cancel(cancellations) => Command::Cancel {
                instance: instance.id,
                reason: cancellations.reason.clone(),
            },
            Many::Migrate(migrations) => {
                let states = instance.active.iter().chain(&instance.waiting);
                let renamed = states.filter_map(|state_instance| {
                    let new = migrations.states.get(&state_instance.name)?;
                    Some((state_instance.name.clone(), new.clone()))
                });
                Command::Migrate {
                    instance: instance.id,
                    version: migrations.version,
                    states: renamed.collect(),
                }
            }
        }
    }

    /// Why the operation does not apply to this instance any more: it runs under another version, or no longer matches the filter.
    /// None for an ended instance: the command refuses it.
    fn unlike(&self, instance: &Instance) -> Option<Outcome> {
        let (current, filter) = self.about();
        let refused = |code: &str, detail| {
            let code = code.to_owned();
            Some(Outcome::Refused { code, detail })
        };
        if instance.definition.version != current.version {
            let detail = format!("the instance runs under {} now", instance.definition);
            return refused("other_version", detail);
        }
        let status = instance.status.name();
        let is_alive = matches!(instance.status, Status::Running | Status::Suspended { .. });
        if !is_alive {
            return None;
        }
        if filter.status.as_ref().is_some_and(|only| only != status) {
            return refused("no_longer_matches", format!("the instance is {status} now"));
        }
        let state = filter.state.as_ref()?;
        let mut open = instance.active.iter().chain(&instance.waiting);
        if open.any(|found| found.name == *state) {
            return None;
        }
        let detail = format!("the instance is not in {state} any more");
        refused("no_longer_matches", detail)
    }
}

/// The result of a dry run of a bulk operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    pub dry_run: bool,
    pub total: usize,
    pub more: bool,
    pub tried: usize,
    pub done: usize,
    pub refused: usize,
    pub failed: usize,
    pub sample: Vec<TrialResult>,
}

/// The result of the dry run on one instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialResult {
    pub instance: Uuid,
    pub result: &'static str,
    pub code: Option<String>,
    pub detail: Option<String>,
}

/// Bulk operations: migrations and cancellations of many instances.
#[derive(Clone, Copy)]
pub struct Bulk<'a> {
    pub(super) engine: &'a Engine,
}

impl Bulk<'_> {
    /// Counts the instances that match the filter, and makes dry runs on some of them until the request's time is over. A busy
    /// instance counts as failed.
    pub async fn dry_run(self, who: &Identity, many: &Many) -> Result<Trial, Error> {
        self.check_many(who, many).await?;
        let (instances, more) = self.choose(who, many).await?;
        let mut trial = Trial {
            dry_run: true,
            total: instances.len(),
            more,
            tried: 0,
            done: 0,
            refused: 0,
            failed: 0,
            sample: Vec::new(),
        };
        let until = Instant::now() + self.engine.0.timeout;
        for instance in instances.into_iter().take(TRIED_MAX) {
            if Instant::now() >= until {
                break;
            }
            let tried = self.run_on(InstanceId(instance), who, many, None).await;
            let outcome = match tried {
                Err(error @ Error::Busy) => Outcome::Failed {
                    code: "busy".to_owned(),
                    detail: error.to_string(),
                },
                tried => tried?,
            };
            trial.tried += 1;
            let (code, detail) = match &outcome {
                Outcome::Done { .. } => (None, None),
                Outcome::Refused { code, detail } | Outcome::Failed { code, detail } => {
                    (Some(code.clone()), Some(detail.clone()))
                }
            };
            match outcome {
                Outcome::Done { .. } => trial.done += 1,
                Outcome::Refused { .. } => trial.refused += 1,
                Outcome::Failed { .. } => trial.failed += 1,
            }
            trial.sample.push(TrialResult {
                instance,
                result: outcome.name(),
                code,
                detail,
            });
        }
        Ok(trial)
    }

    /// The instances of the operation that the caller sees, read page by page until the request's time is over. Also whether there
    /// may be more, because one operation takes no more or the time was over.
    async fn choose(self, who: &Identity, many: &Many) -> Result<(Vec<Uuid>, bool), Error> {
        let until = Instant::now() + self.engine.0.timeout;
        let (current, filter) = many.about();
        let viewer = self.engine.viewer(who).await?;
        let (mut chosen, mut after) = (Vec::new(), filter.after);
        loop {
            let (found, next) =
                bulk::alive(&self.engine.0.store, &viewer, &current, filter, after, PAGE).await?;
            chosen.extend(found);
            if chosen.len() > ITEMS_MAX {
                chosen.truncate(ITEMS_MAX);
                return Ok((chosen, true));
            }
            if next.is_none() {
                return Ok((chosen, false));
            }
            if Instant::now() >= until {
                return Ok((chosen, true));
            }
            after = next;
        }
    }

    /// Runs the command on one instance, if the operation still applies to it. Without a key it is a dry run. An error is transient.
    async fn run_on(
        self,
        id: InstanceId,
        who: &Identity,
        many: &Many,
        key: Option<&Idempotency>,
    ) -> Result<Outcome, Error> {
        for _ in 0..TRIES_MAX {
            let stored = match load::read_for_command(self.engine, who, id).await {
                Ok(stored) => stored,
                // A migration may hide an instance from the requester.
                Err(error @ Error::NotFound { .. }) => {
                    let done = self.done_before(who, id, key).await?;
                    return done.map_or_else(|| ended_by(error), Ok);
                }
                Err(error) => return ended_by(error),
            };
            let instance = &stored.instance;
            if let Some(refused) = many.unlike(instance) {
                let done = self.done_before(who, id, key).await?;
                return Ok(done.unwrap_or(refused));
            }
            let done = self.engine.execute(Request {
                who,
                command: many.command(instance),
                if_match: Some(instance.revision),
                idempotency: key.cloned(),
                dry_run: key.is_none(),
                trace: Trace::default(),
                job: None,
                render: &revision_alone,
            });
            match done.await {
                Err(Error::Rejected(Rejection::Stale { .. })) => {}
                Ok(reply) => return Ok(done_at(&reply)),
                // The command ends a blind vote. Its dry run is refused because the reply would reveal the votes. The outcome of an
                // item does not reveal them.
                Err(Error::Rejected(rejection))
                    if key.is_none()
                        && matches!(many, Many::Cancel(_))
                        && rejection.forbids() == Some(BLIND) =>
                {
                    let revision = instance.revision + 1;
                    return Ok(Outcome::Done { revision });
                }
                Err(error) => return ended_by(error),
            }
        }
        Err(Error::Busy)
    }

    /// The outcome stored under the item's key, if the command was committed and the host died before it recorded the outcome.
    async fn done_before(
        self,
        who: &Identity,
        id: InstanceId,
        key: Option<&Idempotency>,
    ) -> Result<Option<Outcome>, Error> {
        let Some(key) = key else {
            return Ok(None);
        };
        let options = LoadOptions {
            key: Some(&key.key),
            ..LoadOptions::at(self.engine.0.clock.now())
        };
        let loaded = load::loaded(self.engine, &who.caller(), id, options).await?;
        let reply = loaded
            .reply
            .map(|reply| reply::repeat(&self.engine.0.seals, who, reply, key));
        Ok(reply.transpose()?.as_ref().map(done_at))
    }

    /// Runs an item of an operation.
    pub(super) async fn item(self, batch: &Batch, instance: InstanceId) -> Result<Outcome, Error> {
        let many = Many::of(batch)
            .map_err(|error| StoreError::inconsistent("bulk_operation", batch.operation, error))?;
        let name = self.engine.tenant_name(batch.tenant).await?;
        let who = Identity {
            tenant: batch.tenant,
            tenant_name: name.to_string(),
            subject: batch.requested_by.clone(),
            roles: batch.roles.clone(),
            embedded_by: None,
        };
        let key = format!("operation {} {instance}", batch.operation);
        let key = Idempotency {
            fingerprint: sha256(key.as_bytes()),
            key,
        };
        self.run_on(instance, &who, &many, Some(&key)).await
    }
}

fn done_at(reply: &Reply) -> Outcome {
    let revision = revision_of(&reply.rendered.body);
    Outcome::Done { revision }
}

/// The outcome of a failed item. A transient error is returned as an error, and the item is tried again.
fn ended_by(error: Error) -> Result<Outcome, Error> {
    if let Error::Store(_) | Error::Unavailable(_) | Error::Busy = error {
        return Err(error);
    }
    let refusal = refusal(&error);
    let (code, detail) = (refusal.code, refusal.message);
    Ok(match error {
        Error::Logic(_) => Outcome::Failed { code, detail },
        _ => Outcome::Refused { code, detail },
    })
}

/// The stored reply to the command of an item.
#[derive(Serialize, Deserialize)]
struct RevisionReply {
    revision: u32,
}

/// Renders a reply with the new revision of the instance only.
pub fn revision_alone(done: &Done<'_>) -> Rendered {
    let kept = RevisionReply {
        revision: done.instance.revision,
    };
    Rendered {
        status: 200,
        body: Json::of(&kept).to_string(),
        headers: String::new(),
    }
}

/// The revision in a reply of [`revision_alone`].
pub fn revision_of(body: &str) -> u32 {
    let kept: Option<RevisionReply> = serde_json::from_str(body).ok();
    kept.map_or(0, |kept| kept.revision)
}
