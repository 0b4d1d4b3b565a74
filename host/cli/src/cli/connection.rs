//! The server and the person of a command: as given, else those of a nearby `wrkflw dev`.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Args;

use super::Environment;
use super::client::Client;
use super::failure::{Exit, Failure};
use super::home::{self, Note};
use crate::roles;
use wrkflw_runtime::clock::Clock;
use wrkflw_server::http::auth::{AuthSettings, Claims, Secret};
use wrkflw_server::http::token::mint;

/// The lifetime of a token that a command creates for itself.
const OWN_TOKEN: Duration = Duration::from_mins(10);
/// The person who acts against `wrkflw dev` by default.
const DEFAULT_USER: &str = "admin";
/// The tenant of `wrkflw dev`.
pub(super) const DEV_TENANT: &str = "default";

/// The server, and the person.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub(super) struct ConnectionArgs {
    /// URL of the server. Default: the `wrkflw dev` that runs in this folder, above it, or as this user
    #[arg(long, env = "WRKFLW_SERVER", value_name = "URL")]
    server: Option<String>,
    /// Bearer token
    #[arg(long, env = "WRKFLW_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Act as this person of `wrkflw dev`. Default: admin
    #[arg(long = "as", value_name = "USER", conflicts_with = "token")]
    user: Option<String>,
}

impl ConnectionArgs {
    pub(super) fn open(&self, environment: &Environment) -> Result<Client> {
        let dev = || find_dev(environment);
        let server = match (&self.server, dev()?) {
            (Some(server), _) => server.clone(),
            (None, Some(note)) => note.url,
            (None, None) => return Err(no_server().into()),
        };
        // An explicit person takes precedence over a token from the environment.
        let token = match (&self.user, &self.token) {
            (None, Some(token)) => Some(token.clone()),
            (Some(user), _) => Some(dev_token(
                &dev()?.ok_or_else(no_secret)?,
                user,
                None,
                &[],
                OWN_TOKEN,
            )?),
            // The secret of a dev server is not used for another server.
            (None, None) => match dev()?.filter(|note| note.url == server.trim_end_matches('/')) {
                Some(note) => Some(dev_token(&note, DEFAULT_USER, None, &[], OWN_TOKEN)?),
                None => None,
            },
        };
        Client::new(&server, token)
    }
}

/// The nearest running `wrkflw dev`.
pub(super) fn find_dev(environment: &Environment) -> Result<Option<Note>> {
    let here = std::env::current_dir().context("cannot determine the current folder")?;
    Ok(home::find(&here, environment.state.as_deref()))
}

/// A token of one of the people of `wrkflw dev`.
pub(super) fn dev_token(
    note: &Note,
    user: &str,
    tenant: Option<&str>,
    roles: &[String],
    lifetime: Duration,
) -> Result<String> {
    let secret = fs::read_to_string(&note.secret).with_context(|| {
        format!(
            "cannot read the secret of `wrkflw dev` in {}",
            note.secret.display()
        )
    })?;
    let settings = AuthSettings {
        hs256_secret: Some(Secret::new(secret.trim())),
        ..AuthSettings::default()
    };
    token(
        &settings,
        user,
        tenant.unwrap_or(DEV_TENANT),
        roles,
        lifetime,
    )
}

/// Creates a token. Without `given` roles, the admin gets the role `admin`, and others get the role `user`.
pub(super) fn token(
    settings: &AuthSettings,
    user: &str,
    tenant: &str,
    given: &[String],
    lifetime: Duration,
) -> Result<String> {
    let usual = if user == DEFAULT_USER {
        roles::ADMIN
    } else {
        roles::USER
    };
    let roles = if given.is_empty() {
        vec![usual.to_owned()]
    } else {
        given.to_vec()
    };
    let claims = Claims {
        subject: user.to_owned(),
        tenant: tenant.to_owned(),
        roles,
    };
    mint(settings, &claims, lifetime, Clock::System.now())
        .map_err(|error| Failure::new(Exit::Usage, error).into())
}

fn no_server() -> Failure {
    Failure::new(
        Exit::Unreachable,
        "no server is named, and no `wrkflw dev` runs here",
    )
    .next("run `wrkflw dev` in another terminal, or name a server with --server or WRKFLW_SERVER")
}

fn no_secret() -> Failure {
    Failure::new(
        Exit::Usage,
        "--as makes a token with the secret of a running `wrkflw dev`, and none runs here",
    )
    .next("run `wrkflw dev`, or pass a token with --token or WRKFLW_TOKEN")
}

/// The folder for this user's program state.
pub(super) fn state_folder(
    xdg_state_home: Option<PathBuf>,
    home: Option<PathBuf>,
) -> Option<PathBuf> {
    let base = xdg_state_home
        .filter(|path| path.is_absolute())
        .or_else(|| Some(home?.join(".local/state")))?;
    Some(base.join("wrkflw"))
}
