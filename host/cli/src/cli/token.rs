//! `wrkflw token USER`: creates a bearer token for scripts and tests.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;

use super::Environment;
use super::connection::{DEV_TENANT, DevChoiceArgs, dev_token, token};
use super::failure::{Exit, Failure};
use super::output::Output;
use crate::config::AuthArgs;

#[derive(Debug, Args)]
pub(super) struct TokenArgs {
    /// The person that the token is for
    user: String,
    /// A role; may be repeated. Default: admin and product for the users of these names, user for others
    #[arg(long)]
    role: Vec<String>,
    /// The person's tenant
    #[arg(long)]
    tenant: Option<String>,
    /// How many hours it is valid
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
    choice: DevChoiceArgs,
    #[command(flatten)]
    auth: AuthArgs,
}

pub(super) fn run(args: &TokenArgs, output: Output, environment: &Environment) -> Result<()> {
    let lifetime = Duration::from_secs(u64::from(args.hours) * 60 * 60);
    let token = if args.auth.jwt_secret.is_some() && args.choice.dev.is_none() {
        let settings = args.auth.settings();
        let tenant = args
            .tenant
            .as_deref()
            .or(args.auth.jwt_default_tenant.as_deref())
            .unwrap_or(DEV_TENANT);
        token(&settings, &args.user, tenant, &args.role, lifetime)?
    } else {
        let note = args.choice.find(environment)?.ok_or_else(|| {
            Failure::new(Exit::Usage, "there is no secret to sign a token with").next(
                "run `wrkflw dev`, or set jwt_secret to the server's value (WRKFLW_JWT_SECRET)",
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
    output.text("token", &token)
}
