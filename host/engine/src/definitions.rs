//! Publishes, activates, retires, reinstates and stops versions.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::Engine;
use super::error::Error;
use super::names::{UnknownName, unknown_names};
use super::offload::Offload;
use super::permission::{self, need, note};
use super::request::Identity;
use super::validation::{check_note, check_reason};
use wrkflw_core::actor::Actor;
use wrkflw_core::audit::sha256;
use wrkflw_core::check::{self, Problem, names};
use wrkflw_core::graph::{Graph, NameUse};
use wrkflw_core::ids::{Digest, TenantId, VersionRef};
use wrkflw_core::json::Json;
use wrkflw_core::rejection::Rejection;
use wrkflw_core::version::Version;
use wrkflw_runtime::clock;
use wrkflw_sandbox::{Admission, AdmitError, Pinned, Sandbox};
use wrkflw_store::definitions::running::{self, Running};
use wrkflw_store::definitions::stops::{self, STOPPED_MAX};
use wrkflw_store::definitions::{self, NewVersion, StatusChange};
use wrkflw_store::directory::tenants;
use wrkflw_store::jobs::STOPPED_RETRY;
use wrkflw_store::{Store, StoreError};

/// A published version. `created` is false if it was published before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    pub key: String,
    pub version: u32,
    pub digest: String,
    pub created: bool,
    pub own_work: Vec<String>,
    pub separate: Vec<Vec<String>>,
    pub reads: Vec<String>,
    /// Names that it uses and the tenant does not have.
    pub warnings: Vec<UnknownName>,
}

/// The result of activating a version: whether new instances use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activation {
    pub key: String,
    pub version: u32,
    pub active: bool,
    pub changed: bool,
}

/// What the activation of a version affects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivationEffects {
    /// The version that new instances use now. None if none is active.
    pub before: Option<u32>,
    /// The instances that keep their versions.
    pub running: Running,
    /// Names that the version uses and the tenant does not have.
    pub unknown: Vec<UnknownName>,
}

/// The result of retiring or reinstating a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retirement {
    pub key: String,
    pub version: u32,
    pub retired: bool,
    pub changed: bool,
}

/// The result of stopping or resuming a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopping {
    pub key: String,
    pub version: u32,
    pub stopped: bool,
    pub changed: bool,
}

/// The permissions for activations: of every version, and of one with states of own work.
const ACTIVATE: &str = "definition:activate";
const ACTIVATE_OWN_WORK: &str = "definition:activate-own-work";
/// How long an activation waits for its component to be loaded.
const ACTIVATION_LOAD_WAIT: Duration = Duration::from_secs(5);
/// Components that are loaded when a host starts. To compile one takes up to a minute.
const WARMED_MAX: i64 = 32;
/// Instances whose jobs one statement holds.
const HELD_TOGETHER: i64 = 1_000;
/// Limit of the statements of one stop. Jobs beyond it are held when they are claimed.
const HOLDS_MAX: usize = 200;

/// Checks a component for publishing. Returns all problems. The server and the command line both use it.
pub async fn check_component(
    sandbox: &Sandbox,
    (offload, tenant): (&Offload, TenantId),
    bytes: &[u8],
    config: &Json,
) -> Result<Admission, Error> {
    let admission = sandbox
        .admit(bytes, config)
        .await
        .map_err(|error| match error {
            AdmitError::Rejected(problems) => Error::Unpublishable(problems),
            AdmitError::Unavailable(cause) => Error::Unavailable(cause.to_string()),
        })?;
    let graph = admission.graph.clone();
    let checked = offload.run(tenant, move || check::check(&graph));
    let problems = checked.await?;
    if problems.is_empty() {
        Ok(admission)
    } else {
        Err(Error::Unpublishable(problems))
    }
}

/// The status of definition versions: published, active, retired, stopped.
#[derive(Clone, Copy)]
pub struct Definitions<'a> {
    pub(super) engine: &'a Engine,
}

