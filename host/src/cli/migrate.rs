//! `wrkflw migrate`: brings the schema up to date, and makes the tenants that are missing.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;
use serde_json::json;

use super::block_on;
use super::output::Output;
use crate::clock::Clock;
use crate::config::DatabaseArgs;
use crate::roles;
use crate::store::Store;

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
        Store::migrate(url)
            .await
            .context("the database cannot be brought up to date")?;
        let store = Store::connect(url, args.database.pools())?;
        ensure_tenants(&store, &args.database.tenants).await?;
        store.close().await;
        Ok(())
    })?;
    output.record(
        &json!({ "migrated": true, "tenants": args.database.tenants }),
        &[("migrated", "/migrated"), ("tenants", "/tenants")],
    )
}

/// Makes the tenants that are missing, with the default roles, and records what roles permit where no entry tells of it.
pub(super) async fn ensure_tenants(store: &Store, names: &[String]) -> Result<()> {
    for name in names {
        let made = store
            .ensure_tenant(name, &roles::defaults(), Clock::System.now())
            .await;
        made.with_context(|| format!("the tenant {name} cannot be made"))?;
    }
    let recorded = store.record_tenants(Clock::System.now()).await;
    recorded.context("what roles permit cannot be recorded")
}
