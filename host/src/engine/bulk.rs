//! Migrations and cancellations of many instances: choosing them, trying some dry, and the items of an operation, each one ordinary
//! command in the name of whoever asked for the whole.
//!
//! An item's command has an idempotency key of its own: a host that died between the commit and its note of it does
//! nothing twice.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::actions::refusal;
use super::jobs::{Hands, guarded, later, pause, tally};
use super::request::{Done, Idempotency, Identity, Rendered, Reply, Request, Trace};
use super::{Engine, Error};
use crate::domain::audit::sha256;
use crate::domain::command::Command;
use crate::domain::ids::{InstanceId, VersionRef};
use crate::domain::json::{Json, whole};
use crate::domain::rejection::Rejection;
use crate::store::bulk::{AliveFilter, Batch, Begun, ITEMS_MAX, NewOperation, Outcome};

/// Items that a host takes at a time.
pub(super) const BATCH_ITEMS: i64 = 20;
/// Items in hand at once, each with a connection now and then.
const AT_ONCE: usize = 4;
/// Instances chosen by one read.
const PAGE: usize = 1_000;
/// Instances that a dry run tries.
const TRIED_MAX: usize = 20;
/// How often an item is tried that fails in passing.
const ATTEMPTS_MAX: u32 = 10;
/// How often one attempt begins anew because its instance moved on.
const MOVES_MAX: u32 = 10;
/// What metrics call an item.
const KIND: &str = "bulk_item";

/// Which instances go over to which version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Migrations {
    /// Key of the definition.
    pub definition: String,
    /// The version that the instances have now.
    #[serde(deserialize_with = "whole")]
    pub from: u32,
    /// The version that they go over to.
    #[serde(deserialize_with = "whole")]
    pub version: u32,
    /// The new name of each state that does not keep its own.
    #[serde(default)]
    pub states: BTreeMap<String, String>,
    #[serde(default)]
    pub filter: AliveFilter,
}

/// Which instances are cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cancellations {
    /// Key of the definition.
    pub definition: String,
    /// The version that the instances have.
    #[serde(deserialize_with = "whole")]
    pub version: u32,
    /// Why; each instance keeps it.
    pub reason: String,
    #[serde(default)]
    pub filter: AliveFilter,
}

/// What is done to many.
#[derive(Debug, Clone)]
pub enum Many {
    Migrate(Migrations),
    Cancel(Cancellations),
}

impl Many {
    /// The permission that whoever asks for it needs.
    pub fn permission(&self) -> &'static str {
        match self {
            Many::Migrate(_) => "instance:migrate",
            Many::Cancel(_) => "instance:cancel",
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
            unknown => return Err(format!("this host does not know operations that {unknown}")),
        };
        read.map_err(|error| format!("the operation cannot be read: {error}"))
    }

    /// The version that the instances have, and what narrows them down.
    fn about(&self) -> (VersionRef, &AliveFilter) {
        let (key, version, filter) = match self {
            Many::Migrate(one) => (&one.definition, one.from, &one.filter),
            Many::Cancel(one) => (&one.definition, one.version, &one.filter),
        };
        let key = key.clone();
        (VersionRef { key, version }, filter)
    }
}

/// What a dry run of many came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Trial {
    /// Always true: nothing was written.
    pub dry_run: bool,
    /// Instances that an operation would be about.
    pub total: usize,
    /// There are more instances than one operation takes.
    pub more: bool,
    /// How many were tried, and what these came to.
    pub tried: usize,
    pub done: usize,
    pub refused: usize,
    pub failed: usize,
    pub sample: Vec<Tried>,
}