impl Definitions<'_> {
    /// Publishes a component with its config as the next version of the definition. `note` says why.
    pub async fn publish(
        self,
        who: &Identity,
        key: &str,
        (bytes, config): (&[u8], &Json),
        note: Option<&str>,
    ) -> Result<Published, Error> {
        self.engine.permit(who, "definition:publish").await?;
        note.map_or(Ok(()), check_note)?;
        if !names::is_name(key) {
            let message = format!(
                "name the definition like `document-approval`: {}",
                names::NAME_RULE
            );
            return Err(Error::Unpublishable(vec![Problem::new(
                "malformed_key",
                key,
                message,
            )]));
        }
        let admission = check_component(
            &self.engine.0.sandbox,
            (&self.engine.0.offload, who.tenant),
            bytes,
            config,
        )
        .await?;
        let new = NewVersion {
            key,
            digest: admission.digest,
            bytes,
            config,
            config_digest: sha256(config.as_str().as_bytes()),
            graph: &admission.graph,
            sdk: admission.sdk.as_deref(),
            wit: &admission.wit,
            note,
            definition_id: clock::new_id(),
        };
        let store = &self.engine.0.store;
        let by = permission::note(&self.engine.0.clock, &who.subject);
        let numbered = definitions::publish(store, who.tenant, &new, &by).await?;
        let services = &self.engine.0.services;
        let unknown = unknown_names(store, services, who.tenant, &admission.graph).await?;
        Ok(Published {
            key: key.to_owned(),
            version: numbered.version,
            digest: admission.digest.to_string(),
            created: numbered.created,
            own_work: own_work(&admission.graph),
            reads: reads(&admission.graph),
            warnings: UnknownName::in_config(unknown, config),
            separate: admission.graph.separate,
        })
    }

    /// The component of a published version.
    pub async fn component(self, who: &Identity, reference: &VersionRef) -> Result<Vec<u8>, Error> {
        self.engine.permit(who, "definition:publish").await?;
        let found = definitions::version(&self.engine.0.store, who.tenant, reference);
        let found = found.await?.ok_or_else(|| Error::no_version(reference))?;
        Ok(definitions::component(&self.engine.0.store, found.digest).await?)
    }

    /// The version, and the names that it uses and the tenant does not have. Refuses a caller who may not activate it.
    async fn activating(
        self,
        who: &Identity,
        reference: &VersionRef,
    ) -> Result<(Arc<Version>, Vec<NameUse>), Error> {
        let store = &self.engine.0.store;
        let (actor, _) = tenants::actor(store, &who.caller()).await?;
        need(&actor, ACTIVATE)?;
        let version = self.engine.versions().get(who.tenant, reference).await?;
        may_activate(&actor, &version.graph)?;
        let services = &self.engine.0.services;
        let unknown = unknown_names(store, services, who.tenant, &version.graph).await?;
        Ok((version, unknown))
    }

    /// What the activation of a version affects, as far as the caller sees the instances. Nothing is changed. Refused as the
    /// activation is, but not for unknown names.
    pub async fn activation_effects(
        self,
        who: &Identity,
        reference: &VersionRef,
    ) -> Result<ActivationEffects, Error> {
        let (version, unknown) = self.activating(who, reference).await?;
        let (store, key) = (&self.engine.0.store, &reference.key);
        let target = definitions::target(store, who.tenant, reference).await?;
        let target = target.ok_or_else(|| Error::no_version(reference))?;
        if target.retired {
            return Err(Error::Retired {
                key: key.clone(),
                version: reference.version,
            });
        }
        if target.stopped {
            return Err(Error::stopped(reference.clone()));
        }
        let viewer = self.engine.viewer(who).await?;
        Ok(ActivationEffects {
            before: running::active(store, who.tenant, key).await?,
            running: running::running(store, &viewer, key).await?,
            unknown: UnknownName::in_config(unknown, version.config.json()),
        })
    }

    /// Activates a version: new instances use it. It is refused if the version uses names that the tenant does not have, unless it
    /// is forced.
    pub async fn activate(
        self,
        who: &Identity,
        reference: &VersionRef,
        force: bool,
    ) -> Result<Activation, Error> {
        let (version, unknown) = self.activating(who, reference).await?;
        if !unknown.is_empty() && !force {
            return Err(Error::UnknownNames(unknown));
        }
        let note = note(&self.engine.0.clock, &who.subject);
        let store = &self.engine.0.store;
        let status = definitions::activate(store, who.tenant, reference, &unknown, &note).await?;
        let changed = changed(reference, status)?;
        // A component that is compiled for longer is loaded after the answer.
        let loading = warm(store, &self.engine.0.sandbox, reference, version.component);
        let _ = tokio::time::timeout(ACTIVATION_LOAD_WAIT, loading).await;
        Ok(Activation {
            key: reference.key.clone(),
            version: reference.version,
            active: true,
            changed,
        })
    }

    /// Loads the components of active versions one after another, so that the first calls after a start of the host do not wait for
    /// them. A component that cannot be loaded is left to its first call.
    pub async fn warm_active(self) {
        let (store, sandbox) = (&self.engine.0.store, &self.engine.0.sandbox);
        match definitions::active_components(store, WARMED_MAX).await {
            Ok(found) => {
                for (reference, digest) in found {
                    warm(store, sandbox, &reference, digest).await;
                }
            }
            Err(error) => tracing::warn!(%error, "active versions are loaded by their first calls"),
        }
    }

    /// Retires a version: new instances no longer use it, and none is migrated to it.
    pub async fn retire(self, who: &Identity, reference: &VersionRef) -> Result<Retirement, Error> {
        self.engine.permit(who, "definition:retire").await?;
        let note = note(&self.engine.0.clock, &who.subject);
        let status =
            definitions::retire(&self.engine.0.store, who.tenant, reference, &note).await?;
        retirement(reference, status, true)
    }

    /// Reinstates a retired version. New instances use it once it is activated.
    pub async fn reinstate(
        self,
        who: &Identity,
        reference: &VersionRef,
    ) -> Result<Retirement, Error> {
        self.engine.permit(who, "definition:retire").await?;
        let note = note(&self.engine.0.clock, &who.subject);
        let status =
            definitions::reinstate(&self.engine.0.store, who.tenant, reference, &note).await?;
        retirement(reference, status, false)
    }

    /// Stops a version until it is resumed: its jobs do not run, and its instances accept only cancellations, suspensions, comments
    /// and migrations to another version. Commands in progress are finished.
    pub async fn stop(
        self,
        who: &Identity,
        reference: &VersionRef,
        reason: &str,
    ) -> Result<Stopping, Error> {
        self.engine.permit(who, "definition:retire").await?;
        check_reason(reason)?;
        let store = &self.engine.0.store;
        let note = note(&self.engine.0.clock, &who.subject);
        let status = stops::stop(store, who.tenant, reference, reason, &note);
        let stopping = stopping(reference, status.await?, true)?;
        let until = self.engine.0.clock.now() + STOPPED_RETRY;
        hold_jobs(store, who.tenant, reference, Some(until)).await?;
        Ok(stopping)
    }

    /// Resumes a stopped version. Its jobs that became due meanwhile run at once, unless they were attempted before: these run when
    /// their pause is over, and then those jobs of their instances that wait for them.
    pub async fn resume(self, who: &Identity, reference: &VersionRef) -> Result<Stopping, Error> {
        self.engine.permit(who, "definition:retire").await?;
        let store = &self.engine.0.store;
        let note = note(&self.engine.0.clock, &who.subject);
        let status = stops::resume(store, who.tenant, reference, &note);
        let stopping = stopping(reference, status.await?, false)?;
        hold_jobs(store, who.tenant, reference, None).await?;
        self.engine.0.post_commit.wake_workers();
        Ok(stopping)
    }
}

