//! Publishing, activating, retiring and stopping versions. Other use cases ask here who may write, and as whom.

use jiff::Timestamp;

use super::Engine;
use super::error::Error;
use super::offload::Offload;
use super::request::Identity;
use super::validation::check_reason;
use wrkflw_core::audit::sha256;
use wrkflw_core::check::{self, Problem};
use wrkflw_core::graph::Graph;
use wrkflw_core::ids::{CommandId, TenantId, VersionRef};
use wrkflw_core::json::Json;
use wrkflw_core::rejection::Rejection;
use wrkflw_runtime::clock;
use wrkflw_sandbox::{Admission, AdmitError, Sandbox};
use wrkflw_store::definitions::stops::STOPPED_MAX;
use wrkflw_store::definitions::{NewVersion, StatusChange};
use wrkflw_store::jobs::STOPPED_RETRY;
use wrkflw_store::streams::Note;

/// A version that was published now or before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    pub key: String,
    pub version: u32,
    pub digest: String,
    pub created: bool,
    pub own_work: Vec<String>,
    pub separate: Vec<Vec<String>>,
    pub reads: Vec<String>,
}

/// A version that new instances take from now on, or no longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activation {
    pub key: String,
    pub version: u32,
    pub active: bool,
    pub changed: bool,
}

/// A version that does not run, or runs again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopping {
    pub key: String,
    pub version: u32,
    pub stopped: bool,
    pub changed: bool,
}

/// Instances whose jobs are held by one statement.
const HELD_TOGETHER: i64 = 1_000;
/// Statements of one stop: jobs beyond that are held as they are claimed.
const HOLDS_MAX: usize = 200;

/// The one checker, for the server and the command line: everything that keeps a component from being published.
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
    let mut problems = checked.await?;
    problems.extend(check::unsupported(&admission.graph));
    if problems.is_empty() {
        Ok(admission)
    } else {
        Err(Error::Unpublishable(problems))
    }
}

impl Engine {
    /// Publishes a component with its config under the definition's next number.
    pub async fn publish(
        &self,
        who: &Identity,
        key: &str,
        bytes: &[u8],
        config: &Json,
    ) -> Result<Published, Error> {
        self.permit(who, "definition:publish").await?;
        if !check::is_key(key) {
            let message =
                "a definition's key is 1 to 64 of a-z, 0-9 and '-', beginning with a letter"
                    .to_owned();
            return Err(Error::Unpublishable(vec![Problem::new(
                "malformed_key",
                key,
                message,
            )]));
        }
        let admission = check_component(
            &self.0.sandbox,
            (&self.0.offload, who.tenant),
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
            definition_id: clock::new_id(),
        };
        let numbered = self
            .0
            .store
            .publish(who.tenant, &new, &self.note(&who.subject))
            .await?;
        Ok(Published {
            key: key.to_owned(),
            version: numbered.version,
            digest: admission.digest.to_string(),
            created: numbered.created,
            own_work: own_work(&admission.graph),
            reads: reads(&admission.graph),
            separate: admission.graph.separate,
        })
    }

    /// Makes new instances take this version. A version with states of own work needs a permission of its own.
    pub async fn activate(
        &self,
        who: &Identity,
        reference: &VersionRef,
    ) -> Result<Activation, Error> {
        self.permit(who, "definition:activate").await?;
        let version = self.version(who.tenant, reference).await?;
        if !own_work(&version.graph).is_empty() {
            self.permit(who, "definition:activate-own-work").await?;
        }
        let status = self
            .0
            .store
            .activate(who.tenant, reference, &self.note(&who.subject))
            .await?;
        let activation = activation(reference, status, true)?;
        let pinned = wrkflw_sandbox::Pinned {
            reference: reference.clone(),
            digest: version.component,
        };
        if let Err(error) = self
            .0
            .sandbox
            .warm(&pinned, || self.0.store.component(version.component))
            .await
        {
            tracing::warn!(%error, "an activated version could not be made ready ahead of its first question");
        }
        Ok(activation)
    }

