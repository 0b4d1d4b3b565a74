//! A running host: the engine, the API, the relay, the job worker, the notifier and periodic deletions, from start to a drained
//! stop.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::failure::{Exit, Failure};
use super::migrate::ensure_tenants;
use super::serve::{GRANTS, not_migrated};
use crate::config::{LogFormat, Role, Settings, SettingsError};
use wrkflw_audit::keys::CheckpointKeys;
use wrkflw_audit::seal::SealKeys;
use wrkflw_console::Entrance;
use wrkflw_engine::Engine;
use wrkflw_engine::checkpoint::Checkpointer;
use wrkflw_engine::jobs::Jobs;
use wrkflw_engine::presence::Presence;
use wrkflw_engine::services::Services;
use wrkflw_relay::outbox::Relay;
use wrkflw_relay::webhook::Notifier;
use wrkflw_runtime::clock::{self, Clock};
use wrkflw_runtime::telemetry::{self, LogSettings, Telemetry};
use wrkflw_runtime::worker::every;
use wrkflw_sandbox::Sandbox;
use wrkflw_server::asyncapi::Topics;
use wrkflw_server::http::admission::Admission;
use wrkflw_server::http::auth::Authenticator;
use wrkflw_server::http::health::{Operation, operational};
use wrkflw_server::http::{self, App};
use wrkflw_store::hosts::NewHost;
use wrkflw_store::pools::Readiness;
use wrkflw_store::{Reader, Store};

/// How long a shutdown waits for work in flight, as a multiple of the request timeout. Requests end within one timeout. The
/// second one is for the relay and the timers.
const DRAIN_TIMEOUTS: u32 = 2;
/// The file with the name of the machine.
const MACHINE: &str = "/proc/sys/kernel/hostname";
/// How often expired replies are deleted.
const SWEEP_EVERY: Duration = Duration::from_hours(1);

/// Everything that runs in this process.
pub(super) struct Host {
    /// None if no role of this process executes commands.
    engine: Option<Engine>,
    store: Store,
    presence: Presence,
    admission: Admission,
    stages: Stages,
    tasks: TaskTracker,
    /// The task that reads events for the streams of the API.
    streams: TaskTracker,
    server: tokio::task::JoinHandle<std::io::Result<()>>,
    notice: Duration,
    drain: Duration,
}

/// The stages of a shutdown, in order.
#[derive(Clone, Default)]
struct Stages {
    /// `/readyz` reports that the host is not ready. It still serves requests.
    draining: CancellationToken,
    /// No new work is begun; work in flight is finished.
    stopping: CancellationToken,
    /// No work is in flight: the port closes.
    closing: CancellationToken,
}

/// Starts logs and metrics.
pub(super) fn observe(settings: &Settings) -> Result<Telemetry> {
    let format = match settings.log_format {
        LogFormat::Text => telemetry::LogFormat::Human,
        LogFormat::Json => telemetry::LogFormat::Json,
    };
    let log = LogSettings {
        format,
        filter: settings.log.clone(),
    };
    Ok(telemetry::init(&log).map_err(SettingsError)?)
}

/// Binds the address. The error suggests another port.
pub(super) fn listen(address: SocketAddr) -> Result<TcpListener> {
    http::server::listen(address).map_err(|error| {
        let next = "choose another with --port or --listen; port 0 takes any that is free";
        Failure::new(Exit::Failed, format!("cannot listen on {address}: {error}"))
            .next(next)
            .into()
    })
}

/// Completes when this process is asked to stop.
pub(super) fn stop_signal() -> Result<impl Future<Output = ()>> {
    let (mut terminate, mut interrupt) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    );
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// The parts that a role needs; none if the host does not have the role.
fn of_role<T, E>(
    settings: &Settings,
    role: Role,
    needed: impl FnOnce(&Settings) -> Result<T, E>,
) -> Result<Option<T>, E> {
    settings.has(role).then(|| needed(settings)).transpose()
}

