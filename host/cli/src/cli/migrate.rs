//! `wrkflw migrate`: migrates the schema, and creates missing tenants.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;
use serde_json::json;

use super::block_on;
use super::output::Output;
use crate::config::DatabaseArgs;
use crate::roles;
use wrkflw_runtime::clock::Clock;
use wrkflw_store::directory::tenants;
use wrkflw_store::{PoolSizes, Store};

#[derive(Debug, Args)]
pub(super) struct MigrateArgs {
    /// File with settings. Default: wrkflw.toml, if there is one
    #[arg(
        long = "config",
        id = "settings_file",
        env = "WRKFLW_CONFIG",
        value_name = "FILE"
    )]
    _file: Option<PathBuf>,
    #[command(flatten)]
    database: DatabaseArgs,
}

pub(super) fn run(args: &MigrateArgs, output: Output) -> Result<()> {
    block_on(async {
        let url = args.database.url()?;
        Store::migrate_telling(url, |waits| output.hint(waits))
            .await
            .context("the database cannot be migrated")?;
        let store = Store::connect(url, PoolSizes::default())?;
        ensure_tenants(&store, &args.database.tenants).await?;
        store.close().await;
        Ok(())
    })?;
    output.record(
        &json!({ "migrated": true, "tenants": args.database.tenants }),
        &[("migrated", "/migrated"), ("tenants", "/tenants")],
    )
}

/// Creates missing tenants with the default roles, and records the permissions of roles that no audit entry records yet.
pub(super) async fn ensure_tenants(store: &Store, names: &[String]) -> Result<()> {
    for name in names {
        let created =
            tenants::ensure_tenant(store, name, &roles::defaults(), Clock::System.now()).await;
        created.with_context(|| format!("the tenant {name} cannot be created"))?;
    }
    let recorded = tenants::record_tenants(store, Clock::System.now()).await;
    recorded.context("the permissions of roles cannot be recorded")
}