/// Loads the component of a version, so that its first call does not wait for it.
async fn warm(store: &Store, sandbox: &Sandbox, reference: &VersionRef, digest: Digest) {
    let pinned = Pinned {
        reference: reference.clone(),
        digest,
    };
    let loading = sandbox.warm(&pinned, || definitions::component(store, digest));
    if let Err(error) = loading.await {
        tracing::warn!(%error, "a version could not be loaded before its first call");
    }
}

/// Postpones the jobs of a version, so that they do not delay others, or makes them due again. It may miss jobs: the host may die,
/// or a command may add one concurrently. A missed job of a stopped version is postponed when a worker claims it. A missed job of
/// a resumed version is due when its postponement ends.
async fn hold_jobs(
    store: &Store,
    tenant: TenantId,
    reference: &VersionRef,
    until: Option<Timestamp>,
) -> Result<(), StoreError> {
    let mut after = None;
    for _ in 0..HOLDS_MAX {
        let held = stops::hold_jobs(store, tenant, reference, until, after, HELD_TOGETHER);
        after = held.await?;
        if after.is_none() {
            break;
        }
    }
    Ok(())
}

/// Refuses an actor who may not activate a version with this graph: states of own work need an additional permission.
pub(super) fn may_activate(actor: &Actor, graph: &Graph) -> Result<(), Error> {
    need(actor, ACTIVATE)?;
    if graph.states.iter().any(|state| state.own_work) {
        need(actor, ACTIVATE_OWN_WORK)?;
    }
    Ok(())
}

fn own_work(graph: &Graph) -> Vec<String> {
    graph
        .states
        .iter()
        .filter(|state| state.own_work)
        .map(|state| state.name.clone())
        .collect()
}

fn reads(graph: &Graph) -> Vec<String> {
    graph
        .reads
        .iter()
        .map(|read| read.name().to_owned())
        .collect()
}

fn stopping(
    reference: &VersionRef,
    status: StatusChange,
    stopped: bool,
) -> Result<Stopping, Error> {
    Ok(Stopping {
        key: reference.key.clone(),
        version: reference.version,
        stopped,
        changed: changed(reference, status)?,
    })
}

fn retirement(
    reference: &VersionRef,
    status: StatusChange,
    retired: bool,
) -> Result<Retirement, Error> {
    Ok(Retirement {
        key: reference.key.clone(),
        version: reference.version,
        retired,
        changed: changed(reference, status)?,
    })
}

/// Whether the version's status changed.
fn changed(reference: &VersionRef, status: StatusChange) -> Result<bool, Error> {
    let VersionRef { key, version } = reference.clone();
    match status {
        StatusChange::Missing => Err(Error::no_version(reference)),
        StatusChange::Retired => Err(Error::Retired { key, version }),
        StatusChange::Stopped => Err(Error::Stopped { key, version }),
        StatusChange::TooMany => {
            let message = format!(
                "{STOPPED_MAX} versions are stopped already; resume one, or retire and cancel"
            );
            Err(Rejection::not_now("limit_reached", message).into())
        }
        StatusChange::Changed => Ok(true),
        StatusChange::Unchanged => Ok(false),
    }
}
