//! The server and the person of a command: the given ones, else those of a nearby `wrkflw dev`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Args;

use super::Environment;
use super::client::{Client, segment};
use super::failure::{Exit, Failure};
use super::home::JWT;
use super::running::{self, Choice, Note};
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

/// Which `wrkflw dev`.
#[derive(Debug, Clone, Default, Args)]
#[group(skip)]
pub(super) struct DevChoiceArgs {
    /// Name of a running `wrkflw dev`. Default: the one of this folder or above it, else the only one
    #[arg(long, env = "WRKFLW_DEV", value_name = "NAME")]
    pub(super) dev: Option<String>,
}

/// The server, and the person.
#[derive(Debug, Clone, Args)]
#[group(skip)]
pub(super) struct ConnectionArgs {
    #[command(flatten)]
    choice: DevChoiceArgs,
    /// URL of the server. Default: that of `wrkflw dev`
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
    /// As this person of a `wrkflw dev`.
    pub(super) fn for_person(person: &str, choice: &DevChoiceArgs) -> ConnectionArgs {
        ConnectionArgs {
            choice: choice.clone(),
            server: None,
            token: None,
            user: Some(person.to_owned()),
        }
    }

    pub(super) fn open(&self, environment: &Environment) -> Result<Client> {
        // A named one takes precedence over a server from the environment.
        let given = self.server.as_ref().filter(|_| self.choice.dev.is_none());
        let dev = self.dev_of(given, environment)?;
        let server = match (given, &dev) {
            (Some(server), _) => server.clone(),
            (None, Some(note)) => note.url.clone(),
            (None, None) => return Err(no_server().into()),
        };
        // An explicit person takes precedence over a token from the environment.
        let token = match (&self.user, &self.token) {
            (None, Some(token)) => Some(token.clone()),
            (Some(user), _) => Some(dev_token(
                &dev.ok_or_else(no_secret)?,
                user,
                None,
                &[],
                OWN_TOKEN,
            )?),
            // The secret of a dev server is not used for another server.
            (None, None) => match dev.filter(|note| note.url == server.trim_end_matches('/')) {
                Some(note) => Some(dev_token(&note, DEFAULT_USER, None, &[], OWN_TOKEN)?),
                None => None,
            },
        };
        let client = Client::new(&server, token)?;
        if let Some(user) = &self.user {
            is_somebody(&client, user)?;
        }
        Ok(client)
    }

    /// The `wrkflw dev` whose secret signs the token: that of the given server, else the chosen one.
    fn dev_of(&self, given: Option<&String>, environment: &Environment) -> Result<Option<Note>> {
        if let Some(server) = given {
            let (folder, state) = (current_folder()?, environment.state.as_deref());
            let note = running::with_url(server.trim_end_matches('/'), &folder, state);
            if note.is_some() || self.user.is_none() {
                return Ok(note);
            }
        }
        self.choice.find(environment)
    }
}

impl DevChoiceArgs {
    /// The chosen `wrkflw dev`, if one runs. If neither a name nor the folder chose it, a hint names it.
    pub(super) fn find(&self, environment: &Environment) -> Result<Option<Note>> {
        let choice = self.choose(environment)?;
        if let Some(Choice { note, is_only_one }) = &choice
            && *is_only_one
        {
            environment.output.hint(&dev_hint(note));
        }
        Ok(choice.map(|choice| choice.note))
    }

    /// The same, in silence.
    pub(super) fn choose(&self, environment: &Environment) -> Result<Option<Choice>> {
        let state = environment.state.as_deref();
        running::choose(self.dev.as_deref(), &current_folder()?, state)
    }
}