    /// Lets no new instance take this version.
    pub async fn retire(
        &self,
        who: &Identity,
        reference: &VersionRef,
    ) -> Result<Activation, Error> {
        self.permit(who, "definition:retire").await?;
        let status = self
            .0
            .store
            .retire(who.tenant, reference, &self.note(&who.subject))
            .await?;
        activation(reference, status, false)
    }

    /// Lets nothing of this version run until it is resumed: not its jobs, and no command but a cancellation or a
    /// migration away from it. What is in hand is still done.
    pub async fn stop(
        &self,
        who: &Identity,
        reference: &VersionRef,
        reason: &str,
    ) -> Result<Stopping, Error> {
        self.permit(who, "definition:retire").await?;
        check_reason(reason)?;
        let store = &self.0.store;
        let note = self.note(&who.subject);
        let status = store.stop_version(who.tenant, reference, reason, &note);
        let stopping = stopping(reference, status.await?, true)?;
        let until = self.0.clock.now() + STOPPED_RETRY;
        self.hold_jobs(who, reference, Some(until)).await?;
        Ok(stopping)
    }

    /// Lets a version run again. What was due meanwhile is done at once.
    pub async fn resume(&self, who: &Identity, reference: &VersionRef) -> Result<Stopping, Error> {
        self.permit(who, "definition:retire").await?;
        let note = self.note(&who.subject);
        let status = self.0.store.resume_version(who.tenant, reference, &note);
        let stopping = stopping(reference, status.await?, false)?;
        self.hold_jobs(who, reference, None).await?;
        self.0.post_commit.wake_workers();
        Ok(stopping)
    }

    /// Moves the jobs of a version out of the way of others, or back. Those that this does not come to - the host dies, a
    /// command leaves them just now - are moved by whoever claims them, and come back when they are looked at again.
    async fn hold_jobs(
        &self,
        who: &Identity,
        reference: &VersionRef,
        until: Option<Timestamp>,
    ) -> Result<(), Error> {
        let (store, mut after) = (&self.0.store, None);
        for _ in 0..HOLDS_MAX {
            let held = store.hold_jobs(who.tenant, reference, until, after, HELD_TOGETHER);
            after = held.await?;
            if after.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// Refuses who has no role with the permission.
    pub async fn permit(&self, who: &Identity, permission: &'static str) -> Result<(), Error> {
        let actor = self.0.store.actor(&who.principalship()).await?;
        if actor.may(permission) {
            Ok(())
        } else {
            Err(Error::Permission(permission))
        }
    }

    /// Who changes something now, for the audit.
    pub(super) fn note<'a>(&self, actor: &'a str) -> Note<'a> {
        Note {
            id: clock::new_id(),
            command: CommandId(clock::new_id()),
            actor,
            at: self.0.clock.now(),
            salt: clock::random(),
        }
    }
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
    let Activation {
        key,
        version,
        changed,
        ..
    } = activation(reference, status, false)?;
    Ok(Stopping {
        key,
        version,
        stopped,
        changed,
    })
}

fn activation(
    reference: &VersionRef,
    status: StatusChange,
    active: bool,
) -> Result<Activation, Error> {
    let VersionRef { key, version } = reference.clone();
    match status {
        StatusChange::Missing => Err(Error::NotFound {
            what: "definition version",
            id: reference.to_string(),
        }),
        StatusChange::Retired => Err(Error::Retired { key, version }),
        StatusChange::TooMany => {
            let message = format!(
                "{STOPPED_MAX} versions are stopped already; resume one, or retire and cancel"
            );
            Err(Rejection::not_now("limit_reached", message).into())
        }
        StatusChange::Changed | StatusChange::Unchanged => Ok(Activation {
            key,
            version,
            active,
            changed: status == StatusChange::Changed,
        }),
    }
}