/// What the dry run of one came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tried {
    pub instance: Uuid,
    /// `done`, `refused` or `failed`.
    pub result: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl Engine {
    /// Begins to do it to all instances that the filter finds.
    pub async fn begin_many(&self, who: &Identity, id: Uuid, many: &Many) -> Result<Begun, Error> {
        let (instances, more) = self.choose(who, many).await?;
        let settings = many.settings();
        let new = NewOperation {
            id,
            action: many.action(),
            settings: &settings,
            roles: &who.roles,
            instances: &instances,
            more,
        };
        let note = self.note(&who.subject);
        let begun = self
            .0
            .store
            .begin_operation(who.tenant, &new, &note)
            .await?;
        self.0.aftermath.work.notify_one();
        Ok(begun)
    }

    /// Counts the instances that the filter finds, and tries some of them.
    pub async fn try_many(&self, who: &Identity, many: &Many) -> Result<Trial, Error> {
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
        for instance in instances.into_iter().take(TRIED_MAX) {
            let outcome = self.one_of(who, many, InstanceId(instance), None).await?;
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
            trial.sample.push(Tried {
                instance,
                result: outcome.name(),
                code,
                detail,
            });
        }
        Ok(trial)
    }

    /// The instances that it is about, page by page, and whether there are more than one operation takes.
    async fn choose(&self, who: &Identity, many: &Many) -> Result<(Vec<Uuid>, bool), Error> {
        self.permit(who, many.permission()).await?;
        let (current, filter) = many.about();
        let mut chosen: Vec<Uuid> = Vec::new();
        loop {
            let after = chosen.last().copied();
            let found = self
                .0
                .store
                .alive(who.tenant, &current, filter, after, PAGE)
                .await?;
            let is_last = found.len() < PAGE;
            chosen.extend(found);
            if chosen.len() > ITEMS_MAX {
                chosen.truncate(ITEMS_MAX);
                return Ok((chosen, true));
            }
            if is_last {
                return Ok((chosen, false));
            }
        }
    }

    /// Does it to one of many, for good when it has a key. Errors are such as pass.
    async fn one_of(
        &self,
        who: &Identity,
        many: &Many,
        id: InstanceId,
        key: Option<&Idempotency>,
    ) -> Result<Outcome, Error> {
        match many {
            Many::Migrate(migrations) => self.migrate_one(who, migrations, id, key).await,
            Many::Cancel(cancellations) => self.cancel_one(who, cancellations, id, key).await,
        }
    }

    async fn cancel_one(
        &self,
        who: &Identity,
        cancellations: &Cancellations,
        id: InstanceId,
        key: Option<&Idempotency>,
    ) -> Result<Outcome, Error> {
        let done = self.execute(Request {
            who,
            command: Command::Cancel {
                instance: id,
                reason: cancellations.reason.clone(),
            },
            if_match: None,
            idempotency: key.cloned(),
            dry_run: key.is_none(),
            trace: Trace::default(),
            job: None,
            render: &revision_alone,
        });
        match done.await {
            Ok(reply) => Ok(done_at(&reply)),
            Err(error) => ended_by(error),
        }
    }

    async fn migrate_one(
        &self,
        who: &Identity,
        migrations: &Migrations,
        id: InstanceId,
        key: Option<&Idempotency>,
    ) -> Result<Outcome, Error> {
        for _ in 0..MOVES_MAX {
            let result = match self.read(who, id).await {
                Ok(stored) => {
                    let instance = &stored.instance;
                    let known = [migrations.from, migrations.version];
                    if !known.contains(&instance.definition.version) {
                        return Ok(Outcome::Refused {
                            code: "other_version".to_owned(),
                            detail: format!("it runs under {} by now", instance.definition),
                        });
                    }
                    let states = instance.active.iter().chain(&instance.waiting);
                    let renamed = states.filter_map(|stay| {
                        let new = migrations.states.get(&stay.name)?;
                        Some((stay.name.clone(), new.clone()))
                    });
                    let command = Command::Migrate {
                        instance: id,
                        version: migrations.version,
                        states: renamed.collect(),
                    };
                    let revision = instance.revision;
                    self.execute(Request {
                        who,
                        command,
                        if_match: Some(revision),
                        idempotency: key.cloned(),
                        dry_run: key.is_none(),
                        trace: Trace::default(),
                        job: None,
                        render: &revision_alone,
                    })
                    .await
                }
                Err(error) => Err(error),
            };
            match result {
                Err(Error::Rejected(Rejection::Stale { .. })) => {}
                Ok(reply) => return Ok(done_at(&reply)),
                Err(error) => return ended_by(error),
            }
        }
        Err(Error::Busy)
    }

    /// Does an item of an operation.
    pub(super) async fn item(&self, batch: &Batch, instance: InstanceId) -> Result<Outcome, Error> {
        let many = Many::of(batch).map_err(Error::Unavailable)?;
        let name = self.tenant_name(batch.tenant).await?;
        let who = Identity {
            tenant: batch.tenant,
            tenant_name: name.to_string(),
            subject: batch.requested_by.clone(),
            roles: batch.roles.clone(),
        };
        let key = format!("operation {} {instance}", batch.operation);
        let key = Idempotency {
            fingerprint: sha256(key.as_bytes()),
            key,
        };
        self.one_of(&who, &many, instance, Some(&key)).await
    }
}

