//! `wrkflw dev`: one command runs everything on this machine without configuration. Not for production.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::pin::pin;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde_json::json;

use super::demo::{self, PEOPLE};
use super::home::{CHECKPOINT, Home, JWT, SEAL, database_of, key, remove};
use super::host::{self, Host};
use super::output::{Column, Format, Output};
use super::postgres::{self, Managed};
use super::running::{self, Announcement, Note};
use super::{Environment, block_on};
use crate::config::{Role, Settings};
use wrkflw_engine::Engine;
use wrkflw_runtime::clock::Clock;
use wrkflw_runtime::telemetry::Telemetry;
use wrkflw_store::{Store, StoreError};

#[derive(Debug, Args)]
pub(super) struct DevArgs {
    /// Port of the API, on this machine only; 0 takes any free port
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// Use this PostgreSQL database, with a login that may create roles. Default: a server of our own
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,
    /// Keep nothing: the secrets are deleted at the end, and the data unless --database-url is given
    #[arg(long)]
    ephemeral: bool,
    /// Without the sample instances: one that is approved, one that waits for its review, and those of the sample product
    #[arg(long)]
    empty: bool,
    /// Also relay events to Kafka: `host:port`
    #[arg(long, value_name = "BROKERS")]
    kafka: Option<String>,
    /// A service that flows may call; may be given several times
    #[arg(long, value_name = "NAME=URL")]
    service: Vec<String>,
    /// Which log lines are written. Default: info, and warn with --quiet
    #[arg(long)]
    log: Option<String>,
    /// The name by which commands choose it with --dev. Default: the name of this folder
    #[arg(long)]
    name: Option<String>,
    /// Only list those that run: those of this folder first, then the newest
    #[arg(long)]
    list: bool,
}

const RUNNING: &[Column] = &[
    ("NAME", "/name"),
    ("URL", "/url"),
    ("FOLDER", "/folder"),
    ("PROCESS", "/pid"),
];

pub(super) fn run(args: DevArgs, output: Output, environment: &Environment) -> Result<()> {
    let here = std::env::current_dir().context("cannot determine the current folder")?;
    let state = environment.state.as_deref();
    if args.list {
        let running = running::all(&here, state);
        return output.list(&json!({ "data": running }), RUNNING);
    }
    let name = running::name(args.name.as_deref(), &here, state)?;
    let started_at = Instant::now();
    let mut settings = Settings::defaults();
    let log = if output.quiet { "warn" } else { "info" };
    settings.log = args.log.clone().unwrap_or_else(|| log.to_owned());
    let telemetry = host::observe(&settings)?;
    block_on(async {
        let mut stop = pin!(host::stop_signal()?);
        let starting = Box::pin(begin(
            &args,
            (name, &here),
            (settings, telemetry),
            output,
            environment,
        ));
        let begun = tokio::select! {
            begun = starting => begun?,
            () = &mut stop => bail!("stopped before it was ready"),
        };
        show(output, &begun, &args)?;
        if !environment.in_path {
            let program = environment.program.display();
            output.hint(&format!("the commands above need: alias wrkflw={program}"));
        }
        tell_of_others(output, &begun.note, &running::all(&here, state));
        output.hint(&format!(
            "ready after {:.1} s; Ctrl-C stops",
            started_at.elapsed().as_secs_f32()
        ));
        let ReadyDev {
            host,
            announced,
            server,
            home: _home,
            ..
        } = begun;
        let ran = host.run_until(stop).await;
        drop(announced);
        let stopped = match server {
            Some(server) => server.stop().await,
            None => Ok(()),
        };
        ran.and(stopped)
    })
}

/// A `wrkflw dev` that is ready.
struct ReadyDev {
    host: Host,
    note: Note,
    announced: Option<Announcement>,
    server: Option<Managed>,
    home: Home,
}

impl ReadyDev {
    /// The folder of the database, if it is one that outlives this.
    fn database_folder(&self) -> Option<&Path> {
        let server = self.server.as_ref();
        server
            .map(Managed::home)
            .filter(|_| self.home.persistent_folder().is_some())
    }
}

/// Starts everything. Dropped before its end, it stops the server of the database.
async fn begin(
    args: &DevArgs,
    (name, here): (String, &Path),
    (mut settings, telemetry): (Settings, Telemetry),
    output: Output,
    environment: &Environment,
) -> Result<ReadyDev> {
    let home = if args.ephemeral {
        Home::ephemeral()?
    } else {
        Home::persistent(here)?
    };
    let listener = host::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, args.port)))?;
    let url = format!("http://{}", listener.local_addr()?);
    output.hint("starting: database, migrations, sample flow and instances");
    let (server, database) = database(args, &home).await?;
    let folder = server.as_ref().map(Managed::home);
    migrate(&database, folder.filter(|_| !args.ephemeral)).await?;
    configure(&mut settings, args, &home, &url, database.clone())?;
    // `wrkflw plugin` stores machine code in the state folder, so a component that it has checked is published without the compiler.
    let state = environment.state.as_deref();
    let shared = state.map(Home::persistent).transpose()?;
    let (folder, secret) = shared.as_ref().unwrap_or(&home).machine_code()?;
    settings.sandbox.artifact_dir = Some(folder);
    settings.sandbox.artifact_key = Some(secret.into());
    // The author waits for the compiler, and nobody else is served.
    settings.sandbox.compile_niceness = 0;

    let note = Note {
        name,
        url,
        folder: here.to_owned(),
        home: home.folder().to_owned(),
        pid: std::process::id().cast_signed(),
        started_at: Clock::System.now().as_millisecond(),
    };
    // A command that finds the host ready also finds its people, its flow, and the secret that signs tokens.
    let mut announced = None;
    let prepare = async |engine: &Engine| {
        demo::prepare(engine, args.empty).await?;
        let secret = database_of(&note.name);
        // A command that finds the note of this run must not read the database of an earlier run.
        let others = running::all(here, state);
        if others.iter().all(|other| other.name != note.name) {
            remove(&home.secret_path(&secret))?;
        }
        announced = Some(running::announce(&note, home.persistent_folder(), state)?);
        // After the announcement, which reserves the name.
        home.keep(&secret, &database)
    };
    let program = environment.program.clone();
    let entrance = demo::entrance(args.empty);
    let starting = Host::start(&settings, listener, program, telemetry, entrance, prepare);
    let host = starting.await?;
    Ok(ReadyDev {
        host,
        note,
        announced,
        server,
        home,
    })
}

