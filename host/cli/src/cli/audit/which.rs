//! The part of the audit that a command reads: an instance, an entity, a tenant, or everything.

use clap::Args;
use uuid::Uuid;

use wrkflw_audit::record::rows::Which;
use wrkflw_core::ids::InstanceId;
use wrkflw_core::instance::Entity;

/// Each command puts these and its own arguments in one group, of which at least one is required.
#[derive(Debug, Args)]
#[group(skip)]
pub(super) struct WhichArgs {
    /// Only this instance
    #[arg(long, value_name = "ID", conflicts_with_all = ["entity", "all"], value_parser = crate::cli::pick::id)]
    instance: Option<Uuid>,
    /// Only the instances about this entity
    #[arg(long, value_name = "TYPE/ID", conflicts_with = "all", value_parser = crate::cli::instance::entity)]
    entity: Option<(String, String)>,
    /// Only in this tenant. Without other arguments: the whole tenant
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    pub(super) tenant: Option<String>,
    /// Everything
    #[arg(long)]
    pub(super) all: bool,
}

impl WhichArgs {
    /// The instances that the arguments select.
    pub(super) fn selection(&self) -> Which {
        match (self.instance, self.entity.clone()) {
            (Some(id), _) => Which::One(InstanceId(id)),
            (None, Some((kind, id))) => Which::About(Entity { kind, id }),
            (None, None) => Which::All,
        }
    }
}