fn done_at(reply: &Reply) -> Outcome {
    let revision = revision_of(&reply.rendered.body);
    Outcome::Done { revision }
}

/// What an item that did not succeed has come to. What passes is tried again.
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

impl Hands {
    /// Does the items of a batch, a few at once, and notes what each came to.
    pub(super) async fn batch(self: Arc<Self>, batch: Batch) {
        let work = |(instance, attempts): (InstanceId, u32)| {
            let (hands, batch) = (&self, &batch);
            async move {
                if hands.cancel.is_cancelled() {
                    // Others may go on at once.
                    let now = hands.clock.now();
                    return hands
                        .store
                        .put_off_item(batch, instance, attempts, now)
                        .await;
                }
                hands.one(batch, instance, attempts).await
            }
        };
        let mut settled = futures_util::stream::iter(batch.items.clone())
            .map(work)
            .buffer_unordered(AT_ONCE);
        while let Some(result) = settled.next().await {
            if let Err(error) = result {
                // The lease will be over, and somebody finds out how far it came.
                tracing::warn!(operation.id = %batch.operation, %error, "an item could not be settled");
            }
        }
    }

    async fn one(
        &self,
        batch: &Batch,
        instance: InstanceId,
        attempts: u32,
    ) -> Result<(), crate::store::StoreError> {
        let mut outcome = None;
        let work = async {
            outcome = Some(self.perform.item(batch, instance).await?);
            Ok(())
        };
        let worked = guarded(self.lease, work).await;
        let now = self.clock.now();
        let outcome = match (worked, outcome) {
            (Ok(()), Some(outcome)) => outcome,
            (Err(detail), _) if attempts >= ATTEMPTS_MAX => Outcome::Failed {
                code: "unavailable".to_owned(),
                detail,
            },
            (Err(detail), _) => {
                tracing::warn!(operation.id = %batch.operation, instance.id = %instance, attempts, "an item failed: {detail}");
                let next = later(now, pause(attempts));
                return self
                    .store
                    .put_off_item(batch, instance, attempts, next)
                    .await;
            }
            (Ok(()), None) => unreachable!("what is done has an outcome"),
        };
        crate::fault::point("batch.item_done");
        tally(KIND, matches!(outcome, Outcome::Done { .. }));
        self.store.settle_item(batch, instance, &outcome, now).await
    }
}

/// The reply that a repeat finds.
#[derive(Serialize, Deserialize)]
struct Kept {
    revision: u32,
}

/// The reply to one of many: the instance's revision afterwards.
pub fn revision_alone(done: &Done<'_>) -> Rendered {
    let kept = Kept {
        revision: done.instance.revision,
    };
    Rendered {
        status: 200,
        body: Json::of(&kept).to_string(),
        headers: String::new(),
    }
}

/// What [`revision_alone`] said.
pub fn revision_of(body: &str) -> u32 {
    let kept: Option<Kept> = serde_json::from_str(body).ok();
    kept.map_or(0, |kept| kept.revision)
}
