//! `wrkflw serve`: a host for production, as its settings say.

use std::path::PathBuf;
use std::pin::pin;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde_json::json;

use super::failure::{Exit, Failure};
use super::host::{self, Host};
use super::output::Output;
use super::{Environment, block_on};
use crate::config::Settings;
use wrkflw_console::Entrance;

#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// File with settings. Default: wrkflw.toml, if there is one
    #[arg(
        long = "config",
        id = "settings_file",
        env = "WRKFLW_CONFIG",
        value_name = "FILE"
    )]
    _file: Option<PathBuf>,
    #[command(flatten)]
    pub(super) settings: Settings,
}

pub(super) fn run(args: ServeArgs, output: Output, environment: &Environment) -> Result<()> {
    let settings = args.settings;
    let telemetry = host::observe(&settings)?;
    block_on(async {
        // Handle signals before the address is printed, because a reader of the address may send one at once.
        let mut stop = pin!(host::stop_signal()?);
        let listener = host::listen(settings.listen)?;
        let address = listener.local_addr().context("no address")?;
        let starting = {
            let program = environment.program.clone();
            Host::start(
                &settings,
                listener,
                program,
                telemetry,
                Entrance::default(),
                async |_| Ok(()),
            )
        };
        let host = tokio::select! {
            started = starting => started?,
            () = &mut stop => bail!("stopped before it was ready"),
        };
        let roles: Vec<String> = settings.roles.iter().map(|role| role.name()).collect();
        output.record(
            &json!({ "listen": address, "roles": roles }),
            &[("listen", "/listen"), ("roles", "/roles")],
        )?;
        host.run_until(stop).await
    })
}

/// How to fix a login that lacks a role of the database.
pub(super) const GRANTS: &str = "grant wrkflw_writer and wrkflw_viewer to the login of database_url, and wrkflw_relay if the host has the role `relay`, as an \
    administrator of PostgreSQL";

/// The refusal of a database that lacks migrations.
pub(super) fn not_migrated() -> Failure {
    Failure::new(Exit::Failed, "the database is not up to date")
        .next("run `wrkflw migrate` with the same settings, as a login that may create roles")
}
