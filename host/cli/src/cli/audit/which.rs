//! The part of the audit that a command reads: an instance, an entity, a tenant, or everything.

use anyhow::Result;
use clap::Args;
use uuid::Uuid;

use crate::cli::failure::{Exit, Failure};
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
    #[arg(long, value_name = "TYPE/ID", conflicts_with = "all")]
    entity: Option<String>,
    /// Only in this tenant. Without other arguments: the whole tenant
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    pub(super) tenant: Option<String>,
    /// Everything
    #[arg(long)]
    pub(super) all: bool,
}

impl WhichArgs {
    /// The instances that the arguments select.
    pub(super) fn asked(&self) -> Result<Which> {
        if let Some(id) = self.instance {
            return Ok(Which::One(InstanceId(id)));
        }
        let Some(entity) = &self.entity else {
            return Ok(Which::All);
        };
        let (kind, id) = entity.split_once('/').ok_or_else(|| {
            let message = "an entity is its type and its id, separated by a slash";
            Failure::new(Exit::Usage, message).next("write it as document/doc-1")
        })?;
        let (kind, id) = (kind.to_owned(), id.to_owned());
        Ok(Which::About(Entity { kind, id }))
    }
}
