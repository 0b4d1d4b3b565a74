//! Views of definition versions, in lists and after a change.

use jiff::Timestamp;

use serde::Serialize;
use utoipa::ToSchema;

use super::problem::unknown_name;
use super::shapes::NameKind;
use super::view::{each, view};
use wrkflw_core::ids::VersionRef;
use wrkflw_store::definitions::running::Running;

/// A name of the directory or of a service that a version uses and that does not exist.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct UnknownName {
    #[schema(value_type = NameKind)]
    pub kind: &'static str,
    pub name: String,
    /// The first place of the config with this name, as a JSON Pointer. Left out if the flow has it by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    pub message: String,
}

impl From<wrkflw_engine::UnknownName> for UnknownName {
    fn from(unknown: wrkflw_engine::UnknownName) -> UnknownName {
        let used = unknown.used;
        UnknownName {
            kind: used.kind(),
            message: unknown_name(&used),
            name: used.name().to_owned(),
            pointer: unknown.pointer,
        }
    }
}

view! {
    of wrkflw_engine::Published;
    /// A version that was published now or before.
    pub(super) struct Published {
        pub key: String,
        pub version: u32,
        pub digest: String,
        /// False when the content had a version already.
        pub created: bool,
        /// States whose work the initiators do on their own request.
        pub own_work: Vec<String>,
        /// Lists of states: a person decides in one state of each list.
        pub separate: Vec<Vec<String>>,
        /// What its logic is told of people besides who they are: `groups`, `permissions`, `comments`, `inputs`.
        pub reads: Vec<String>,
        /// Names that it uses and that do not exist; they keep it from being activated.
        pub warnings: Vec<UnknownName> => each,
    }
}

/// A version that new instances take from now on.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Activation {
    pub key: String,
    pub version: u32,
    pub active: bool,
    /// False when it was so already.
    pub changed: bool,
    /// Whether nothing was written.
    pub dry_run: bool,
    /// Only of a dry run: what the activation affects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effects: Option<ActivationEffects>,
}

impl From<wrkflw_engine::Activation> for Activation {
    fn from(done: wrkflw_engine::Activation) -> Activation {
        Activation {
            key: done.key,
            version: done.version,
            active: done.active,
            changed: done.changed,
            dry_run: false,
            effects: None,
        }
    }
}

impl Activation {
    /// The answer of a dry run.
    pub(super) fn tried(
        reference: VersionRef,
        effects: wrkflw_engine::ActivationEffects,
    ) -> Activation {
        Activation {
            changed: effects.before != Some(reference.version),
            key: reference.key,
            version: reference.version,
            active: true,
            dry_run: true,
            effects: Some(effects.into()),
        }
    }
}

view! {
    of wrkflw_engine::ActivationEffects;
    /// What an activation affects.
    pub(super) struct ActivationEffects {
        /// The version that new instances take now. None if none is active. To undo the activation, activate this one.
        pub before: Option<u32>,
        /// The running and suspended instances that the caller sees. They keep their versions.
        pub running: RunningInstances => RunningInstances::from,
        /// Names that the version uses and that do not exist. With any, the activation is refused unless it is forced.
        pub unknown: Vec<UnknownName> => each,
    }
}

/// The instances of a definition by their versions.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RunningInstances {
    /// Only versions with instances.
    pub versions: Vec<VersionInstances>,
    /// There are more than 10000 instances to count: the numbers may be too low.
    pub more: bool,
}

/// How many instances run under a version.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct VersionInstances {
    pub version: u32,
    pub running: i64,
}

impl From<Running> for RunningInstances {
    fn from(running: Running) -> RunningInstances {
        let versions = running.by_version.into_iter();
        RunningInstances {
            versions: versions
                .map(|(version, running)| VersionInstances { version, running })
                .collect(),
            more: running.more,
        }
    }
}

view! {
    of wrkflw_engine::Retirement;
    /// A version that no instance can start under or be migrated to, or that is reinstated.
    pub(super) struct Retirement {
        pub key: String,
        pub version: u32,
        pub retired: bool,
        /// False when it was so already.
        pub changed: bool,
    }
}

view! {
    of wrkflw_engine::Stopping;
    /// A version that does not run, or runs again.
    pub(super) struct Stopping {
        pub key: String,
        pub version: u32,
        pub stopped: bool,
        /// False when it was so already.
        pub changed: bool,
    }
}

view! {
    of wrkflw_store::definitions::list::VersionSummary;
    /// A published version, as lists show it.
    pub(super) struct VersionSummary {
        pub key: String,
        pub version: u32,
        /// The flow's name for people; empty for its key.
        pub title: String,
        pub active: bool,
        /// The newest version of the definition.
        pub newest_version: u32,
        /// SHA-256 of the component.
        pub digest: String,
        pub sdk: Option<String>,
        pub wit: String,
        #[schema(value_type = String, format = DateTime)]
        pub published_at: Timestamp,
        pub published_by: String,
        /// Why it was published, if its author said so.
        pub note: Option<String>,
        #[schema(value_type = Option<String>, format = DateTime)]
        pub retired_at: Option<Timestamp>,
        /// Since when nothing of it runs, as an operator has stopped it.
        #[schema(value_type = Option<String>, format = DateTime)]
        pub stopped_at: Option<Timestamp>,
    }
}