async fn prepare_with(
    engine: Option<&Engine>,
    prepare: impl AsyncFnOnce(&Engine) -> Result<()>,
) -> Result<()> {
    match engine {
        Some(engine) => prepare(engine).await,
        None => Ok(()),
    }
}

impl Host {
    /// Starts the roles in the settings. `entrance` has the additions of a host for development: demo people and sample documents. A host
    /// without the API also listens, for probes and metrics. It serves once `prepare` is done. Until then, connections wait.
    pub(super) async fn start(
        settings: &Settings,
        listener: TcpListener,
        program: PathBuf,
        telemetry: Telemetry,
        mut entrance: Entrance,
        prepare: impl AsyncFnOnce(&Engine) -> Result<()>,
    ) -> Result<Host> {
        settings.check()?;
        let logic = logic(settings, program)?;
        let checkpoints = of_role(settings, Role::Timers, Settings::checkpoints)?;
        let kafka = of_role(settings, Role::Relay, Settings::kafka)?;
        entrance.provider = settings.auth.provider(&settings.public_url)?;
        let clock = Clock::System;
        let auth = authenticator(settings, &clock)?;
        let store = Store::connect(settings.database.url()?, settings.pools())?;
        let notifier = notifier(settings, &store, &clock)?;
        check(&store, settings.has(Role::Relay)).await?;
        ensure_tenants(&store, &settings.database.tenants).await?;
        let engine = match logic {
            Some(logic) => Some(commanding(settings, &store, clock.clone(), logic).await?),
            None => None,
        };
        prepare_with(engine.as_ref(), prepare).await?;
        let presence = present(settings, &listener, &store, &clock, engine.as_ref()).await?;
        let (stages, tasks) = (Stages::default(), TaskTracker::new());
        let (admission, mut streams) = (
            Admission::sized(settings.requests_in_flight_max),
            TaskTracker::new(),
        );
        let metrics = telemetry.metrics.clone();
        let operation = Operation {
            reader: Reader::clone(&store),
            metrics: Arc::new(move || metrics.render()),
            draining: stages.draining.clone(),
            admission: admission.clone(),
        };
        let router = match (&engine, auth) {
            (Some(engine), Some(auth)) => {
                let app = app(settings, engine, auth, operation, &stages);
                streams = app.tracker.clone();
                wrkflw_console::router(app, entrance)
            }
            _ => operational(operation),
        };
        // The server is not one of the tasks: it ends after them.
        let (limits, closing) = (settings.connections.limits(), stages.closing.clone());
        let serving = http::server::serve(listener, router, limits, closing);
        let server = TaskTracker::new().spawn(serving);
        let cancel = stages.stopping.clone();
        if let Some(notifier) = notifier {
            tasks.spawn(notifier.run(cancel.clone(), commits(engine.as_ref())));
        }
        if let Some(kafka) = kafka {
            let relay = Relay::new(store.outbox(), kafka, settings.naming())
                .map_err(|error| SettingsError(error.to_string()))?;
            let wake = engine.as_ref().map(Engine::wake).unwrap_or_default();
            tasks.spawn(relay.run(cancel.clone(), wake));
        }
        if let Some(engine) = &engine {
            look_after(engine, checkpoints, &tasks, &cancel);
        }
        tasks.spawn(presence.clone().run(cancel.clone()));
        tasks.spawn(telemetry.metrics.upkeep(cancel));
        Ok(Host {
            engine,
            store,
            presence,
            admission,
            stages,
            tasks,
            streams,
            server,
            notice: Duration::from_secs(settings.drain_notice_seconds),
            drain: DRAIN_TIMEOUTS * Duration::from_secs(settings.request_seconds_max),
        })
    }

