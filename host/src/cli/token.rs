//! `wrkflw token USER`: a bearer token for scripts and trials.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;

use super::Environment;
use super::connection::{DEV_TENANT, dev_token, find_dev, token};
use super::failure::{Exit, Failure};
use super::output::Output;
use crate::config::AuthArgs;

#[derive(Debug, Args)]
pub(super) struct TokenArgs {
    /// Who the token stands for
    user: String,
    /// A role of theirs; may be repeated. Default: admin for admin, user for others
    #[arg(long)]
    role: Vec<String>,
    /// Their tenant
    #[arg(long)]
    tenant: Option<String>,
    /// For how long it is valid
    #[arg(long, default_value_t = 12, value_name = "HOURS")]
    hours: u32,
    /// File with settings. Default: wrkflw.toml, if there is one
    #[arg(
        long = "config",
        id = "settings_file",
        env = "WRKFLW_CONFIG",
        value_name = "FILE"
    )]
    _file: Option<PathBuf>,
    #[command(flatten)]
    auth: AuthArgs,
}

pub(super) fn run(args: &TokenArgs, output: Output, environment: &Environment) -> Result<()> {
    let lifetime = Duration::from_secs(u64::from(args.hours) * 60 * 60);
    let made = if args.auth.jwt_secret.is_some() {
        let settings = args.auth.settings();
        let tenant = args
            .tenant
            .as_deref()
            .or(args.auth.jwt_default_tenant.as_deref())
            .unwrap_or(DEV_TENANT);
        token(&settings, &args.user, tenant, &args.role, lifetime)?
    } else {
        let note = find_dev(environment)?.ok_or_else(|| {
            Failure::new(Exit::Usage, "there is no secret to make a token with").next(
                "run `wrkflw dev`, or set jwt_secret as the server has it (WRKFLW_JWT_SECRET)",
            )
        })?;
        dev_token(
            &note,
            &args.user,
            args.tenant.as_deref(),
            &args.role,
            lifetime,
        )?
    };
    output.text("token", &made)
}