async fn database(args: &DevArgs, home: &Home) -> Result<(Option<Managed>, String)> {
    let server = match &args.database_url {
        Some(url) => return Ok((None, url.clone())),
        None if args.ephemeral => postgres::start_ephemeral().await?,
        None => postgres::start(&home.folder().join("postgres")).await?,
    };
    let url = server.url();
    Ok((Some(server), url))
}

/// Migrates the database. `folder` is its folder if `dev` runs it.
async fn migrate(database: &str, folder: Option<&Path>) -> Result<()> {
    let migrated = Store::migrate(database).await;
    let is_other = matches!(migrated, Err(StoreError::OtherMigration(_)));
    migrated.with_context(|| match folder.filter(|_| is_other) {
        Some(folder) => format!(
            "the database cannot be migrated. To begin with a new database and lose the data of this one, remove {}",
            folder.display()
        ),
        None => "the database cannot be migrated".to_owned(),
    })
}

fn configure(
    settings: &mut Settings,
    args: &DevArgs,
    home: &Home,
    url: &str,
    database: String,
) -> Result<()> {
    url.clone_into(&mut settings.public_url);
    settings.database.database_url = Some(database.into());
    settings.auth.jwt_secret = Some(home.secret(JWT)?.into());
    settings.seal.seal_keys = vec![key(&home.secret(SEAL)?).into()];
    settings.checkpoint.checkpoint_keys = vec![key(&home.secret(CHECKPOINT)?).into()];
    settings.roles = vec![Role::Api, Role::Timers, Role::Notifier];
    // A developer's webhook receiver usually runs on this machine.
    settings.webhook_allow_private = true;
    settings.services.services.clone_from(&args.service);
    if let Some(brokers) = &args.kafka {
        settings.roles.push(Role::Relay);
        settings.kafka_brokers = Some(brokers.clone());
    }
    Ok(())
}

/// Names the other running ones, because commands in other folders may mean one of them.
fn tell_of_others(output: Output, note: &Note, running: &[Note]) {
    let others = running.iter().filter(|other| *other != note);
    let others: Vec<_> = others
        .map(|other| format!("{} in {}", other.name, other.folder.display()))
        .collect();
    if !others.is_empty() {
        output.hint(&format!(
            "also running: {}; commands take the one of their folder, or --dev {}",
            others.join(", "),
            note.name
        ));
    }
}

fn show(output: Output, begun: &ReadyDev, args: &DevArgs) -> Result<()> {
    let note = &begun.note;
    let data_kept = match (&args.database_url, begun.database_folder()) {
        (Some(_), _) => "in the database that was given".to_owned(),
        (None, None) => "until this ends".to_owned(),
        (None, Some(folder)) => format!("in {}", folder.display()),
    };
    let people: Vec<_> = PEOPLE
        .iter()
        .map(|(id, _, group)| json!({ "id": id, "group": group }))
        .collect();
    let facts = json!({ "name": note.name, "url": note.url, "console": format!("{}/console", note.url), "docs": format!("{}/docs", note.url), "dataKept": data_kept, "people": people });
    output.record(
        &facts,
        &[
            ("console", "/console"),
            ("name", "/name"),
            ("api", "/url"),
            ("docs", "/docs"),
            ("data kept", "/dataKept"),
        ],
    )?;
    if output.format == Format::Table {
        let people = PEOPLE.map(|(id, _, group)| {
            group.map_or_else(|| id.to_owned(), |group| format!("{id} ({group})"))
        });
        output.hint(&format!(
            "people: {}\n{}",
            people.join(", "),
            next_commands(&note.url, args.empty)
        ));
    }
    Ok(())
}

fn next_commands(url: &str, empty: bool) -> String {
    let flow = demo::FLOW;
    let samples = if empty {
        String::new()
    } else {
        format!("see a decision inside of a product's own pages: {url}/samples\n")
    };
    format!(
        "open {url}/console in a browser: one click signs in as one of these people
{samples}see an approval, in another terminal: wrkflw demo
or try:
  wrkflw instance start {flow} --entity document/1 --data '{{\"title\": \"Budget\"}}' --as author
  wrkflw task list --view available --as reviewer
  wrkflw task decide TASK APPROVE --as reviewer
  wrkflw events tail --follow
  wrkflw plugin new my-flow
  curl -H \"Authorization: Bearer $(wrkflw token author)\" {url}/v1/instances"
    )
}