    /// Runs until `stop`, then drains. `/readyz` reports that at once. After the notice period, the host begins no new work and answers
    /// the requests in flight. Then the port and the pools close. The drain has a time limit, and a second signal ends it at once.
    pub(super) async fn run_until(mut self, stop: impl Future<Output = ()>) -> Result<()> {
        let failed = tokio::select! {
            () = stop => None,
            ended = &mut self.server => Some(ended),
        };
        if let Some(failed) = failed {
            self.stages.stopping.cancel();
            failed
                .context("the API ended")?
                .context("the API cannot go on")?;
            bail!("the API ended");
        }
        tracing::info!("stopping");
        let again = stop_signal()?;
        self.stages.draining.cancel();
        let (notice, drain) = (self.notice, self.drain);
        let ending = async {
            tokio::time::sleep(notice).await;
            self.stages.stopping.cancel();
            tokio::time::timeout(drain, self.drained()).await
        };
        tokio::select! {
            drained = ending => match drained {
                Ok(served) => served,
                Err(_) => bail!("stopped after {} s with requests still in flight", drain.as_secs()),
            },
            () = again => bail!("stopped at once by a second signal"),
        }
    }

    async fn drained(&mut self) -> Result<()> {
        self.admission.drained().await;
        for tracker in [&self.streams, &self.tasks] {
            tracker.close();
            tracker.wait().await;
        }
        self.stages.closing.cancel();
        let served = (&mut self.server).await.context("the API ended")?;
        if let Some(engine) = &self.engine {
            engine.settled().await;
        }
        if let Err(error) = self.presence.leave().await {
            tracing::warn!(%error, "the row of this host could not be deleted; the host is listed until the row expires");
        }
        self.store.close().await;
        served.context("the API cannot go on")
    }
}

/// The keys, the services and the sandbox of a host that executes commands.
type Logic = (SealKeys, Services, Sandbox);

/// The parts that a host needs to execute commands, if it does.
fn logic(settings: &Settings, program: PathBuf) -> Result<Option<Logic>> {
    if !settings.executes() {
        return Ok(None);
    }
    let seals = settings.seals()?;
    let services = settings.services()?;
    let sandbox = Sandbox::new(settings.sandbox(program)?).map_err(SettingsError)?;
    Ok(Some((seals, services, sandbox)))
}

/// The engine of a host that executes commands.
async fn commanding(
    settings: &Settings,
    store: &Store,
    clock: Clock,
    (seals, services, sandbox): Logic,
) -> Result<Engine> {
    let timeout = Duration::from_secs(settings.request_seconds_max);
    let engine = Engine::new(store.clone(), sandbox, clock, seals, timeout).await?;
    Ok(engine
        .budgeted(settings.budgets.budgets())
        .verifying(settings.checkpoints()?)
        .serving(services))
}

/// Says that this host runs. The list of hosts has it when it serves.
async fn present(
    settings: &Settings,
    listener: &TcpListener,
    store: &Store,
    clock: &Clock,
    engine: Option<&Engine>,
) -> Result<Presence> {
    let machine = std::fs::read_to_string(MACHINE).unwrap_or_default();
    let machine = match machine.trim() {
        "" => "localhost",
        machine => machine,
    };
    let port = listener.local_addr().context("no address")?.port();
    let host = NewHost {
        id: clock::new_id(),
        name: format!("{machine}:{port}"),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        roles: settings.roles.iter().map(|role| role.name()).collect(),
        started_at: clock.now(),
    };
    let presence = Presence::new(store.clone(), host, engine.map(Engine::host_counts));
    presence.renew_or_warn().await;
    Ok(presence)
}

/// A counter of the commits of this process. It stays unchanged on a host that executes no commands.
fn commits(engine: Option<&Engine>) -> watch::Receiver<u64> {
    let (_, nothing) = watch::channel(0);
    engine.map_or(nothing, Engine::commits)
}