/// Refuses a person whom the directory does not know, because with a misspelt name every list would be empty.
fn is_somebody(client: &Client, user: &str) -> Result<()> {
    // Each of these has the role of the same name, and need not be in the directory.
    if [DEFAULT_USER, roles::PRODUCT].contains(&user) {
        return Ok(());
    }
    let answer = client.get(&format!("/v1/people/{}", segment(user)), &[]);
    let exit = answer.as_ref().err().and_then(|error| {
        let failure = error.downcast_ref::<Failure>();
        failure.map(|failure| failure.exit)
    });
    match exit {
        Some(Exit::NotFound) => {
            let message = format!("--as {user}: the directory has no such person");
            let next = "`wrkflw person list` shows who there is, and `wrkflw person set` adds one";
            Err(Failure::new(Exit::Usage, message).next(next).into())
        }
        Some(Exit::Unreachable) => answer.map(drop),
        // A person who may not read the directory counts as known.
        _ => Ok(()),
    }
}

/// Moves the options of a connection from before the command to behind it, where commands that ask a server take them.
pub(super) fn behind_the_command(mut arguments: Vec<OsString>) -> Vec<OsString> {
    const OURS: [&str; 4] = ["--dev", "--server", "--token", "--as"];
    let (mut moved, mut at) = (Vec::new(), 1);
    while let Some(text) = arguments.get(at).and_then(|argument| argument.to_str()) {
        let option = text.split_once('=').map_or(text, |(name, _)| name);
        let words = if text == option && (OURS.contains(&text) || text == "--output") {
            2
        } else {
            1
        };
        if OURS.contains(&option) {
            let end = arguments.len().min(at + words);
            moved.extend(arguments.drain(at..end));
        } else if text.starts_with('-') {
            at += words;
        } else {
            break;
        }
    }
    let rest = arguments.iter().skip(at);
    let end = rest.take_while(|argument| *argument != "--").count();
    let end = arguments.len().min(at + end);
    arguments.splice(end..end, moved);
    arguments
}

/// The `wrkflw dev` that a command is sent to, for messages.
pub(super) fn dev_hint(note: &Note) -> String {
    let folder = note.folder.display();
    format!("of the `wrkflw dev` {} in {folder}", note.name)
}

fn current_folder() -> Result<PathBuf> {
    std::env::current_dir().context("cannot determine the current folder")
}

/// A token of one of the people of `wrkflw dev`.
pub(super) fn dev_token(
    note: &Note,
    user: &str,
    tenant: Option<&str>,
    roles: &[String],
    lifetime: Duration,
) -> Result<String> {
    let secret = note.secret(JWT)?;
    let settings = AuthSettings {
        hs256_secret: Some(Secret::new(secret)),
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

/// Creates a token. Without `given` roles, the users `admin` and `product` get the role of that name, and others get the role `user`.
pub(super) fn token(
    settings: &AuthSettings,
    user: &str,
    tenant: &str,
    given: &[String],
    lifetime: Duration,
) -> Result<String> {
    let usual = match user {
        DEFAULT_USER => roles::ADMIN,
        roles::PRODUCT => roles::PRODUCT,
        _ => roles::USER,
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
        "no server is named, and no `wrkflw dev` runs on this machine",
    )
    .next("run `wrkflw dev` in another terminal, or name a server with --server or WRKFLW_SERVER")
}

fn no_secret() -> Failure {
    Failure::new(
        Exit::Usage,
        "--as signs a token with the secret of a `wrkflw dev`, and none runs on this machine",
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

#[cfg(test)]
mod tests {
    use super::behind_the_command;

    #[test]
    fn options_before_the_command_go_behind_it() {
        for (given, run) in [
            ("w --as a task list", "w task list --as a"),
            (
                "w --as=a -q --dev b task claim x",
                "w -q task claim x --as=a --dev b",
            ),
            (
                "w --output json --server u me",
                "w --output json me --server u",
            ),
            (
                "w --output=json --token t me",
                "w --output=json me --token t",
            ),
            (
                "w --as a plugin test -- --nocapture",
                "w plugin test --as a -- --nocapture",
            ),
            ("w task list --as a", "w task list --as a"),
            ("w task --as a list", "w task --as a list"),
            ("w --help", "w --help"),
            ("w --as", "w --as"),
            ("w", "w"),
        ] {
            let words = given.split(' ').map(Into::into).collect();
            let moved = behind_the_command(words);
            let moved: Vec<_> = moved.iter().map(|word| word.to_string_lossy()).collect();
            assert_eq!(moved.join(" "), run, "{given}");
        }
    }
}