/// The verifier of tokens, if the API is served.
fn authenticator(settings: &Settings, clock: &Clock) -> Result<Option<Authenticator>> {
    if !settings.has(Role::Api) {
        return Ok(None);
    }
    let judge = Authenticator::new(settings.auth.settings(), clock.clone());
    Ok(Some(judge.map_err(SettingsError)?))
}

/// Starts the background work.
fn look_after(
    engine: &Engine,
    checkpoints: Option<CheckpointKeys>,
    tasks: &TaskTracker,
    cancel: &CancellationToken,
) {
    // Only hosts with the role `timers` pass the keys on. The engine of each host has its own keys, to verify.
    if let Some(keys) = checkpoints {
        let handle_job = Arc::new(engine.clone());
        tasks.spawn(Jobs::new(engine, handle_job, cancel.clone()).run());
        sign_checkpoints(engine, keys, tasks, cancel);
    }
    tasks.spawn(sweep(engine.clone(), cancel.clone()));
    tasks.spawn(warm(engine.clone(), cancel.clone()));
}

fn app(
    settings: &Settings,
    engine: &Engine,
    auth: Authenticator,
    operation: Operation,
    stages: &Stages,
) -> App {
    App::new(
        engine.clone(),
        Arc::new(auth),
        settings.naming(),
        Topics {
            events: settings.kafka_topic.clone(),
            checkpoints: settings.checkpoint_topic(),
        },
        operation.metrics,
        stages.stopping.clone(),
    )
    .reaching(settings.webhooks().reach)
    .paced(settings.connections.pace)
    .admitting(operation.admission)
    .draining(operation.draining)
}

/// Runs the checkpointer, if this host has a signing key.
fn sign_checkpoints(
    engine: &Engine,
    keys: CheckpointKeys,
    tasks: &TaskTracker,
    cancel: &CancellationToken,
) {
    if let Some(checkpointer) = Checkpointer::new(engine, Arc::new(keys)) {
        tasks.spawn(checkpointer.run(cancel.clone()));
    } else {
        tracing::warn!("checkpoint_keys is not set: this host signs no checkpoints of the audit");
    }
}

/// The notifier, if this host runs one.
fn notifier(settings: &Settings, store: &Store, clock: &Clock) -> Result<Option<Notifier>> {
    if !settings.has(Role::Notifier) {
        return Ok(None);
    }
    let (naming, webhooks) = (settings.naming(), settings.webhooks());
    let notifier = Notifier::new(store.clone(), clock.clone(), naming, webhooks)
        .map_err(|error| SettingsError(error.to_string()))?;
    Ok(Some(notifier))
}

async fn check(store: &Store, relays: bool) -> Result<()> {
    match store.ready_to_start(relays).await {
        Ok(Readiness::Ready) => Ok(()),
        Ok(Readiness::NotMigrated) => Err(not_migrated().into()),
        Ok(Readiness::ReadOnly) => {
            let next = "point database_url at a server that takes writes: not at a standby";
            let failure = Failure::new(Exit::Failed, "the database is read-only");
            Err(failure.next(next).into())
        }
        Err(error) => {
            let next = if error.lacks_role() {
                GRANTS
            } else {
                "check database_url; if the database is new, run `wrkflw migrate` first"
            };
            Err(
                Failure::new(Exit::Failed, format!("the database is not usable: {error}"))
                    .next(next)
                    .into(),
            )
        }
    }
}

/// Ends with the host, even if not everything is loaded by then.
async fn warm(engine: Engine, cancel: CancellationToken) {
    cancel
        .run_until_cancelled(engine.definitions().warm_active())
        .await;
}

async fn sweep(engine: Engine, cancel: CancellationToken) {
    let purge = async || {
        // A statement that a shutdown interrupts is repeated by the next sweep.
        if let Some(Err(error)) = cancel.run_until_cancelled(engine.purge()).await {
            tracing::warn!(%error, "some expired rows could not be deleted; the host tries again later");
        }
    };
    every(SWEEP_EVERY, &cancel, purge).await;
}
